"""Every registered adversary keeps every rule of the contract."""

import numpy as np
import pytest

from aggbandit import adversaries, instances
from aggbandit.testing import ADVERSARY_CHECKS

MDP = instances.make("random", states=3, actions=2, horizon=4, seed=0)
RECORDED = np.random.default_rng(0).random((40, 4, 3, 2))


@pytest.mark.parametrize("check", ADVERSARY_CHECKS)
@pytest.mark.parametrize("name", adversaries.names())
def test_registered_adversary(name: str, check: str) -> None:
    arguments = {"tables": RECORDED} if name == "recorded" else {}
    ADVERSARY_CHECKS[check](adversaries.make(name, MDP, **arguments), MDP)
