"""aggbandit.mdp.tabular: what is taken, what is refused and why, how it is stored, and draws that cannot go wrong."""

import copy
import math
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggbandit.errors import InvalidInputError
from aggbandit.mdp import TabularMDP, as_initial_distribution
from naive.rows import dense_from_successors, first_above

NEARLY_ONE = 1.0 - 2.0**-53  # the greatest double that a draw can be


def rows(*shape, seed=0):
    table = np.random.default_rng(seed).random(shape)
    return table / table.sum(axis=-1, keepdims=True)


def spoilt(index, value, shape=(3, 2, 2, 2)):
    """A valid table with one entry changed."""
    table = np.full(shape, 1.0 / shape[-1])
    table[index] = value
    return table


def test_horizon_dependent_transitions_are_kept_as_given():
    p = rows(4, 3, 2, 3)
    mdp = TabularMDP(p)
    assert (mdp.H, mdp.S, mdp.A, mdp.shape) == (4, 3, 2, (4, 3, 2))
    assert mdp.stored.shape == (4, 3, 2, 3)
    assert not mdp.is_stationary
    assert not mdp.is_sparse
    assert mdp.origin is None
    np.testing.assert_array_equal(mdp.transition, p)
    assert TabularMDP(p, 4).digest() == mdp.digest()


def test_stationary_transitions_are_stored_once():
    p = rows(3, 2, 3)
    mdp = TabularMDP(p, horizon=5)
    assert (mdp.H, mdp.S, mdp.A) == (5, 3, 2)
    assert mdp.is_stationary
    assert mdp.stored.shape == (1, 3, 2, 3)
    assert mdp.transition.shape == (5, 3, 2, 3)
    assert mdp.transition.strides[0] == 0
    assert np.shares_memory(mdp.transition, mdp.stored)
    for h in range(5):
        np.testing.assert_array_equal(mdp.transition[h], p)


def test_a_stationary_view_is_not_unfolded():
    mdp = TabularMDP(rows(3, 2, 3), horizon=5)
    again = TabularMDP(mdp.transition)
    assert again.is_stationary
    assert again.H == 5
    assert again.digest() == mdp.digest()


def test_lists_and_other_number_types_are_taken():
    assert TabularMDP([[[1]]], 2).stored.dtype == np.float64
    assert TabularMDP([[[True]]], 2).stored.dtype == np.float64
    assert TabularMDP(np.full((1, 2, 1), 1, dtype=np.float32), 2).stored.dtype == np.float64


def test_a_transposed_array_is_stored_contiguously():
    p = np.asfortranarray(rows(4, 3, 2, 3))
    mdp = TabularMDP(p)
    assert mdp.stored.flags.c_contiguous
    np.testing.assert_array_equal(mdp.stored, p)


def test_the_users_arrays_are_copied_and_left_alone():
    p, first = rows(4, 3, 2, 3), rows(3)
    p.flags.writeable = first.flags.writeable = True
    mdp = TabularMDP(p, initial_state=first)
    before = mdp.digest()
    assert p.flags.writeable
    assert first.flags.writeable
    p[:], first[:] = 0.0, 0.0
    assert mdp.digest() == before


def test_the_users_successors_are_copied_and_left_alone():
    successors, p = np.zeros((2, 1, 2), dtype=np.int32), np.full((2, 1, 2), 0.5)
    mdp = TabularMDP.sparse(successors, p, 3)
    assert successors.flags.writeable
    assert p.flags.writeable
    successors[:], p[:] = 1, 0.0
    np.testing.assert_array_equal(mdp.next_states, np.zeros((1, 2, 1, 2)))
    np.testing.assert_array_equal(mdp.probabilities, np.full((1, 2, 1, 2), 0.5))


ARRAYS = {
    "dense": (TabularMDP(rows(2, 3, 2, 3), initial_state=rows(3)), "stored transition cumulative"),
    "stationary": (TabularMDP(rows(3, 2, 3), 2), "stored transition cumulative"),
    "sparse": (
        TabularMDP.sparse(np.zeros((3, 2, 2), int), rows(3, 2, 2), 2),
        "next_states probabilities transition cumulative",
    ),
}


