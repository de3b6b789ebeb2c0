"""Sessions: order, late feedback, bad input that changes nothing, exact saves."""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import DamagedFileError, InvalidInputError, OutOfOrderError
from aggbandit.learners.base import Draws, Episode, Problem

MDP = ab.instances.make("random", states=3, actions=2, horizon=3, seed=1)
KNOWN = Problem(H=3, S=3, A=2, episodes=6, transition=MDP.transition)
UNKNOWN = Problem(H=3, S=3, A=2, episodes=6)


class Log(NamedTuple):
    policy_hsa: Any
    seen: list[int]
    shares: list[float]


@dataclass(frozen=True, kw_only=True)
class Late(ab.Learner[Log]):
    """Remembers which episode came, and the policy that played it; its own policy moves with every update."""

    needs = ab.Needs(late_feedback=True)

    def init(self, problem: Problem, draws: Draws) -> Log:
        return Log(_first_action(problem, 0.5), [], [])

    def policy(self, problem: Problem, state: Log) -> Any:
        return state.policy_hsa

    def update(self, problem: Problem, state: Log, episode: Episode, draws: Draws) -> Log:
        assert episode.policy is not None
        share = 0.5 + 0.05 * (len(state.seen) + 1)
        shares = [*state.shares, float(episode.policy[0, 0, 0])]
        return Log(_first_action(problem, share), [*state.seen, episode.index], shares)


class Failing(Late):
    def update(self, problem: Problem, state: Any, episode: Any, draws: Any) -> Any:
        state.policy_hsa[:] = 7.0
        raise ArithmeticError("too small")


@dataclass(frozen=True)
class ByPosition(Late):
    """Its fields may be given by position; what it leaves undone is `return state`."""

    share: float = 0.25

    def init(self, problem: Problem, draws: Draws) -> Any:
        return Log(_first_action(problem, self.share), [], [])

    def update(self, problem: Problem, state: Any, episode: Any, draws: Any) -> Any:
        state.seen.append(episode.index)


class ByHand(Late):
    def __init__(self, share: float = 0.25) -> None:
        object.__setattr__(self, "share", share)


class StateFromElsewhere(Late):
    def init(self, problem: Problem, draws: Draws) -> Any:
        return kept_elsewhere.Pair(_first_action(problem, 0.5), 1)


def _first_action(problem: Problem, share: float) -> Any:
    policy = np.empty(problem.shape)
    policy[..., 0], policy[..., 1] = share, 1 - share
    return policy


class Pair(NamedTuple):
    policy_hsa: Any
    count: int


Pair.__module__ = "kept_elsewhere"  # as if another module defined it
kept_elsewhere = SimpleNamespace(Pair=Pair)
del Pair


def states_of(session: ab.Session) -> Any:
    return session._state


@pytest.mark.parametrize("name", ["po-known", "po-unknown"])
def test_plays_and_counts(name: str) -> None:
    session = ab.start(name, KNOWN if name == "po-known" else UNKNOWN, seed=3)
    before = session.policy
    session.update([0, 2, 1], [1, 0, 0], 1.5)
    assert session.episode == 1
    assert not np.array_equal(session.policy, before)
    np.testing.assert_array_equal(session.policy_at(1, 2), session.policy[1, 2])
    assert "episode 1 of 6" in repr(session)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ({"states": [0, 3, 0]}, InvalidInputError, r"states\[1\] is 3, but must lie in 0 ... 2 \(S = 3\)"),
        ({"states": [0, -1, 0]}, InvalidInputError, r"states\[1\] is -1"),
        ({"states": [0, 1]}, InvalidInputError, r"states must have shape \(H,\) = \(3,\), but has \(2,\)"),
        ({"states": [0.0, 1.0, 2.0]}, InvalidInputError, "states must hold integers"),
        ({"actions": [0, 1, 2]}, InvalidInputError, r"actions\[2\] is 2, but must lie in 0 ... 1 \(A = 2\)"),
        (
            {"feedback": 3.5},
            InvalidInputError,
            r"feedback is 3\.5, but the total of H = 3 losses .* reward R in \[0, 3\] becomes the loss 3 - R",
        ),
        ({"feedback": -0.1}, InvalidInputError, r"feedback is -0\.1, but the total"),
        ({"feedback": float("nan")}, InvalidInputError, "feedback must be a finite number"),
        ({"feedback": "1"}, InvalidInputError, "feedback must be a number"),
        ({"feedback": [0.1, 0.2, 0.3]}, InvalidInputError, "one number, the episode's total loss"),
        ({"episode": 0}, OutOfOrderError, "Episode 0 has its feedback already; the next one without is 1"),
        ({"episode": 2}, OutOfOrderError, "Episode 2 is out of turn"),
        ({"episode": 6}, OutOfOrderError, r"Episode 6 is beyond the 6 episodes \(0 ... 5\)"),
        ({"episode": -1}, OutOfOrderError, "There is no episode -1"),
        ({"episode": "x"}, OutOfOrderError, "episode must be the index of an episode, an integer, but is 'x'"),
        ({"episode": True}, OutOfOrderError, "episode must be the index of an episode, an integer, but is True"),
        ({"states": [[0], [0, 1]]}, InvalidInputError, "states must be an array, but its rows differ in length"),
        ({"feedback": [[0], [0, 1]]}, InvalidInputError, "feedback must be an array, but its rows differ in length"),
    ],
)
def test_bad_reports_change_nothing(call: dict[str, Any], error: type[Exception], message: str, tmp_path: Path) -> None:
    session = ab.start("po-known", KNOWN)
    session.update([0, 1, 2], [0, 1, 0], 2.0)
    session.save(tmp_path / "before")
    arguments = {"states": [0, 1, 2], "actions": [0, 1, 0], "feedback": 1.0} | call
    with pytest.raises(error, match=message):
        session.update(**arguments)
    session.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_episodes_end() -> None:
    session = ab.start("uniform", UNKNOWN)
    for _ in range(6):
        session.update([0, 1, 2], [0, 1, 0], 1.0)
    with pytest.raises(OutOfOrderError, match="beyond the 6 episodes"):
        session.update([0, 1, 2], [0, 1, 0], 1.0)


