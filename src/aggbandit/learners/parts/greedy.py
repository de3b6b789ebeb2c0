"""The best policy for losses taken at face value."""

import numpy as np

from aggbandit._arrays import FloatArray, frozen


def greedy_policy(transition_tsas: FloatArray, loss_hsa: FloatArray) -> FloatArray:
    """(H, S, A): the deterministic policy of least expected loss; losses may be any numbers, and nothing is clipped.

    Transitions are (T, S, A, S), T = 1 where they are the same at every step.
    """
    from aggbandit.kernels import values

    H, S, A = loss_hsa.shape
    actions_hs, value_hs = np.empty((H, S), dtype=np.int64), np.empty((H, S))
    values.best_policy(frozen(transition_tsas), frozen(loss_hsa), actions_hs, value_hs)
    policy_hsa: FloatArray = np.eye(A)[actions_hs]
    return policy_hsa
