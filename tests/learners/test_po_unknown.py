"""Algorithm 2 against a naive transcription of its pseudo-code, and what must hold of it whatever happens."""

import math

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.po_unknown import PolicyOptimizationUnknown
from naive import po_unknown as naive

NO_DRAWS = Draws(0, 0, 0, 0)
SHAPES = [(3, 4, 2), (4, 3, 3), (1, 2, 2), (3, 1, 2), (3, 3, 1)]


def trajectory(rng, transition, policy, initial):
    """States, actions and a total of one sampled episode."""
    H, S, A = policy.shape
    states, actions = np.empty(H, np.int64), np.empty(H, np.int64)
    s = rng.choice(S, p=initial)
    for h in range(H):
        states[h], actions[h] = s, rng.choice(A, p=policy[h, s] / policy[h, s].sum())
        s = rng.choice(S, p=transition[h, s, actions[h]])
    return states, actions, H * rng.random() * (1 + states.sum() % 2) / 2


def both(shape, K, concentration=0.5, initial=None, played=None, seed=0, **arguments):
    """Feed the learner and the naive transcription the same episodes; yields them after each."""
    H, S, A = shape
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(S, concentration), size=(H, S, A))
    problem = Problem(H=H, S=S, A=A, episodes=K, initial_state=0 if initial is None else initial)
    learner = PolicyOptimizationUnknown(**arguments)
    state = learner.init(problem, NO_DRAWS)
    resolved = learner.resolved(problem)
    scales = {name: arguments[name] for name in ("confidence", "bonus_scale", "radius_scale") if name in arguments}
    plain = naive.NaiveUnknown(H, S, A, K, problem.initial, resolved["step_size"], resolved["exploration"], **scales)
    for k in range(K if played is None else played):
        states, actions, total = trajectory(rng, transition, plain.policy, problem.initial)
        before = state.policy_hsa.copy()
        state = learner.update(problem, state, Episode(k, states, actions, total), NO_DRAWS)
        plain.update(states, actions, total)
        yield learner, state, plain, before


