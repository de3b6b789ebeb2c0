"""Newton's method over occupancy polytopes, in the tangent space of the flow equations.

Two polytopes.  With known dynamics its points are x_h(s, a) > 0 with the flow equations

    (C x)_h(s) = Σ_a x_h(s, a) − Σ_{s', a'} p_{h-1}(s|s', a') x_{h-1}(s', a') = initial(s) at the first step, else 0.

With dynamics known to lie in boxes lower <= p' <= upper its points are m_h(s, a, i) > 0, the mass that leaves (h, s, a)
by the extreme kernel lower + rest · 1{i}, where rest = 1 − Σ lower, and moreover share_i · Σ_j m_j > m_i wherever
share_i = (upper_i − lower_i) / rest < 1; at the last step, which leads nowhere, they are x_H(s, a) > 0.

A Newton step is −K g with K = W (W^T Hess W)^{-1} W^T for any basis W of the null space of C.  It is found without
one: K g = Hess^{-1} (g − C^T λ) where (C Hess^{-1} C^T) λ = C Hess^{-1} g, and that matrix is block-tridiagonal in h,
since flow equations couple neighbouring steps only.  So a step costs O(H S³ + H S² A) with known dynamics and
O(H S³ A) with boxes, where a basis would cost O((H S A)³) and O((H S² A)³).

Places outside `open_hs` (unreachable ones) hold no variable: their entries are 0 and stay 0.
Callers validate.  Scratch is allocated here: it is small beside the work of a step.
"""

import numpy as np
from numba import njit

_ARMIJO = 0.1  # a damped step must gain this share of what the gradient promises
_FULL_STEP = 0.25  # Newton decrement under which full steps converge quadratically
_LAST_STEP = 1e-5  # decrement after which one full step leaves less than 1e-10: it squares
_TO_BOUNDARY = 0.99


@njit(cache=True, nogil=True)
def _sum(row_i):
    total = 0.0
    for i in range(row_i.shape[0]):
        total += row_i[i]
    return total


@njit(cache=True, nogil=True)
def _clear(row_i):
    for i in range(row_i.shape[0]):
        row_i[i] = 0.0


@njit(cache=True, nogil=True)
def factor(diagonal_hij, off_hij):
    """Block Cholesky of the symmetric block-tridiagonal matrix, in place.

    R_h R_h^T = D_h − Y_{h-1}^T Y_{h-1},   Y_h = R_h^{-1} E_h   (D_h the diagonal blocks, E_h those right of them)
    """
    H, S, _ = diagonal_hij.shape
    for h in range(H):
        if h > 0:
            for i in range(S):
                for k in range(S):
                    y = off_hij[h - 1, k, i]
                    if y != 0.0:
                        for j in range(i + 1):
                            diagonal_hij[h, i, j] -= y * off_hij[h - 1, k, j]
        for j in range(S):
            pivot = diagonal_hij[h, j, j]
            for k in range(j):
                pivot -= diagonal_hij[h, j, k] ** 2
            # a pivot lost to rounding belongs to an equation that carries no weight: an infinite one drops it
            pivot = np.sqrt(pivot) if pivot > 1e-300 else 1e150
            diagonal_hij[h, j, j] = pivot
            for i in range(j + 1, S):
                entry = diagonal_hij[h, i, j]
                for k in range(j):
                    entry -= diagonal_hij[h, i, k] * diagonal_hij[h, j, k]
                diagonal_hij[h, i, j] = entry / pivot
        if h + 1 < H:
            for i in range(S):
                for k in range(i):
                    r = diagonal_hij[h, i, k]
                    if r != 0.0:
                        for j in range(S):
                            off_hij[h, i, j] -= r * off_hij[h, k, j]
                for j in range(S):
                    off_hij[h, i, j] /= diagonal_hij[h, i, i]


