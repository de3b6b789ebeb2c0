"""Algorithm 1 of [LM25] for one replica, in plain loops: what `learner.update` calls.

A policy is kept as its probabilities, each multiplied by exp(-η (Û - B)) and divided by its row's sum: a relative
error of a few ulp an episode, where a sum of log weights of size 1000 would lose 1000 times that.  A probability below
TINY is carried by its logarithm in `log_policy_hsa` (elsewhere meaningless), so that nothing is ever lost to underflow.
A row goes through the softmax of its log weights whenever a probability in it is that small or an argument is not.

The faster kernels of `po_known_solo`, `po_known_lanes` and `po_known_sparse` do the same operations on every number in
the same order, so that all of them give the same bits.  Whoever changes one changes all; the tests compare bits.
"""

from math import exp, inf, log

from numba import njit

from aggbandit.kernels.simd import SMALL, exp_bounded, exp_small, fma

TINY = 2.0**-900  # below it the logarithm counts
SAFE = 2.0**-899  # a product at least this comes from a factor of at least TINY, and stays there when normalised
LOWEST = -700.0  # least argument of `exp_bounded`; what reaches it falls below SAFE and is done again by logarithms


@njit(cache=True, inline="always")
def softmax_row(policy_a, log_policy_a, future_a, mean, step_size, visited, estimate):
    """One row of [eq:LM25-update] by log weights, whatever their size; `estimate` is η Û of the visited action."""
    A = policy_a.shape[0]
    greatest = -inf
    for a in range(A):
        old = log_policy_a[a] if policy_a[a] < TINY else log(policy_a[a])
        new = old + step_size * (future_a[a] - mean)
        if a == visited:
            new -= estimate
        log_policy_a[a] = new
        greatest = max(greatest, new)
    total = 0.0
    for a in range(A):
        total += exp(log_policy_a[a] - greatest)
    shift = greatest + log(total)
    for a in range(A):
        log_policy_a[a] -= shift
        policy_a[a] = exp(log_policy_a[a])


@njit(cache=True, inline="always")
def improve_row(policy_a, log_policy_a, future_a, mean, step_size, visited, factor, estimate, product_a):
    """π(a) <- π(a) exp(-η (Û(a) - B(a))) / Σ, for one (h, s).  [eq:LM25-update]

    B(a) = b + future(a), and only differences over a matter, so the argument is η (future(a) - Σ π future); the visited
    action's own term is the factor exp(-η Û).
    """
    A = policy_a.shape[0]
    greatest = 0.0
    least = inf
    total = 0.0
    for a in range(A):
        x = step_size * (future_a[a] - mean)
        product = policy_a[a] * exp_small(x)
        if a == visited:
            product *= factor
        product_a[a] = product
        total += product
        greatest = max(greatest, abs(x))
        least = min(least, product)
    if greatest <= SMALL and least >= SAFE:
        scale = 1.0 / total
        for a in range(A):
            policy_a[a] = product_a[a] * scale
    else:
        softmax_row(policy_a, log_policy_a, future_a, mean, step_size, visited, estimate)


@njit(cache=True, inline="always")
def improve_step(
    occupancy_s, policy_sa, log_policy_sa, future_sa, s_visited, a_visited, total, step_size, exploration, bonus,
    out_value_s, product_a,
):  # fmt: skip
    """All rows of one step h: b, the value of B under the old policy, and the new policy.  [eq:LM25-b] [eq:LM25-B]

    b(s) = 3 γ H Σ_a π(a|s) / (μ(s) π(a|s) + γ),   V(s) = Σ_a π(a|s) B(s, a) = b(s) + Σ_a π(a|s) future(s, a)
    """
    S, A = policy_sa.shape
    reached = fma(occupancy_s[s_visited], policy_sa[s_visited, a_visited], exploration)
    estimate = step_size * (total / reached)  # η Û  [eq:LM25-U-hat]
    factor = exp_bounded(max(-estimate, LOWEST))
    for s in range(S):
        ratios = 0.0
        mean = 0.0
        for a in range(A):
            p = policy_sa[s, a]
            ratios += p / fma(occupancy_s[s], p, exploration)
            mean = fma(p, future_sa[s, a], mean)
        out_value_s[s] = bonus * ratios + mean
        visited = a_visited if s == s_visited else -1
        improve_row(policy_sa[s], log_policy_sa[s], future_sa[s], mean, step_size, visited, factor, estimate, product_a)


