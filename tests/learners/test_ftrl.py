from math import log, log2, sqrt

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError, UnknownNameError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.ftrl_logbarrier import FtrlLogBarrier
from aggbandit.learners.ftrl_tsallis import FtrlTsallis
from naive import best_of_both_worlds as naive
from naive import occupancy_polytopes, planning

DRAWS = Draws(0, 0, 0, 1)  # never looked at
H, S, A, K = 3, 2, 3, 80
TRANSITION = np.random.default_rng(0).dirichlet(np.ones(S), size=(H, S, A))
INITIAL = np.eye(S)[0]


def problem_of(learner):
    return Problem(H=H, S=S, A=A, episodes=K, transition=TRANSITION if learner.needs.dynamics == "known" else None)


def played(learner, n=K, seed=1):
    """(state before, episode, state after), the trajectories drawn from the policies."""
    problem = problem_of(learner)
    rng = np.random.default_rng(seed)
    state = learner.init(problem, DRAWS)
    for k in range(n):
        s, states, actions = 0, [], []
        for h in range(H):
            a = int(rng.choice(A, p=state.policy_hsa[h, s]))
            states.append(s)
            actions.append(a)
            s = int(rng.choice(S, p=TRANSITION[h, s, a]))
        episode = Episode(k, np.array(states), np.array(actions), total=H * rng.random() * (0.2 + 0.8 * (a > 0)))
        before = state._replace(cost_hsa=state.cost_hsa.copy())
        if hasattr(state, "charged_hsa"):
            before = before._replace(charged_hsa=state.charged_hsa.copy())
        state = learner.update(problem, state, episode, DRAWS)
        yield before, episode, state


def stationarity(transition, x, gradient):
    """How far the gradient is from a combination of flow equations, relative to x: 0 at the minimum."""
    C, d = occupancy_polytopes.flow_equations(transition, INITIAL)
    variables = x.ravel() > 0
    np.testing.assert_allclose(C @ x.ravel(), d, atol=1e-12)
    basis = occupancy_polytopes.null_basis(C[:, variables])
    at = x.ravel()[variables]
    reduced = basis.T @ gradient.ravel()[variables]
    return float(np.sqrt(reduced @ np.linalg.solve(basis.T @ (basis / at[:, None] ** 2), reduced)))


@pytest.mark.equation("IJLMT25-tsallis")
@pytest.mark.parametrize("learner", [FtrlTsallis(), FtrlTsallis(step_scale=4.0, beta_scale=0.1)], ids=repr)
def test_tsallis_plays_the_regularised_leader(learner):
    cost = np.zeros((H, S, A))
    for k, (before, episode, _) in enumerate(played(learner)):
        x = before.x_hsa
        root, barrier = 2 * sqrt(k + 1) / learner.step_scale, 2 * learner.beta_scale
        safe = np.where(x > 0, x, 1.0)
        assert stationarity(TRANSITION, x, cost - 0.5 * root / np.sqrt(safe) - barrier / safe) < 1e-7
        np.testing.assert_allclose(before.cost_hsa, cost, atol=1e-9)
        reach = planning.occupancy(TRANSITION, before.policy_hsa, INITIAL)
        np.testing.assert_allclose(x, reach[:, :, None] * before.policy_hsa, atol=1e-12)
        reach = np.where(reach > 0, reach, 1.0)
        cost += naive.estimate(reach, before.policy_hsa, episode.total / H, episode.states, episode.actions)


@pytest.mark.equation("IJLMT25-log-barrier")
@pytest.mark.parametrize("learner", [FtrlLogBarrier(), FtrlLogBarrier(charge="all", step_scale=3.0)], ids=repr)
def test_log_barrier_plays_the_regularised_leader(learner):
    cost, charged = np.zeros((H, S, A)), np.zeros((H, S, A))
    for before, episode, _ in played(learner):
        x, policy = before.x_hsa, before.policy_hsa
        safe = np.where(x > 0, x, 1.0)
        weights = np.sqrt(4 + charged / log(K)) / learner.step_scale
        assert stationarity(TRANSITION, x, cost - weights / safe) < 1e-7
        reach = planning.occupancy(TRANSITION, policy, INITIAL)
        reach = np.where(reach > 0, reach, 1.0)
        c = episode.total / H
        cost += naive.estimate(reach, policy, c, episode.states, episode.actions)
        for h, (s, a) in enumerate(zip(episode.states, episode.actions, strict=True)):
            for b in range(A):
                if b == a or learner.charge == "all":
                    charged[h, s, b] += c**2 * ((b == a) - policy[h, s, b]) ** 2


