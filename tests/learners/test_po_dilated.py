from math import exp

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.po_dilated import PoDilated, dilated_bonus, local_bonus
from naive import planning
from naive import po_dilated as naive


def episode_of(rng, problem, k):
    H, S, A = problem.shape
    states, actions = rng.integers(S, size=H), rng.integers(A, size=H)
    states[0] = rng.choice(S, p=problem.initial)
    return Episode(k, states, actions, losses=rng.random(H))


@pytest.mark.equation("LWL21-b")
@pytest.mark.equation("LWL21-dilated")
@pytest.mark.equation("LWL21-eta")
@pytest.mark.parametrize("H, S, A", [(1, 1, 1), (1, 2, 3), (3, 2, 2), (3, 1, 2), (2, 3, 2)])
@pytest.mark.parametrize("dynamics", ["known", "unknown"])
def test_it_plays_as_the_pseudo_code_reads(dynamics, H, S, A):
    rng = np.random.default_rng(0)
    made = planning.random_problem(5, H, S, A)
    known = made.transition if dynamics == "known" else None
    problem = Problem(H=H, S=S, A=A, episodes=500, initial_state=made.initial, transition=known)
    learner = PoDilated(dynamics=dynamics, bonus_scale=0.7, radius_scale=0.03)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    slow = naive.Dilated(H, S, A, 500, made.initial, known, bonus_scale=0.7, radius_scale=0.03)
    assert learner.resolved(problem)["step_size"] == pytest.approx(slow.step, rel=1e-14)
    for k in range(25):
        seen = episode_of(rng, problem, k)
        state = learner.update(problem, state, seen, Draws(0, 0, k, 2))
        slow.update(seen.states, seen.actions, seen.losses)
        np.testing.assert_allclose(state.policy_hsa, slow.policy, rtol=1e-10, atol=1e-14)
    if dynamics == "unknown" and H > 1:
        np.testing.assert_allclose(state.lower_hsas, slow.box[0], atol=1e-14)
        np.testing.assert_allclose(state.upper_hsas, slow.box[1], atol=1e-14)
        assert slow.epochs > 3
        assert (state.upper_hsas - state.lower_hsas < 1.0).any()


@pytest.mark.equation("LWL21-Q-hat")
def test_the_estimate_is_biased_by_the_exploration_alone():
    H, S, A = 3, 2, 2
    made = planning.random_problem(1, H, S, A)
    problem = Problem(H=H, S=S, A=A, episodes=100, initial_state=made.initial, transition=made.transition)
    learner = PoDilated(bonus_scale=0.0, exploration=0.05)
    eta = learner.resolved(problem)["step_size"]
    mean = np.zeros((H, S, A))
    uniform = np.full((H, S, A), 1 / A)
    for trajectory in planning.trajectories(H, S, A):
        states, actions = np.array(trajectory).T
        seen = Episode(0, states, actions, losses=made.loss[np.arange(H), states, actions])
        state = learner.update(problem, learner.init(problem, Draws(0, 0, 0, 1)), seen, Draws(0, 0, 0, 2))
        weight = planning.probability(trajectory, made.transition, uniform, made.initial)
        mean += weight * -state.log_weights_hsa / eta  # some action of every (h, s) has the estimate 0
    mu = planning.occupancy(made.transition, uniform, made.initial)[:, :, None] * uniform
    Q = planning.action_values(made.transition, uniform, made.loss)
    np.testing.assert_allclose(mean, mu / (mu + 0.05) * Q, rtol=1e-10)


def test_a_constant_bonus_has_a_closed_form():
    H, S, A, b = 5, 3, 2, 0.7
    made = planning.random_problem(2, H, S, A)
    local = np.full((H, S), b)
    B = dilated_bonus(made.transition, made.transition, made.policy, local, 1 + 1 / H)
    np.testing.assert_allclose(B[0], b * ((1 + 1 / H) ** H - 1) * H, rtol=1e-12)
    plain = dilated_bonus(made.transition, made.transition, made.policy, local, 1.0)
    np.testing.assert_allclose(plain[0], b * H, rtol=1e-12)
    assert (plain <= B).all()


@pytest.mark.parametrize("K", [1, 100, 100_000])
def test_the_step_keeps_the_bonus_stable(K):
    # η B <= 1 / (2 H) is what the analysis needs; b <= 4 H at its very greatest
    for H in (1, 3, 6):
        problem = Problem(H=H, S=2, A=2, episodes=K, transition=np.full((H, 2, 2, 2), 0.5))
        eta = PoDilated().resolved(problem)["step_size"]
        greatest = local_bonus(np.full((H, 2, 2), 0.5), np.zeros((H, 2, 2)), np.ones((H, 2, 2)), 1e-3)
        assert greatest.max() <= 4 * H
        assert eta * 4 * H * H * ((1 + 1 / H) ** H - 1) <= 1 / (2 * H)


def test_one_state_and_one_step_is_exp3_ix():
    A, K = 3, 50
    problem = Problem(H=1, S=1, A=A, episodes=K, transition=np.ones((1, 1, A, 1)))
    learner = PoDilated()
    told = learner.resolved(problem)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    rng = np.random.default_rng(0)
    scores = [0.0] * A
    for k in range(K):
        law = np.array([exp(-told["step_size"] * x) for x in scores])
        law /= law.sum()
        np.testing.assert_allclose(state.policy_hsa[0, 0], law, rtol=1e-12)
        seen = episode_of(rng, problem, k)
        a = seen.actions[0]
        scores[a] += seen.losses[0] / (law[a] + told["exploration"])
        state = learner.update(problem, state, seen, Draws(0, 0, k, 2))


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="dynamics must be one of known, unknown"):
        PoDilated(dynamics="both")
    with pytest.raises(InvalidInputError, match="dilation must be a finite number, at least 1"):
        PoDilated(dilation=0.5)
    with pytest.raises(InvalidInputError, match="po-dilated needs the number of episodes"):
        PoDilated(dynamics="unknown").check(Problem(H=1, S=1, A=1, episodes=None))