@njit(cache=True, inline="always")
def occupancy_dense(transition_tsas, initial_s, policy_hsa, out_occupancy_hs):
    """μ_1 = initial,   μ_{h+1}(s') = Σ_{s, a} μ_h(s) π_h(a|s) p_h(s'|s, a)"""
    H, S, A = policy_hsa.shape
    stationary = transition_tsas.shape[0] == 1
    out_occupancy_hs[0] = initial_s
    for h in range(H - 1):
        t = 0 if stationary else h
        out_occupancy_hs[h + 1] = 0.0
        for s in range(S):
            if out_occupancy_hs[h, s] == 0.0:
                continue  # adds nothing, bit for bit
            for a in range(A):
                w = out_occupancy_hs[h, s] * policy_hsa[h, s, a]
                for s_next in range(S):
                    p = transition_tsas[t, s, a, s_next]
                    out_occupancy_hs[h + 1, s_next] = fma(w, p, out_occupancy_hs[h + 1, s_next])


@njit(cache=True, inline="always")
def occupancy_sparse(next_tsan, probability_tsan, initial_s, policy_hsa, out_occupancy_hs):
    """`occupancy_dense` with n successors a row."""
    H, S, A = policy_hsa.shape
    n = next_tsan.shape[3]
    stationary = next_tsan.shape[0] == 1
    out_occupancy_hs[0] = initial_s
    for h in range(H - 1):
        t = 0 if stationary else h
        out_occupancy_hs[h + 1] = 0.0
        for s in range(S):
            if out_occupancy_hs[h, s] == 0.0:
                continue
            for a in range(A):
                w = out_occupancy_hs[h, s] * policy_hsa[h, s, a]
                for j in range(n):
                    s_next = next_tsan[t, s, a, j]
                    p = probability_tsan[t, s, a, j]
                    out_occupancy_hs[h + 1, s_next] = fma(w, p, out_occupancy_hs[h + 1, s_next])


@njit(cache=True, inline="always")
def future_dense(transition_sas, value_s, out_future_sa):
    """future(s, a) = Σ_{s'} p(s'|s, a) V(s')"""
    S, A = out_future_sa.shape
    for s in range(S):
        for a in range(A):
            future = 0.0
            for s_next in range(S):
                future = fma(transition_sas[s, a, s_next], value_s[s_next], future)
            out_future_sa[s, a] = future


@njit(cache=True, inline="always")
def future_sparse(next_san, probability_san, value_s, out_future_sa):
    """`future_dense` with n successors a row."""
    S, A, n = next_san.shape
    for s in range(S):
        for a in range(A):
            future = 0.0
            for j in range(n):
                future = fma(probability_san[s, a, j], value_s[next_san[s, a, j]], future)
            out_future_sa[s, a] = future


@njit(cache=True, nogil=True)
def update_dense(
    transition_tsas, initial_s, policy_hsa, log_policy_hsa, states_h, actions_h, total, step_size, exploration, bonus,
    occupancy_hs, value_s, future_sa, product_a,
):  # fmt: skip
    """One episode's update of the policy in place; the last four arguments are overwritten.  [eq:LM25-alg-1]"""
    H = policy_hsa.shape[0]
    stationary = transition_tsas.shape[0] == 1
    occupancy_dense(transition_tsas, initial_s, policy_hsa, occupancy_hs)
    future_sa[:] = 0.0  # B beyond the last step
    for h in range(H - 1, -1, -1):
        if h + 1 < H:
            future_dense(transition_tsas[0 if stationary else h], value_s, future_sa)
        improve_step(
            occupancy_hs[h], policy_hsa[h], log_policy_hsa[h], future_sa, states_h[h], actions_h[h], total,
            step_size, exploration, bonus, value_s, product_a,
        )  # fmt: skip


@njit(cache=True, nogil=True)
def update_sparse(
    next_tsan, probability_tsan, initial_s, policy_hsa, log_policy_hsa, states_h, actions_h, total, step_size,
    exploration, bonus, occupancy_hs, value_s, future_sa, product_a,
):  # fmt: skip
    """`update_dense` with n successors a row."""
    H = policy_hsa.shape[0]
    stationary = next_tsan.shape[0] == 1
    occupancy_sparse(next_tsan, probability_tsan, initial_s, policy_hsa, occupancy_hs)
    future_sa[:] = 0.0
    for h in range(H - 1, -1, -1):
        if h + 1 < H:
            t = 0 if stationary else h
            future_sparse(next_tsan[t], probability_tsan[t], value_s, future_sa)
        improve_step(
            occupancy_hs[h], policy_hsa[h], log_policy_hsa[h], future_sa, states_h[h], actions_h[h], total,
            step_size, exploration, bonus, value_s, product_a,
        )  # fmt: skip
