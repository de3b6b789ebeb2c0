"""po-practical and po-model-free: their formulas, what their estimates mean, and what they must never do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.po_model_free import FIRST_CAPACITY, PolicyOptimizationModelFree
from aggbandit.learners.po_practical import PolicyOptimizationPractical
from naive import planning, practical

DRAWS = Draws(0, 0, 0, 1)  # never looked at: neither draws anything of its own
KINDS = ["model-free", "known", "unknown"]


def model(seed, H, S, A):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(S), size=(H, S, A))


def configured(kind, **arguments):
    if kind == "model-free":
        return PolicyOptimizationModelFree(**arguments)
    return PolicyOptimizationPractical(dynamics=kind, **arguments)


def naive_of(kind, transition, **arguments):
    shape = transition.shape[:3]
    if kind == "model-free":
        return practical.ModelFree(*shape, **arguments)
    return practical.Practical(*shape, transition=transition if kind == "known" else None, **arguments)


def problem_of(kind, transition):
    H, S, A = transition.shape[:3]
    return Problem(H=H, S=S, A=A, episodes=None, transition=transition if kind == "known" else None)


@pytest.mark.parametrize("arguments", [{}, {"forget": 0.1}, {"step_scale": 0.4, "exploration": 0.2}])
@pytest.mark.parametrize("kind", KINDS)
def test_policies_follow_the_formulas_also_when_scores_come_late(kind, arguments):
    transition = model(0, 4, 3, 3)
    H, S, A = transition.shape[:3]
    learner, naive = configured(kind, **arguments), naive_of(kind, transition, **arguments)
    problem = problem_of(kind, transition)
    state = learner.init(problem, DRAWS)
    rng = np.random.default_rng(1)
    waiting = []
    for k in range(300):
        states, actions = rng.integers(S, size=H), rng.integers(A, size=H)
        waiting.append((k, states, actions, H * rng.random(), learner.policy(problem, state).copy()))
        while waiting and rng.random() < 0.7:
            index, states, actions, total, played = waiting.pop(int(rng.integers(len(waiting))))
            episode = Episode(index, states, actions, total=total, policy=played)
            state = learner.update(problem, state, episode, DRAWS)
            naive.update(states, actions, total, played)
            # 1e-7: the first residual is 0 but for rounding, which `NOISE` keeps below that, not at nothing
            np.testing.assert_allclose(learner.policy(problem, state), naive.policy, rtol=1e-9, atol=1e-7)
    assert abs(naive.policy - 1 / A).max() > 0.05


def scores_after(kind, learner, problem, warm, episode):
    """What one more episode adds to the scores (H, S, A)."""
    state = learner.init(problem, DRAWS)
    for before in warm:
        state = learner.update(problem, state, before, DRAWS)
    before = score_of(kind, problem, state)
    state = learner.update(problem, state, episode, DRAWS)
    return score_of(kind, problem, state) - before


def score_of(kind, problem, state):
    if kind != "model-free":
        return state.score_hsa.copy()
    H, S, A = problem.shape
    out = np.zeros((H, S, A))
    for row in range(state.used[0]):
        out[divmod(state.key_r[row], S)] = state.rows_rw[row, :A]
    return out


@pytest.mark.parametrize("kind", ["model-free", "known"])
def test_estimates_average_to_U_up_to_a_constant_of_each_state(kind):
    """Σ over all trajectories of Pr · x(h, s, a) = μ_h(s) (U_h(s, a) - c(h, s)) with γ = 0, whatever ℓ̂ has become."""
    H, S, A = 2, 2, 2
    transition = model(3, H, S, A)
    rng = np.random.default_rng(4)
    loss = rng.random((H, S, A))
    initial = np.array([1.0, 0.0])
    learner, problem = configured(kind, exploration=0.0), problem_of(kind, transition)
    warm = []
    for trajectory in planning.trajectories(H, S, A):  # every (h, s) is visited before: a first visit adds nothing
        states, actions = np.array(trajectory).T
        warm.append(Episode(0, states, actions, total=H * rng.random()))
    state = learner.init(problem, DRAWS)
    for before in warm:
        state = learner.update(problem, state, before, DRAWS)
    policy = learner.policy(problem, state).copy()
    mean = np.zeros((H, S, A))
    for trajectory in planning.trajectories(H, S, A):
        weight = planning.probability(trajectory, transition, policy, initial)
        if weight == 0.0:
            continue
        states, actions = np.array(trajectory).T
        episode = Episode(0, states, actions, total=planning.total(trajectory, loss), policy=policy)
        mean += weight * scores_after(kind, learner, problem, warm, episode)
    reach = planning.occupancy(transition, policy, initial)
    u = ab.planning.trajectory_values(ab.TabularMDP(transition), policy, loss)
    for h in range(H):
        for s in range(S):
            if reach[h, s] > 0.0:
                difference = mean[h, s] / reach[h, s] - u[h, s]
                np.testing.assert_allclose(difference, difference[0], rtol=0, atol=1e-10)
    assert abs(mean).max() > 0.01


def played(learner, mdp, loss, episodes, seed=0, scale=1.0, shift=0.0):
    """The policies of a learner that acts by them; totals are scale · L + shift."""
    problem = Problem.of(mdp, None, learner.needs)
    state = learner.init(problem, DRAWS)
    rng = np.random.default_rng(seed)
    H, S, A = problem.shape
    for k in range(episodes):
        policy = learner.policy(problem, state)
        states, actions, s = np.zeros(H, np.int64), np.zeros(H, np.int64), 0
        total = 0.0
        for h in range(H):
            states[h], actions[h] = s, min(A - 1, int((policy[h, s].cumsum() <= rng.random()).sum()))
            total += loss[h, s, actions[h]]
            s = int((mdp.transition[h, s, actions[h]].cumsum() <= rng.random()).sum()) % S
        state = learner.update(problem, state, Episode(k, states, actions, total=scale * total + shift), DRAWS)
    return np.array(learner.policy(problem, state))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(scale=st.floats(1e-4, 0.9), shift=st.floats(0.0, 0.2), seed=st.integers(0, 50))
def test_the_unit_and_the_origin_of_totals_do_not_matter(kind, scale, shift, seed):
    H, S, A = 3, 3, 2
    mdp = ab.TabularMDP(model(seed, H, S, A))
    loss = np.random.default_rng(seed).random((H, S, A))
    learner = configured(kind)
    one = played(learner, mdp, loss, 60, seed)
    other = played(learner, mdp, loss, 60, seed, scale, shift)
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1])
def test_rounding_is_not_taken_for_a_signal(kind, constant):
    mdp = ab.TabularMDP(model(0, 4, 3, 3))
    policy = played(configured(kind), mdp, np.full((4, 3, 3), constant), 400)
    np.testing.assert_allclose(policy, 1 / 3, rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_an_action_all_but_given_up_comes_back(kind):
    problem = Problem(H=1, S=1, A=2, episodes=None, transition=np.ones((1, 1, 2, 1)) if kind == "known" else None)
    learner = configured(kind)
    state = learner.init(problem, DRAWS)

    def tell(action, total, times):
        nonlocal state
        policy = np.array([[[0.5, 0.5]]])  # told late: both had been played often
        for k in range(times):
            states = np.zeros(1, np.int64)
            taken, told = (action, total) if k % 2 else (1 - action, 1.0 - total)
            episode = Episode(k, states, np.array([taken]), total=told, policy=policy)
            state = learner.update(problem, state, episode, DRAWS)
        return learner.policy(problem, state)[0, 0]

    assert tell(0, 0.0, 3000)[1] < 1e-9
    assert tell(0, 1.0, 12000)[1] > 0.99


@pytest.mark.parametrize("kind", KINDS)
def test_an_action_of_probability_zero_that_was_reported_all_the_same_is_no_error(kind):
    problem = Problem(H=1, S=1, A=2, episodes=None, transition=np.ones((1, 1, 2, 1)) if kind == "known" else None)
    learner = configured(kind)
    state = learner.init(problem, DRAWS)
    never = np.array([[[1.0, 0.0]]])
    for k in range(5):
        episode = Episode(k, np.zeros(1, np.int64), np.array([1]), total=k / 5, policy=never)
        state = learner.update(problem, state, episode, DRAWS)
    assert np.isfinite(learner.policy(problem, state)).all()


def test_the_model_free_learner_remembers_only_what_it_met():
    S = 10**6
    problem = Problem(H=3, S=S, A=2, episodes=None)
    learner = PolicyOptimizationModelFree()
    state = learner.init(problem, DRAWS)
    rng = np.random.default_rng(0)
    met = set()
    for k in range(200):
        states = rng.integers(S, size=3)
        met |= set(enumerate(states.tolist()))
        episode = Episode(k, states, rng.integers(2, size=3), total=3 * rng.random())
        state = learner.update(problem, state, episode, DRAWS)
    assert state.used[0] == len(met) > FIRST_CAPACITY
    assert len(state.key_r) <= 2 * len(met)
    h, s = divmod(int(state.key_r[17]), S)
    np.testing.assert_array_equal(learner.policy_at(problem, state, h, s), state.rows_rw[17, 4:6])
    np.testing.assert_array_equal(learner.policy_at(problem, state, 1, 12345), [0.5, 0.5])


def test_forgetting_helps_where_losses_drift():
    """Two actions that trade places again and again: the mean loss of a learner that forgets is clearly lower."""

    def mean_loss(learner):
        problem = Problem(H=1, S=1, A=2, episodes=None)
        state = learner.init(problem, DRAWS)
        rng = np.random.default_rng(0)
        loss = 0.0
        for k in range(6000):
            action = int(rng.random() >= learner.policy_at(problem, state, 0, 0)[0])
            total = float(rng.random() < (0.2 if action == (k // 500) % 2 else 0.8))
            loss += total
            state = learner.update(problem, state, Episode(k, np.zeros(1, np.int64), np.array([action]), total), DRAWS)
        return loss / 6000

    assert mean_loss(PolicyOptimizationModelFree(forget=0.02)) < 0.3
    assert mean_loss(PolicyOptimizationModelFree()) > 0.35


@pytest.mark.parametrize(
    "made, message",
    [
        (lambda: PolicyOptimizationModelFree(step_scale=0), "step_scale must be"),
        (lambda: PolicyOptimizationModelFree(exploration=-1), "exploration must be"),
        (lambda: PolicyOptimizationModelFree(forget=1.0), "forget must be"),
        (lambda: PolicyOptimizationPractical(dynamics="guessed"), "dynamics must be one of known, unknown"),
        (lambda: PolicyOptimizationPractical(step_scale=float("nan")), "step_scale must be"),
    ],
)
def test_bad_configurations_are_refused(made, message):
    with pytest.raises(InvalidInputError, match=message):
        made()


def test_known_dynamics_are_needed_where_they_are_asked_for():
    problem = Problem(H=2, S=2, A=2, episodes=None)
    with pytest.raises(InvalidInputError, match="needs known dynamics"):
        ab.start(PolicyOptimizationPractical(), problem)
    ab.start(PolicyOptimizationPractical(dynamics="unknown"), problem)
