"""Triangular factors kept up to date: A = R^T R with R upper triangular, row after row in memory.

Callers validate.  Written by hand because SciPy's solvers cost more in calls than in work at these sizes and have no
rank-one update; every inner loop runs along a row of R.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def rank_one_update(root_dd, feature_d):
    """Turn R into the factor of A + x x^T by Givens rotations; x is used up.  O(d²) from its first entry that is not 0.

    It adds squares only, so that nothing cancels and no fresh start is ever needed.
    """
    d = feature_d.shape[0]
    for k in range(d):
        x = feature_d[k]
        if x == 0.0:
            continue
        old = root_dd[k, k]
        new = np.sqrt(old * old + x * x)
        cosine, sine = old / new, x / new
        root_dd[k, k] = new
        for i in range(k + 1, d):
            above, below = root_dd[k, i], feature_d[i]
            root_dd[k, i] = cosine * above + sine * below
            feature_d[i] = cosine * below - sine * above


@njit(cache=True, nogil=True)
def solve(root_dd, right_d):
    """A^{-1} b in place of b."""
    d = right_d.shape[0]
    for k in range(d):
        value = right_d[k] / root_dd[k, k]
        right_d[k] = value
        if value != 0.0:
            for i in range(k + 1, d):
                right_d[i] -= root_dd[k, i] * value
    _back(root_dd, right_d)


@njit(cache=True, nogil=True)
def _back(root_dd, right_d):
    """R^{-1} b in place of b."""
    d = right_d.shape[0]
    for k in range(d - 1, -1, -1):
        value = right_d[k]
        for i in range(k + 1, d):
            value -= root_dd[k, i] * right_d[i]
        right_d[k] = value / root_dd[k, k]


@njit(cache=True, nogil=True)
def spread(root_dd, normal_md):
    """R^{-1} z in place of each row z: from independent normal numbers to the covariance A^{-1}."""
    for m in range(normal_md.shape[0]):
        _back(root_dd, normal_md[m])


@njit(cache=True, nogil=True)
def inverse_norms(root_dd, rows_nd, out_n):
    """‖x‖² in the norm of A^{-1} for every row: the squared length of R^{-T} x."""
    n, d = rows_nd.shape
    scratch_d = np.empty(d)
    for j in range(n):
        total = 0.0
        for k in range(d):
            scratch_d[k] = rows_nd[j, k]
        for k in range(d):
            value = scratch_d[k] / root_dd[k, k]
            total += value * value
            if value != 0.0:
                for i in range(k + 1, d):
                    scratch_d[i] -= root_dd[k, i] * value
        out_n[j] = total
