"""Every registered adversary keeps every rule of the contract."""

import numpy as np
import pytest

from aggbandit import adversaries, instances
from aggbandit.testing import ADVERSARY_CHECKS

RANDOM = instances.make("random", states=3, actions=2, horizon=4, seed=0)
# the hard losses refuse to be played for fewer episodes than their theorem needs: small worlds of their own
WORLDS = {
    "lower-bound": instances.make("lower-bound", states=2, actions=2, horizon=3),
    "multitask": instances.make("multitask", tasks=3, actions=2),
}


@pytest.mark.parametrize("check", ADVERSARY_CHECKS)
@pytest.mark.parametrize("name", adversaries.names())
def test_registered_adversary(name: str, check: str) -> None:
    mdp = WORLDS.get(name, RANDOM)
    ADVERSARY_CHECKS[check](adversaries.make(name, mdp), mdp)


@pytest.mark.parametrize("check", ADVERSARY_CHECKS)
def test_recorded(check: str) -> None:
    tables = np.random.default_rng(0).random((40, 4, 3, 2))
    ADVERSARY_CHECKS[check](adversaries.Recorded(tables), RANDOM)
