import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.ppo_tabular import PpoTabular, surrogate_gradient
from naive import policy_gradients as naive


@pytest.mark.equation("SWDRK17-clip")
@pytest.mark.parametrize("moved", [0.0, 0.1, 1.0])  # how far from the old policy: none, few and many steps clipped
def test_the_gradient_is_that_of_the_clipped_surrogate(moved):
    rng = np.random.default_rng(0)
    H, S, A, n, clip = 3, 2, 3, 6, 0.2
    theta_old = rng.normal(size=(H, S, A))
    theta = theta_old + moved * rng.normal(size=(H, S, A))
    old = naive.softmax(theta_old)
    states, actions, advantage = rng.integers(S, size=(n, H)), rng.integers(A, size=(n, H)), rng.normal(size=n)
    found = surrogate_gradient(naive.softmax(theta), old, states, actions, advantage, clip)
    expected = naive.gradient(lambda t: naive.clipped_surrogate(t, old, states, actions, advantage, clip), theta, 1e-7)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    if moved == 1.0:  # the clip must have mattered
        free = surrogate_gradient(naive.softmax(theta), old, states, actions, advantage, 1e9)
        assert np.abs(free - found).max() > 0.01


def test_a_batch_by_hand():
    rng = np.random.default_rng(1)
    H, S, A, n = 2, 2, 2, 4
    problem = Problem(H=H, S=S, A=A, episodes=None)
    learner = PpoTabular(batch=n, epochs=3, step_size=2.0, clip=0.1)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    states, actions, totals = rng.integers(S, size=(n, H)), rng.integers(A, size=(n, H)), rng.random(n) * H
    for k in range(n):
        assert (state.policy_hsa == 0.5).all()
        seen = Episode(k, states[k], actions[k], total=float(totals[k]))
        state = learner.update(problem, state, seen, Draws(0, 0, k, 2))
    theta, old = np.zeros((H, S, A)), np.full((H, S, A), 0.5)
    advantage = (totals.mean() - totals) / totals.std()
    for _ in range(3):
        theta = theta + 2.0 * naive.gradient(
            lambda t: naive.clipped_surrogate(t, old, states, actions, advantage, 0.1), theta
        )
    np.testing.assert_allclose(state.policy_hsa, naive.softmax(theta), atol=1e-6)


def test_a_batch_of_equal_totals_changes_nothing():
    problem = Problem(H=2, S=1, A=2, episodes=None)
    learner = PpoTabular(batch=2)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    for k in range(4):
        seen = Episode(k, np.zeros(2, int), np.zeros(2, int), total=1.0)
        state = learner.update(problem, state, seen, Draws(0, 0, k, 2))
    np.testing.assert_array_equal(state.policy_hsa, 0.5)


def test_a_batch_of_one_is_refused():
    with pytest.raises(InvalidInputError, match="batch must be at least 2"):
        PpoTabular(batch=1)
