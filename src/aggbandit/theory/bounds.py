"""Theorems 1 and 2 in numbers, and the lemmas that they are summed from."""

from math import log, sqrt
from typing import NamedTuple

import numpy.typing as npt

from aggbandit._arrays import FloatArray
from aggbandit._checks import as_floats, require_integer, require_number
from aggbandit.adversaries import hard
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import DYNAMICS, KNOWN, UNKNOWN
from aggbandit.learners.parts import confidence_sets, step_sizes


def iota(*, H: int, S: int, A: int, K: int, confidence: float = 0.05) -> float:
    """ι = ln(H S A K / δ)."""
    _require(H, S, A, K, confidence)
    return step_sizes.iota(H, S, A, K, confidence)


def step_size(*, H: int, S: int, A: int, K: int, confidence: float = 0.05, version: str = "appendix") -> float:
    """η of Theorems 1 and 2: `version="main"` as in the main text, "appendix" with √ι in the numerator."""
    _require(H, S, A, K, confidence)
    if version not in step_sizes.NAMED_STEPS:
        raise InvalidInputError(f"version must be one of {', '.join(step_sizes.NAMED_STEPS)}, but is {version!r}.")
    return step_sizes.named_step(version, H, S, A, K, confidence)


def exploration(step: float, *, H: int) -> float:
    """γ = 2 η H."""
    return step_sizes.policy_optimization_exploration(None, step, H)


def greatest_bonus(dynamics: str, *, H: int) -> float:
    """What B cannot exceed: 3 H² where dynamics are known, 4 H² where they are not."""
    return (3.0 if _known(dynamics) else 4.0) * H * H


def step_size_is_valid(step: float, dynamics: str, *, H: int) -> bool:
    """Whether η max B <= 1, which the analysis of exponential weights needs."""
    return step * greatest_bonus(dynamics, H=H) <= 1.0


def confidence_radius(visits: npt.ArrayLike, *, H: int, S: int, A: int, K: int, confidence: float = 0.05) -> FloatArray:
    """How far p'(s'|s, a) may be from p̄(s'|s, a) in the sets of Algorithm 2, of the shape of `visits`.

    visits  (..., S): how often s' followed each (s, a) so far;  n is their sum over the last axis

        4 √(p̄ ln(10HSAK/δ) / (n ∨ 1)) + 10 ln(10HSAK/δ) / (n ∨ 1)
    """
    _require(H, S, A, K, confidence)
    counts = as_floats("visits", visits)
    if counts.ndim < 1 or counts.shape[-1] != S or (counts < 0.0).any():
        raise InvalidInputError(
            f"visits must be numbers of at least 0, S = {S} in the last axis, but are of shape {counts.shape}"
            + (f" with least {counts.min():g}." if counts.size else ".")
        )
    return confidence_sets.bernstein_radius(counts, confidence_sets.logarithm(H, S, A, K, confidence))


def sum_of_widths_order(*, H: int, S: int, A: int, K: int, confidence: float = 0.05) -> float:
    """What Σ_k Σ_{h,s,a} (μ̄ - μ̲) stays below up to its constant, which the paper leaves open.  [eq:LM25-sum-of-widths]

    √(H⁴ S² A K ln(6HSAK/δ)) + H³ S³ A ln²(6HSAK/δ)
    """
    _require(H, S, A, K, confidence)
    logarithm = log(6.0 * H * S * A * K / confidence)
    return sqrt(H**4 * S**2 * A * K * logarithm) + H**3 * S**3 * A * logarithm**2


class LemmaBounds(NamedTuple):
    """What the proof of Theorem 1 (or 2) allows each part of the regret, on the good events.

    The sums Σ μ* b that appear in several lemmas and cancel in the theorem are arguments: they are measured on a run.
    """

    bias_1: float
    bias_2: float
    reg: float
    bonus: float


