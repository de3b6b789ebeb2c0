"""argmin ⟨c, q⟩ + KL(q ‖ q⁰) over occupancies by a conic solver, from the definition of the set."""

import warnings

import cvxpy as cp
import numpy as np


def known(transition, initial, base, cost):
    """x (H, S, A); base 0 where nothing can be."""
    H, S, A = base.shape
    x = [cp.Variable((S, A), nonneg=True) for _ in range(H)]
    rules = [cp.sum(x[0], axis=1) == initial]
    for h in range(H - 1):
        inflow = sum(cp.multiply(x[h][s, a], transition[h, s, a]) for s in range(S) for a in range(A))
        rules.append(cp.sum(x[h + 1], axis=1) == inflow)
    value = 0
    for h, s, a in np.ndindex(H, S, A):
        if base[h, s, a] > 0:
            value += cost[h, s, a] * x[h][s, a] + cp.kl_div(x[h][s, a], base[h, s, a])
        else:
            rules.append(x[h][s, a] == 0)
    return solved(value, rules), np.array([v.value for v in x])


def in_set(initial, mass, kernel, cost, *, lower=None, upper=None, mean=None, radius=None):
    """n (H, S, A) and q (H - 1, S, A, S); boxes, or balls of L1 distance."""
    H, S, A = mass.shape
    q = [cp.Variable((S * A, S), nonneg=True) for _ in range(H - 1)]
    last = cp.Variable((S, A), nonneg=True)
    rules, value = [], 0
    inflow = initial
    for h in range(H - 1):
        n = cp.sum(q[h], axis=1)
        for s in range(S):
            rules.append(cp.sum(n[s * A : (s + 1) * A]) == inflow[s])
        inflow = cp.sum(q[h], axis=0)
        for s, a in np.ndindex(S, A):
            row, i = q[h][s * A + a], s * A + a
            if mean is None:
                rules += [row >= lower[h, s, a] * n[i], row <= upper[h, s, a] * n[i]]
            else:
                rules.append(cp.norm1(row - n[i] * mean[h, s, a]) <= radius[h, s, a] * n[i])
            if mass[h, s, a] > 0:
                value += cost[h, s, a] * n[i] + cp.sum(cp.kl_div(row, mass[h, s, a] * kernel[h, s, a]))
            else:
                rules.append(row == 0)
    rules.append(cp.sum(last, axis=1) == inflow)
    for s, a in np.ndindex(S, A):
        if mass[-1, s, a] > 0:
            value += cost[-1, s, a] * last[s, a] + cp.kl_div(last[s, a], mass[-1, s, a])
        else:
            rules.append(last[s, a] == 0)
    best = solved(value, rules)
    full = np.array([v.value.reshape(S, A, S) for v in q]).reshape(H - 1, S, A, S)
    return best, full, last.value


def solved(value, rules):
    problem = cp.Problem(cp.Minimize(value), rules)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it may stop short of these tolerances
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    return problem.value


def objective(mass, kernel, cost, base_mass, base_kernel):
    """⟨c, q⟩ + KL(q ‖ q⁰) of q = mass · kernel; at the last step of the mass alone."""
    H = len(mass)
    value = float((cost * mass).sum())
    for h in range(H):
        new = mass[h][..., None] * kernel[h] if h + 1 < H else mass[h]
        old = base_mass[h][..., None] * base_kernel[h] if h + 1 < H else base_mass[h]
        seen = new > 0
        value += float((new[seen] * np.log(new[seen] / old[seen])).sum() - new.sum() + old.sum())
    return value
