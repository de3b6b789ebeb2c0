"""aggbandit.adversaries by name, and what all that can be made have in common."""

import inspect
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggbandit import adversaries
from aggbandit.adversaries.base import LossSequence, table_for
from aggbandit.errors import InvalidInputError, UnknownNameError
from aggbandit.mdp import TabularMDP, instances

IDS = ["bernoulli", "drifting", "fixed", "lower-bound", "multitask", "switching"]
MDP = instances.make("random", states=3, actions=2, horizon=2, seed=0)
DIALOGUE = instances.make("dialogue")
ONE_STATE = instances.make("multitask")

SEQUENCES = {
    "bernoulli": adversaries.make("bernoulli", MDP, seed=3),
    "drifting": adversaries.make("drifting", MDP, period=17.5, seed=3),
    "drifting over K": adversaries.make("drifting", MDP, cycles=3, seed=3).for_episodes(40),
    "fixed": adversaries.make("fixed", MDP, seed=3),
    "switching": adversaries.make("switching", MDP, blocks=3, period=7, seed=3),
    "switching over K": adversaries.make("switching", MDP, blocks=7, seed=3).for_episodes(40),
    "switching faster than episodes": adversaries.make("switching", MDP, blocks=7, seed=3).for_episodes(3),
    "recorded": adversaries.Recorded(np.random.default_rng(0).random((60, 2, 3, 2))),
    "recorded, one table": adversaries.Recorded(np.broadcast_to(np.float64(0.5), (60, 2, 3, 2))),
}


def made(name):
    return adversaries.make(name, ONE_STATE if name == "multitask" else DIALOGUE)


def test_names():
    assert adversaries.names() == IDS


@pytest.mark.parametrize("name", IDS)
def test_every_adversary_has_defaults_and_a_docstring(name):
    factory = adversaries.get(name)
    mdp, *parameters = inspect.signature(factory).parameters.values()
    assert mdp.name == "mdp"
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in parameters)
    for parameter in parameters:
        assert parameter.name in factory.__doc__  # `aggbandit show` prints nothing else about it
    losses = made(name)
    assert isinstance(losses, LossSequence)
    assert losses.shape == (ONE_STATE if name == "multitask" else DIALOGUE).shape
    assert losses.episodes is None
    assert str(losses.shape) in repr(losses)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(
        UnknownNameError, match=r"^There is no adversary 'switch'\. Did you mean 'switching'\? Known: b"
    ):
        adversaries.make("switch", MDP)


BAD = [
    (
        "switching",
        {"block": 3},
        r"^adversary 'switching' has no argument 'block'\. Did you mean 'blocks'\? It takes: bl",
    ),
    ("switching", {"blocks": 0}, r"^blocks must be at least 1, but is 0"),
    ("switching", {"period": 0}, r"^period must be at least 1, but is 0"),
    ("switching", {"seed": -1}, r"^seed must be between 0 and"),
    ("drifting", {"cycles": 0}, r"^cycles must be a finite number, greater than 0, but is 0"),
    ("drifting", {"period": 0.5}, r"^period must be a finite number, at least 1, but is 0\.5"),
    ("drifting", {"depth": 1.5}, r"^depth must be a finite number, at least 0 and at most 1, but is 1\.5"),
    ("drifting", {"seed": 1.5}, r"^seed must be an integer"),
    ("bernoulli", {"seed": 2**64}, r"^seed must be between 0 and 18446744073709551615, but is 18446744073709551616"),
    ("fixed", {"seed": True}, r"^seed must be an integer, but is True"),
    ("fixed", {"table": "naturel"}, r'^table must be "natural", "random" or an array \(H, S, A\), but is \'naturel\''),
    (
        "fixed",
        {"table": "natural"},
        r"^table is 'natural', but this MDP suggests no losses of its own; the instances that do are chain, dialogue, "
        r"grid, hand-worked\. Use table='random' or an array \(H, S, A\)\.$",
    ),
    ("fixed", {"table": np.zeros((3, 2))}, r"^table must have shape \(H, S, A\) = \(2, 3, 2\), but has \(3, 2\)"),
    (
        "bernoulli",
        {"table": np.full((2, 3, 2), 1.5)},
        r"^table\[0, 0, 0\] is 1\.5, but every loss must lie in \[0, 1\]\. Shift and scale the losses to \[0, 1\]; rew",
    ),
    ("fixed", {"table": np.full((2, 3, 2), np.nan)}, r"^table\[0, 0, 0\] is nan, but every loss must lie in"),
    ("fixed", {"table": np.full((2, 3, 2), "0")}, r"^table must hold real numbers, but its dtype is <U1"),
    ("fixed", {"table": [[0.0], [0.0, 1.0]]}, r"^table must be an array, but its rows differ"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), BAD)
