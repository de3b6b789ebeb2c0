"""What is left after n episodes: the smoothing against laws that it must recover, the stored curves against runs."""

import itertools

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError
from aggbandit.experiments import learning

EPISODES = np.array([30.0, 100.0, 300.0, 1000.0, 3000.0])
GRID = list(itertools.product((2, 5, 10, 20), (2, 10, 40), (2, 4, 8), (1, 3, 12)))


@pytest.fixture
def a_law(monkeypatch):
    """Curves that follow left = √(H S A noise / n) / 100, each times a factor of its own; twenty at each place."""

    def pretend(spread):
        chance = np.random.default_rng(0)
        places = np.repeat(np.array(GRID, float), 20, axis=0)
        left = np.sqrt(places.prod(axis=1)[:, None] / EPISODES) / 100
        left *= np.exp(spread * chance.standard_normal((len(places), 1)))
        monkeypatch.setattr(learning, "curves_of", lambda learner: learning.Curves(EPISODES, places, left))

    return pretend


@pytest.mark.parametrize(
    "place", [(5, 10, 4, 3.0), (7, 20, 3, 5.0), (20, 40, 8, 12.0), (3, 3, 2, 1.0), (30, 400, 10, 20.0)]
)
def test_a_law_in_proportion_to_the_sizes_is_recovered_between_the_stored_ones_and_beyond(a_law, place):
    a_law(0.0)
    H, S, A, noise = place
    scale = max(1, round(H * S * A * noise / (20 * 40 * 8 * 12)))
    for row in learning.forecast("any", H=H, S=S, A=A, noise=noise, episodes=[100 * scale, 550 * scale, 3000]):
        assert row.left == pytest.approx(
            np.sqrt(H * S * A * noise / row.episodes) / 100, rel=0.1
        )  # what the ridge costs
        assert row.low == pytest.approx(row.left, rel=0.1)


def test_the_range_holds_four_fifths(a_law):
    a_law(0.5)
    (row,) = learning.forecast("any", H=5, S=10, A=4, noise=3.0, episodes=[1000])
    middle = np.sqrt(5 * 10 * 4 * 3.0 / 1000) / 100
    assert row.low == pytest.approx(middle * np.exp(-1.2816 * 0.5), rel=0.15)
    assert row.high == pytest.approx(middle * np.exp(1.2816 * 0.5), rel=0.15)
    assert row.left == pytest.approx(middle * np.exp(0.5**2 / 2), rel=0.1)  # the mean of shares, not of logarithms


def test_what_is_left_so_far_is_the_mean_over_all_episodes(a_law):
    a_law(0.0)
    first, *_, last = learning.forecast("any", H=5, S=10, A=4, noise=3.0, episodes=[30, 3000])
    left = np.array([r.left for r in learning.forecast("any", H=5, S=10, A=4, episodes=EPISODES.astype(int).tolist())])
    assert first.so_far == pytest.approx(first.left)
    assert last.so_far == pytest.approx((left * np.diff(EPISODES, prepend=0)).sum() / 3000)


@pytest.mark.parametrize("learner", learning.NAMES)
def test_stored_curves_agree_with_runs(learner):
    """Means of 6 instances of their own, at a size between the stored ones, against the range of single curves."""
    H, S, A, K = 7, 6, 3, 3162
    left = []
    named, _, dynamics = learner.partition(":dynamics=")
    made = ab.learners.make(named, **({"dynamics": dynamics} if dynamics else {}))
    for seed in range(6):
        mdp = ab.instances.make("random", states=S, actions=A, horizon=H, seed=900 + seed)
        losses = ab.adversaries.make("fixed", mdp, seed=seed)
        regret, uniform = (
            ab.run(mdp, losses, one, episodes=K, replicas=2, checkpoints=[K // 2, K], threads=1, seed=seed).regret
            for one in (made, "uniform")
        )
        left.append(float(np.diff(regret).mean() / np.diff(uniform).mean()))
    (row,) = learning.forecast(learner, H=H, S=S, A=A, noise=1.0, episodes=[K])
    assert row.low < np.mean(left) < row.high
    assert row.high < 0.5  # else the range would say nothing


@pytest.mark.parametrize("learner", learning.NAMES)
def test_more_of_anything_leaves_more_and_more_episodes_leave_less(learner):
    base = {"H": 5, "S": 5, "A": 3, "noise": 2.0}

    def at(episodes=3000, **change):
        return learning.forecast(learner, episodes=[episodes], **(base | change))[0].left

    for change in ({"H": 10}, {"S": 10}, {"A": 6}, {"noise": 6.0}, {"episodes": 300}):
        assert at(**change) > at()
    half, fifth = (learning.reaching(learner, share, **base)[0] for share in (0.5, 0.2))
    assert 10 <= half < fifth < learning.longest(learner, **base)


def test_the_spread_of_scores_is_noise_over_what_actions_and_transitions_give():
    assert learning.noise_of(1 / np.sqrt(12 * 6), 6) == pytest.approx(1.0)  # every step's losses even in [0, 1]
    assert learning.noise_of(1 / (2 * np.sqrt(6)), 6) == pytest.approx(learning.NOISE)  # losses 0 or 1
    assert learning.noise_of(0.001, 6) == 1.0
    with pytest.raises(InvalidInputError, match=r"spread must be .* at most 0.5"):
        learning.noise_of(0.6, 6)


@pytest.mark.parametrize(
    "asked, message",
    [
        ({"learner": "po-known"}, "no stored curves of po-known, only of po-model-free, po-practical"),
        ({"A": 1}, "A must be at least 2"),
        ({"episodes": [10**6]}, "episodes must be between 1 and 100000"),
    ],
)
def test_what_has_no_curves_is_refused(asked, message):
    given = {"learner": "po-model-free", "H": 5, "S": 5, "A": 3, "episodes": [100]} | asked
    with pytest.raises(InvalidInputError, match=message):
        learning.forecast(given.pop("learner"), **given)
