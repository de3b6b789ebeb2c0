"""Who sets the losses: `make(name, mdp, **arguments)`, `names()`, `get(name)`; one file each.

All are oblivious: the table of episode k is settled before the first episode, whatever the learner does ([LM25]
states its guarantees for such adversaries).  `tables(start, stop)` gives the same numbers however it is cut.
"""

from collections.abc import Callable
from typing import Any

from aggbandit._checks import require_arguments
from aggbandit._registry import resolve
from aggbandit.adversaries.base import LossSequence, as_losses, checked_tables
from aggbandit.adversaries.recorded import Recorded
from aggbandit.adversaries.registry import TABLE
from aggbandit.errors import InvalidInputError
from aggbandit.mdp.tabular import TabularMDP

__all__ = ["LossSequence", "Recorded", "as_losses", "checked_tables", "get", "make", "names"]


def names() -> list[str]:
    """The ids of all loss sequences that can be made by name, sorted."""
    return sorted(TABLE)


def get(name: str) -> Callable[..., LossSequence]:
    """The factory of a loss sequence; its docstring explains it, its keyword arguments are those of `make`."""
    factory: Callable[..., LossSequence] = resolve("adversary", name, TABLE)
    return factory


def make(name: str, mdp: TabularMDP, /, **arguments: Any) -> LossSequence:
    """The loss sequence `name` for this MDP.

    >>> import aggbandit.mdp.instances
    >>> mdp = aggbandit.mdp.instances.make("random", states=3, actions=2, horizon=4)
    >>> losses = make("switching", mdp, blocks=2, seed=0)
    >>> losses.tables(10, 15).shape
    (5, 4, 3, 2)
    """
    factory = get(name)
    if not isinstance(mdp, TabularMDP):
        raise InvalidInputError(
            f"the second argument must be the TabularMDP that the losses are for, but is a {type(mdp).__name__}."
        )
    require_arguments("adversary", name, factory, arguments)
    return factory(mdp, **arguments)