@pytest.mark.parametrize("form", ARRAYS)
@pytest.mark.parametrize("how", ["made", "pickled"])
def test_nothing_can_be_written(form, how):
    mdp, fields = ARRAYS[form]
    if how == "pickled":
        mdp = pickle.loads(pickle.dumps(mdp))
    for field in [*fields.split(), "initial", "initial_cumulative"]:
        array = getattr(mdp, field)
        assert not array.flags.writeable, field
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(AttributeError, match="cannot set H: a TabularMDP is immutable"):
        mdp.H = 5
    with pytest.raises(AttributeError, match="cannot delete H: a TabularMDP is immutable"):
        del mdp.H


@pytest.mark.parametrize("form", ARRAYS)
def test_copies_and_pickles_are_the_same_world(form):
    mdp, _ = ARRAYS[form]
    assert copy.copy(mdp) is mdp
    assert copy.deepcopy(mdp) is mdp
    again = pickle.loads(pickle.dumps(mdp))
    assert again.digest() == mdp.digest()
    assert repr(again) == repr(mdp)
    np.testing.assert_array_equal(again.transition, mdp.transition)


def test_derived_arrays_are_made_once():
    mdp = TabularMDP.sparse([[[0]]], [[[1.0]]], 2)
    assert mdp.transition is mdp.transition
    assert mdp.cumulative is mdp.cumulative
    assert mdp.initial_cumulative is mdp.initial_cumulative


