"""aggbandit.adversaries.base: sequences that users bring."""

import numpy as np
import pytest

from aggbandit import adversaries
from aggbandit.adversaries import LossSequence, as_losses, checked_tables
from aggbandit.errors import InvalidInputError
from aggbandit.mdp import instances

MDP = instances.make("random", states=3, actions=2, horizon=2, seed=0)
SHAPE = (2, 3, 2)
GOOD = np.full(SHAPE, 0.5)


class Own:
    """A user's losses: whatever `make(n)` says, called with positional arguments only."""

    def __init__(self, make, **attributes):
        self._make = make
        for name, value in attributes.items():
            setattr(self, name, value)

    def tables(self, start, stop, /):
        return self._make(stop - start)

    def __repr__(self):
        return "Own()"


class OwnPieces(Own):
    def __init__(self, pieces):
        super().__init__(lambda n: np.broadcast_to(GOOD, (n, *SHAPE)))
        self._pieces = pieces

    def segments(self, start, stop, /):
        return self._pieces


def constant(value):
    return Own(lambda n: np.full((n, *SHAPE), value))


def test_our_own_sequences_are_taken_as_they_are():
    losses = adversaries.make("bernoulli", MDP, seed=0)
    assert as_losses(losses, MDP, 100) is losses
    assert checked_tables(losses, 2, 5, SHAPE).shape == (3, *SHAPE)


def test_sequences_are_fitted_to_the_number_of_episodes():
    assert as_losses(adversaries.make("switching", MDP), MDP, 100).planned == 100
    fitting = Own(lambda n: np.zeros((n, *SHAPE)), for_episodes=lambda K: constant(K / 100))
    assert (as_losses(fitting, MDP, 50).tables(0, 3) == 0.5).all()


def test_any_object_with_tables_works():
    losses = as_losses(constant(0.25), MDP, 10)
    assert isinstance(losses, LossSequence)
    assert losses.shape == SHAPE
    assert losses.mean_table is None
    assert losses.episodes is None
    assert not hasattr(losses, "segments")
    assert (losses.tables(3, 9) == np.full((6, *SHAPE), 0.25)).all()
    assert repr(losses) == "Own()"


@pytest.mark.parametrize("dtype", [np.float32, int, bool])
def test_other_number_types_become_float64(dtype):
    found = as_losses(Own(lambda n: np.ones((n, *SHAPE), dtype)), MDP, 10).tables(0, 2)
    assert found.dtype == np.float64
    assert (found == 1.0).all()


def test_a_view_of_stride_0_stays_one():
    losses = as_losses(Own(lambda n: np.broadcast_to(GOOD, (n, *SHAPE))), MDP, 10)
    assert losses.tables(0, 10).strides[0] == 0


def test_users_arrays_are_left_alone():
    table = np.full((5, *SHAPE), 0.5)
    as_losses(Own(lambda n: table[:n]), MDP, 5).tables(0, 5)
    assert table.flags.writeable
    assert (table == 0.5).all()


def spoilt(n):
    tables = np.full((n, *SHAPE), 0.5)
    tables[1, 0, 2, 1] = 1.5
    return tables


BAD_TABLES = [
    (
        spoilt,
        r"^losses\.tables\(4, 7\)\[1, 0, 2, 1\] is 1\.5 in episode 5, but every loss must lie in \[0, 1\]\. Shift a",
    ),
    (lambda n: np.full((n, *SHAPE), -0.1), r"^losses\.tables\(4, 7\)\[0, 0, 0, 0\] is -0\.1"),
    (
        lambda n: np.full((n, *SHAPE), np.nan),
        r"^losses\.tables\(4, 7\)\[0, 0, 0, 0\] is nan in episode 4, but .*\[0, 1\]\. NaN stands for no number: look",
    ),
    (lambda n: np.broadcast_to(2.0, (n, *SHAPE)), r"^losses\.tables\(4, 7\)\[0, 0, 0, 0\] is 2\.0 in episode 4"),
    (
        lambda n: np.zeros((n, 3, 2, 2)),
        r"^losses\.tables\(4, 7\) must have shape \(stop - start, H, S, A\) = \(3, 2, 3, 2\), but has \(3, 3, 2, 2\)",
    ),
    (lambda n: np.zeros((n + 1, *SHAPE)), r"^losses\.tables\(4, 7\) must have shape .* but has \(4, 2, 3, 2\)"),
    (lambda n: GOOD, r"^losses\.tables\(4, 7\) must have shape .* but has \(2, 3, 2\)"),
    (lambda n: None, r"^losses\.tables\(4, 7\) must hold real numbers, but its dtype is object"),
    (lambda n: np.full((n, *SHAPE), "x"), r"^losses\.tables\(4, 7\) must hold real numbers, but its dtype is <U1"),
    (lambda n: np.zeros((n, *SHAPE), complex), r"^losses\.tables\(4, 7\) must hold real numbers, but its dtype is com"),
    (lambda n: [[0.0], [0.0, 1.0]], r"^losses\.tables\(4, 7\) must be an array, but its rows differ"),
]