def lemma_bounds(
    *,
    H: int,
    S: int,
    A: int,
    K: int,
    confidence: float,
    step: float,
    exploration: float,
    comparator_bonus: float,
    comparator_width: float = 0.0,
    width: float = 0.0,
    dynamics: str = KNOWN,
) -> LemmaBounds:
    """The bound on BIAS₁, BIAS₂, REG and BONUS.  [eq:LM25-bias-1] [eq:LM25-bias-2] [eq:LM25-reg] [eq:LM25-bonus]

    comparator_bonus  Σ_k Σ_{h,s} μ*_h(s) b̃_h(s), with b̃ = b where dynamics are known
    comparator_width  Σ_k Σ_{h,s} μ*_h(s) b̄_h(s)
    width             Σ_k Σ_{h,s} μ̄_h(s) b̄_h(s)

        BIAS₁ <= ⅔ Σ μ* b̃ + Σ μ* b̄ + H² ln(6/δ) / γ
        BIAS₂ <= H² ln(6H/δ) / (2 γ)
        REG   <= H ln A / η + 9 (unknown: 16) η H⁵ K + ⅓ Σ μ* b̃ + η H³ ln(6H/δ) / (2 γ²)
        BONUS <= 3 γ H² S A K + Σ μ̄ b̄ - Σ μ* (b̃ + b̄)

    REG is with the factor η of the lemma on exponential weights, where the paper writes 2 η and keeps the constant 9.
    What each lemma asks for is told by `lemmas_do_not_apply`.
    """
    _require(H, S, A, K, confidence)
    known = _known(dynamics)
    log_events, log_steps = log(6.0 / confidence), log(6.0 * H / confidence)
    return LemmaBounds(
        bias_1=2.0 / 3.0 * comparator_bonus + comparator_width + H * H * log_events / exploration,
        bias_2=H * H * log_steps / (2.0 * exploration),
        reg=H * log(A) / step
        + (9.0 if known else 16.0) * step * H**5 * K
        + comparator_bonus / 3.0
        + step * H**3 * log_steps / (2.0 * exploration**2),
        bonus=3.0 * exploration * H * H * S * A * K + width - comparator_bonus - comparator_width,
    )


def lemmas_do_not_apply(
    *,
    H: int,
    step: float,
    exploration: float,
    dynamics: str = KNOWN,
    bonus_scale: float = 1.0,
    radius_scale: float = 1.0,
) -> list[str]:
    """Which conditions of the lemmas such arguments break; empty where all hold.  [eq:LM25-eta-condition]

    REG needs η <= γ / (2H) and η max B <= 1; the bonus must be the paper's, and so must the confidence sets.
    """
    broken = []
    if step > exploration / (2.0 * H) * (1.0 + 1e-12):
        broken.append(f"REG needs η <= γ / (2H) = {exploration / (2.0 * H):.3g}, but η = {step:.3g}")
    greatest = bonus_scale * greatest_bonus(dynamics, H=H)
    if step * greatest > 1.0:
        broken.append(f"REG needs η max B <= 1, but η max B = {step * greatest:.3g}")
    if bonus_scale != 1.0:
        broken.append(f"BIAS₁, REG and BONUS are about the paper's bonus, but bonus_scale = {bonus_scale:g}")
    if dynamics != KNOWN and radius_scale < 1.0:
        broken.append(f"G₁ is about the paper's confidence sets, but radius_scale = {radius_scale:g}")
    return broken


def known_regret_bound(*, H: int, S: int, A: int, K: int, confidence: float = 0.05, version: str = "appendix") -> float:
    """Theorem 1 with the constants of its proof: what R_K stays below with probability 1 - δ.  [eq:LM25-theorem-1]

    H ln A / η + 9 η H⁵ K + 3 γ H² S A K + (H² / γ) (ln(6/δ) + ¾ ln(6H/δ)),  γ = 2 η H
    """
    return _sum_of_lemmas(KNOWN, H, S, A, K, confidence, version, 0.0)


