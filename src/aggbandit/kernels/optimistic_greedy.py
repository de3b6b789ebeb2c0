"""Backward recursions of learners that are greedy on optimistic rewards: UCBVI and UCRL2.

Rewards are larger-is-better, V_{H+1} = 0.  Callers validate; every `out_*` is overwritten in full unless it says more.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def ucbvi(counts_hsas, visits_hsa, loss_hsa, bernstein, log_term, noise_log, bonus_scale, tie, q_hsa, out_policy_hsa):
    """The values of UCBVI, in place of the ones before, which they never exceed, and the policy greedy on them.

    The policy is uniform on the actions within `tie` of the best.

    Q_h(s, a) = min(Q_h(s, a) before, rewards still to come, r̄ + Σ_{s'} p̄(s') V_{h+1}(s') + b) where n > 0
    V_h(s)    = max_a Q_h(s, a)
    b         = c √(noise / (2 n)) plus, at all steps but the last, c times
      CH      7 H L / √n
      BF      √(8 L Var_p̄(V) / n) + 14 H L / (3 n) + √(8 Σ_{s'} p̄(s') min(100² H³ S² A L² / n_{h+1}(s'), H²) / n)
    """
    H, S, A = visits_hsa.shape
    v_s, next_s, next_visits_s = np.zeros(S), np.zeros(S), np.zeros(S)
    rare = 1e4 * H**3 * S**2 * A * log_term**2
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                n = visits_hsa[h, s, a]
                if n == 0.0:
                    continue
                guess = 1.0 - loss_hsa[h, s, a]
                bonus = np.sqrt(noise_log / (2.0 * n))
                if h + 1 < H:
                    mean, square, unsure = 0.0, 0.0, 0.0
                    for t in range(S):
                        p = counts_hsas[h, s, a, t] / n
                        if p > 0.0:
                            mean += p * next_s[t]
                            square += p * next_s[t] ** 2
                            unsure += p * min(rare / max(next_visits_s[t], 1.0), float(H * H))
                    guess += mean
                    if bernstein:
                        variance = max(square - mean * mean, 0.0)
                        bonus += np.sqrt(8.0 * log_term * variance / n) + 14.0 * H * log_term / (3.0 * n)
                        bonus += np.sqrt(8.0 * unsure / n)
                    else:
                        bonus += 7.0 * H * log_term / np.sqrt(n)
                q_hsa[h, s, a] = min(q_hsa[h, s, a], guess + bonus_scale * bonus)
            v_s[s] = -np.inf
            for a in range(A):
                v_s[s] = max(v_s[s], q_hsa[h, s, a])
            best = 0
            for a in range(A):
                best += q_hsa[h, s, a] >= v_s[s] - tie
            for a in range(A):
                out_policy_hsa[h, s, a] = 1.0 / best if q_hsa[h, s, a] >= v_s[s] - tie else 0.0
        for s in range(S):
            next_s[s] = v_s[s]
            next_visits_s[s] = 0.0
            for a in range(A):
                next_visits_s[s] += visits_hsa[h, s, a]


@njit(cache=True, nogil=True)
def extended_value_iteration(mean_hsas, radius_hsa, reward_hsa, out_q_hsa):
    """The values of the best policy in the best model of the L1 balls.

    Q_h(s, a) = r̃ + max {Σ_{s'} q(s') V_{h+1}(s') : ‖q − p̄‖₁ <= radius},   V_h(s) = max_a Q_h(s, a)

    The best q adds half the radius to the best next state and takes as much from the worst ones.
    """
    H, S, A = radius_hsa.shape
    v_s, next_s = np.zeros(S), np.zeros(S)
    for h in range(H - 1, -1, -1):
        order = np.argsort(next_s)  # worst first
        for s in range(S):
            for a in range(A):
                q = reward_hsa[h, s, a]
                if h + 1 < H:
                    best = order[S - 1]
                    added = min(0.5 * radius_hsa[h, s, a], 1.0 - mean_hsas[h, s, a, best])
                    q += (mean_hsas[h, s, a, best] + added) * next_s[best]
                    for i in range(S - 1):
                        t = order[i]
                        taken = min(added, mean_hsas[h, s, a, t])
                        added -= taken
                        q += (mean_hsas[h, s, a, t] - taken) * next_s[t]
                out_q_hsa[h, s, a] = q
            v_s[s] = -np.inf
            for a in range(A):
                v_s[s] = max(v_s[s], out_q_hsa[h, s, a])
        next_s[:] = v_s
