"""Many episodes of Algorithm 1 for many replicas with dense dynamics, LANES replicas at once.

Replicas come in packs of LANES; an array that differs between replicas has the packs first and the lanes last, so that
one load brings the same number of LANES replicas.  Both recursions are products of the shared transitions with vectors
of the pack (`simd.multiply`), a few states at a time: what a product reads or writes stays in the fastest cache.  A
block of transitions serves all packs before the next one is fetched.

All arrays have one axis, as `simd.load` and `store` count in doubles; comments tell the axes they stand for, where `l`
is the lane and `g` the pack.  Every number is the plain kernel's (`po_known`), bit for bit.
"""

from math import exp, inf, log
from typing import NamedTuple

import numpy as np
from numba import njit

from aggbandit.kernels.philox import BEFORE_FIRST_STEP, philox, unit
from aggbandit.kernels.po_known import LOWEST, SAFE, TINY
from aggbandit.kernels.simd import (
    LANES,
    ROWS,
    SMALL,
    absolute,
    beyond,
    count_at_most,
    exp_bounded,
    exp_small,
    fma,
    greater,
    lesser,
    load,
    multiply,
    pointers,
    prefetch,
    spread,
    store,
    where_equal,
)

FORWARD_ROWS = 64  # about how many (s, a) pairs the forward recursion takes at once
LINE = 8  # doubles a cache line holds
GROUP = 8  # `simd.count_at_most` takes so many entries at once


class Sizes(NamedTuple):
    packs: int
    H: int
    S: int
    A: int
    T: int  # 1 where all steps have the same transitions, else H
    successors: int  # n, or 0 where transitions are dense
    groups: int  # of GROUP entries in a row of `cumulative`
    first_groups: int  # in `initial_cumulative`
    means: int  # mean tables: 0 or 1


class World(NamedTuple):
    """What all replicas share; read only."""

    forward: np.ndarray  # (T, S, A, S): the transitions
    backward: np.ndarray  # the same numbers as `arranged` puts them
    cumulative: np.ndarray  # (T, S, A, S rounded up to GROUP): padded with inf
    successors: np.ndarray  # not used: the k-th successor is state k
    initial: np.ndarray  # (S,)
    initial_cumulative: np.ndarray  # (S rounded up to GROUP,)


class Losses(NamedTuple):
    tables: np.ndarray  # (m, H, S, A)
    row_n: np.ndarray  # (n,): which table each episode uses
    means: np.ndarray  # (1, H, S, A), or empty


class Numbers(NamedTuple):
    step_size: float
    exploration: float
    bonus: float


class Replicas(NamedTuple):
    """What the episodes change."""

    policy: np.ndarray  # (g, H, S, A, l)
    log_policy: np.ndarray  # (g, H, S, A, l): see `po_known`
    cost: np.ndarray  # (g, 2, l): compensated sums
    pseudo_cost: np.ndarray  # (g, 2, l)


class Scratch(NamedTuple):
    """Overwritten by every episode."""

    occupancy: np.ndarray  # (g, H, S, l)
    values: np.ndarray  # (2, g, S, l): of the next step and of this one, taking turns
    weights: np.ndarray  # (rows, l): μ(s) π(a|s)
    future: np.ndarray  # (rows, l)
    product: np.ndarray  # (A, l)
    cost_s: np.ndarray  # (g, S, l)
    pseudo_s: np.ndarray  # (g, S, l)
    uniforms: np.ndarray  # (H + 1, 2, l): action and next state; the last those before the first step
    visited: np.ndarray  # (g, H, l): s A + a
    reached: np.ndarray  # (g, H, l): μ(s) π(a|s) + γ where visited
    total: np.ndarray  # (g, l)
    state: np.ndarray  # (l,)
    row: np.ndarray  # (3, l)