@njit(cache=True, nogil=True)
def solve(diagonal_hij, off_hij, right_hi):
    """The solution of the factored system, in place of its right side."""
    H, S = right_hi.shape
    for h in range(H):
        for i in range(S):
            value = right_hi[h, i]
            if h > 0:
                for k in range(S):
                    value -= off_hij[h - 1, k, i] * right_hi[h - 1, k]
            for k in range(i):
                value -= diagonal_hij[h, i, k] * right_hi[h, k]
            right_hi[h, i] = value / diagonal_hij[h, i, i]
    for h in range(H - 1, -1, -1):
        for i in range(S - 1, -1, -1):
            value = right_hi[h, i]
            if h + 1 < H:
                for k in range(S):
                    value -= off_hij[h, i, k] * right_hi[h + 1, k]
            for k in range(i + 1, S):
                value -= diagonal_hij[h, k, i] * right_hi[h, k]
            right_hi[h, i] = value / diagonal_hij[h, i, i]


@njit(cache=True, nogil=True)
def tangent(transition_tsas, open_hs, weight_hsa, gradient_hsa, out_hsa):
    """K g for a diagonal Hessian 1 / weight, known dynamics: C out = 0."""
    H, S, A = weight_hsa.shape
    T = transition_tsas.shape[0]
    diagonal_hij = np.zeros((H, S, S))
    off_hij = np.zeros((H, S, S))
    right_hs = np.zeros((H, S))
    for h in range(H):
        t = h if T > 1 else 0
        for s in range(S):
            if not open_hs[h, s]:
                diagonal_hij[h, s, s] = 1.0
                continue
            for a in range(A):
                w = weight_hsa[h, s, a]
                wg = w * gradient_hsa[h, s, a]
                diagonal_hij[h, s, s] += w
                right_hs[h, s] += wg
                if h + 1 < H:
                    for i in range(S):
                        p = transition_tsas[t, s, a, i]
                        if p != 0.0:
                            right_hs[h + 1, i] -= wg * p
                            off_hij[h, s, i] -= w * p
                            for j in range(i + 1):
                                diagonal_hij[h + 1, i, j] += w * p * transition_tsas[t, s, a, j]
    factor(diagonal_hij, off_hij)
    solve(diagonal_hij, off_hij, right_hs)
    for h in range(H):
        t = h if T > 1 else 0
        for s in range(S):
            for a in range(A):
                if not open_hs[h, s]:
                    out_hsa[h, s, a] = 0.0
                    continue
                rest = gradient_hsa[h, s, a] - right_hs[h, s]
                if h + 1 < H:
                    for i in range(S):
                        rest += transition_tsas[t, s, a, i] * right_hs[h + 1, i]
                out_hsa[h, s, a] = weight_hsa[h, s, a] * rest


