"""Algorithm 1 of [LM25] as its pseudo-code reads, with ERRATA A1, B1 and B7.

Slow, plain, independent of the package.  Indices count from 0; transitions are (H, S, A, S), the last step's unused.
"""

import numpy as np


def occupancy(transition, initial, policy):
    """μ_h(s): the probability of being in s at step h."""
    H, S, A = policy.shape
    mu = np.zeros((H, S))
    mu[0] = initial
    for h in range(H - 1):
        for s in range(S):
            for a in range(A):
                for s_next in range(S):
                    mu[h + 1, s_next] += mu[h, s] * policy[h, s, a] * transition[h, s, a, s_next]
    return mu


def bonuses(transition, mu, policy, gamma, bonus_scale=1.0):
    """B^k of (H, S, A), backwards from B_{H+1} = 0."""
    H, S, A = policy.shape
    B = np.zeros((H + 1, S, A))
    for h in range(H - 1, -1, -1):
        for s in range(S):
            for a in range(A):
                b = sum(3 * gamma * H * policy[h, s, x] / (mu[h, s] * policy[h, s, x] + gamma) for x in range(A))
                B[h, s, a] = bonus_scale * b
                if h + 1 < H:
                    for s_next in range(S):
                        for a_next in range(A):
                            reach = transition[h, s, a, s_next] * policy[h + 1, s_next, a_next]
                            B[h, s, a] += reach * B[h + 1, s_next, a_next]
    return B[:H]


def update(transition, initial, policy, states, actions, total, eta, gamma, bonus_scale=1.0):
    """The policy of the next episode, and the bonus B that made it."""
    H, S, A = policy.shape
    mu = occupancy(transition, initial, policy)
    B = bonuses(transition, mu, policy, gamma, bonus_scale)
    improved = np.empty((H, S, A))
    for h in range(H):
        for s in range(S):
            weights = np.empty(A)
            for a in range(A):
                seen = states[h] == s and actions[h] == a
                U_hat = (total if seen else 0.0) / (mu[h, s] * policy[h, s, a] + gamma)
                weights[a] = policy[h, s, a] * np.exp(-eta * (U_hat - B[h, s, a]))
            improved[h, s] = weights / weights.sum()
    return improved, B


def expected_loss(transition, initial, policy, table):
    """V^π(s_init; ℓ) by the policy's occupancy."""
    return float((occupancy(transition, initial, policy)[:, :, None] * policy * table).sum())


def sample(move, initial, policy, uniform):
    """A trajectory by inverse CDF.

    `move(h, s, a, u)` is the next state; `uniform(h)` gives the two uniforms of step h, `uniform(None)` those before.
    """
    H = len(policy)
    s = inverse_cdf(initial, uniform(None)[1])
    states, actions = [], []
    for h in range(H):
        u_action, u_next = uniform(h)
        a = inverse_cdf(policy[h, s], u_action)
        states.append(s)
        actions.append(a)
        if h + 1 < H:
            s = move(h, s, a, u_next)
    return states, actions


def inverse_cdf(probabilities, u):
    """The first index whose cumulative sum exceeds u; beyond the rounded last sum, the last possible one."""
    total, last = 0.0, 0
    for i, p in enumerate(probabilities):
        if p > 0:
            last = i
        total += p
        if u < total:
            return i
    return last