BAD_TRANSITIONS = {
    "a row that does not sum to 1": (
        (spoilt((2, 0, 1, 1), 0.48),),
        r"^transition\[2, 0, 1\] sums to 0\.98, but every row must sum to 1 within 1e-09\. Divide by the row sums if "
        r"that is meant\.$",
    ),
    "a stationary row": (
        (spoilt((0, 1, 1), 0.52, (2, 2, 2)), 3),
        r"^transition\[0, 1\] sums to 1\.02, but every row must sum to 1",
    ),
    "the unused last step": (
        (spoilt((2, 1, 0), 0.0),),
        r"^transition\[2, 1, 0\] sums to 0, but every row must sum to 1",
    ),
    "off by more than 1e-9": ((spoilt((0, 0, 0, 0), 0.5 + 1.1e-9),), r"^transition\[0, 0, 0\] sums to 1\.0000000011"),
    "NaN": ((spoilt((1, 0, 1, 0), math.nan),), r"^transition\[1, 0, 1, 0\] is nan, but every entry must be finite"),
    "inf": ((spoilt((1, 0, 1, 0), math.inf),), r"^transition\[1, 0, 1, 0\] is inf, but every entry must be finite"),
    "a negative probability that the row hides": (
        (spoilt((0, 1, 0), [1.25, -0.25]),),
        r"^transition\[0, 1, 0, 1\] is -0\.25, but every entry must lie in \[0, inf\]\. Probabilities cannot be negat",
    ),
    "no horizon": (
        (np.full((2, 3, 2), 0.5),),
        r"^transition has shape \(S, A, S\) = \(2, 3, 2\), the same at every step, so horizon= must say how many steps "
        r"an episode has\. Otherwise give \(H, S, A, S\)\.$",
    ),
    "a horizon that contradicts": (
        (np.full((4, 2, 3, 2), 0.5), 5),
        r"^horizon is 5, but transition has shape \(H, S, A, S\) = \(4, 2, 3, 2\), so that H = 4\. Leave horizon out",
    ),
    "horizon 0": ((np.full((2, 3, 2), 0.5), 0), r"^horizon must be at least 1, but is 0\.$"),
    "a horizon that no counter holds": (
        (np.full((2, 3, 2), 0.5), 2**32),
        r"^horizon is 4294967296, but must be at most 4294967295\.$",
    ),
    "horizon 2.5": ((np.full((2, 3, 2), 0.5), 2.5), r"^horizon must be an integer, but is 2\.5\.$"),
    "two axes": ((np.eye(3), 3), r"^transition must have shape \(H, S, A, S\), or \(S, A, S\) .* but has \(3, 3\)\.$"),
    "next states that are not the states": (
        (np.full((3, 2, 4), 0.25), 3),
        r"^transition must have shape .* but has \(3, 2, 4\)\.$",
    ),
    "no states": ((np.zeros((0, 2, 0)), 3), r"^transition must have shape .* every axis at least 1, but has \(0, 2, 0"),
    "no actions": ((np.zeros((2, 0, 2)), 3), r"^transition must have shape .* but has \(2, 0, 2\)"),
    "no steps": ((np.zeros((0, 2, 2, 2)),), r"^transition must have shape .* but has \(0, 2, 2, 2\)"),
    "ragged": (([[[1.0], [0.5, 0.5]]], 3), r"^transition must be an array, but its rows differ in length"),
    "text": (([[["1.0"]]], 3), r"^transition must be an array of real numbers, but its dtype is <U3\.$"),
    "complex": (([[[1.0 + 0j]]], 3), r"^transition must be an array of real numbers, but its dtype is complex128\.$"),
    "None": ((None, 3), r"^transition must have shape"),
    "a state out of range": ((np.full((2, 3, 2), 0.5), 3, 2), r"^initial_state must be between 0 and 1, but is 2\.$"),
    "a negative state": ((np.full((2, 3, 2), 0.5), 3, -1), r"^initial_state must be between 0 and 1, but is -1\.$"),
    "a state that is no integer": (
        (np.full((2, 3, 2), 0.5), 3, 0.0),
        r"^initial_state must be a state, that is an integer, or a distribution of shape \(S,\) = \(2,\), but is 0\.0",
    ),
    "a distribution of another length": (
        (np.full((2, 3, 2), 0.5), 3, [0.5, 0.5, 0.0]),
        r"^initial_state must be a state or a distribution of shape \(S,\) = \(2,\), but has shape \(3,\)\.$",
    ),
    "an initial distribution that does not sum to 1": (
        (np.full((2, 3, 2), 0.5), 3, [0.5, 0.4]),
        r"^initial_state sums to 0\.9, but every row must sum to 1",
    ),
    "a negative initial probability": (
        (np.full((2, 3, 2), 0.5), 3, [1.5, -0.5]),
        r"^initial_state\[1\] is -0\.5, but every entry must lie in",
    ),
    "NaN at the start": ((np.full((2, 3, 2), 0.5), 3, [math.nan, 1]), r"^initial_state\[0\] is nan, but every entry"),
    "a ragged start": (
        (np.full((2, 3, 2), 0.5), 3, [[1.0], [1.0, 0.0]]),
        r"^initial_state must be an array, but its rows differ",
    ),
}


@pytest.mark.parametrize("case", BAD_TRANSITIONS)
def test_bad_transitions_are_refused(case):
    arguments, message = BAD_TRANSITIONS[case]
    with pytest.raises(InvalidInputError, match=message):
        TabularMDP(*arguments)


HALVES = np.full((2, 1, 2), 0.5)
BOTH = [[[0, 1]], [[1, 0]]]

