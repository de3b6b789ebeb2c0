"""aggbandit._checks and _registry: what passes, what does not, and what the message says."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggbandit import _checks as checks
from aggbandit._arrays import frozen
from aggbandit._registry import resolve
from aggbandit.errors import AggbanditError, InvalidInputError, UnknownNameError

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("index", "expected"), [((), "loss"), ((3,), "loss[3]"), (np.array([2, 0, 1]), "loss[2, 0, 1]")]
)
def test_place(index, expected):
    assert checks.place("loss", index) == expected


@pytest.mark.parametrize("value", [1, 5, np.int64(5), np.uint8(1)])
def test_integers_within_bounds_pass_as_int(value):
    found = checks.require_integer("episodes", value, low=1, high=5)
    assert found == value
    assert type(found) is int


@pytest.mark.parametrize(
    ("value", "high", "message"),
    [
        (0, None, r"^episodes must be at least 1, but is 0\.$"),
        (6, 5, r"^episodes must be between 1 and 5, but is 6\.$"),
        (0, 5, r"^episodes must be between 1 and 5, but is 0\.$"),
        (2.0, None, r"^episodes must be an integer, but is 2\.0\.$"),
        ("2", None, r"^episodes must be an integer, but is '2'\.$"),
        (None, None, r"^episodes must be an integer, but is None\.$"),
        (True, None, r"^episodes must be an integer, but is True\.$"),
        (np.bool_(True), None, r"^episodes must be an integer, but is np\.True_\.$"),
        (np.float64(2), None, r"^episodes must be an integer"),
    ],
)
def test_other_integers_are_refused(value, high, message):
    with pytest.raises(InvalidInputError, match=message):
        checks.require_integer("episodes", value, low=1, high=high)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int8(1), Fraction(1, 2)])
def test_numbers_within_bounds_pass_as_float(value):
    found = checks.require_number("confidence", value, low=0, high=1)
    assert found == value
    assert type(found) is float


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        (-0.1, {"low": 0}, r"^δ must be a finite number, at least 0, but is -0\.1\.$"),
        (0, {"low": 0, "low_open": True}, r"^δ must be a finite number, greater than 0, but is 0\.$"),
        (1.5, {"high": 1}, r"^δ must be a finite number, at most 1, but is 1\.5\.$"),
        (1, {"high": 1, "high_open": True}, r"^δ must be a finite number, less than 1, but is 1\.$"),
        (2, {"low": 0, "high": 1}, r"^δ must be a finite number, at least 0 and at most 1, but is 2\.$"),
        (NAN, {}, r"^δ must be a finite number.* but is nan\.$"),
        (NAN, {"low": 0, "high": 1}, r"^δ must be a finite number, at least 0 and at most 1, but is nan\.$"),
        (INF, {"low": 0}, r"^δ must be a finite number, at least 0, but is inf\.$"),
        (10**400, {}, r"^δ must be a finite number, but is 10{400}\.$"),
        (-(10**400), {"high": 1}, r"^δ must be a finite number, at most 1, but is -10{400}\.$"),
        (True, {}, r"^δ must be a number, but is True\.$"),
        ("0.5", {}, r"^δ must be a number, but is '0\.5'\.$"),
        (1j, {}, r"^δ must be a number, but is 1j\.$"),
        (Decimal(1), {}, r"^δ must be a number, but is Decimal"),
    ],
)
def test_other_numbers_are_refused(value, options, message):
    with pytest.raises(InvalidInputError, match=message):
        checks.require_number("δ", value, **options)


@pytest.mark.parametrize(
    ("value", "options"), [(0, {"low": 0}), (1, {"high": 1}), (5e-324, {"low": 0, "low_open": True}), (-1e308, {})]
)
def test_ends_belong_to_the_interval_unless_left_out(value, options):
    assert checks.require_number("δ", value, **options) == value


@pytest.mark.parametrize("value", [True, False, np.True_])
def test_flags_pass_as_bool(value):
    assert checks.require_flag("sparse", value) is bool(value)


@pytest.mark.parametrize("value", ["no", 0, 1, None, [True]])
def test_other_flags_are_refused(value):
    with pytest.raises(InvalidInputError, match=r"^sparse must be True or False, but is "):
        checks.require_flag("sparse", value)


def test_shapes():
    checks.require_shape("policy", np.zeros((2, 3)), (2, 3), "(H, S)")
    with pytest.raises(InvalidInputError, match=r"^policy must have shape \(H, S\) = \(2, 3\), but has \(3, 2\)\.$"):
        checks.require_shape("policy", np.zeros((3, 2)), (2, 3), "(H, S)")


def test_float_arrays_are_not_copied_and_others_are_converted():
    given = np.array([0.5, 1.0])
    assert checks.as_floats("loss", given) is given
    converted = checks.as_floats("loss", [[1, 0], [0, 1]])
    assert converted.dtype == np.float64
    assert converted.shape == (2, 2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1, 2], [3]], r"^loss must be an array, but its rows differ in length\. Pad them,"),
        (["a"], r"^loss must be an array of real numbers, but its dtype is <U1\.$"),
        (["0.5"], r"^loss must be an array of real numbers, but its dtype is <U3\.$"),
        (None, r"^loss must be an array of real numbers, but its dtype is object\.$"),
        (object(), r"^loss must be an array of real numbers, but its dtype is object\.$"),
        ([1j], r"^loss must be an array of real numbers, but its dtype is complex128\.$"),
        (
            np.ma.array([0.5, 0.5], mask=[False, True]),
            r"^loss\[1\] is masked, but every entry must be there\. Fill it in",
        ),
        ([[0, 1], [NAN, INF]], r"^loss\[1, 0\] is nan, but every entry must be finite\.$"),
        (-INF, r"^loss is -inf, but every entry must be finite\.$"),
    ],
)
def test_what_is_no_array_of_finite_numbers_is_refused(values, message):
    with pytest.raises(InvalidInputError, match=message):
        checks.as_floats("loss", values)


def test_ranges_include_their_ends():
    checks.require_within("loss", np.array([0.0, -0.0, 1.0]), 0, 1)
    checks.require_within("loss", np.zeros((0, 3)), 0, 1)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            [0.5, np.nextafter(1, 2)],
            r"^loss\[1\] is 1\.0000000000000002, but every entry must lie in \[0, 1\]\. Scale it",
        ),
        ([-1e-300, 0.5], r"^loss\[0\] is -1e-300, but every"),
        ([[0.5, 0.5], [NAN, 3.0]], r"^loss\[1, 0\] is nan, but every"),
        (7.0, r"^loss is 7\.0, but every"),
    ],
)
def test_the_first_entry_out_of_range_is_named(array, message):
    with pytest.raises(InvalidInputError, match=message):
        checks.require_within("loss", np.array(array), 0, 1, "Scale it.")


@given(
    weights=st.lists(st.lists(st.floats(1e-3, 1.0), min_size=3, max_size=3), min_size=1, max_size=4),
    row=st.integers(0, 3),
    excess=st.floats(2e-9, 0.5) | st.floats(-0.5, -2e-9),
)
def test_rows_must_sum_to_one(weights, row, excess):
    array = np.array(weights)
    array /= array.sum(axis=-1, keepdims=True)
    checks.require_distributions("policy", array)
    checks.require_distributions("policy", array + 1e-10)  # within 1e-9
    row %= len(array)
    array[row] *= 1 + excess
    with pytest.raises(InvalidInputError, match=rf"^policy\[{row}\] sums to .* within 1e-09\. Divide by the row sums"):
        checks.require_distributions("policy", array)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([[0.5, 0.5], [1.5, -0.5]], r"^policy\[1, 1\] is -0\.5, .*Probabilities cannot be negative\.$"),
        ([[NAN, 1.0]], r"^policy\[0, 0\] is nan, but"),
        ([0.5, 0.4], r"^policy sums to 0\.9, .* within 1e-09\. Divide by the row sums if that is meant\.$"),
        (
            np.full(3, np.float32(1 / 3), float),
            r"^policy sums to 1\.0000000298, .* if that is meant\. In float64: single prec",
        ),
        ([[[1.0], [1.0]], [[1.0], [0.0]]], r"^policy\[1, 1\] sums to 0, but"),
    ],
)
def test_what_is_no_distribution_is_refused(array, message):
    with pytest.raises(InvalidInputError, match=message):
        checks.require_distributions("policy", np.array(array))


def test_an_unknown_name_suggests_the_nearest():
    known = {"po-known": "", "po-unknown": "", "uniform": ""}
    assert checks.require_known("learner", "uniform", known) == "uniform"
    with pytest.raises(UnknownNameError) as caught:  # noqa: PT011  the whole message is compared below
        checks.require_known("learner", "po-knwon", known)
    said = "There is no learner 'po-knwon'. Did you mean 'po-known'? Known: po-known, po-unknown, uniform."
    assert str(caught.value) == said  # a LookupError would show its repr
    with pytest.raises(UnknownNameError, match=r"^There is no learner 7\. Known: "):
        checks.require_known("learner", 7, known)


def test_the_arguments_of_a_class_are_found_also_where_it_takes_them_by_position():
    class Own:
        def __init__(self, rate, *, size=3):
            pass

    def factory(mdp, *, rate, size=3):
        pass

    for made_by in (Own, factory):
        assert list(checks.keywords_of(made_by)) == ["rate", "size"]
        checks.require_arguments("learner", "Own", made_by, {"rate": 1})
        with pytest.raises(InvalidInputError, match=r"^learner 'Own' needs the argument 'rate'\.$"):
            checks.require_arguments("learner", "Own", made_by, {"size": 1})


def test_the_registry_imports_what_a_name_stands_for():
    table = {"ordered": "collections:OrderedDict", "broken": "collections:NoSuchThing"}
    from collections import OrderedDict

    assert resolve("container", "ordered", table) is OrderedDict
    with pytest.raises(UnknownNameError, match=r"There is no container 'orderd'\. Did you mean 'ordered'"):
        resolve("container", "orderd", table)
    with pytest.raises(AttributeError, match="NoSuchThing"):
        resolve("container", "broken", table)


def test_a_frozen_view_refuses_writes_and_leaves_the_array_alone():
    array = np.zeros(3)
    view = frozen(array)
    assert np.shares_memory(view, array)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1.0
    array[0] = 2.0
    assert view[0] == 2.0


def test_every_error_can_be_caught_as_one_and_as_pythons_own():
    import aggbandit.errors as module

    raised = [x for x in vars(module).values() if isinstance(x, type) and x is not AggbanditError]
    assert len(raised) >= 5
    for cls in raised:
        assert issubclass(cls, AggbanditError)
        assert issubclass(cls, ValueError | LookupError | RuntimeError | OSError | ImportError)
