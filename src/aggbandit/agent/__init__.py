"""The practitioner's door: an agent that decides, is told how it went, and forgets nothing."""

from aggbandit.agent.agent import Agent, Episode
from aggbandit.agent.errors import InUseError, NotDurableError
from aggbandit.agent.evaluation import Evaluation

__all__ = ["Agent", "Episode", "Evaluation", "InUseError", "NotDurableError"]
