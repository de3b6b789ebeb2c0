from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

import aggbandit as ab
from aggbandit import learners
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Learner, Needs, Problem
from aggbandit.learners.doubling import Doubling
from aggbandit.learners.po_known import PolicyOptimizationKnown


class Seen(NamedTuple):
    log: list


@dataclass(frozen=True, kw_only=True)
class Recorder(Learner[Seen]):
    """Plays its starting time, and remembers what it was told."""

    needs = Needs(late_feedback=True)
    heard = []

    def init(self, problem, draws):
        self.heard.append(("init", problem.episodes))
        return Seen([])

    def policy(self, problem, state):
        return np.full(problem.shape, 1.0 / problem.A)

    def update(self, problem, state, episode, draws):
        self.heard.append((problem.episodes, episode.index, episode.total))
        return state


def test_runs_are_1_2_4_and_each_starts_anew(monkeypatch):
    monkeypatch.setattr(learners, "_own", lambda path: Recorder)  # a test's own module cannot be imported by its name
    learner = Doubling(learner=Recorder())
    problem = Problem(H=1, S=1, A=1, episodes=None)
    Recorder.heard.clear()
    session = ab.start(learner, problem)
    for k in range(8):
        session.update([0], [0], k / 10)
    assert Recorder.heard == [
        ("init", 1), (1, 0, 0.0),
        ("init", 2), (2, 0, 0.1), (2, 1, 0.2),
        ("init", 4), (4, 0, 0.3), (4, 1, 0.4), (4, 2, 0.5), (4, 3, 0.6),
        ("init", 8), (8, 0, 0.7),
    ]  # fmt: skip
    assert not learner.needs.late_feedback


@pytest.mark.parametrize("episodes", [None, 11])
def test_each_run_is_the_wrapped_learner_told_that_k(episodes):
    mdp = ab.instances.make("random", states=3, actions=2, horizon=3, seed=0)
    wrapped = PolicyOptimizationKnown(bonus_scale=0.3)
    problem = Problem(H=3, S=3, A=2, episodes=episodes, transition=mdp)
    session = ab.start(Doubling(learner=wrapped), problem)
    rng = np.random.default_rng(0)
    k = 0
    for planned in (1, 2, 4, 8):
        alone = ab.start(wrapped, Problem(H=3, S=3, A=2, episodes=planned, transition=mdp))
        for _ in range(min(planned, 11 - k)):
            np.testing.assert_array_equal(session.policy, alone.policy)
            played = rng.integers(3, size=3), rng.integers(2, size=3), float(rng.random() * 3)
            session.update(*played)
            alone.update(*played)
            k += 1


def test_it_is_kept_as_name_and_arguments():
    assert Doubling().learner == "po-known"
    assert Doubling(learner=PolicyOptimizationKnown()).learner == "po-known"
    told = Doubling(learner=PolicyOptimizationKnown(bonus_scale=0.5))
    assert told.learner == {"name": "po-known", "arguments": {"bonus_scale": 0.5}}
    again = learners.make("doubling", **told.arguments)
    assert again.inner == told.inner
    assert repr(again) == repr(told)
    bound = again.bound(Problem(H=2, S=2, A=2, episodes=7, transition=np.full((2, 2, 2, 2), 0.5)))
    assert "runs=3" in repr(bound)
    assert Doubling(learner="scrible").reconstructed  # as the wrapped one
    assert not Doubling().reconstructed


def test_a_session_of_it_is_saved_and_loaded(tmp_path):
    problem = Problem(H=2, S=2, A=2, episodes=None)
    one = ab.start(Doubling(learner=learners.make("ucbvi-ts", v_scale=0.1)), problem, seed=3)
    rng = np.random.default_rng(0)
    for k in range(12):
        if k in (3, 7):
            one.save(tmp_path / "session")
            two = ab.Session.load(tmp_path / "session")
            np.testing.assert_array_equal(one.policy, two.policy)
            one = two
        one.update(rng.integers(2, size=2), rng.integers(2, size=2), float(rng.random()))


def test_draws_of_a_restart_do_not_repeat_those_of_the_last_update():
    drawn = []

    class Spy(Draws):
        def uniform(self, size):
            out = super().uniform(size)
            drawn.extend(out.ravel())
            return out

    learner = Doubling(learner="ucbvi-ts")
    problem = Problem(H=2, S=2, A=2, episodes=None)
    state = learner.init(problem, Draws(0, 0, 0, 1))
    seen = ab.Episode(0, np.zeros(2, np.int64), np.zeros(2, np.int64), total=1.0)
    learner.update(problem, state, seen, Spy(0, 0, 0, 2))
    assert len(drawn) == 16  # the update's 8 numbers, then the restart's 8
    assert len(set(drawn)) == 16


class OwnState(NamedTuple):
    policy_hsa: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Own(Learner[OwnState]):
    needs = Needs()
    fault: str = ""

    def init(self, problem, draws):
        return OwnState(np.full(problem.shape, (2.0 if self.fault == "policy" else 1.0) / problem.A))

    def policy(self, problem, state):
        return state.policy_hsa

    def update(self, problem, state, episode, draws):
        if self.fault == "update":
            state.policy_hsa[:] = 7.0
            raise ArithmeticError("too small")
        return state


def test_a_users_learner_is_one_within_it_too(monkeypatch, tmp_path):
    """Nobody looked at its policies, its arrays stayed half written, and what was saved of it could not be loaded."""
    monkeypatch.setattr(learners, "_own", lambda path: Own)
    problem = Problem(H=2, S=2, A=2, episodes=None)
    with pytest.raises(InvalidInputError, match=r"policy of doubling\[0, 0\] sums to 2, but"):
        _ = ab.start(Doubling(learner=Own(fault="policy")), problem).policy
    failing = ab.start(Doubling(learner=Own(fault="update")), problem)
    with pytest.raises(ArithmeticError, match="too small"):
        failing.update([0, 0], [0, 0], 1.0)
    assert (failing.policy == 0.5).all()
    failing.save(tmp_path / "session")
    assert (ab.Session.load(tmp_path / "session").policy == 0.5).all()


def test_a_new_version_of_the_wrapped_learner_is_one_of_its_own(monkeypatch):
    learner, other = Doubling(), Doubling(learner="po-unknown")
    before = learner.version
    monkeypatch.setattr(PolicyOptimizationKnown, "version", PolicyOptimizationKnown.version + 1)
    assert Doubling().version > before
    assert Doubling(learner="po-unknown").version == other.version
    by_wrapped = Doubling().version
    monkeypatch.setattr(Doubling, "version", Doubling.version + 1)
    assert by_wrapped != Doubling().version != before  # which of the two was raised makes a difference


def test_what_it_cannot_wrap_is_refused():
    with pytest.raises(InvalidInputError, match="must not be 'doubling' itself"):
        Doubling(learner=Doubling())
    with pytest.raises(InvalidInputError, match="but has the keys 'id'"):
        Doubling(learner={"id": "po-known"})
    with pytest.raises(ab.errors.UnknownNameError, match="Did you mean 'po-known'"):
        Doubling(learner="po-knwn")
    with pytest.raises(InvalidInputError, match="has no argument 'bonus'"):
        Doubling(learner={"name": "po-known", "arguments": {"bonus": 1.0}})
    with pytest.raises(InvalidInputError, match="po-known needs known dynamics"):
        ab.start(Doubling(), Problem(H=2, S=2, A=2, episodes=None))
