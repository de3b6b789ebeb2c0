"""Every registered learner keeps every rule of the contract."""

import pytest

from aggbandit import learners
from aggbandit.testing import LEARNER_CHECKS


@pytest.mark.parametrize("check", LEARNER_CHECKS)
@pytest.mark.parametrize("name", learners.names())
def test_registered_learner(name: str, check: str) -> None:
    learner = learners.make(name)
    if check in learner.exempt:
        pytest.skip(learner.exempt[check])
    LEARNER_CHECKS[check](learner)
