import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.dapo import Dapo, delay_ratio, local_bonus
from aggbandit.learners.po_known import PolicyOptimizationKnown
from aggbandit.learners.po_unknown import PolicyOptimizationUnknown
from naive import planning
from naive import po_dilated as naive


def played(rng, initial, H, S, A):
    states, actions = rng.integers(S, size=H), rng.integers(A, size=H)
    states[0] = rng.choice(S, p=initial)
    return states, actions, rng.random(H)


def shown(learner, k, states, actions, losses, policy):
    if learner.feedback == "aggregate":
        return Episode(k, states, actions, total=float(losses.sum()), policy=policy)
    return Episode(k, states, actions, losses=losses, policy=policy)


@pytest.mark.equation("LRS23-ratio")
@pytest.mark.equation("LRS23-b")
@pytest.mark.equation("LRS23-eta")
@pytest.mark.parametrize("feedback", ["semi-bandit", "aggregate"])
@pytest.mark.parametrize("dynamics", ["known", "unknown"])
@pytest.mark.parametrize("H, S, A", [(1, 1, 2), (3, 2, 2), (2, 3, 2)])
def test_it_plays_as_the_pseudo_code_reads(H, S, A, dynamics, feedback):
    rng = np.random.default_rng(0)
    made = planning.random_problem(7, H, S, A)
    known = made.transition if dynamics == "known" else None
    K, delay = 40, 30.0
    problem = Problem(H=H, S=S, A=A, episodes=K, initial_state=made.initial, transition=known)
    learner = Dapo(dynamics=dynamics, feedback=feedback, total_delay=delay, radius_scale=0.03, step_scale=1.0)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    slow = naive.Dapo(H, S, A, K, made.initial, known, feedback == "aggregate", delay, radius_scale=0.03)
    pending = []
    for k in range(K):
        pending.append((k, *played(rng, made.initial, H, S, A), np.array(learner.policy(problem, state))))
        while pending and rng.random() < 0.6:  # in any order, several at once
            j, states, actions, losses, policy = pending.pop(rng.integers(len(pending)))
            seen = shown(learner, j, states, actions, losses, policy)
            state = learner.update(problem, state, seen, Draws(0, 0, j, 2))
            slow.update(states, actions, losses, policy)
            np.testing.assert_allclose(state.policy_hsa, slow.policy, rtol=1e-9, atol=1e-14)


@pytest.mark.equation("LRS23-Q-hat")
def test_the_estimate_is_biased_by_the_exploration_alone():
    H, S, A = 3, 2, 2
    made = planning.random_problem(1, H, S, A)
    problem = Problem(H=H, S=S, A=A, episodes=100, initial_state=made.initial, transition=made.transition)
    learner = Dapo(bonus_scale=0.0, exploration=0.05)
    eta = learner.resolved(problem)["step_size"]
    mean = np.zeros((H, S, A))
    old = made.policy  # the policy that played; today's is the uniform one
    for trajectory in planning.trajectories(H, S, A):
        states, actions = np.array(trajectory).T
        seen = Episode(0, states, actions, losses=made.loss[np.arange(H), states, actions], policy=old)
        state = learner.update(problem, learner.init(problem, Draws(0, 0, 0, 1)), seen, Draws(0, 0, 0, 2))
        mean += planning.probability(trajectory, made.transition, old, made.initial) * -state.log_weights_hsa / eta
    mu = planning.occupancy(made.transition, old, made.initial)[:, :, None] * old
    Q = planning.action_values(made.transition, old, made.loss)
    np.testing.assert_allclose(mean, delay_ratio(old, np.full(old.shape, 1 / A)) * mu / (mu + 0.05) * Q, rtol=1e-10)


def test_ratios_shrink_what_is_no_longer_played():
    rng = np.random.default_rng(0)
    old, new = rng.dirichlet(np.ones(3), size=(4, 2)), rng.dirichlet(np.ones(3), size=(4, 2))
    ratio = delay_ratio(old, new)
    assert (ratio <= 1).all()
    assert ((new * ratio).sum(axis=-1) <= 1 + 1e-12).all()
    np.testing.assert_array_equal(delay_ratio(old, old), 1.0)
    np.testing.assert_array_equal(delay_ratio(np.zeros((1, 1, 2)), np.zeros((1, 1, 2))), 1.0)