def test_late_feedback_by_index() -> None:
    session = ab.start(Late(), UNKNOWN)
    for expected in range(3):
        assert session.begin() == expected
    session.update([0, 1, 2], [0, 0, 0], 1.0, episode=2)
    assert session.begin() == 3  # with the policy after one update
    session.update([0, 1, 2], [0, 0, 0], 1.0)  # the oldest without feedback: 0
    assert session.episode == 1
    with pytest.raises(OutOfOrderError, match="Episode 2 has its feedback already; the next one without is 1"):
        session.update([0, 1, 2], [0, 0, 0], 1.0, episode=2)
    session.update([0, 1, 2], [0, 0, 0], 1.0, episode=3)
    session.update([0, 1, 2], [0, 0, 0], 1.0)
    assert session.episode == 4
    state = states_of(session)
    assert state.seen == [2, 0, 3, 1]
    np.testing.assert_allclose(state.shares, [0.5, 0.5, 0.55, 0.5])


def test_late_feedback_without_begin_takes_the_policy_in_force() -> None:
    session = ab.start(Late(), UNKNOWN)
    session.update([0, 1, 2], [0, 0, 0], 1.0, episode=1)
    session.update([0, 1, 2], [0, 0, 0], 1.0, episode=4)
    session.update([0, 1, 2], [0, 0, 0], 1.0)
    np.testing.assert_allclose(states_of(session).shares, [0.5, 0.55, 0.5])


def test_a_learner_that_fails_leaves_the_session_as_it_was(tmp_path: Path) -> None:
    """Its arrays used to stay half written; before that, the episode counted as begun, so that `begin` was refused."""
    session = ab.start(Failing(), UNKNOWN)
    session.save(tmp_path / "before")
    with pytest.raises(ArithmeticError, match="too small"):
        session.update([0, 1, 2], [0, 0, 0], 1.0, episode=2)
    session.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert session.begin() == 0


def test_an_update_that_forgets_the_state_says_so() -> None:
    session = ab.start(ByPosition(), UNKNOWN)
    with pytest.raises(InvalidInputError, match=r"^update of .*:ByPosition returned None, but must return the state"):
        session.update([0, 1, 2], [0, 0, 0], 1.0)
    assert session.episode == 0
    assert states_of(session).seen == []


def test_a_learner_that_takes_its_arguments_by_position_is_loaded_with_them(tmp_path: Path) -> None:
    """It used to be saved, and then refused: it had no such argument."""
    ab.start(ByPosition(0.75), UNKNOWN).save(tmp_path / "s")
    assert ab.Session.load(tmp_path / "s").learner.arguments == {"share": 0.75}


def test_a_state_class_may_be_imported_by_the_learners_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = ab.start(StateFromElsewhere(), UNKNOWN)
    with pytest.raises(InvalidInputError, match=r"is not saved\. The saved state names kept_elsewhere:Pair, which nei"):
        session.save(tmp_path / "s")
    monkeypatch.setattr(sys.modules[__name__], "Pair", kept_elsewhere.Pair, raising=False)
    session.save(tmp_path / "s")
    np.testing.assert_array_equal(ab.Session.load(tmp_path / "s").policy, session.policy)


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    """Arguments kept outside the fields used to be lost in silence, and a local class was found missing on loading."""

    class Local(Late):
        pass

    for learner, why in (
        (ByHand(0.75), r"ByHand must be a frozen dataclass .* but ByHand has an __init__ of its own\. Put @dataclass"),
        (Local(), r"<locals>\.Local' is no module:Class"),
    ):
        with pytest.raises(
            InvalidInputError, match=rf"^This session could not be loaded again, so it is not saved.*{why}"
        ):
            ab.start(learner, UNKNOWN).save(tmp_path / "s")
        assert not (tmp_path / "s").exists()


