"""One state, H decisions, one sum: the multi-task bandit."""

import numpy as np

from aggbandit._checks import require_integer
from aggbandit.mdp.instances.origin import instance
from aggbandit.mdp.tabular import TabularMDP


@instance("multitask")
def multitask(*, tasks: int = 4, actions: int = 2) -> TabularMDP:
    """The multi-task bandit: one state, in which each step is a bandit problem of its own and only the sum is seen.

    With the losses of the adversary "multitask", the hard instance that the paper's lower bound is built from.

    tasks     H, how many bandit problems are played at once
    actions   A, the arms of each
    """
    H = require_integer("tasks", tasks, low=1)
    A = require_integer("actions", actions, low=1)
    return TabularMDP(np.ones((1, A, 1)), horizon=H)