@pytest.mark.parametrize("dynamics", ["known", "unknown"])
def test_without_delays_totals_make_it_the_papers_algorithm(dynamics):
    mdp = ab.instances.make("random", states=3, actions=2, horizon=3, seed=3)
    K = 60
    known = mdp if dynamics == "known" else None
    problem = Problem(H=3, S=3, A=2, episodes=K, transition=known)
    mine = Dapo(dynamics=dynamics, feedback="aggregate", width_scale=0.5, radius_scale=0.03)
    step = mine.resolved(problem)["step_size"]
    papers = (
        PolicyOptimizationKnown(step_size=step)
        if dynamics == "known"
        else PolicyOptimizationUnknown(step_size=step, radius_scale=0.03)
    )
    one, two = ab.start(mine, problem), ab.start(papers, problem)
    other = ab.start(
        Dapo(dynamics=dynamics, feedback="aggregate", radius_scale=0.03), problem
    )  # the 2 H of its own paper
    rng = np.random.default_rng(0)
    for _ in range(K):
        states, actions, losses = played(rng, mdp.initial, 3, 3, 2)
        for session in (one, two, other):
            session.update(states, actions, float(losses.sum()))
        np.testing.assert_allclose(one.policy, two.policy, rtol=1e-9)
    assert (np.abs(other.policy - one.policy).max() > 1e-6) == (dynamics == "unknown")


def test_the_bonus_is_bounded():
    shape = (3, 2, 2)
    greatest = local_bonus(np.full(shape, 0.5), np.zeros(shape), np.ones(shape), 1e-3, 2.0)
    assert greatest.max() <= 5 * 3  # b <= 3 H + 2 H


@pytest.mark.equation("LRS23-eta")
@pytest.mark.parametrize("dynamics, enough", [("known", 9), ("unknown", 25 * 3**2)])
def test_the_step_keeps_the_bonus_stable(dynamics, enough):
    # η B <= 1 is what the analysis needs, b <= 3 H + 2 H (the 2 H with unknown dynamics): see the test above
    H, S, A = 3, 2, 2
    known = np.full((H, S, A, S), 0.5) if dynamics == "known" else None
    greatest = H * H * (3 if dynamics == "known" else 5)
    lowered = []
    for K in (1, 2, 5, enough, 10 * enough):
        told = Dapo(dynamics=dynamics).resolved(Problem(H=H, S=S, A=A, episodes=K, transition=known))
        assert told["step_size"] * greatest <= 1.0 + 1e-12
        assert told["exploration"] == pytest.approx(2 * H * told["step_size"], rel=1e-14)
        lowered.append(told["step_lowered"])
        paper = (H**2 * S * A * K + H**4 * K) ** -0.5 * (1 if dynamics == "known" else H)
        assert told["step_size"] == pytest.approx(min(paper, 1 / greatest), rel=1e-14)
    assert lowered[0]
    assert not any(lowered[-2:])
    one = Problem(H=H, S=S, A=A, episodes=1, transition=known)
    assert not Dapo(dynamics=dynamics, bonus_scale=0.0).resolved(one)["step_lowered"]


def test_late_feedback_is_taken_by_run():
    mdp = ab.instances.make("random", states=3, actions=2, horizon=3, seed=3)
    losses = ab.adversaries.make("switching", mdp, blocks=4, seed=0)
    delays = np.random.default_rng(0).integers(0, 20, size=300)
    learner = Dapo(total_delay=float(delays.sum()))
    late = ab.run(mdp, losses, learner, episodes=300, seed=0, delays=delays)
    none = ab.run(mdp, losses, learner, episodes=300, seed=0)
    zero = ab.run(mdp, losses, learner, episodes=300, seed=0, delays=np.zeros(300, int))
    np.testing.assert_array_equal(none.policy, zero.policy)
    assert np.abs(late.policy - none.policy).max() > 1e-3


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInputError, match="feedback must be one of semi-bandit, aggregate, but is 'full'"):
        Dapo(feedback="full")
    with pytest.raises(InvalidInputError, match="dynamics must be one of known, unknown"):
        Dapo(dynamics="both")
    with pytest.raises(InvalidInputError, match="total_delay must be a finite number, at least 0"):
        Dapo(total_delay=-1.0)
