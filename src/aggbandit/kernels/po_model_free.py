"""Exponential weights on the total alone, one row of numbers for each (h, s) met: see learners.po_model_free.

The row of one (h, s) is 3 A + 4 doubles, so that a visit touches one stretch of memory:

    [0, A)     score    Σ x over its visits, x the importance-weighted residual of the action taken
    [A, 2A)    loss     ℓ̂_h(s, a), the running account of which part of the total each step bears
    [2A, 3A)   policy   π_h(.|s), to be played next
    3A + 0     baseline     what is left of the total at this (h, s) on average
    3A + 1     second       Σ π(a) x²
    3A + 2     largest      the largest |residual| so far
    3A + 3     visits

`common` is (level, episodes): the ℓ̂ that a new row starts from, and how many episodes have been learned from.

A row is found by its key h S + s in `index`, a hash table by linear probing that holds row + 1, or 0 where free.
"""

from math import exp, log, sqrt

import numpy as np
from numba import int64, njit, uint64

from aggbandit.kernels.episode import add_compensated, draw_action, first_above
from aggbandit.kernels.occupancy import expected_cost, expected_cost_sparse
from aggbandit.kernels.philox import BEFORE_FIRST_STEP, uniforms

BASELINE, SECOND, LARGEST, VISITS = 0, 1, 2, 3  # behind the three stretches of A
EXTRA = 4

MODEL_RATE = 0.4  # share of the total's surprise that goes into ℓ̂, spread over the episode's steps
BASELINE_RATE = 0.01  # the baseline averages all visits up to 1 / this, the latest after that
CAUTION = 3.0  # squared residuals of the largest size that count before the first visit
NOISE = 1e-9  # residuals under this share of an episode's length are rounding, not signal


@njit(cache=True, error_model="numpy", inline="always")
def slot_of(key, index):
    """Where `key`'s search begins: Fibonacci hashing, the upper bits of key × 2^64/φ."""
    return int64((uint64(key) * uint64(0x9E3779B97F4A7C15)) >> uint64(20)) & (index.shape[0] - 1)


@njit(cache=True, error_model="numpy")
def find(key, index, key_r):
    """The row of `key`, or -1."""
    slot = slot_of(key, index)
    while index[slot] != 0:
        row = index[slot] - 1
        if key_r[row] == key:
            return row
        slot = (slot + 1) & (index.shape[0] - 1)
    return -1


@njit(cache=True, error_model="numpy")
def insert(key, row, index):
    """Enter `row` under a key that is not there."""
    slot = slot_of(key, index)
    while index[slot] != 0:
        slot = (slot + 1) & (index.shape[0] - 1)
    index[slot] = row + 1


@njit(cache=True, error_model="numpy")
def rebuild(key_r, count, index):
    """Enter the first `count` rows into an empty index."""
    for row in range(count):
        insert(key_r[row], row, index)


@njit(cache=True, error_model="numpy")
def new_row(row_w, level):
    """Before its first visit: uniform, without opinion, ℓ̂ at the common level."""
    A = (row_w.shape[0] - EXTRA) // 3
    row_w[:] = 0.0
    for a in range(A):
        row_w[A + a] = level
        row_w[2 * A + a] = 1.0 / A


@njit(cache=True, error_model="numpy")
def step_of(row_w, A, steps, step_scale):
    """η of one row: √(ln A / accumulated second moment), in the units of the residuals, whatever their scale."""
    second, largest = row_w[3 * A + SECOND], row_w[3 * A + LARGEST]
    floor = NOISE * steps
    return step_scale * sqrt(log(float(A)) / (second + CAUTION * largest * largest + floor * floor))


