from math import log, sqrt

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.mdp_e import MdpE
from naive import planning


@pytest.mark.equation("EKM09-update")
@pytest.mark.equation("EKM09-eta")
def test_it_multiplies_by_exact_action_values():
    made = planning.random_problem(1, 3, 2, 2)
    problem = Problem(H=3, S=2, A=2, episodes=20, initial_state=made.initial, transition=made.transition)
    learner, rng = MdpE(), np.random.default_rng(0)
    eta = sqrt(2 * log(2) / (9 * 20))
    state = learner.init(problem, Draws(0, 0, 0, 1))
    for k in range(5):
        policy, table = state.policy_hsa.copy(), rng.random((3, 2, 2))
        seen = Episode(k, np.zeros(3, int), np.zeros(3, int), table=table)
        state = learner.update(problem, state, seen, Draws(0, 0, k, 2))
        weights = policy * np.exp(-eta * planning.action_values(made.transition, policy, table))
        np.testing.assert_allclose(state.policy_hsa, weights / weights.sum(axis=-1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("K", [1, 10, 200])
def test_its_regret_keeps_the_bound_exactly(K):
    # nothing is random: H² √(2 K ln A) must hold whatever the losses are, here ones that turn against it half-way
    made = planning.random_problem(2, 3, 2, 2)
    problem = Problem(H=3, S=2, A=2, episodes=K, initial_state=made.initial, transition=made.transition)
    learner, rng = MdpE(), np.random.default_rng(0)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    cost, total = 0.0, np.zeros((3, 2, 2))
    for k in range(K):
        table = np.clip(rng.random((3, 2, 2)) + (0.5 if 2 * k < K else -0.5) * (np.arange(2) * 2 - 1), 0.0, 1.0)
        cost += planning.value(made.transition, state.policy_hsa, table, made.initial)
        total += table
        seen = Episode(k, np.zeros(3, int), np.zeros(3, int), table=table)
        state = learner.update(problem, state, seen, Draws(0, 0, k, 2))
    best = min(
        planning.value(made.transition, p, total, made.initial) for p in planning.deterministic_policies(3, 2, 2)
    )
    assert cost - best <= 9 * sqrt(2 * K * log(2))


def test_a_scale_of_0_is_refused():
    with pytest.raises(InvalidInputError, match="step_scale must be a finite number, greater than 0"):
        MdpE(step_scale=0.0)
