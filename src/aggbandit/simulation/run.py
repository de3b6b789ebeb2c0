"""Many replicas of one learner on one loss sequence, with exact regret at checkpoints."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aggbandit import _files
from aggbandit._arrays import IntArray
from aggbandit._checks import as_array, place, require_flag, require_integer
from aggbandit.errors import InvalidInputError
from aggbandit.learners import as_learner, require_told
from aggbandit.learners.base import Problem
from aggbandit.learners.parts.linear_mdp import require_expressive
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.planning import best_policy
from aggbandit.simulation.engines.base import Engine, LossBlock
from aggbandit.simulation.engines.places import CPU, Places, gpus_of
from aggbandit.simulation.engines.plain import PlainEngine
from aggbandit.simulation.engines.registry import choose, choose_on_gpu, require_on_gpu
from aggbandit.simulation.interrupts import interrupts_held
from aggbandit.simulation.losses import LossReader, LossSum
from aggbandit.simulation.result import LearnerRecord, RunResult, read_only
from aggbandit.simulation.session import MAX_SEED
from aggbandit.simulation.state_trees import classes_of

DEFAULT_CHECKPOINTS = 60
BLOCK_SECONDS = 0.2  # between two looks at progress and interrupts
SAVE_SECONDS = 60.0
STATE_KIND = "run-state"
STATE_FORMAT = 1
MAX_REPLICAS = 2**32 - 1  # one word of the random numbers' counter
MAX_EPISODES = 2**32 - 1  # another
TAKE_LATE_FEEDBACK = ("dapo", "po-model-free", "po-practical")  # and what learns nothing


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is; handed to a `progress` callable between blocks."""

    learner: str
    done: int  # episodes played, of every replica
    episodes: int  # K
    replicas: int
    seconds: float  # of play so far, compilation left out
    compiling: bool  # the kernels are being compiled or loaded; nothing is played yet

    @property
    def seconds_left(self) -> float:
        """At the rate so far."""
        return self.seconds * (self.episodes - self.done) / self.done if self.done else float("inf")