@njit(cache=True, error_model="numpy")
def softmin(row_w, steps, step_scale, allowed_a, out_a):
    """π(a) ∝ exp(-η score(a)) among the allowed actions, 0 elsewhere."""
    A = out_a.shape[0]
    step = step_of(row_w, A, steps, step_scale)
    least = 0.0
    none = True
    for a in range(A):
        if allowed_a[a] and (none or row_w[a] < least):
            least = row_w[a]
            none = False
    norm = 0.0
    for a in range(A):
        out_a[a] = exp(-step * (row_w[a] - least)) if allowed_a[a] else 0.0
        norm += out_a[a]
    for a in range(A):
        out_a[a] /= norm


@njit(cache=True, error_model="numpy")
def learn(rows_rw, row_h, action_h, played_h, offered_ha, total, step_scale, exploration, keep, common):
    """Learn from one episode: its rows, actions, the probabilities with which they were played, and its total.

    g_h   = L - Σ_{h' < h} ℓ̂_{h'}(s, a)              what the past explains is taken out
    x_h   = w (g_h - baseline) / (p_h + γ)            p_h: the probability with which a_h was played
    w     = p_h / max(p_h, π_h(a_h|s_h))              1 unless the policy has moved since (late feedback)
    score += x_h,  second += π_h(a_h|s_h) x_h²,  π ∝ exp(-η score)

    `offered_ha` is empty, or says which actions were on offer at each step.  Where not all were, the mean of x under
    what was played is taken from all that were: a choice among some says nothing of the others, and none says nothing.
    """
    n = row_h.shape[0]
    A = (rows_rw.shape[1] - EXTRA) // 3
    if common[1] == 0.0:
        common[0] = total / n
        for h in range(n):
            for a in range(A):
                rows_rw[row_h[h], A + a] = common[0]
    common[1] += 1.0
    surprise = total
    for h in range(n):
        surprise -= rows_rw[row_h[h], A + action_h[h]]
    change = MODEL_RATE * surprise / n
    past = 0.0
    for h in range(n):
        row_w = rows_rw[row_h[h]]
        a = action_h[h]
        rest = total - past
        past += row_w[A + a]
        row_w[A + a] += change
        visits = row_w[3 * A + VISITS]
        if visits == 0.0:
            row_w[3 * A + BASELINE] = rest  # the first visit sets the mark and moves nothing
        residual = rest - row_w[3 * A + BASELINE]
        row_w[3 * A + BASELINE] += max(1.0 / (visits + 1.0), BASELINE_RATE) * residual
        row_w[3 * A + VISITS] = visits + 1.0
        now = row_w[2 * A + a]
        weight = 1.0 if played_h[h] >= now else played_h[h] / now
        estimate = weight * residual / (played_h[h] + exploration)
        for b in range(A):
            row_w[b] *= keep
        row_w[a] += estimate
        if offered_ha.shape[0] > 0 and not offered_ha[h].all():
            mean = estimate * played_h[h]
            for b in range(A):
                if offered_ha[h, b]:
                    row_w[b] -= mean
            estimate -= mean
        row_w[3 * A + SECOND] = keep * row_w[3 * A + SECOND] + now * estimate * estimate
        row_w[3 * A + LARGEST] = max(keep * row_w[3 * A + LARGEST], abs(residual))
        step = step_of(row_w, A, n, step_scale)
        least = row_w[0]
        for b in range(1, A):
            least = min(least, row_w[b])
        norm = 0.0
        for b in range(A):
            weight_b = exp(-step * (row_w[b] - least))
            row_w[2 * A + b] = weight_b
            norm += weight_b
        norm = 1.0 / norm
        for b in range(A):
            row_w[2 * A + b] *= norm


@njit(cache=True, error_model="numpy")
def row_of(key, index, key_r, rows_rw, count, common):
    """The row of `key`, made where missing; the caller has seen to the space."""
    row = find(key, index, key_r)
    if row < 0:
        row = count[0]
        count[0] += 1
        key_r[row] = key
        insert(key, row, index)
        new_row(rows_rw[row], common[0])
    return row


