"""Mirror descent by relative entropy over occupancies, dynamics known or known to lie in a set; by its dual.

Occupancies are q_h(s, a, s') = n_h(s, a) k_h(s'|s, a), at the last step n_H(s, a) alone.  The step is

    argmin_q  Σ_h Σ_{s,a} c_h(s, a) n_h(s, a) + KL(q ‖ q⁰),   KL the unnormalised relative entropy,

over the flow equations Σ_a n_h(s, a) = initial(s) or Σ_{s',a'} n_{h-1}(s', a') k_{h-1}(s|s', a') and k_h(·|s, a) in its
set, where the minimum over a row's kernel and mass has a closed form once the multipliers v_h(s) of the flow equations
are given:

    G_h(s, a) = min_k Σ_{s'} k(s') (ln(k(s') / k⁰(s')) + v_{h+1}(s')),   n = n⁰ exp(v_h(s) − c − G)

so that only v is left, unconstrained, minimising the convex function

    Φ(v) = Σ n − Σ_s initial(s) v_1(s),   ∂Φ / ∂v_h(s) = Σ_a n_h(s, a) − inflow_h(s).

Newton's method on Φ has a block-tridiagonal matrix, since G_h depends on v_{h+1} only.  Where kernels are pieces of
different formulas (which entries are at their limits changes with v), its matrix is that of the piece v lies in.

Sets: KNOWN, one kernel; BOXES, lower <= k <= upper; BALLS, Σ |k − mean| <= radius.  Callers validate.
"""

import numpy as np
from numba import njit

from aggbandit.kernels.barrier_newton import factor, solve

KNOWN, BOXES, BALLS = 0, 1, 2

_ARMIJO = 0.1
_FLOOR = 1e-250  # a probability below counts as this one: logarithms stay finite
_LEAST = 1e-10  # of a kernel's probability, whatever its set says: a later set may ask for more of it
_LAST_STEP = 1e-6  # decrement after which one full step leaves its square
_NOTHING = 1e-14  # of a row's mass: rounding


@njit(cache=True)
def log_sum(log_weight_t, group_t, group):
    """ln Σ exp(log weight) over the entries of a group; -inf where it has none."""
    greatest, total = -np.inf, 0.0
    for t in range(log_weight_t.shape[0]):
        if group_t[t] == group:
            greatest = max(greatest, log_weight_t[t])
    if greatest == -np.inf:
        return greatest
    for t in range(log_weight_t.shape[0]):
        if group_t[t] == group:
            total += np.exp(log_weight_t[t] - greatest)
    return greatest + np.log(total)


@njit(cache=True)
def tilted_in_box(log_weight_t, lower_t, upper_t, out_k_t, out_group_t):
    """argmin_k Σ k ln(k / weight) over lower <= k <= upper, Σ k = 1: k = clip(τ weight, lower, upper).

    τ is that of the entries not yet at a limit; of those that it would put beyond one, the side that is farther beyond
    in sum goes to its limit for good [Bitran and Hax 1981].  Groups: 0 at a limit, 1 free.
    """
    S = log_weight_t.shape[0]
    rest = 1.0
    for t in range(S):
        rest -= lower_t[t]
        out_group_t[t] = 1
    if rest <= _NOTHING:
        for t in range(S):
            out_k_t[t] = lower_t[t]
            out_group_t[t] = 0
        return
    rest = 1.0
    for _ in range(S):
        scale = -log_sum(log_weight_t, out_group_t, 1)
        below, above = 0.0, 0.0
        for t in range(S):
            if out_group_t[t] == 1:
                k = rest * np.exp(scale + log_weight_t[t])
                out_k_t[t] = k
                if k < lower_t[t]:
                    below += lower_t[t] - k
                elif k > upper_t[t]:
                    above += k - upper_t[t]
        if below == 0.0 and above == 0.0:
            return
        for t in range(S):
            if out_group_t[t] == 1:
                if below >= above and out_k_t[t] < lower_t[t]:
                    out_k_t[t] = lower_t[t]
                    out_group_t[t] = 0
                    rest -= out_k_t[t]
                elif below < above and out_k_t[t] > upper_t[t]:
                    out_k_t[t] = upper_t[t]
                    out_group_t[t] = 0
                    rest -= out_k_t[t]