@njit(cache=True, nogil=True)
def minimise(transition_tsas, open_hs, cost_hsa, root, log_hsa, x_hsa, most_steps):
    """Move x to the least of Σ cost x − root Σ √x − Σ log ln x over the polytope; the decrement there, the steps made.

    x must be a point of it, all open entries positive, and log > 0.  Damped steps while the decrement √(g^T K g) is
    over 1/4, full ones then, until it is below 1e-10.
    """
    H, S, A = x_hsa.shape
    weight_hsa = np.zeros((H, S, A))
    gradient_hsa = np.zeros((H, S, A))
    step_hsa = np.zeros((H, S, A))
    least_log = np.inf
    for h in range(H):
        for s in range(S):
            if open_hs[h, s]:
                for a in range(A):
                    least_log = min(least_log, log_hsa[h, s, a])
    # the objective divided by its least log coefficient is standard self-concordant, with this much greater decrement
    concordance = np.sqrt(min(1.0, least_log))
    decrement = np.inf
    for made in range(most_steps):
        for h in range(H):
            for s in range(S):
                if open_hs[h, s]:
                    for a in range(A):
                        x = x_hsa[h, s, a]
                        half = 0.5 * root / np.sqrt(x)
                        log = log_hsa[h, s, a] / x
                        gradient_hsa[h, s, a] = cost_hsa[h, s, a] - half - log
                        weight_hsa[h, s, a] = x / (0.5 * half + log)
        tangent(transition_tsas, open_hs, weight_hsa, gradient_hsa, step_hsa)
        square = 0.0
        longest = np.inf
        for h in range(H):
            for s in range(S):
                if open_hs[h, s]:
                    for a in range(A):
                        d = step_hsa[h, s, a]
                        square += d * d / weight_hsa[h, s, a]
                        if d > 0.0:
                            longest = min(longest, x_hsa[h, s, a] / d)
        decrement = np.sqrt(square)
        if decrement == 0.0:
            return decrement, made
        length = min(1.0, _TO_BOUNDARY * longest)
        if decrement >= _FULL_STEP * concordance:
            # the step that theory grants is the shortest worth looking at: below it only rounding says no
            granted = min(length, 1.0 / (1.0 + decrement / concordance))
            while length > granted:
                change = 0.0
                for h in range(H):
                    for s in range(S):
                        if open_hs[h, s]:
                            for a in range(A):
                                x = x_hsa[h, s, a]
                                d = -length * step_hsa[h, s, a]
                                change += cost_hsa[h, s, a] * d - log_hsa[h, s, a] * np.log1p(d / x)
                                change -= root * d / (np.sqrt(x + d) + np.sqrt(x))
                if change <= -_ARMIJO * length * square:
                    break
                length = max(0.5 * length, granted)
        for h in range(H):
            for s in range(S):
                if open_hs[h, s]:
                    for a in range(A):
                        x_hsa[h, s, a] -= length * step_hsa[h, s, a]
        if decrement < _LAST_STEP * concordance and length == 1.0:
            return square / concordance, made + 1  # what the decrement is by now
    return decrement, most_steps


@njit(cache=True, nogil=True)
def restore(transition_tsas, initial_s, open_hs, x_hsa):
    """Scale x place by place so that it obeys the flow equations to the last bit that rounding allows.

    A Newton step obeys them to rounding; over many thousand warm starts the roundings would add up.
    """
    H, S, A = x_hsa.shape
    T = transition_tsas.shape[0]
    inflow_hs = np.zeros((H + 1, S))
    for s in range(S):
        inflow_hs[0, s] = initial_s[s]
    for h in range(H):
        t = h if T > 1 else 0
        for s in range(S):
            if not open_hs[h, s]:
                continue
            scale = inflow_hs[h, s] / _sum(x_hsa[h, s])
            for a in range(A):
                x_hsa[h, s, a] *= scale
                if h + 1 < H:
                    for i in range(S):
                        inflow_hs[h + 1, i] += transition_tsas[t, s, a, i] * x_hsa[h, s, a]


@njit(cache=True, nogil=True)
def dikin(transition_tsas, open_hs, x_hsa, normal_hsa, out_step_hsa, out_pull_hsa):
    """A uniform point of the Dikin ellipsoid's surface around x, as a step from x, and Hess · step.

    For R = −Σ ln x: g = Hess^{1/2} n has covariance Hess, so K g = W (W^T Hess W)^{-1/2} (standard normal), which
    divided by its own length √(step^T Hess step) is uniform on the sphere of reduced coordinates.
    """
    H, S, A = x_hsa.shape
    weight_hsa = np.empty((H, S, A))
    for h in range(H):
        for s in range(S):
            for a in range(A):
                weight_hsa[h, s, a] = x_hsa[h, s, a] ** 2
                out_pull_hsa[h, s, a] = normal_hsa[h, s, a] / x_hsa[h, s, a] if open_hs[h, s] else 0.0
    tangent(transition_tsas, open_hs, weight_hsa, out_pull_hsa, out_step_hsa)
    square = 0.0
    for h in range(H):
        for s in range(S):
            if open_hs[h, s]:
                for a in range(A):
                    square += out_step_hsa[h, s, a] ** 2 / weight_hsa[h, s, a]
    scale = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
    for h in range(H):
        for s in range(S):
            for a in range(A):
                out_step_hsa[h, s, a] *= scale
                out_pull_hsa[h, s, a] = out_step_hsa[h, s, a] / weight_hsa[h, s, a] if open_hs[h, s] else 0.0


