import numpy as np
import pytest

from aggbandit.learners.parts import centred_estimates as parts
from naive import best_of_both_worlds as naive
from naive import planning

H, S, A = 3, 2, 2
RNG = np.random.default_rng(0)
TRANSITION, POLICY = RNG.dirichlet(np.ones(S), size=(H, S, A)), RNG.dirichlet(np.ones(A), size=(H, S))
LOSS, INITIAL = RNG.random((H, S, A)), np.eye(S)[0]
REACH = planning.occupancy(TRANSITION, POLICY, INITIAL)
OPEN = REACH > 0
Q = planning.action_values(TRANSITION, POLICY, LOSS) / H
ADVANTAGE = Q - (POLICY * Q).sum(axis=-1, keepdims=True)


def estimate(states, actions, total):
    cost = np.zeros((H, S, A))
    parts.add_estimate(cost, REACH[:, :, None] * POLICY, total / H, states, actions)
    return cost


@pytest.mark.equation("IJLMT25-estimator")
def test_estimates_have_the_advantage_as_mean_and_little_variance():
    first, second = naive.moments(TRANSITION, POLICY, LOSS, INITIAL, estimate)
    np.testing.assert_allclose(first[OPEN], ADVANTAGE[OPEN], atol=1e-13)
    assert not first[~OPEN].any()
    bound = (1 - POLICY) / (np.where(OPEN, REACH, 1.0)[:, :, None] * POLICY)
    assert (second[OPEN] <= bound[OPEN] * (1 + 1e-12)).all()


@pytest.mark.equation("IJLMT25-estimator")
def test_each_estimate_is_centred_and_only_where_one_was():
    for states, actions in [([0, 1, 0], [1, 1, 0]), ([0, 0, 1], [0, 1, 1])]:
        found = estimate(np.array(states), np.array(actions), 1.7)
        np.testing.assert_allclose(
            found, naive.estimate(np.where(OPEN, REACH, 1), POLICY, 1.7 / H, states, actions), atol=1e-13
        )
        np.testing.assert_allclose((POLICY * found).sum(axis=-1), 0.0, atol=1e-13)
        assert (np.abs(found).sum(axis=-1) > 0).sum() == H
    # what was impossible teaches nothing, and divides by nothing
    impossible = estimate(np.array([1, 0, 0]), np.array([0, 0, 0]), 1.0)
    assert np.isfinite(impossible).all()
    assert not impossible[0].any()


@pytest.mark.equation("IJLMT25-optimistic")
def test_optimistic_estimates_lie_below_the_advantage_by_what_the_bounds_are_apart():
    greatest = np.where(OPEN, REACH, 0.3) * np.array([[1.0, 1.0], [1.4, 1.1], [1.0, 1.7]])

    def optimistic(states, actions, total):
        cost = np.zeros((H, S, A))
        reach = greatest[np.arange(H), states]
        parts.add_optimistic_estimate(cost, POLICY, reach, np.zeros((H, S, A)), total / H, states, actions)
        np.testing.assert_allclose(cost, naive.optimistic(greatest, POLICY, total / H, states, actions), atol=1e-12)
        return cost

    first, _ = naive.moments(TRANSITION, POLICY, LOSS, INITIAL, optimistic)
    ratio = (REACH / greatest)[:, :, None]
    np.testing.assert_allclose(first[OPEN], (ratio * (ADVANTAGE + 1 - POLICY) - (1 - POLICY))[OPEN], atol=1e-13)
    gap = ADVANTAGE - first
    assert (gap[OPEN] >= -1e-13).all()
    assert (gap <= 2 * (1 - ratio) * (1 - POLICY) + 1e-13)[OPEN].all()