@njit(cache=True)
def tilted_in_ball(log_weight_t, mean_t, radius, out_k_t, out_group_t):
    """argmin_k Σ k ln(k / weight) over Σ |k − mean| <= radius, Σ k = 1; `mean` sums to 1.

    weight / Σ weight if that is inside.  Otherwise half the radius is spent upwards and half downwards,

        k = max(mean, α weight) in the group U where that is more,   Σ_U α weight = Σ_U mean + radius / 2,
        k = min(mean, ρ weight) in the group D where that is less,   Σ_D ρ weight = Σ_D mean − radius / 2,

    α < 1 / Σ weight < ρ, and both groups shrink from what they are at 1 / Σ weight to what they are in the end.
    Groups: 0 k = mean, 1 U (or all, inside), 2 D.
    """
    S = log_weight_t.shape[0]
    for t in range(S):
        out_group_t[t] = 1
    scale = log_sum(log_weight_t, out_group_t, 1)
    distance = 0.0
    for t in range(S):
        out_k_t[t] = np.exp(log_weight_t[t] - scale)
        distance += abs(out_k_t[t] - mean_t[t])
    if distance <= radius:
        return
    for t in range(S):
        out_group_t[t] = 0
        if radius > 0.0 and out_k_t[t] != mean_t[t]:
            out_group_t[t] = 1 if out_k_t[t] > mean_t[t] else 2
        out_k_t[t] = mean_t[t]
    for group in (1, 2):
        sign = 1.0 if group == 1 else -1.0
        for _ in range(S):
            mass = sign * 0.5 * radius
            for t in range(S):
                if out_group_t[t] == group:
                    mass += mean_t[t]
            scale = log_sum(log_weight_t, out_group_t, group)
            shrunk = False
            for t in range(S):
                if out_group_t[t] == group:
                    out_k_t[t] = max(mass, 0.0) * np.exp(log_weight_t[t] - scale)
                    if sign * (out_k_t[t] - mean_t[t]) < 0.0:
                        out_k_t[t] = mean_t[t]
                        out_group_t[t] = 0
                        shrunk = True
            if not shrunk:
                break


@njit(cache=True)
def best_row(kind, lower_t, upper_t, radius, k0_t, v_t, scratch_w_t, out_k_t, out_group_t):
    """G and the kernel that attains it."""
    S = v_t.shape[0]
    value = 0.0
    if kind == KNOWN:
        for t in range(S):
            value += lower_t[t] * v_t[t]
        return value
    for t in range(S):
        scratch_w_t[t] = np.log(max(k0_t[t], _FLOOR)) - v_t[t]
    if kind == BOXES:
        tilted_in_box(scratch_w_t, lower_t, upper_t, out_k_t, out_group_t)
    else:
        tilted_in_ball(scratch_w_t, lower_t, radius, out_k_t, out_group_t)
    for t in range(S):
        if out_k_t[t] > 0.0:
            value += out_k_t[t] * (np.log(out_k_t[t]) - scratch_w_t[t])
    return value


@njit(cache=True)
def keep_alive(k_hsat):
    """Raise what has all but vanished to `_LEAST`, and scale rows back to 1.

    A place that no mass comes to can never get any again, but the set of the next epoch may send some there: a set of
    radius 0 excludes today what it holds tomorrow.
    """
    rows, S, A = k_hsat.shape[:3]
    for h in range(rows):
        for s in range(S):
            for a in range(A):
                total = 0.0
                for i in range(S):
                    k_hsat[h, s, a, i] = max(k_hsat[h, s, a, i], _LEAST)
                    total += k_hsat[h, s, a, i]
                for i in range(S):
                    k_hsat[h, s, a, i] /= total


@njit(cache=True)
def dual(
    kind, initial_s, cost_hsa, lower_tsas, upper_tsas, radius_hsa, log_policy_hsa, k0_hsat, reach_hs,
    start, v_hs, scratch_w_t, out_k_hsat, out_group_hsat, out_g_hsa, out_n_hsa,
):  # fmt: skip
    """Φ(v), with kernels, groups, G and n on the way.

    With `start`, v is made first: the values Σ_a π(a|s) exp(v_h(s) − c − G) = 1, which leave every state the mass it
    had.  They are the answer where dynamics are deterministic, and near it for small steps.
    """
    H, S, A = cost_hsa.shape
    T = lower_tsas.shape[0]
    value = 0.0
    for h in range(H - 1, -1, -1):
        t = h if T > 1 else 0
        for s in range(S):
            greatest = -np.inf
            for a in range(A):
                g = 0.0
                if h + 1 < H:
                    radius = radius_hsa[h, s, a] if kind == BALLS else 0.0
                    row = h if kind != KNOWN else 0
                    g = best_row(
                        kind, lower_tsas[t, s, a], upper_tsas[t, s, a], radius, k0_hsat[row, s, a], v_hs[h + 1],
                        scratch_w_t, out_k_hsat[row, s, a], out_group_hsat[row, s, a],
                    )  # fmt: skip
                out_g_hsa[h, s, a] = g
                greatest = max(greatest, log_policy_hsa[h, s, a] - cost_hsa[h, s, a] - g)
            if start:
                total = 0.0
                for a in range(A):
                    total += np.exp(log_policy_hsa[h, s, a] - cost_hsa[h, s, a] - out_g_hsa[h, s, a] - greatest)
                v_hs[h, s] = -greatest - np.log(total)
            for a in range(A):
                exponent = v_hs[h, s] + log_policy_hsa[h, s, a] - cost_hsa[h, s, a] - out_g_hsa[h, s, a]
                out_n_hsa[h, s, a] = reach_hs[h, s] * np.exp(exponent) if reach_hs[h, s] > 0.0 else 0.0
                value += out_n_hsa[h, s, a]
    for s in range(S):
        value -= initial_s[s] * v_hs[0, s]
    return value


