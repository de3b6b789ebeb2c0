"""Many episodes of Algorithm 1 for many replicas where every (s, a) has few successors, LANES replicas at once.

`po_known_lanes` with the two products replaced by n multiply-adds a row: the cost of an episode is proportional to
the number of nonzeros.  States that no replica of a pack reaches cost one look.  With successors in ascending order the
sums have the terms of the dense ones in their order, less some zeros, and so the same bits.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from aggbandit.kernels.po_known import LOWEST
from aggbandit.kernels.po_known_lanes import add_costs, begin, draw, improve_row, play_out
from aggbandit.kernels.simd import LANES, exp_bounded, fma, greater, is_zero, load, pointers, spread, store


class World(NamedTuple):
    """What all replicas share; read only."""

    successors: np.ndarray  # (T, S, A, n)
    probabilities: np.ndarray  # (T, S, A, n)
    cumulative: np.ndarray  # (T, S, A, n rounded up to GROUP): padded with inf
    initial: np.ndarray  # (S,)
    initial_cumulative: np.ndarray  # (S rounded up to GROUP,)


def successors_of(transition_tsas):
    """(successors, probabilities), each (T, S, A, n): the nonzeros of each row by ascending state.

    n is the most there are; shorter rows are filled up with probability 0.
    """
    n = int(np.count_nonzero(transition_tsas, axis=-1).max())
    order = np.argsort(transition_tsas == 0.0, axis=-1, kind="stable")[..., :n]
    return np.ascontiguousarray(order, dtype=np.int64), np.take_along_axis(transition_tsas, order, axis=-1)


@njit(cache=True, forceinline=True)
def follow(sizes, world, losses, i, policy, scratch):
    """Occupancy, and each state's expected cost summed over steps."""
    packs, H, S, A, T, n = sizes[:6]
    loss_at = losses.row_n[i] * H * S * A
    has_mean = sizes.means > 0
    for x in range(packs * S):
        store(scratch.cost_s, x * LANES, spread(0.0))
        if has_mean:
            store(scratch.pseudo_s, x * LANES, spread(0.0))
    for g in range(packs):
        for h in range(H):
            t = 0 if T == 1 else h
            following = (g * H + h + 1) * S
            if h + 1 < H:
                for s in range(S):
                    store(scratch.occupancy, (following + s) * LANES, spread(0.0))
            for s in range(S):
                mu = load(scratch.occupancy, ((g * H + h) * S + s) * LANES)
                if is_zero(mu):
                    continue  # adds nothing, bit for bit
                spent = load(scratch.cost_s, (g * S + s) * LANES)
                pseudo = load(scratch.pseudo_s, (g * S + s) * LANES)
                at = ((g * H + h) * S + s) * A * LANES
                l_at = (h * S + s) * A
                for a in range(A):
                    w = mu * load(policy, at + a * LANES)
                    spent = fma(w, losses.tables[loss_at + l_at + a], spent)
                    if has_mean:
                        pseudo = fma(w, losses.means[l_at + a], pseudo)
                    if h + 1 < H:
                        row = ((t * S + s) * A + a) * n
                        for j in range(row, row + n):
                            place = (following + world.successors[j]) * LANES
                            reach = load(scratch.occupancy, place)
                            store(scratch.occupancy, place, fma(w, world.probabilities[j], reach))
                store(scratch.cost_s, (g * S + s) * LANES, spent)
                store(scratch.pseudo_s, (g * S + s) * LANES, pseudo)


@njit(cache=True, forceinline=True)
def improve(sizes, world, numbers, policy, log_policy, scratch):
    """The bonus, backwards, and every row of the next policy."""
    packs, H, S, A, T, n = sizes[:6]
    for g in range(packs):
        for h in range(H - 1, -1, -1):
            t = 0 if T == 1 else h
            next_value = ((h + 1) % 2 * packs + g) * S
            value = (h % 2 * packs + g) * S
            seen = load(scratch.visited, (g * H + h) * LANES)
            estimate = load(scratch.total, g * LANES) / load(scratch.reached, (g * H + h) * LANES)
            estimate = estimate * numbers.step_size
            factor = exp_bounded(greater(spread(0.0) - estimate, LOWEST))
            for s in range(S):
                for a in range(A):
                    future = spread(0.0)
                    if h + 1 < H:
                        row = ((t * S + s) * A + a) * n
                        for j in range(row, row + n):
                            ahead = load(scratch.values, (next_value + world.successors[j]) * LANES)
                            future = fma(ahead, world.probabilities[j], future)
                    store(scratch.future, a * LANES, future)
                mu = load(scratch.occupancy, ((g * H + h) * S + s) * LANES)
                at = ((g * H + h) * S + s) * A * LANES
                b = improve_row(
                    policy, log_policy, at, A, mu, scratch.future, 0, numbers, seen, s * A, factor, estimate,
                    scratch.product, scratch.row,
                )  # fmt: skip
                store(scratch.values, (value + s) * LANES, b)


@njit(cache=True, nogil=True, error_model="numpy")
def play(sizes, world, losses, numbers, first, first_replica, seed, replicas, scratch):
    """Play episodes first ... first + n - 1 of some packs of replicas."""
    packs, H, S = sizes[:3]
    episodes = losses.row_n.shape[0]
    world, losses, replicas, scratch = pointers(world), pointers(losses), pointers(replicas), pointers(scratch)
    begin(sizes, world.initial, scratch.occupancy)
    for i in range(episodes):
        follow(sizes, world, losses, i, replicas.policy, scratch)
        for g in range(packs):
            add_costs(scratch.cost_s, g * S * LANES, S, replicas.cost, 2 * g * LANES)
            if sizes.means > 0:
                add_costs(scratch.pseudo_s, g * S * LANES, S, replicas.pseudo_cost, 2 * g * LANES)
            draw(first_replica + g * LANES, first + i, seed, H, scratch.uniforms)
            play_out(sizes, world, losses, i, g, numbers.exploration, replicas.policy, scratch)
        improve(sizes, world, numbers, replicas.policy, replicas.log_policy, scratch)