def run(
    mdp: TabularMDP,
    losses: Any,
    learner: Any,
    *,
    episodes: int,
    replicas: int = 1,
    seed: int = 0,
    checkpoints: int | Any | None = None,
    threads: int | None = None,
    evaluate_every: int = 1,
    delays: Any = None,
    keep_policy: bool = True,
    progress: bool | Callable[[Progress], None] = False,
    state_file: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    dtype: str = "float64",
) -> RunResult:
    """Play `episodes` episodes of `learner` (an id or a configured learner), `replicas` times independently.

    `losses` is an adversary or any object with `.tables(start, stop)`.  Regret is exact, by dynamic programming
    against the best fixed policy for the episodes up to each checkpoint.  The result depends on (mdp, losses,
    learner, episodes, seed) alone: not on threads, blocks, interruptions, or how many other replicas there are.

    checkpoints     None: 60 of them, log-spaced; an int: how many, log-spaced; an array: which.  K is always the last.
    threads         replicas are spread over so many threads; None: as many as this process may use.
    evaluate_every  n > 1 evaluates each n-th policy only (learners with a fused engine that evaluates at no extra
                    cost ignore it); the result says so.
    delays          feedback of episode k arrives after episode k + delays[k]; an int, or (K,) ints; only for
                    learners that take late feedback.
    progress        True: a line on standard error; or a function called with a `Progress` between blocks.
    state_file      the run's state is saved there every minute and on Ctrl-C, and taken up from there if it exists.
    device          "cuda" plays on a GPU (extra `cuda`), "cuda:1" on the second, "cuda:0,1" splits the replicas over
                    two.  In float64 every replica follows the CPU's, policies equal to 1e-9 over thousands of episodes.
    dtype           "float32" holds policies in single precision, on a GPU only; costs are summed in float64 always.

    >>> import aggbandit as ab
    >>> mdp = ab.instances.make("random", states=3, actions=2, horizon=3, seed=0)
    >>> losses = ab.adversaries.make("fixed", mdp, seed=0)
    >>> result = ab.run(mdp, losses, "po-known", episodes=100, replicas=2, seed=0)
    >>> result.regret.shape == (2, result.episodes.size)
    True
    """
    if not isinstance(mdp, TabularMDP):
        raise InvalidInputError(f"mdp must be an aggbandit.TabularMDP, but is {type(mdp).__name__}.")
    K = require_integer("episodes", episodes, low=1, high=MAX_EPISODES)
    R = require_integer("replicas", replicas, low=1, high=MAX_REPLICAS)
    seed = require_integer("seed", seed, low=0, high=MAX_SEED)
    require_integer("evaluate_every", evaluate_every, low=1)
    require_flag("keep_policy", keep_policy)
    report = _reporter(progress)
    workers = thread_count(threads)
    marks = checkpoint_episodes(checkpoints, K)
    chosen = as_learner(learner)
    problem = Problem.of(mdp, K, chosen.needs)
    bound = chosen.bound(problem)
    waits = _delays(delays, K, bound)
    if gpus_of(device):  # before a GPU is looked for: no machine's would do
        require_on_gpu(bound, waits is not None)
    places = Places.parse(device, dtype)
    reader = LossReader(losses, mdp, K)
    simulation = Simulation(
        mdp, reader, bound, problem, replicas=R, seed=seed, checkpoints=marks, evaluate_every=evaluate_every,
        delays=waits, places=places,
    )  # fmt: skip
    # on a GPU the CPU multiplies no matrices, and needs no package to keep it to one thread
    with contextlib.nullcontext() if simulation.places.gpus else single_threaded_blas():
        simulation.play(threads=workers, report=report, state_file=state_file)
    return simulation.result(keep_policy=keep_policy)


