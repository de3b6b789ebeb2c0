"""Value recursions of a finite-horizon MDP: backward under a fixed policy or the best one, and forward for W.

Callers validate and allocate (see aggbandit.planning.values).  Transitions come as (T, S, A, S') with T = 1 where
they are the same at every step and T = H where not, or as n successors a row; the step out of h = H is never read.
Losses may be any finite numbers, for instance sums over many episodes.
"""

from numba import njit

# A backward recursion is a sum over s', which becomes SIMD only when it may be summed in another order:
# 3 times faster at S = 100, 1.3 times at S = 10.  Sums over n successors and forward recursions gain nothing.
_ANY_ORDER = {"reassoc"}


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def values(transition_tsas, policy_hsa, loss_hsa, out_v_hs):
    """Expected loss from (h, s) on.  [eq:LM25-V]

    V_h(s) = Σ_a π_h(a|s) [ ℓ_h(s, a) + Σ_{s'} p_h(s'|s, a) V_{h+1}(s') ],   V_{H+1} = 0
    """
    H, S, A = loss_hsa.shape
    T = transition_tsas.shape[0]
    for h in range(H - 1, -1, -1):
        t = h if T > 1 else 0
        for s in range(S):
            value = 0.0
            for a in range(A):
                q = loss_hsa[h, s, a]
                if h + 1 < H:  # V_{H+1} = 0 is not stored
                    for s_next in range(S):
                        q += transition_tsas[t, s, a, s_next] * out_v_hs[h + 1, s_next]
                value += policy_hsa[h, s, a] * q
            out_v_hs[h, s] = value


@njit(cache=True, nogil=True)
def values_sparse(next_states_tsan, probabilities_tsan, policy_hsa, loss_hsa, out_v_hs):
    """`values` where each row has n successors."""
    H, S, A = loss_hsa.shape
    T = probabilities_tsan.shape[0]
    n = probabilities_tsan.shape[3]
    for h in range(H - 1, -1, -1):
        t = h if T > 1 else 0
        for s in range(S):
            value = 0.0
            for a in range(A):
                q = loss_hsa[h, s, a]
                if h + 1 < H:
                    for i in range(n):
                        q += probabilities_tsan[t, s, a, i] * out_v_hs[h + 1, next_states_tsan[t, s, a, i]]
                value += policy_hsa[h, s, a] * q
            out_v_hs[h, s] = value


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def action_values(transition_tsas, policy_hsa, loss_hsa, out_q_hsa, out_v_hs):
    """Expected loss from (h, s) on when the first action is a, and V on the way.  [eq:LM25-Q]

    Q_h(s, a) = ℓ_h(s, a) + Σ_{s'} p_h(s'|s, a) V_{h+1}(s'),   V_{H+1} = 0
    V_h(s)    = Σ_a π_h(a|s) Q_h(s, a)
    """
    H, S, A = loss_hsa.shape
    T = transition_tsas.shape[0]
    for h in range(H - 1, -1, -1):
        t = h if T > 1 else 0
        for s in range(S):
            value = 0.0
            for a in range(A):
                q = loss_hsa[h, s, a]
                if h + 1 < H:
                    for s_next in range(S):
                        q += transition_tsas[t, s, a, s_next] * out_v_hs[h + 1, s_next]
                out_q_hsa[h, s, a] = q
                value += policy_hsa[h, s, a] * q
            out_v_hs[h, s] = value


@njit(cache=True, nogil=True)
def action_values_sparse(next_states_tsan, probabilities_tsan, policy_hsa, loss_hsa, out_q_hsa, out_v_hs):
    """`action_values` where each row has n successors."""
    H, S, A = loss_hsa.shape
    T = probabilities_tsan.shape[0]
    n = probabilities_tsan.shape[3]
    for h in range(H - 1, -1, -1):
        t = h if T > 1 else 0
        for s in range(S):
            value = 0.0
            for a in range(A):
                q = loss_hsa[h, s, a]
                if h + 1 < H:
                    for i in range(n):
                        q += probabilities_tsan[t, s, a, i] * out_v_hs[h + 1, next_states_tsan[t, s, a, i]]
                out_q_hsa[h, s, a] = q
                value += policy_hsa[h, s, a] * q
            out_v_hs[h, s] = value


