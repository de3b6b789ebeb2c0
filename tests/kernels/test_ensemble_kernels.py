import numpy as np
import pytest

from aggbandit.kernels import ensemble
from naive import ensembles as naive

SHAPES = [(1, 1, 1, 1), (2, 3, 2, 2), (3, 4, 3, 2)]


def data(seed, M, H, S, A):
    rng = np.random.default_rng(seed)
    model = rng.dirichlet(np.ones(S), size=(H, S, A)) * rng.uniform(0.5, 1.5, size=(H, S, A, 1))
    return model, rng.normal(size=(M, H, S, A)), rng.dirichlet(np.ones(A), size=(M, H, S)), rng.dirichlet(np.ones(S))


@pytest.mark.parametrize("M, H, S, A", SHAPES)
@pytest.mark.parametrize("limit", [np.inf, 0.5])
@pytest.mark.parametrize("stationary", [False, True])
def test_best_actions_and_values(M, H, S, A, limit, stationary):
    model, loss, _, initial = data(0, M, H, S, A)
    model = model[:1] if stationary else model
    actions, value = np.empty((M, H, S), np.int64), np.empty(M)
    ensemble.best(model, loss, initial, limit, actions, value)
    for m in range(M):
        q, v = naive.values(np.broadcast_to(model, (H, S, A, S)), loss[m], limit)
        np.testing.assert_array_equal(actions[m], q.argmin(axis=-1))
        assert value[m] == pytest.approx(initial @ v[0], rel=1e-12, abs=1e-14)


def test_of_equal_actions_the_smallest_is_taken():
    actions, value = np.full((1, 1, 1), -1), np.empty(1)
    for loss in (0.0, np.inf):
        ensemble.best(np.ones((1, 1, 3, 1)), np.full((1, 1, 1, 3), loss), np.ones(1), np.inf, actions, value)
        assert actions[0, 0, 0] == 0


@pytest.mark.parametrize("M, H, S, A", SHAPES)
@pytest.mark.parametrize("limit", [np.inf, 0.5])
@pytest.mark.parametrize("stationary", [False, True])
def test_values_of_policies_and_their_improvement(M, H, S, A, limit, stationary):
    model, loss, policy, initial = data(1, M, H, S, A)
    model = model[:1] if stationary else model
    q, value = np.empty((M, H, S, A)), np.empty(M)
    ensemble.evaluate(model, loss, policy, initial, limit, q, value)
    improved, logits = policy.copy(), np.log(policy)
    ensemble.exponential_weights(q, 0.3, logits, improved)
    for m in range(M):
        expected, v = naive.policy_values(np.broadcast_to(model, (H, S, A, S)), loss[m], policy[m], limit)
        np.testing.assert_allclose(q[m], expected, atol=1e-13)
        assert value[m] == pytest.approx(initial @ v[0], rel=1e-12, abs=1e-14)
        np.testing.assert_allclose(improved[m], naive.oppo(policy[m], expected, 0.3), rtol=1e-12)
    assert logits.max() == 0.0


def test_extreme_logits_neither_overflow_nor_lose_the_best():
    q = np.array([[[[0.0, 5000.0]]], [[[5000.0, 0.0]]]])
    logits, policy = np.zeros((2, 1, 1, 2)), np.empty((2, 1, 1, 2))
    ensemble.exponential_weights(q, 1.0, logits, policy)
    np.testing.assert_array_equal(policy.reshape(2, 2), np.eye(2))
    ensemble.exponential_weights(2 * q[::-1].copy(), 1.0, logits, policy)  # and back again
    np.testing.assert_array_equal(policy.reshape(2, 2), np.eye(2)[::-1])
