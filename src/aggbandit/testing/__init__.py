"""Contract checks for learners and loss sequences: run them on your own, as this package does on all of its.

    from aggbandit.testing import check_learner
    check_learner(MyLearner())          # raises AssertionError with what is broken

`LEARNER_CHECKS` and `ADVERSARY_CHECKS` hold the checks by name, for a parametrised test of one's own.
"""

from aggbandit.testing.adversary_contract import ADVERSARY_CHECKS, check_adversary
from aggbandit.testing.learner_contract import LEARNER_CHECKS, check_learner

__all__ = ["ADVERSARY_CHECKS", "LEARNER_CHECKS", "check_adversary", "check_learner"]