BAD_SPARSE = {
    "a successor beyond S": (
        ([[[0, 1]], [[2, 0]]], HALVES, 3),
        r"^next_states\[1, 0, 0\] is 2, but every successor must be a state between 0 and 1, also where its "
        r"probability is 0 \(put 0 there\)\.$",
    ),
    "-1 as padding": (([[[0, -1]], [[0, 1]]], [[[1.0, 0.0]], [[0.5, 0.5]]], 3), r"^next_states\[0, 0, 1\] is -1, but"),
    "float successors": (
        (np.zeros((2, 1, 2)), HALVES, 3),
        r"^next_states must hold integers, but its dtype is float64",
    ),
    "boolean successors": ((HALVES > 0, HALVES, 3), r"^next_states must hold integers, but its dtype is bool"),
    "ragged successors": (([[[0], [0, 1]]], HALVES, 3), r"^next_states must be an array, but its rows differ"),
    "two axes": (
        ([[0, 1]], [[0.5, 0.5]], 3),
        r"^next_states must have shape \(H, S, A, n\), or \(S, A, n\) .* \(1, 2\)",
    ),
    "no successors": (
        (np.zeros((2, 1, 0), int), np.zeros((2, 1, 0)), 3),
        r"^next_states must have shape .* every axis at least 1, but has \(2, 1, 0\)",
    ),
    "shapes that differ": (
        (BOTH, np.full((2, 1, 3), 1 / 3), 3),
        r"^probabilities must have the shape of next_states, \(2, 1, 2\), but has \(2, 1, 3\)\.$",
    ),
    "a row sum": (
        (BOTH, [[[0.5, 0.5]], [[0.5, 0.4]]], 3),
        r"^probabilities\[1, 0\] sums to 0\.9, but every row must sum to 1",
    ),
    "negative": ((BOTH, [[[1.5, -0.5]], [[0.5, 0.5]]], 3), r"^probabilities\[0, 0, 1\] is -0\.5"),
    "NaN": ((BOTH, [[[math.nan, 0.5]], [[0.5, 0.5]]], 3), r"^probabilities\[0, 0, 0\] is nan, but every entry must be"),
    "no horizon": ((BOTH, HALVES), r"^next_states has shape \(S, A, n\) = \(2, 1, 2\), the same at every step, so hor"),
    "a horizon that contradicts": (
        ([BOTH] * 3, [HALVES] * 3, 2),
        r"^horizon is 2, but next_states has shape \(H, S, A, n\) = \(3, 2, 1, 2\), so that H = 3",
    ),
    "a state out of range": ((BOTH, HALVES, 3, 2), r"^initial_state must be between 0 and 1, but is 2"),
}


@pytest.mark.parametrize("case", BAD_SPARSE)
def test_bad_sparse_rows_are_refused(case):
    arguments, message = BAD_SPARSE[case]
    with pytest.raises(InvalidInputError, match=message):
        TabularMDP.sparse(*arguments)


def test_rows_within_the_tolerance_are_kept_as_they_are():
    mdp = TabularMDP(spoilt((0, 0, 0, 0), 0.5 + 0.9e-9))
    assert mdp.transition[0, 0, 0, 0] == 0.5 + 0.9e-9


@given(st.data())
def test_sparse_is_the_dense_table_of_its_rows(data):
    S, A, n = (data.draw(st.integers(1, 4)) for _ in range(3))
    state = st.integers(0, S - 1)
    # weights of 0 are padding, successors named twice occur
    weight = st.integers(0, 3)
    row = st.tuples(st.lists(state, min_size=n, max_size=n), st.lists(weight, min_size=n, max_size=n).filter(any))
    table = [[data.draw(row) for _ in range(A)] for _ in range(S)]
    successors = [[r[0] for r in of_state] for of_state in table]
    probabilities = [[[w / sum(r[1]) for w in r[1]] for r in of_state] for of_state in table]
    mdp = TabularMDP.sparse(successors, probabilities, horizon=3)
    assert mdp.is_sparse
    assert mdp.is_stationary
    assert mdp.next_states.shape == mdp.probabilities.shape == mdp.cumulative.shape == (1, S, A, n)
    assert mdp.transition.shape == (3, S, A, S)
    assert mdp.transition.strides[0] == 0
    expected = dense_from_successors(successors, probabilities, S)
    np.testing.assert_allclose(mdp.transition[2], expected, rtol=1e-15, atol=0)
    TabularMDP(mdp.transition)  # which is a valid dense model


def test_sparse_rows_may_differ_between_steps():
    successors = [[[[0]], [[1]]], [[[1]], [[0]]]]
    mdp = TabularMDP.sparse(successors, np.ones((2, 2, 1, 1)), initial_state=1)
    assert mdp.H == 2
    assert not mdp.is_stationary
    np.testing.assert_array_equal(mdp.transition[:, 0, 0], [[1, 0], [0, 1]])
    np.testing.assert_array_equal(mdp.transition[:, 1, 0], [[0, 1], [1, 0]])