@pytest.mark.equation("LM25-alg-2")
@pytest.mark.equation("LM25-U-hat-unknown")
@pytest.mark.equation("LM25-b-unknown")
@pytest.mark.parametrize("radius_scale", [1.0, 0.01, 0.001, 0.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_same_policies_as_the_naive_transcription(shape, radius_scale):
    for _, state, plain, _ in both(shape, 300, radius_scale=radius_scale, step_size="main"):
        np.testing.assert_allclose(state.policy_hsa, plain.policy, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "arguments",
    [
        {"step_size": "appendix"},
        {"step_size": 0.03, "exploration": 0.01, "radius_scale": 0.02},
        {"bonus_scale": 0.3, "radius_scale": 0.02, "confidence": 0.3},
        {"bonus_scale": 0.0},
    ],
)
def test_every_argument_means_the_same_there(arguments):
    for _, state, plain, _ in both((3, 4, 2), 250, seed=1, **arguments):
        np.testing.assert_allclose(state.policy_hsa, plain.policy, rtol=0, atol=1e-9)


@pytest.mark.parametrize("concentration", [0.05, 5.0])
def test_sparse_dynamics_and_a_distribution_of_first_states(concentration):
    initial = [0.5, 0.0, 0.25, 0.25]
    for _, state, plain, _ in both((4, 4, 2), 250, concentration, initial, radius_scale=0.005, seed=2):
        np.testing.assert_allclose(state.policy_hsa, plain.policy, rtol=0, atol=1e-9)


def test_paper_radius_past_the_whole_simplex():
    """10 ln(10HSAK/δ) is 122 here: by episode 1500 many boxes are smaller than the simplex."""
    small = 0
    for _, state, plain, _ in both((3, 2, 2), 1500, step_size="main", confidence=0.9, seed=3):
        np.testing.assert_allclose(state.policy_hsa, plain.policy, rtol=0, atol=1e-9)
        small = (plain.upper < 1.0).sum()
    assert small >= 3  # of at most 6: one end of each row of two


@pytest.mark.equation("LM25-counts")
def test_sets_rest_on_the_episodes_before_and_the_last_transition_is_not_counted():
    H = 3
    for k, (_, state, plain, _) in enumerate(both((H, 4, 2), 5, radius_scale=0.01)):
        assert plain.counts.sum() == (H - 1) * (k + 1)
        np.testing.assert_array_equal(state.counts_hsas.sum(axis=(1, 2, 3)), [k + 1, k + 1, 0])
        # the sets that this update used: none of its own episode
        used = naive.confidence_box(plain.counts * 0, 5, 0.05, 0.01) if k == 0 else None
        if used is not None:
            np.testing.assert_array_equal(plain.lower, used[0])
            np.testing.assert_array_equal(plain.upper, used[1])


@pytest.mark.equation("LM25-B-hat")
@pytest.mark.parametrize("radius_scale", [1.0, 0.02])
def test_bonus_is_between_zero_and_four_h_squared(radius_scale):
    """b <= 3H · (Σ_a π γ / γ)/... <= 4H at every (h, s), so B̂ <= 4H² · bonus_scale."""
    H = 4
    for bonus_scale in (1.0, 0.25):
        for _, state, plain, before in both((H, 3, 2), 120, radius_scale=radius_scale, bonus_scale=bonus_scale):
            assert state.bonus_hs.min() >= 0.0
            assert state.bonus_hs.max() <= 4 * H * H * bonus_scale * (1 + 1e-12)
            np.testing.assert_allclose(state.bonus_hs, (before * plain.B).sum(axis=-1), rtol=1e-9, atol=1e-9)


def test_an_action_comes_back_from_nowhere():
    problem = Problem(H=2, S=2, A=2, episodes=10**6)
    learner = PolicyOptimizationUnknown(step_size=50.0, exploration=1.0)
    state = learner.init(problem, NO_DRAWS)
    states = np.zeros(2, np.int64)

    def play(action, times):
        nonlocal state
        for k in range(times):
            episode = Episode(k, states, np.full(2, action), 2.0)
            state = learner.update(problem, state, episode, NO_DRAWS)
            assert np.isfinite(state.policy_hsa).all()
            assert np.isfinite(state.log_weights_hsa).all()
            np.testing.assert_allclose(state.policy_hsa.sum(axis=-1), 1.0, rtol=1e-12)

    play(0, 200)
    assert state.policy_hsa[0, 0, 0] < 1e-300
    play(1, 400)
    assert state.policy_hsa[0, 0, 0] > 0.999


def test_one_long_run_of_switching_totals_stays_finite():
    rng = np.random.default_rng(0)
    problem = Problem(H=3, S=3, A=3, episodes=20_000)
    learner = PolicyOptimizationUnknown(step_size=5.0, radius_scale=0.01)
    state = learner.init(problem, NO_DRAWS)
    for k in range(20_000):
        states, actions = rng.integers(0, 3, 3), rng.integers(0, 3, 3)
        good = (actions == (k // 5000) % 3).mean()
        state = learner.update(problem, state, Episode(k, states, actions, 3.0 * (1 - good)), NO_DRAWS)
    assert np.isfinite(state.policy_hsa).all()
    np.testing.assert_allclose(state.policy_hsa.sum(axis=-1), 1.0, rtol=1e-12)


def test_relabelling_states_relabels_the_policy():
    rng = np.random.default_rng(4)
    H, S, A, K = 3, 4, 2, 60
    order = rng.permutation(S)
    learner = PolicyOptimizationUnknown(radius_scale=0.01)
    plain = Problem(H=H, S=S, A=A, episodes=K, initial_state=np.full(S, 0.25))
    one, two = learner.init(plain, NO_DRAWS), learner.init(plain, NO_DRAWS)
    for k in range(K):
        states, actions, total = rng.integers(0, S, H), rng.integers(0, A, H), 3 * rng.random()
        one = learner.update(plain, one, Episode(k, states, actions, total), NO_DRAWS)
        two = learner.update(plain, two, Episode(k, order[states], actions, total), NO_DRAWS)
    np.testing.assert_allclose(two.policy_hsa[:, order], one.policy_hsa, atol=1e-11)


def test_resolved_numbers_and_the_lowered_step():
    problem = Problem(H=3, S=4, A=2, episodes=1000)
    iota = math.log(3 * 4 * 2 * 1000 / 0.05)
    told = PolicyOptimizationUnknown().resolved(problem)
    step = math.sqrt(iota) / (3 * math.sqrt(4 * 2 * 1000) + 9 * math.sqrt(1000))
    assert told == {"step_size": pytest.approx(step), "exploration": pytest.approx(6 * step), "step_lowered": False}
    few = Problem(H=3, S=1, A=1, episodes=4)
    told = PolicyOptimizationUnknown().resolved(few)
    assert told == {"step_size": 1 / 36, "exploration": pytest.approx(1 / 6), "step_lowered": True}
    assert PolicyOptimizationUnknown(bonus_scale=4.0).resolved(few)["step_size"] == pytest.approx(1 / 144)
    assert PolicyOptimizationUnknown(step_size=0.5).resolved(few)["step_size"] == 0.5
    assert "step_lowered=True" in repr(PolicyOptimizationUnknown().bound(few))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"confidence": 0.0}, "confidence must be"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"step_size": "appendx"}, "step_size must be"),
        ({"step_size": -1.0}, "step_size must be"),
        ({"exploration": 0.0}, "exploration must be"),
        ({"bonus_scale": -0.1}, "bonus_scale must be"),
        ({"radius_scale": float("nan")}, "radius_scale must be"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        PolicyOptimizationUnknown(**arguments)


def test_needs_a_number_of_episodes():
    with pytest.raises(InvalidInputError, match="needs the number of episodes"):
        PolicyOptimizationUnknown().check(Problem(H=2, S=2, A=2, episodes=None))
