"""Bands, slopes and shares, against their definitions."""

import numpy as np
import pytest
from scipy import stats

import aggbandit as ab
from aggbandit.reporting.curves import Curves, band, reference_of, settings_of, share, slope, with_distinct_labels


@pytest.mark.parametrize("replicas", [2, 3, 16])
def test_band_is_the_t_interval_of_the_mean(replicas):
    values = np.random.default_rng(0).normal(5.0, 2.0, (replicas, 4))
    mean, half = band(values)
    low, high = stats.t.interval(0.95, replicas - 1, values.mean(axis=0), stats.sem(values, axis=0))
    np.testing.assert_allclose(mean - half, low, rtol=1e-12)
    np.testing.assert_allclose(mean + half, high, rtol=1e-12)


def test_bands_cover_the_mean_as_often_as_they_say():
    values = np.random.default_rng(1).normal(3.0, 1.0, (5, 20_000))  # 20 000 experiments of five replicas
    mean, half = band(values)
    covered = np.mean(np.abs(mean - 3.0) <= half)
    assert abs(covered - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 20_000)  # five standard deviations of that share


def test_one_replica_has_no_band():
    mean, half = band(np.array([[1.0, 2.0]]))
    np.testing.assert_array_equal(mean, [1.0, 2.0])
    assert half is None


@pytest.mark.parametrize("power", [0.5, 2 / 3, 1.0])
def test_slope_of_a_power_is_its_exponent(made_up, power):
    one = made_up("x", power)
    found = one.slope()
    assert found.value == pytest.approx(power, abs=1e-3)  # the curve is interpolated between checkpoints
    assert found.half == pytest.approx(0.0, abs=1e-9)  # all replicas are multiples of one curve
    assert np.exp(found.level) == pytest.approx(5.0 * found.first**power * one.regret[:, 0].mean() / 5.0, rel=1e-2)


def test_slope_looks_at_the_last_two_decades_only():
    k = np.unique(np.geomspace(1, 100_000, 200).round().astype(int))
    late = np.where(k < 1000, 1000.0**-0.5 * k.astype(float), np.sqrt(k / 1000.0) * 1000**0.5)
    assert slope(k, late[None]).value == pytest.approx(0.5, abs=0.01)


def test_slope_is_that_of_both_decades():
    k = np.unique(np.geomspace(1, 10_000, 400).round().astype(int))
    bent = np.where(k < 1000, (k / 1000.0) ** 0.45, (k / 1000.0) ** 0.55)  # a little steeper in the last decade
    assert slope(k, bent[None]).value == pytest.approx(0.5, abs=0.005)


def test_slope_weighs_the_decades_alike_wherever_the_checkpoints_lie():
    k = np.unique(np.geomspace(1, 10_000, 60).round().astype(int))
    crowded = np.unique(np.append(k, np.arange(9_000, 10_001)))
    curve = lambda k: np.sqrt(k) * (1 + 0.05 * np.sin(np.log(k)))[None]  # noqa: E731  nearly a power
    assert slope(crowded, curve(crowded)).value == pytest.approx(slope(k, curve(k)).value, abs=2e-3)


def test_slope_has_an_interval_from_the_replicas_slopes():
    k = np.unique(np.geomspace(1, 10_000, 100).round().astype(int))
    powers = np.array([0.48, 0.5, 0.53, 0.51])
    found = slope(k, k[None] ** powers[:, None])
    low, high = stats.t.interval(0.95, 3, powers.mean(), stats.sem(powers))
    assert found.half == pytest.approx((high - low) / 2, rel=0.02)


