"""Forward recursions: where a policy goes, and what that costs.

Callers validate and allocate (see aggbandit.planning.occupancy).  Transitions come as (T, S, A, S') with T = 1 where
they are the same at every step and T = H where not, or as n successors a row; the step out of h = H is never read.
Probabilities are used as given: where rows sum to 1 only within 1e-9, so do the results, step by step.
"""

from numba import njit


@njit(cache=True, nogil=True)
def reach(transition_tsas, policy_hsa, initial_s, out_reach_hs):
    """Probability of every state at every step.  [eq:LM25-occupancy]

    μ_1(s) = initial(s)
    μ_{h+1}(s') = Σ_{s,a} μ_h(s) π_h(a|s) p_h(s'|s, a)
    """
    H, S, A = policy_hsa.shape
    T = transition_tsas.shape[0]
    for s in range(S):
        out_reach_hs[0, s] = initial_s[s]
    for h in range(H - 1):
        t = h if T > 1 else 0
        for s_next in range(S):
            out_reach_hs[h + 1, s_next] = 0.0
        for s in range(S):
            for a in range(A):
                weight = out_reach_hs[h, s] * policy_hsa[h, s, a]
                if weight == 0.0:  # a deterministic policy skips all rows but one
                    continue
                for s_next in range(S):
                    out_reach_hs[h + 1, s_next] += weight * transition_tsas[t, s, a, s_next]


@njit(cache=True, nogil=True)
def reach_sparse(next_states_tsan, probabilities_tsan, policy_hsa, initial_s, out_reach_hs):
    """`reach` where each row has n successors: μ_{h+1}(next(s, a, i)) += μ_h(s) π_h(a|s) p_h(i|s, a)."""
    H, S, A = policy_hsa.shape
    T = probabilities_tsan.shape[0]
    n = probabilities_tsan.shape[3]
    for s in range(S):
        out_reach_hs[0, s] = initial_s[s]
    for h in range(H - 1):
        t = h if T > 1 else 0
        for s_next in range(S):
            out_reach_hs[h + 1, s_next] = 0.0
        for s in range(S):
            for a in range(A):
                weight = out_reach_hs[h, s] * policy_hsa[h, s, a]
                if weight == 0.0:
                    continue
                for i in range(n):
                    out_reach_hs[h + 1, next_states_tsan[t, s, a, i]] += weight * probabilities_tsan[t, s, a, i]


@njit(cache=True, nogil=True)
def expected_cost(transition_tsas, policy_hsa, loss_hsa, initial_s, out_reach_hs):
    """The policy's expected loss over an episode, with `reach` on the way.

    Σ_{h,s,a} μ_h(s) π_h(a|s) ℓ_h(s, a)  =  Σ_s initial(s) V_1(s)
    """
    H, S, A = policy_hsa.shape
    T = transition_tsas.shape[0]
    cost = 0.0
    for s in range(S):
        out_reach_hs[0, s] = initial_s[s]
    for h in range(H):
        t = h if T > 1 else 0
        if h + 1 < H:
            for s_next in range(S):
                out_reach_hs[h + 1, s_next] = 0.0
        for s in range(S):
            for a in range(A):
                weight = out_reach_hs[h, s] * policy_hsa[h, s, a]
                if weight == 0.0:
                    continue
                cost += weight * loss_hsa[h, s, a]
                if h + 1 < H:
                    for s_next in range(S):
                        out_reach_hs[h + 1, s_next] += weight * transition_tsas[t, s, a, s_next]
    return cost


@njit(cache=True, nogil=True)
def expected_cost_sparse(next_states_tsan, probabilities_tsan, policy_hsa, loss_hsa, initial_s, out_reach_hs):
    """`expected_cost` where each row has n successors."""
    H, S, A = policy_hsa.shape
    T = probabilities_tsan.shape[0]
    n = probabilities_tsan.shape[3]
    cost = 0.0
    for s in range(S):
        out_reach_hs[0, s] = initial_s[s]
    for h in range(H):
        t = h if T > 1 else 0
        if h + 1 < H:
            for s_next in range(S):
                out_reach_hs[h + 1, s_next] = 0.0
        for s in range(S):
            for a in range(A):
                weight = out_reach_hs[h, s] * policy_hsa[h, s, a]
                if weight == 0.0:
                    continue
                cost += weight * loss_hsa[h, s, a]
                if h + 1 < H:
                    for i in range(n):
                        out_reach_hs[h + 1, next_states_tsan[t, s, a, i]] += weight * probabilities_tsan[t, s, a, i]
    return cost
