"""Many episodes of Algorithm 1 for one replica, LANES states at once.

What `po_known_lanes` does for LANES replicas is done here for LANES states of one: packs are packs of states, the last
one filled up with states that nothing leads to.  Dense or with few successors.  Every number is the plain kernel's
(`po_known`), bit for bit.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, uint32

from aggbandit.kernels.episode import add_compensated
from aggbandit.kernels.philox import philox, unit
from aggbandit.kernels.po_known import LOWEST
from aggbandit.kernels.po_known_lanes import GROUP, aligned, even_part, improve_row
from aggbandit.kernels.simd import (
    LANES,
    ROWS,
    combine,
    count_at_most,
    exp_bounded,
    fma,
    load,
    pointers,
    spread,
    store,
    where_equal,
)


class World(NamedTuple):
    """What an episode needs to know; read only.  Either the first two are empty or the two after them."""

    forward: np.ndarray  # (T, S, A, g, l): the transitions
    backward: np.ndarray  # (T, g, S', A, l): the same, states in lanes
    successors: np.ndarray  # (T, S, A, n)
    probabilities: np.ndarray  # (T, S, A, n)
    cumulative: np.ndarray  # (T, S, A, S or n rounded up to GROUP): padded with inf
    initial: np.ndarray  # (g, l)
    initial_cumulative: np.ndarray  # (S rounded up to GROUP,)
    numbering: np.ndarray  # (g, l): the state in each place


class Replica(NamedTuple):
    """What the episodes change."""

    policy: np.ndarray  # (H, g, A, l)
    log_policy: np.ndarray  # (H, g, A, l): see `po_known`
    cost: np.ndarray  # (2,): a compensated sum
    pseudo_cost: np.ndarray  # (2,)


class Scratch(NamedTuple):
    """Overwritten by every episode."""

    loss: np.ndarray  # (H, g, A, l): the episode's table
    mean: np.ndarray  # (H, g, A, l): the mean table
    occupancy: np.ndarray  # (H, g, l)
    values: np.ndarray  # (2, g, l): of the next step and of this one, taking turns
    weights: np.ndarray  # (g l, A): μ(s) π(a|s)
    future: np.ndarray  # (A, l)
    product: np.ndarray  # (A, l)
    cost_s: np.ndarray  # (g, l)
    pseudo_s: np.ndarray  # (g, l)
    u_action: np.ndarray  # (H + 1,): the first belongs to no step
    u_next: np.ndarray  # (H + 1,): the first draws the initial state
    states: np.ndarray  # (H,)
    actions: np.ndarray  # (H,)
    row: np.ndarray  # (3, l)


def dense_matrices(transition_tsas):
    """`World.forward` and `World.backward`."""
    T, S, A, _ = transition_tsas.shape
    packs = -(-S // LANES)
    forward = aligned(T * S * A * packs * LANES)
    forward.reshape(T, S, A, packs * LANES)[..., :S] = transition_tsas
    rows = np.zeros((T, packs * LANES, A, S))
    rows[:, :S] = transition_tsas
    backward = aligned(forward.size)
    split = rows.reshape(T, packs, LANES, A, S).transpose(0, 1, 4, 3, 2)
    backward.reshape(split.shape)[:] = split
    return forward, backward


def scratch(sizes):
    """Scratch of the right sizes."""
    packs, H, _, A = sizes[:4]
    lengths = {
        "loss": H * packs * A,
        "mean": H * packs * A,
        "occupancy": H * packs,
        "values": 2 * packs,
        "weights": packs * A,
        "future": A,
        "product": A,
        "cost_s": packs,
        "pseudo_s": packs,
        "row": 3,
    }
    arrays = {name: aligned(length * LANES) for name, length in lengths.items()}
    draws = -(-(H + 1) // GROUP) * GROUP
    return Scratch(
        **arrays, u_action=aligned(draws), u_next=aligned(draws), states=np.empty(H, np.int64),
        actions=np.empty(H, np.int64),
    )  # fmt: skip


@njit(cache=True, forceinline=True)
def put_in_lanes(sizes, table, first, out):
    """A loss table, (H, S, A) from element `first` on, with its states in lanes; 0 where there is no state."""
    packs, H, S, A = sizes[:4]
    for h in range(H):
        for g in range(packs):
            for a in range(A):
                store(out, ((h * packs + g) * A + a) * LANES, spread(0.0))
        for s in range(S):
            at = (h * packs + s // LANES) * A * LANES + s % LANES
            for a in range(A):
                out[at + a * LANES] = table[first + (h * S + s) * A + a]


@njit(cache=True, forceinline=True)
def spend(sizes, h, g, loss, weights, cost_s):
    """Add the expected cost of step h to that of each state of pack g; `weights` (A, l) are the pack's."""
    A = sizes.A
    at = (h * sizes.packs + g) * A * LANES
    spent = load(cost_s, g * LANES)
    for a in range(A):
        spent = fma(load(weights, a * LANES), load(loss, at + a * LANES), spent)
    store(cost_s, g * LANES, spent)