def test_bonus_is_subtracted_everywhere_and_the_impossible_left_out():
    bonus = np.random.default_rng(1).random((H, S, A))
    one, two = np.zeros((H, S, A)), np.zeros((H, S, A))
    arguments = 0.4, np.array([0, 1, 1]), np.array([1, 0, 1])
    parts.add_optimistic_estimate(one, POLICY, np.array([1.0, 0.5, 0.25]), bonus, *arguments)
    parts.add_optimistic_estimate(two, POLICY, np.array([1.0, 0.5, 0.25]), 0 * bonus, *arguments)
    np.testing.assert_allclose(two - one, bonus, atol=1e-14)
    three = np.zeros((H, S, A))
    parts.add_optimistic_estimate(three, POLICY, np.zeros(3), 0 * bonus, *arguments)
    np.testing.assert_allclose(three, POLICY - 1, atol=1e-15)


@pytest.mark.equation("IJLMT25-charge")
@pytest.mark.parametrize("everything", [False, True])
def test_charges(everything):
    states, actions, c = np.array([0, 1, 0]), np.array([1, 1, 0]), 0.6
    out = np.ones((H, S, A))
    parts.charge(POLICY, c, states, actions, out, everything)
    for h, s, a in np.ndindex(H, S, A):
        here, taken = float(states[h] == s), float(states[h] == s and actions[h] == a)
        expected = c**2 * taken * (1 - POLICY[h, s, a]) ** 2
        if everything:
            expected = c**2 * (taken - here * POLICY[h, s, a]) ** 2
        assert out[h, s, a] - 1 == pytest.approx(expected, abs=1e-14)


@pytest.mark.equation("IJLMT25-widths")
@pytest.mark.parametrize("scale", [1.0, 0.2])
def test_confidence_sets(scale):
    K, rng = 50, np.random.default_rng(2)
    counts = rng.integers(0, 400, size=(H, S, A, S)).astype(float)
    counts[0, 1, 0] = counts[1, 0, 1] = 0.0
    counts[1, 1, 1] = [700.0, 0.0]
    known = parts.plausible(counts, K, scale)
    mean, radius = naive.widths(counts, K)
    radius = np.where(counts.sum(axis=-1, keepdims=True) == 0, radius, scale * radius)
    np.testing.assert_allclose(known.mean_hsas, mean, atol=1e-15)
    np.testing.assert_allclose(known.upper_hsas, np.minimum(1, mean + radius), rtol=1e-13)
    np.testing.assert_allclose(known.lower_hsas, np.maximum(0, mean - radius), rtol=1e-13)
    np.testing.assert_allclose(known.width_hsa[:-1], np.minimum(2, radius.sum(axis=-1))[:-1], rtol=1e-13)
    assert not known.width_hsa[-1].any()
    # of three successors the widths may sum to 3, but no two distributions are further apart than 2
    apart = parts.plausible(np.ones((H, 3, A, 3)), K, scale).width_hsa[0, 0, 0]
    assert apart == pytest.approx(min(2.0, 3 * scale), rel=1e-13)
    # and the greatest occupancies over them, by linear programs
    _, greatest = planning.occupancy_bounds(known.lower_hsas, known.upper_hsas, POLICY, INITIAL)
    states = np.array([0, 1, 1])
    found = parts.greatest_reach(known, POLICY, INITIAL, states)
    np.testing.assert_allclose(found, greatest[np.arange(H), states], atol=1e-8)


def test_epochs_end_when_a_count_doubles():
    known = parts.plausible(np.zeros((H, S, A, S)), 50, 1.0)
    walk = np.array([0, 1, 0]), np.array([0, 1, 0])
    assert parts.ended(known, *walk)  # never met before
    counts = known.epoch_counts_hsas.copy()
    counts[1, 1, 1, 0] = 5.0
    counts[0, 0, 0, 1] = 3.0
    known = parts.plausible(counts, 50, 1.0)
    assert [parts.ended(known, *walk) for _ in range(3)] == [False, False, True]
    assert known.epoch_counts_hsas[0, 0, 0, 1] == 3.0
    assert not known.epoch_counts_hsas[-1].any()
