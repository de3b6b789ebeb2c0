from math import ceil, log, sqrt

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.learners import volumetric
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.parts import polytope_sampling as sampling
from aggbandit.learners.volumetric import Volumetric
from naive import exp2 as naive_exp2
from naive import planning


def random_problem(seed=0, H=3, S=2, A=2, K=50):
    transition = np.random.default_rng(seed).dirichlet(np.ones(S), size=(H, S, A))
    return Problem(H=H, S=S, A=A, episodes=K, transition=transition)


def played(learner, problem, k=3):
    state = learner.init(problem, Draws(0, 0, 0, 1))
    H = problem.H
    for i in range(k):
        episode = Episode(i, np.zeros(H, int), np.zeros(H, int), total=1.5)
        state = learner.update(problem, state, episode, Draws(0, 0, i, 2))
    return state


@pytest.mark.equation("HK16-estimator")
def test_estimates_are_unbiased_given_the_pool():
    problem = random_problem()
    learner = Volumetric(spanner_scale=0.1)
    state = played(learner, problem)
    points, law = volumetric.exploring_law(state, 0.3)
    assert law.sum() == pytest.approx(1.0, rel=1e-12)
    assert law.min() == pytest.approx(0.3 / len(law), rel=1e-12)
    assert law[0] == pytest.approx(0.7 / len(state.pool_cm) + 0.3 / len(law), rel=1e-12)
    scale = state.shape.scale_n
    loss = np.random.default_rng(2).random(problem.shape).ravel() * scale  # ⟨ℓ, x⟩ = ⟨scale ℓ, y⟩
    span = state.shape.span_nd
    mean, second = np.zeros(loss.size), 0.0
    for x, weight in zip(points, law, strict=True):
        # the estimate is linear in the observation, whose mean given x is ⟨ℓ, x⟩ / H
        estimate = volumetric.estimate(span, points, law, x, loss @ x / problem.H)
        mean += weight * estimate
        one = volumetric.estimate(span, points, law, x, 1.0)
        second += weight * float(law @ (points @ one) ** 2)
    arms = naive_exp2.distinct_occupancies(problem.transition, problem.initial) / np.where(scale > 0, scale, 1)
    np.testing.assert_allclose(arms @ mean, arms @ loss / problem.H, rtol=1e-8)
    assert second == pytest.approx(span.shape[1], rel=1e-8)  # Σ p̂ x^T C^{-1} x = d


def test_updates_tilt_the_density_by_the_scaled_estimate():
    problem = random_problem(K=1000)
    learner = Volumetric(spanner_scale=0.1, step_scale=3.0)
    told = learner.resolved(problem)
    state = played(learner, problem, 0)
    points, law = volumetric.exploring_law(state, told["exploration"])
    assert np.isclose(points, state.played_n, rtol=0.0, atol=1e-15).all(axis=1).any()
    estimate = volumetric.estimate(state.shape.span_nd, points, law, state.played_n, 2.5 / 3)
    after = learner.update(problem, state, Episode(0, np.zeros(3, int), np.zeros(3, int), total=2.5), Draws(0, 0, 0, 2))
    np.testing.assert_allclose(after.cost_n, told["step_size"] * estimate, rtol=1e-12)
    # and the pool is moved on that density
    moved = sampling.hit_and_run(
        state.shape, after.cost_n, state.pool_cm, sampling.spread(state.pool_cm), Draws(0, 0, 0, 2)
    )
    np.testing.assert_array_equal(after.pool_cm, moved)
    assert not np.array_equal(moved, state.pool_cm)
    # what is played has the occupancy that was drawn
    occupancy = planning.occupancy(problem.transition, after.policy_hsa, problem.initial)[:, :, None] * after.policy_hsa
    np.testing.assert_allclose(occupancy.ravel(), after.played_n * after.shape.scale_n, atol=1e-12)


@pytest.mark.equation("HK16-eta")
def test_sizes_and_steps():
    problem = random_problem(K=10_000)
    d = 6
    pool = ceil(4 * (d + (4 * sqrt(d) + log(20_000)) ** 2))
    told = Volumetric().resolved(problem)
    assert told["pool"] == pool
    assert told["step_lowered"]  # pure exploration at this scale, as the docs say
    assert told["step_size"] == pytest.approx(0.5 / (pool + d), rel=1e-12)
    assert told["exploration"] == pytest.approx(0.5, rel=1e-12)
    many = Volumetric().resolved(random_problem(K=10**11))
    assert not many["step_lowered"]
    assert many["step_size"] == pytest.approx(sqrt(log(2e11) / 1e11), rel=1e-12)
    assert many["exploration"] == pytest.approx((many["pool"] + d) * many["step_size"], rel=1e-12)
    assert Volumetric(exploration=0.1, step_scale=5.0).resolved(problem)["exploration"] == 0.1
    assert len(played(Volumetric(spanner_scale=1e-3), problem, 1).pool_cm) == 2 * d


def test_the_pool_keeps_its_size_from_episode_to_episode():
    sizes = {played(Volumetric(spanner_scale=0.1), random_problem(), k).pool_cm.shape for k in (0, 1, 7)}
    assert len(sizes) == 1


def test_chains_run_before_the_first_episode(monkeypatch):
    problem, steps = random_problem(), []
    real = sampling.hit_and_run

    def counted(shape, cost_n, pool_cm, root_mm, draws):
        steps.append(len(pool_cm))
        return real(shape, cost_n, pool_cm, root_mm, draws)

    monkeypatch.setattr(sampling, "hit_and_run", counted)
    m = 5
    for burn_in, first in ((None, 10 * m * m), (7, 7), (0, 0)):
        steps.clear()
        state = played(Volumetric(burn_in=burn_in, sampling_steps=3), problem, 0)
        assert steps == [volumetric.ANCESTORS] * first + [len(state.pool_cm)] * 2 * m
    steps.clear()
    played(Volumetric(burn_in=0, sampling_steps=3), problem, 2)
    assert len(steps) == 2 * m + 2 * 3  # and so many in every episode


def test_first_draws_are_uniform_on_the_simplex():
    # H = 1: p_1 is uniform, with mean 1/A.  Band: 5 standard deviations of a mean of |S'| draws
    problem = Problem(H=1, S=1, A=3, episodes=100, transition=np.ones((1, 1, 3, 1)))
    state = played(Volumetric(), problem, 0)
    points = state.shape.scale_n * (state.shape.centre_n + state.pool_cm @ state.shape.tangent_nm.T)
    # the variance of a coordinate of a uniform point of the triangle is 1/18
    np.testing.assert_allclose(points.mean(axis=0), 1 / 3, atol=5 * sqrt(1 / 18 / len(points)))
    np.testing.assert_allclose(points.var(axis=0), 1 / 18, atol=0.01)


def test_arguments_and_sizes_are_checked():
    for arguments, said in (
        ({"step_scale": 0.0}, "step_scale must be"),
        ({"exploration": 0.0}, "exploration must be"),
        ({"spanner_scale": 0.0}, "spanner_scale must be"),
        ({"sampling_steps": 0}, "sampling_steps must be at least 1"),
        ({"burn_in": -1}, "burn_in must be at least 0"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            Volumetric(**arguments)
    with pytest.raises(InvalidInputError, match="up to dimension 150, but here it has 274"):
        ab.start(Volumetric(), random_problem(0, 10, 10, 4))
