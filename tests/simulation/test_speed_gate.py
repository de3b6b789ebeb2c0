"""A kernel that loses its compilation or its vector instructions fails here.

No absolute times: each speed is compared with a plain NumPy loop, or with the one-replica kernel, played in turn within
the same run, and the best of three rounds counts, so that a busy machine slows both sides.  The gates stand at about a
third of the ratios measured on a busy two-core machine (NumPy loop: 80 to 240 times for one replica, 1 100 times for
Algorithm 2, 150 times with narrow sets; lanes over one replica: 2.4 to 3.9 times).
"""

import time
from collections.abc import Callable
from typing import Any

import pytest

import aggbandit as ab
from aggbandit.experiments.bench import numpy_loops
from aggbandit.learners.base import Problem
from aggbandit.simulation.losses import LossReader
from aggbandit.simulation.run import Simulation, checkpoint_episodes, single_threaded_blas

MDP = ab.instances.make("random", states=10, actions=4, horizon=10, seed=0)
LOSSES = ab.adversaries.make("fixed", MDP, table="random", seed=0)
TABLE = LOSSES.tables(0, 1)[0]
STEP = 1e-4
ROUNDS = 3

Timed = Callable[[], float]  # episodes a second of one round


def fused(name: str, episodes: int, replicas: int, use_fused: bool = True, **arguments: Any) -> Timed:
    learner = ab.learners.make(name, step_size=STEP, **arguments)

    def timed() -> float:
        problem = Problem.of(MDP, episodes, learner.needs)
        simulation = Simulation(
            MDP, LossReader(LOSSES, MDP, episodes), learner.bound(problem), problem, replicas=replicas, seed=0,
            checkpoints=checkpoint_episodes(1, episodes), fused=use_fused,
        )  # fmt: skip
        with single_threaded_blas():
            simulation.play()
        return simulation.result(keep_policy=False).episodes_per_second

    return timed


def plain(play: Callable[[int], float], episodes: int) -> Timed:
    def timed() -> float:
        began = time.perf_counter()
        play(episodes)
        return episodes / (time.perf_counter() - began)

    return timed


def ratio(fast: Timed, slow: Timed) -> float:
    """Best of `fast` over best of `slow`, played in turn."""
    rounds = [(fast(), slow()) for _ in range(ROUNDS)]
    return max(a for a, _ in rounds) / max(b for _, b in rounds)


numpy_known = plain(lambda K: numpy_loops.known(MDP, TABLE, K, STEP), 200)
numpy_unknown = plain(lambda K: numpy_loops.unknown(MDP, TABLE, K, STEP, 0.05, 1.0), 8)

GATES = {
    "one replica": (fused("po-known", 10_000, 1), numpy_known, 25.0),
    "lanes": (fused("po-known", 1_000, 64), fused("po-known", 20_000, 1), 1.4),
    "unknown": (fused("po-unknown", 1_500, 1), numpy_unknown, 300.0),
    "unknown, narrow sets": (fused("po-unknown", 1_000, 1, radius_scale=0.01), numpy_unknown, 45.0),
}


@pytest.mark.parametrize("gate", GATES)
def test_kernels_keep_their_speed(gate: str) -> None:
    fast, slow, least = GATES[gate]
    found = ratio(fast, slow)
    assert found >= least, f"only {found:.1f} times as fast"


def test_a_kernel_that_is_not_compiled_fails_the_gate() -> None:
    """The plain loop, one compiled update at a time, stands for a kernel that lost its fusion."""
    _, slow, least = GATES["one replica"]
    assert ratio(fused("po-known", 400, 1, use_fused=False), slow) < least
    assert ratio(numpy_known, fused("po-known", 20_000, 1)) < GATES["lanes"][2]
