import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.po_known import PolicyOptimizationKnown, State
from naive import po_known as naive

DRAWS = Draws(0, 0, 0, 1)  # never looked at: the algorithm draws nothing of its own


def random_model(seed, H, S, A, initial=None):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(S), size=(H, S, A)), 0 if initial is None else rng.dirichlet(np.ones(S))


def distribution(initial_state, S):
    return np.eye(S)[initial_state] if np.ndim(initial_state) == 0 else initial_state


def trajectories(seed, H, S, A, n):
    """Arbitrary trajectories and totals: the update must follow the formula whatever was played."""
    rng = np.random.default_rng([seed, 1])
    for _ in range(n):
        yield rng.integers(S, size=H), rng.integers(A, size=H), H * rng.random()


@pytest.mark.equation("LM25-alg-1")
@pytest.mark.equation("LM25-update")
@pytest.mark.equation("LM25-U-hat")
@pytest.mark.parametrize("initial", [None, "distribution"])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"step_size": "main"},
        {"step_size": 0.3, "exploration": 0.01},
        {"step_size": 0.02, "bonus_scale": 0.0},
        {"exploration": 0.4, "bonus_scale": 0.3},
    ],
)
def test_policies_follow_the_pseudo_code(arguments, initial):
    H, S, A, K = 4, 3, 3, 300
    transition, initial_state = random_model(3, H, S, A, initial)
    learner = PolicyOptimizationKnown(**arguments)
    problem = Problem(H=H, S=S, A=A, episodes=K, initial_state=initial_state, transition=transition)
    used = learner.resolved(problem)
    state = learner.init(problem, DRAWS)
    policy = np.full((H, S, A), 1 / A)
    for k, (states, actions, total) in enumerate(trajectories(3, H, S, A, K)):
        np.testing.assert_allclose(learner.policy(problem, state), policy, rtol=1e-9, atol=1e-250)
        state = learner.update(problem, state, Episode(k, states, actions, total=total), DRAWS)
        policy, _ = naive.update(
            transition,
            distribution(initial_state, S),
            policy,
            states,
            actions,
            total,
            used["step_size"],
            used["exploration"],
            learner.bonus_scale,
        )
    np.testing.assert_allclose(learner.policy(problem, state), policy, rtol=1e-9, atol=1e-250)
    assert np.abs(policy - 1 / A).max() > 0.1  # something was learned: the comparison is not of uniform policies


@pytest.mark.equation("LM25-b")
@pytest.mark.equation("LM25-B")
@given(seed=st.integers(0, 10**6), H=st.integers(1, 4), S=st.integers(1, 4), A=st.integers(1, 3))
def test_one_update_moves_log_ratios_by_the_bonus_and_the_estimate(seed, H, S, A):
    """ln(π'(a)/π(a)) + η (Û - B) is the same for all actions of a row, whatever the policy before."""
    transition, _ = random_model(seed, H, S, A)
    policy = np.random.default_rng(seed).dirichlet(np.ones(A), size=(H, S))
    policy = np.maximum(policy, 1e-6)
    policy /= policy.sum(axis=-1, keepdims=True)
    learner = PolicyOptimizationKnown(step_size=0.05, exploration=0.1)
    problem = Problem(H=H, S=S, A=A, episodes=10, transition=transition)
    states, actions, total = next(trajectories(seed, H, S, A, 1))
    episode = Episode(0, states, actions, total=total)
    initial = np.eye(S)[0]
    state = learner.update(problem, State(policy.copy(), np.zeros_like(policy)), episode, DRAWS)
    expected, B = naive.update(transition, initial, policy, states, actions, total, 0.05, 0.1)
    np.testing.assert_allclose(state.policy_hsa, expected, rtol=1e-12)
    assert (B >= 0).all()
    assert (B <= 3 * H * H * (1 + 1e-12)).all()
    U_hat = np.zeros((H, S, A))
    mu = naive.occupancy(transition, initial, policy)
    for h in range(H):
        s, a = states[h], actions[h]
        U_hat[h, s, a] = total / (mu[h, s] * policy[h, s, a] + 0.1)
    same = np.log(state.policy_hsa / policy) + 0.05 * (U_hat - B)
    assert np.ptp(same, axis=-1).max(initial=0.0) < 1e-12


def test_sparse_dynamics_give_the_dense_policies():
    H, S, A, n = 4, 6, 2, 3
    rng = np.random.default_rng(5)
    successors = np.stack([rng.permutation(S)[:n] for _ in range(H * S * A)]).reshape(H, S, A, n)
    probabilities = rng.dirichlet(np.ones(n), size=(H, S, A))
    probabilities[:, :, 0, 2] = 0.0
    probabilities /= probabilities.sum(axis=-1, keepdims=True)
    sparse = ab.TabularMDP.sparse(successors, probabilities)
    learner = PolicyOptimizationKnown()
    problems = [
        Problem(H=H, S=S, A=A, episodes=200, transition=sparse),
        Problem(H=H, S=S, A=A, episodes=200, transition=np.array(sparse.transition)),
    ]
    states = [learner.init(problem, DRAWS) for problem in problems]
    for k, (s, a, total) in enumerate(trajectories(5, H, S, A, 200)):
        episode = Episode(k, s, a, total=total)
        states = [learner.update(*both, episode, DRAWS) for both in zip(problems, states, strict=True)]
    np.testing.assert_allclose(states[0].policy_hsa, states[1].policy_hsa, rtol=1e-10)


