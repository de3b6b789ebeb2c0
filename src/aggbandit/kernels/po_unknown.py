"""Algorithm 2, one replica: the update after an episode, and n episodes in one go.

Boxes are kept as lower ends, slacks (upper - lower) and what the lower ends leave of the mass 1.
"""

import math

import numpy as np
from numba import njit

from aggbandit.kernels.episode import draw_action, first_above
from aggbandit.kernels.philox import BEFORE_FIRST_STEP, philox, unit

FLAGS = {"contract", "nsz"}


@njit(cache=True, fastmath=FLAGS, error_model="numpy")
def rebuild_box(counts_t, log_term, radius_scale, out_lower_t, out_slack_t):
    """The Bernstein box of one (h, s, a); returns the mass that the lower ends leave.  [eq:LM25-confidence-set]"""
    S = counts_t.shape[0]
    n = 0.0
    for t in range(S):
        n += counts_t[t]
    held = 0.0
    for t in range(S):
        lower, upper = 0.0, 1.0
        if n > 0.0:  # nothing seen: the whole simplex, whatever the scale
            mean = counts_t[t] / n
            radius = radius_scale * (4.0 * math.sqrt(mean * log_term / n) + 10.0 * log_term / n)
            lower = max(0.0, mean - radius)
            upper = min(1.0, mean + radius)
        out_lower_t[t] = lower
        out_slack_t[t] = upper - lower
        held += lower
    return max(0.0, 1.0 - held)


@njit(cache=True, fastmath=FLAGS, error_model="numpy")
def order_descending(f, sign, order):
    """Sort `order`, a permutation that may already be nearly right, by sign · f, greatest first."""
    for i in range(1, order.shape[0]):
        v = order[i]
        fv = sign * f[v]
        j = i
        while j > 0 and sign * f[order[j - 1]] < fv:
            order[j] = order[j - 1]
            j -= 1
        order[j] = v


@njit(cache=True, fastmath=FLAGS, error_model="numpy")
def extreme_mean(lower_t, slack_t, rest, f, order):
    """q · f of the q in the box that takes what it may in the order given."""
    mean = 0.0
    for t in range(f.shape[0]):
        mean += lower_t[t] * f[t]
    for i in range(f.shape[0]):
        t = order[i]
        if slack_t[t] >= rest:
            mean += rest * f[t]
            break
        mean += slack_t[t] * f[t]
        rest -= slack_t[t]
    return mean


@njit(cache=True, fastmath=FLAGS, error_model="numpy")
def occupancy_bounds(lower_hsas, slack_hsas, rest_hsa, policy_hsa, initial_s, f, g, order, out_least_hs, out_most_hs):
    """The least and the greatest probability of every (h, s) over the boxes.  [eq:LM25-mu-bar]"""
    H, S, A = policy_hsa.shape
    for target_h in range(H):
        for target_s in range(S):
            for sign in (1.0, -1.0):
                for s in range(S):
                    f[s] = 0.0
                    order[s] = s
                f[target_s] = 1.0
                for h in range(target_h - 1, -1, -1):
                    order_descending(f, sign, order)
                    for s in range(S):
                        g[s] = 0.0
                        for a in range(A):
                            g[s] += policy_hsa[h, s, a] * extreme_mean(
                                lower_hsas[h, s, a], slack_hsas[h, s, a], rest_hsa[h, s, a], f, order
                            )
                    for s in range(S):
                        f[s] = g[s]
                value = 0.0
                for s in range(S):
                    value += initial_s[s] * f[s]
                if sign > 0.0:
                    out_most_hs[target_h, target_s] = value
                else:
                    out_least_hs[target_h, target_s] = value


