"""Least and greatest occupancy over a set of transition kernels, one target at a time: the plain, exact form.

The set is a box intersected with the simplex, row by row: q(·|h, s, a) ≥ 0 sums to 1 and lies between its lower and
upper corner.  Rows are chosen freely of each other, so the kernel that is extreme for a target is found backward, row
by row, and is the same whatever the first state.

Callers validate and allocate (see aggbandit.planning.occupancy_bounds): corners lie in [0, 1], lower ≤ upper, and
Σ lower ≤ 1 ≤ Σ upper within 1e-9.  Where rounding leaves the box and the simplex apart, the box holds: the row then
is the corner nearest to the simplex, and its sum is off 1 by as much as the corner's.
"""

from numba import njit


@njit(cache=True, nogil=True)
def sort_states(value_s, sign, order_s):
    """Sort `order_s`, a permutation of the states, by decreasing sign · value.

    By insertion: it allocates nothing, and an order that is nearly right, such as the previous step's, is quick.
    """
    for i in range(1, order_s.shape[0]):
        s = order_s[i]
        j = i
        while j > 0 and sign * value_s[order_s[j - 1]] < sign * value_s[s]:
            order_s[j] = order_s[j - 1]
            j -= 1
        order_s[j] = s


@njit(cache=True, nogil=True)
def extreme_mean(lower_s, upper_s, value_s, order_s):
    """The extreme of Σ_s q(s) value(s) over the box and the simplex: greatest where `order_s` sorts the values in
    decreasing order, least where in increasing order.

    q = lower;   rest = 1 − Σ_s lower(s)
    for s in order:  q(s) += min(upper(s) − lower(s), rest), and the rest shrinks by as much
    """
    mean = 0.0
    rest = 1.0
    for s in range(lower_s.shape[0]):
        mean += lower_s[s] * value_s[s]
        rest -= lower_s[s]
    for s in order_s:
        room = upper_s[s] - lower_s[s]
        if room >= rest:
            return mean + max(rest, 0.0) * value_s[s]  # negative only by rounding: then lower is the answer
        mean += room * value_s[s]
        rest -= room
    return mean  # Σ upper < 1, by rounding


@njit(cache=True, nogil=True)
def extreme_reach(
    lower_hsas, upper_hsas, policy_hsa, initial_s, step, state, sign, scratch_f_s, scratch_g_s, scratch_order_s
):
    """The greatest (sign = 1) or least (sign = -1) Pr[s_step = state] over the set.

    f_step = 1{s = state}
    f_h(s) = Σ_a π_h(a|s) ext_q Σ_{s'} q(s') f_{h+1}(s'),   h = step − 1 ... 1
    answer = Σ_s initial(s) f_1(s)
    """
    S, A = policy_hsa.shape[1:]
    for s in range(S):
        scratch_f_s[s] = 0.0
        scratch_order_s[s] = s
    scratch_f_s[state] = 1.0
    for h in range(step - 1, -1, -1):
        sort_states(scratch_f_s, sign, scratch_order_s)
        for s in range(S):
            scratch_g_s[s] = 0.0
            if h == 0 and initial_s[s] == 0.0:
                continue
            for a in range(A):
                if policy_hsa[h, s, a] > 0.0:
                    scratch_g_s[s] += policy_hsa[h, s, a] * extreme_mean(
                        lower_hsas[h, s, a], upper_hsas[h, s, a], scratch_f_s, scratch_order_s
                    )
        for s in range(S):
            scratch_f_s[s] = scratch_g_s[s]
    answer = 0.0
    for s in range(S):
        answer += initial_s[s] * scratch_f_s[s]
    return answer


@njit(cache=True, nogil=True)
def occupancy_bounds(
    lower_hsas,
    upper_hsas,
    policy_hsa,
    initial_s,
    out_least_hs,
    out_greatest_hs,
    scratch_f_s,
    scratch_g_s,
    scratch_order_s,
):
    """Least and greatest probability of every state at every step over the set.  [eq:LM25-mu-bar]

    μ̲_h(s) = min_{p' in the set} μ_h^{π,p'}(s),   μ̄_h(s) = max_{p' in the set} μ_h^{π,p'}(s)

    Each (h, s) has its own extreme kernel, so Σ_s μ̄_h(s) may exceed 1.
    """
    H, S = out_least_hs.shape
    for h in range(H):
        for s in range(S):
            out_least_hs[h, s] = extreme_reach(
                lower_hsas, upper_hsas, policy_hsa, initial_s, h, s, -1.0, scratch_f_s, scratch_g_s, scratch_order_s
            )
            out_greatest_hs[h, s] = extreme_reach(
                lower_hsas, upper_hsas, policy_hsa, initial_s, h, s, 1.0, scratch_f_s, scratch_g_s, scratch_order_s
            )