@njit(cache=True, nogil=True)
def prefix_values(transition_tsas, policy_hsa, loss_hsa, initial_s, out_reach_hs, out_w_hs):
    """Expected loss before step h given s_h = s, and μ on the way; 0 where s is unreachable.  [eq:LM25-W]

    c_h(s) = μ_h(s) W_h(s),   c_1 = 0
    c_{h+1}(s') = Σ_{s,a} π_h(a|s) p_h(s'|s, a) [ c_h(s) + μ_h(s) ℓ_h(s, a) ]
    W_h(s) = c_h(s) / μ_h(s)
    """
    # c, not W = c / μ, is carried forward in out_w_hs: a state of probability zero then costs no division.
    H, S, A = loss_hsa.shape
    T = transition_tsas.shape[0]
    for s in range(S):
        out_reach_hs[0, s] = initial_s[s]
        out_w_hs[0, s] = 0.0
    for h in range(H - 1):
        t = h if T > 1 else 0
        for s_next in range(S):
            out_reach_hs[h + 1, s_next] = 0.0
            out_w_hs[h + 1, s_next] = 0.0
        for s in range(S):
            for a in range(A):
                weight = out_reach_hs[h, s] * policy_hsa[h, s, a]
                if weight == 0.0:
                    continue
                carried = out_w_hs[h, s] * policy_hsa[h, s, a] + weight * loss_hsa[h, s, a]
                for s_next in range(S):
                    p = transition_tsas[t, s, a, s_next]
                    out_reach_hs[h + 1, s_next] += weight * p
                    out_w_hs[h + 1, s_next] += carried * p
    for h in range(H):
        for s in range(S):
            out_w_hs[h, s] = out_w_hs[h, s] / out_reach_hs[h, s] if out_reach_hs[h, s] > 0.0 else 0.0


@njit(cache=True, nogil=True)
def prefix_values_sparse(next_states_tsan, probabilities_tsan, policy_hsa, loss_hsa, initial_s, out_reach_hs, out_w_hs):
    """`prefix_values` where each row has n successors."""
    H, S, A = loss_hsa.shape
    T = probabilities_tsan.shape[0]
    n = probabilities_tsan.shape[3]
    for s in range(S):
        out_reach_hs[0, s] = initial_s[s]
        out_w_hs[0, s] = 0.0
    for h in range(H - 1):
        t = h if T > 1 else 0
        for s_next in range(S):
            out_reach_hs[h + 1, s_next] = 0.0
            out_w_hs[h + 1, s_next] = 0.0
        for s in range(S):
            for a in range(A):
                weight = out_reach_hs[h, s] * policy_hsa[h, s, a]
                if weight == 0.0:
                    continue
                carried = out_w_hs[h, s] * policy_hsa[h, s, a] + weight * loss_hsa[h, s, a]
                for i in range(n):
                    s_next = next_states_tsan[t, s, a, i]
                    p = probabilities_tsan[t, s, a, i]
                    out_reach_hs[h + 1, s_next] += weight * p
                    out_w_hs[h + 1, s_next] += carried * p
    for h in range(H):
        for s in range(S):
            out_w_hs[h, s] = out_w_hs[h, s] / out_reach_hs[h, s] if out_reach_hs[h, s] > 0.0 else 0.0


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def best_policy(transition_tsas, loss_hsa, out_actions_hs, out_v_hs):
    """The actions of least expected loss from (h, s) on, the smallest of equals, and that loss.  [eq:LM25-regret]

    V*_h(s) = min_a [ ℓ_h(s, a) + Σ_{s'} p_h(s'|s, a) V*_{h+1}(s') ],   V*_{H+1} = 0
    """
    H, S, A = loss_hsa.shape
    T = transition_tsas.shape[0]
    for h in range(H - 1, -1, -1):
        t = h if T > 1 else 0
        for s in range(S):
            for a in range(A):
                q = loss_hsa[h, s, a]
                if h + 1 < H:
                    for s_next in range(S):
                        q += transition_tsas[t, s, a, s_next] * out_v_hs[h + 1, s_next]
                if a == 0 or q < out_v_hs[h, s]:
                    out_v_hs[h, s] = q
                    out_actions_hs[h, s] = a


@njit(cache=True, nogil=True)
def best_policy_sparse(next_states_tsan, probabilities_tsan, loss_hsa, out_actions_hs, out_v_hs):
    """`best_policy` where each row has n successors."""
    H, S, A = loss_hsa.shape
    T = probabilities_tsan.shape[0]
    n = probabilities_tsan.shape[3]
    for h in range(H - 1, -1, -1):
        t = h if T > 1 else 0
        for s in range(S):
            for a in range(A):
                q = loss_hsa[h, s, a]
                if h + 1 < H:
                    for i in range(n):
                        q += probabilities_tsan[t, s, a, i] * out_v_hs[h + 1, next_states_tsan[t, s, a, i]]
                if a == 0 or q < out_v_hs[h, s]:
                    out_v_hs[h, s] = q
                    out_actions_hs[h, s] = a
