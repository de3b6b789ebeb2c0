"""What a person types for a learner, an instance or an adversary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggbandit.errors import InvalidInputError
from aggbandit.experiments.named import Named


@pytest.mark.parametrize(
    "text, name, arguments",
    [
        ("po-known", "po-known", {}),
        (" po-known ", "po-known", {}),
        ("po-known:", "po-known", {}),
        ("po-known:step_size=main", "po-known", {"step_size": "main"}),
        ("po-known:step_size=0.01,exploration=None", "po-known", {"step_size": 0.01, "exploration": None}),
        ("random:states=5, sparse=true", "random", {"states": 5, "sparse": True}),
        ("x:a=[1,2],b=(3,4),c='p,q',d={'k': 1}", "x", {"a": [1, 2], "b": [3, 4], "c": "p,q", "d": {"k": 1}}),
        ("own.module:Learner", "own.module:Learner", {}),
        ("own.module:Learner:rate=1e-3", "own.module:Learner", {"rate": 0.001}),
        ("x:path=a=b", "x", {"path": "a=b"}),
        ("x:a={1,2}", "x", {"a": "{1,2}"}),  # a set cannot be stored: it stays text, for the factory to refuse
    ],
)
def test_parts_of_the_text(text, name, arguments):
    assert Named.parse(text) == Named(name, arguments)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "has no name"),
        (":a=1", "has no name"),
        ("x:a=1,b", "'b' is no argument"),
        ("x:1a=2", "'1a=2' is no argument"),
        ("x:a=1,a=2", "gives the argument 'a' twice"),
        ("x:a=1,", "'' is no argument"),
    ],
)
def test_what_cannot_be_read_is_told(text, message):
    with pytest.raises(InvalidInputError, match=message):
        Named.parse(text)


values = st.one_of(
    st.integers(-(10**6), 10**6), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none(),
    st.text("abcxyz ,=:'\"()[]1", max_size=8), st.lists(st.integers(0, 9), max_size=3),
)  # fmt: skip


@given(arguments=st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,5}", fullmatch=True), values, max_size=4))
def test_what_is_written_is_read_back(arguments):
    named = Named("some-id", arguments)
    assert Named.parse(str(named)) == named
