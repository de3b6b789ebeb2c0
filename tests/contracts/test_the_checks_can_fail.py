"""Each contract check, fed a learner or a sequence that breaks its rule, says so; a sound one passes them all."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.testing import ADVERSARY_CHECKS, LEARNER_CHECKS, check_adversary, check_learner

MDP = ab.instances.make("random", states=3, actions=2, horizon=4, seed=0)


class State(NamedTuple):
    weights_hsa: Any
    count: int
    log: list[float]


@dataclass(frozen=True, kw_only=True)
class Sound(ab.Learner[State]):
    """A little learner of one's own: keeps to the contract, and is broken below in one way at a time."""

    needs = ab.Needs(losses="both")

    rate: float = 0.1

    def init(self, problem: Problem, draws: Draws) -> State:
        return State(np.zeros(problem.shape), 0, [])

    def policy(self, problem: Problem, state: State) -> Any:
        weights = np.exp(state.weights_hsa - state.weights_hsa.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        steps = np.arange(problem.H)
        state.weights_hsa[steps, episode.states, episode.actions] -= self.rate * episode.total
        return State(state.weights_hsa, state.count + 1, [])


class NotSummingToOne(Sound):
    def policy(self, problem: Problem, state: State) -> Any:
        return 1.001 * super().policy(problem, state)


class WritesWhenRead(Sound):
    def policy(self, problem: Problem, state: State) -> Any:
        state.weights_hsa[0, 0, 0] += 0.01
        return super().policy(problem, state)


class HasItsOwnDice(Sound):
    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        state.weights_hsa[:] += np.random.default_rng().normal(size=problem.shape)
        return super().update(problem, state, episode, draws)


class WritesIntoTheTable(Sound):
    needs = ab.Needs(feedback="full")

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.table is not None
        episode.table.flags.writeable = True
        episode.table[:] = 0.0
        return state


class ChangesItsConfiguration(Sound):
    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        object.__setattr__(self, "rate", self.rate / 2)
        return super().update(problem, state, episode, draws)

    def bound(self, problem: Problem) -> Any:
        return self


class ForgetsOnSaving(Sound):
    notes: ClassVar[dict[int, int]] = {}  # what it knows lies outside the state, by the identity of its arrays

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        key = id(state.weights_hsa)
        self.notes[key] = self.notes.get(key, 0) + 1 if state.count else 1
        state.weights_hsa[0, 0, 0] -= 0.01 * self.notes[key]
        return super().update(problem, state, episode, draws)


class Hoards(Sound):
    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        after = super().update(problem, state, episode, draws)
        return State(after.weights_hsa, after.count, [*state.log, 0.1])


class LooksForLosses(Sound):
    needs = ab.Needs(feedback="aggregate")

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        assert episode.losses is not None, "the losses of each step are hidden from me"
        return state


class Overflows(Sound):
    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        np.exp(np.float64(1000.0 if episode.total == problem.H else 0.0))
        return super().update(problem, state, episode, draws)


class DividesByWhatItKnows(Sound):
    def policy(self, problem: Problem, state: State) -> Any:
        return super().policy(problem, state) / np.float64(problem.S > 1 and problem.H > 1)


class PrefersTheFirstAction(Sound):
    def policy(self, problem: Problem, state: State) -> Any:
        policy = 0.9 * super().policy(problem, state)
        policy[:, :, 0] += 0.1
        return policy


class Forgets(Sound):
    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> Any:
        super().update(problem, state, episode, draws)


class Divides(Sound):
    def policy(self, problem: Problem, state: State) -> Any:
        return 1 / len(state.log)


class Gaps(Sound):
    def policy(self, problem: Problem, state: State) -> Any:
        return super().policy(problem, state) * np.nan


class Flat(Sound):
    def policy(self, problem: Problem, state: State) -> Any:
        return super().policy(problem, state)[0]


class Words(Sound):
    def policy(self, problem: Problem, state: State) -> Any:
        return super().policy(problem, state).astype(str)


class Negative(Sound):
    def policy(self, problem: Problem, state: State) -> Any:
        return super().policy(problem, state) * [3.0, -1.0]


class NoNeeds(Sound):
    needs: Any = {"feedback": "aggregate"}


class ByHand(Sound):
    def __init__(self) -> None:
        object.__setattr__(self, "rate", 0.2)


BROKEN = {
    "policies_are_distributions": NotSummingToOne,
    "reading_the_policy_changes_nothing": WritesWhenRead,
    "same_inputs_give_the_same_bits": HasItsOwnDice,
    "inputs_are_not_modified": WritesIntoTheTable,
    "the_configuration_is_frozen": ChangesItsConfiguration,
    "saving_mid_run_changes_nothing": ForgetsOnSaving,
    "the_state_does_not_grow": Hoards,
    "only_its_own_level_is_read": LooksForLosses,
    "extreme_feedback_raises_no_warning": Overflows,
    "the_smallest_and_oddest_problems_are_survived": DividesByWhatItKnows,
    "relabelled_states_and_actions_relabel_the_policy": PrefersTheFirstAction,
}


def test_a_sound_learner_passes() -> None:
    check_learner(Sound())


def test_every_check_has_its_culprit() -> None:
    assert set(BROKEN) | {"the_fused_engine_equals_the_plain_one"} == set(LEARNER_CHECKS)


@pytest.mark.parametrize("check", BROKEN)
def test_learner_check_fails(check: str) -> None:
    with pytest.raises((AssertionError, RuntimeWarning, ValueError), match=r"."):
        LEARNER_CHECKS[check](BROKEN[check]())
    with pytest.raises((AssertionError, RuntimeWarning, ValueError), match=r"."):
        check_learner(BROKEN[check]())


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (
            Forgets,
            r"Forgets breaks policies_are_distributions: InvalidInputError: update of .*:Forgets returned None, but",
        ),
        (Divides, r"Divides breaks policies_are_distributions: ZeroDivisionError: division by zero$"),
        (Gaps, r"Gaps breaks policies_are_distributions: episode 0: the policy is not finite$"),
        (Flat, r"Flat breaks policies_are_distributions: episode 0: the policy has shape \(3, 2\)$"),
        (Words, r"Words breaks policies_are_distributions: episode 0: the policy has dtype <U32$"),
        (Negative, r"Negative breaks policies_are_distributions: episode 0: a probability is negative$"),
        (DividesByWhatItKnows, r"_are_survived: H, S, A = 1, 1, 1, K = 1: RuntimeWarning: divide by zero"),
        (Overflows, r"raises_no_warning: losses of 1\.0, K = 1: RuntimeWarning: overflow"),
        (NoNeeds, r"^needs of .*:NoNeeds must be an aggbandit\.Needs, but is \{'feedback': 'aggregate'\}\. Write"),
        (ByHand, r"^.*:ByHand must be a frozen dataclass .*, but ByHand has an __init__ of its own\. Put @dataclass"),
    ],
)
def test_what_is_wrong_is_told_with_the_learner_and_the_check(learner: type[Sound], message: str) -> None:
    """What a learner raised used to come out of the checks as it was, and NaN as an error of NumPy's dice."""
    with pytest.raises(AssertionError, match=message):
        check_learner(learner())


