"""Algorithm 1: how fast, compared with other loops timed in turn in the same process.

    python -m benchmarks.known [--sizes 10,10,4 5,5,3 20,100,10] [--replicas 256] [--yardstick FILE] [--growth]

Figures are episodes a second of one core, all replicas together, the whole loop with sampling and exact cost.  Time is
this thread's processor time, so that a busy machine changes ratios little; each loop's best of several turns counts.
`--yardstick` names a Python file with `rate(H, S, A, K, R)` to be compared with as well.
"""

import argparse
import importlib.util
import math
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import njit

import aggbandit as ab
from aggbandit.experiments.bench import numpy_loops
from aggbandit.learners.base import Problem
from aggbandit.simulation.engines import po_known as engines
from aggbandit.simulation.engines.base import LossBlock

TURNS = 4
SECONDS = 0.3  # of each turn
Rate = Callable[[], float]


def best_in_turn(rates: dict[str, Rate], turns: int = TURNS) -> dict[str, float]:
    """The best of each, called one after the other `turns` times, so that all meet the same neighbours."""
    best = dict.fromkeys(rates, 0.0)
    for _ in range(turns):
        for name, rate in rates.items():
            best[name] = max(best[name], rate())
    return best


def model(H: int, S: int, A: int, stationary: bool = False) -> tuple[ab.TabularMDP, Any]:
    """A random dense model and a loss table."""
    rng = np.random.default_rng(0)
    transition = rng.dirichlet(np.ones(S), size=(S, A) if stationary else (H, S, A))
    return ab.TabularMDP(transition, H if stationary else None), rng.random((H, S, A))


def engine_rate(
    mdp: ab.TabularMDP, table: Any, replicas: int, episodes: int = 10**6, with_mean: bool = False, **arguments: Any
) -> Rate:
    """Episodes a second of the engine that `run` would choose; the step size is that of `episodes` episodes."""
    learner = ab.learners.make("po-known", **arguments)
    problem = Problem.of(mdp, episodes, learner.needs)
    cls, width = engines.choose(mdp, problem, learner, replicas)
    played = [cls(mdp, problem, learner, 0, r, min(width, replicas - r)) for r in range(0, replicas, width)]
    place = 0

    def play(n: int) -> float:
        nonlocal place
        block = LossBlock(place, table[None].copy(), np.zeros(n, np.int64), table.copy() if with_mean else None)
        place += n
        began = time.thread_time()
        for engine in played:
            engine.play(block)
        return time.thread_time() - began

    return _rate(play, replicas)


def _rate(play: Callable[[int], float], replicas: int = 1) -> Rate:
    """A function that plays for about SECONDS; `play(n)` plays n episodes and says how long it took."""
    play(1)  # compiles
    n = 1
    while play(n) < SECONDS / 8:
        n *= 2
    n *= 4

    def rate() -> float:
        return n * replicas / play(n)

    return rate


def scalar_rate(mdp: ab.TabularMDP, table: Any, step: float) -> Rate:
    """Episodes a second of a plain compiled loop, one replica."""
    H, S, A = table.shape
    policy = np.full((H, S, A), 1.0 / A)
    cumulative = np.ascontiguousarray(np.broadcast_to(mdp.stored.cumsum(axis=-1), (H, S, A, S)))
    transition = np.ascontiguousarray(mdp.transition)

    def play(n: int) -> float:
        began = time.thread_time()
        scalar_loop(transition, cumulative, table, n, step, 2 * step * H, policy)
        return time.thread_time() - began

    return _rate(play)


@njit(cache=True, fastmath=True, error_model="numpy")
def scalar_loop(p, cumulative, loss, episodes, step, gamma, policy):  # type: ignore[no-untyped-def]
    """Algorithm 1 as one would write it in compiled loops."""
    H, S, A = loss.shape
    mu = np.zeros((H, S))
    value, following, exponent = np.zeros(S), np.zeros(S), np.zeros((S, A))
    states, actions = np.zeros(H, np.int64), np.zeros(H, np.int64)
    mu[0, 0] = 1.0
    cost = 0.0
    for _ in range(episodes):
        for h in range(H):
            if h + 1 < H:
                mu[h + 1] = 0.0
            for s in range(S):
                for a in range(A):
                    w = mu[h, s] * policy[h, s, a]
                    cost += w * loss[h, s, a]
                    if h + 1 < H:
                        for t in range(S):
                            mu[h + 1, t] += w * p[h, s, a, t]
        s, total = 0, 0.0
        for h in range(H):
            u, a = np.random.random(), 0  # noqa: NPY002  # the only one that compiled code has
            below = policy[h, s, 0]
            while below <= u and a < A - 1:
                a += 1
                below += policy[h, s, a]
            states[h], actions[h] = s, a
            total += loss[h, s, a]
            u, t = np.random.random(), 0  # noqa: NPY002
            while cumulative[h, s, a, t] <= u and t < S - 1:
                t += 1
            s = t
        following[:] = 0.0
        for h in range(H - 1, -1, -1):
            for s in range(S):
                bonus = 0.0
                value[s] = 0.0
                for a in range(A):
                    bonus += 3 * gamma * H * policy[h, s, a] / (mu[h, s] * policy[h, s, a] + gamma)
                for a in range(A):
                    ahead = bonus
                    if h + 1 < H:
                        for t in range(S):
                            ahead += p[h, s, a, t] * following[t]
                    value[s] += policy[h, s, a] * ahead
                    exponent[s, a] = step * ahead
            s, a = states[h], actions[h]
            exponent[s, a] -= step * total / (mu[h, s] * policy[h, s, a] + gamma)
            for s in range(S):
                weight = 0.0
                for a in range(A):
                    policy[h, s, a] *= math.exp(exponent[s, a])
                    weight += policy[h, s, a]
                for a in range(A):
                    policy[h, s, a] /= weight
            following[:] = value
    return cost