@njit(cache=True, fastmath=FLAGS, error_model="numpy", nogil=True)
def update(state, initial_s, states_h, actions_h, total, step, exploration, bonus_scale, log_term, radius_scale):
    """Steps 3 to 6 of Algorithm 2 after an episode: bounds, estimator, bonus, policy, then counts and boxes.

    [eq:LM25-alg-2], with μ̄(s, a) = μ̄(s) π(a|s), μ̲ likewise:
    b(s)     = Σ_a π(a|s) H (3 γ + μ̄(s, a) - μ̲(s, a)) / (μ̄(s, a) + γ)                      [eq:LM25-b-unknown]
    B̂_h(s, a) = b_h(s) + max_{p'} Σ_{s'} p'(s') Σ_{a'} π_{h+1}(a'|s') B̂_{h+1}(s', a')       [eq:LM25-B-hat]
    Û(s, a)  = L / (μ̄(s, a) + γ) at the places visited, 0 elsewhere                          [eq:LM25-U-hat-unknown]
    """
    counts_hsas, lower_hsas, slack_hsas, rest_hsa, log_weights_hsa, policy_hsa, bonus_hsa = state
    H, S, A = policy_hsa.shape
    f = np.empty(S)
    g = np.empty(S)
    order = np.empty(S, np.int64)
    least_hs = np.empty((H, S))
    most_hs = np.empty((H, S))
    occupancy_bounds(lower_hsas, slack_hsas, rest_hsa, policy_hsa, initial_s, f, g, order, least_hs, most_hs)
    for s in range(S):
        f[s] = 0.0
        order[s] = s
    for h in range(H - 1, -1, -1):
        order_descending(f, 1.0, order)
        for s in range(S):
            most, least = most_hs[h, s], least_hs[h, s]
            local = 0.0
            for a in range(A):
                p = policy_hsa[h, s, a]
                local += H * p * (3.0 * exploration + (most - least) * p) / (most * p + exploration)
            local *= bonus_scale
            g[s] = 0.0
            for a in range(A):
                bonus = local
                if h + 1 < H:
                    bonus += extreme_mean(lower_hsas[h, s, a], slack_hsas[h, s, a], rest_hsa[h, s, a], f, order)
                bonus_hsa[h, s, a] = bonus
                g[s] += policy_hsa[h, s, a] * bonus
                log_weights_hsa[h, s, a] += step * bonus
            if s == states_h[h]:
                a = actions_h[h]
                log_weights_hsa[h, s, a] -= step * total / (most * policy_hsa[h, s, a] + exploration)
            greatest = log_weights_hsa[h, s, 0]
            for a in range(1, A):
                greatest = max(greatest, log_weights_hsa[h, s, a])
            mass = 0.0
            for a in range(A):
                log_weights_hsa[h, s, a] -= greatest
                policy_hsa[h, s, a] = math.exp(log_weights_hsa[h, s, a])
                mass += policy_hsa[h, s, a]
            for a in range(A):
                policy_hsa[h, s, a] /= mass
        for s in range(S):
            f[s] = g[s]
    for h in range(H - 1):
        s, a = states_h[h], actions_h[h]
        counts_hsas[h, s, a, states_h[h + 1]] += 1.0
        rest_hsa[h, s, a] = rebuild_box(
            counts_hsas[h, s, a], log_term, radius_scale, lower_hsas[h, s, a], slack_hsas[h, s, a]
        )


@njit(cache=True, fastmath=FLAGS, error_model="numpy", nogil=True)
def play(
    world,
    initial_s,
    seed,
    replica,
    first,
    tables_mhsa,
    row_n,
    mean_hsa,
    state,
    step,
    exploration,
    bonus_scale,
    log_term,
    radius_scale,
    sums,
):
    """Sample, evaluate and learn for n episodes; `sums` are compensated: cost, rest, pseudo-cost, rest."""
    next_tsan, probability_tsan, cumulative_tsan, initial_cumulative_s = world
    policy_hsa = state[5]
    H, S, _ = policy_hsa.shape
    dense = next_tsan.shape[0] == 0
    stationary = probability_tsan.shape[0] == 1
    states_h = np.empty(H, np.int64)
    actions_h = np.empty(H, np.int64)
    reach_s = np.empty(S)
    ahead_s = np.empty(S)
    for i in range(row_n.shape[0]):
        loss_hsa = tables_mhsa[row_n[i]]
        add(sums[0], expected(world, initial_s, policy_hsa, loss_hsa, reach_s, ahead_s))
        if mean_hsa.shape[0] > 0:
            add(sums[1], expected(world, initial_s, policy_hsa, mean_hsa, reach_s, ahead_s))
        x0, x1, x2, x3 = philox(replica, first + i, BEFORE_FIRST_STEP, 0, seed)
        s = first_above(unit(x2, x3), initial_cumulative_s)
        total = 0.0
        for h in range(H):
            x0, x1, x2, x3 = philox(replica, first + i, h, 0, seed)
            a = draw_action(unit(x0, x1), policy_hsa[h, s])
            states_h[h] = s
            actions_h[h] = a
            total += loss_hsa[h, s, a]
            if h + 1 < H:
                t = 0 if stationary else h
                j = first_above(unit(x2, x3), cumulative_tsan[t, s, a])
                s = j if dense else next_tsan[t, s, a, j]
        update(state, initial_s, states_h, actions_h, total, step, exploration, bonus_scale, log_term, radius_scale)


@njit(cache=True, fastmath=FLAGS, error_model="numpy")
def expected(world, initial_s, policy_hsa, loss_hsa, reach_s, ahead_s):
    """The policy's expected loss under the true dynamics."""
    next_tsan, probability_tsan, _, _ = world
    H, S, A = policy_hsa.shape
    n = probability_tsan.shape[3]
    cost = 0.0
    for s in range(S):
        reach_s[s] = initial_s[s]
    for h in range(H):
        t = 0 if probability_tsan.shape[0] == 1 else h
        for s in range(S):
            ahead_s[s] = 0.0
        for s in range(S):
            for a in range(A):
                weight = reach_s[s] * policy_hsa[h, s, a]
                cost += weight * loss_hsa[h, s, a]
                if h + 1 < H:
                    if next_tsan.shape[0] == 0:
                        for j in range(n):
                            ahead_s[j] += weight * probability_tsan[t, s, a, j]
                    else:
                        for j in range(n):
                            ahead_s[next_tsan[t, s, a, j]] += weight * probability_tsan[t, s, a, j]
        for s in range(S):
            reach_s[s] = ahead_s[s]
    return cost


@njit(cache=True)
def add(sum_and_rest, x):
    """Neumaier's sum.  No flag may let the compiler reassociate this."""
    s = sum_and_rest[0]
    t = s + x
    if abs(s) >= abs(x):
        sum_and_rest[1] += (s - t) + x
    else:
        sum_and_rest[1] += (x - t) + s
    sum_and_rest[0] = t
