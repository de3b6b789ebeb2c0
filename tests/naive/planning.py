"""Occupancy, values and occupancy bounds from their definitions: all S^H A^H trajectories, and linear programs.

Everything is dense and horizon-dependent: transition (H, S, A, S), policy (H, S, A), loss (H, S, A), initial (S,).
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array

Floats = npt.NDArray[np.float64]
Trajectory = tuple[tuple[int, int], ...]  # (s_1, a_1), ..., (s_H, a_H)


class Problem(NamedTuple):
    """A random problem; unpacks into the arguments of the functions below."""

    transition: Floats
    policy: Floats
    loss: Floats
    initial: Floats


def trajectories(H: int, S: int, A: int) -> Iterator[Trajectory]:
    """All of them, possible or not."""
    return product(product(range(S), range(A)), repeat=H)


def probability(
    trajectory: Trajectory,
    transition: Floats,
    policy: Floats,
    initial: Floats,
    given_action_at: int | None = None,
) -> float:
    """Pr[trajectory]; without the factor π_h(a_h|s_h) of the step whose action is given."""
    H = len(trajectory)
    weight = float(initial[trajectory[0][0]])
    for h, (s, a) in enumerate(trajectory):
        if h != given_action_at:
            weight *= policy[h, s, a]
        if h + 1 < H:
            weight *= transition[h, s, a, trajectory[h + 1][0]]
    return weight


def total(trajectory: Trajectory, loss: Floats) -> float:
    """The sum of the losses on the way, L."""
    return float(sum(loss[h, s, a] for h, (s, a) in enumerate(trajectory)))


def occupancy(transition: Floats, policy: Floats, initial: Floats) -> Floats:
    """Pr[s_h = s], (H, S)."""
    H, S, A = policy.shape
    reach = np.zeros((H, S))
    for trajectory in trajectories(H, S, A):
        weight = probability(trajectory, transition, policy, initial)
        for h, (s, _) in enumerate(trajectory):
            reach[h, s] += weight
    return reach


def value(transition: Floats, policy: Floats, loss: Floats, initial: Floats) -> float:
    """E[L]."""
    return sum(
        probability(trajectory, transition, policy, initial) * total(trajectory, loss)
        for trajectory in trajectories(*policy.shape)
    )


def values(transition: Floats, policy: Floats, loss: Floats) -> Floats:
    """E[Σ_{i≥h} ℓ_i | s_h = s], (H, S): the value of the problem that starts there."""
    H, S, _ = policy.shape
    return np.array([[value(transition[h:], policy[h:], loss[h:], np.eye(S)[s]) for s in range(S)] for h in range(H)])


def action_values(transition: Floats, policy: Floats, loss: Floats) -> Floats:
    """E[Σ_{i≥h} ℓ_i | s_h = s, a_h = a], (H, S, A): the same, with a first policy that takes a."""
    H, S, A = policy.shape
    answer = np.empty((H, S, A))
    for h, s, a in np.ndindex(H, S, A):
        first = policy[h:].copy()
        first[0, s] = np.eye(A)[a]
        answer[h, s, a] = value(transition[h:], first, loss[h:], np.eye(S)[s])
    return answer


def prefix_values(transition: Floats, policy: Floats, loss: Floats, initial: Floats) -> Floats:
    """E[Σ_{i<h} ℓ_i | s_h = s], (H, S); 0 where s_h = s has probability 0."""
    H, S, A = policy.shape
    weighted, reach = np.zeros((H, S)), np.zeros((H, S))
    for trajectory in trajectories(H, S, A):
        weight = probability(trajectory, transition, policy, initial)
        for h, (s, _) in enumerate(trajectory):
            weighted[h, s] += weight * total(trajectory[:h], loss)
            reach[h, s] += weight
    return np.divide(weighted, reach, out=np.zeros((H, S)), where=reach > 0.0)


def trajectory_values(transition: Floats, policy: Floats, loss: Floats, initial: Floats) -> Floats:
    """E[L | s_h = s, a_h = a], (H, S, A); E[Σ_{i≥h} ℓ_i | s_h = s, a_h = a] where s_h = s has probability 0."""
    H, S, A = policy.shape
    weighted, reach = np.zeros((H, S, A)), np.zeros((H, S, A))
    for trajectory in trajectories(H, S, A):
        for h, (s, a) in enumerate(trajectory):
            weight = probability(trajectory, transition, policy, initial, given_action_at=h)
            weighted[h, s, a] += weight * total(trajectory, loss)
            reach[h, s, a] += weight
    return np.divide(weighted, reach, out=action_values(transition, policy, loss), where=reach > 0.0)


def estimate_moments(
    transition: Floats, policy: Floats, loss: Floats, initial: Floats, denominator: Floats
) -> tuple[Floats, Floats]:
    """E[Û] and E[Û²] of the estimate Û_h(s, a) = 1{s_h = s, a_h = a} L / denominator_h(s, a), both (H, S, A)."""
    H, S, A = policy.shape
    first, second = np.zeros((H, S, A)), np.zeros((H, S, A))
    for trajectory in trajectories(H, S, A):
        weight = probability(trajectory, transition, policy, initial)
        for h, (s, a) in enumerate(trajectory):
            estimate = total(trajectory, loss) / denominator[h, s, a]
            first[h, s, a] += weight * estimate
            second[h, s, a] += weight * estimate**2
    return first, second


def deterministic_policies(H: int, S: int, A: int) -> Iterator[Floats]:
    """All A^(H S) of them, (H, S, A)."""
    for actions in product(range(A), repeat=H * S):
        yield np.eye(A)[np.reshape(actions, (H, S))]


def extreme_row(lower: Floats, upper: Floats, objective: Floats, sense: float) -> float:
    """max (sense = 1) or min (sense = -1) of q · objective over distributions q with lower <= q <= upper."""
    found = linprog(
        -sense * objective, A_eq=np.ones((1, objective.size)), b_eq=[1.0], bounds=np.stack([lower, upper], axis=1)
    )
    assert found.status == 0, found.message
    return float(-sense * found.fun)


def occupancy_bounds(lower: Floats, upper: Floats, policy: Floats, initial: Floats) -> tuple[Floats, Floats]:
    """min and max of Pr[s_h = s] over all transitions in the boxes, two (H, S): one linear program for each.

    Variables q_h(s, a, s') >= 0 for h < H, the probability of (s_h, a_h, s_{h+1}).  With
    q_h(s, a) = Σ_{s'} q_h(s, a, s'):

        Σ_a q_1(s, a) = initial(s),   Σ_a q_{h+1}(s', a) = Σ_{s, a} q_h(s, a, s')
        q_h(s, a) = π_h(a|s) Σ_a' q_h(s, a')
        lower_h(s'|s, a) q_h(s, a) <= q_h(s, a, s') <= upper_h(s'|s, a) q_h(s, a)
    """
    H, S, A = policy.shape
    least, greatest = np.empty((H, S)), np.empty((H, S))
    least[0] = greatest[0] = initial
    if H == 1:
        return least, greatest
    steps = H - 1
    variable = np.arange(steps * S * A * S).reshape(steps, S, A, S)

    def row(*terms: tuple[npt.ArrayLike, float]) -> Floats:
        coefficients = np.zeros(variable.size)
        for where, coefficient in terms:
            coefficients[np.ravel(where)] += coefficient
        return coefficients

    equal: list[Floats] = []
    right: list[float] = []
    at_most: list[Floats] = []
    for h, s in np.ndindex(steps, S):
        if h == 0:
            equal.append(row((variable[0, s], 1.0)))
            right.append(float(initial[s]))
        else:
            equal.append(row((variable[h, s], 1.0), (variable[h - 1, :, :, s], -1.0)))
            right.append(0.0)
        for a in range(A):
            equal.append(row((variable[h, s, a], 1.0), (variable[h, s], -policy[h, s, a])))
            right.append(0.0)
            for s_next in range(S):
                here, out = variable[h, s, a, s_next], variable[h, s, a]
                at_most.append(row((here, 1.0), (out, -upper[h, s, a, s_next])))
                at_most.append(row((here, -1.0), (out, lower[h, s, a, s_next])))
    equal_sparse, at_most_sparse = csr_array(np.array(equal)), csr_array(np.array(at_most))
    for h, s in np.ndindex(steps, S):
        objective = row((variable[h, :, :, s], 1.0))
        for sense, bounds in ((-1.0, least), (1.0, greatest)):
            found = linprog(
                -sense * objective,
                A_ub=at_most_sparse,
                b_ub=np.zeros(len(at_most)),
                A_eq=equal_sparse,
                b_eq=right,
                bounds=(0.0, None),
                method="highs-ds",
                options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
            )
            assert found.status == 0, found.message
            bounds[h + 1, s] = -sense * found.fun
    return least, greatest


def random_rows(rng: np.random.Generator, shape: tuple[int, ...], zeros: float) -> Floats:
    """Random distributions along the last axis, about a share `zeros` of whose entries is 0, never all."""
    weights: Floats = rng.exponential(size=shape) * (rng.random(shape) >= zeros)
    empty = weights.sum(axis=-1) == 0.0
    weights[empty] = np.eye(shape[-1])[rng.integers(shape[-1], size=int(empty.sum()))]
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def random_problem(
    seed: int, H: int, S: int, A: int, zeros: float = 0.0, start: int | None = None, stationary: bool = False
) -> Problem:
    """Random transitions, policy and losses in [0, 1]; episodes start in `start`, or at random where None."""
    rng = np.random.default_rng(seed)
    transition = random_rows(rng, (1 if stationary else H, S, A, S), zeros)
    policy = random_rows(rng, (H, S, A), zeros)
    loss = np.where(rng.random((H, S, A)) < zeros / 2, rng.integers(2, size=(H, S, A)), rng.random((H, S, A)))
    initial = random_rows(rng, (S,), zeros) if start is None else np.eye(S)[start]
    return Problem(np.broadcast_to(transition, (H, S, A, S)).copy(), policy, loss, initial)


def random_boxes(
    rng: np.random.Generator, transition: Floats, width: float, whole: float = 0.1
) -> tuple[Floats, Floats]:
    """Boxes around `transition`, at most `width` to either side; about a share `whole` of the rows is the simplex."""
    lower = np.maximum(transition - width * rng.random(transition.shape), 0.0)
    upper = np.minimum(transition + width * rng.random(transition.shape), 1.0)
    unknown = rng.random(transition.shape[:-1]) < whole
    lower[unknown], upper[unknown] = 0.0, 1.0
    return lower, upper


def random_member(rng: np.random.Generator, lower: Floats, upper: Floats) -> Floats:
    """Transitions in the boxes, row by row a mixture of three corners of box and simplex."""
    member = np.zeros_like(lower)
    for index in np.ndindex(lower.shape[:-1]):
        for share in rng.dirichlet(np.ones(3)):
            corner = lower[index].copy()
            for s in rng.permutation(lower.shape[-1]):
                corner[s] += min(upper[index][s] - corner[s], 1.0 - corner.sum())
            member[index] += share * corner
    return member


def as_sparse(seed: int, transition: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """The same transitions as successors and probabilities, in random order: the last positive one of each row is
    named twice with half its probability, and rows are padded with probability 0 and random states."""
    rng = np.random.default_rng(seed)
    S = transition.shape[-1]
    n = int((transition > 0.0).sum(axis=-1).max()) + 2
    next_states = rng.integers(S, size=(*transition.shape[:-1], n))
    probabilities = np.zeros(next_states.shape)
    for index in np.ndindex(transition.shape[:-1]):
        positive = np.flatnonzero(transition[index])
        order = rng.permutation(n)
        next_states[index][order[: positive.size]] = positive
        probabilities[index][order[: positive.size]] = transition[index][positive]
        probabilities[index][order[positive.size - 1]] /= 2.0
        next_states[index][order[positive.size]] = positive[-1]
        probabilities[index][order[positive.size]] = transition[index][positive[-1]] / 2.0
    return next_states, probabilities
