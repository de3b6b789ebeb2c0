"""The dynamics of Theorem 3: a first step that scatters, then stay."""

import numpy as np

from aggbandit._checks import require_integer
from aggbandit.mdp.instances.origin import instance
from aggbandit.mdp.tabular import TabularMDP


@instance("lower-bound")
def lower_bound(*, states: int = 3, actions: int = 2, horizon: int = 4) -> TabularMDP:
    """The instance of the paper's lower bound: the first step leads anywhere, after that nobody moves.

    From state 0 every action leads to each of the S states with probability 1/S; from the second step on the state
    stays.  With the losses of the adversary "lower-bound" each state hides a bandit problem for every further step, and
    only their sum is seen: no learner's regret grows slower than H² √(S A K), in the mean over the hidden actions.

    states    S
    actions   A
    horizon   H, at least 2
    """
    S = require_integer("states", states, low=1)
    A = require_integer("actions", actions, low=1)
    H = require_integer("horizon", horizon, low=2)
    transition = np.empty((H, S, A, S))
    transition[0] = 1.0 / S
    transition[1:] = np.eye(S)[:, None, :]
    return TabularMDP(transition)
