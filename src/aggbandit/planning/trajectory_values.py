"""U and W: what whole trajectories through a state cost, and what was paid on the way to it."""

from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.planning._inputs import loss_for, policy_for
from aggbandit.planning.values import action_values


def trajectory_values(mdp: TabularMDP, policy: Any, loss: Any) -> FloatArray:
    """The expected loss U_h(s, a) of the entire trajectory, given s_h = s and a_h = a, (H, S, A).

    U_h(s, a) = E[Σ_i ℓ_i(s_i, a_i) | s_h = s, a_h = a] = Q_h(s, a) + W_h(s)    [eq:LM25-U] [eq:LM25-U-minus-Q]

    This is what a total at the end of an episode estimates: E[1{s_h = s, a_h = a} L / (μ_h(s, a) + γ)] =
    μ_h(s, a) / (μ_h(s, a) + γ) · U_h(s, a) [eq:LM25-unbiased], and since W does not depend on the action, U tells
    two policies apart just as Q does:
    V^π − V^π' = Σ_{h,s} μ^π'_h(s) ⟨π_h(·|s) − π'_h(·|s), U^π_h(s, ·)⟩ at the start.  [eq:LM25-value-difference-U]

    Where s is unreachable at step h there is nothing to condition on and W_h(s) counts as 0, so that the last
    identity holds for every π', also one that goes where π never does.  Losses may be any finite numbers.
    [LM25] Section 3; O(H S² A), or O(H · nonzeros) where sparse.

    >>> import numpy as np
    >>> from aggbandit.mdp.tabular import TabularMDP
    >>> step_right = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]  # action 1 leads to state 1 for good
    >>> mdp = TabularMDP(step_right, horizon=2)
    >>> loss = np.array([[[0.1, 0.3], [0.0, 0.0]], [[1.0, 1.0], [0.2, 0.4]]])
    >>> print(trajectory_values(mdp, np.full((2, 2, 2), 0.5), loss))
    [[[1.1 0.6]
      [0.3 0.3]]
    <BLANKLINE>
     [[1.1 1.1]
      [0.5 0.7]]]
    """
    u_hsa = action_values(mdp, policy, loss)
    u_hsa += prefix_values(mdp, policy, loss)[:, :, None]
    return u_hsa


def prefix_values(mdp: TabularMDP, policy: Any, loss: Any) -> FloatArray:
    """The expected loss W_h(s) of the steps before h, given s_h = s, (H, S); 0 where s is unreachable at step h.

    W_h(s) = E[Σ_{i<h} ℓ_i(s_i, a_i) | s_h = s] = c_h(s) / μ_h(s),   c_1 = 0
    c_{h+1}(s') = Σ_{s,a} π_h(a|s) p_h(s'|s, a) [ c_h(s) + μ_h(s) ℓ_h(s, a) ]

    Unreachable is what has probability 0 in double precision; a probability under 1e-300 leaves W fewer digits.
    Losses may be any finite numbers.  [LM25] Lemma 2; O(H S² A), or O(H · nonzeros) where sparse.
    """
    from aggbandit.kernels import values as kernels

    policy_hsa = policy_for(mdp, policy)
    loss_hsa = loss_for(mdp, loss)
    reach_hs, w_hs = np.empty((mdp.H, mdp.S)), np.empty((mdp.H, mdp.S))
    if mdp.is_sparse:
        kernels.prefix_values_sparse(
            mdp.next_states, mdp.probabilities, policy_hsa, loss_hsa, mdp.initial, reach_hs, w_hs
        )
    else:
        kernels.prefix_values(mdp.stored, policy_hsa, loss_hsa, mdp.initial, reach_hs, w_hs)
    return w_hs
