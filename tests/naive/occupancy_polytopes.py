"""Occupancy polytopes as lists of linear equations and inequalities, and convex steps on them by dense algebra.

Known dynamics: x_h(s, a) >= 0.  Boxes: y_h(s, a, s') for h < H and x_H(s, a), with lower <= y(s')/Σ y <= upper.
"""

from typing import Any

import numpy as np

from naive.planning import Floats


def flow_equations(transition: Floats, initial: Floats) -> tuple[Floats, Floats]:
    """(C, d) with C x = d for the occupancies x (H S A) of all policies."""
    H, S, A, _ = transition.shape
    C, d = np.zeros((H, S, H, S, A)), np.zeros((H, S))
    for h, s, a in np.ndindex(H, S, A):
        C[h, s, h, s, a] = 1.0
        if h + 1 < H:
            for s_next in range(S):
                C[h + 1, s_next, h, s, a] -= transition[h, s, a, s_next]
    d[0] = initial
    return C.reshape(H * S, -1), d.ravel()


def reachable(transition: Floats, initial: Floats) -> Any:
    """(H, S): by following every edge."""
    H, S, A, _ = transition.shape
    found = np.zeros((H, S), dtype=bool)
    for s in range(S):
        found[0, s] = initial[s] > 0
    for h, s, a, s_next in np.ndindex(H - 1, S, A, S):
        if found[h, s] and transition[h, s, a, s_next] > 0:
            found[h + 1, s_next] = True
    return found


def null_basis(C: Floats) -> Floats:
    """Orthonormal columns that C maps to 0."""
    _, values, right = np.linalg.svd(C)
    rank = int((values > 1e-10 * values.max()).sum())
    return np.asarray(right[rank:].T)


def box_flow_equations(H: int, S: int, A: int, initial: Floats) -> tuple[Floats, Floats]:
    """(C, d) for y_h(s, a, s'), h < H, followed by x_H(s, a); places with initial(s) = 0 at the first step included."""
    inner = (H - 1) * S * A * S
    y = np.arange(inner).reshape(H - 1, S, A, S)
    x = inner + np.arange(S * A).reshape(S, A)
    C, d = np.zeros((H, S, inner + S * A)), np.zeros((H, S))
    for h, s in np.ndindex(H, S):
        leaving = y[h, s] if h + 1 < H else x[s]
        C[h, s, leaving.ravel()] += 1.0
        if h > 0:
            C[h, s, y[h - 1, :, :, s].ravel()] -= 1.0
    d[0] = initial
    return C.reshape(H * S, -1), d.ravel()


def box_slacks(lower: Floats, upper: Floats, H: int, S: int, A: int) -> Floats:
    """One row for each inequality row · (y, x) >= 0 of the box polytope, those without effect left out.

    y(s') − lower Σ y >= 0 always, upper Σ y − y(s') >= 0 where upper < 1 − Σ_{others} lower, and x >= 0.
    """
    inner = (H - 1) * S * A * S
    y = np.arange(inner).reshape(H - 1, S, A, S)
    rows = []
    for h, s, a, i in np.ndindex(H - 1, S, A, S):
        row = np.zeros(inner + S * A)
        row[y[h, s, a]] -= lower[h, s, a, i]
        row[y[h, s, a, i]] += 1.0
        rows.append(row)
        if upper[h, s, a, i] < 1.0 - (lower[h, s, a].sum() - lower[h, s, a, i]) - 1e-12:
            row = np.zeros(inner + S * A)
            row[y[h, s, a]] += upper[h, s, a, i]
            row[y[h, s, a, i]] -= 1.0
            rows.append(row)
    for j in range(S * A):
        rows.append(np.eye(inner + S * A)[inner + j])
    return np.array(rows)


def barrier_minimum(cost: Floats, slack: Floats, C: Floats, d: Floats, log: Floats, root: float = 0.0) -> Floats:
    """argmin cost · x − Σ log_i ln(slack_i · x) − root Σ √x over C x = d, by cvxpy and Clarabel."""
    import cvxpy

    x = cvxpy.Variable(cost.size)
    objective = cost @ x - log @ cvxpy.log(slack @ x)
    if root:
        objective -= root * cvxpy.sum(cvxpy.sqrt(x))
    problem = cvxpy.Problem(cvxpy.Minimize(objective), [C @ x == d])
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert problem.status == "optimal", problem.status
    return np.asarray(x.value)