def test_each_form_says_where_its_rows_are():
    dense, sparse = TabularMDP(np.full((2, 1, 2), 0.5), 3), TabularMDP.sparse(BOTH, HALVES, 3)
    with pytest.raises(InvalidInputError, match=r"mdp\.next_states belongs to sparse MDPs, but this one is dense"):
        dense.next_states  # noqa: B018
    with pytest.raises(InvalidInputError, match=r"mdp\.probabilities belongs to sparse MDPs, but this one is dense"):
        dense.probabilities  # noqa: B018
    with pytest.raises(InvalidInputError, match=r"mdp\.stored belongs to dense MDPs, but this one is sparse"):
        sparse.stored  # noqa: B018


def large():
    S, A, n = 10_000, 4, 4
    successors = np.random.default_rng(0).integers(0, S, (S, A, n))
    return TabularMDP.sparse(successors, np.full((S, A, n), 0.25), horizon=50)


def test_a_large_sparse_model_takes_memory_for_its_rows_only():
    tracemalloc.start()
    try:
        mdp = large()
        mdp.cumulative, mdp.digest(), repr(mdp)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32e6  # 160 000 entries of 8 bytes a few times over; the dense form has 3.2 GB


def test_a_dense_form_beyond_a_gigabyte_is_refused():
    with pytest.raises(
        InvalidInputError,
        match=r"^mdp\.transition of this sparse MDP would take 3\.2 GB, but the dense form is made up to 1 GB only\. "
        r"Use mdp\.next_states and mdp\.probabilities\.$",
    ):
        large().transition  # noqa: B018


row = st.lists(st.sampled_from([0.0, 1e-300, 1e-17, 0.1, 0.3, 1.0]), min_size=1, max_size=12).filter(any)


@given(row, st.floats(0.0, NEARLY_ONE))
def test_no_draw_leads_to_a_state_of_probability_zero(weights, u):
    p = np.array(weights) / np.sum(weights)
    cumulative = as_single_row(p).cumulative[0, 0, 0]
    for draw in (u, 0.0, NEARLY_ONE, *np.clip(np.cumsum(p), 0, NEARLY_ONE)):
        j = int((cumulative <= draw).sum())
        assert p[j] > 0.0
        assert j == first_above(p, draw)


def as_single_row(p):
    """An MDP all of whose rows, and whose first state, have the distribution p."""
    return TabularMDP(np.broadcast_to(p, (p.size, 1, p.size)), 2, initial_state=p)


def test_a_draw_beyond_the_rounded_last_sum_takes_the_last_possible_state():
    # ten times 0.1 sums to 1 - 2^-53: without the +inf the greatest draw would go on to the eleventh state
    p = np.array([0.1] * 10 + [0.0])
    assert np.cumsum(p)[-1] <= NEARLY_ONE
    mdp = as_single_row(p)
    np.testing.assert_array_equal(mdp.cumulative[0, 0, 0, 9:], np.inf)
    assert np.isfinite(mdp.cumulative[0, 0, 0, :9]).all()
    assert (mdp.cumulative[0, 0, 0] <= NEARLY_ONE).sum() == 9
    assert (mdp.initial_cumulative <= NEARLY_ONE).sum() == 9


def test_sparse_padding_is_never_drawn():
    mdp = TabularMDP.sparse([[[0, 0, 1, 0]], [[1, 0, 0, 1]]], [[[0, 0.5, 0.5, 0]], [[1, 0, 0, 0]]], 2)
    np.testing.assert_array_equal(mdp.cumulative[0, :, 0], [[0, 0.5, np.inf, np.inf], [np.inf] * 4])