@njit(cache=True, nogil=True)
def _box_terms(m_i, share_i, total, out_alpha_i, out_beta_i):
    """1/m² and 1/(share Σm − m)², the latter 0 where share >= 1 and there is no such constraint."""
    for i in range(m_i.shape[0]):
        out_alpha_i[i] = 1.0 / (m_i[i] * m_i[i])
        out_beta_i[i] = 1.0 / (share_i[i] * total - m_i[i]) ** 2 if share_i[i] < 1.0 else 0.0


@njit(cache=True, nogil=True)
def _box_inverse(alpha_i, beta_i, share_i, out_first_i, out_second_i, out_g_i):
    """The inverse of B = diag(α + β) − b 1^T − 1 b^T + κ 1 1^T, b = β share, κ = Σ β share², by Woodbury's formula.

    B^{-1} = diag(g) − (r f f^T − q (f e^T + e f^T) − t e e^T) / (t r + q²),   g = 1/(α + β), f = g, e = g b;
    returns q, r, t over t r + q², where r = κ − Σ g b² = Σ share² α β g is summed in the form without cancellation.
    """
    q = 1.0
    r = 0.0
    t = 0.0
    for i in range(alpha_i.shape[0]):
        g = 1.0 / (alpha_i[i] + beta_i[i])
        e = g * beta_i[i] * share_i[i]
        out_g_i[i] = g
        out_first_i[i] = g
        out_second_i[i] = e
        q -= e
        r += share_i[i] ** 2 * alpha_i[i] * beta_i[i] * g
        t += g
    scale = t * r + q * q
    return q / scale, r / scale, t / scale


@njit(cache=True, nogil=True)
def _box_solve(g_i, first_i, second_i, q, r, t, right_i, out_i):
    """B^{-1} right."""
    n = g_i.shape[0]
    f = 0.0
    e = 0.0
    for i in range(n):
        f += first_i[i] * right_i[i]
        e += second_i[i] * right_i[i]
    on_first = r * f - q * e
    on_second = -q * f - t * e
    for i in range(n):
        out_i[i] = g_i[i] * right_i[i] - on_first * first_i[i] - on_second * second_i[i]


@njit(cache=True, nogil=True)
def _box_apply(alpha_i, beta_i, share_i, step_i, out_i):
    """B step."""
    n = alpha_i.shape[0]
    total = 0.0
    for i in range(n):
        total += step_i[i]
    along = 0.0
    for i in range(n):
        slack = share_i[i] * total - step_i[i]
        out_i[i] = alpha_i[i] * step_i[i] - beta_i[i] * slack
        along += beta_i[i] * share_i[i] * slack
    for i in range(n):
        out_i[i] += along


