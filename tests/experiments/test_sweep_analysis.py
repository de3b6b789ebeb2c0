"""Bands by bootstrap and paired comparisons, against definitions and hand-made curves."""

from dataclasses import replace

import numpy as np
import pytest

from aggbandit.errors import InvalidInputError
from aggbandit.experiments import store as stores
from aggbandit.experiments.analysis import bootstrap_band, compared
from aggbandit.experiments.store import StoredCell
from aggbandit.simulation.result import LearnerRecord
from experiments_shared import spec

RNG = np.random.default_rng(5)


def stored(cell, final):
    """A cell whose curves end at `final` (R,)."""
    regret = np.stack([np.zeros_like(final), final], axis=1)
    return StoredCell(
        cell=cell, file="", metadata={}, episodes=np.array([1, cell.episodes]), regret=regret, pseudo_regret=None,
        cost=regret, comparator=np.zeros(2),
    )  # fmt: skip


def cells_of(learner, seeds="[0, 1, 2, 3]"):
    return spec(learner=f'"{learner}"', seed=seeds).cells


def test_the_band_is_the_bootstrap_of_the_mean():
    curves = RNG.normal(size=(6, 3))
    band = bootstrap_band(curves, resamples=20_000)
    rng = np.random.default_rng(1)
    means = np.array([curves[rng.integers(6, size=6)].mean(axis=0) for _ in range(20_000)])
    np.testing.assert_allclose(band.mean, curves.mean(axis=0))
    # a 2.5 % quantile of 20 000 draws: its own error is about 0.02 standard deviations of the mean; five of those
    tolerance = 5 * 0.02 * means.std(axis=0).max()
    np.testing.assert_allclose(band.low, np.quantile(means, 0.025, axis=0), atol=tolerance)
    np.testing.assert_allclose(band.high, np.quantile(means, 0.975, axis=0), atol=tolerance)


def test_seeds_are_resampled_before_replicas():
    """Replicas that hardly differ say nothing about seeds that do."""
    seeds = [np.full((50, 1), level) + RNG.normal(scale=0.01, size=(50, 1)) for level in (0.0, 1.0, 2.0, 3.0)]
    clustered, flat = bootstrap_band(seeds), bootstrap_band(np.concatenate(seeds))
    np.testing.assert_allclose(clustered.mean, 1.5, atol=0.01)
    assert clustered.high - clustered.low > 1.5
    assert flat.high - flat.low < 0.4
    rng = np.random.default_rng(2)
    draws = [
        np.mean([seeds[i][rng.integers(50, size=50)].mean() for i in rng.integers(4, size=4)]) for _ in range(20_000)
    ]
    np.testing.assert_allclose(clustered.low, np.quantile(draws, 0.025), atol=0.06)  # steps of a quarter, unevenly hit
    np.testing.assert_allclose(clustered.high, np.quantile(draws, 0.975), atol=0.06)


def test_the_same_question_has_the_same_answer():
    curves = RNG.normal(size=(6, 3))
    first, second = bootstrap_band(curves), bootstrap_band(curves)
    assert (first.low == second.low).all()
    assert bootstrap_band(curves, seed=1).low[0] != first.low[0]
    assert bootstrap_band(curves, confidence=0.5).high[0] < first.high[0]


def test_one_replica_has_a_band_without_width():
    band = bootstrap_band(np.array([[1.0, 2.0]]))
    assert band.low.tolist() == band.high.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("curves", [[], np.empty((0, 3)), np.zeros(3)])
def test_no_curves(curves):
    with pytest.raises(InvalidInputError, match="curves must be"):
        bootstrap_band(curves)


def test_pairs_are_those_of_the_same_seed_and_replica():
    """A is better by exactly 1 in every pair, though regrets stray by a thousand."""
    noise = [RNG.normal(scale=1000.0, size=3) for _ in range(4)]
    first = [stored(cell, one - 1.0) for cell, one in zip(cells_of("po-known"), noise, strict=True)]
    second = [stored(cell, one) for cell, one in zip(cells_of("uniform"), noise, strict=True)]
    (found,) = compared(first, second[::-1], "a", "b")  # in whatever order
    assert (found.seeds, found.pairs, found.wins, found.verdict) == (4, 12, 1.0, "A is better")
    assert not found.identical
    np.testing.assert_allclose([found.difference, found.low, found.high], -1.0, atol=1e-9)
    (turned,) = compared(second, first, "b", "a")
    assert (turned.wins, turned.verdict) == (0.0, "B is better")
    (same,) = compared(first, first, "a", "a")
    assert (same.wins, same.verdict, same.difference) == (0.5, "identical", 0.0)


