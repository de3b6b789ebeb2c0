"""The losses behind Theorem 3: a gap that noise hides, tuned so that nobody can find it within K episodes.

Cohen, Hazan & Koren (2017), Theorem 5, gives the multi-task bandit; the paper embeds one in every state.  Its
condition K >= 2 S is not enough (the claimed bound would exceed the trivial H K): K >= S A (H - 1)² is what the
construction needs, and is required here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import log, sqrt
from typing import Any, NamedTuple, final

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray, IntArray
from aggbandit._checks import require_integer, require_number
from aggbandit.adversaries.base import LossSequence, Shape, require_range
from aggbandit.errors import InvalidInputError
from aggbandit.mdp.tabular import TabularMDP

ARMS_STREAM = int.from_bytes(b"hardarms", "little")
NOISE_STREAM = int.from_bytes(b"hardnois", "little")
NOISES = ("shared", "independent")
WORDS = 4  # in one block of NumPy's Philox4x64


class HardInstance(NamedTuple):
    """The numbers of a hard instance."""

    spread: float  # σ, of the noise that all losses of an episode share
    gap: float  # ε, by which the best action of a step is better


def multitask_spread(K: int) -> float:
    """σ = 1 / √(192 + 96 ln K), so small that clipping to [0, 1] almost never happens."""
    require_integer("K", K, low=1)
    return 1.0 / sqrt(192.0 + 96.0 * log(K))


def multitask_instance(*, tasks: int, A: int, K: int, scale: float = 1.0) -> HardInstance:
    """σ and ε = scale · σ k √(A / (4 K)) of the k-task A-armed bandit; refused unless K >= k² A and ε <= 1/4."""
    require_integer("tasks", tasks, low=1)
    require_integer("A", A, low=2)
    require_number("scale", scale, low=0.0, low_open=True)
    spread = multitask_spread(K)
    least = tasks * tasks * A
    if least > K:
        raise InvalidInputError(f"The hard {tasks}-task {A}-armed bandit needs K >= k² A = {least}, but K = {K}.")
    return HardInstance(spread, _at_most_a_quarter(scale * spread * tasks * sqrt(A / (4.0 * K)), scale))


def lower_bound_instance(*, H: int, S: int, A: int, K: int, scale: float = 1.0) -> HardInstance:
    """σ and ε = scale · σ (H - 1) √(A S / (4 K)) of Theorem 3; refused unless K >= S A (H - 1)² and ε <= 1/4."""
    require_integer("H", H, low=2)
    require_integer("S", S, low=2)
    require_integer("A", A, low=2)
    require_number("scale", scale, low=0.0, low_open=True)
    spread = multitask_spread(K)
    least = S * A * (H - 1) ** 2
    if least > K:
        raise InvalidInputError(
            f"The instance of Theorem 3 needs K >= S A (H - 1)² = {least}, but K = {K}. "
            "(The paper says K >= 2 S, which is not enough.)"
        )
    return HardInstance(spread, _at_most_a_quarter(scale * spread * (H - 1) * sqrt(A * S / (4.0 * K)), scale))


def _at_most_a_quarter(gap: float, scale: float) -> float:
    if gap > 0.25:
        raise InvalidInputError(
            f"The gap would be {gap:.3g}, but must stay at most 1/4 for losses to stay in [0, 1]. "
            f"Lower scale = {scale:g} or raise K."
        )
    return gap


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class HardLosses(LossSequence):
    """ℓ^k_h(s, a) = clip(1/2 - ε 1{a = x*_h(s)} + Z^k, 0, 1) in the steps that matter, 0 in the others.

    One Gaussian Z^k an episode, shared by all entries: it hides the gap in the sum, and differences of losses within
    an episode do not show it.  `noise="independent"` is the control: a Gaussian for every (h, a), of the same spread,
    with the gap divided by √k, since the sum of k independent ones is so much quieter.
    """

    trusted = True

    H: int
    S: int
    A: int
    first_step: int  # losses before it are 0
    scale: float
    noise: str
    seed: int
    planned: int | None = None  # the K that spread and gap are tuned to; set by `for_episodes`

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.H, self.S, self.A

    def for_episodes(self, episodes: int) -> HardLosses:
        fitted = replace(self, planned=episodes)
        fitted.instance()  # refuses a K that is too small before anything is played
        return fitted

    def instance(self) -> HardInstance:
        """σ and ε for the number of episodes planned."""
        K = self.planned
        if K is None:
            raise InvalidInputError(
                "The hard losses are tuned to the number of episodes; call for_episodes(K) first, as ab.run does."
            )
        tasks = self.H - self.first_step
        if self.first_step:
            found = lower_bound_instance(H=self.H, S=self.S, A=self.A, K=K, scale=self.scale)
        else:
            found = multitask_instance(tasks=tasks, A=self.A, K=K, scale=self.scale)
        return found if self.noise == "shared" else HardInstance(found.spread, found.gap / sqrt(tasks))

    @cached_property
    def best_actions(self) -> IntArray:
        """(H, S): x*, drawn once, uniformly and independently."""
        raw = np.random.Philox(key=np.array([self.seed, ARMS_STREAM], dtype=np.uint64)).random_raw(self.H * self.S)
        arms = ((raw >> np.uint64(32)) * np.uint64(self.A)) >> np.uint64(32)
        return arms.astype(np.int64).reshape(self.H, self.S)

    def tables(self, start: int, stop: int, /) -> FloatArray:
        start, stop = require_range(start, stop)
        spread, gap = self.instance()
        best = self.best_actions[:, :, None] == np.arange(self.A)
        unclipped = 0.5 - gap * best + spread * self._gaussians(start, stop)
        tables: FloatArray = np.clip(unclipped, 0.0, 1.0)
        tables[:, : self.first_step] = 0.0
        tables.flags.writeable = False
        return tables

    def _gaussians(self, start: int, stop: int) -> FloatArray:
        """Standard normal, (n, 1, 1, 1) shared or (n, H, 1, A) independent; each episode from its own counter."""
        from scipy.special import ndtri

        entries = 1 if self.noise == "shared" else self.H * self.A
        blocks = -(-entries // WORDS)
        key = np.array([self.seed, NOISE_STREAM], dtype=np.uint64)
        raw: AnyArray = np.random.Philox(key=key, counter=start * blocks).random_raw((stop - start) * blocks * WORDS)
        kept = raw.reshape(stop - start, blocks * WORDS)[:, :entries]
        uniform = ((kept >> np.uint64(12)) + 0.5) * 2.0**-52  # never 0 or 1, whose quantiles are infinite
        normal: FloatArray = ndtri(uniform)
        shape = (stop - start, 1, 1, 1) if self.noise == "shared" else (stop - start, self.H, 1, self.A)
        reshaped: FloatArray = normal.reshape(shape)
        return reshaped

    def __repr__(self) -> str:
        return f"HardLosses(shape={self.shape}, scale={self.scale:g}, noise={self.noise!r}, seed={self.seed})"


def lower_bound(mdp: TabularMDP, *, scale: float = 1.0, noise: str = "shared", seed: int = 0) -> HardLosses:
    """The losses of Theorem 3: a hidden best action in every state and step, behind noise that the total cannot shed.

    For the instance "lower-bound", or any MDP that stays where its first step leads.  Spread and gap are tuned to the
    number of episodes played, which must be at least S A (H - 1)².

    scale   multiplies the gap: at 1 nothing can be learned within K episodes, by design; at 16 much can
    noise   "shared": one Gaussian an episode (the theorem's); "independent": one for each step and action, the control
    seed    of the hidden best actions and of the noise; the theorem is about the mean over seeds
    """
    return _losses(mdp, 1, scale, noise, seed)


def multitask(mdp: TabularMDP, *, scale: float = 1.0, noise: str = "shared", seed: int = 0) -> HardLosses:
    """H bandit problems played at once, of whose losses only the sum is seen: the hard instance of Cohen et al. 2017.

    For the instance "multitask", which has one state.  Spread and gap are tuned to the number of episodes played, which
    must be at least H² A.

    scale   multiplies the gap: at 1 nothing can be learned within K episodes, by design; at 16 much can
    noise   "shared": one Gaussian an episode (the theorem's); "independent": one for each step and action, the control
    seed    of the hidden best actions and of the noise; the theorem is about the mean over seeds
    """
    if mdp.S != 1:
        raise InvalidInputError(f"The multi-task bandit has one state, but the MDP has S = {mdp.S}.")
    return _losses(mdp, 0, scale, noise, seed)


def _losses(mdp: TabularMDP, first_step: int, scale: float, noise: Any, seed: int) -> HardLosses:
    if not isinstance(noise, str) or noise not in NOISES:
        raise InvalidInputError(f"noise must be one of {', '.join(NOISES)}, but is {noise!r}.")
    return HardLosses(
        H=mdp.H,
        S=mdp.S,
        A=mdp.A,
        first_step=first_step,
        scale=require_number("scale", scale, low=0.0, low_open=True),
        noise=noise,
        seed=require_integer("seed", seed, low=0, high=2**64 - 1),
    )