def numpy_rate(mdp: ab.TabularMDP, table: Any, step: float) -> Rate:
    """Episodes a second of array expressions, one replica."""

    def play(n: int) -> float:
        began = time.thread_time()
        numpy_loops.known(mdp, table, n, step)
        return time.thread_time() - began

    return _rate(play)


def product_rate(S: int, A: int, R: int) -> Rate:
    """Multiply-adds a second, times two, of this machine's matrix product (S × S A) @ (S A × R)."""
    rng = np.random.default_rng(0)
    left, right = rng.random((S, S * A)), rng.random((S * A, R))

    def play(n: int) -> float:
        began = time.thread_time()
        for _ in range(n):
            left @ right
        return time.thread_time() - began

    rate = _rate(play)
    return lambda: rate() * 2 * S * S * A * R


def yardstick_rate(path: str, H: int, S: int, A: int, K: int, R: int) -> Rate:
    """The rate that the file's `rate(H, S, A, K, R)` says, by the clock used here."""
    spec = importlib.util.spec_from_file_location("yardstick", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no Python file.")
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.time = SimpleNamespace(perf_counter=time.thread_time)
    return lambda: float(module.rate(H, S, A, K, R))


def compare(H: int, S: int, A: int, R: int, yardstick: str | None = None) -> dict[str, float]:
    """All rates at one size, and the ratios that matter."""
    from aggbandit.simulation.run import single_threaded_blas

    mdp, table = model(H, S, A)
    step = 1e-4
    rates = {
        "many": engine_rate(mdp, table, R),
        "many, cost twice": engine_rate(mdp, table, R, with_mean=True),
        "one": engine_rate(mdp, table, 1),
        "scalar": scalar_rate(mdp, table, step),
        "numpy": numpy_rate(mdp, table, step),
        "product": product_rate(S, A, R),
    }
    if yardstick is not None:
        episodes = max(20, int(4e7 / (H * S * A * S * R)))
        rates["yardstick"] = yardstick_rate(yardstick, H, S, A, episodes, R)
    with single_threaded_blas():
        best = best_in_turn(rates)
    flops = 4 * (H - 1) * S * S * A * best["many"]
    ratios = {
        "gflops": flops / 1e9,
        "share of exact cost": best["many"] / best["many, cost twice"] - 1,  # what a second table's costs add
        "share of product": flops / best["product"],
        "many / numpy": best["many"] / best["numpy"],
        "one / scalar": best["one"] / best["scalar"],
    }
    if yardstick is not None:
        ratios["many / yardstick"] = best["many"] / best["yardstick"]
    return best | ratios


def growth(R: int = 64) -> dict[tuple[int, int, int, int], float]:
    """Microseconds an episode and replica, each of H, S, A and R varied by itself."""
    sizes = [(10, 20, 4, R)]
    sizes += [(H, 20, 4, R) for H in (5, 20, 40)]
    sizes += [(10, S, 4, R) for S in (5, 10, 40, 80, 160)]
    sizes += [(10, 20, A, R) for A in (2, 8, 16, 32)]
    sizes += [(10, 20, 4, replicas) for replicas in (1, 2, 4, 8, 16, 32, 256)]
    rates = {size: engine_rate(*model(*size[:3]), size[3]) for size in sizes}
    best = best_in_turn(rates, 3)  # type: ignore[arg-type, type-var]
    return {size: 1e6 / rate for size, rate in best.items()}  # type: ignore[misc]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", nargs="*", default=["10,10,4", "5,5,3", "20,100,10"])
    parser.add_argument("--replicas", type=int, default=256)
    parser.add_argument("--yardstick")
    parser.add_argument("--growth", action="store_true")
    given = parser.parse_args()
    for text in given.sizes:
        H, S, A = (int(part) for part in text.split(","))
        print(f"H, S, A = {H}, {S}, {A}, {given.replicas} replicas")
        for name, value in compare(H, S, A, given.replicas, given.yardstick).items():
            print(f"  {name:18s} {value:16,.2f}")
    if given.growth:
        print("H, S, A, R: microseconds an episode and replica")
        for size, value in growth().items():
            print(f"  {size!s:20s} {value:10.3f}")


if __name__ == "__main__":
    main()
