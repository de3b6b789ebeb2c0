import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners import oful_trajectory
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.oful_trajectory import OfulTrajectory
from naive import planning
from naive import trajectory_feedback as naive

H, S, A = 3, 2, 2


def problem(seed=0):
    transition = np.random.default_rng(seed).dirichlet(np.ones(S), size=(H, S, A))
    return Problem(H=H, S=S, A=A, episodes=None, transition=transition)


@pytest.mark.equation("EMM21-oful")
@pytest.mark.parametrize("refresh", [10_000, 7])
@pytest.mark.parametrize(
    "learner", [OfulTrajectory(), OfulTrajectory(noise="none", ridge=0.1, bonus_scale=0.2)], ids=repr
)
def test_policies_are_the_most_promising_of_all(learner, refresh, monkeypatch):
    monkeypatch.setattr(oful_trajectory, "REFRESH", refresh)
    known = problem()
    policies = list(planning.deterministic_policies(H, S, A))
    reaches = [
        (planning.occupancy(known.transition, policy, known.initial)[:, :, None] * policy).ravel()
        for policy in policies
    ]
    ridge = naive.Ridge(H, S, A, learner.ridge or H)
    sigma = 0.0 if learner.noise == "none" else np.sqrt(H) / 2
    state = learner.init(known, Draws(0, 0, 0, 1))
    rng = np.random.default_rng(5)
    for k in range(30):
        beta, inverse = learner.bonus_scale * ridge.radius(sigma, 0.05), np.linalg.inv(ridge.matrix)
        values = [x @ ridge.solution() - beta * np.sqrt(x @ inverse @ x) for x in reaches]
        played = planning.occupancy(known.transition, state.policy_hsa, known.initial)[:, :, None] * state.policy_hsa
        x = played.ravel()
        assert x @ ridge.solution() - beta * np.sqrt(x @ inverse @ x) == pytest.approx(min(values), abs=1e-9)
        episode = Episode(k, rng.integers(S, size=H), rng.integers(A, size=H), total=H * rng.random())
        state = learner.update(known, state, episode, Draws(0, 0, k, 2))
        ridge.add(episode.states, episode.actions, episode.total)


def test_ties_are_drawn():
    moves = np.zeros((1, 2, 2))
    moves[:, 0] = moves[:, 1] = [1.0, 0.0]
    one_state = Problem(H=2, S=2, A=2, episodes=None, transition=np.broadcast_to([1.0, 0.0], (2, 2, 2)))
    found = {
        tuple(OfulTrajectory().init(one_state, Draws(seed, 0, 0, 1)).policy_hsa[:, 0, 0].tolist()) for seed in range(40)
    }
    assert len(found) == 4  # all four policies go as far from what is known, so each may come first


def test_arguments_and_sizes_are_checked():
    with pytest.raises(InvalidInputError, match="bonus_scale must be"):
        OfulTrajectory(bonus_scale=-1.0)
    large = Problem(H=9, S=3, A=2, episodes=5, transition=np.full((3, 2, 3), 1 / 3))
    with pytest.raises(InvalidInputError, match=r"oful-trajectory weighs every deterministic policy, at most 60000"):
        ab.start(OfulTrajectory(), large)
    moves = np.eye(200)[np.random.default_rng(0).integers(200, size=(15, 200, 2))]
    with pytest.raises(InvalidInputError, match=r"at most 5000000 numbers .* 32768 policies of H · S · A = 6000 numb"):
        ab.start(OfulTrajectory(), Problem(H=15, S=200, A=2, episodes=5, transition=moves))
    assert OfulTrajectory.reconstructed
