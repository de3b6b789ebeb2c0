from math import log, sqrt

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.pomd import Pomd, optimism, truncated_action_values
from naive import optimistic_values, planning, po_dilated, po_unknown
from naive.optimistic_values import Seen

H, S, A, K = 3, 2, 2, 60


def played(rng):
    states, actions = rng.integers(S, size=H), rng.integers(A, size=H)
    states[0] = 0
    return states, actions, rng.random(H)


def after(policy, Q, eta):
    weights = policy * np.exp(-eta * Q)
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.equation("SERM20-stochastic")
@pytest.mark.equation("SERM20-bonus")
@pytest.mark.equation("SERM20-eta")
@pytest.mark.parametrize("scale", [1.0, 0.02])
def test_stochastic_plays_as_the_pseudo_code_reads(scale):
    problem = Problem(H=H, S=S, A=A, episodes=K)
    learner, rng, seen = Pomd(bonus_scale=scale), np.random.default_rng(0), Seen(H, S, A)
    eta = sqrt(2 * log(A) / (H**2 * K))
    state = learner.init(problem, Draws(0, 0, 0, 1))
    positive = 0
    for k in range(K):
        policy = state.policy_hsa.copy()
        Q = optimistic_values.pomd_q(seen, policy, K, 0.05, scale)  # counts of the episodes before
        positive += (Q > 0).sum()
        states, actions, losses = played(rng)
        state = learner.update(problem, state, Episode(k, states, actions, losses=losses), Draws(0, 0, k, 2))
        seen.add(states, actions, losses)
        np.testing.assert_allclose(state.policy_hsa, after(policy, Q, eta), rtol=1e-11)
    assert (positive > 0) == (scale < 1.0)  # the theory's bonus leaves nothing at this K


def test_it_is_optimistic_for_the_policy_played():
    # Q <= ℓ + p V on simulated data; with a tenth of the theory's bonus, so that Q is not 0 everywhere
    made = planning.random_problem(1, H, S, A)
    rng = np.random.default_rng(0)
    visits = rng.integers(1, 200, size=(H, S, A)).astype(float)
    model = np.array(
        [rng.multinomial(int(visits[i]), made.transition[i]) / visits[i] for i in np.ndindex(H, S, A)]
    ).reshape(H, S, A, S)
    mean = np.array([rng.binomial(int(visits[i]), made.loss[i]) / visits[i] for i in np.ndindex(H, S, A)])
    Q = truncated_action_values(model, made.policy, mean.reshape(H, S, A) - 0.1 * optimism(visits, 1000, 0.05))
    V = (made.policy * Q).sum(axis=-1)
    assert (Q >= 0).all()
    assert (H - np.arange(H)[:, None, None] >= Q).all()
    assert Q.max() > 0
    for h in range(H):
        right = made.loss[h] + (made.transition[h] @ V[h + 1] if h + 1 < H else 0.0)
        assert (Q[h] <= right).all()


@pytest.mark.equation("SERM20-adversarial")
def test_adversarial_plays_as_the_pseudo_code_reads():
    problem = Problem(H=H, S=S, A=A, episodes=K)
    learner, rng = Pomd(losses="adversarial", radius_scale=0.05), np.random.default_rng(0)
    told = learner.resolved(problem)
    eta, gamma = 1 / (H * K ** (2 / 3)), A**-0.5 * K ** (-1 / 3)
    assert told["step_size"] == pytest.approx(eta, rel=1e-14)
    assert told["exploration"] == pytest.approx(gamma, rel=1e-14)
    state, counts = learner.init(problem, Draws(0, 0, 0, 1)), np.zeros((H, S, A, S))
    for k in range(K):
        policy = state.policy_hsa.copy()
        states, actions, losses = played(rng)
        lower, upper = po_dilated.corners(counts, log(K * H * S * A / 0.05), 2.0, 14 / 3, 1.0, 0.05)
        _, greatest = po_unknown.occupancy_bounds(lower, upper, policy, np.eye(S)[0])
        cost = np.zeros((H, S, A))
        for h, (s, a) in enumerate(zip(states, actions, strict=True)):
            cost[h, s, a] = losses[h] / (greatest[h, s] * policy[h, s, a] + gamma)
        Q, V = cost.copy(), np.zeros(S)
        for h in reversed(range(H)):
            for s, a in np.ndindex(S, A):
                if h + 1 < H:
                    Q[h, s, a] += po_unknown.least_mean(lower[h, s, a], upper[h, s, a], V)[0]
            V = (policy[h] * Q[h]).sum(axis=-1)
        state = learner.update(problem, state, Episode(k, states, actions, losses=losses), Draws(0, 0, k, 2))
        np.testing.assert_allclose(state.policy_hsa, after(policy, Q, eta), rtol=1e-10)
        for h in range(H - 1):
            counts[h, states[h], actions[h], states[h + 1]] += 1


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="losses must be one of stochastic, adversarial, but is 'both'"):
        Pomd(losses="both")
    assert Pomd(losses="adversarial").needs.losses == "adversarial"