@njit(cache=True, nogil=True)
def tangent_boxes(lower_hsai, share_hsai, open_hs, m_hsai, x_sa, gradient_hsai, gradient_sa, out_hsai, out_sa):
    """K g for the log barrier of the boxes' polytope at (m, x): C out = 0."""
    S, A = x_sa.shape
    H = m_hsai.shape[0] + 1
    diagonal_hij = np.zeros((H, S, S))
    off_hij = np.zeros((H, S, S))
    right_hs = np.zeros((H, S))
    alpha_i, beta_i, g_i, f_i, e_i = np.empty(S), np.empty(S), np.empty(S), np.empty(S), np.empty(S)
    z_i, ones_i, zg_i, rest_i = np.empty(S), np.ones(S), np.empty(S), np.empty(S)
    for h in range(H - 1):
        for s in range(S):
            if not open_hs[h, s]:
                diagonal_hij[h, s, s] = 1.0
                continue
            for a in range(A):
                lower_i = lower_hsai[h, s, a]
                share_i = share_hsai[h, s, a]
                total = 0.0
                left = 1.0
                for i in range(S):
                    total += m_hsai[h, s, a, i]
                    left -= lower_i[i]
                _box_terms(m_hsai[h, s, a], share_i, total, alpha_i, beta_i)
                q, r, t = _box_inverse(alpha_i, beta_i, share_i, f_i, e_i, g_i)
                _box_solve(g_i, f_i, e_i, q, r, t, ones_i, z_i)
                _box_solve(g_i, f_i, e_i, q, r, t, gradient_hsai[h, s, a], zg_i)
                sum_z = 0.0
                sum_zg = 0.0
                for i in range(S):
                    sum_z += z_i[i]
                    sum_zg += zg_i[i]
                # each variable i enters +1 at (h, s) and −(lower + left · 1{i}) at (h + 1, ·)
                diagonal_hij[h, s, s] += sum_z
                right_hs[h, s] += sum_zg
                for i in range(S):
                    right_hs[h + 1, i] -= sum_zg * lower_i[i] + left * zg_i[i]
                    off_hij[h, s, i] -= sum_z * lower_i[i] + left * z_i[i]
                    diagonal_hij[h + 1, i, i] += left * left * g_i[i]
                    for j in range(i + 1):
                        entry = r * f_i[i] * f_i[j] - q * (f_i[i] * e_i[j] + e_i[i] * f_i[j]) - t * e_i[i] * e_i[j]
                        diagonal_hij[h + 1, i, j] += (
                            sum_z * lower_i[i] * lower_i[j]
                            + left * (lower_i[i] * z_i[j] + z_i[i] * lower_i[j])
                            - left * left * entry
                        )
    for s in range(S):
        if not open_hs[H - 1, s]:
            diagonal_hij[H - 1, s, s] = 1.0
            continue
        for a in range(A):
            w = x_sa[s, a] * x_sa[s, a]
            diagonal_hij[H - 1, s, s] += w
            right_hs[H - 1, s] += w * gradient_sa[s, a]
    factor(diagonal_hij, off_hij)
    solve(diagonal_hij, off_hij, right_hs)
    for h in range(H - 1):
        for s in range(S):
            for a in range(A):
                if not open_hs[h, s]:
                    _clear(out_hsai[h, s, a])
                    continue
                lower_i = lower_hsai[h, s, a]
                share_i = share_hsai[h, s, a]
                total = 0.0
                left = 1.0
                ahead = 0.0
                for i in range(S):
                    total += m_hsai[h, s, a, i]
                    left -= lower_i[i]
                    ahead += lower_i[i] * right_hs[h + 1, i]
                for i in range(S):
                    rest_i[i] = gradient_hsai[h, s, a, i] - right_hs[h, s] + ahead + left * right_hs[h + 1, i]
                _box_terms(m_hsai[h, s, a], share_i, total, alpha_i, beta_i)
                q, r, t = _box_inverse(alpha_i, beta_i, share_i, f_i, e_i, g_i)
                _box_solve(g_i, f_i, e_i, q, r, t, rest_i, out_hsai[h, s, a])
    for s in range(S):
        for a in range(A):
            if open_hs[H - 1, s]:
                out_sa[s, a] = x_sa[s, a] ** 2 * (gradient_sa[s, a] - right_hs[H - 1, s])
            else:
                out_sa[s, a] = 0.0


@njit(cache=True, nogil=True)
def hessian_boxes(share_hsai, open_hs, m_hsai, x_sa, step_hsai, step_sa, out_hsai, out_sa):
    """Hess · step for the log barrier of the boxes' polytope at (m, x), and step^T Hess step."""
    S, A = x_sa.shape
    alpha_i, beta_i = np.empty(S), np.empty(S)
    square = 0.0
    for h in range(m_hsai.shape[0]):
        for s in range(S):
            for a in range(A):
                if not open_hs[h, s]:
                    _clear(out_hsai[h, s, a])
                    continue
                _box_terms(m_hsai[h, s, a], share_hsai[h, s, a], _sum(m_hsai[h, s, a]), alpha_i, beta_i)
                _box_apply(alpha_i, beta_i, share_hsai[h, s, a], step_hsai[h, s, a], out_hsai[h, s, a])
                for i in range(S):
                    square += out_hsai[h, s, a, i] * step_hsai[h, s, a, i]
    last = m_hsai.shape[0]
    for s in range(S):
        for a in range(A):
            if open_hs[last, s]:
                out_sa[s, a] = step_sa[s, a] / x_sa[s, a] ** 2
                square += out_sa[s, a] * step_sa[s, a]
            else:
                out_sa[s, a] = 0.0
    return square


