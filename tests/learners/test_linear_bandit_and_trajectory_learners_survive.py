"""Corners that every learner of totals must get through: the smallest problems, holes, sparse models, extreme totals.

The learners are those after Cohen, Efroni, Cassel, Ito and their linear bandit ancestors, in all their forms.
"""

import warnings

import numpy as np
import pytest

import aggbandit as ab
from aggbandit import learners
from aggbandit.learners.base import INIT_STREAM, UPDATE_STREAM, Draws, Episode, Problem

FORMS = [
    ("exp2", {}),
    ("scrible", {}),
    ("scrible", {"sampling": "poles"}),
    ("volumetric", {"spanner_scale": 0.1}),
    ("dlb", {}),
    ("dlb", {"dynamics": "unknown"}),
    ("dlb", {"dynamics": "unknown", "radius_scale": 1e-3, "step_scale": 1e3, "boost_scale": 0.0}),
    ("oful-trajectory", {}),
    ("ts-trajectory", {}),
    ("ucbvi-ts", {}),
    ("ucbvi-ts", {"noise": "none", "bonus_scale": 0.0, "v_scale": 0.0}),
    ("rs-ucbvi-ts", {}),
    ("re-lsvi", {"ensemble": 4}),
    ("repo", {"ensemble": 4}),
    ("ftrl-tsallis", {}),
    ("ftrl-tsallis", {"dynamics": "unknown"}),
    ("ftrl-tsallis", {"dynamics": "unknown", "beta_scale": 1e-4, "radius_scale": 0.0, "bonus_scale": 0.0}),
    ("ftrl-logbarrier", {}),
    ("ftrl-logbarrier", {"dynamics": "unknown"}),
]
forms = pytest.mark.parametrize(("name", "arguments"), FORMS, ids=lambda x: str(x))


def instances():
    """Dynamics by name."""
    for H, S, A in [(1, 1, 1), (1, 1, 2), (1, 3, 2), (3, 1, 2), (3, 2, 1)]:
        yield f"H={H} S={S} A={A}", ab.TabularMDP(np.full((H, S, A, S), 1 / S))
    moves = np.zeros((3, 2, 3))
    moves[np.arange(3), 0, np.arange(3)] = 1.0  # action 0 stays, action 1 goes on
    moves[np.arange(3), 1, (np.arange(3) + 1) % 3] = 1.0
    yield "deterministic", ab.TabularMDP(moves, horizon=3)
    yield "sparse", ab.TabularMDP.sparse(moves.argmax(axis=-1)[:, :, None], np.ones((3, 2, 1)), horizon=3)
    trap = moves.copy()
    trap[0, 1] = trap[1, 1] = [0.5, 0.5, 0.0]  # state 2 is never reached
    yield "unreachable", ab.TabularMDP(trap, horizon=3)
    yield "two starts", ab.TabularMDP(moves, horizon=2, initial_state=[0.5, 0.0, 0.5])
    rare = np.full((3, 2, 3), 1e-9)
    rare[:, :, 0] = 1 - 2e-9
    yield "rare", ab.TabularMDP(rare, horizon=3)


INSTANCES = dict(instances())


def play(learner, mdp, episodes, total_of, seed=0):
    """Policies played; every warning is an error."""
    rng = np.random.default_rng(seed)
    problem = Problem.of(mdp, episodes, learner.needs)
    bound = learner.bound(problem)
    state = bound.init(problem, Draws(seed, 0, 0, INIT_STREAM))
    for k in range(episodes):
        policy = np.array(bound.policy(problem, state))
        assert np.isfinite(policy).all()
        assert (policy >= 0).all()
        np.testing.assert_allclose(policy.sum(axis=-1), 1.0, atol=1e-9)
        yield policy
        s, states, actions = int(rng.choice(mdp.S, p=mdp.initial)), [], []
        for h in range(mdp.H):
            a = int(rng.choice(mdp.A, p=policy[h, s] / policy[h, s].sum()))
            states.append(s)
            actions.append(a)
            s = int(rng.choice(mdp.S, p=mdp.transition[h, s, a] / mdp.transition[h, s, a].sum()))
        episode = Episode(k, np.array(states), np.array(actions), total=total_of(k) * mdp.H)
        state = bound.update(problem, state, episode, Draws(seed, 0, k, UPDATE_STREAM))
    yield np.array(bound.policy(problem, state))


@forms
@pytest.mark.parametrize("instance", INSTANCES)
def test_small_and_odd_instances(name, arguments, instance):
    learner = learners.make(name, **arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for episodes in (1, 12):
            *_, last = play(learner, INSTANCES[instance], episodes, lambda k: float(k % 3 > 0))
            if INSTANCES[instance].A == 1:
                np.testing.assert_allclose(last, 1.0, atol=1e-12)


@forms
@pytest.mark.parametrize("total", [0.0, 1.0])
def test_extreme_totals_all_along(name, arguments, total):
    mdp = ab.instances.make("random", states=2, actions=2, horizon=2, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in play(learners.make(name, **arguments), mdp, 60, lambda k: total):
            pass


@forms
def test_impossible_trajectories_do_no_harm(name, arguments):
    # a person may report what the model excludes: a place that nothing leads to, an action that was not offered
    mdp = INSTANCES["unreachable"]
    learner = learners.make(name, **arguments)
    session = ab.start(learner, Problem.of(mdp, 5, learner.needs))
    for _ in range(5):
        session.update(np.array([2, 2, 2]), np.array([1, 1, 1]), 1.0)
    assert np.isfinite(session.policy).all()


def test_wrong_answers_would_be_noticed():
    class Broken:
        needs = learners.make("exp2").needs

        def bound(self, problem):
            return self

        def init(self, problem, draws):
            return 0

        def policy(self, problem, state):
            return np.full(problem.shape, 0.6)

    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        next(play(Broken(), INSTANCES["deterministic"], 1, float))