def unknown_regret_bound(
    *,
    H: int,
    S: int,
    A: int,
    K: int,
    confidence: float = 0.05,
    version: str = "appendix",
    widths: float | None = None,
) -> float:
    """Theorem 2 with the constants of its proof, but for the one that the paper leaves open.  [eq:LM25-theorem-2]

    widths  Σ_k Σ_{h,s,a} (μ̄ - μ̲), as `aggbandit.diagnose` measures it;  None: its order, with constant 1

        H ln A / η + 16 η H⁵ K + 3 γ H² S A K + (H² / γ) (ln(6/δ) + ¾ ln(6H/δ)) + H widths,  γ = 2 η H
    """
    if widths is None:
        widths = sum_of_widths_order(H=H, S=S, A=A, K=K, confidence=confidence)
    require_number("widths", widths, low=0.0)
    return _sum_of_lemmas(UNKNOWN, H, S, A, K, confidence, version, H * widths)


def _sum_of_lemmas(
    dynamics: str, H: int, S: int, A: int, K: int, confidence: float, version: str, width: float
) -> float:
    step = step_size(H=H, S=S, A=A, K=K, confidence=confidence, version=version)
    if not step_size_is_valid(step, dynamics, H=H):
        raise InvalidInputError(
            f"Theorem {1 if dynamics == KNOWN else 2} needs η max B <= 1, but η = {step:.3g} and max B = "
            f"{greatest_bonus(dynamics, H=H):g}: K = {K} is too small."
        )
    return sum(
        lemma_bounds(
            H=H, S=S, A=A, K=K, confidence=confidence, step=step, exploration=exploration(step, H=H),
            comparator_bonus=0.0, width=width, dynamics=dynamics,
        )
    )  # fmt: skip


def known_regret_order(*, H: int, S: int, A: int, K: int, confidence: float = 0.05) -> float:
    """Theorem 1 up to its constant: H² √(S A K ι) + H³ √(K ι)."""
    logarithm = iota(H=H, S=S, A=A, K=K, confidence=confidence)
    return H**2 * sqrt(S * A * K * logarithm) + H**3 * sqrt(K * logarithm)


def unknown_regret_order(*, H: int, S: int, A: int, K: int, confidence: float = 0.05) -> float:
    """Theorem 2 up to its constant: H³ S √(A K) ι + H⁴ S³ A ι².  [eq:LM25-theorem-2]"""
    logarithm = iota(H=H, S=S, A=A, K=K, confidence=confidence)
    return float(H**3 * S * sqrt(A * K) * logarithm + H**4 * S**3 * A * logarithm**2)


def lower_bound(*, H: int, S: int, A: int, K: int) -> float:
    """Theorem 3 with its constant: (σ / 10) (H - 1)² √(S A K), in the mean over the instance.  [eq:LM25-theorem-3]

    Refused unless K >= S A (H - 1)², see `aggbandit.adversaries.hard`.
    """
    return hard.lower_bound_instance(H=H, S=S, A=A, K=K).spread / 10.0 * (H - 1) ** 2 * sqrt(S * A * K)


def multitask_lower_bound(*, tasks: int, A: int, K: int) -> float:
    """σ k² √(A K) / 16: the least expected regret on the k-task bandit, in the mean over it.  [eq:LM25-multitask]"""
    return hard.multitask_instance(tasks=tasks, A=A, K=K).spread * tasks**2 * sqrt(A * K) / 16.0


def uniform_regret_on_the_hard_instance(*, gap: float, H: int, A: int, K: int) -> float:
    """Expected regret of the uniform policy on the instance of Theorem 3: ε (H - 1) K (1 - 1/A)."""
    return gap * (H - 1) * K * (1.0 - 1.0 / A)


def _known(dynamics: str) -> bool:
    if dynamics not in DYNAMICS:
        raise InvalidInputError(f"dynamics must be one of {', '.join(DYNAMICS)}, but is {dynamics!r}.")
    return dynamics == KNOWN


def _require(H: int, S: int, A: int, K: int, confidence: float) -> None:
    for name, value in (("H", H), ("S", S), ("A", A), ("K", K)):
        require_integer(name, value, low=1)
    require_number("confidence", confidence, low=0.0, high=1.0, low_open=True, high_open=True)