@njit(cache=True, nogil=True)
def minimise_boxes(lower_hsai, share_hsai, open_hs, cost_hsai, cost_sa, m_hsai, x_sa, most_steps):
    """Move (m, x) to the least of Σ cost · (m, x) + R over the boxes' polytope; the decrement there, the steps.

    R = −Σ ln m − Σ_{share_i < 1} ln(share_i Σ_j m_j − m_i) − Σ ln x_H
    """
    S, A = x_sa.shape
    H = m_hsai.shape[0] + 1
    gradient_hsai, gradient_sa = np.zeros(m_hsai.shape), np.zeros((S, A))
    step_hsai, step_sa = np.zeros(m_hsai.shape), np.zeros((S, A))
    decrement = np.inf
    for made in range(most_steps):
        for h in range(H - 1):
            for s in range(S):
                if not open_hs[h, s]:
                    continue
                for a in range(A):
                    total = _sum(m_hsai[h, s, a])
                    along = 0.0
                    for i in range(S):
                        m = m_hsai[h, s, a, i]
                        share = share_hsai[h, s, a, i]
                        gradient = cost_hsai[h, s, a, i] - 1.0 / m
                        if share < 1.0:
                            pull = 1.0 / (share * total - m)
                            gradient += pull
                            along += share * pull
                        gradient_hsai[h, s, a, i] = gradient
                    for i in range(S):
                        gradient_hsai[h, s, a, i] -= along
        for s in range(S):
            if open_hs[H - 1, s]:
                for a in range(A):
                    gradient_sa[s, a] = cost_sa[s, a] - 1.0 / x_sa[s, a]
        tangent_boxes(lower_hsai, share_hsai, open_hs, m_hsai, x_sa, gradient_hsai, gradient_sa, step_hsai, step_sa)
        square = 0.0
        longest = np.inf
        for h in range(H - 1):
            for s in range(S):
                if not open_hs[h, s]:
                    continue
                for a in range(A):
                    total = _sum(m_hsai[h, s, a])
                    forward = _sum(step_hsai[h, s, a])
                    for i in range(S):
                        d = step_hsai[h, s, a, i]
                        m = m_hsai[h, s, a, i]
                        share = share_hsai[h, s, a, i]
                        square += (d / m) ** 2
                        if d > 0.0:
                            longest = min(longest, m / d)
                        if share < 1.0:
                            slack = share * total - m
                            closing = share * forward - d
                            square += (closing / slack) ** 2
                            if closing > 0.0:
                                longest = min(longest, slack / closing)
        for s in range(S):
            if open_hs[H - 1, s]:
                for a in range(A):
                    d = step_sa[s, a]
                    square += (d / x_sa[s, a]) ** 2
                    if d > 0.0:
                        longest = min(longest, x_sa[s, a] / d)
        decrement = np.sqrt(square)
        if decrement == 0.0:
            return decrement, made
        length = min(1.0, _TO_BOUNDARY * longest)
        if decrement >= _FULL_STEP:
            granted = min(length, 1.0 / (1.0 + decrement))  # as in `minimise`
            while length > granted:
                change = 0.0
                for h in range(H - 1):
                    for s in range(S):
                        if not open_hs[h, s]:
                            continue
                        for a in range(A):
                            total = _sum(m_hsai[h, s, a])
                            forward = _sum(step_hsai[h, s, a])
                            for i in range(S):
                                d = step_hsai[h, s, a, i]
                                m = m_hsai[h, s, a, i]
                                share = share_hsai[h, s, a, i]
                                change -= length * cost_hsai[h, s, a, i] * d + np.log1p(-length * d / m)
                                if share < 1.0:
                                    change -= np.log1p(-length * (share * forward - d) / (share * total - m))
                for s in range(S):
                    if open_hs[H - 1, s]:
                        for a in range(A):
                            d = step_sa[s, a]
                            change -= length * cost_sa[s, a] * d + np.log1p(-length * d / x_sa[s, a])
                if change <= -_ARMIJO * length * square:
                    break
                length = max(0.5 * length, granted)
        for h in range(H - 1):
            for s in range(S):
                for a in range(A):
                    for i in range(S):
                        m_hsai[h, s, a, i] -= length * step_hsai[h, s, a, i]
        for s in range(S):
            for a in range(A):
                x_sa[s, a] -= length * step_sa[s, a]
        if decrement < _LAST_STEP and length == 1.0:
            return square, made + 1  # what the decrement is by now
    return decrement, most_steps


