"""Every registered learner, in every form that it takes, keeps every rule of the contract."""

import pytest

from aggbandit import learners
from aggbandit.testing import LEARNER_CHECKS
from forms import FORMS, title


@pytest.mark.parametrize("check", LEARNER_CHECKS)
@pytest.mark.parametrize("form", FORMS, ids=title)
def test_registered_learner(form, check: str) -> None:
    name, arguments = form
    learner = learners.make(name, **arguments)
    if check in learner.exempt:
        pytest.skip(learner.exempt[check])
    LEARNER_CHECKS[check](learner)