def test_the_interval_is_students_t_over_seeds_that_have_their_own_instance():
    finals = [RNG.normal(loc=level, scale=0.01, size=3) for level in (-3.0, -1.0, 0.5, -2.0)]
    first = [stored(cell, one) for cell, one in zip(cells_of("po-known"), finals, strict=True)]
    second = [stored(cell, np.zeros(3)) for cell in cells_of("uniform")]
    (found,) = compared(first, second, "a", "b")
    observed = np.array([one.mean() for one in finals])
    half = 3.182 * observed.std(ddof=1) / 2  # Student's t at 97.5 % with three degrees of freedom, from a table
    np.testing.assert_allclose([found.low, found.high], [observed.mean() - half, observed.mean() + half], rtol=1e-3)
    assert found.verdict == "undecided"  # the twelve replicas alone would have been sure of it
    assert observed.mean() + 2.201 * np.concatenate(finals).std(ddof=1) / np.sqrt(12) < 0


def test_where_seeds_share_the_instance_every_pair_counts():
    fixed = {"instance": '"random:states=3,horizon=2,seed=1"', "adversary": '"switching:seed=1"', "seed": "[0, 1]"}
    finals = [RNG.normal(size=3), RNG.normal(size=3)]
    first = [stored(cell, one) for cell, one in zip(spec(learner='"po-known"', **fixed).cells, finals, strict=True)]
    second = [stored(cell, np.zeros(3)) for cell in spec(learner='"uniform"', **fixed).cells]
    (found,) = compared(first, second, "a", "b")
    every = np.concatenate(finals)
    half = 2.571 * every.std(ddof=1) / np.sqrt(6)  # five degrees of freedom
    np.testing.assert_allclose([found.low, found.high], [every.mean() - half, every.mean() + half], rtol=1e-3)


def test_one_observation_decides_nothing():
    (one,) = spec(learner='"po-known"', seed="0", replicas="1").cells
    (other,) = spec(learner='"uniform"', seed="0", replicas="1").cells
    (found,) = compared([stored(one, np.zeros(1))], [stored(other, np.ones(1))], "a", "b")
    assert (found.difference, found.low, found.high) == (-1.0, -np.inf, np.inf)
    assert found.verdict == "undecided"


def test_of_cells_that_differ_in_replicas_the_larger_is_compared():
    few, many = (spec(learner='"po-known"', seed="0", replicas=count).cells[0] for count in ("2", "5"))
    (other,) = spec(learner='"uniform"', seed="0", replicas="5").cells
    cells = [stored(few, np.zeros(2)), stored(many, np.arange(5.0))]
    for first in (cells, cells[::-1]):
        (found,) = compared(first, [stored(other, np.zeros(5))], "a", "b")
        assert (found.seeds, found.pairs, found.mean_a) == (1, 5, 2.0)


def test_only_the_same_world_is_a_pair():
    first = [stored(cell, np.zeros(3)) for cell in cells_of("po-known", "[0, 1]")]
    other = [stored(cell, np.zeros(3)) for cell in cells_of("uniform", "[1, 2]")]
    (found,) = compared(first, other, "a", "b")
    assert found.seeds == 1
    longer = [stored(cell, np.zeros(3)) for cell in spec(learner='"uniform"', episodes="301").cells]
    assert compared(first, longer, "a", "b") == []


def test_the_seed_of_the_draws_parts_pairs_too():
    """Instance and losses are the same for all seeds here; the draws are not."""
    fixed = {"instance": '"random:states=3,horizon=2,seed=1"', "adversary": '"switching:seed=1"', "seed": "[0, 1]"}
    noise = [np.array([5.0]), np.array([-3.0])]
    first = [stored(cell, one - 1) for cell, one in zip(spec(learner='"po-known"', **fixed).cells, noise, strict=True)]
    second = [stored(cell, one) for cell, one in zip(spec(learner='"uniform"', **fixed).cells, noise, strict=True)]
    (found,) = compared(first, second, "a", "b")
    assert (found.seeds, found.wins) == (2, 1.0)
    other = spec(learner='"uniform"', **{**fixed, "instance": '"random:states=3,horizon=2,seed=2"'}).cells
    assert compared(first, [stored(cell, noise[0]) for cell in other], "a", "b") == []


