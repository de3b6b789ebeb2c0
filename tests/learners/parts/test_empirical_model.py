import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggbandit.learners.parts import empirical_model
from aggbandit.learners.parts.greedy import greedy_policy
from naive import planning, trajectory_feedback

H, S, A = 3, 3, 2


def test_frequencies_are_a_distribution_everywhere():
    model, history = empirical_model.unseen(H, S, A), []
    rng = np.random.default_rng(0)
    for _ in range(15):
        history.append((rng.integers(S, size=H), rng.integers(A, size=H)))
        empirical_model.add_trajectory(model, *history[-1])
        mean, visits = trajectory_feedback.empirical(history, H, S, A)
        np.testing.assert_allclose(model.mean_hsas, mean, atol=1e-15)
        np.testing.assert_array_equal(model.visits_hsa, visits)
    one = empirical_model.unseen(1, 2, 2)
    empirical_model.add_trajectory(one, np.array([0]), np.array([1]))
    assert not one.visits_hsa.any()


@pytest.mark.equation("EMM21-bonus")
def test_bonus():
    visits = np.random.default_rng(1).integers(0, 300, size=(H, S, A)).astype(float)
    visits[0, 0] = [0, 1]
    bonus = empirical_model.value_bonus(visits, 500, 0.1)
    np.testing.assert_allclose(bonus, trajectory_feedback.bonus(visits, 500, 0.1), rtol=1e-14)
    assert bonus[0, 0].tolist() == [H, H]


@pytest.mark.equation("EMM21-bonus")
@given(seed=st.integers(0, 10_000))
def test_least_values_on_the_model_are_optimistic(seed):
    """min_π V^{p̄, ℓ - b} <= V* where b >= |(p̄ - p) V*|, with no clipping, whatever p̄ is."""
    rng = np.random.default_rng(seed)
    p, mean = rng.dirichlet(np.ones(S), size=(2, H, S, A))
    loss = rng.random((H, S, A))
    policy = greedy_policy(p, loss)
    assert trajectory_feedback.suboptimality(p, policy, loss) < 1e-12
    best = planning.values(p, policy, loss)
    bonus = np.zeros((H, S, A))
    bonus[:-1] = np.abs(((mean - p)[:-1] * best[1:, None, None, :]).sum(axis=-1))
    optimistic = greedy_policy(mean, loss - bonus)
    assert (planning.values(mean, optimistic, loss - bonus) <= best + 1e-12).all()
