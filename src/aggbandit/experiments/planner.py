"""How long a run will take and how much memory it will hold: a short trial on this machine, then arithmetic.

A formula of cost would be a formula for one machine; a trial of the same size, a second or two long, knows the
processor, the threads and whoever else is using them.  What a trial cannot see is what changes during a run: the
confidence sets of `po-unknown` are whole simplices at first, which costs little, and bite later.  Both regimes are
timed, and the number of episodes in each follows from the radius.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

import numpy as np

from aggbandit import adversaries, learners
from aggbandit._checks import require_integer, require_number
from aggbandit.learners.base import Learner, Problem
from aggbandit.learners.parts.confidence_sets import logarithm
from aggbandit.learners.po_unknown import PolicyOptimizationUnknown
from aggbandit.mdp import instances
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.registry import choose
from aggbandit.simulation.losses import LossReader
from aggbandit.simulation.run import DEFAULT_CHECKPOINTS, Simulation, checkpoint_episodes, single_threaded_blas

TRIAL_SECONDS = 0.6
SETTLED = 10.0  # times the episodes until sets begin to bite: by then most do
BITING_RADIUS = 1e-3  # a radius scale at which sets bite after a few visits
MIB = 2.0**20


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a run is expected to need."""

    seconds: float
    peak_bytes: float  # of the process, with all that is loaded
    held_bytes: float  # of it, what the run itself holds
    episodes_per_second: float  # all replicas together, over the whole run
    started: float  # seconds that compiling or loading kernels took just now, not part of `seconds`
    notes: tuple[str, ...]


def forecast(
    learner: Any,
    *,
    H: int,
    S: int,
    A: int,
    episodes: int,
    replicas: int = 1,
    threads: int = 1,
    stationary: bool = False,
    successors: int | None = None,
    keep_policy: bool = True,
    trial_seconds: float = TRIAL_SECONDS,
) -> Forecast:
    """Play a little of the run on a random instance of that size, and extrapolate."""
    for name, value in (("H", H), ("S", S), ("A", A), ("episodes", episodes), ("replicas", replicas)):
        require_integer(name, value, low=1)
    require_integer("threads", threads, low=1)
    require_number("trial_seconds", trial_seconds, low=0.0, low_open=True)
    chosen = learners.as_learner(learner)
    mdp = random_mdp(H, S, A, stationary=stationary, successors=successors)
    reader = LossReader(adversaries.make("fixed", mdp, table="random", seed=0), mdp, episodes)

    def simulation(learner: Learner[Any], replicas: int) -> Simulation:
        problem = Problem.of(mdp, episodes, learner.needs)
        marks = checkpoint_episodes(1, episodes)
        return Simulation(mdp, reader, learner.bound(problem), problem, replicas=replicas, seed=0, checkpoints=marks)

    return forecast_of(
        simulation, chosen, mdp, episodes=episodes, replicas=replicas, threads=threads, keep_policy=keep_policy,
        trial_seconds=trial_seconds,
    )  # fmt: skip


def forecast_of(
    simulation: Callable[[Learner[Any], int], Simulation],
    chosen: Learner[Any],
    mdp: TabularMDP,
    *,
    episodes: int,
    replicas: int,
    threads: int,
    keep_policy: bool,
    trial_seconds: float,
    whole: bool = False,
) -> Forecast:
    """Play a little of the run that `simulation` makes for a learner and a number of replicas, and extrapolate.

    whole: all replicas are tried at once, where they are not played in groups (on a GPU).
    """
    width = replicas if whole else _width(mdp, chosen, episodes, replicas)
    groups = ceil(replicas / width)
    tried = min(replicas, width * min(threads, groups))
    trial = _Trial(simulation(chosen, tried), threads, trial_seconds)
    if trial.blocks <= 2 and trial.played < episodes:  # what was compiled on the way took the time: now it is there
        started = trial.started
        trial = _Trial(simulation(chosen, tried), threads, trial_seconds)
        trial.started += started
    per_episode = trial.seconds_per_episode()
    notes = [f"{trial.played} episodes × {tried} replicas played in {trial.took:.2f} s"]
    seconds = trial.took + (episodes - trial.played) * per_episode
    if isinstance(chosen, PolicyOptimizationUnknown):
        calm = _episodes_before_sets_bite(chosen, mdp, episodes)
        if calm < episodes and trial.played < min(episodes, SETTLED * calm):
            per_episode = trial.seconds_per_episode(calm)
            late = _Trial(simulation(replace(chosen, radius_scale=BITING_RADIUS), tried), threads, trial_seconds)
            seconds = calm * per_episode + (episodes - calm) * late.seconds_per_episode()
            notes.append(f"confidence sets begin to bite after about {calm:.0f} episodes, and cost more from then on")
    rounds = ceil(groups / threads) / ceil(ceil(tried / width) / threads)
    seconds *= rounds
    held = trial.engine_bytes() * replicas / tried + 3 * 8.0 * replicas * DEFAULT_CHECKPOINTS
    if keep_policy:
        held += 2 * 8.0 * replicas * mdp.H * mdp.S * mdp.A  # the engines' parts and the whole
    return Forecast(
        seconds=seconds,
        peak_bytes=held + trial.resident_bytes - trial.engine_bytes(),
        held_bytes=held,
        episodes_per_second=episodes * replicas / seconds,
        started=trial.started,
        notes=tuple(notes),
    )