@njit(cache=True, nogil=True)
def restore_boxes(lower_hsai, initial_s, open_hs, m_hsai, x_sa):
    """`restore` for the boxes' polytope."""
    S, A = x_sa.shape
    H = m_hsai.shape[0] + 1
    inflow_hs = np.zeros((H, S))
    for s in range(S):
        inflow_hs[0, s] = initial_s[s]
    for h in range(H - 1):
        for s in range(S):
            if not open_hs[h, s]:
                continue
            scale = 0.0
            for a in range(A):
                scale += _sum(m_hsai[h, s, a])
            scale = inflow_hs[h, s] / scale
            for a in range(A):
                for i in range(S):
                    m_hsai[h, s, a, i] *= scale
                total = _sum(m_hsai[h, s, a])
                left = 1.0 - _sum(lower_hsai[h, s, a])
                for i in range(S):
                    inflow_hs[h + 1, i] += lower_hsai[h, s, a, i] * total + left * m_hsai[h, s, a, i]
    for s in range(S):
        if open_hs[H - 1, s]:
            scale = inflow_hs[H - 1, s] / _sum(x_sa[s])
            for a in range(A):
                x_sa[s, a] *= scale


@njit(cache=True, nogil=True)
def dikin_boxes(
    lower_hsai,
    share_hsai,
    open_hs,
    m_hsai,
    x_sa,
    normal_hsai,
    normal_upper_hsai,
    normal_sa,
    out_m,
    out_x,
    out_pull_m,
    out_pull_x,
):
    """`dikin` for the boxes' polytope: the step (out_m, out_x) and Hess · step (out_pull_m, out_pull_x).

    One normal number for each term of the barrier: g = Σ (gradient of the term's slack) n / slack has covariance Hess.
    """
    S, A = x_sa.shape
    H = m_hsai.shape[0] + 1
    for h in range(H - 1):
        for s in range(S):
            for a in range(A):
                if not open_hs[h, s]:
                    _clear(out_pull_m[h, s, a])
                    continue
                total = _sum(m_hsai[h, s, a])
                along = 0.0
                for i in range(S):
                    m = m_hsai[h, s, a, i]
                    share = share_hsai[h, s, a, i]
                    out_pull_m[h, s, a, i] = normal_hsai[h, s, a, i] / m
                    if share < 1.0:
                        n = normal_upper_hsai[h, s, a, i] / (share * total - m)
                        out_pull_m[h, s, a, i] -= n
                        along += share * n
                for i in range(S):
                    out_pull_m[h, s, a, i] += along
    for s in range(S):
        for a in range(A):
            out_pull_x[s, a] = normal_sa[s, a] / x_sa[s, a] if open_hs[H - 1, s] else 0.0
    tangent_boxes(lower_hsai, share_hsai, open_hs, m_hsai, x_sa, out_pull_m, out_pull_x, out_m, out_x)
    square = hessian_boxes(share_hsai, open_hs, m_hsai, x_sa, out_m, out_x, out_pull_m, out_pull_x)
    scale = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
    for h in range(H - 1):
        for s in range(S):
            for a in range(A):
                for i in range(S):
                    out_m[h, s, a, i] *= scale
                    out_pull_m[h, s, a, i] *= scale
    for s in range(S):
        for a in range(A):
            out_x[s, a] *= scale
            out_pull_x[s, a] *= scale
