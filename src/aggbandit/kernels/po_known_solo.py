"""Many episodes of Algorithm 1 for one replica, played inside compiled code."""

from numba import njit

from aggbandit.kernels.episode import add_compensated, sample_dense, sample_sparse
from aggbandit.kernels.po_known import future_dense, future_sparse, improve_step, occupancy_dense, occupancy_sparse
from aggbandit.kernels.simd import fma


@njit(cache=True, inline="always")
def expected_cost(policy_hsa, occupancy_hs, loss_hsa, cost_s):
    """V^π = Σ_s (Σ_{h, a} μ_h(s) π_h(a|s) ℓ_h(s, a)), in this order of summation."""
    H, S, A = policy_hsa.shape
    cost_s[:] = 0.0
    for h in range(H):
        for s in range(S):
            for a in range(A):
                cost_s[s] = fma(occupancy_hs[h, s] * policy_hsa[h, s, a], loss_hsa[h, s, a], cost_s[s])
    cost = 0.0
    for s in range(S):
        cost += cost_s[s]
    return cost


@njit(cache=True, nogil=True)
def play_dense(
    transition_tsas, cumulative_tsas, initial_s, initial_cumulative_s, tables_mhsa, row_n, mean_mhsa, first, replica,
    seed, step_size, exploration, bonus, policy_hsa, log_policy_hsa, cost, pseudo_cost,
    occupancy_hs, value_s, future_sa, product_a, cost_s, states_h, actions_h,
):  # fmt: skip
    """Play episodes first ... first + n - 1; `mean_mhsa` has one table or none; `cost` is (sum, rest)."""
    H = policy_hsa.shape[0]
    stationary = transition_tsas.shape[0] == 1
    for i in range(row_n.shape[0]):
        loss_hsa = tables_mhsa[row_n[i]]
        occupancy_dense(transition_tsas, initial_s, policy_hsa, occupancy_hs)
        add_compensated(expected_cost(policy_hsa, occupancy_hs, loss_hsa, cost_s), cost)
        if mean_mhsa.shape[0] > 0:
            add_compensated(expected_cost(policy_hsa, occupancy_hs, mean_mhsa[0], cost_s), pseudo_cost)
        sample_dense(cumulative_tsas, initial_cumulative_s, policy_hsa, replica, first + i, seed, states_h, actions_h)
        total = 0.0
        for h in range(H):
            total += loss_hsa[h, states_h[h], actions_h[h]]
        future_sa[:] = 0.0
        for h in range(H - 1, -1, -1):
            if h + 1 < H:
                future_dense(transition_tsas[0 if stationary else h], value_s, future_sa)
            improve_step(
                occupancy_hs[h], policy_hsa[h], log_policy_hsa[h], future_sa, states_h[h], actions_h[h], total,
                step_size, exploration, bonus, value_s, product_a,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def play_sparse(
    next_tsan, probability_tsan, cumulative_tsan, initial_s, initial_cumulative_s, tables_mhsa, row_n, mean_mhsa,
    first, replica, seed, step_size, exploration, bonus, policy_hsa, log_policy_hsa, cost, pseudo_cost,
    occupancy_hs, value_s, future_sa, product_a, cost_s, states_h, actions_h,
):  # fmt: skip
    """`play_dense` with n successors a row."""
    H = policy_hsa.shape[0]
    stationary = next_tsan.shape[0] == 1
    for i in range(row_n.shape[0]):
        loss_hsa = tables_mhsa[row_n[i]]
        occupancy_sparse(next_tsan, probability_tsan, initial_s, policy_hsa, occupancy_hs)
        add_compensated(expected_cost(policy_hsa, occupancy_hs, loss_hsa, cost_s), cost)
        if mean_mhsa.shape[0] > 0:
            add_compensated(expected_cost(policy_hsa, occupancy_hs, mean_mhsa[0], cost_s), pseudo_cost)
        sample_sparse(
            next_tsan, cumulative_tsan, initial_cumulative_s, policy_hsa, replica, first + i, seed, states_h, actions_h
        )
        total = 0.0
        for h in range(H):
            total += loss_hsa[h, states_h[h], actions_h[h]]
        future_sa[:] = 0.0
        for h in range(H - 1, -1, -1):
            if h + 1 < H:
                t = 0 if stationary else h
                future_sparse(next_tsan[t], probability_tsan[t], value_s, future_sa)
            improve_step(
                occupancy_hs[h], policy_hsa[h], log_policy_hsa[h], future_sa, states_h[h], actions_h[h], total,
                step_size, exploration, bonus, value_s, product_a,
            )  # fmt: skip