def test_bad_arguments_are_refused(name, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        adversaries.make(name, MDP, **arguments)


def test_the_mdp_must_be_one():
    with pytest.raises(InvalidInputError, match=r"^the second argument must be the TabularMDP .* but is a tuple\.$"):
        adversaries.make("fixed", (2, 3, 2))


@pytest.mark.parametrize("name", SEQUENCES)
@given(cuts=st.lists(st.integers(0, 60), max_size=5))
def test_the_same_numbers_however_they_are_cut(name, cuts):
    losses = SEQUENCES[name]
    whole = losses.tables(0, 60)
    edges = [0, *sorted(cuts), 60]
    parts = [losses.tables(start, stop) for start, stop in pairwise(edges)]
    assert [part.shape for part in parts] == [(stop - start, 2, 3, 2) for start, stop in pairwise(edges)]
    assert np.concatenate(parts).tobytes() == whole.tobytes()


@pytest.mark.parametrize("name", SEQUENCES)
def test_tables_are_losses_and_cannot_be_written(name):
    losses = SEQUENCES[name]
    tables = losses.tables(5, 60)
    assert tables.dtype == np.float64
    assert tables.shape == (55, *losses.shape)
    assert tables.min() >= 0.0
    assert tables.max() <= 1.0
    assert not tables.flags.writeable


@pytest.mark.parametrize("name", SEQUENCES)
@pytest.mark.parametrize(
    ("start", "stop", "message"),
    [
        (-1, 2, r"^start must be at least 0, but is -1"),
        (3, 2, r"^stop must be at least 3, but is 2"),
        (0, 2.0, r"^stop must be an integer, but is 2\.0"),
    ],
)
def test_what_is_no_range_of_episodes_is_refused(name, start, stop, message):
    with pytest.raises(InvalidInputError, match=message):
        SEQUENCES[name].tables(start, stop)


@pytest.mark.parametrize("name", [name for name in SEQUENCES if hasattr(SEQUENCES[name], "segments")])
@given(st.integers(0, 100), st.integers(0, 100))
def test_segments_are_the_tables_in_pieces(name, start, length):
    losses = SEQUENCES[name]
    stop, at = start + length, start
    tables = losses.tables(start, stop)
    for first, last, table in losses.segments(start, stop):
        assert first == at < last <= stop
        assert (tables[first - start : last - start] == table).all()
        at = last
    assert at == stop


def test_only_those_that_stay_the_same_have_segments():
    assert {name for name in IDS if hasattr(made(name), "segments")} == {"fixed", "switching"}


def test_only_iid_losses_have_a_mean_table():
    assert {n for n in IDS if made(n).mean_table is not None} == {"bernoulli", "fixed"}


@pytest.mark.parametrize("name", ["bernoulli", "fixed"])
def test_natural_losses_are_the_default_where_there_are_any(name):
    natural = instances.natural_loss(DIALOGUE)
    for arguments in ({}, {"table": "natural"}, {"table": natural}):
        np.testing.assert_array_equal(adversaries.make(name, DIALOGUE, **arguments).mean_table, natural)
    random = adversaries.make(name, DIALOGUE, table="random", seed=1).mean_table
    assert (random != natural).all()
    np.testing.assert_array_equal(random, adversaries.make(name, DIALOGUE, table="random", seed=1).mean_table)
    assert (random != adversaries.make(name, DIALOGUE, table="random", seed=2).mean_table).all()


def test_random_losses_do_not_move():
    # sequences are referred to by id and seed: their numbers must survive every upgrade
    found = adversaries.make("fixed", MDP, seed=0).table[0, 0]
    np.testing.assert_array_equal(found, [0.6734924644313595, 0.2832919683664662])


def test_losses_and_dynamics_of_the_same_seed_are_unrelated():
    # the same stream would make -log ℓ proportional to a row of p
    mdp = instances.make("random", states=4, actions=2, horizon=3, seed=5)
    loss = adversaries.make("fixed", mdp, seed=5).table.reshape(-1)
    weights = -np.log(loss[:4])
    assert not np.isclose(weights / weights.sum(), mdp.stored[0, 0, 0]).any()


def test_a_users_table_is_copied_and_left_alone():
    table = np.full((2, 3, 2), 0.25)
    losses = adversaries.make("fixed", MDP, table=table)
    assert table.flags.writeable
    table[:] = 1.0
    assert (losses.tables(0, 3) == 0.25).all()
    assert not losses.table.flags.writeable


def test_sequences_are_frozen():
    for name, losses in SEQUENCES.items():
        with pytest.raises(AttributeError, match="cannot"):
            losses.shape = (1, 1, 1)
        assert losses.shape == (2, 3, 2), name


def test_stationary_losses_of_a_large_world_are_not_multiplied():
    mdp = instances.make("random", states=10_000, actions=4, horizon=50, sparsity=4, stationary=True, sparse=True)
    for name in ("fixed", "switching"):
        tables = adversaries.make(name, mdp, **({"blocks": 2} if name == "switching" else {})).tables(0, 1000)
        assert tables.shape == (1000, 50, 10_000, 4)  # 16 GB if it were copied
        assert tables.strides[0] == 0
    assert adversaries.Recorded(np.broadcast_to(tables[0], (1000, 50, 10_000, 4))).tables(0, 1000).strides[0] == 0


def test_table_for_takes_lists():
    mdp = TabularMDP([[[1.0]]], 2)
    np.testing.assert_array_equal(table_for(mdp, [[[0]], [[1]]], 0), [[[0.0]], [[1.0]]])
