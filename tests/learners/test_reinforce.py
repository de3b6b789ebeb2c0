import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.reinforce import Reinforce, State, total_gradient
from naive import planning
from naive import policy_gradients as naive


@pytest.mark.equation("W92-gradient")
@pytest.mark.parametrize("baseline", [0.0, 1.3])
def test_the_mean_of_the_estimate_is_the_gradient_whatever_the_baseline(baseline):
    H, S, A = 3, 2, 3
    rng = np.random.default_rng(0)
    problem = planning.random_problem(1, H, S, A)
    theta = rng.normal(size=(H, S, A))
    policy = naive.softmax(theta)
    mean = np.zeros((H, S, A))
    for trajectory in planning.trajectories(H, S, A):
        weight = planning.probability(trajectory, problem.transition, policy, problem.initial)
        states, actions = np.array(trajectory).T
        total = planning.total(trajectory, problem.loss)
        mean[np.arange(H), states] += weight * total_gradient(policy, states, actions, total, baseline)
    expected = naive.value_gradient(problem.transition, theta, problem.loss, problem.initial)
    np.testing.assert_allclose(mean, expected, atol=1e-8)


def test_two_episodes_by_hand():
    problem = Problem(H=2, S=2, A=2, episodes=None)
    learner = Reinforce(step_size=0.5)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    first = Episode(0, np.array([0, 1]), np.array([0, 1]), total=1.5)
    state = learner.update(problem, state, first, Draws(0, 0, 0, 2))
    np.testing.assert_array_equal(state.policy_hsa, 0.5)  # it only sets the baseline
    state = learner.update(problem, state, Episode(1, np.array([0, 1]), np.array([0, 1]), total=0.5), Draws(0, 0, 1, 2))
    # better than the baseline by 1: θ(a_h) rises by 0.5 / 2 · 1 · (1 - 1/2), the other falls as much
    weight = 1.0 / (1.0 + np.exp(-0.25))
    np.testing.assert_allclose(state.policy_hsa[0, 0], [weight, 1 - weight], rtol=1e-14)
    np.testing.assert_allclose(state.policy_hsa[1, 1], [1 - weight, weight], rtol=1e-14)
    np.testing.assert_array_equal(state.policy_hsa[[0, 1], [1, 0]], 0.5)
    assert isinstance(state, State)
    np.testing.assert_array_equal(state.totals, [2.0, 2.0])


def test_a_step_that_is_not_positive_is_refused():
    with pytest.raises(InvalidInputError, match="step_size must be a finite number, greater than 0"):
        Reinforce(step_size=0.0)
