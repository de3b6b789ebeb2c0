"""Designs of experiments: how to explore a set of vectors so that every direction is estimated well."""

from __future__ import annotations

import numpy as np

from aggbandit._arrays import FloatArray

GAP = 1e-3  # relative: max_i z_i^T G^{-1} z_i <= d (1 + GAP)
MOST_STEPS = 100_000
REFRESH = 200  # steps of rank-one updates before G^{-1} is computed afresh


def g_optimal(z_nd: FloatArray, gap: float = GAP) -> FloatArray:
    """Weights w on the n vectors that maximise ln det G(w), G(w) = Σ_i w_i z_i z_i^T.

    By Kiefer and Wolfowitz the maximiser is the w for which the greatest z_i^T G^{-1} z_i is least, and that least
    value is d.  Steps move weight towards the vector of greatest z^T G^{-1} z, or away from the one of least among
    those that carry weight, whichever promises more, by the exact line search λ = (g/d − 1)/(g − 1)  [Atwood 1973].
    Starts from d vectors of great volume and stops at max_i z_i^T G^{-1} z_i <= d (1 + gap).
    """
    from scipy.linalg import qr

    n, d = z_nd.shape
    w_n = np.zeros(n)
    w_n[qr(z_nd.T, mode="r", pivoting=True)[1][:d]] = 1.0 / d
    for step in range(MOST_STEPS):
        if step % REFRESH == 0:
            inverse_dd = np.linalg.inv((z_nd * w_n[:, None]).T @ z_nd)
            g_n = np.einsum("nd,nd->n", z_nd @ inverse_dd, z_nd)
        up = int(np.argmax(g_n))
        if g_n[up] <= d * (1.0 + gap):
            break
        down = int(np.argmin(np.where(w_n > 0.0, g_n, np.inf)))
        j = up if g_n[up] - d >= d - g_n[down] else down
        length = (g_n[j] / d - 1.0) / (g_n[j] - 1.0) if g_n[j] > 1.0 else -np.inf
        length = max(length, -w_n[j] / (1.0 - w_n[j]))  # no weight may fall below 0
        w_n *= 1.0 - length
        w_n[j] = max(w_n[j] + length, 0.0)
        # G changes by a factor and one term: Sherman and Morrison
        v_d = inverse_dd @ z_nd[j]
        along = length / (1.0 - length + length * g_n[j])
        inverse_dd = (inverse_dd - along * np.outer(v_d, v_d)) / (1.0 - length)
        g_n = (g_n - along * (z_nd @ v_d) ** 2) / (1.0 - length)
    w_n /= w_n.sum()
    return w_n
