"""V and Q: what is still to come."""

from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.planning._inputs import loss_for, policy_for


def values(mdp: TabularMDP, policy: Any, loss: Any) -> FloatArray:
    """The expected loss V_h(s) from step h on, given s_h = s, (H, S).

    V_h(s) = Σ_a π_h(a|s) [ ℓ_h(s, a) + Σ_{s'} p_h(s'|s, a) V_{h+1}(s') ],   V_{H+1} = 0

    The policy's expected loss over an episode is `mdp.initial @ values(...)[0]`.  Losses may be any finite numbers.
    [LM25] Section 2; O(H S² A), or O(H · nonzeros) where sparse.
    """
    from aggbandit.kernels import values as kernels

    policy_hsa = policy_for(mdp, policy)
    loss_hsa = loss_for(mdp, loss)
    v_hs = np.empty((mdp.H, mdp.S))
    if mdp.is_sparse:
        kernels.values_sparse(mdp.next_states, mdp.probabilities, policy_hsa, loss_hsa, v_hs)
    else:
        kernels.values(mdp.stored, policy_hsa, loss_hsa, v_hs)
    return v_hs


def action_values(mdp: TabularMDP, policy: Any, loss: Any) -> FloatArray:
    """The expected loss Q_h(s, a) from step h on, given s_h = s and a_h = a, (H, S, A).

    Q_h(s, a) = ℓ_h(s, a) + Σ_{s'} p_h(s'|s, a) V_{h+1}(s'),   V_h(s) = Σ_a π_h(a|s) Q_h(s, a)

    It tells two policies apart: V^π − V^π' = Σ_{h,s} μ^π'_h(s) ⟨π_h(·|s) − π'_h(·|s), Q^π_h(s, ·)⟩ at the start.
    [eq:LM25-value-difference]  Losses may be any finite numbers.  [LM25] Section 2 and Lemma 1; cost as `values`.
    """
    from aggbandit.kernels import values as kernels

    policy_hsa = policy_for(mdp, policy)
    loss_hsa = loss_for(mdp, loss)
    q_hsa, v_hs = np.empty((mdp.H, mdp.S, mdp.A)), np.empty((mdp.H, mdp.S))
    if mdp.is_sparse:
        kernels.action_values_sparse(mdp.next_states, mdp.probabilities, policy_hsa, loss_hsa, q_hsa, v_hs)
    else:
        kernels.action_values(mdp.stored, policy_hsa, loss_hsa, q_hsa, v_hs)
    return q_hsa
