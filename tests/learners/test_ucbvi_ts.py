import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.rs_ucbvi_ts import RsUcbviTs
from aggbandit.learners.ts_trajectory import TsTrajectory
from aggbandit.learners.ucbvi_ts import UcbviTs
from naive import trajectory_feedback as naive

H, S, A, K = 3, 2, 2, 40


def problem_of(learner):
    transition = np.random.default_rng(0).dirichlet(np.ones(S), size=(H, S, A))
    known = learner.needs.dynamics == "known"
    return Problem(H=H, S=S, A=A, episodes=K, transition=transition if known else None), transition


def episodes(n=K):
    rng = np.random.default_rng(2)
    for k in range(n):
        yield Episode(k, rng.integers(S, size=H), rng.integers(A, size=H), total=H * rng.random())


@pytest.mark.equation("EMM21-ts")
@pytest.mark.equation("EMM21-ucbvi-ts")
@pytest.mark.parametrize(
    "learner",
    [
        TsTrajectory(),
        TsTrajectory(v_scale=0.2, noise="joint", ridge=0.5),
        UcbviTs(),
        UcbviTs(v_scale=0.1, bonus_scale=0.3, confidence=0.2, noise="none"),
    ],
    ids=repr,
)
def test_policies_are_the_best_for_the_drawn_losses(learner):
    problem, transition = problem_of(learner)
    sigma = {"independent": np.sqrt(H) / 2, "joint": H / 2, "none": 0.0}[learner.noise]
    ridge = naive.Ridge(H, S, A, learner.ridge or H)
    state, history = learner.init(problem, Draws(1, 0, 0, 1)), []
    normal = Draws(1, 0, 0, 1).normal(H * S * A)
    for episode in episodes():
        v = learner.v_scale * ridge.radius(sigma, learner.confidence)
        loss = (ridge.solution() + v * ridge.spread(normal)).reshape(H, S, A)
        model = transition
        if isinstance(learner, UcbviTs):
            model, visits = naive.empirical(history, H, S, A)
            loss = loss - learner.bonus_scale * naive.bonus(visits, K, learner.confidence)
        policy = learner.policy(problem, state)
        assert set(np.unique(policy)) == {0.0, 1.0}
        assert naive.suboptimality(model, policy, loss) < 1e-9
        state = learner.update(problem, state, episode, Draws(1, 0, episode.index, 2))
        ridge.add(episode.states, episode.actions, episode.total)
        history.append((episode.states, episode.actions))
        normal = Draws(1, 0, episode.index, 2).normal(H * S * A)


def test_drawn_values_are_not_clipped():
    # a loss of the first step that is estimated far below 0 must stay there: only the sum over steps means something
    learner = UcbviTs(v_scale=0.0, bonus_scale=0.0, ridge=1e-6)
    problem, _ = problem_of(learner)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    rng = np.random.default_rng(4)
    loss = rng.random((H, S, A)) + np.array([-40.0, 60.0, -19.0])[:, None, None]
    for k in range(400):
        states, actions = rng.integers(S, size=H), rng.integers(A, size=H)
        total = loss[np.arange(H), states, actions].sum()
        state = learner.update(problem, state, Episode(k, states, actions, total=total), Draws(0, 0, k, 2))
    assert naive.suboptimality(state.model.mean_hsas, state.policy_hsa, loss) < 1e-3


@pytest.mark.equation("EMM21-rare")
@pytest.mark.parametrize(
    ("v_scale", "growth", "ridge", "most"), [(0.05, 1.0, 3.0, K), (1.0, 1.0, 3.0, K), (0.3, 30.0, 0.01, 16)]
)
def test_rare_switches(v_scale, growth, ridge, most):
    learner = RsUcbviTs(v_scale=v_scale, bonus_scale=0.3, growth=growth, ridge=ridge, noise="joint")
    problem, _ = problem_of(learner)
    known = naive.Ridge(H, S, A, ridge)
    state, history, renewals = learner.init(problem, Draws(1, 0, 0, 1)), [], 0
    last_known, last_history = naive.Ridge(H, S, A, ridge), []
    normal = Draws(1, 0, 0, 1).normal(H * S * A)
    for episode in episodes():
        v = v_scale * np.sqrt(1.0 + growth) * last_known.radius(H / 2, 0.05)
        model, visits = naive.empirical(last_history, H, S, A)
        loss = (last_known.solution() + v * last_known.spread(normal)).reshape(H, S, A)
        loss -= 0.3 * naive.bonus(visits, K, 0.05)
        assert naive.suboptimality(model, learner.policy(problem, state), loss) < 1e-9
        state = learner.update(problem, state, episode, Draws(1, 0, episode.index, 2))
        known.add(episode.states, episode.actions, episode.total)
        history.append((episode.states, episode.actions))
        normal = Draws(1, 0, episode.index, 2).normal(H * S * A)
        _, now = naive.empirical(history, H, S, A)
        grown = np.linalg.slogdet(known.matrix)[1] - np.linalg.slogdet(last_known.matrix)[1] > np.log(1.0 + growth)
        if grown or ((now > visits) & (now >= (1.0 + growth) * visits)).any():
            renewals += 1
            last_history = list(history)
            last_known = naive.Ridge(H, S, A, ridge)
            last_known.features, last_known.totals = list(known.features), list(known.totals)
    assert 5 < renewals < most  # it does switch rarely, and does switch


def test_switching_always_is_ucbvi_ts():
    one, two = RsUcbviTs(growth=1e-9), UcbviTs(v_scale=float(np.sqrt(1 + 1e-9)))
    problem, _ = problem_of(one)
    states = [learner.init(problem, Draws(3, 0, 0, 1)) for learner in (one, two)]
    for episode in episodes():
        np.testing.assert_array_equal(states[0].policy_hsa, states[1].policy_hsa)
        draws = [Draws(3, 0, episode.index, 2) for _ in range(2)]
        states = [
            learner.update(problem, state, episode, own)
            for learner, state, own in zip((one, two), states, draws, strict=True)
        ]


@pytest.mark.parametrize("kind", [TsTrajectory, UcbviTs, RsUcbviTs])
def test_arguments_and_sizes_are_checked(kind):
    with pytest.raises(InvalidInputError, match="v_scale must be"):
        kind(v_scale=-1.0)
    if kind is not TsTrajectory:
        with pytest.raises(InvalidInputError, match="bonus_scale must be"):
            kind(bonus_scale=-1.0)
        with pytest.raises(InvalidInputError, match="needs the number of episodes"):
            ab.start(kind(), Problem(H=2, S=2, A=2, episodes=None))
    else:
        ab.start(kind(), Problem(H=2, S=2, A=2, episodes=None, transition=np.full((2, 2, 2, 2), 0.5)))
    with pytest.raises(InvalidInputError, match="growth must be"):
        RsUcbviTs(growth=0.0)
    large = Problem(H=10, S=40, A=8, episodes=5, transition=np.full((40, 8, 40), 1 / 40))
    with pytest.raises(InvalidInputError, match="up to d = 3000, but here d = 3200"):
        ab.start(kind(), large)
    assert kind.reconstructed
