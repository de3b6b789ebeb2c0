"""Algorithm 2, one replica: the update after an episode, and n episodes in one go.

All least and greatest occupancies come out of one backward sweep whose columns are the targets (h*, s*) of both signs.
A column holds f_h(s), the extreme probability of reaching its target from s at step h, negated where it is the least,
so that a step back is always

    f_h(s) = Σ_a π_h(a|s) max_{q ∈ P_h(s,a)} q · f_{h+1}

With the states sorted, f_1 >= f_2 >= ..., the maximiser starts from the lower ends and fills the rest that they leave,
in that order, each state up to its slack (upper end less lower).  Summed by parts this reads

    max q · f = lower · f + rest f_1 - Σ_i (f_i - f_{i+1}) max(rest - slack_1 - ... - slack_i, 0)

a sum without branches whose terms vanish once the rest is spent.  A box's `depth` is how many states spend it in any
order: 1 where the box is the whole simplex, about S / 2 where it is narrow.  Terms from `depth` on are left out.
Boxes are scaled by π first, so that the products with the lower ends are summed over the actions once a step instead
of once a column.

Eight columns are sorted side by side (a lane a column), then eight rows (s, a) are filled side by side for each of the
eight columns (a lane a row), and an 8 x 8 transpose leads back.  Nothing is recomputed that cannot have changed: only
visited boxes are rebuilt; a step whose boxes are all the whole simplex makes every column constant, so it is answered
there and then; below such a step the bonus does not depend on the action and only visited states change their policy.

Rows are a-major, r = a S + s; S8 and R8 are S and A S rounded up to eights.  All tables lie in four flat arrays at the
offsets of `Places`: `tables` and `numbers` are the learner's state, `scratch` and `indices` are overwritten.  Numba
counts references with a bus lock for each array taken out of a tuple, which costs more than the arithmetic here; four
arrays as plain arguments cost nothing.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from aggbandit.kernels.eights import (
    exp_bounded,
    fma,
    greater,
    greatest_of,
    integer_from,
    lesser,
    load,
    merge,
    merge_exchange,
    sort,
    spread,
    spread_from,
    store,
    store_tags,
    store_turned,
    sum_of,
    tag,
)
from aggbandit.kernels.episode import first_above
from aggbandit.kernels.philox import BEFORE_FIRST_STEP, philox, unit
from aggbandit.kernels.simd import exp_bounded as exp_bounded_one

FLAGS = {"contract", "nsz"}
ROUNDING = 1e-15  # a rest as small as this counts as spent
FLOOR = -700.0  # a log probability below it is played as e^-700 = 1e-304, and kept as it is


class Places(NamedTuple):
    """The sizes, and where each table starts in its flat array."""

    H: int
    S: int
    A: int
    S8: int
    R8: int
    capacity: int  # of the columns
    mask: int  # the low bits that hold a state
    merges: int  # comparators between sorted eights
    # tables
    lower: int  # (H, S, R8): lower ends, next state before row
    slack: int  # (H, S, R8): upper ends less lower
    rest: int  # (H, R8): 1 less the sum of the lower ends
    log_weights: int  # (H, A, S8): -η Σ_k (Û_k - B_k), the greatest of each (h, s) moved to 0
    policy: int  # (H, A, S8)
    least: int  # (H, S8): of the last update, as what follows; before `most`, on which `answer` relies
    most: int  # (H, S8)
    value: int  # (H, S8): Σ_a π B̂
    # numbers
    depth: int  # (H, R8)
    depth_b: int  # (H, R8 / 8): the greatest of eight rows
    boxes: int  # (H,): how many rows are not the whole simplex
    raised: int  # (H,): how many rows have a lower end above 0
    # scratch
    scaled_slack: int  # (S8, R8), of the step at hand, as what follows
    scaled_lower: int  # (S8, R8)
    scaled_rest: int  # (R8,)
    all_slack: int  # (R8,): the sum over next states
    weight: int  # (R8,): the policy, or the occupancy, by row
    low_ts: int  # (S8, S8): Σ_a π lower
    low_st: int
    rest_s: int  # (S8,): Σ_a π rest
    columns: int  # (S8, capacity)
    here: int  # (S8, 8): eight columns before ...
    there: int  # (S8, 8): ... and after a step back
    key: int  # (S8, 8): sorted, then their gaps
    turned: int  # (R8, 8)
    reach: int  # (S8,): the occupancy of a step
    loss: int  # (H, A, S8): the episode's table, and the mean one
    mean: int
    # indices
    turns: int  # (R8 / 8,): eight times the terms of eight rows, their greatest depth less 1
    target: int  # (capacity,): the entry of `least` or `most` that a column answers
    tags: int  # (S8, 8): offsets of the sorted states' slacks
    pairs: int  # (merges, 2)


class Sizes(NamedTuple):
    """How long the four flat arrays are."""

    tables: int
    numbers: int
    scratch: int
    indices: int


def eights(n):
    """n rounded up to a multiple of eight."""
    return -(-n // 8) * 8


@lru_cache(maxsize=64)
def layout(H, S, A):
    """Where everything lies, how much room it takes, and the comparators to be written at `pairs`."""
    S8, R8 = eights(S), eights(A * S)
    capacity = eights(2 * S * (H - 1)) + 16
    capacity += 8 * (capacity // 8 % 2 == 0)  # an odd number of cache lines: rows do not fall on the same ones
    merges = merge_exchange(S8 // 8)
    tables = {
        "lower": H * S * R8,
        "slack": H * S * R8,
        "rest": H * R8,
        "log_weights": H * A * S8,
        "policy": H * A * S8,
        "least": H * S8,
        "most": H * S8,
        "value": H * S8,
    }
    numbers = {"depth": H * R8, "depth_b": H * R8 // 8, "boxes": H, "raised": H}
    scratch = {
        "scaled_slack": S8 * R8,
        "scaled_lower": S8 * R8 + 8,  # vectors read from, or written to, the middle of an eight end beyond the last
        "scaled_rest": R8 + 8,
        "all_slack": R8,
        "weight": R8 + 8,
        "low_ts": S8 * S8,
        "low_st": S8 * S8,
        "rest_s": S8,
        "columns": S8 * capacity,
        "here": 8 * S8,
        "there": 8 * S8,
        "key": 8 * S8,
        "turned": 8 * R8,
        "reach": S8,
        "loss": H * A * S8,
        "mean": H * A * S8,
    }
    indices = {"turns": R8 // 8, "target": capacity, "tags": 8 * S8, "pairs": 2 * len(merges)}
    offsets, sizes = {}, []
    for lengths in (tables, numbers, scratch, indices):
        size = 0
        for name, length in lengths.items():
            offsets[name] = size
            size += eights(length)
        sizes.append(size + 8)
    mask = (1 << max(1, (S - 1).bit_length())) - 1
    places = Places(H=H, S=S, A=A, S8=S8, R8=R8, capacity=capacity, mask=mask, merges=len(merges), **offsets)
    return places, Sizes(*sizes), np.array(merges, np.int64).reshape(-1)


def aligned(length, dtype):
    """Zeros that start at a cache line: vectors of eight doubles then never straddle two."""
    raw = np.zeros(8 * length + 64, np.uint8)
    first = -raw.ctypes.data % 64
    return raw[first : first + 8 * length].view(dtype)


def new_state(H, S, A):
    """`tables` and `numbers` before the first episode: every box the whole simplex, the policy uniform."""
    p, sizes, _ = layout(H, S, A)
    tables, numbers = aligned(sizes.tables, np.float64), aligned(sizes.numbers, np.int64)
    table(tables, p.slack, (H, S, p.R8))[:, :, : A * S] = 1.0
    table(tables, p.rest, (H, p.R8))[:, : A * S] = 1.0
    table(tables, p.policy, (H, A, p.S8))[:, :, :S] = 1.0 / A
    table(numbers, p.depth, (H, p.R8))[...] = 1
    table(numbers, p.depth_b, (H, p.R8 // 8))[...] = 1
    return tables, numbers


def new_scratch(H, S, A):
    """`scratch` and `indices`."""
    p, sizes, pairs = layout(H, S, A)
    scratch, indices = aligned(sizes.scratch, np.float64), aligned(sizes.indices, np.int64)
    table(indices, p.pairs, pairs.shape)[...] = pairs
    return scratch, indices


def table(flat, first, shape):
    """The table that starts at `first`, a view."""
    return flat[first : first + math.prod(shape)].reshape(shape)


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def rebuild_box(counts_t, log_term, radius_scale, out_lower_t, out_slack_t):
    """The Bernstein box of one (h, s, a); returns the rest that the lower ends leave.  [eq:LM25-confidence-set]

    lower = max(0, p̄ - c ε),  lower + slack = min(1, p̄ + c ε),   ε = 4 √(p̄ ln(10HSAK/δ) / n) + 10 ln(10HSAK/δ) / n
    """
    S = counts_t.shape[0]
    n = 0.0
    for t in range(S):
        n += counts_t[t]
    held = 0.0
    for t in range(S):
        lower, upper = 0.0, 1.0
        if n > 0.0:  # nothing seen: the whole simplex, whatever the scale
            mean, ratio = counts_t[t] / n, log_term / n
            radius = radius_scale * (4.0 * math.sqrt(mean * ratio) + 10.0 * ratio)
            lower = max(0.0, mean - radius)
            upper = min(1.0, mean + radius)
        out_lower_t[t] = lower
        out_slack_t[t] = upper - lower
        held += lower
    return max(0.0, 1.0 - held)


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def place_box(lower_t, slack_t, rest, tables, numbers, p, h, r):
    """Put a box where the sweep looks for it, with its depth; sorts `slack_t` on the way."""
    S = p.S
    first = h * S * p.R8 + r
    was_box, was_raised, is_box, is_raised = 0, 0, 0, 0
    for t in range(S):
        lower, slack = lower_t[t], slack_t[t]
        i, j = p.lower + first + t * p.R8, p.slack + first + t * p.R8
        was_raised |= int(tables[i] > 0.0)
        was_box |= int(tables[j] < 1.0)
        is_raised |= int(lower > 0.0)
        is_box |= int(slack < 1.0)
        tables[i] = lower
        tables[j] = slack
        place = t
        while place > 0 and slack_t[place - 1] > slack:
            slack_t[place] = slack_t[place - 1]
            place -= 1
        slack_t[place] = slack
    depth = 1
    filled = slack_t[0]  # the least slacks first: no order spends the rest later
    while depth < S and filled < rest - ROUNDING:
        filled += slack_t[depth]
        depth += 1
    tables[p.rest + h * p.R8 + r] = rest
    numbers[p.depth + h * p.R8 + r] = depth
    block = h * p.R8 + r // 8 * 8
    for i in range(p.depth + block, p.depth + block + 8):
        depth = max(depth, numbers[i])
    numbers[p.depth_b + block // 8] = depth
    numbers[p.boxes + h] += is_box - was_box
    numbers[p.raised + h] += is_raised - was_raised


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def scale_first(tables, numbers, scratch, indices, p, live):
    """π times the boxes of step 0, of the states it may start in; returns the greatest depth."""
    S, A, R8 = p.S, p.A, p.R8
    n = live.shape[0]
    rows = (A * n + 7) // 8 * 8
    for t in range(S):
        store(scratch, p.scaled_slack + t * rows + rows - 8, spread(0.0))
        store(scratch, p.scaled_lower + t * rows + rows - 8, spread(0.0))
    store(scratch, p.scaled_rest + rows - 8, spread(0.0))
    for b in range(rows // 8):
        indices[p.turns + b] = 0
    greatest = 1
    for a in range(A):
        for j in range(n):
            i, r = a * n + j, a * S + live[j]
            probability = tables[p.policy + a * p.S8 + live[j]]
            scratch[p.scaled_rest + i] = probability * tables[p.rest + r]
            for t in range(S):
                scratch[p.scaled_slack + t * rows + i] = probability * tables[p.slack + t * R8 + r]
                scratch[p.scaled_lower + t * rows + i] = probability * tables[p.lower + t * R8 + r]
            depth = numbers[p.depth + r]
            indices[p.turns + i // 8] = max(indices[p.turns + i // 8], 8 * (depth - 1))
            greatest = max(greatest, depth)
    return greatest


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def scale(tables, numbers, scratch, indices, p, h, raised):
    """π times the boxes of a later step; returns the greatest depth."""
    S, A, R8 = p.S, p.A, p.R8
    store(scratch, p.weight + R8 - 8, spread(0.0))
    for a in range(A):
        for s in range(0, S, 8):
            store(scratch, p.weight + a * S + s, load(tables, p.policy + (h * A + a) * p.S8 + s))
    greatest = 1
    for b in range(0, R8, 8):
        probability = load(scratch, p.weight + b)
        store(scratch, p.scaled_rest + b, probability * load(tables, p.rest + h * R8 + b))
        for t in range(S):
            o = t * R8 + b
            store(scratch, p.scaled_slack + o, probability * load(tables, p.slack + h * S * R8 + o))
        if raised:
            for t in range(S):
                o = t * R8 + b
                store(scratch, p.scaled_lower + o, probability * load(tables, p.lower + h * S * R8 + o))
        depth = numbers[p.depth_b + (h * R8 + b) // 8]
        indices[p.turns + b // 8] = 8 * (depth - 1)
        greatest = max(greatest, depth)
    return greatest


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def fold(scratch, p, n, rows, raised):
    """Sums over the actions of what does not depend on the column, and each row's slack over all next states."""
    S, A, S8 = p.S, p.A, p.S8
    for b in range(0, rows, 8):
        total = spread(0.0)
        for t in range(S):
            total = total + load(scratch, p.scaled_slack + t * rows + b)
        store(scratch, p.all_slack + b, total)
    for s in range(0, n, 8):
        total = spread(0.0)
        for a in range(A):
            total = total + load(scratch, p.scaled_rest + a * n + s)
        store(scratch, p.rest_s + s, total)
    if not raised:
        return
    for t in range(S):
        for s in range(0, n, 8):
            total = spread(0.0)
            for a in range(A):
                total = total + load(scratch, p.scaled_lower + t * rows + a * n + s)
            store(scratch, p.low_ts + t * S8 + s, total)
    for t in range(0, S, 8):
        for s in range(0, n, 8):
            o = p.low_ts + t * S8 + s
            store_turned(
                scratch, p.low_st + s * S8 + t, S8,
                load(scratch, o), load(scratch, o + S8), load(scratch, o + 2 * S8), load(scratch, o + 3 * S8),
                load(scratch, o + 4 * S8), load(scratch, o + 5 * S8),
                load(scratch, o + 6 * S8), load(scratch, o + 7 * S8),
            )  # fmt: skip


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def sort_keys(scratch, indices, p, depth, stride):
    """Sort the eight tagged columns at `key`, greatest first, and return the greatest of each.

    `tags` then holds the first states, times `stride`, and `key` the gaps to the next: depth - 1 of them.
    """
    S8, key, tags = p.S8, p.key, p.tags
    for t in range(p.S, S8):
        store(scratch, key + 8 * t, spread(-1.0e300))
    for t in range(0, S8, 8):
        sort(scratch, key + 8 * t)
    for i in range(p.pairs, p.pairs + 2 * p.merges, 2):
        merge(scratch, key + 64 * integer_from(indices, i), key + 64 * integer_from(indices, i + 1))
    top = load(scratch, key)
    x = top
    for i in range(0, 8 * (depth - 1), 8):
        store_tags(indices, tags + i, x, p.mask, stride)
        y = load(scratch, key + i + 8)
        store(scratch, key + i, x - y)
        x = y
    return top


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def step_back(scratch, indices, p, first, n, rows, depth, raised):
    """Eight columns, from `first` on, from step h + 1 to step h."""
    S, A = p.S, p.A
    columns, here, there, key, tags, turned = p.columns + first, p.here, p.there, p.key, p.tags, p.turned
    top = load(scratch, columns)
    if depth > 1:
        for t in range(S):
            x = load(scratch, columns + t * p.capacity)
            store(scratch, here + 8 * t, x)
            store(scratch, key + 8 * t, tag(x, p.mask, t))
        top = sort_keys(scratch, indices, p, depth, rows)
        for b in range(0, rows, 8):
            slack = p.scaled_slack + b
            d0 = load(scratch, p.scaled_rest + b)
            d1, d2, d3, d4, d5, d6, d7 = d0, d0, d0, d0, d0, d0, d0
            x0 = spread(0.0)
            x1, x2, x3, x4, x5, x6, x7 = x0, x0, x0, x0, x0, x0, x0
            for i in range(0, integer_from(indices, p.turns + b // 8), 8):
                j, k = tags + i, key + i
                d0 = d0 - load(scratch, slack + integer_from(indices, j))
                d1 = d1 - load(scratch, slack + integer_from(indices, j + 1))
                d2 = d2 - load(scratch, slack + integer_from(indices, j + 2))
                d3 = d3 - load(scratch, slack + integer_from(indices, j + 3))
                d4 = d4 - load(scratch, slack + integer_from(indices, j + 4))
                d5 = d5 - load(scratch, slack + integer_from(indices, j + 5))
                d6 = d6 - load(scratch, slack + integer_from(indices, j + 6))
                d7 = d7 - load(scratch, slack + integer_from(indices, j + 7))
                x0 = fma(spread_from(scratch, k), greater(d0, spread(0.0)), x0)
                x1 = fma(spread_from(scratch, k + 1), greater(d1, spread(0.0)), x1)
                x2 = fma(spread_from(scratch, k + 2), greater(d2, spread(0.0)), x2)
                x3 = fma(spread_from(scratch, k + 3), greater(d3, spread(0.0)), x3)
                x4 = fma(spread_from(scratch, k + 4), greater(d4, spread(0.0)), x4)
                x5 = fma(spread_from(scratch, k + 5), greater(d5, spread(0.0)), x5)
                x6 = fma(spread_from(scratch, k + 6), greater(d6, spread(0.0)), x6)
                x7 = fma(spread_from(scratch, k + 7), greater(d7, spread(0.0)), x7)
            store_turned(scratch, turned + 8 * b, 8, x0, x1, x2, x3, x4, x5, x6, x7)
        for s in range(n):
            x = top * spread_from(scratch, p.rest_s + s)
            for a in range(A):
                x = x - load(scratch, turned + 8 * (a * n + s))
            store(scratch, there + 8 * s, x)
    else:
        for t in range(S):
            x = load(scratch, columns + t * p.capacity)
            store(scratch, here + 8 * t, x)
            top = greater(top, x)
        for s in range(n):
            store(scratch, there + 8 * s, top * spread_from(scratch, p.rest_s + s))
    if raised:
        add_product(scratch, p, n)
    for s in range(n):
        store(scratch, columns + s * p.capacity, load(scratch, there + 8 * s))


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def add_product(scratch, p, n):
    """there(s) += Σ_t low(s, t) here(t), four states at a time in registers."""
    s = 0
    while s + 4 <= n:
        o = p.there + 8 * s
        x0 = load(scratch, o)
        x1 = load(scratch, o + 8)
        x2 = load(scratch, o + 16)
        x3 = load(scratch, o + 24)
        for t in range(p.S):
            f = load(scratch, p.here + 8 * t)
            i = p.low_ts + t * p.S8 + s
            x0 = fma(spread_from(scratch, i), f, x0)
            x1 = fma(spread_from(scratch, i + 1), f, x1)
            x2 = fma(spread_from(scratch, i + 2), f, x2)
            x3 = fma(spread_from(scratch, i + 3), f, x3)
        store(scratch, o, x0)
        store(scratch, o + 8, x1)
        store(scratch, o + 16, x2)
        store(scratch, o + 24, x3)
        s += 4
    while s < n:
        x0 = load(scratch, p.there + 8 * s)
        for t in range(p.S):
            x0 = fma(spread_from(scratch, p.low_ts + t * p.S8 + s), load(scratch, p.here + 8 * t), x0)
        store(scratch, p.there + 8 * s, x0)
        s += 1


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def begin(tables, scratch, indices, p, count, h, n, rows, raised):
    """Append the columns at step h of the targets of step h + 1; returns how many there are now.

    greatest   Σ_a π min(upper_t, 1 - the other lower ends)  =  low + rest - Σ_a max(rest - slack_t, 0)
    least      Σ_a π max(lower_t, 1 - the other upper ends)  =  low + Σ_a max(rest - the other slacks, 0)

    Columns of the least come eight targets at a time, and not at all where all eight are zero from everywhere: zero
    they stay.
    """
    S, A = p.S, p.A
    zero = spread(0.0)
    for t in range(0, S, 8):
        width = min(8, S - t)
        for least in range(2):
            first = (p.least if least == 1 else p.most) + (h + 1) * p.S8 + t
            for b in range(0, rows, 8):
                o = p.scaled_slack + t * rows + b
                rest = load(scratch, p.scaled_rest + b)
                sign = spread(-1.0)
                if least == 1:
                    rest = rest - load(scratch, p.all_slack + b)
                    sign = spread(1.0)
                store_turned(
                    scratch, p.turned + 8 * b, 8,
                    greater(fma(sign, load(scratch, o), rest), zero),
                    greater(fma(sign, load(scratch, o + rows), rest), zero),
                    greater(fma(sign, load(scratch, o + 2 * rows), rest), zero),
                    greater(fma(sign, load(scratch, o + 3 * rows), rest), zero),
                    greater(fma(sign, load(scratch, o + 4 * rows), rest), zero),
                    greater(fma(sign, load(scratch, o + 5 * rows), rest), zero),
                    greater(fma(sign, load(scratch, o + 6 * rows), rest), zero),
                    greater(fma(sign, load(scratch, o + 7 * rows), rest), zero),
                )  # fmt: skip
            lowest = zero
            for s in range(n):
                x = zero
                for a in range(A):
                    x = x + load(scratch, p.turned + 8 * (a * n + s))
                if least == 0:
                    x = spread_from(scratch, p.rest_s + s) - x
                if raised:
                    x = x + load(scratch, p.low_st + s * p.S8 + t)
                if least == 1:
                    x = zero - x
                    lowest = lesser(lowest, x)
                store(scratch, p.columns + s * p.capacity + count, x)
            if least == 1 and greatest_of(zero - lowest) == 0.0:
                for i in range(first, first + width):
                    tables[i] = 0.0
            else:
                for i in range(width):
                    indices[p.target + count + i] = first + i
                count += width
    return count


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def answer(tables, p, target, value):
    """Write a column's outcome where it belongs."""
    value = value if target >= p.most else -value
    tables[target] = min(1.0, max(0.0, value))


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def occupancy_bounds(tables, numbers, scratch, indices, p, initial_s, live):
    """The least and the greatest probability of every (h, s) over the boxes.  [eq:LM25-mu-bar]"""
    H, S, A = p.H, p.S, p.A
    for s in range(S):
        tables[p.least + s] = initial_s[s]
        tables[p.most + s] = initial_s[s]
    count = 0
    n = S
    for h in range(H - 2, -1, -1):
        if numbers[p.boxes + h] == 0:
            for c in range(count):
                value = scratch[p.columns + c]
                for t in range(1, S):
                    value = max(value, scratch[p.columns + t * p.capacity + c])
                answer(tables, p, indices[p.target + c], value)
            count = 0
            for s in range(S):
                tables[p.most + (h + 1) * p.S8 + s] = 1.0
                tables[p.least + (h + 1) * p.S8 + s] = 1.0 if S == 1 else 0.0
            continue
        raised = numbers[p.raised + h] > 0
        if h == 0:
            n = live.shape[0]
            depth = scale_first(tables, numbers, scratch, indices, p, live)
        else:
            depth = scale(tables, numbers, scratch, indices, p, h, raised)
        rows = (A * n + 7) // 8 * 8
        fold(scratch, p, n, rows, raised)
        for first in range(0, count, 8):
            step_back(scratch, indices, p, first, n, rows, depth, raised)
        count = begin(tables, scratch, indices, p, count, h, n, rows, raised)
    for c in range(count):
        value = 0.0
        for j in range(n):
            value += initial_s[live[j]] * scratch[p.columns + j * p.capacity + c]
        answer(tables, p, indices[p.target + c], value)


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def future_bonus(tables, numbers, scratch, indices, p, h):
    """max_{q ∈ P_h(s,a)} q · V_{h+1} of all rows, at `scaled_lower`, V = Σ_a π B̂ of the next step."""
    S, R8 = p.S, p.R8
    following = p.value + (h + 1) * p.S8
    depth = 1
    for b in range(p.depth_b + h * R8 // 8, p.depth_b + (h + 1) * R8 // 8):
        depth = max(depth, numbers[b])
    for t in range(S):
        store(scratch, p.key + 8 * t, tag(spread_from(tables, following + t), p.mask, t))
    top = sort_keys(scratch, indices, p, depth, R8)  # eight times the same column
    raised = numbers[p.raised + h] > 0
    for b in range(0, R8, 8):
        box = h * S * R8 + b
        left = load(tables, p.rest + h * R8 + b)
        x = top * left
        for i in range(0, 8 * (numbers[p.depth_b + (h * R8 + b) // 8] - 1), 8):
            left = left - load(tables, p.slack + box + integer_from(indices, p.tags + i))
            x = x - load(scratch, p.key + i) * greater(left, spread(0.0))
        if raised:
            for t in range(S):
                x = fma(spread_from(tables, following + t), load(tables, p.lower + box + t * R8), x)
        store(scratch, p.scaled_lower + b, x)


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def learn(tables, numbers, scratch, indices, p, states_h, actions_h, total, step, exploration, bonus_scale):
    """Estimator, bonus and policy, from the last step to the first, for the log weights -η Σ_k (Û_k - B̂_k).

    b̃(s) + b̄(s) = H Σ_a π (3γ + (most - least) π) / (most π + γ)  [eq:LM25-b-unknown]
    B̂(s, a)     = b(s) + max_{q ∈ P(s,a)} q · V_{h+1},   V = Σ_a π B̂  [eq:LM25-B-hat]
    Û(s, a)     = total / (most π + γ) where visited  [eq:LM25-U-hat-unknown]
    """
    H, S, A, S8 = p.H, p.S, p.A, p.S8
    zero = spread(0.0)
    for h in range(H - 1, -1, -1):
        boxes = h + 1 < H and numbers[p.boxes + h] > 0
        ahead = 0.0
        if boxes:
            future_bonus(tables, numbers, scratch, indices, p, h)
        elif h + 1 < H:
            ahead = tables[p.value + (h + 1) * S8]
            for s in range(1, S):
                ahead = max(ahead, tables[p.value + (h + 1) * S8 + s])
        for s in range(0, S, 8):
            most = load(tables, p.most + h * S8 + s)
            width = most - load(tables, p.least + h * S8 + s)
            local = zero
            value = spread(ahead)
            for a in range(A):
                x = load(tables, p.policy + (h * A + a) * S8 + s)
                local = local + x * fma(width, x, spread(3.0 * exploration)) / fma(most, x, spread(exploration))
                if boxes:
                    value = fma(x, load(scratch, p.scaled_lower + a * S + s), value)
            store(tables, p.value + h * S8 + s, fma(spread(bonus_scale * H), local, value))
        visited = (h * A + actions_h[h]) * S8 + states_h[h]
        chance = tables[p.most + h * S8 + states_h[h]] * tables[p.policy + visited]
        tables[p.log_weights + visited] -= step * total / (chance + exploration)
        if boxes:
            improve_all(tables, scratch, p, h, step)
        else:
            improve_one(tables, p, h, states_h[h])


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def improve_all(tables, scratch, p, h, step):
    """Add η times what B̂ has beyond b, which shifts all actions alike, to the log weights; the policy of all states."""
    S, A, S8 = p.S, p.A, p.S8
    log_weights, policy = p.log_weights + h * A * S8, p.policy + h * A * S8
    for s in range(0, S, 8):
        top = spread(-np.inf)
        for a in range(A):
            o = a * S8 + s
            x = fma(spread(step), load(scratch, p.scaled_lower + a * S + s), load(tables, log_weights + o))
            store(tables, log_weights + o, x)
            top = greater(top, x)
        mass = spread(0.0)
        for a in range(A):
            o = a * S8 + s
            x = load(tables, log_weights + o) - top
            store(tables, log_weights + o, x)
            x = exp_bounded(greater(x, spread(FLOOR)))
            store(tables, policy + o, x)
            mass = mass + x
        for a in range(A):
            o = policy + a * S8 + s
            store(tables, o, load(tables, o) / mass)
    for a in range(A):
        for s in range(S, S8):
            tables[log_weights + a * S8 + s] = 0.0
            tables[policy + a * S8 + s] = 0.0


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def improve_one(tables, p, h, s):
    """The policy of one state: where no box is smaller than the simplex, B̂ moves none of the others."""
    first = p.log_weights + h * p.A * p.S8 + s
    policy = p.policy + h * p.A * p.S8 + s
    last = p.A * p.S8
    top = tables[first]
    for o in range(p.S8, last, p.S8):
        top = max(top, tables[first + o])
    mass = 0.0
    for o in range(0, last, p.S8):
        x = tables[first + o] - top
        tables[first + o] = x
        x = exp_bounded_one(max(x, FLOOR))
        tables[policy + o] = x
        mass += x
    for o in range(0, last, p.S8):
        tables[policy + o] /= mass


@njit(cache=True, error_model="numpy", fastmath=FLAGS, nogil=True)
def update(
    counts_hsas, tables, numbers, scratch, indices, p, initial_s, live, states_h, actions_h, total,
    step, exploration, bonus_scale, log_term, radius_scale, lower_t, slack_t,
):  # fmt: skip
    """Algorithm 2 after an episode: bounds, estimator, bonus, policy, and then its transitions and their boxes."""
    occupancy_bounds(tables, numbers, scratch, indices, p, initial_s, live)
    learn(tables, numbers, scratch, indices, p, states_h, actions_h, total, step, exploration, bonus_scale)
    for h in range(p.H - 1):
        s, a = states_h[h], actions_h[h]
        counts_hsas[h, s, a, states_h[h + 1]] += 1.0
        n = 0.0
        for t in range(p.S):
            n += counts_hsas[h, s, a, t]
        if 10.0 * log_term * radius_scale < n:  # otherwise it is still the whole simplex, as it was
            rest = rebuild_box(counts_hsas[h, s, a], log_term, radius_scale, lower_t, slack_t)
            place_box(lower_t, slack_t, rest, tables, numbers, p, h, a * p.S + s)


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def expected(next_tsan, probability_tsan, initial_s, tables, scratch, p, with_mean):
    """The policy's expected loss under the true dynamics, and against the mean table."""
    H, S, A, S8 = p.H, p.S, p.A, p.S8
    zero = spread(0.0)
    cost, mean = zero, zero
    stationary = probability_tsan.shape[0] == 1
    for s in range(S):
        scratch[p.reach + s] = initial_s[s]
    for h in range(H):
        for a in range(A):  # the outer loop: an action's last eight reach into the next one's first, which then replace
            for s in range(0, S, 8):
                o = (h * A + a) * S8 + s
                x = load(scratch, p.reach + s) * load(tables, p.policy + o)
                cost = fma(x, load(scratch, p.loss + o), cost)
                if with_mean:
                    mean = fma(x, load(scratch, p.mean + o), mean)
                store(scratch, p.weight + a * S + s, x)
        if h + 1 < H:
            t = 0 if stationary else h
            if next_tsan.shape[0] == 0:
                forward(probability_tsan, t, scratch, p)
            else:
                forward_sparse(next_tsan, probability_tsan, t, scratch, p)
    return sum_of(cost), sum_of(mean)


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def forward(probability_tast, t, scratch, p):
    """μ(s') = Σ_{s,a} weight p(s'|s, a), rows padded to eights."""
    rows = p.A * p.S
    for s_next in range(0, p.S, 8):
        o = t * rows * p.S8 + s_next
        x0 = spread(0.0)
        x1, x2, x3 = x0, x0, x0
        r = 0
        while r + 4 <= rows:
            x0 = fma(spread_from(scratch, p.weight + r), load(probability_tast, o), x0)
            x1 = fma(spread_from(scratch, p.weight + r + 1), load(probability_tast, o + p.S8), x1)
            x2 = fma(spread_from(scratch, p.weight + r + 2), load(probability_tast, o + 2 * p.S8), x2)
            x3 = fma(spread_from(scratch, p.weight + r + 3), load(probability_tast, o + 3 * p.S8), x3)
            o += 4 * p.S8
            r += 4
        while r < rows:
            x0 = fma(spread_from(scratch, p.weight + r), load(probability_tast, o), x0)
            o += p.S8
            r += 1
        store(scratch, p.reach + s_next, (x0 + x1) + (x2 + x3))


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def forward_sparse(next_tsan, probability_tsan, t, scratch, p):
    """μ(next(s, a, i)) += weight p(i|s, a)."""
    for s in range(p.S):
        scratch[p.reach + s] = 0.0
    for a in range(p.A):
        for s in range(p.S):
            weight = scratch[p.weight + a * p.S + s]
            for i in range(next_tsan.shape[3]):
                scratch[p.reach + next_tsan[t, s, a, i]] += weight * probability_tsan[t, s, a, i]


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


@njit(cache=True, error_model="numpy", fastmath=FLAGS)
def arrange(loss_hsa, scratch, p, first):
    """A loss table in the order of the policy's, at `first`."""
    for h in range(p.H):
        for s in range(p.S):
            for a in range(p.A):
                scratch[first + (h * p.A + a) * p.S8 + s] = loss_hsa[h, s, a]


@njit(cache=True)
def draw(u, tables, p, h, s):
    """The first a with u < π(0) + ... + π(a); beyond the rounded last sum, the last a with π(a) > 0."""
    place = p.policy + h * p.A * p.S8 + s
    total = 0.0
    last = 0
    for a in range(p.A):
        probability = tables[place + a * p.S8]
        if probability > 0.0:
            last = a
            total += probability
            if u < total:
                return a
    return last


@njit(cache=True, error_model="numpy", fastmath=FLAGS, nogil=True)
def play(
    next_tsan, probability_tsan, cumulative_tsan, initial_s, initial_cumulative_s, live, seed, replica, first,
    tables_mhsa, row_n, mean_hsa, counts_hsas, tables, numbers, scratch, indices, p,
    step, exploration, bonus_scale, log_term, radius_scale, states_h, actions_h, lower_t, slack_t, sums,
):  # fmt: skip
    """Evaluate, sample and learn for n episodes; `sums`: cost and pseudo-cost, each a compensated sum."""
    H = p.H
    dense = next_tsan.shape[0] == 0
    stationary = cumulative_tsan.shape[0] == 1
    with_mean = mean_hsa.shape[0] > 0
    if with_mean:
        arrange(mean_hsa, scratch, p, p.mean)
    held = -1
    for i in range(row_n.shape[0]):
        row = row_n[i]
        if row != held:
            arrange(tables_mhsa[row], scratch, p, p.loss)
            held = row
        cost, mean = expected(next_tsan, probability_tsan, initial_s, tables, scratch, p, with_mean)
        add(sums[0], cost)
        if with_mean:
            add(sums[1], mean)
        x0, x1, x2, x3 = philox(replica, first + i, BEFORE_FIRST_STEP, 0, seed)
        s = first_above(unit(x2, x3), initial_cumulative_s)
        total = 0.0
        for h in range(H):
            x0, x1, x2, x3 = philox(replica, first + i, h, 0, seed)
            a = draw(unit(x0, x1), tables, p, h, s)
            states_h[h] = s
            actions_h[h] = a
            total += tables_mhsa[row, h, s, a]
            if h + 1 < H:
                t = 0 if stationary else h
                j = first_above(unit(x2, x3), cumulative_tsan[t, s, a])
                s = j if dense else next_tsan[t, s, a, j]
        update(
            counts_hsas, tables, numbers, scratch, indices, p, initial_s, live, states_h, actions_h, total,
            step, exploration, bonus_scale, log_term, radius_scale, lower_t, slack_t,
        )  # fmt: skip
