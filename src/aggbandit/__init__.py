"""Online Markov decision processes with aggregate bandit feedback: one total at the end of each episode.

    import aggbandit as ab

    mdp = ab.instances.make("dialogue")
    losses = ab.adversaries.make("switching", mdp, blocks=8, seed=0)
    result = ab.run(mdp, losses, "po-known", episodes=10_000, seed=0)
    result.regret[:, -1], result.hindsight_policy

Every public name is imported when it is first asked for: `import aggbandit` itself loads nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aggbandit._version import __version__

if TYPE_CHECKING:
    from aggbandit import adversaries, errors, learners, planning, theory
    from aggbandit.agent import Agent
    from aggbandit.experiments.diagnosis import diagnose
    from aggbandit.experiments.store import open_store
    from aggbandit.interop import gymnasium as gym
    from aggbandit.learners.base import Draws, Episode, Learner, Needs, Problem
    from aggbandit.mdp import instances
    from aggbandit.mdp.tabular import TabularMDP
    from aggbandit.simulation.result import RunResult
    from aggbandit.simulation.run import run
    from aggbandit.simulation.session import Session, start

__all__ = [
    "Agent",
    "Draws",
    "Episode",
    "Learner",
    "Needs",
    "Problem",
    "RunResult",
    "Session",
    "TabularMDP",
    "__version__",
    "adversaries",
    "diagnose",
    "errors",
    "gym",
    "instances",
    "learners",
    "open_store",
    "planning",
    "run",
    "start",
    "theory",
]

_WHERE = {  # name: "module" or "module:attribute"
    "Agent": "aggbandit.agent:Agent",
    "Draws": "aggbandit.learners.base:Draws",
    "Episode": "aggbandit.learners.base:Episode",
    "Learner": "aggbandit.learners.base:Learner",
    "Needs": "aggbandit.learners.base:Needs",
    "Problem": "aggbandit.learners.base:Problem",
    "RunResult": "aggbandit.simulation.result:RunResult",
    "Session": "aggbandit.simulation.session:Session",
    "TabularMDP": "aggbandit.mdp.tabular:TabularMDP",
    "adversaries": "aggbandit.adversaries",
    "diagnose": "aggbandit.experiments.diagnosis:diagnose",
    "errors": "aggbandit.errors",
    "gym": "aggbandit.interop.gymnasium",
    "instances": "aggbandit.mdp.instances",
    "learners": "aggbandit.learners",
    "open_store": "aggbandit.experiments.store:open_store",
    "planning": "aggbandit.planning",
    "run": "aggbandit.simulation.run:run",
    "start": "aggbandit.simulation.session:start",
    "theory": "aggbandit.theory",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _WHERE[name].partition(":")
    found = import_module(module)
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