@pytest.mark.parametrize(("make", "message"), BAD_TABLES)
def test_bad_tables_are_refused_when_they_come(make, message):
    losses = as_losses(Own(make), MDP, 10)
    with pytest.raises(InvalidInputError, match=message):
        losses.tables(4, 7)
    with pytest.raises(InvalidInputError, match=message):
        checked_tables(Own(make), 4, 7, SHAPE)


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        (np.zeros((10, *SHAPE)), r"but is a ndarray\. For an array \(K, H, S, A\): ab\.adversaries\.Recorded\(arr"),
        (GOOD, r'but is a ndarray\. For one table in every episode: ab\.adversaries\.make\("fixed", mdp, table='),
        ("fixed", r"but is a str\. Make it with ab\.adversaries\.make\('fixed', mdp\)\.$"),
        (None, r"^losses must be an object with a method tables\(start, stop\), but is a NoneType\."),
        (Own, r"^losses must be an object with a method tables\(start, stop\), but is the class Own\."),
        (Own(None, for_episodes=lambda K: None), r"^losses must be an object with a method .* but is a NoneType\."),
        (
            adversaries.make("fixed", instances.make("hand-worked")),
            r"^losses are for \(H, S, A\) = \(3, 2, 2\), but the MDP has \(2, 3, 2\)\. Make them for this MDP\.$",
        ),
        (
            adversaries.Recorded(np.zeros((9, *SHAPE))),
            r"^losses hold 9 episodes, but 10 are to be played\. Play at most 9, or bring more\.$",
        ),
        (Own(None, episodes=9), r"^losses hold 9 episodes, but 10 are to be played"),
        (Own(None, episodes="9"), r"^losses\.episodes must be an integer, but is '9'"),
        (Own(None, mean_table=np.zeros((3, 2))), r"^losses\.mean_table must have shape \(H, S, A\) = \(2, 3, 2\), b"),
        (Own(None, mean_table=GOOD + 1), r"^losses\.mean_table\[0, 0, 0\] is 1\.5, but every loss must lie in"),
    ],
)  # fmt: skip
def test_what_cannot_be_played_is_refused_at_once(losses, message):
    with pytest.raises(InvalidInputError, match=message):
        as_losses(losses, MDP, 10)


def test_a_subclass_of_ours_is_checked_like_any_other():
    class Wrong(LossSequence):
        shape = SHAPE

        def tables(self, start, stop, /):
            return np.full((stop - start, *SHAPE), 2.0)

    losses = as_losses(Wrong(), MDP, 10)
    with pytest.raises(InvalidInputError, match=r"is 2\.0 in episode 0, but every loss must lie in"):
        losses.tables(0, 1)


def test_as_many_episodes_as_there_are_may_be_played():
    assert as_losses(adversaries.Recorded(np.zeros((10, *SHAPE))), MDP, 10).episodes == 10


def test_a_users_mean_table_is_kept():
    mean = GOOD.copy()
    losses = as_losses(Own(lambda n: np.zeros((n, *SHAPE)), mean_table=mean), MDP, 10)
    mean[:] = 0.0
    assert (losses.mean_table == 0.5).all()
    assert not losses.mean_table.flags.writeable


def test_a_users_segments_are_passed_on():
    pieces = [(4, 6, GOOD), (6, 7, GOOD * 2)]
    found = list(as_losses(OwnPieces(pieces), MDP, 10).segments(4, 7))
    assert [(first, last) for first, last, _ in found] == [(4, 6), (6, 7)]
    assert (found[1][2] == 1.0).all()


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        (
            [(5, 7, GOOD)],
            r"^losses\.segments\(4, 7\) yields a piece from 5 to 7, but the next one must begin at 4, end a",
        ),
        ([(4, 4, GOOD)], r"^losses\.segments\(4, 7\) yields a piece from 4 to 4"),
        ([(4, 8, GOOD)], r"^losses\.segments\(4, 7\) yields a piece from 4 to 8, .* not beyond 7"),
        ([(4, 6, GOOD), (4, 7, GOOD)], r"^losses\.segments\(4, 7\) yields a piece from 4 to 7, .* must begin at 6"),
        ([(4, 6, GOOD)], r"^losses\.segments\(4, 7\) ends at 6, but must cover the episodes up to 7"),
        ([(4, 7)], r"^losses\.segments\(4, 7\) must yield \(start, stop, table\), but yields \(4, 7\)"),
        (None, r"^losses\.segments\(4, 7\) must yield \(start, stop, table\), but returns None"),
        ([7], r"^losses\.segments\(4, 7\) must yield \(start, stop, table\), but yields 7"),
        ([(4.0, 7.0, GOOD)], r"^losses\.segments\(4, 7\) yields a piece from 4\.0 to 7\.0"),
        ([(4, 7, GOOD[0])], r"^losses\.segments\(4, 7\), piece from 4 to 7: table must have shape \(H, S, A\)"),
        ([(4, 7, GOOD * 3)], r"^losses\.segments\(4, 7\), piece from 4 to 7: table\[0, 0, 0\] is 1\.5"),
    ],
)
def test_bad_segments_are_refused(pieces, message):
    with pytest.raises(InvalidInputError, match=message):
        list(as_losses(OwnPieces(pieces), MDP, 10).segments(4, 7))