def random_mdp(H: int, S: int, A: int, *, stationary: bool = False, successors: int | None = None) -> TabularMDP:
    """An instance to try on: dense, or with so many successors per row (then stationary)."""
    if successors is None:
        return instances.make("random", states=S, actions=A, horizon=H, stationary=stationary, seed=0)
    n = require_integer("successors", successors, low=1, high=S)
    rng = np.random.default_rng(0)
    return TabularMDP.sparse(rng.integers(S, size=(S, A, n)), rng.dirichlet(np.ones(n), (S, A)), H)


class _Trial:
    """A run of the same size, stopped by the clock."""

    def __init__(self, simulation: Simulation, threads: int, seconds: float) -> None:
        self.simulation = simulation
        self._limit = seconds
        self._history: list[tuple[int, float]] = []
        self.started = 0.0
        self._began = time.perf_counter()
        with single_threaded_blas(), contextlib.suppress(_Enough):
            simulation.play(threads=threads, report=self._watch)
        self.played, self.took = self._history[-1]
        self.blocks = len(self._history)
        self.resident_bytes = resident_bytes()

    def _watch(self, progress: Any) -> None:
        if progress.compiling:
            return
        if not self._history:
            self.started = time.perf_counter() - self._began - progress.seconds
        self._history.append((progress.done, progress.seconds))
        if progress.seconds > self._limit:
            raise _Enough

    def seconds_per_episode(self, until: float = inf) -> float:
        """Of all replicas together, over the second half: in the first, caches, boxes and blocks are still fresh.

        Only the first `until` episodes count, as far as blocks were that small.
        """
        seen = [one for one in self._history if one[0] <= until] or self._history[:1]
        last, last_seconds = seen[-1]
        earlier = [(done, seconds) for done, seconds in seen[:-1] if done <= last / 2]
        done, seconds = earlier[-1] if earlier else (0, 0.0)
        return (last_seconds - seconds) / (last - done)

    def engine_bytes(self) -> float:
        """Of all arrays that the engines hold."""
        return float(sum(_array_bytes(vars(engine)) for engine in self.simulation.engines))


class _Enough(Exception):
    """The trial has run long enough."""


def _width(mdp: TabularMDP, learner: Learner[Any], episodes: int, replicas: int) -> int:
    problem = Problem.of(mdp, episodes, learner.needs)
    return choose(mdp, problem, learner, replicas)[1]


def _episodes_before_sets_bite(learner: PolicyOptimizationUnknown, mdp: TabularMDP, episodes: int) -> float:
    """When a row visited as often as the average one has a radius under 1 everywhere: 10 c ln(…) S A visits in all."""
    log_term = logarithm(mdp.H, mdp.S, mdp.A, episodes, learner.confidence)
    return 10.0 * learner.radius_scale * log_term * mdp.S * mdp.A


def _array_bytes(node: Any, seen: set[int] | None = None) -> int:
    """Of every array in nested containers, each memory once; models and problems are counted elsewhere."""
    seen = set() if seen is None else seen
    if isinstance(node, np.ndarray):
        owner = node
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if id(owner) in seen:
            return 0
        seen.add(id(owner))
        return owner.nbytes
    if isinstance(node, dict):
        return sum(_array_bytes(item, seen) for item in node.values())
    if isinstance(node, (list, tuple)):
        return sum(_array_bytes(item, seen) for item in node)
    return 0


def resident_bytes() -> float:
    """What this process holds now; a guess of 200 MiB where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
        import resource

        return float(pages * resource.getpagesize())
    except (OSError, ImportError):
        return 200 * MIB