def test_replicas_beyond_the_others_are_left_out():
    first = [stored(cell, np.arange(5.0)) for cell in spec(learner='"po-known"', replicas="5").cells]
    second = [stored(cell, np.arange(3.0)) for cell in spec(learner='"uniform"', replicas="3").cells]
    (found,) = compared(first, second, "a", "b")
    assert (found.pairs, found.difference) == (6, 0.0)


def record(name="uniform"):
    return LearnerRecord(
        name=name, arguments={}, feedback="aggregate", dynamics="unknown", losses="both", reconstructed=False,
        version=1, resolved={}, text=name,
    )  # fmt: skip


def drawn(cell, final):
    from dataclasses import asdict

    metadata = {"seconds": 1.0, "evaluate_every": 1, "learner": asdict(record()), "finished": stores.now()}
    return replace(stored(cell, final), metadata=metadata)


def test_curves_of_seeds_with_their_own_instances_are_means_over_replicas():
    from aggbandit.cli.stored import curves_of

    finals = [RNG.normal(size=3) for _ in range(4)]
    cells = [drawn(cell, one) for cell, one in zip(cells_of("uniform"), finals, strict=True)]
    (made,) = curves_of(cells)
    np.testing.assert_allclose(made.regret[:, -1], [one.mean() for one in finals])
    assert "4 seeds, each with its own instance or losses and 3 replicas" in made.notes[-1]
    np.testing.assert_allclose(made.episodes_per_second, 4 * 3 * 300 / 4.0)


def test_curves_of_seeds_that_share_the_instance_are_replicas():
    from aggbandit.cli.stored import curves_of

    study = spec(
        learner='"uniform"',
        instance='"random:states=3,horizon=2,seed=1"',
        adversary='"switching:seed=1"',
        seed="[0, 1]",
    )
    finals = [RNG.normal(size=3) for _ in range(2)]
    (made,) = curves_of([drawn(cell, one) for cell, one in zip(study.cells, finals, strict=True)])
    np.testing.assert_array_equal(made.regret[:, -1], np.concatenate(finals))
    assert made.notes == ()
    np.testing.assert_allclose(made.episodes_per_second, 2 * 3 * 300 / 2.0)


def test_curves_that_were_measured_otherwise_are_kept_apart():
    """Cells of another number of replicas hold the same first replicas: together they would count twice."""
    from aggbandit.cli.stored import curves_of

    kinds = {"replicas": "[2, 3]", "evaluate_every": "[1, 7]"}
    cells = spec(learner='"uniform"', seed="[0, 1]", **kinds).cells
    made = curves_of([drawn(cell, np.zeros(cell.replicas)) for cell in cells])
    assert [one.regret.shape[0] for one in made] == [2, 2, 2, 2]  # seeds
    assert sorted(one.setting.partition("K = 300 · ")[2] for one in made) == [
        "2 replicas, 12 checkpoints", "2 replicas, every 7th policy evaluated, 12 checkpoints",
        "3 replicas, 12 checkpoints", "3 replicas, every 7th policy evaluated, 12 checkpoints",
    ]  # fmt: skip
    (alone,) = curves_of([drawn(cells[0], np.zeros(2))])
    assert alone.setting.endswith("K = 300")


def test_curves_of_another_version_are_kept_apart(monkeypatch):
    from aggbandit.cli.stored import curves_of
    from aggbandit.learners.uniform import Uniform

    old = [drawn(cell, np.zeros(3)) for cell in cells_of("uniform", "[0, 1]")]
    monkeypatch.setattr(Uniform, "version", 2)
    new = [drawn(cell, np.ones(3)) for cell in cells_of("uniform", "[0, 1]")]
    made = curves_of(old + new)
    assert [one.regret[:, -1].tolist() for one in made] == [[0.0, 0.0], [1.0, 1.0]]