@njit(cache=True, forceinline=True)
def reach(sizes, world, h, start, stop, scratch):
    """Occupancy of step h + 1 from the weights of step h, of the states start ... stop - 1."""
    packs, _, S, A, T, n = sizes[:6]
    t = 0 if T == 1 else h
    following = (h + 1) * packs * LANES
    if n == 0:
        parts = (packs + ROWS - 1) // ROWS
        for part in range(parts):
            first, count = even_part(packs, parts, part)
            combine(
                scratch.weights, start * A, world.forward, ((t * S + start) * A * packs + first) * LANES,
                packs * LANES, (stop - start) * A, scratch.occupancy, following + first * LANES, count, False,
            )  # fmt: skip
    else:
        for g in range(packs):
            store(scratch.occupancy, following + g * LANES, spread(0.0))
        for k in range(start * A, stop * A):
            w = scratch.weights[k]
            if w != 0.0:
                row = (t * S * A + k) * n
                for j in range(row, row + n):
                    place = following + world.successors[j]
                    scratch.occupancy[place] = fma(w, world.probabilities[j], scratch.occupancy[place])


@njit(cache=True, forceinline=True)
def follow(sizes, world, start, stop, policy, scratch):
    """Occupancy of every state, and the expected cost of each state summed over steps."""
    packs, H, S, A = sizes[:4]
    for g in range(packs):
        store(scratch.cost_s, g * LANES, spread(0.0))
        store(scratch.pseudo_s, g * LANES, spread(0.0))
    for h in range(H):
        for g in range(packs):
            mu = load(scratch.occupancy, (h * packs + g) * LANES)
            at = (h * packs + g) * A * LANES
            for a in range(A):
                store(scratch.product, a * LANES, mu * load(policy, at + a * LANES))
            spend(sizes, h, g, scratch.loss, scratch.product, scratch.cost_s)
            if sizes.means > 0:
                spend(sizes, h, g, scratch.mean, scratch.product, scratch.pseudo_s)
            for lane in range(min(LANES, S - g * LANES)):
                for a in range(A):
                    scratch.weights[(g * LANES + lane) * A + a] = scratch.product[a * LANES + lane]
        if h + 1 < H:
            reach(sizes, world, h, start if h == 0 else 0, stop if h == 0 else S, scratch)


