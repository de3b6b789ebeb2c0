"""What ensembles of randomised values share: [CLRS24], from totals to optimistic losses of every member.

Everything is regression: rewards r = 1 − ℓ from the total reward H − L on stacked features in R^{d H}, the next state
on features in R^d.  Without features the state and action are the feature, d = S A, and the model is the frequencies.
"""

from __future__ import annotations

from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.learners.base import Episode, Problem
from aggbandit.learners.parts import empirical_model, least_squares, linear_mdp
from aggbandit.learners.parts.empirical_model import Model
from aggbandit.learners.parts.least_squares import LeastSquares
from aggbandit.learners.parts.linear_mdp import Features, LinearModel


class Knowledge(NamedTuple):
    """All that was seen."""

    rewards: LeastSquares  # d H dimensions
    dynamics: Model | LinearModel
    features_sad: FloatArray  # (0, 0, 0) without features


def members(ensemble: int | None, K: int, confidence: float) -> int:
    """m: as given, or ⌈9 ln(7 K / δ)⌉.  [eq:CLRS24-members]

    One member is optimistic with probability at least Pr[N >= 1] > 1/9, so that none is with at most δ / (7 K).
    """
    return ceil(9.0 * log(7.0 * K / confidence)) if ensemble is None else ensemble


def nothing_known(problem: Problem, features: Features | None) -> Knowledge:
    """Before the first episode."""
    H, S, A = problem.shape
    if features is None:
        rewards = least_squares.nothing_seen(H * S * A, float(H))
        return Knowledge(rewards, empirical_model.unseen(H, S, A), np.zeros((0, 0, 0)))
    features_sad = linear_mdp.require_fit(features, S, A)
    rewards = least_squares.nothing_seen(H * features_sad.shape[-1], float(H))
    return Knowledge(rewards, linear_mdp.unseen(features_sad, H), features_sad)


def add(problem: Problem, known: Knowledge, episode: Episode) -> None:
    """One more episode, in place."""
    assert episode.total is not None
    H, S, A = problem.shape
    if isinstance(known.dynamics, LinearModel):
        feature = known.features_sad[episode.states, episode.actions].reshape(-1)
        linear_mdp.add_trajectory(known.dynamics, known.features_sad, episode.states, episode.actions)
    else:
        feature = least_squares.trajectory_feature(episode.states, episode.actions, S, A)
        empirical_model.add_trajectory(known.dynamics, episode.states, episode.actions)
    least_squares.add(known.rewards, feature, H - episode.total)


def reward_radius(problem: Problem, known: Knowledge, noise: str, confidence: float) -> float:
    """β_r = σ √(ln det(Λ / λ_r) + 2 ln(6/δ)) + √(λ_r d H), λ_r = H."""
    log_det = least_squares.log_determinant(known.rewards, float(problem.H))
    return _radius(problem, log_det, known.rewards.target_d.size, noise, confidence)


def greatest_reward_radius(problem: Problem, dimensions: int, K: int, noise: str, confidence: float) -> float:
    """What β_r can be at most after K episodes: ln det(Λ / λ_r) <= d H ln(1 + K H / (λ_r d H))."""
    return _radius(problem, dimensions * log(1.0 + K / dimensions), dimensions, noise, confidence)


def _radius(problem: Problem, log_det: float, dimensions: int, noise: str, confidence: float) -> float:
    sigma = least_squares.noise_level(noise, problem.H)
    return least_squares.radius(log_det, dimensions, float(problem.H), sigma, confidence / 6.0)


def value_limit(problem: Problem, features: Features | None, radius: float) -> float:
    """Where values are cut: 3 H (1 + β_r) with features ("loose truncation"), nowhere without.

    Cutting at H would be wrong: estimates of single steps may be far outside [0, 1] while their sums are right.
    """
    return float("inf") if features is None else 3.0 * problem.H * (1.0 + radius)


def dynamics_bonus(problem: Problem, known: Knowledge, K: int, confidence: float, limit: float) -> FloatArray:
    """b: as UCBVI-TS without features; β_p ‖φ‖_{Λ_h^{-1}}, β_p = d limit √ln(2 d H K / δ), with."""
    if not isinstance(known.dynamics, LinearModel):
        return empirical_model.value_bonus(known.dynamics.visits_hsa, K, confidence)
    d = known.rewards.target_d.size // problem.H
    bonus_hsa: FloatArray = d * limit * sqrt(log(2.0 * d * problem.H * K / confidence)) * known.dynamics.width_hsa
    return bonus_hsa


def optimistic_losses(known: Knowledge, noise_md: FloatArray, bonus_hsa: FloatArray) -> FloatArray:
    """−(⟨φ, θ̂_h + ζ^i_h⟩ + b) for every member i, (m, H, S, A); −Σ of it is the reward that the member hopes for."""
    H, S, A = bonus_hsa.shape
    weights_md = least_squares.solution(known.rewards) + noise_md
    if isinstance(known.dynamics, LinearModel):
        rewards_mhsa = np.einsum("sad,mhd->mhsa", known.features_sad, weights_md.reshape(len(weights_md), H, -1))
    else:
        rewards_mhsa = weights_md.reshape(-1, H, S, A)
    losses_mhsa: FloatArray = np.ascontiguousarray(-(rewards_mhsa + bonus_hsa))
    return losses_mhsa