class Simulation:
    """A run under way: engines, sums and curves; everything that a saved state must hold."""

    def __init__(
        self,
        mdp: TabularMDP,
        reader: LossReader,
        learner: Any,
        problem: Problem,
        *,
        replicas: int,
        seed: int,
        checkpoints: IntArray,
        evaluate_every: int = 1,
        delays: IntArray | None = None,
        fused: bool = True,
        places: Places = CPU,
    ) -> None:
        self.mdp, self.reader, self.learner, self.problem = mdp, reader, learner, problem
        if learner.linear_features is not None:
            require_expressive(learner.linear_features, mdp, reader.mean_hsa)
        self.replicas, self.seed, self.checkpoints = replicas, seed, checkpoints
        self.places = places
        engine, width = choose(mdp, problem, learner, replicas, fused and delays is None)
        self.evaluate_every = 1 if engine.exact_every else evaluate_every
        self.engines: list[Engine] = self._engines_on_gpus()
        if not self.engines:
            self.places = CPU
            extra = {"delays": delays} if issubclass(engine, PlainEngine) else {}
            self.engines = [
                engine(mdp, problem, learner, seed, first, min(width, replicas - first), self.evaluate_every, **extra)
                for first in range(0, replicas, width)
            ]
        self._delays = delays
        self._sum = LossSum(reader.shape)
        self._done = 0
        self._seconds = 0.0
        C = checkpoints.size
        self._cost = np.zeros((replicas, C))
        self._pseudo_cost = np.zeros((replicas, C))
        self._comparator = np.zeros(C)
        self._hindsight = np.zeros((mdp.H, mdp.S), np.int64)

    def _engines_on_gpus(self) -> list[Engine]:
        """One for each GPU, the replicas split evenly; none where the CPU plays."""
        gpus = self.places.gpus[: self.replicas]
        found: list[Engine] = []
        for i, gpu in enumerate(gpus):
            first, stop = self.replicas * i // len(gpus), self.replicas * (i + 1) // len(gpus)
            cls = choose_on_gpu(self.mdp, self.problem, self.learner, stop - first, gpu)
            if cls is not None:
                found.append(
                    cls(
                        self.mdp, self.problem, self.learner, self.seed, first, stop - first, self.evaluate_every,
                        device=gpu, dtype=self.places.dtype,
                    )
                )  # fmt: skip
        return found

    def play(
        self,
        *,
        threads: int = 1,
        report: Callable[[Progress], None] | None = None,
        state_file: str | os.PathLike[str] | None = None,
        block_episodes: int | None = None,
    ) -> None:
        """Play on to the end; `block_episodes` fixes the size of a block, which is otherwise set by the clock."""
        if state_file is not None:
            require_told(self.learner)
            if _is_state(state_file):
                self.load(state_file)
        tell = report or (lambda progress: None)
        tell(self._progress(compiling=True))
        for engine in self.engines if self.places.gpus else self.engines[:1]:
            engine.play(self.reader.empty())
        self._sum.add(self.reader.empty())
        best_policy(self.mdp, self._sum.total())
        try:
            with self._pool(threads) as pool:
                self._play_on(pool, tell, state_file, block_episodes)
        except KeyboardInterrupt:
            if state_file is not None:  # whole blocks only: see `_play_block`
                self.save(state_file)
            raise

    def _pool(self, threads: int) -> ThreadPoolExecutor | contextlib.nullcontext[None]:
        if self.places.gpus:
            threads = len(self.engines)  # a thread each, to wait for it
        several = threads > 1 and len(self.engines) > 1
        return ThreadPoolExecutor(threads) if several else contextlib.nullcontext()

    def _play_on(
        self,
        pool: ThreadPoolExecutor | None,
        tell: Callable[[Progress], None],
        state_file: str | os.PathLike[str] | None,
        block_episodes: int | None,
    ) -> None:
        saved = time.monotonic()
        size = block_episodes or 1
        first = 0, 0.0  # episodes and seconds of the first block
        while self._done < self.episodes:
            mark = int(self.checkpoints[np.searchsorted(self.checkpoints, self._done, side="right")])
            began = time.perf_counter()
            block = self.reader.block(self._done, min(mark, self._done + size))
            self._play_block(block, pool)
            took = time.perf_counter() - began
            n = block.row_n.size
            if self._done == n:  # the very first: a learner may compile what it needs in it, which is no play
                first = n, took
            else:
                self._seconds += took + min(first[1], first[0] * took / n)
                first = 0, 0.0
            if block_episodes is None:
                size = _next_size(n, took)
            tell(self._progress())
            if state_file is not None and time.monotonic() - saved > SAVE_SECONDS:
                self.save(state_file)
                saved = time.monotonic()
        self._seconds += first[1]  # there was only one

    @property
    def episodes(self) -> int:
        """K."""
        return int(self.checkpoints[-1])

    def _play_block(self, block: LossBlock, pool: ThreadPoolExecutor | None) -> None:
        """Play a block on all engines.  A Ctrl-C is held back until the block is whole."""
        with interrupts_held():
            if pool is None:
                for engine in self.engines:
                    engine.play(block)
            else:
                for _ in pool.map(lambda engine: engine.play(block), self.engines):
                    pass
            self._sum.add(block)
            self._done += block.row_n.size
            at = np.searchsorted(self.checkpoints, self._done)
            if self.checkpoints[at] == self._done:
                self._note(int(at))

    def _note(self, c: int) -> None:
        self._cost[:, c] = np.concatenate([engine.cost() for engine in self.engines])
        if self.reader.mean_hsa is not None:
            pseudo = [engine.pseudo_cost() for engine in self.engines]
            self._pseudo_cost[:, c] = np.concatenate([part for part in pseudo if part is not None])
        actions, value = best_policy(self.mdp, self._sum.total())
        self._comparator[c] = value
        self._hindsight = np.asarray(actions, dtype=np.int64)

    def _progress(self, compiling: bool = False) -> Progress:
        return Progress(
            learner=self.learner.name, done=self._done, episodes=self.episodes, replicas=self.replicas,
            seconds=self._seconds, compiling=compiling,
        )  # fmt: skip

    def result(self, keep_policy: bool = True) -> RunResult:
        """The finished run."""
        pseudo = None
        if self.reader.mean_hsa is not None:
            _, value = best_policy(self.mdp, self.reader.mean_hsa)
            pseudo = self._pseudo_cost - self.checkpoints * value
        return RunResult(
            episodes=read_only(self.checkpoints),
            regret=self._cost - self._comparator,
            pseudo_regret=pseudo,
            cost=read_only(self._cost),
            comparator=read_only(self._comparator),
            policy=np.concatenate([engine.policies() for engine in self.engines]) if keep_policy else None,
            hindsight_policy=read_only(self._hindsight),
            seconds=self._seconds,
            learner=LearnerRecord.of(self.learner, self.problem),
            seed=self.seed,
            evaluate_every=self.evaluate_every,
            device=self.places.name,
            dtype=self.places.dtype.name,
        )

    def fingerprint(self) -> str:
        """What a saved state must agree with: every argument that the numbers depend on."""
        K = self.episodes
        digest = hashlib.sha256()
        for part in (
            self.mdp.digest().encode(),
            self.reader.block(0, 1).tables_mhsa.tobytes(),
            self.reader.block(K - 1, K).tables_mhsa.tobytes(),
            _files.dump_tree({"name": self.learner.name, "arguments": self.learner.arguments}),
            repr((self.learner.version, self.replicas, self.seed, self.evaluate_every)).encode(),
            self.checkpoints.tobytes(),
            b"" if self._delays is None else self._delays.tobytes(),
            repr([(type(engine).__qualname__, engine.replicas) for engine in self.engines]).encode(),
            self.places.dtype.name.encode(),
        ):
            digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run's state; `load` continues bit for bit."""
        tree = {
            "fingerprint": self.fingerprint(),
            "done": self._done,
            "seconds": self._seconds,
            "cost": self._cost,
            "pseudo_cost": self._pseudo_cost,
            "comparator": self._comparator,
            "hindsight": self._hindsight,
            "sum": self._sum.state(),
            "engines": [engine.state() for engine in self.engines],
        }
        _files.write_atomically(path, _files.sealed(_files.dump_tree(tree), STATE_KIND, STATE_FORMAT))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continue from a state saved by a run with the same arguments."""
        content = _files.open_sealed(path, STATE_KIND, STATE_FORMAT, "Remove it to start afresh.")
        tree = _files.load_tree(content, classes_of(self.learner))
        if tree["fingerprint"] != self.fingerprint():
            raise InvalidInputError(
                f"{os.fspath(path)} holds the state of another run (other instance, losses, learner, episodes, "
                "replicas, seed or checkpoints). Name another file, or remove this one to start afresh."
            )
        self._done, self._seconds = tree["done"], tree["seconds"]
        self._cost, self._pseudo_cost = np.array(tree["cost"]), np.array(tree["pseudo_cost"])
        self._comparator, self._hindsight = np.array(tree["comparator"]), np.array(tree["hindsight"])
        self._sum.restore(tree["sum"])
        for engine, state in zip(self.engines, tree["engines"], strict=True):
            engine.restore(state)


def _is_state(path: str | os.PathLike[str]) -> bool:
    """Whether there is a state to continue from; what could never be written is told now, not when it is needed."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        what = "it is a folder" if target.is_dir() else f"there is no folder {os.fspath(target.parent)!r}"
        raise InvalidInputError(
            f"state_file must be a file, or a new name in a folder that exists, but is {os.fspath(path)!r}: {what}."
        )
    return target.exists()