@pytest.mark.parametrize(
    "k, regret",
    [
        (np.arange(50, 90), np.sqrt(np.arange(50, 90))),  # not even one decade
        (np.array([1, 10, 100, 1000]), np.array([1.0, 3.0, 10.0, 30.0])),  # four checkpoints
        (np.arange(1, 5000), 100.0 - np.arange(1, 5000)),  # it becomes negative
        (np.arange(1, 5000), 1 + np.abs(np.arange(1, 5000) - 2000.0)),  # no line at all
    ],
    ids=["short", "few", "negative", "bent"],
)
def test_no_slope_where_there_is_no_line(k, regret):
    assert slope(k, regret[None]) is None


def test_share_divides_by_the_uniform_policys_mean(made_up):
    uniform, one = made_up("uniform", 1.0, 1.0), made_up("x", 1.0, 0.25)
    part = share(one, uniform)
    np.testing.assert_allclose(part.mean, one.regret.mean(axis=0) / uniform.regret.mean(axis=0))
    np.testing.assert_allclose(part.half, one.band().half / uniform.regret.mean(axis=0))


def test_no_share_without_a_positive_reference_at_the_same_episodes(made_up):
    uniform, one = made_up("uniform", 1.0, -1.0), made_up("x")
    assert np.isnan(share(one, uniform).mean).all()
    assert share(one, None) is None
    assert share(one, made_up("uniform", 1.0, 1.0, K=500)) is None


def test_reference_is_found_by_its_id(three):
    assert reference_of(three).label == "uniform"
    assert reference_of(three[1:]) is None


def test_settings_and_labels_keep_their_order(made_up):
    curves = [
        made_up("b", setting="2"),
        made_up("a", setting="1"),
        made_up("b", setting="2"),
        made_up("b", setting="1"),
    ]
    assert {key: len(group) for key, group in settings_of(curves).items()} == {"2": 2, "1": 2}
    assert list(settings_of(curves)) == ["2", "1"]
    assert [one.label for one in with_distinct_labels(curves)] == ["b #1", "a", "b #2", "b"]


def test_curves_of_a_run_tell_what_the_learner_sees():
    mdp = ab.instances.make("random", states=3, actions=2, horizon=3)
    losses = ab.adversaries.make("switching", mdp, blocks=2)
    result = ab.run(mdp, losses, "po-known", episodes=20, replicas=2, threads=1)
    curves = Curves.of(result, setting="there")
    assert (curves.label, curves.learner, curves.feedback, curves.dynamics) == (
        "po-known",
        "po-known",
        "aggregate",
        "known",
    )
    assert curves.race == "aggregate feedback, known dynamics"
    assert curves.replicas == 2
    assert curves.last_episode == 20
    np.testing.assert_array_equal(curves.regret, result.regret)
    assert curves.text == result.learner.text
    # at K = 20 the appendix's step size breaks the proof's condition: the reader must be told
    assert result.learner.resolved["step_lowered"] is True
    assert any("lowered" in note for note in curves.notes)


def test_curves_of_a_run_note_policies_that_were_not_evaluated(tmp_path, monkeypatch):
    (tmp_path / "own_learner.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    mdp = ab.instances.make("random", states=3, actions=2, horizon=3)
    losses = ab.adversaries.make("fixed", mdp)
    learner = ab.learners.make("own_learner:Own")
    result = ab.run(mdp, losses, learner, episodes=20, replicas=1, threads=1, evaluate_every=5)
    notes = Curves.of(result).notes
    assert notes == (
        "reconstructed without the paper's full text at hand",
        "one policy in 5 was evaluated, standing for those after it",
    )


OWN = '''
from dataclasses import dataclass
from typing import NamedTuple
import numpy as np
import aggbandit as ab

class State(NamedTuple):
    policy_hsa: np.ndarray

@dataclass(frozen=True, kw_only=True)
class Own(ab.Learner):
    """Plays at random."""
    needs = ab.Needs()
    reconstructed = True
    def init(self, problem, draws):
        return State(np.full(problem.shape, 1 / problem.A))
    def policy(self, problem, state):
        return state.policy_hsa
    def update(self, problem, state, episode, draws):
        return state
'''
