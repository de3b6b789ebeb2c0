from math import log, log2, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import aggbandit as ab
from aggbandit.errors import InvalidInputError, UnknownNameError
from aggbandit.learners import dlb
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.dlb import Dlb
from aggbandit.learners.parts import box_polytope
from aggbandit.learners.parts.confidence_sets import bernstein_box, logarithm
from aggbandit.learners.scrible import Scrible
from naive import planning


def random_problem(seed=0, H=3, S=2, A=2, K=1000, known=True):
    transition = np.random.default_rng(seed).dirichlet(np.ones(S), size=(H, S, A))
    problem = Problem(H=H, S=S, A=A, episodes=K, transition=transition if known else None)
    return problem, transition


def walk(transition, policy, rng):
    H, S, A = policy.shape
    s, states, actions = 0, [], []
    for h in range(H):
        a = rng.choice(A, p=policy[h, s])
        states.append(s)
        actions.append(a)
        s = rng.choice(S, p=transition[h, s, a])
    return np.array(states), np.array(actions)


def played(learner, problem, transition, episodes, seed=3):
    rng = np.random.default_rng(seed)
    state = learner.init(problem, Draws(seed, 0, 0, 1))
    for k in range(episodes):
        states, actions = walk(transition, learner.policy(problem, state), rng)
        yield state
        episode = Episode(k, states, actions, total=problem.H * rng.random())
        state = learner.update(problem, state, episode, Draws(seed, 0, k, 2))
    yield state


@pytest.mark.equation("CKKM21-mirror-descent")
def test_with_known_dynamics_it_is_scrible_with_its_own_step():
    problem, transition = random_problem()
    mine = Dlb()
    step = mine.resolved(problem)["step_size"]
    other = Scrible(step_scale=step / Scrible().resolved(problem)["step_size"])
    assert other.resolved(problem)["step_size"] == pytest.approx(step, rel=1e-12)
    for one, two in zip(played(mine, problem, transition, 30), played(other, problem, transition, 30), strict=True):
        np.testing.assert_allclose(one.policy_hsa, two.policy_hsa, rtol=1e-9)


@pytest.mark.equation("CKKM21-eta")
def test_first_steps_are_the_theorems():
    problem, _ = random_problem(K=10_000)
    H, m, theta = 3, 5, 10
    by_noise = 1 / (4 * m * sqrt(H * 1e4))
    assert Dlb().resolved(problem)["step_size"] == pytest.approx(by_noise, rel=1e-13)
    assert by_noise < sqrt(theta * log(H * 1e4) / 1e4) / (m * H)
    assert dlb.theory_step(3, 100, 5, 1, 1e-3) == pytest.approx(sqrt(log(300) / 100) / 15, rel=1e-13)
    assert dlb.theory_step(1, 1, 0, 1, 1.0) == pytest.approx(0.25)  # ln 1 = 0 would leave no step
    unknown, _ = random_problem(K=10_000, known=False)
    # before the first episode: simplices, so m = (AS − 1)(1 + S) + (A − 1) S, θ = A S (1 + S) + A S, ε = 2 H
    m, bound = 3 * 3 + 2, 2 * (2 * 2 * 2) * 6.0**2
    first = Dlb(dynamics="unknown").resolved(unknown)["first_step_size"]
    assert first == pytest.approx(1 / (4 * m * sqrt(bound * 1e4)), rel=1e-13)
    assert Dlb(dynamics="unknown", step_scale=3).resolved(unknown)["first_step_size"] == pytest.approx(3 * first)
    # however great the scale, mirror descent needs η m H <= 1/2
    assert Dlb(step_scale=1e9).resolved(problem)["step_size"] == pytest.approx(1 / (2 * 5 * H), rel=1e-13)
    most = Dlb(dynamics="unknown", step_scale=1e9)
    assert most.resolved(unknown)["first_step_size"] == pytest.approx(1 / (2 * m * H), rel=1e-13)
    state = most._new_epoch(unknown, np.full((3, 2, 2, 2), 1e6), None)
    assert state.inverse_step == state.least_inverse_step == 2 * m * H  # nor does it grow beyond


