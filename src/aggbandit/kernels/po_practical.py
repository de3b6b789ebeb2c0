"""Algorithm 1's update with a variance-reduced estimate: see learners.po_practical.

`loss_hsa` is ℓ̂, a running split of totals into steps; V and Q below are its values under the policy that played, with
p given, or estimated from counts: p̂_h(.|s, a) = (n_h(s, a, .) + PRIOR / S) / (n_h(s, a) + PRIOR).
`common` is (level, episodes): the first total per step, where ℓ̂ starts, and how many episodes have been learned from.
Dense dynamics come with an empty `next_tsan`, unknown ones with a non-empty `counts_hsas`.
"""

from math import exp, log, sqrt

from numba import njit

from aggbandit.kernels.episode import add_compensated, sample_dense, sample_sparse
from aggbandit.kernels.occupancy import expected_cost, expected_cost_sparse

MODEL_RATE = 0.4  # share of the total's surprise that goes into ℓ̂, spread over the episode's steps
CAUTION = 3.0  # squared residuals of the largest size that count before the first visit
NOISE = 1e-9  # residuals under this share of an episode's length are rounding, not signal
PRIOR = 1.0  # visits that the uniform guess of p is worth


@njit(cache=True, error_model="numpy")
def step_back_dense(probability_sas, value_s, future_sa):
    """E[V_{h+1}(s')] after every (s, a)."""
    S, A = future_sa.shape
    for s in range(S):
        for a in range(A):
            total = 0.0
            for s_next in range(S):
                total += probability_sas[s, a, s_next] * value_s[s_next]
            future_sa[s, a] = total


@njit(cache=True, error_model="numpy")
def step_back_sparse(next_san, probability_san, value_s, future_sa):
    """E[V_{h+1}(s')] after every (s, a), n successors a row."""
    S, A = future_sa.shape
    for s in range(S):
        for a in range(A):
            total = 0.0
            for i in range(next_san.shape[2]):
                total += probability_san[s, a, i] * value_s[next_san[s, a, i]]
            future_sa[s, a] = total


@njit(cache=True, error_model="numpy")
def step_back_estimated(counts_sas, visits_sa, value_s, future_sa):
    """E[V_{h+1}(s')] after every (s, a) as far as the visits tell."""
    S, A = future_sa.shape
    mean = 0.0
    for s in range(S):
        mean += value_s[s]
    mean /= S
    for s in range(S):
        for a in range(A):
            total = PRIOR * mean
            if visits_sa[s, a] > 0.0:
                for s_next in range(S):
                    total += counts_sas[s, a, s_next] * value_s[s_next]
            future_sa[s, a] = total / (visits_sa[s, a] + PRIOR)


