"""Dynamic programmes of many members at once: one model, a loss table and perhaps a policy for each member m.

Callers validate and allocate.  The model is (T, S, A, S') with T = 1 or H, the step out of the last never read; its
rows need not be distributions (a linear model's are not).  Values are kept within [-limit, limit], +inf for no limit.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def best(model_tsas, loss_mhsa, initial_s, limit, out_actions_mhs, out_value_m):
    """The actions of least expected loss of every member, the smallest of equals, and its value at the start.

    V_h(s) = min_a [ ℓ_h(s, a) + Σ_{s'} p_h(s'|s, a) V_{h+1}(s') ], cut to [-limit, limit],   V_{H+1} = 0
    """
    M, H, S, A = loss_mhsa.shape
    T = model_tsas.shape[0]
    ahead_s, here_s = np.empty(S), np.empty(S)
    for m in range(M):
        for h in range(H - 1, -1, -1):
            t = h if T > 1 else 0
            for s in range(S):
                least = np.inf
                for a in range(A):
                    q = loss_mhsa[m, h, s, a]
                    if h + 1 < H:
                        for i in range(S):
                            q += model_tsas[t, s, a, i] * ahead_s[i]
                    if q < least or a == 0:
                        least = q
                        out_actions_mhs[m, h, s] = a
                here_s[s] = min(max(least, -limit), limit)
            for s in range(S):
                ahead_s[s] = here_s[s]
        value = 0.0
        for s in range(S):
            value += initial_s[s] * ahead_s[s]
        out_value_m[m] = value


@njit(cache=True, nogil=True)
def evaluate(model_tsas, loss_mhsa, policy_mhsa, initial_s, limit, out_q_mhsa, out_value_m):
    """Q of every member's policy, and its value at the start.

    Q_h(s, a) = ℓ_h(s, a) + Σ_{s'} p_h(s'|s, a) V_{h+1}(s'),   V_h(s) = Σ_a π_h(a|s) Q_h(s, a) cut to [-limit, limit]
    """
    M, H, S, A = loss_mhsa.shape
    T = model_tsas.shape[0]
    ahead_s, here_s = np.empty(S), np.empty(S)
    for m in range(M):
        for h in range(H - 1, -1, -1):
            t = h if T > 1 else 0
            for s in range(S):
                value = 0.0
                for a in range(A):
                    q = loss_mhsa[m, h, s, a]
                    if h + 1 < H:
                        for i in range(S):
                            q += model_tsas[t, s, a, i] * ahead_s[i]
                    out_q_mhsa[m, h, s, a] = q
                    value += policy_mhsa[m, h, s, a] * q
                here_s[s] = min(max(value, -limit), limit)
            for s in range(S):
                ahead_s[s] = here_s[s]
        value = 0.0
        for s in range(S):
            value += initial_s[s] * ahead_s[s]
        out_value_m[m] = value


@njit(cache=True, nogil=True)
def exponential_weights(q_mhsa, step, logits_mhsa, out_policy_mhsa):
    """logits −= step · Q, kept at most 0 in every row, and their softmax over a."""
    M, H, S, A = q_mhsa.shape
    for m in range(M):
        for h in range(H):
            for s in range(S):
                greatest = -np.inf
                for a in range(A):
                    logit = logits_mhsa[m, h, s, a] - step * q_mhsa[m, h, s, a]
                    logits_mhsa[m, h, s, a] = logit
                    greatest = max(greatest, logit)
                total = 0.0
                for a in range(A):
                    logits_mhsa[m, h, s, a] -= greatest
                    out_policy_mhsa[m, h, s, a] = np.exp(logits_mhsa[m, h, s, a])
                    total += out_policy_mhsa[m, h, s, a]
                for a in range(A):
                    out_policy_mhsa[m, h, s, a] /= total