@pytest.mark.equation("CKKM21-estimator")
def test_undistorted_estimates_are_unbiased_in_the_boxes_polytope():
    problem, transition = random_problem(known=False)
    H, S, A = problem.shape
    learner = Dlb(dynamics="unknown", radius_scale=0.1)
    *_, state = played(learner, problem, transition, 40)
    m = box_polytope.dimension(state.body, A)
    loss = np.random.default_rng(1).random((H, S, A))
    # 2 m directions u = ± e_i: an average over them is one over the sphere.  Any m independent steps make a basis, in
    # which the Gram matrix of the Hessian gives the symmetric root.
    steps, pulls = [], []
    draws = Draws(8, 0, 0, 1)
    for _ in range(m):
        step, pull = box_polytope.dikin_step(state.body, state.point, draws)
        steps.append(np.concatenate([step.m_hsai.ravel(), step.x_sa.ravel()]))
        pulls.append(np.concatenate([pull.m_hsai.ravel(), pull.x_sa.ravel()]))
    steps, pulls = np.array(steps), np.array(pulls)
    gram = steps @ pulls.T
    np.testing.assert_allclose(gram, gram.T, rtol=1e-6, atol=1e-8)
    root = np.linalg.cholesky(np.linalg.inv((gram + gram.T) / 2))
    directions, forces = root.T @ steps, root.T @ pulls  # orthonormal in the Hessian's metric
    np.testing.assert_allclose(directions @ forces.T, np.eye(m), atol=1e-6)
    functional = np.concatenate(
        [np.broadcast_to(loss[:-1, :, :, None], state.point.m_hsai.shape).ravel(), loss[-1].ravel()]
    )
    centre = np.concatenate([state.point.m_hsai.ravel(), state.point.x_sa.ravel()])
    mean = np.zeros(functional.size)
    for direction, force in zip(directions, forces, strict=True):
        for sign in (1.0, -1.0):
            total = functional @ (centre + sign * direction)
            mean += m * total * sign * force / (2 * m)
    # E[ℓ̃] is ℓ on every direction inside the polytope
    np.testing.assert_allclose(directions @ mean, directions @ functional, rtol=1e-6, atol=1e-8)
    # and what the update adds is η m L pull
    episode = Episode(40, np.array([0, 0, 0]), np.array([0, 0, 0]), total=1.25)
    before = state._replace(epoch_counts_hsas=np.zeros((H, S, A, S)), counts_hsas=np.full((H, S, A, S), 9.0))
    after = learner.update(problem, before, episode, Draws(0, 0, 40, 2))
    np.testing.assert_allclose(
        after.cost.m_hsai - before.cost.m_hsai, m * 1.25 / after.inverse_step * before.pull.m_hsai, rtol=1e-9
    )
    np.testing.assert_allclose(
        after.cost.x_sa - before.cost.x_sa, m * 1.25 / after.inverse_step * before.pull.x_sa, rtol=1e-9
    )


def test_plays_in_the_boxes_polytope_are_on_the_ellipsoid_around_the_centre():
    problem, transition = random_problem(known=False)
    learner = Dlb(dynamics="unknown", radius_scale=0.1, step_scale=1e4)
    for k, state in enumerate(played(learner, problem, transition, 40, seed=3)):
        draws = Draws(3, 0, 0, 1) if k == 0 else Draws(3, 0, k - 1, 2)
        step, pull = box_polytope.dikin_step(state.body, state.point, draws)
        np.testing.assert_array_equal(state.pull.m_hsai, pull.m_hsai)
        np.testing.assert_array_equal(state.pull.x_sa, pull.x_sa)
        m, x = state.point.m_hsai + step.m_hsai, state.point.x_sa + step.x_sa
        assert m[state.body.open_hs[:-1]].min() > 0.0
        assert x.min() > 0.0
        mass = np.concatenate([m.sum(axis=-1), x[None]])
        reached = mass.sum(axis=-1) > 0.0
        shares = mass[reached] / mass[reached].sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(state.policy_hsa[reached], shares, rtol=1e-12)
        assert np.abs(shares - 0.5).max() > 0.01  # it does move
        np.testing.assert_array_equal(state.policy_hsa[~reached], 0.5)


@pytest.mark.equation("CKKM21-step")
@pytest.mark.equation("CKKM21-epoch")
@pytest.mark.parametrize(
    "arguments", [{}, {"radius_scale": 0.05}, {"boost_scale": 1e4}, {"growth": 2.5}, {"growth": 0.3}]
)
def test_steps_grow_within_a_factor_two_and_epochs_double(arguments):
    problem, transition = random_problem(K=400, known=False)
    H, S, A = problem.shape
    learner = Dlb(dynamics="unknown", **arguments)
    epochs, before, before_epoch = 1, None, np.zeros((H, S, A, S))
    growth = arguments.get("growth", 1.0)
    for state in played(learner, problem, transition, 400):
        total = state.counts_hsas.sum(axis=-1)
        assert (state.epoch_counts_hsas.sum(axis=-1) < np.maximum(growth * total, 1.0)).all()
        assert state.inverse_step >= state.least_inverse_step
        if before is not None:
            m = box_polytope.dimension(before.body, A)
            if np.array_equal(before.counts_hsas, state.counts_hsas):
                added = np.argwhere(state.epoch_counts_hsas - before_epoch == 1.0)
                boost = sum(before.distortion_hsa[h, s, a] for h, s, a, _ in added)
                scale = arguments.get("boost_scale", 1.0)
                expected = max(before.inverse_step - scale * 2 * m * boost, before.least_inverse_step)
                assert state.inverse_step == pytest.approx(expected, rel=1e-12)
                if not arguments.get("boost_scale"):  # the theorem's bound keeps it off 2 η_0 by itself
                    assert before.inverse_step - 2 * m * boost >= before.least_inverse_step
            else:
                epochs += 1
                assert not state.epoch_counts_hsas.any()
                assert not state.cost.x_sa.any()
                seen = before.counts_hsas + before_epoch
                last = state.counts_hsas - seen
                assert last.sum() == H - 1
                enough = np.maximum(growth * before.counts_hsas.sum(axis=-1), 1.0)
                assert ((before_epoch + last).sum(axis=-1) >= enough)[last.any(axis=-1)].any()
        before, before_epoch = state, state.epoch_counts_hsas.copy()  # the learner goes on in the same buffer
    assert epochs <= 2 * H * S * A * log2(400) / min(1.0, log2(1 + growth)) + H * S * A
    assert epochs > (H - 1) * A