def states_at_once(A):
    """How many states the backward recursion takes at once: as many rows as one product keeps in registers."""
    return max(1, ROWS // A)


def arranged(transition_tsas):
    """(T, S A S): for each group of at most ROWS rows (s, a), all their probabilities by s' first.

    A group of n rows from row i on fills the places i S ... (i + n) S - 1, n for each s'.  Groups do not cross the
    blocks of `states_at_once` states.
    """
    T, S, A, _ = transition_tsas.shape
    rows_txs = transition_tsas.reshape(T, S * A, S)
    out = np.empty((T, S * A * S))
    blocks = -(-S // states_at_once(A))
    for block in range(blocks):
        first_state, states = even_part.py_func(S, blocks, block)
        parts = -(-states * A // ROWS)
        for part in range(parts):
            row, rows = even_part.py_func(states * A, parts, part)
            first = first_state * A + row
            group = rows_txs[:, first : first + rows].transpose(0, 2, 1)
            out[:, first * S : (first + rows) * S] = group.reshape(T, rows * S)
    return out


def padded(cumulative):
    """The last axis filled up with inf to a multiple of GROUP: no draw reaches what is added."""
    n = cumulative.shape[-1]
    out = np.full((*cumulative.shape[:-1], -(-n // GROUP) * GROUP), np.inf)
    out[..., :n] = cumulative
    return out


def scratch(sizes):
    """Scratch of the right sizes."""
    packs, H, S, A = sizes[:4]
    lengths = {
        "occupancy": packs * H * S,
        "values": 2 * packs * S,
        "weights": max(FORWARD_ROWS, A),
        "future": max(ROWS, A),
        "product": A,
        "cost_s": packs * S,
        "pseudo_s": packs * S,
        "uniforms": 2 * (H + 1),
        "visited": packs * H,
        "reached": packs * H,
        "total": packs,
        "row": 3,
    }
    arrays = {name: aligned(length * LANES) for name, length in lengths.items()}
    return Scratch(**arrays, state=np.empty(LANES, np.int64))


def aligned(size):
    """Zeros whose vectors do not straddle cache lines."""
    raw = np.zeros(size + 8)
    skip = (-raw.ctypes.data // 8) % 8
    return raw[skip : skip + size]


@njit(cache=True, forceinline=True)
def even_part(total, parts, i):
    """(first, length) of part i when `total` things are cut into parts as even as can be."""
    base = total // parts
    extra = total - base * parts
    return i * base + min(i, extra), base + (1 if i < extra else 0)


@njit(cache=True, forceinline=True)
def fetch(pointer, first, length):
    """Ask for `length` doubles from element `first` on."""
    for i in range(first, first + length, LINE):
        prefetch(pointer, i)


@njit(cache=True, forceinline=True)
def begin(sizes, initial, occupancy):
    """Write the occupancy of the first step; (first, last + 1) state that an episode can start in."""
    packs, H, S = sizes[:3]
    for g in range(packs):
        for s in range(S):
            store(occupancy, (g * H * S + s) * LANES, spread(initial[s]))
    start = 0
    while initial[start] == 0.0:
        start += 1
    stop = S
    while initial[stop - 1] == 0.0:
        stop -= 1
    return start, stop


@njit(cache=True, forceinline=True)
def follow(sizes, world, losses, i, start, stop, policy, scratch):
    """Occupancy, and each state's expected cost summed over steps; episodes start in states start ... stop - 1."""
    packs, H, S, A, T = sizes[:5]
    loss_at = losses.row_n[i] * H * S * A
    has_mean = sizes.means > 0
    at_once = max(1, FORWARD_ROWS // A)
    parts = (S + ROWS - 1) // ROWS
    for x in range(packs * S):
        store(scratch.cost_s, x * LANES, spread(0.0))
        if has_mean:
            store(scratch.pseudo_s, x * LANES, spread(0.0))
    for h in range(H):
        t = 0 if T == 1 else h
        first = start if h == 0 else 0
        last = stop if h == 0 else S
        for s0 in range(first, last, at_once):
            s1 = min(s0 + at_once, last)
            for g in range(packs):
                w_at = 0
                for s in range(s0, s1):
                    mu = load(scratch.occupancy, ((g * H + h) * S + s) * LANES)
                    spent = load(scratch.cost_s, (g * S + s) * LANES)
                    at = ((g * H + h) * S + s) * A * LANES
                    l_at = (h * S + s) * A
                    for a in range(A):
                        w = mu * load(policy, at + a * LANES)
                        store(scratch.weights, w_at + a * LANES, w)
                        spent = fma(w, losses.tables[loss_at + l_at + a], spent)
                    store(scratch.cost_s, (g * S + s) * LANES, spent)
                    if has_mean:
                        spent = load(scratch.pseudo_s, (g * S + s) * LANES)
                        for a in range(A):
                            spent = fma(load(scratch.weights, w_at + a * LANES), losses.means[l_at + a], spent)
                        store(scratch.pseudo_s, (g * S + s) * LANES, spent)
                    w_at += A * LANES
                if h + 1 < H:
                    for part in range(parts):
                        if packs > 1:
                            p_slice = (s1 - s0) * A * S // (packs * parts)
                            fetch(world.forward, (t * S + s1) * A * S + (g * parts + part) * p_slice, p_slice)
                            q_slice = (s1 - s0) * A * LANES // parts
                            fetch(policy, (((g + 1) * H + h) * S + s0) * A * LANES + part * q_slice, q_slice)
                        row, rows = even_part(S, parts, part)
                        multiply(
                            world.forward, (t * S + s0) * A * S + row, S, scratch.weights, 0, (s1 - s0) * A,
                            scratch.occupancy, ((g * H + h + 1) * S + row) * LANES, rows, s0 > first,
                        )  # fmt: skip


@njit(cache=True, forceinline=True)
def add_costs(cost_s, place, S, sum_and_rest, sum_place):
    """Add up the states' costs and add that to the compensated sum: what `episode.add_compensated` does."""
    cost = spread(0.0)
    for s in range(S):
        cost = cost + load(cost_s, place + s * LANES)
    old = load(sum_and_rest, sum_place)
    new = old + cost
    added = new - old
    lost = (old - (new - added)) + (cost - added)  # what rounding took, whichever of the two is larger
    store(sum_and_rest, sum_place, new)
    store(sum_and_rest, sum_place + LANES, load(sum_and_rest, sum_place + LANES) + lost)


@njit(cache=True, forceinline=True)
def draw(replica, episode, seed, H, out_uniforms):
    """The environment's uniforms of one episode, LANES replicas from `replica` on."""
    for h in range(H + 1):
        step = BEFORE_FIRST_STEP if h == H else h
        for lane in range(LANES):
            x0, x1, x2, x3 = philox(replica + lane, episode, step, 0, seed)
            out_uniforms[2 * h * LANES + lane] = unit(x0, x1)
            out_uniforms[(2 * h + 1) * LANES + lane] = unit(x2, x3)


@njit(cache=True, forceinline=True)
def play_out(sizes, world, losses, i, g, exploration, policy, scratch):
    """Sample an episode of pack g: where it went, what is learned from, and the total."""
    _, H, S, A, T, n, groups, first_groups, _ = sizes
    loss_at = losses.row_n[i] * H * S * A
    for lane in range(LANES):
        u = scratch.uniforms[(2 * H + 1) * LANES + lane]
        scratch.state[lane] = count_at_most(world.initial_cumulative, 0, first_groups, u)
        scratch.total[g * LANES + lane] = 0.0
    for h in range(H):
        t = 0 if T == 1 else h
        for lane in range(LANES):
            s = scratch.state[lane]
            at = ((g * H + h) * S + s) * A * LANES + lane
            u = scratch.uniforms[2 * h * LANES + lane]
            a = 0
            below = 0.0
            for other in range(A):  # counting instead of stopping: a branch would be guessed wrong too often
                below += policy[at + other * LANES]
                a += below <= u
            if a == A:  # beyond the rounded last sum: the last possible action
                a = A - 1
                while policy[at + a * LANES] == 0.0:
                    a -= 1
            mu = scratch.occupancy[((g * H + h) * S + s) * LANES + lane]
            scratch.visited[(g * H + h) * LANES + lane] = s * A + a
            scratch.reached[(g * H + h) * LANES + lane] = fma(mu, policy[at + a * LANES], exploration)
            scratch.total[g * LANES + lane] += losses.tables[loss_at + (h * S + s) * A + a]
            if h + 1 < H:
                u = scratch.uniforms[(2 * h + 1) * LANES + lane]
                row = (t * S + s) * A + a
                k = count_at_most(world.cumulative, row * groups * GROUP, groups, u)
                scratch.state[lane] = k if n == 0 else world.successors[row * n + k]


@njit(cache=True, forceinline=True)
def softmax_lane(policy, log_policy, place, future, f_place, A, mean, step_size, visited, estimate, product, lane):
    """`po_known.softmax_row` for one lane of a row; the new probabilities go to `product`."""
    greatest = -inf
    for a in range(A):
        at = place + a * LANES + lane
        old = log_policy[at] if policy[at] < TINY else log(policy[at])
        new = old + step_size * (future[f_place + a * LANES + lane] - mean)
        if a == visited:
            new -= estimate
        log_policy[at] = new
        greatest = max(greatest, new)
    total = 0.0
    for a in range(A):
        total += exp(log_policy[place + a * LANES + lane] - greatest)
    shift = greatest + log(total)
    for a in range(A):
        at = place + a * LANES + lane
        log_policy[at] -= shift
        product[a * LANES + lane] = exp(log_policy[at])


@njit(cache=True, forceinline=True)
def improve_row(policy, log_policy, at, A, mu, future, f_at, numbers, seen, first_seen, factor, estimate, product, row):
    """The value of B under the old policy, and the new policy, for one (h, s) of a pack.

    `po_known.improve_step` and `improve_row`; a lane whose row must go through its logarithms does so alone.
    """
    ratios = spread(0.0)
    mean = spread(0.0)
    for a in range(A):
        p = load(policy, at + a * LANES)
        ratios = ratios + p / fma(mu, p, numbers.exploration)
        mean = fma(p, load(future, f_at + a * LANES), mean)
    index = spread(float(first_seen))
    greatest = spread(0.0)
    least = spread(inf)
    total = spread(0.0)
    for a in range(A):
        x = (load(future, f_at + a * LANES) - mean) * numbers.step_size
        y = load(policy, at + a * LANES) * exp_small(x)
        y = where_equal(seen, index, y * factor, y)
        index = index + 1.0
        store(product, a * LANES, y)
        total = total + y
        greatest = greater(absolute(x), greatest)
        least = lesser(y, least)
    flagged = beyond(greatest, SMALL, least, SAFE)
    if flagged != 0:
        store(row, 0, mean)
        store(row, LANES, estimate)
        store(row, 2 * LANES, seen)
        for lane in range(LANES):
            if (flagged >> lane) & 1:
                a = int(row[2 * LANES + lane]) - first_seen
                softmax_lane(
                    policy, log_policy, at, future, f_at, A, row[lane], numbers.step_size, a, row[LANES + lane],
                    product, lane,
                )  # fmt: skip
        store(row, 0, total)
        for lane in range(LANES):
            if (flagged >> lane) & 1:
                row[lane] = 1.0  # normalised already
        total = load(row, 0)
    scale = 1.0 / total
    for a in range(A):
        store(policy, at + a * LANES, load(product, a * LANES) * scale)
    return ratios * numbers.bonus + mean


@njit(cache=True, forceinline=True)
def improve(sizes, world, numbers, policy, log_policy, scratch):
    """The bonus, backwards, and every row of the next policy."""
    packs, H, S, A, T = sizes[:5]
    blocks = (S + max(1, ROWS // A) - 1) // max(1, ROWS // A)
    for h in range(H - 1, -1, -1):
        t = 0 if T == 1 else h
        next_value = (h + 1) % 2 * packs * S
        value = h % 2 * packs * S
        for block in range(blocks):
            s0, states = even_part(S, blocks, block)
            parts = (states * A + ROWS - 1) // ROWS
            for g in range(packs):
                if packs > 1:
                    part = states * A * S // packs
                    fetch(world.backward, (t * S + s0 + states) * A * S + g * part, part)
                    fetch(policy, (((g + 1) * H + h) * S + s0) * A * LANES, states * A * LANES)
                for part in range(parts):
                    row, rows = even_part(states * A, parts, part)
                    if h + 1 < H:
                        multiply(
                            world.backward, ((t * S + s0) * A + row) * S, rows,
                            scratch.values, (next_value + g * S) * LANES, S,
                            scratch.future, row * LANES, rows, False,
                        )  # fmt: skip
                    else:
                        for k in range(row, row + rows):
                            store(scratch.future, k * LANES, spread(0.0))
                seen = load(scratch.visited, (g * H + h) * LANES)
                estimate = load(scratch.total, g * LANES) / load(scratch.reached, (g * H + h) * LANES)
                estimate = estimate * numbers.step_size
                factor = exp_bounded(greater(spread(0.0) - estimate, LOWEST))
                for k in range(states):
                    s = s0 + k
                    mu = load(scratch.occupancy, ((g * H + h) * S + s) * LANES)
                    at = ((g * H + h) * S + s) * A * LANES
                    b = improve_row(
                        policy, log_policy, at, A, mu, scratch.future, k * A * LANES, numbers, seen, s * A, factor,
                        estimate, scratch.product, scratch.row,
                    )  # fmt: skip
                    store(scratch.values, (value + g * S + s) * LANES, b)


@njit(cache=True, nogil=True, error_model="numpy")
def play(sizes, world, losses, numbers, first, first_replica, seed, replicas, scratch):
    """Play episodes first ... first + n - 1 of some packs of replicas."""
    packs, H, S = sizes[:3]
    episodes = losses.row_n.shape[0]
    world, losses, replicas, scratch = pointers(world), pointers(losses), pointers(replicas), pointers(scratch)
    start, stop = begin(sizes, world.initial, scratch.occupancy)
    for i in range(episodes):
        follow(sizes, world, losses, i, start, stop, replicas.policy, scratch)
        for g in range(packs):
            add_costs(scratch.cost_s, g * S * LANES, S, replicas.cost, 2 * g * LANES)
            if sizes.means > 0:
                add_costs(scratch.pseudo_s, g * S * LANES, S, replicas.pseudo_cost, 2 * g * LANES)
            draw(first_replica + g * LANES, first + i, seed, H, scratch.uniforms)
            play_out(sizes, world, losses, i, g, numbers.exploration, replicas.policy, scratch)
        improve(sizes, world, numbers, replicas.policy, replicas.log_policy, scratch)