def test_initial_state_is_kept_as_given_and_as_a_distribution():
    known = TabularMDP(rows(3, 2, 3), 2, np.int64(1))
    assert known.initial_state == 1
    assert type(known.initial_state) is int
    np.testing.assert_array_equal(known.initial, [0, 1, 0])
    np.testing.assert_array_equal(known.initial_cumulative, [0, np.inf, np.inf])
    spread = TabularMDP(rows(3, 2, 3), 2, [0.5, 0.25, 0.25])
    np.testing.assert_array_equal(spread.initial_state, [0.5, 0.25, 0.25])
    np.testing.assert_array_equal(spread.initial, [0.5, 0.25, 0.25])
    assert not spread.initial.flags.writeable
    assert not as_initial_distribution(0, 3).flags.writeable
    assert not as_initial_distribution([1, 0, 0], 3).flags.writeable


def test_the_digest_is_of_what_numbers_depend_on():
    p = rows(3, 2, 3)
    base = TabularMDP(p, 4)
    assert len(base.digest()) == 64
    same = [TabularMDP(p, 4, [1, 0, 0]), TabularMDP(p, 4, state_names=["a", "b", "c"], action_names=["l", "r"])]
    assert {mdp.digest() for mdp in same} == {base.digest()}
    nudged = p.copy()
    nudged[2, 1] = nudged[2, 1][::-1]
    others = [TabularMDP(p, 5), TabularMDP(nudged, 4), TabularMDP(p, 4, 1), TabularMDP(np.stack([p] * 4))]
    sparse = [TabularMDP.sparse(BOTH, HALVES, 4), TabularMDP.sparse([[[1, 0]], [[1, 0]]], HALVES, 4)]
    assert len({mdp.digest() for mdp in [base, *others, *sparse]}) == 7


def test_the_digest_does_not_move():
    # stored results refer to it: whoever changes it must say so in the CHANGELOG
    assert TabularMDP([[[1.0]]], 2).digest() == "ef87faea6f5b81fc4c1c241d2e39c2a0a674e408efc505e516b92ee14f467133"


def test_names():
    plain = TabularMDP(rows(2, 3, 2), 4)
    assert plain.state_names == ("s0", "s1")
    assert plain.action_names == ("a0", "a1", "a2")
    named = TabularMDP(rows(2, 3, 2), 4, state_names=["on", "off"], action_names=("x", "y", "z"))
    assert named.state_names == ("on", "off")
    assert named.action_names == ("x", "y", "z")
    assert TabularMDP.sparse(BOTH, HALVES, 3, state_names=["on", "off"], action_names=["x"]).action_names == ("x",)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["on"], r"^state_names must have one name for each of S = 2, but has 1\.$"),
        ("on", r"^state_names must be a sequence of S = 2 texts, but is the single text 'on'\.$"),
        (["on", 1], r"^state_names\[1\] must be a text that is not empty, but is 1\.$"),
        (["", "off"], r"^state_names\[0\] must be a text that is not empty, but is ''\.$"),
        (["on", "on"], r"^state_names\[1\] is 'on' again, but names must differ\.$"),
    ],
)
def test_bad_names_are_refused(names, message):
    with pytest.raises(InvalidInputError, match=message):
        TabularMDP(rows(2, 3, 2), 4, state_names=names)


@pytest.mark.parametrize(
    ("mdp", "expected"),
    [
        (TabularMDP(rows(2, 3, 2, 3)), "TabularMDP(H=2, S=3, A=2, horizon-dependent, initial_state=0)"),
        (
            TabularMDP(rows(3, 2, 3), 4, rows(3)),
            "TabularMDP(H=4, S=3, A=2, stationary, initial_state=a distribution)",
        ),
        (
            TabularMDP.sparse(BOTH, HALVES, 3, 1),
            "TabularMDP(H=3, S=2, A=1, stationary, 2 successors per row, initial_state=1)",
        ),
        (
            TabularMDP.sparse([[[0]]], [[[1]]], 3),
            "TabularMDP(H=3, S=1, A=1, stationary, 1 successor per row, initial_state=0)",
        ),
    ],
)
def test_repr(mdp, expected):
    assert repr(mdp) == expected
