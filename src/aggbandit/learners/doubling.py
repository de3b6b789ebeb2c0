"""Any learner that needs K, for a process whose K nobody knows: restarts at 1, 2, 4, ... episodes."""

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from aggbandit._arrays import FloatArray
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Draws, Episode, Learner, Needs, Problem, Resolved

SPECIFIED = {"name", "arguments"}
VERSIONS = 1000  # a version of the wrapped learner counts as so many of its own


class State(NamedTuple):
    inner: Any  # the wrapped learner's state in this run
    run: int  # i: the run is planned for 2^i episodes
    done: int  # of which so many have been played


@final
@dataclass(frozen=True, kw_only=True)
class Doubling(Learner[State]):
    """Runs of 2^i episodes, i = 0, 1, 2, ...: the wrapped learner starts anew in each, told K = 2^i.

    The doubling trick: a regret of C K^α with probability 1 − δ for every K becomes at most C K^α · 2^α / (2^α − 1),
    with probability 1 − δ (1 + log2 K): 3.42 times the regret for α = 1/2.  Where the number of episodes is known, it
    is not used.  What it sees, is told and is made for is what the wrapped learner does and is.

    Paper    textbook: Cesa-Bianchi and Lugosi 2006, *Prediction, Learning, and Games*, Section 2.3.
    Departs  in nothing.  Feedback must come in order, whatever the wrapped learner could take.
    Cost     that of the wrapped learner.

    learner    an id, a configured learner, or {"name": id, "arguments": {...}}; kept as its name and arguments
    """

    id = "doubling"

    learner: Any = "po-known"  # the wrapped learner

    def __post_init__(self) -> None:
        inner = _made(self.learner)
        if isinstance(inner, Doubling):
            raise InvalidInputError("learner must not be 'doubling' itself: its runs need no K, one wrapping does.")
        object.__setattr__(self, "learner", _specified(inner))
        # not fields: what is kept is the name and the arguments
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "reconstructed", inner.reconstructed)
        object.__setattr__(self, "update_by", inner.update_by)
        # what it plays changes with either of them
        object.__setattr__(self, "version", type(self).version + VERSIONS * (inner.version - 1))

    @property
    def inner(self) -> Learner[Any]:
        """The wrapped learner."""
        found: Learner[Any] = self.__dict__["_inner"]
        return found

    @property
    def tuned(self) -> bool:
        return self.inner.tuned

    @property
    def needs(self) -> Needs:
        return dataclasses.replace(self.inner.needs, late_feedback=False)

    def check(self, problem: Problem) -> None:
        self.inner.check(run_of(problem, 0))

    @property
    def linear_features(self) -> Any:
        return self.inner.linear_features

    def resolved(self, problem: Problem) -> Resolved:
        if problem.episodes is None:
            return {}
        return {"runs": problem.episodes.bit_length()}  # runs 0 ... i hold 2^(i + 1) − 1 episodes

    def init(self, problem: Problem, draws: Draws) -> State:
        return State(self.inner.init(run_of(problem, 0), draws), 0, 0)

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return self.inner.policy(run_of(problem, state.run), state.inner)

    def policy_at(self, problem: Problem, state: State, step: int, s: int) -> FloatArray:
        return self.inner.policy_at(run_of(problem, state.run), state.inner, step, s)

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        told = dataclasses.replace(episode, index=state.done)
        inner = self.inner.update(run_of(problem, state.run), state.inner, told, draws)
        if state.done + 1 < 2**state.run:
            return State(inner, state.run, state.done + 1)
        return State(self.inner.init(run_of(problem, state.run + 1), draws), state.run + 1, 0)


def run_of(problem: Problem, run: int) -> Problem:
    """The same problem, planned for 2^run episodes."""
    planned = copy.copy(problem)  # everything else has been checked and may be shared
    object.__setattr__(planned, "episodes", 2**run)
    return planned


def _made(learner: Any) -> Learner[Any]:
    from aggbandit.learners import as_learner, make

    if not isinstance(learner, Mapping):
        return as_learner(learner)
    if "name" not in learner or not set(learner) <= SPECIFIED:
        raise InvalidInputError(
            f'learner must be an id, a configured learner or {{"name": id, "arguments": {{...}}}}, but has the keys '
            f"{', '.join(map(repr, learner))}."
        )
    return make(learner["name"], **learner.get("arguments", {}))


def _specified(learner: Learner[Any]) -> Any:
    """The id alone where all arguments are defaults, else name and arguments, those that are not."""
    from aggbandit.learners import get

    if get(learner.name) is not type(learner):
        raise InvalidInputError(
            f"learner must be one that its name {learner.name!r} leads to, so that it can be made again from a file, "
            f"but {type(learner).__qualname__} is not. Define it at the top of an importable module."
        )
    defaults = {field.name: field.default for field in dataclasses.fields(learner)}  # type: ignore[arg-type]
    arguments = {name: value for name, value in learner.arguments.items() if not _same(value, defaults[name])}
    return {"name": learner.name, "arguments": arguments} if arguments else learner.name


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)
