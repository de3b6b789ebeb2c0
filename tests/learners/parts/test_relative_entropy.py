import numpy as np
import pytest

from aggbandit.kernels import kl_projection
from aggbandit.learners.parts import relative_entropy
from aggbandit.learners.parts.relative_entropy import Occupancy
from naive import kl_projections as naive
from naive import planning


def base_of(rng, H, S, A, initial):
    """A random occupancy under a random kernel."""
    policy, kernel = rng.dirichlet(np.ones(A), size=(H, S)), rng.dirichlet(np.ones(S), size=(H, S, A))
    return Occupancy(np.log(policy), kernel, planning.occupancy(kernel, policy, initial))


def mass_of(q):
    return q.reach_hs[:, :, None] * np.exp(q.log_policy_hsa)


def flow_residual(mass, kernel, initial):
    """max |Σ_a n − inflow|"""
    worst = np.abs(mass[0].sum(axis=-1) - initial).max()
    for h in range(len(mass) - 1):
        inflow = np.einsum("sa,sat->t", mass[h], kernel[h])
        worst = max(worst, np.abs(mass[h + 1].sum(axis=-1) - inflow).max())
    return worst


def copied(q):
    return Occupancy(*(x.copy() for x in q))


SIZES = [(1, 1, 1), (1, 2, 3), (2, 2, 1), (3, 3, 2), (4, 2, 2)]


@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("H, S, A", SIZES)
def test_known_dynamics_match_a_conic_solver(H, S, A, scale):
    rng = np.random.default_rng(H + 10 * S)
    made = planning.random_problem(H, H, S, A)
    q = relative_entropy.of_known_dynamics(made.transition, made.initial, H)
    relative_entropy.step(q, made.initial, relative_entropy.known(made.transition), rng.random((H, S, A)))
    base, cost = mass_of(q), scale * rng.random((H, S, A)) * (rng.random((H, S, A)) < 0.5)
    relative_entropy.step(q, made.initial, relative_entropy.known(made.transition), cost)
    best, x = naive.known(made.transition, made.initial, base, cost)
    mine = naive.objective(mass_of(q), made.transition, cost, base, made.transition)
    np.testing.assert_allclose(mass_of(q), x, atol=2e-5)
    # the kernel is the same on both sides, so that it adds nothing to the relative entropy
    assert mine <= best + 1e-7 * max(1.0, abs(best))
    assert flow_residual(mass_of(q), made.transition, made.initial) < 1e-14


@pytest.mark.parametrize("H, S, A", SIZES)
def test_the_first_occupancy_has_the_greatest_entropy(H, S, A):
    made = planning.random_problem(3, H, S, A)
    q = relative_entropy.of_known_dynamics(made.transition, made.initial, H)
    open_hsa = np.broadcast_to(q.reach_hs[:, :, None] > 0, (H, S, A)).astype(float)
    _, x = naive.known(made.transition, made.initial, open_hsa, np.zeros((H, S, A)))
    np.testing.assert_allclose(mass_of(q), x, atol=2e-5)