def test_an_interrupt_waits_until_the_episode_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """It used to come out of the update with the arrays written and the episode still open."""
    learner = ab.learners.make("po-known")
    update = type(learner).update

    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return update(*arguments)

    monkeypatch.setattr(type(learner), "update", interrupted)
    session = ab.start(learner, KNOWN)
    before = session.policy
    with pytest.raises(KeyboardInterrupt, match="^$"):
        session.update([0, 1, 2], [0, 1, 0], 1.0)
    assert session.episode == 1
    assert not np.array_equal(session.policy, before)


def test_an_interrupt_waits_until_the_episode_of_a_users_learner_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It used to leave an episode open whose update had been made in place, so that it would have been made twice."""
    finish = ab.Session._finish

    def interrupted(*arguments: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        finish(*arguments)

    monkeypatch.setattr(ab.Session, "_finish", interrupted)
    session = ab.start(Late(), UNKNOWN)
    with pytest.raises(KeyboardInterrupt, match="^$"):
        session.update([0, 1, 2], [0, 0, 0], 1.0)
    assert session.episode == 1
    assert states_of(session).seen == [0]


def test_in_order_learners_begin_one_at_a_time() -> None:
    session = ab.start("po-known", KNOWN)
    assert session.begin() == 0
    with pytest.raises(OutOfOrderError, match="Episode 0 has no feedback yet"):
        session.begin()
    session.update([0, 1, 2], [0, 1, 0], 1.0)
    assert session.begin() == 1


def test_late_sessions_are_saved_with_the_policies_that_wait(tmp_path: Path) -> None:
    sessions = [ab.start(Late(), UNKNOWN), ab.start(Late(), UNKNOWN)]
    for session in sessions:
        session.begin()
        session.begin()
        session.update([0, 1, 2], [0, 0, 0], 1.0, episode=1)
    sessions[1].save(tmp_path / "s")
    sessions[1] = ab.Session.load(tmp_path / "s")
    for session in sessions:
        session.update([0, 1, 2], [0, 0, 0], 1.0)
        session.update([0, 1, 2], [0, 0, 0], 1.0, episode=3)
    assert states_of(sessions[0]).seen == states_of(sessions[1]).seen == [1, 0, 3]
    assert states_of(sessions[0]).shares == states_of(sessions[1]).shares


@pytest.mark.parametrize("form", ["dense", "stationary", "sparse", "distribution"])
def test_save_and_load_continue_bit_for_bit(form: str, tmp_path: Path) -> None:
    mdp = {
        "dense": MDP,
        "stationary": ab.TabularMDP(np.array(MDP.transition[0]), 3),
        "sparse": ab.TabularMDP.sparse([[[0, 1]], [[1, 2]], [[2, 0]]], [[[0.25, 0.75]]] * 3, 3),
        "distribution": ab.TabularMDP(np.array(MDP.transition), initial_state=[0.5, 0.25, 0.25]),
    }[form]
    problem = Problem(
        H=3, S=3, A=mdp.A, episodes=50, initial_state=mdp.initial_state, transition=mdp,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for learner in ("po-known", "po-unknown"):
        whole, parts = ab.start(learner, problem, seed=5), ab.start(learner, problem, seed=5)
        for k in range(30):
            states, actions, total = rng.integers(3, size=3), rng.integers(mdp.A, size=3), float(rng.uniform(0, 3))
            whole.update(states, actions, total)
            parts.update(states, actions, total)
            if k % 10 == 4:
                parts.save(tmp_path / "s")
                parts = ab.Session.load(tmp_path / "s")
        np.testing.assert_array_equal(whole.policy, parts.policy)
        whole.save(tmp_path / "a")
        parts.save(tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_damaged_files_are_named(tmp_path: Path) -> None:
    session = ab.start("po-unknown", UNKNOWN)
    session.save(tmp_path / "s")
    data = (tmp_path / "s").read_bytes()
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    for broken in (data[:-1], data[:40] + b"#" + data[41:], b"", flipped):
        (tmp_path / "s").write_bytes(broken)
        with pytest.raises(DamagedFileError, match=str(tmp_path / "s")):
            ab.Session.load(tmp_path / "s")
    ab.run(MDP, ab.adversaries.make("fixed", MDP), "uniform", episodes=2).save(tmp_path / "r")
    with pytest.raises(DamagedFileError, match="is a run-result file, but a session file is needed"):
        ab.Session.load(tmp_path / "r")


def test_policy_is_a_copy() -> None:
    session = ab.start("po-known", KNOWN)
    first = session.policy
    first[:] = 7.0
    assert session.policy.max() == 0.5


def test_start_refuses() -> None:
    with pytest.raises(InvalidInputError, match="po-known needs known dynamics"):
        ab.start("po-known", UNKNOWN)
    with pytest.raises(InvalidInputError, match="problem must be an aggbandit.Problem, but is dict"):
        ab.start("uniform", {})  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="po-unknown needs the number of episodes"):
        ab.start("po-unknown", Problem(H=3, S=3, A=2, episodes=None))
    with pytest.raises(InvalidInputError, match="transition describes"):
        Problem(H=2, S=3, A=2, episodes=6, transition=MDP.transition)
    with pytest.raises(InvalidInputError, match="step must be between 0 and 2"):
        ab.start("uniform", UNKNOWN).policy_at(3, 0)