@njit(cache=True, nogil=True)
def project(
    kind, initial_s, cost_hsa, lower_tsas, upper_tsas, radius_hsa, log_policy_hsa, k_hsat, reach_hs, most_steps
):  # fmt: skip
    """Make the step in place; the Newton decrement before the last step, squared where that was a full one.

    q⁰ = reach · exp(log_policy) · k, where reach is what policy and k lead to.  For BALLS `lower` holds the means; for
    KNOWN it is the kernel and k is empty (0, S, A, S).  Rows of `log_policy` come back as logarithms that sum to 1, and
    reach as what the new policy and kernel lead to, so that the flow equations hold to rounding whatever Newton left.
    """
    H, S, A = cost_hsa.shape
    T = lower_tsas.shape[0]
    rows = H if kind != KNOWN else 1
    shape = (rows, S, A, S)
    out_k, out_group = np.zeros(shape), np.zeros(shape, np.int64)
    k0 = k_hsat if kind != KNOWN else out_k
    g_hsa, n_hsa = np.zeros((H, S, A)), np.zeros((H, S, A))
    v_hs, tried_hs, w_t = np.zeros((H, S)), np.zeros((H, S)), np.zeros(S)
    mass_g = np.zeros(3)
    fixed = (kind, initial_s, cost_hsa, lower_tsas, upper_tsas, radius_hsa, log_policy_hsa, k0, reach_hs)
    value = dual(*fixed, True, v_hs, w_t, out_k, out_group, g_hsa, n_hsa)
    decrement = np.inf
    for _ in range(most_steps):
        diagonal, off = np.zeros((H, S, S)), np.zeros((H, S, S))
        gradient = np.zeros((H, S))
        for s in range(S):
            gradient[0, s] -= initial_s[s]
        for h in range(H):
            t = h if T > 1 else 0
            for s in range(S):
                for a in range(A):
                    n = n_hsa[h, s, a]
                    gradient[h, s] += n
                    diagonal[h, s, s] += n
                    if h + 1 == H or n == 0.0:
                        continue
                    k_t = out_k[h, s, a] if kind != KNOWN else lower_tsas[t, s, a]
                    group_t = out_group[h, s, a] if kind != KNOWN else out_group[0, s, a]
                    mass_g[:] = 0.0
                    for i in range(S):
                        mass_g[group_t[i]] += k_t[i]
                    for i in range(S):
                        nk = n * k_t[i]
                        if nk == 0.0:
                            continue
                        gradient[h + 1, i] -= nk
                        off[h, s, i] -= nk
                        here = group_t[i]
                        if here != 0:
                            diagonal[h + 1, i, i] += nk
                        for j in range(i + 1):
                            both = nk * k_t[j]
                            diagonal[h + 1, i, j] += both
                            if here != 0 and group_t[j] == here:
                                diagonal[h + 1, i, j] -= both / mass_g[here]
        step = gradient.copy()
        factor(diagonal, off)
        solve(diagonal, off, step)
        square = (gradient * step).sum()
        if not square > 0.0:
            decrement = 0.0
            break
        decrement = np.sqrt(square)
        length = 1.0
        while True:
            for h in range(H):
                for s in range(S):
                    tried_hs[h, s] = v_hs[h, s] - length * step[h, s]
            found = dual(*fixed, False, tried_hs, w_t, out_k, out_group, g_hsa, n_hsa)
            # close to the end the gain is below rounding
            if decrement < _LAST_STEP or found <= value - _ARMIJO * length * square or length < 1e-15:
                break
            length *= 0.5
        v_hs[:] = tried_hs
        value = found
        if decrement < _LAST_STEP:
            decrement = square
            break
    for h in range(H):
        for s in range(S):
            greatest = -np.inf
            for a in range(A):
                log_policy_hsa[h, s, a] -= cost_hsa[h, s, a] + g_hsa[h, s, a]
                greatest = max(greatest, log_policy_hsa[h, s, a])
            total = 0.0
            for a in range(A):
                total += np.exp(log_policy_hsa[h, s, a] - greatest)
            for a in range(A):
                log_policy_hsa[h, s, a] -= greatest + np.log(total)
    if kind != KNOWN:
        k_hsat[: H - 1] = out_k[: H - 1]
        keep_alive(k_hsat[: H - 1])
    reach_hs[:] = 0.0
    reach_hs[0] = initial_s
    for h in range(H - 1):
        t = h if T > 1 else 0
        for s in range(S):
            for a in range(A):
                n = reach_hs[h, s] * np.exp(log_policy_hsa[h, s, a])
                if n > 0.0:
                    for i in range(S):
                        k = k_hsat[h, s, a, i] if kind != KNOWN else lower_tsas[t, s, a, i]
                        reach_hs[h + 1, i] += n * k
    return decrement
