"""Where the time of an episode of Algorithm 1 goes, and how far that is from this core's limits.

    python -m benchmarks.parts [--sizes 10,10,4 5,5,3 20,100,10] [--replicas 256]

Each part of the lanes' kernel is played by itself, over and over on the same numbers, and its share is that of their
sum.  The limits are measured in the same run: multiply-adds in registers alone, and copying beyond all caches.
"""

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

import aggbandit as ab
from aggbandit.kernels import po_known_lanes as kernel
from aggbandit.kernels.simd import fma, load, pointers, store
from aggbandit.learners.base import Problem
from aggbandit.simulation.engines.base import LossBlock
from aggbandit.simulation.engines.po_known import LanesEngine
from benchmarks.known import SECONDS, TURNS, model

COPIED = 2**26  # doubles: beyond all caches
CHAINS = 10  # multiply-adds under way at once


@njit
def reaching(n, sizes, world, losses, scratch, replicas):  # type: ignore[no-untyped-def]
    world, losses, scratch, replicas = pointers(world), pointers(losses), pointers(scratch), pointers(replicas)
    start, stop = kernel.begin(sizes, world.initial, scratch.occupancy)
    for _ in range(n):
        kernel.follow(sizes, world, losses, 0, start, stop, replicas.policy, scratch)


@njit
def drawing(n, sizes, scratch, seed):  # type: ignore[no-untyped-def]
    scratch = pointers(scratch)
    for i in range(n):
        for g in range(sizes.packs):
            kernel.draw(g * kernel.LANES, i, seed, sizes.H, scratch.uniforms)


@njit
def sampling(n, sizes, world, losses, scratch, replicas, exploration):  # type: ignore[no-untyped-def]
    world, losses, scratch, replicas = pointers(world), pointers(losses), pointers(scratch), pointers(replicas)
    for _ in range(n):
        for g in range(sizes.packs):
            kernel.play_out(sizes, world, losses, 0, g, exploration, replicas.policy, scratch)


@njit
def improving(n, sizes, world, numbers, scratch, replicas):  # type: ignore[no-untyped-def]
    world, scratch, replicas = pointers(world), pointers(scratch), pointers(replicas)
    for _ in range(n):
        kernel.improve(sizes, world, numbers, replicas.policy, replicas.log_policy, scratch)


class Numbers(NamedTuple):
    of_lanes: np.ndarray  # two vectors that are read, one that is written


@njit
def multiplying(n, numbers):  # type: ignore[no-untyped-def]
    """CHAINS independent chains of vector multiply-adds."""
    numbers = pointers(numbers).of_lanes
    x, y = load(numbers, 0), load(numbers, kernel.LANES)
    a, b, c, d, e = x, y, x + y, x + x, y + y
    f, g, h, i, j = a + c, b + c, c + c, d + c, e + c
    for _ in range(n):
        a, b, c, d, e = fma(a, x, y), fma(b, x, y), fma(c, x, y), fma(d, x, y), fma(e, x, y)
        f, g, h, i, j = fma(f, x, y), fma(g, x, y), fma(h, x, y), fma(i, x, y), fma(j, x, y)
    store(numbers, 2 * kernel.LANES, (((a + b) + (c + d)) + ((e + f) + (g + h))) + (i + j))


def seconds(play: Callable[[int], object]) -> float:
    """Of one repetition: the best of TURNS, each long enough to be told."""
    play(1)  # compiles
    n, took = 1, 0.0
    while took < SECONDS / 8:
        n *= 4
        began = time.thread_time()
        play(n)
        took = time.thread_time() - began
    best = took / n
    for _ in range(TURNS):
        began = time.thread_time()
        play(n)
        best = min(best, (time.thread_time() - began) / n)
    return best


def parts(H: int, S: int, A: int, replicas: int) -> dict[str, float]:
    """Microseconds an episode and replica of each part."""
    mdp, table = model(H, S, A)
    learner = ab.learners.make("po-known")
    engine = LanesEngine(mdp, Problem.of(mdp, 10**6, learner.needs), learner, 0, 0, replicas)
    engine.play(LossBlock(0, table[None].copy(), np.zeros(20, np.int64), None))
    sizes, world, scratch, numbers = engine._kernel_sizes, engine._world, engine._scratch, engine._numbers
    losses = kernel.Losses(table[None].copy(), np.zeros(1, np.int64), np.empty(0))
    played = engine._changing
    plays: dict[str, Callable[[int], object]] = {
        "reach and exact cost": lambda n: reaching(n, sizes, world, losses, scratch, played),
        "draws": lambda n: drawing(n, sizes, scratch, np.uint64(0)),
        "sampling": lambda n: sampling(n, sizes, world, losses, scratch, played, numbers.exploration),
        "bonus and new policy": lambda n: improving(n, sizes, world, numbers, scratch, played),
    }
    return {name: 1e6 * seconds(play) / replicas for name, play in plays.items()}


def main() -> None:
    """Print the limits, then the parts of each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", nargs="*", default=["10,10,4", "5,5,3", "20,100,10"])
    parser.add_argument("--replicas", type=int, default=256)
    given = parser.parse_args()
    numbers = Numbers(np.linspace(0.1, 0.9, 3 * kernel.LANES))
    arithmetic = 2e-9 * CHAINS * kernel.LANES / seconds(lambda n: multiplying(n, numbers))
    source, target = np.ones(COPIED), np.empty(COPIED)
    memory = 2 * 8e-9 * COPIED / seconds(lambda n: [np.copyto(target, source) for _ in range(n)])
    print(f"one core: {arithmetic:.0f} GFLOP/s of multiply-adds in registers, {memory:.0f} GB/s of copying")
    for text in given.sizes:
        H, S, A = (int(part) for part in text.split(","))
        found = parts(H, S, A, given.replicas)
        whole = sum(found.values())
        told = ", ".join(f"{name} {took:.3g} ({took / whole:.0%})" for name, took in found.items())
        rate = 4e-3 * (H - 1) * S * S * A / whole
        print(f"{H}, {S}, {A}: {whole:.3g} µs, recursions {rate:.0f} GFLOP/s, {rate / arithmetic:.0%} of the core's")
        print(f"  {told}")


if __name__ == "__main__":
    main()
