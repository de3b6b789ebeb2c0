"""States as bytes: one form for each value, and the value back."""

import functools
from enum import Enum, IntEnum, IntFlag

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggbandit.agent.values import EnumLabel, decode, encode, from_json, to_json
from aggbandit.errors import DamagedFileError, InvalidInputError


class Stage(Enum):
    ASK = "ask"
    OFFER = "offer"


class Level(IntEnum):
    LOW = 1


class Right(IntFlag):
    READ = 1
    WRITE = 2


def nested(depth):
    return functools.reduce(lambda inner, _: (inner,), range(depth), "x")


plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary())
states = st.recursive(plain, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=10)


def exactly(value):
    """The value with its types, so that 1, 1.0 and True differ and 0.0 equals -0.0."""
    if isinstance(value, tuple):
        return tuple(exactly(item) for item in value)
    return type(value), value


@given(a=states, b=states)
def test_two_values_share_their_bytes_exactly_when_types_and_contents_agree(a, b):
    assert (encode(a) == encode(b)) == (exactly(a) == exactly(b))


@given(value=states)
def test_bytes_and_json_give_the_value_back(value):
    assert exactly(decode(encode(value))) == exactly(value)
    assert exactly(from_json(to_json(value))) == exactly(value)


def test_near_relatives_are_different_states():
    relatives = [1, 1.0, True, "1", b"1", (1,), ((1,),), None, 0, "", (), Level.LOW, Stage.ASK, "ask", "Stage.ASK"]
    assert len({encode(value) for value in relatives}) == len(relatives)


def test_the_rules_where_python_leaves_a_choice():
    assert encode(float("nan")) == encode(-np.float64("nan"))
    assert encode(-0.0) == encode(0.0)
    assert encode(np.int64(3)) == encode(3)
    assert encode(np.bool_(True)) == encode(True)
    assert encode((np.float32(0.5), np.str_("x"))) == encode((0.5, "x"))


def test_enum_members_are_known_by_name_and_come_back_as_labels():
    label = decode(encode((Stage.OFFER, 2)))[0]
    assert label == EnumLabel("Stage", "OFFER")
    assert encode(label) == encode(Stage.OFFER)
    assert repr(label) == "Stage.OFFER"
    assert from_json(to_json(label)) == label
    assert from_json(to_json((Stage.OFFER, Level.LOW))) == (label, EnumLabel("Level", "LOW"))


def test_what_is_nested_deep_comes_back():
    assert decode(encode(nested(100))) == nested(100)


@pytest.mark.parametrize(
    "value, message",
    [
        ([1, 2], "Use a tuple instead of the list"),
        ({"a": 1}, "must be a str, int, float"),
        (("a", object()), "must be a str, int, float"),
        (Right(0), "a flag that has no name"),
        (np.zeros(2), "but is a ndarray"),
        (nested(101), "nested more than 100 deep"),
    ],
)
def test_other_values_are_refused(value, message):
    with pytest.raises(InvalidInputError, match=message):
        encode(value)


@pytest.mark.parametrize("data", [b"", b"x", b"i\0\0\0\5ab", b"NN", b"t\0\0\0\2N", b"f\0"])
def test_damaged_bytes_are_named(data):
    with pytest.raises(DamagedFileError, match="is no encoded state"):
        decode(data)


@pytest.mark.parametrize(
    "value", [{"bytes": 3}, {"bytes": "0"}, {"float": "x"}, {"a": 1, "b": 2}, [1], {"enum": ["a"]}]
)
def test_foreign_json_is_refused(value):
    with pytest.raises(InvalidInputError, match="is no state or action"):
        from_json(value)
