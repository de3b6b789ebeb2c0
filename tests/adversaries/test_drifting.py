"""aggbandit.adversaries.drifting: the formula, its range and its pace."""

from math import pi, sin

import numpy as np
import pytest

from aggbandit import adversaries
from aggbandit.adversaries.drifting import Drifting
from aggbandit.errors import InvalidInputError
from aggbandit.mdp import instances

MDP = instances.make("random", states=2, actions=2, horizon=2, seed=0)


def naive(losses, k, period):
    """m + d min(m, 1 - m) sin(2π (k / T + φ)), one entry after the other."""
    out = np.empty(losses.shape)
    for entry in np.ndindex(out.shape):
        m, phase = losses.centre[entry], losses.phase[entry]
        out[entry] = m + losses.depth * min(m, 1 - m) * sin(2 * pi * (k / period + phase))
    return out


@pytest.mark.parametrize("depth", [1.0, 0.3])
@pytest.mark.parametrize("k", [0, 1, 12, 399, 12_345_678])
def test_tables_follow_the_formula(depth, k):
    losses = adversaries.make("drifting", MDP, period=37.5, depth=depth, seed=1)
    np.testing.assert_allclose(losses.tables(k, k + 1)[0], naive(losses, k, 37.5), rtol=0, atol=1e-8)


def test_cycles_fill_the_episodes_played():
    losses = adversaries.make("drifting", MDP, cycles=2.0, seed=1)
    np.testing.assert_allclose(losses.tables(700, 701)[0], naive(losses, 700, 5_000), atol=1e-12)
    fitted = losses.for_episodes(100)
    np.testing.assert_allclose(fitted.tables(7, 8)[0], naive(losses, 7, 50), atol=1e-12)
    np.testing.assert_allclose(fitted.tables(57, 58)[0], fitted.tables(7, 8)[0], atol=1e-12)
    assert losses.planned is None
    with pytest.raises(InvalidInputError, match=r"^episodes must be at least 1, but is 0"):
        losses.for_episodes(0)


def test_a_period_is_kept_whatever_the_number_of_episodes():
    losses = adversaries.make("drifting", MDP, period=50, seed=1)
    assert losses.for_episodes(10) is losses


def test_the_mean_over_a_wave_is_the_centre():
    losses = adversaries.make("drifting", MDP, period=64, seed=1)
    np.testing.assert_allclose(losses.tables(5, 69).mean(axis=0), losses.centre, atol=1e-12)


def test_entries_swing_as_far_as_they_may():
    tables = adversaries.make("drifting", MDP, period=10_000, seed=1).tables(0, 10_000)
    low, high = tables.min(axis=0), tables.max(axis=0)
    assert (tables >= 0.0).all()
    assert (tables <= 1.0).all()
    assert ((low < 1e-6) | (high > 1 - 1e-6)).all()
    assert np.abs(np.diff(tables, axis=0)).max() < 2 * pi / 10_000  # smooth


def test_rounding_does_not_leave_the_range():
    # at the bottom of the wave m - m (sin² + cos²) comes out at -5.6e-17 for some m unless it is held at 0
    centre = np.random.default_rng(0).random((1, 1, 100_000)) / 2
    phase = np.full(centre.shape, 0.75 - 1 / 8)
    lowest = Drifting(centre, phase, period=8.0).tables(1, 2)
    assert lowest.min() == 0.0
    np.testing.assert_allclose(lowest, 0.0, atol=1e-15)
    assert Drifting(1.0 - centre, phase + 0.5, period=8.0).tables(1, 2).max() == 1.0


def test_without_depth_nothing_moves():
    losses = adversaries.make("drifting", MDP, depth=0.0, seed=1)
    assert (losses.tables(0, 5) == losses.centre).all()


def test_entries_have_phases_of_their_own():
    losses = adversaries.make("drifting", MDP, seed=1)
    assert len(np.unique(losses.phase)) == 8
    assert not np.isclose(losses.phase, losses.centre).any()


def test_centres_may_be_natural():
    mdp = instances.make("dialogue")
    losses = adversaries.make("drifting", mdp, table="natural")
    np.testing.assert_array_equal(losses.centre, instances.natural_loss(mdp))
    assert (adversaries.make("drifting", mdp).centre != losses.centre).all()