def test_stationary_dynamics_give_the_bits_of_repeated_ones():
    H, S, A = 4, 3, 2
    transition = random_model(8, 1, S, A)[0][0]
    learner = PolicyOptimizationKnown()
    problems = [
        Problem(H=H, S=S, A=A, episodes=50, transition=transition),
        Problem(H=H, S=S, A=A, episodes=50, transition=np.stack([transition] * H)),
    ]
    assert problems[0].dynamics.is_stationary
    states = [learner.init(problem, DRAWS) for problem in problems]
    for k, (s, a, total) in enumerate(trajectories(8, H, S, A, 50)):
        episode = Episode(k, s, a, total=total)
        states = [learner.update(*both, episode, DRAWS) for both in zip(problems, states, strict=True)]
    np.testing.assert_array_equal(states[0].policy_hsa, states[1].policy_hsa)


def bandit(step_size, exploration, A=2):
    """One step, one state: what is left of the algorithm is exponential weights."""
    learner = PolicyOptimizationKnown(step_size=step_size, exploration=exploration)
    problem = Problem(H=1, S=1, A=A, episodes=None, transition=np.ones((1, 1, A, 1)))
    return learner, problem, learner.init(problem, DRAWS)


def test_an_action_that_fell_below_any_double_comes_back():
    learner, problem, state = bandit(step_size=0.5, exploration=0.5)

    def play(state, action, total, times):
        for _ in range(times):
            episode = Episode(0, np.zeros(1, np.int64), np.array([action]), total=total)
            state = learner.update(problem, state, episode, DRAWS)
        return state

    log_ratio = 0.0  # ln π(1) - ln π(0), kept by hand
    policy = np.array([0.5, 0.5])

    def expect(action, times):
        nonlocal log_ratio, policy
        for _ in range(times):
            step = 0.5 / (policy[action] + 0.5)
            log_ratio += step if action == 0 else -step
            top = max(log_ratio, 0.0)
            weights = np.exp([-top, log_ratio - top])
            policy = weights / weights.sum()

    state = play(state, 1, 1.0, 3000)
    expect(1, 3000)
    assert log_ratio < -1400  # e^-1400 is far below the least double
    found = learner.policy(problem, state)[0, 0]
    assert found[1] == 0.0
    assert found[0] == 1.0
    state = play(state, 0, 1.0, 9500)
    expect(0, 9500)
    assert policy[1] > 0.9
    np.testing.assert_allclose(learner.policy(problem, state)[0, 0], policy, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_extreme_steps_leave_distributions(scale):
    H, S, A = 3, 2, 3
    transition, _ = random_model(0, H, S, A)
    learner = PolicyOptimizationKnown(step_size=scale, exploration=1e-12)
    problem = Problem(H=H, S=S, A=A, episodes=None, transition=transition)
    state = learner.init(problem, DRAWS)
    for k, (states, actions, total) in enumerate(trajectories(0, H, S, A, 400)):
        state = learner.update(problem, state, Episode(k, states, actions, total=total), DRAWS)
        policy = learner.policy(problem, state)
        assert np.isfinite(policy).all()
        np.testing.assert_allclose(policy.sum(axis=-1), 1.0, rtol=1e-12)


def test_only_named_steps_are_lowered_and_the_repr_says_so():
    transition, _ = random_model(0, 4, 3, 2)
    few = Problem(H=4, S=3, A=2, episodes=2, transition=transition)
    many = Problem(H=4, S=3, A=2, episodes=10**6, transition=transition)
    named = PolicyOptimizationKnown(step_size="main")
    lowered = named.resolved(few)
    assert lowered["step_lowered"] is True
    assert lowered["step_size"] == 1 / (4 * 4 * 4)
    assert lowered["exploration"] == 2 * lowered["step_size"] * 4
    assert "step_lowered=True" in repr(named.bound(few))
    assert named.resolved(many)["step_lowered"] is False
    given_by_user = PolicyOptimizationKnown(step_size=0.5).resolved(few)
    assert given_by_user == {"step_size": 0.5, "exploration": 4.0, "step_lowered": False}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"confidence": 0.0}, "confidence must be"),
        ({"confidence": 1.0}, "confidence must be"),
        ({"step_size": -1.0}, "step_size must be"),
        ({"step_size": "papers"}, "step_size must be"),
        ({"exploration": 0.0}, "exploration must be"),
        ({"bonus_scale": -0.5}, "bonus_scale must be"),
        ({"bonus_scale": float("nan")}, "bonus_scale must be"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        PolicyOptimizationKnown(**arguments)


def test_it_needs_the_dynamics_and_for_named_steps_the_number_of_episodes():
    with pytest.raises(InvalidInputError, match="needs known dynamics"):
        PolicyOptimizationKnown().bound(Problem(H=2, S=2, A=2, episodes=10))
    transition, _ = random_model(0, 2, 2, 2)
    open_end = Problem(H=2, S=2, A=2, episodes=None, transition=transition)
    with pytest.raises(InvalidInputError, match="needs the number of episodes"):
        PolicyOptimizationKnown().bound(open_end)
    PolicyOptimizationKnown(step_size=0.1).bound(open_end)
