"""Ensembles of randomised values from their definitions: whole histories, one member at a time."""

import numpy as np

from naive.planning import Floats


def ridge(features: Floats, targets: Floats, regularisation: float) -> Floats:
    """(λ I + Σ φ φ^T)^{-1} Σ φ y^T with rows φ and y."""
    matrix = regularisation * np.eye(features.shape[1]) + features.T @ features
    return np.linalg.solve(matrix, features.T @ targets)


def values(model: Floats, loss: Floats, limit: float) -> tuple[Floats, Floats]:
    """(Q, V) of the best policy on any linear model, V cut to [-limit, limit]; explicit sums."""
    H, S, A = loss.shape
    q, v = np.zeros((H, S, A)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        for s in range(S):
            for a in range(A):
                q[h, s, a] = loss[h, s, a]
                if h + 1 < H:
                    q[h, s, a] += sum(model[h, s, a, i] * v[h + 1, i] for i in range(S))
            v[h, s] = np.clip(q[h, s].min(), -limit, limit)
    return q, v[:H]


def policy_values(model: Floats, loss: Floats, policy: Floats, limit: float) -> tuple[Floats, Floats]:
    """(Q, V) of a policy, V cut to [-limit, limit]."""
    H, S, A = loss.shape
    q, v = np.zeros((H, S, A)), np.zeros((H + 1, S))
    for h in reversed(range(H)):
        for s in range(S):
            for a in range(A):
                q[h, s, a] = loss[h, s, a]
                if h + 1 < H:
                    q[h, s, a] += sum(model[h, s, a, i] * v[h + 1, i] for i in range(S))
            v[h, s] = np.clip(policy[h, s] @ q[h, s], -limit, limit)
    return q, v[:H]


def oppo(policy: Floats, q: Floats, step: float) -> Floats:
    """π exp(−step Q), normalised at every (h, s)."""
    weights = policy * np.exp(-step * q)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def linear_mdp(rng: np.random.Generator, H: int, S: int, A: int, d: int) -> tuple[Floats, Floats, Floats]:
    """Random (features, transition, loss) with p = ⟨φ, ψ⟩ and ℓ = ⟨φ, θ⟩: mixtures of d kernels and d losses."""
    features = rng.dirichlet(np.ones(d), size=(S, A))
    kernels = rng.dirichlet(np.ones(S), size=(H, d))
    losses = rng.random((H, d))
    return features, np.einsum("sad,hdt->hsat", features, kernels), np.einsum("sad,hd->hsa", features, losses)