@njit(cache=True, error_model="numpy", nogil=True)
def learn(
    next_tsan, probability_tsan, states_h, actions_h, total, played_hsa, step_scale, exploration, keep,
    policy_hsa, score_hsa, loss_hsa, second_hs, largest_hs, counts_hsas, visits_hsa, common,
    advantage_h, value_s, future_sa,
):  # fmt: skip
    """Learn from one episode: its trajectory, its total and the policy that played it.

    e     = L - Σ_h ℓ̂_h(s_h, a_h)                       what the split of totals does not explain
    x_h   = w (Q_h(s_h, a_h) - V_h(s_h) + e) / (p_h + γ)   p_h = π^played_h(a_h|s_h),  w = p_h / max(p_h, π_h(a_h|s_h))
    score += x_h,  second += π_h(a_h|s_h) x_h²,  π ∝ exp(-η score),  η = √(ln A / second)
    """
    H, S, A = policy_hsa.shape
    if common[1] == 0.0:
        common[0] = total / H
        loss_hsa[:] = common[0]
    common[1] += 1.0
    if counts_hsas.shape[0] > 0:
        for h in range(H - 1):
            counts_hsas[h, states_h[h], actions_h[h], states_h[h + 1]] += 1.0
            visits_hsa[h, states_h[h], actions_h[h]] += 1.0
    value_s[:] = 0.0
    future_sa[:] = 0.0
    for h in range(H - 1, -1, -1):
        if h + 1 < H:
            if counts_hsas.shape[0] > 0:
                step_back_estimated(counts_hsas[h], visits_hsa[h], value_s, future_sa)
            elif next_tsan.shape[0] > 0:
                t = 0 if next_tsan.shape[0] == 1 else h
                step_back_sparse(next_tsan[t], probability_tsan[t], value_s, future_sa)
            else:
                step_back_dense(probability_tsan[0 if probability_tsan.shape[0] == 1 else h], value_s, future_sa)
        for s in range(S):
            value = 0.0
            for a in range(A):
                future_sa[s, a] += loss_hsa[h, s, a]
                value += played_hsa[h, s, a] * future_sa[s, a]
            value_s[s] = value
        advantage_h[h] = future_sa[states_h[h], actions_h[h]] - value_s[states_h[h]]
    surprise = total
    for h in range(H):
        surprise -= loss_hsa[h, states_h[h], actions_h[h]]
    floor = NOISE * H
    for h in range(H):
        s, a = states_h[h], actions_h[h]
        loss_hsa[h, s, a] += MODEL_RATE * surprise / H
        played, now = played_hsa[h, s, a], policy_hsa[h, s, a]
        residual = advantage_h[h] + surprise
        estimate = (1.0 if played >= now else played / now) * residual / (played + exploration)
        second_hs[h, s] = keep * second_hs[h, s] + now * estimate * estimate
        largest_hs[h, s] = max(keep * largest_hs[h, s], abs(residual))
        for b in range(A):
            score_hsa[h, s, b] *= keep
        score_hsa[h, s, a] += estimate
        step = step_scale * sqrt(
            log(float(A)) / (second_hs[h, s] + CAUTION * largest_hs[h, s] * largest_hs[h, s] + floor * floor)
        )
        least = score_hsa[h, s, 0]
        for b in range(1, A):
            least = min(least, score_hsa[h, s, b])
        norm = 0.0
        for b in range(A):
            policy_hsa[h, s, b] = exp(-step * (score_hsa[h, s, b] - least))
            norm += policy_hsa[h, s, b]
        norm = 1.0 / norm
        for b in range(A):
            policy_hsa[h, s, b] *= norm


@njit(cache=True, error_model="numpy", nogil=True)
def play(
    next_tsan, probability_tsan, cumulative_tsan, initial_s, initial_cumulative_s, tables_mhsa, row_n, mean_mhsa,
    first, evaluate_every, replica, seed, step_scale, exploration, keep,
    policy_hsa, score_hsa, loss_hsa, second_hs, largest_hs, counts_hsas, visits_hsa, common,
    occupancy_hs, held, cost, pseudo_cost, states_h, actions_h, advantage_h, value_s, future_sa,
):  # fmt: skip
    """Play the block's episodes; `mean_mhsa` has one table or none; `held` is the latest expected losses."""
    H = policy_hsa.shape[0]
    dense = next_tsan.shape[0] == 0
    for i in range(row_n.shape[0]):
        loss_table_hsa = tables_mhsa[row_n[i]]
        if (first + i) % evaluate_every == 0:
            for m in range(1 + mean_mhsa.shape[0]):
                table_hsa = loss_table_hsa if m == 0 else mean_mhsa[0]
                if dense:
                    held[m] = expected_cost(probability_tsan, policy_hsa, table_hsa, initial_s, occupancy_hs)
                else:
                    held[m] = expected_cost_sparse(
                        next_tsan, probability_tsan, policy_hsa, table_hsa, initial_s, occupancy_hs
                    )
        add_compensated(held[0], cost)
        add_compensated(held[1], pseudo_cost)
        if dense:
            sample_dense(
                cumulative_tsan, initial_cumulative_s, policy_hsa, replica, first + i, seed, states_h, actions_h
            )
        else:
            sample_sparse(
                next_tsan, cumulative_tsan, initial_cumulative_s, policy_hsa, replica, first + i, seed, states_h,
                actions_h,
            )  # fmt: skip
        total = 0.0
        for h in range(H):
            total += loss_table_hsa[h, states_h[h], actions_h[h]]
        learn(
            next_tsan, probability_tsan, states_h, actions_h, total, policy_hsa, step_scale, exploration, keep,
            policy_hsa, score_hsa, loss_hsa, second_hs, largest_hs, counts_hsas, visits_hsa, common,
            advantage_h, value_s, future_sa,
        )  # fmt: skip