@pytest.mark.parametrize("width", [0.0, 0.02, 0.3, 2.0])
@pytest.mark.parametrize("H, S, A", SIZES)
@pytest.mark.parametrize("shape", ["boxes", "balls"])
def test_sets_of_kernels_match_a_conic_solver(shape, H, S, A, width):
    rng = np.random.default_rng(7)
    made = planning.random_problem(H + 1, H, S, A)
    q = base_of(rng, H, S, A, made.initial)
    mean = np.maximum(made.transition, 1e-3)
    mean /= mean.sum(axis=-1, keepdims=True)
    cost = 2.0 * rng.random((H, S, A)) * (rng.random((H, S, A)) < 0.5)
    start = copied(q)
    if shape == "boxes":
        span = width * rng.random((H, S, A, S))
        lower, upper = np.maximum(0.0, mean - span), np.minimum(1.0, mean + span)
        limits, within = {"lower": lower, "upper": upper}, relative_entropy.boxes(lower, upper)
    else:
        radius = width * rng.random((H, S, A))
        limits, within = {"mean": mean, "radius": radius}, relative_entropy.balls(mean, radius)
    relative_entropy.step(q, made.initial, within, cost)
    mass, kernel = mass_of(q), q.kernel_hsat
    np.testing.assert_allclose(kernel[:-1].sum(axis=-1), 1.0, atol=1e-12)
    if shape == "boxes":
        assert (kernel >= lower - 1e-13)[:-1].all()
        assert (kernel <= upper + 1e-13)[:-1].all()
    else:
        assert (np.abs(kernel - mean).sum(axis=-1) <= radius + 1e-12)[:-1].all()
    assert flow_residual(mass, kernel, made.initial) < 1e-14
    best, full, last = naive.in_set(made.initial, mass_of(start), start.kernel_hsat, cost, **limits)
    mine = naive.objective(mass, kernel, cost, mass_of(start), start.kernel_hsat)
    assert mine == pytest.approx(best, abs=1e-6)
    np.testing.assert_allclose(mass[:-1, :, :, None] * kernel[:-1], full, atol=1e-5)
    np.testing.assert_allclose(mass[-1], last, atol=1e-5)


def test_a_set_of_one_kernel_is_known_dynamics():
    rng = np.random.default_rng(0)
    made = planning.random_problem(2, 4, 3, 2)
    p = made.transition
    one = relative_entropy.of_known_dynamics(p, made.initial, 4)
    two = Occupancy(one.log_policy_hsa.copy(), p.copy(), one.reach_hs.copy())
    three = Occupancy(one.log_policy_hsa.copy(), p.copy(), one.reach_hs.copy())
    for _ in range(10):
        cost = rng.random((4, 3, 2))
        relative_entropy.step(one, made.initial, relative_entropy.known(p), cost)
        relative_entropy.step(two, made.initial, relative_entropy.boxes(p, p), cost)
        relative_entropy.step(three, made.initial, relative_entropy.balls(p, np.zeros((4, 3, 2))), cost)
        np.testing.assert_allclose(one.log_policy_hsa, two.log_policy_hsa, atol=1e-9)
        np.testing.assert_allclose(one.log_policy_hsa, three.log_policy_hsa, atol=1e-9)


@pytest.mark.parametrize("shape", ["known", "boxes", "balls"])
def test_without_losses_nothing_changes(shape):
    rng = np.random.default_rng(1)
    H, S, A = 3, 3, 2
    initial = np.array([0.5, 0.5, 0.0])
    q = base_of(rng, H, S, A, initial)
    start = copied(q)
    k = q.kernel_hsat
    within = {
        "known": relative_entropy.known(k.copy()),
        "boxes": relative_entropy.boxes(np.maximum(0.0, k - 0.1), np.minimum(1.0, k + 0.1)),
        "balls": relative_entropy.balls(k.copy(), np.full((H, S, A), 0.1)),
    }[shape]
    if shape == "known":
        q = q._replace(kernel_hsat=np.zeros((0, S, A, S)))
    relative_entropy.step(q, initial, within, np.zeros((H, S, A)))
    np.testing.assert_allclose(mass_of(q), mass_of(start), atol=1e-14)
    if shape != "known":
        np.testing.assert_allclose(q.kernel_hsat[:-1], start.kernel_hsat[:-1], atol=1e-13)


def test_huge_and_repeated_losses_keep_it_feasible():
    rng = np.random.default_rng(2)
    H, S, A = 3, 3, 2
    made = planning.random_problem(4, H, S, A)
    q = relative_entropy.of_unknown_dynamics(H, S, A, made.initial)
    lower, upper = np.maximum(0.0, made.transition - 0.05), np.minimum(1.0, made.transition + 0.05)
    for k in range(300):
        cost = np.zeros((H, S, A))
        cost[np.arange(H), rng.integers(S, size=H), rng.integers(A, size=H)] = 10.0 ** rng.integers(-3, 4, size=H)
        within = (
            relative_entropy.boxes(lower, upper)
            if k % 2
            else relative_entropy.balls(made.transition, np.full((H, S, A), 0.3))
        )
        relative_entropy.step(q, made.initial, within, cost)
        assert np.isfinite(q.log_policy_hsa).all()
        assert flow_residual(mass_of(q), q.kernel_hsat, made.initial) < 1e-13


