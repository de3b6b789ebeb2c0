"""The best fixed policy when the losses are known."""

from typing import Any

import numpy as np

from aggbandit._arrays import IntArray
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.planning._inputs import loss_for


def best_policy(mdp: TabularMDP, loss: Any) -> tuple[IntArray, float]:
    """The actions (H, S) of a policy with the least expected loss, and that loss over the initial distribution.

    V*_h(s) = min_a [ ℓ_h(s, a) + Σ_{s'} p_h(s'|s, a) V*_{h+1}(s') ],   V*_{H+1} = 0

    Given the sum Σ_k ℓ^k it is the comparator of the regret: expected loss is linear in the losses, so one policy,
    and a deterministic one, is best for the sum.  Losses may be any finite numbers.  Of actions that are equal to
    the last bit the smallest is taken, also where no policy leads to the state.
    [LM25] Section 2; O(H S² A), or O(H · nonzeros) where sparse.

    >>> from aggbandit.mdp.tabular import TabularMDP
    >>> step_right = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]  # action 1 leads to state 1 for good
    >>> actions, value = best_policy(
    ...     TabularMDP(step_right, horizon=2), [[[0.0, 0.5], [0.0, 0.0]], [[1.0, 1.0], [0.5, 0.25]]]
    ... )
    >>> print(actions, value)
    [[1 0]
     [0 1]] 0.75
    """
    from aggbandit.kernels import values as kernels

    loss_hsa = loss_for(mdp, loss)
    actions_hs = np.empty((mdp.H, mdp.S), dtype=np.int64)
    v_hs = np.empty((mdp.H, mdp.S))
    if mdp.is_sparse:
        kernels.best_policy_sparse(mdp.next_states, mdp.probabilities, loss_hsa, actions_hs, v_hs)
    else:
        kernels.best_policy(mdp.stored, loss_hsa, actions_hs, v_hs)
    return actions_hs, float(mdp.initial @ v_hs[0])