def checkpoint_episodes(checkpoints: Any, K: int) -> IntArray:
    """The episodes at which curves are noted, ascending, K last."""
    if checkpoints is None or as_array("checkpoints", checkpoints).ndim == 0:
        count = DEFAULT_CHECKPOINTS if checkpoints is None else require_integer("checkpoints", checkpoints, low=1)
        count = min(count, K)
        spaced = np.round(np.geomspace(1, K, count)) if count > 1 else np.array([K])
        # early ones would coincide; they take every episode until log-spaced ones have overtaken them
        return np.maximum(spaced.astype(np.int64), np.arange(1, count + 1))
    given = as_array("checkpoints", checkpoints)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise InvalidInputError(
            f"checkpoints must be None, a count, or a list of episodes, but has shape {given.shape} and dtype "
            f"{given.dtype}."
        )
    outside = (given < 1) | (given > K)
    if outside.any():
        first = int(np.argmax(outside))
        raise InvalidInputError(f"checkpoints[{first}] is {given[first]}, but must lie in 1 ... {K} (the episodes).")
    return np.unique(np.append(given.astype(np.int64), K))


def thread_count(threads: int | None) -> int:
    if threads is not None:
        return require_integer("threads", threads, low=1)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _delays(delays: Any, K: int, learner: Any) -> IntArray | None:
    if delays is None:
        return None
    given = as_array("delays", delays)
    if given.dtype.kind not in "iu" or given.shape not in ((), (K,)):
        raise InvalidInputError(
            f"delays must be an integer or ({K},) integers, one for each episode, but has shape {given.shape} and "
            f"dtype {given.dtype}."
        )
    if (given < 0).any():
        first = np.argwhere(given < 0)[0]
        raise InvalidInputError(
            f"{place('delays', first)} is {given[tuple(first)]}, but feedback cannot arrive before its episode is "
            "over: every delay must be at least 0."
        )
    if not given.any():
        return None
    if not learner.needs.late_feedback:
        raise InvalidInputError(
            f"{learner.name} does not take late feedback; delays must be None or 0 for it. Learners that take it: "
            f"{', '.join(TAKE_LATE_FEEDBACK)}."
        )
    # beyond K is never, however far: no sum of an index and a delay overflows; K itself may not fit into their dtype
    return np.array(np.broadcast_to(np.minimum(given, np.int64(K)), (K,)), dtype=np.int64)


