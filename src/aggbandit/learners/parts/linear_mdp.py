"""Linear MDPs: p_h(s'|s, a) = ⟨φ(s, a), ψ_h(s')⟩ and ℓ_h(s, a) = ⟨φ(s, a), θ_h⟩ for known features φ, ‖φ‖ <= 1."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit._checks import as_floats, place, require_shape
from aggbandit.errors import InvalidInputError
from aggbandit.mdp.tabular import TabularMDP

RIDGE = 1.0  # λ_p
NORM_TOLERANCE = 1e-9
EXPRESSED = 1e-8  # what may be left over where features express an instance
MOST_FEATURES = 400

Features = tuple[tuple[tuple[float, ...], ...], ...]  # (S, A, d): comparable, and survives JSON


def as_features(given: Any) -> Features:
    """`given` (S, A, d) as nested tuples, every ‖φ(s, a)‖ <= 1."""
    features_sad = as_floats("features", given)
    if features_sad.ndim != 3 or 0 in features_sad.shape:
        raise InvalidInputError(
            f"features must have shape (S, A, d), every axis at least 1, but has {features_sad.shape}. In a spec, "
            f"where a list is several values to try, give [features]."
        )
    if features_sad.shape[-1] > MOST_FEATURES:
        raise InvalidInputError(
            f"features may have d up to {MOST_FEATURES}, but have d = {features_sad.shape[-1]}: every episode solves "
            f"with H matrices of d × d. Leave features out to learn state by state."
        )
    norms_sa = np.linalg.norm(features_sad, axis=-1)
    if (norms_sa > 1.0 + NORM_TOLERANCE).any():
        first = np.argwhere(norms_sa > 1.0 + NORM_TOLERANCE)[0]
        raise InvalidInputError(
            f"{place('features', first)} has norm {norms_sa[tuple(first)]:.6g}, but every one must be at most 1. "
            f"Divide all by the greatest, {norms_sa.max():.6g}."
        )
    return tuple(tuple(tuple(map(float, phi)) for phi in row) for row in features_sad)


def require_fit(features: Features, S: int, A: int) -> FloatArray:
    """The features as an array, which must be (S, A, d) for this problem."""
    features_sad = np.array(features)
    require_shape("features", features_sad, (S, A, features_sad.shape[-1]), "(S, A, d)")
    return features_sad


def require_expressive(features: Features, mdp: TabularMDP, loss: Any = None) -> None:
    """Raise unless the features express this MDP's transitions, and the losses (H, S, A) where given.

    For whoever holds the instance; a learner does not.
    """
    features_sad = require_fit(features, mdp.S, mdp.A)
    rows = features_sad.reshape(mdp.S * mdp.A, -1)
    wanted = [("transition", np.asarray(mdp.transition[: mdp.H - 1]).reshape(mdp.H - 1, mdp.S * mdp.A, mdp.S))]
    if loss is not None:
        loss_hsa = as_floats("loss", loss)
        require_shape("loss", loss_hsa, mdp.shape, "(H, S, A)")
        wanted.append(("loss", loss_hsa.reshape(mdp.H, mdp.S * mdp.A, 1)))
    projection = rows @ np.linalg.pinv(rows)
    for name, tables in wanted:
        left = np.abs(tables - projection @ tables).max(axis=-1, initial=0.0)
        if (left > EXPRESSED).any():
            h, row = np.argwhere(left > EXPRESSED)[0]
            raise InvalidInputError(
                f"features cannot express {place(name, (h, row // mdp.A, row % mdp.A))}: the nearest linear function "
                f"is off by {left[h, row]:.3g}. Use features of a linear MDP, or leave them out."
            )


class LinearModel(NamedTuple):
    """Regressions of the next state on features, one for each step but the last."""

    gram_hdd: FloatArray  # Λ_h = λ_p I + Σ φ φ^T
    moment_hds: FloatArray  # Σ φ e_{s'}^T
    mean_hsas: FloatArray  # ⟨φ(s, a), Λ_h^{-1} Σ φ e_{s'}⟩: rows of no distribution; 0 at the last step
    width_hsa: FloatArray  # ‖φ(s, a)‖ in the norm of Λ_h^{-1}; 0 at the last step


def unseen(features_sad: FloatArray, H: int) -> LinearModel:
    """Before the first episode."""
    S, A, d = features_sad.shape
    width_hsa = np.zeros((H, S, A))
    width_hsa[:-1] = np.linalg.norm(features_sad, axis=-1)
    gram_hdd = np.broadcast_to(RIDGE * np.eye(d), (H - 1, d, d)).copy()
    return LinearModel(gram_hdd, np.zeros((H - 1, d, S)), np.zeros((H, S, A, S)), width_hsa)


def add_trajectory(model: LinearModel, features_sad: FloatArray, states: IntArray, actions: IntArray) -> None:
    """One more episode, in place.  O(H d³ + H S A d²)."""
    steps = np.arange(states.size - 1)
    phi_hd = features_sad[states[:-1], actions[:-1]]
    model.gram_hdd[:] += phi_hd[:, :, None] * phi_hd[:, None, :]
    model.moment_hds[steps, :, states[1:]] += phi_hd
    solved_hds = np.linalg.solve(model.gram_hdd, model.moment_hds)
    model.mean_hsas[:-1] = np.einsum("sad,hdt->hsat", features_sad, solved_hds)
    inverse_hdd = np.linalg.inv(model.gram_hdd)
    squares_hsa = np.einsum("sad,hde,sae->hsa", features_sad, inverse_hdd, features_sad, optimize=True)
    model.width_hsa[:-1] = np.sqrt(np.maximum(squares_hsa, 0.0))


def log_determinants(model: LinearModel) -> FloatArray:
    """ln det Λ_h, (H - 1,)."""
    return np.asarray(np.linalg.slogdet(model.gram_hdd)[1], dtype=np.float64)
