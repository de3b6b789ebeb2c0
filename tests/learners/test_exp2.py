from math import exp, log, sqrt

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners import exp2
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.exp2 import Exp2
from aggbandit.learners.parts import deterministic_policies
from naive import exp2 as naive

DRAWS = Draws(0, 0, 0, 1)


def random_problem(seed, H, S, A, K=1000):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(S), size=(H, S, A))
    return Problem(H=H, S=S, A=A, episodes=K, transition=transition), rng.random((H, S, A))


@pytest.mark.equation("BCK12-estimator")
def test_estimates_are_unbiased_and_bounded_over_all_policies_and_trajectories():
    problem, loss = random_problem(0, 3, 2, 2, K=100)
    H, _, A = problem.shape
    learner = Exp2()
    state = learner.init(problem, DRAWS)
    for k in range(3):  # away from the uniform start
        state = learner.update(problem, state, Episode(k, np.zeros(H, int), np.zeros(H, int), total=2.0), DRAWS)
    found = deterministic_policies.vertices(problem, "exp2")
    arms = found.occupancy_nhsa.reshape(len(found.actions_nhs), -1)
    policies = np.array([deterministic_policies.as_policy(actions, A) for actions in found.actions_nhs])
    mean, second, greatest = naive.least_squares_moments(
        arms, state.play_n, problem.transition, policies, loss, problem.initial
    )
    np.testing.assert_allclose(mean, arms @ loss.ravel(), rtol=1e-9)
    told = learner.resolved(problem)
    assert told["step_size"] * greatest <= 1.0  # what exponential weights need
    d = found.dimension
    assert second <= H * H * d * (1 + 1e-9)
    # the learner's ẑ gives the same ⟨x_i, x̂⟩ as the Moore-Penrose inverse
    inverse = np.linalg.pinv((arms * state.play_n[:, None]).T @ arms, rcond=1e-10)
    for chosen in (0, 5, len(arms) - 1):
        z = exp2.estimate(state.z_nd, state.play_n, chosen, 1.7)
        np.testing.assert_allclose(state.z_nd @ z, arms @ inverse @ arms[chosen] * 1.7, rtol=1e-8, atol=1e-9)


def test_the_law_mixes_exponential_weights_with_the_optimal_design():
    problem, _ = random_problem(2, 3, 2, 2, K=100)
    learner = Exp2()
    told = learner.resolved(problem)
    state = learner.init(problem, DRAWS)
    for k in range(4):
        state = learner.update(problem, state, Episode(k, np.zeros(3, int), np.zeros(3, int), total=2.5), DRAWS)
    # w: no policy is explored worse than d, and few carry weight, so that it is far from uniform
    w, z, d = state.exploration_n, state.z_nd, state.z_nd.shape[1]
    inverse = np.linalg.inv((z * w[:, None]).T @ z)
    assert np.einsum("nd,de,ne->n", z, inverse, z).max() <= d * (1 + 1e-3)
    assert w.max() > 2 / len(w)
    weights = [exp(-told["step_size"] * float(row @ state.estimate_d)) for row in z]
    gamma = told["exploration"]
    expected = [(1 - gamma) * x / sum(weights) + gamma * y for x, y in zip(weights, w, strict=True)]
    np.testing.assert_allclose(state.play_n, expected, rtol=1e-12)


@pytest.mark.equation("BCK12-eta")
def test_step_and_exploration_are_the_theorems():
    problem, _ = random_problem(1, 3, 2, 2, K=4000)
    told = Exp2().resolved(problem)
    d, N = 1 + 5 * 1, 2**5
    assert told["policies"] == N
    assert told["step_size"] == pytest.approx(sqrt(log(N) / (3 * d * 4000)) / 3, rel=1e-14)
    assert told["exploration"] == pytest.approx(told["step_size"] * 3 * d, rel=1e-14)
    assert "step_lowered" not in told
    scaled = Exp2(step_scale=2.0).resolved(problem)
    assert scaled["step_size"] == pytest.approx(2 * told["step_size"], rel=1e-14)
    assert Exp2(exploration=0.25).resolved(problem)["exploration"] == 0.25
    few = Exp2().resolved(random_problem(1, 3, 2, 2, K=2)[0])
    assert few["step_lowered"]
    assert few["step_size"] == pytest.approx(1 / (3 * d), rel=1e-14)
    assert few["exploration"] == pytest.approx(1.0, rel=1e-14)


def test_with_one_step_it_is_exp3_with_uniform_exploration():
    A, K = 4, 500
    problem = Problem(H=1, S=1, A=A, episodes=K, transition=np.ones((1, 1, A, 1)))
    learner = Exp2()
    told = learner.resolved(problem)
    state = learner.init(problem, DRAWS)
    rng = np.random.default_rng(3)
    seen = []
    for k in range(60):
        action = int(np.argmax(state.policy_hsa[0, 0]))
        assert state.policy_hsa[0, 0, action] == 1.0
        np.testing.assert_allclose(
            state.policy_hsa[0, 0] * 0 + state.play_n[np.argsort(state.actions_nhs[:, 0, 0])],
            naive.exp3_law(seen, A, told["step_size"], told["exploration"]),
            rtol=1e-9,
        )
        loss = rng.random()
        seen.append((action, loss))
        state = learner.update(
            problem, state, Episode(k, np.zeros(1, int), np.array([action]), total=loss), Draws(0, 0, k, 2)
        )
    assert {action for action, _ in seen} == set(range(A))


def test_too_many_policies_are_refused_with_their_number():
    problem, _ = random_problem(0, 10, 10, 4)
    with pytest.raises(InvalidInputError, match=r"at most 60000 .* 91 reachable places there are more, up to 4\^91"):
        ab.start(Exp2(), problem)
    # few policies over many places: deterministic moves, 2^11 of them
    moves = np.eye(100)[np.random.default_rng(0).integers(100, size=(11, 100, 2))]
    with pytest.raises(InvalidInputError, match=r"N d² multiplications .* but here N = 2048 and d = \d+\. Take a sm"):
        ab.start(Exp2(), Problem(H=11, S=100, A=2, episodes=5, transition=moves))
    with pytest.raises(InvalidInputError, match="needs the number of episodes"):
        ab.start(Exp2(), Problem(H=1, S=1, A=2, episodes=None, transition=np.ones((1, 1, 2, 1))))
    with pytest.raises(InvalidInputError, match="needs known dynamics"):
        ab.start(Exp2(), Problem(H=1, S=1, A=2, episodes=5))
    with pytest.raises(InvalidInputError, match="step_scale must be"):
        Exp2(step_scale=0.0)
    with pytest.raises(InvalidInputError, match="exploration must be"):
        Exp2(exploration=1.5)
