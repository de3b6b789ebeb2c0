"""A world small enough to compute everything with a pencil."""

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.mdp.instances.origin import instance
from aggbandit.mdp.tabular import TabularMDP


@instance("hand-worked")
def hand_worked() -> TabularMDP:
    """A world small enough to compute everything with a pencil: H = 3, S = 2, A = 2, halves and quarters.

    Starting in state x, with actions a and b, the probability of moving to x and to y is

                 step 1       step 2       step 3
        x, a     1    0       1/2  1/2     (never
        x, b     1/2  1/2     0    1        used)
        y, a     0    1       1    0
        y, b     1    0       1/4  3/4

    and its own losses are

                 step 1       step 2       step 3
        x, a     0            1/2          1
        x, b     1/2          0            0
        y, a     1            1            1/4
        y, b     0            1/4          1

    The best policy plays a, b and the cheaper action of the last step, and pays 1/4.  State y is out of reach at
    step 1: the place where a definition of U has to say what it means there.
    """
    step_1 = [[[1, 0], [1 / 2, 1 / 2]], [[0, 1], [1, 0]]]
    step_2 = [[[1 / 2, 1 / 2], [0, 1]], [[1, 0], [1 / 4, 3 / 4]]]
    step_3 = [[[1, 0], [1, 0]], [[0, 1], [0, 1]]]
    return TabularMDP([step_1, step_2, step_3], state_names=["x", "y"], action_names=["a", "b"])


def loss_table() -> FloatArray:
    """The losses of the docstring above, (3, 2, 2)."""
    return np.array([[[0, 1 / 2], [1, 0]], [[1 / 2, 0], [1, 1 / 4]], [[1, 0], [1 / 4, 1]]])