@njit(cache=True, error_model="numpy")
def update(
    states_h, actions_h, played_h, total, S, step_scale, exploration, keep,
    index, key_r, rows_rw, count, common, row_h,
):  # fmt: skip
    """Learn from one reported episode; `played_h` below 0 stands for the probability of today."""
    A = (rows_rw.shape[1] - EXTRA) // 3
    offered_ha = np.empty((0, 0), np.bool_)
    for h in range(states_h.shape[0]):
        row_h[h] = row_of(h * S + states_h[h], index, key_r, rows_rw, count, common)
        if played_h[h] < 0.0:
            played_h[h] = rows_rw[row_h[h], 2 * A + actions_h[h]]
    learn(rows_rw, row_h, actions_h, played_h, offered_ha, total, step_scale, exploration, keep, common)


@njit(cache=True, error_model="numpy", nogil=True)
def fill_policy(S, key_r, rows_rw, count, out_policy_hsa):
    """Write the policy of every row into a dense (H, S, A) policy that is uniform elsewhere."""
    A = out_policy_hsa.shape[2]
    for row in range(count):
        h, s = key_r[row] // S, key_r[row] % S
        for a in range(A):
            out_policy_hsa[h, s, a] = rows_rw[row, 2 * A + a]


@njit(cache=True, error_model="numpy", nogil=True)
def play(
    next_tsan, probability_tsan, cumulative_tsan, initial_s, initial_cumulative_s, tables_mhsa, row_n, mean_mhsa,
    first, start, evaluate_every, replica, seed, step_scale, exploration, keep, index, key_r, rows_rw, count, common,
    policy_hsa, occupancy_hs, held, cost, pseudo_cost, states_h, actions_h, row_h, played_h,
):  # fmt: skip
    """Play the block's episodes from number `start` on; returns the number of the first one not played.

    It stops short where an episode might need more rows than are free.  Dense dynamics come with an empty
    `next_tsan`.  `mean_mhsa` has one table or none; `cost` is (sum, rest); `held` the latest expected losses;
    `policy_hsa` is uniform wherever no row is.
    """
    H, S, A = tables_mhsa.shape[1:]
    offered_ha = np.empty((0, 0), np.bool_)
    dense = next_tsan.shape[0] == 0
    stationary = cumulative_tsan.shape[0] == 1
    for i in range(start, row_n.shape[0]):
        if count[0] + H > key_r.shape[0]:
            return i
        loss_hsa = tables_mhsa[row_n[i]]
        if (first + i) % evaluate_every == 0:
            fill_policy(S, key_r, rows_rw, count[0], policy_hsa)
            for m in range(1 + mean_mhsa.shape[0]):
                table_hsa = loss_hsa if m == 0 else mean_mhsa[0]
                if dense:
                    held[m] = expected_cost(probability_tsan, policy_hsa, table_hsa, initial_s, occupancy_hs)
                else:
                    held[m] = expected_cost_sparse(
                        next_tsan, probability_tsan, policy_hsa, table_hsa, initial_s, occupancy_hs
                    )
        add_compensated(held[0], cost)
        add_compensated(held[1], pseudo_cost)
        total = 0.0
        _, v = uniforms(replica, first + i, BEFORE_FIRST_STEP, 0, seed)
        s = first_above(v, initial_cumulative_s)
        for h in range(H):
            u, v = uniforms(replica, first + i, h, 0, seed)
            row = row_of(h * S + s, index, key_r, rows_rw, count, common)
            a = draw_action(u, rows_rw[row, 2 * A : 3 * A])
            states_h[h], actions_h[h], row_h[h] = s, a, row
            played_h[h] = rows_rw[row, 2 * A + a]
            total += loss_hsa[h, s, a]
            if h + 1 < H:
                t = 0 if stationary else h
                s_next = first_above(v, cumulative_tsan[t, s, a])
                s = s_next if dense else next_tsan[t, s, a, s_next]
        learn(rows_rw, row_h, actions_h, played_h, offered_ha, total, step_scale, exploration, keep, common)
    return row_n.shape[0]
