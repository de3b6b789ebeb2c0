"""EXP2 on a finite set of arms from its definition, and Exp3 as what it must be with one step."""

from itertools import product

import numpy as np

from naive import planning
from naive.planning import Floats


def distinct_occupancies(transition: Floats, initial: Floats) -> Floats:
    """(n, H S A): the different vectors μ_h(s) π_h(a|s) among all A^(H S) deterministic policies."""
    H, S, A, _ = transition.shape
    found: list[Floats] = []
    for policy in planning.deterministic_policies(H, S, A):
        vector = (planning.occupancy(transition, policy, initial)[:, :, None] * policy).ravel()
        if not any(np.allclose(vector, other, rtol=0.0, atol=1e-12) for other in found):
            found.append(vector)
    return np.array(found)


def exp3_law(losses: list[tuple[int, float]], A: int, step_size: float, exploration: float) -> Floats:
    """Exp3's law after the (action, loss) pairs, exploration uniform, importance weights ℓ / p."""
    estimates = np.zeros(A)
    law = np.full(A, 1.0 / A)
    for action, loss in losses:
        estimates[action] += loss / law[action]
        weights = np.exp(-step_size * estimates)
        law = (1.0 - exploration) * weights / weights.sum() + exploration / A
    return law


def least_squares_moments(
    arms: Floats, law: Floats, transition: Floats, policies: Floats, loss: Floats, initial: Floats
) -> tuple[Floats, float, float]:
    """E[⟨x_i, x̂⟩] for every arm, E[Σ_i p_i ⟨x_i, x̂⟩²], and the greatest |⟨x_i, x̂⟩|, over arms and trajectories.

    x̂ = (Σ p x x^T)^+ x_I L, with the Moore-Penrose inverse in place of coordinates.
    """
    H, S, A = loss.shape
    inverse = np.linalg.pinv((arms * law[:, None]).T @ arms, rcond=1e-10)
    mean, second, greatest = np.zeros(len(arms)), 0.0, 0.0
    for i, trajectory in product(range(len(arms)), planning.trajectories(H, S, A)):
        weight = law[i] * planning.probability(trajectory, transition, policies[i], initial)
        if weight > 0.0:
            values = arms @ inverse @ arms[i] * planning.total(trajectory, loss)
            mean += weight * values
            second += weight * float(law @ values**2)
            greatest = max(greatest, float(np.abs(values).max()))
    return mean, second, greatest