@njit(cache=True, forceinline=True)
def draw(replica, episode, seed, H, out_action, out_next):
    """The environment's uniforms of one episode, those before the first step first."""
    for i in range((H + GROUP) // GROUP * GROUP):  # a few more than needed, so that all fill vectors
        x0, x1, x2, x3 = philox(replica, episode, uint32(i - 1), 0, seed)  # -1 is BEFORE_FIRST_STEP
        out_action[i] = unit(x0, x1)
        out_next[i] = unit(x2, x3)


@njit(cache=True, forceinline=True)
def play_out(sizes, world, table, first, policy, scratch):
    """Sample an episode: states and actions to `scratch`; the total of its losses."""
    packs, H, S, A, T, n, groups, first_groups, _ = sizes
    total = 0.0
    s = count_at_most(world.initial_cumulative, 0, first_groups, scratch.u_next[0])
    for h in range(H):
        at = (h * packs + s // LANES) * A * LANES + s % LANES
        u = scratch.u_action[h + 1]
        a = 0
        below = 0.0
        for other in range(A):
            below += policy[at + other * LANES]
            a += below <= u
        if a == A:  # beyond the rounded last sum: the last possible action
            a = A - 1
            while policy[at + a * LANES] == 0.0:
                a -= 1
        scratch.states[h] = s
        scratch.actions[h] = a
        total += table[first + (h * S + s) * A + a]
        if h + 1 < H:
            row = ((0 if T == 1 else h) * S + s) * A + a
            k = count_at_most(world.cumulative, row * groups * GROUP, groups, scratch.u_next[h + 1])
            s = k if n == 0 else world.successors[row * n + k]
    return total


@njit(cache=True, forceinline=True)
def look_ahead(sizes, world, h, g, next_value, scratch):
    """future(s, a) of the states of pack g."""
    packs, H, S, A, T, n = sizes[:6]
    t = 0 if T == 1 else h
    if h + 1 == H:
        for a in range(A):
            store(scratch.future, a * LANES, spread(0.0))
    elif n == 0:
        parts = (A + ROWS - 1) // ROWS
        for part in range(parts):
            first, count = even_part(A, parts, part)
            combine(
                scratch.values, next_value, world.backward, ((t * packs + g) * S * A + first) * LANES, A * LANES, S,
                scratch.future, first * LANES, count, False,
            )  # fmt: skip
    else:
        for lane in range(min(LANES, S - g * LANES)):
            for a in range(A):
                row = ((t * S + g * LANES + lane) * A + a) * n
                future = 0.0
                for j in range(row, row + n):
                    future = fma(world.probabilities[j], scratch.values[next_value + world.successors[j]], future)
                scratch.future[a * LANES + lane] = future


@njit(cache=True, forceinline=True)
def improve(sizes, world, numbers, total, policy, log_policy, scratch):
    """The bonus, backwards, and every row of the next policy."""
    packs, H, _, A = sizes[:4]
    for h in range(H - 1, -1, -1):
        next_value = (h + 1) % 2 * packs * LANES
        value = h % 2 * packs * LANES
        s, a = scratch.states[h], scratch.actions[h]
        p = policy[((h * packs + s // LANES) * A + a) * LANES + s % LANES]
        estimate = total / fma(scratch.occupancy[h * packs * LANES + s], p, numbers.exploration) * numbers.step_size
        factor = spread(exp_bounded(max(-estimate, LOWEST)))
        for g in range(packs):
            look_ahead(sizes, world, h, g, next_value, scratch)
            seen = where_equal(load(world.numbering, g * LANES), float(s), float(a), -1.0)
            mu = load(scratch.occupancy, (h * packs + g) * LANES)
            b = improve_row(
                policy, log_policy, (h * packs + g) * A * LANES, A, mu, scratch.future, 0, numbers, seen, 0, factor,
                spread(estimate), scratch.product, scratch.row,
            )  # fmt: skip
            store(scratch.values, value + g * LANES, b)


@njit(cache=True, forceinline=True)
def add_sum(cost_s, S, sum_and_rest):
    """Add up the states' costs and add that to the compensated sum."""
    cost = 0.0
    for s in range(S):
        cost += cost_s[s]
    add_compensated(cost, sum_and_rest)


@njit(cache=True, nogil=True, error_model="numpy")
def play(sizes, world, losses, numbers, first, number, seed, replica, scratch):
    """Play episodes first ... first + n - 1 of replica `number`."""
    packs, H, S, A = sizes[:4]
    episodes = losses.row_n.shape[0]
    cost, pseudo_cost = replica.cost, replica.pseudo_cost
    world, losses, replica, scratch = pointers(world), pointers(losses), pointers(replica), pointers(scratch)
    start = 0
    while world.initial[start] == 0.0:
        start += 1
    stop = S
    while world.initial[stop - 1] == 0.0:
        stop -= 1
    for g in range(packs):
        store(scratch.occupancy, g * LANES, load(world.initial, g * LANES))
    if sizes.means > 0:
        put_in_lanes(sizes, losses.means, 0, scratch.mean)
    for i in range(episodes):
        loss_at = losses.row_n[i] * H * S * A
        if i == 0 or losses.row_n[i] != losses.row_n[i - 1]:
            put_in_lanes(sizes, losses.tables, loss_at, scratch.loss)
        follow(sizes, world, start, stop, replica.policy, scratch)
        add_sum(scratch.cost_s, S, cost)
        if sizes.means > 0:
            add_sum(scratch.pseudo_s, S, pseudo_cost)
        draw(number, first + i, seed, H, scratch.u_action, scratch.u_next)
        total = play_out(sizes, world, losses.tables, loss_at, replica.policy, scratch)
        improve(sizes, world, numbers, total, replica.policy, replica.log_policy, scratch)