def test_a_fused_engine_that_differs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from aggbandit.simulation.engines import registry

    path = f"{Sound.__module__}:{Sound.__qualname__}"
    monkeypatch.setitem(registry.FUSED, path, "aggbandit.simulation.engines.constant")
    with pytest.raises(AssertionError, match="the fused engine ends with other policies"):
        LEARNER_CHECKS["the_fused_engine_equals_the_plain_one"](Sound())


def test_exemptions_must_name_a_check() -> None:
    class Wrong(Sound):
        exempt: ClassVar[dict[str, str]] = {"the_state_doesnt_grow": "misspelt"}

    with pytest.raises(AssertionError, match="exempt names no check: the_state_doesnt_grow"):
        check_learner(Wrong())
    with pytest.raises(AssertionError, match="is no aggbandit.Learner instance"):
        check_learner(Sound)  # type: ignore[arg-type]


class Cut:
    """A sequence that remembers how it was asked."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.table = np.full((4, 3, 2), 0.5)

    def tables(self, start: int, stop: int) -> Any:
        if self.fault == "tables_are_losses":
            return np.full((stop - start, 4, 3, 2), 1.5)
        if self.fault == "the_cut_leaves_no_trace":
            return np.random.default_rng(start).random((stop - start, 4, 3, 2))
        return np.broadcast_to(self.table, (stop - start, 4, 3, 2))


class Pieces(Cut):
    def segments(self, start: int, stop: int) -> Any:
        yield start, stop, self.table * 0.5


class Mean(Cut):
    mean_table = np.full((4, 3, 2), 2.0)


@pytest.mark.parametrize(
    ("check", "losses"),
    [
        ("tables_are_losses", Cut("tables_are_losses")),
        ("the_cut_leaves_no_trace", Cut("the_cut_leaves_no_trace")),
        ("segments_agree_with_tables", Pieces("")),
        ("blocks_hold_the_tables", Pieces("")),
        ("the_mean_is_a_table", Mean("")),
    ],
)
def test_adversary_check_fails(check: str, losses: Any) -> None:
    with pytest.raises((AssertionError, ab.errors.InvalidInputError), match=r"."):
        ADVERSARY_CHECKS[check](losses, MDP)
    with pytest.raises((AssertionError, ab.errors.InvalidInputError), match=r"."):
        check_adversary(losses, MDP)


def test_a_sound_sequence_passes() -> None:
    check_adversary(Cut(""), MDP)
    assert set(ADVERSARY_CHECKS) == {
        "tables_are_losses",
        "the_cut_leaves_no_trace",
        "segments_agree_with_tables",
        "the_mean_is_a_table",
        "blocks_hold_the_tables",
    }
