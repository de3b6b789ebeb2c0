"""Learners that are slow, fail or kill: named `slow_learners:Slow` in the specs of tests."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

import aggbandit as ab


class State(NamedTuple):
    count: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Slow(ab.Learner):
    """Takes its time; prefers the action that it met most often, so that its numbers depend on its past."""

    needs = ab.Needs()
    seconds: float = 0.001

    def init(self, problem, draws):
        return State(np.ones(problem.shape))

    def policy(self, problem, state):
        return state.count / state.count.sum(axis=2, keepdims=True)

    def update(self, problem, state, episode, draws):
        time.sleep(self.seconds)
        if episode.index == 5 and "SLOW_MARK" in os.environ:  # somebody waits for it to be under way
            Path(os.environ["SLOW_MARK"]).touch()
        for h in range(problem.H):
            state.count[h, episode.states[h], episode.actions[h]] += 1.0 + draws.uniform(1)[0]
        return state


@dataclass(frozen=True, kw_only=True)
class Broken(Slow):
    """Fails half-way unless told to behave by the environment."""

    def update(self, problem, state, episode, draws):
        if episode.index == 5 and "BROKEN_INTERRUPTS" in os.environ:
            raise KeyboardInterrupt
        if episode.index == 5 and "BROKEN_IS_MENDED" not in os.environ:
            raise ZeroDivisionError("no way to learn this")
        return state


@dataclass(frozen=True, kw_only=True)
class Deadly(Slow):
    """Kills the process that plays it."""

    def update(self, problem, state, episode, draws):
        os.kill(os.getpid(), 9)


class Panic(BaseException):
    """What some extension modules raise; it cannot even say what happened."""

    def __str__(self):
        raise RuntimeError("no words")


@dataclass(frozen=True, kw_only=True)
class Panicking(Slow):
    """Raises what is no Exception."""

    def update(self, problem, state, episode, draws):
        raise Panic
