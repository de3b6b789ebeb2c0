"""Named worlds: `make(name, **arguments)`, `names()`, `get(name)`; one file each.

A world is dynamics only.  Some suggest losses that belong to them (the dialogue that should end in a sale, the grid
that should be crossed): `natural_loss(mdp)` gives those, and adversaries use them unless told otherwise.
"""

from collections.abc import Callable
from typing import Any

from aggbandit._arrays import FloatArray
from aggbandit._registry import resolve
from aggbandit.mdp._factories import call
from aggbandit.mdp.instances.registry import FACTORIES, LOSSES
from aggbandit.mdp.tabular import TabularMDP

__all__ = ["get", "make", "names", "natural_loss"]


def names() -> list[str]:
    """The ids of all instances, sorted."""
    return sorted(FACTORIES)


def get(name: str) -> Callable[..., TabularMDP]:
    """The factory of an instance; its docstring explains the world, its keyword arguments are those of `make`."""
    factory: Callable[..., TabularMDP] = resolve("instance", name, FACTORIES)
    return factory


def make(name: str, **arguments: Any) -> TabularMDP:
    """The instance `name`.

    >>> make("random", states=3, actions=2, horizon=4, seed=1)
    TabularMDP(H=4, S=3, A=2, horizon-dependent, initial_state=0, instance='random')
    """
    mdp: TabularMDP = call("instance", name, get(name), arguments)
    return mdp


def natural_loss(mdp: TabularMDP) -> FloatArray | None:
    """The losses (H, S, A) that the instance itself suggests; None where it suggests none, or for a user's own MDP.

    They are not kept in the MDP, which a learner that knows the dynamics may hold.
    """
    if mdp.origin is None or mdp.origin.name not in LOSSES:
        return None
    table: FloatArray = resolve("instance", mdp.origin.name, LOSSES)(**mdp.origin.arguments)
    return table
