"""Action values under the transition kernel of a set that is worst, or best, from every place on.

The set is a box intersected with the simplex, row by row, as in occupancy_bounds; rows are chosen freely of each other,
so that one backward recursion finds the extreme kernel for all places at once.  Callers validate and allocate.
"""

from numba import njit

from aggbandit.kernels.occupancy_bounds import extreme_mean, sort_states


@njit(cache=True, nogil=True)
def extreme_action_values(
    lower_tsas, upper_tsas, policy_hsa, loss_hsa, factor, sign, out_q_hsa, scratch_v_s, scratch_next_s, scratch_order_s
):
    """The greatest (sign = 1) or least (sign = -1) loss from (h, s, a) on, later losses weighing `factor` a step more.

    Q_h(s, a) = ℓ_h(s, a) + factor · ext_q Σ_{s'} q(s') V_{h+1}(s'),   V_h(s) = Σ_a π_h(a|s) Q_h(s, a),   V_{H+1} = 0

    Corners are (T, S, A, S), T = 1 where they are the same at every step; lower = upper is one kernel, no set.
    """
    H, S, A = loss_hsa.shape
    T = lower_tsas.shape[0]
    for s in range(S):
        scratch_order_s[s] = s
    for h in range(H - 1, -1, -1):
        t = h if T > 1 else 0
        if h + 1 < H:
            sort_states(scratch_next_s, sign, scratch_order_s)
        for s in range(S):
            value = 0.0
            for a in range(A):
                q = loss_hsa[h, s, a]
                if h + 1 < H:
                    q += factor * extreme_mean(
                        lower_tsas[t, s, a], upper_tsas[t, s, a], scratch_next_s, scratch_order_s
                    )
                out_q_hsa[h, s, a] = q
                value += policy_hsa[h, s, a] * q
            scratch_v_s[s] = value
        for s in range(S):
            scratch_next_s[s] = scratch_v_s[s]