@pytest.mark.parametrize("shape", ["boxes", "balls"])
def test_a_smaller_set_may_ask_for_what_had_all_but_vanished(shape):
    # an optimist that may choose any kernel stays away from state 0, until its set says that 0 is met all the same
    H, S, A = 4, 2, 2
    initial = np.array([0.0, 1.0])
    q = relative_entropy.of_unknown_dynamics(H, S, A, initial)
    everything = {
        "boxes": relative_entropy.boxes(np.zeros((H, S, A, S)), np.ones((H, S, A, S))),
        "balls": relative_entropy.balls(np.full((H, S, A, S), 0.5), np.full((H, S, A), 2.0)),
    }[shape]
    cost = np.zeros((H, S, A))
    cost[:, 0] = 1e5
    for _ in range(3):
        relative_entropy.step(q, initial, everything, cost)
    assert q.reach_hs[1:, 0].max() < 1e-9
    lower = np.full((H, S, A, S), [0.3, 0.0])
    smaller = {
        "boxes": relative_entropy.boxes(lower, np.ones((H, S, A, S))),
        "balls": relative_entropy.balls(np.full((H, S, A, S), [0.6, 0.4]), np.full((H, S, A), 0.6)),
    }[shape]
    relative_entropy.step(q, initial, smaller, np.zeros((H, S, A)))
    np.testing.assert_allclose(q.reach_hs[1:, 0], 0.3, atol=1e-8)  # no more than it must
    assert flow_residual(mass_of(q), q.kernel_hsat, initial) < 1e-13


@pytest.mark.parametrize("shape", ["boxes", "balls"])
def test_one_kernel_after_another_that_excludes_it(shape):
    # radius_scale=0: the set is the frequencies alone, and what was never seen yesterday may be seen today
    H, S, A = 4, 3, 1
    initial, nothing = np.array([1.0, 0.0, 0.0]), np.zeros((4, 3, 1))
    q = relative_entropy.of_unknown_dynamics(H, S, A, initial)
    for seen in ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.0, 0.8], [0.0, 1.0, 0.0]):
        only = np.broadcast_to(seen, (H, S, A, S)).copy()
        one = relative_entropy.boxes(only, only) if shape == "boxes" else relative_entropy.balls(only, nothing)
        relative_entropy.step(q, initial, one, nothing)
        np.testing.assert_allclose(q.reach_hs[1:], np.broadcast_to(seen, (H - 1, S)), atol=1e-8)
        np.testing.assert_allclose(q.kernel_hsat[:-1], only[:-1], atol=1e-9)


def test_rows_of_boxes_and_balls_by_hand():
    k, group = np.empty(3), np.empty(3, np.int64)
    # Σ clip(τ w, lower, upper) = 1 with w = (1, 1, 1), whose logarithms are given: the first is held at 0.1, and the
    # others share the rest
    kl_projection.tilted_in_box(np.zeros(3), np.zeros(3), np.array([0.1, 1.0, 1.0]), k, group)
    np.testing.assert_allclose(k, [0.1, 0.45, 0.45])
    np.testing.assert_array_equal(group, [0, 1, 1])
    kl_projection.tilted_in_box(np.zeros(3), np.array([0.8, 0.0, 0.0]), np.ones(3), k, group)
    np.testing.assert_allclose(k, [0.8, 0.1, 0.1])
    # from (0.5, 0.5, 0) towards (0, 0.5, 0.5), half of 0.4 may move: 0.2 from the first to the last
    kl_projection.tilted_in_ball(np.array([-30.0, 0.0, 0.0]), np.array([0.5, 0.5, 0.0]), 0.4, k, group)
    np.testing.assert_allclose(k, [0.3, 0.5, 0.2], atol=1e-8)