def _next_size(played: int, took: float) -> int:
    """Episodes for the next block, so that it takes about BLOCK_SECONDS; at most four times as many as the last."""
    wanted = int(played * BLOCK_SECONDS / max(took, 1e-9))
    return max(1, min(wanted, 4 * played))


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Matrix products run on the calling thread: replicas are what is spread over threads."""
    import scipy.linalg.cython_blas  # noqa: F401  loads the BLAS that compiled kernels call, so that it is limited too
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


def _reporter(progress: Any) -> Callable[[Progress], None] | None:
    if callable(progress):
        told: Callable[[Progress], None] = progress
        return told
    if progress is None or isinstance(progress, bool):
        return _StandardError() if progress else None
    raise InvalidInputError(f"progress must be True, False or a function of a Progress, but is {progress!r}.")


class _StandardError:
    """One line that is rewritten on a terminal, or a line every ten seconds elsewhere."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        terminal = sys.stderr.isatty()
        finished = progress.done == progress.episodes
        now = time.monotonic()
        if now < self._next and not finished:
            return
        self._next = now + (0.2 if terminal else 10.0)
        if progress.compiling:
            text = f"{progress.learner}: compiling or loading kernels"
        else:
            text = (
                f"{progress.learner}: {progress.done}/{progress.episodes} episodes x {progress.replicas}, "
                f"{progress.seconds:.0f} s, {progress.seconds_left:.0f} s left"
            )
        end = "\r" if terminal and not finished else "\n"
        print(f"{text:<78}", end=end, file=sys.stderr, flush=True)
