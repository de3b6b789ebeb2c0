"""Named worlds: `make(name, **arguments)`, `names()`, `get(name)`; one file each.

A world is dynamics only.  Some suggest losses that belong to them (the dialogue that should end in a sale, the grid
that should be crossed): `natural_loss(mdp)` gives those, and adversaries use them unless told otherwise.
"""

from collections.abc import Callable
from typing import Any

from aggbandit._arrays import FloatArray
from aggbandit._checks import require_arguments
from aggbandit._registry import resolve
from aggbandit.mdp.instances.registry import LOSSES, TABLE
from aggbandit.mdp.tabular import TabularMDP

__all__ = ["get", "make", "names", "natural_loss"]


def names() -> list[str]:
    """The ids of all instances, sorted."""
    return sorted(TABLE)


def get(name: str) -> Callable[..., TabularMDP]:
    """The factory of an instance; its docstring explains the world, its keyword arguments are those of `make`."""
    factory: Callable[..., TabularMDP] = resolve("instance", name, TABLE)
    return factory


def make(name: str, /, **arguments: Any) -> TabularMDP:
    """The instance `name`.

    >>> make("random", states=3, actions=2, horizon=4, seed=1)
    TabularMDP(H=4, S=3, A=2, horizon-dependent, initial_state=0, instance='random')
    """
    factory = get(name)
    require_arguments("instance", name, factory, arguments)
    return factory(**arguments)


def natural_loss(mdp: TabularMDP) -> FloatArray | None:
    """The losses (H, S, A) that the instance itself suggests; None where it suggests none, or for a user's own MDP.

    They are not kept in the MDP, which a learner that knows the dynamics may hold.
    """
    if mdp.origin is None or mdp.origin.name not in LOSSES:
        return None
    table: FloatArray = resolve("instance", mdp.origin.name, LOSSES)(**dict(mdp.origin.arguments))
    table.flags.writeable = False
    return table