@pytest.mark.equation("IJLMT25-tsallis-epochs")
@pytest.mark.parametrize(
    "learner",
    [
        FtrlTsallis(dynamics="unknown"),
        FtrlTsallis(dynamics="unknown", beta_scale=1e-3, bonus_scale=0.1, radius_scale=0.1, step_scale=2.0),
        FtrlLogBarrier(dynamics="unknown"),
        FtrlLogBarrier(dynamics="unknown", beta_scale=1e-3, bonus_scale=0.1, radius_scale=0.1),
    ],
    ids=repr,
)
def test_epochs_on_the_frequencies(learner):
    epoch_counts, counts = np.zeros((H, S, A, S)), np.zeros((H, S, A, S))
    cost, charged, t, epochs = np.zeros((H, S, A)), np.zeros((H, S, A)), 1, 1
    for before, episode, _ in played(learner, 40):
        np.testing.assert_allclose(before.cost_hsa, cost, atol=1e-7)
        mean, radius = naive.widths(counts, K)
        seen = counts.sum(axis=-1, keepdims=True) > 0
        radius = np.where(seen, learner.radius_scale * radius, 1.0)
        x, policy = before.x_hsa, before.policy_hsa
        safe = np.where(x > 0, x, 1.0)
        barrier = 1024 * H * learner.beta_scale
        if isinstance(learner, FtrlTsallis):
            gradient = cost - 0.5 * sqrt(t) / learner.step_scale / np.sqrt(safe) - barrier / safe
        else:
            gradient = cost - np.sqrt(barrier**2 + charged / log(K)) / safe
        assert stationarity(mean, x, gradient) < 1e-6
        states, actions, c = episode.states, episode.actions, episode.total / H
        for h in range(H - 1):
            epoch_counts[h, states[h], actions[h], states[h + 1]] += 1
        if (epoch_counts.sum(axis=-1) >= np.maximum(counts.sum(axis=-1), 1)).any():
            counts, epoch_counts = counts + epoch_counts, np.zeros((H, S, A, S))
            cost, charged, t, epochs = np.zeros((H, S, A)), np.zeros((H, S, A)), 1, epochs + 1
            continue
        lower, upper = np.maximum(0, mean - radius), np.minimum(1, mean + radius)
        _, greatest = planning.occupancy_bounds(lower, upper, policy, INITIAL)
        bonus = np.minimum(2, radius.sum(axis=-1))
        bonus[-1] = 0
        cost += naive.optimistic(np.where(greatest > 0, greatest, 1), policy, c, states, actions)
        cost -= learner.bonus_scale * bonus
        for h in range(H):
            charged[h, states[h], actions[h]] += c**2 * (1 - policy[h, states[h], actions[h]]) ** 2
        t += 1
    assert 2 * A < epochs <= 4 * H * S * A * (log2(K) + 1)


@pytest.mark.parametrize("kind", [FtrlTsallis, FtrlLogBarrier])
def test_with_one_place_it_is_a_bandit_algorithm_on_the_simplex(kind):
    # Tsallis-INF with a log barrier; the closed form of a coordinate, [IJLMT25] Lemma 5, and a multiplier by bisection
    actions = 4
    problem = Problem(H=1, S=1, A=actions, episodes=K, transition=np.ones((1, 1, actions, 1)))
    learner = kind()
    state = learner.init(problem, DRAWS)
    rng, cost, charged = np.random.default_rng(2), np.zeros(actions), np.zeros(actions)
    for k in range(K):
        root, log_weights = 2 * sqrt(k + 1), np.full(actions, 2.0)
        if kind is FtrlLogBarrier:
            root, log_weights = 0.0, np.sqrt(4 + charged / log(K))
        share = naive.simplex_ftrl(cost, root, log_weights)
        np.testing.assert_allclose(state.policy_hsa[0, 0], share, rtol=1e-7)
        a, loss = int(rng.integers(actions)), rng.random()
        cost += loss * ((np.arange(actions) == a) / share - 1)
        charged[a] += loss**2 * (1 - share[a]) ** 2
        state = learner.update(problem, state, Episode(k, np.array([0]), np.array([a]), total=loss), DRAWS)


@pytest.mark.parametrize("kind", [FtrlTsallis, FtrlLogBarrier])
@pytest.mark.parametrize("dynamics", ["known", "unknown"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 2, 2), (3, 1, 2), (3, 2, 1)])
def test_smallest_problems(kind, dynamics, shape):
    transition = np.full((*shape, shape[1]), 1 / shape[1]) if dynamics == "known" else None
    problem = Problem(H=shape[0], S=shape[1], A=shape[2], episodes=2, transition=transition)
    learner = kind(dynamics=dynamics)
    state = learner.init(problem, DRAWS)
    for k in range(2):
        episode = Episode(k, np.zeros(shape[0], int), np.zeros(shape[0], int), total=float(k * shape[0]))
        state = learner.update(problem, state, episode, DRAWS)
    np.testing.assert_allclose(learner.policy(problem, state).sum(axis=-1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("kind", [FtrlTsallis, FtrlLogBarrier])
def test_arguments_are_checked(kind):
    with pytest.raises(UnknownNameError, match="There is no dynamics 'both'"):
        kind(dynamics="both")
    for name in ("step_scale", "beta_scale"):
        with pytest.raises(InvalidInputError, match=f"{name} must be a finite number, greater than 0"):
            kind(**{name: 0.0})
    for name in ("radius_scale", "bonus_scale"):
        with pytest.raises(InvalidInputError, match=f"{name} must be"):
            kind(**{name: -1.0})
    with pytest.raises(UnknownNameError, match="There is no charge 'none'"):
        FtrlLogBarrier(charge="none")
    assert kind().needs.losses == "both"
    with pytest.raises(InvalidInputError, match="needs known dynamics"):
        ab.start(kind(), Problem(H=2, S=2, A=2, episodes=3))
    with pytest.raises(InvalidInputError, match="needs the number of episodes"):
        ab.start(kind(dynamics="unknown"), Problem(H=2, S=2, A=2, episodes=None))
    endless = Problem(H=2, S=2, A=2, episodes=None, transition=np.full((2, 2, 2, 2), 0.5))
    if kind is FtrlTsallis:  # ψ_t needs no K
        assert ab.start(kind(), endless).policy.shape == (2, 2, 2)
    else:
        with pytest.raises(InvalidInputError, match="needs the number of episodes"):
            ab.start(kind(), endless)