@pytest.mark.equation("CKKM21-distortion")
@given(seed=st.integers(0, 10_000), visits=st.integers(0, 400))
def test_distortion_bounds_the_distance_of_occupancies(seed, visits):
    H, S, A = 3, 3, 2
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(visits, rng.dirichlet(np.ones(S)), size=(H, S, A)).astype(float)
    lower, upper = bernstein_box(counts, logarithm(H, S, A, 100, 0.01), 0.2)
    epsilon = dlb.distortion(lower, upper)
    assert not epsilon[-1].any()
    assert epsilon.max() <= 2 * H  # no two distributions are further apart than 2
    # two kernels of the box: corners of it, in random orders
    kernels = []
    for _ in range(2):
        kernel = lower.copy()
        for h, s, a in np.ndindex(H, S, A):
            rest = 1.0 - lower[h, s, a].sum()
            for i in rng.permutation(S):
                add = min(rest, upper[h, s, a, i] - lower[h, s, a, i])
                kernel[h, s, a, i] += add
                rest -= add
        kernels.append(kernel)
    policy = rng.dirichlet(np.ones(A), size=(H, S))
    reaches = [planning.occupancy(kernel, policy, np.eye(S)[0])[:, :, None] * policy for kernel in kernels]
    flows = [
        np.concatenate([(x[:-1, :, :, None] * kernel[:-1]).ravel(), x[-1].ravel()])
        for x, kernel in zip(reaches, kernels, strict=True)
    ]
    distance = np.abs(flows[0] - flows[1]).sum()
    assert distance <= min((epsilon * reaches[0]).sum(), (epsilon * reaches[1]).sum()) + 1e-9


@pytest.mark.parametrize("growth", [1.0, 3.0])
def test_an_epochs_learner_is_new(growth):
    problem, transition = random_problem(K=200, known=False)
    learner = Dlb(dynamics="unknown", radius_scale=0.05, growth=growth)
    *_, state = played(learner, problem, transition, 200)
    fresh = learner._new_epoch(problem, state.counts_hsas, None)
    np.testing.assert_array_equal(fresh.body.lower_hsai, state.body.lower_hsai)
    assert fresh.inverse_step >= state.inverse_step
    # the boxes hold the true dynamics, and the bound B is the one of the docstring
    lower, upper = bernstein_box(state.counts_hsas, logarithm(3, 2, 2, 200, 1 / 600), 0.05)
    epsilon = dlb.distortion(lower, upper)
    visits = np.maximum(growth * state.counts_hsas.sum(axis=-1), 1.0)
    bound = max(3.0, 2 * (visits * epsilon**2).sum())
    m, theta = box_polytope.dimension(fresh.body, 2), box_polytope.barrier_parameter(fresh.body, 2)
    assert 1 / fresh.inverse_step == pytest.approx(dlb.theory_step(3, 200, m, theta, bound), rel=1e-12)
    assert 2 * fresh.least_inverse_step == pytest.approx(fresh.inverse_step, rel=1e-12)


@pytest.mark.parametrize("H, S, A", [(1, 1, 1), (1, 2, 2), (3, 1, 2), (3, 2, 1)])
@pytest.mark.parametrize("dynamics", ["known", "unknown"])
def test_smallest_problems(H, S, A, dynamics):
    problem, transition = random_problem(0, H, S, A, K=1, known=dynamics == "known")
    *_, state = played(Dlb(dynamics=dynamics), problem, transition, 1)
    assert np.isfinite(state.policy_hsa).all()


def test_arguments_are_checked():
    with pytest.raises(UnknownNameError, match="There is no dynamics 'unkown'. Did you mean 'unknown'"):
        Dlb(dynamics="unkown")
    for name in ("step_scale", "radius_scale", "growth"):
        with pytest.raises(InvalidInputError, match=f"{name} must be a finite number, greater than 0"):
            Dlb(**{name: 0.0})
    with pytest.raises(InvalidInputError, match="boost_scale must be"):
        Dlb(boost_scale=-1.0)
    assert Dlb().needs.dynamics == "known"
    assert Dlb(dynamics="unknown").needs.dynamics == "unknown"
    with pytest.raises(InvalidInputError, match="needs known dynamics"):
        ab.start(Dlb(), Problem(H=2, S=2, A=2, episodes=10))
