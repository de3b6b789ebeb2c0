"""The learner contract: what a learner is given, what it keeps, what it must answer.

A learner is a frozen configuration.  Its state is a NamedTuple of arrays (or lists of such), its randomness an
argument.  Whatever drives it (a session, `run`, a worker, a checkpoint) holds just (learner, problem, state):

    state  = learner.init(problem, draws)
    policy = learner.policy(problem, state)                   # (H, S, A), the policy to be played next
    state  = learner.update(problem, state, episode, draws)   # may reuse the buffers of the old state

It is told the problem (with the dynamics only where its needs say "known") and, after each episode, its own
trajectory and the feedback of its level: never the losses, the model or the environment's randomness.
"""

from __future__ import annotations

import copy
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from aggbandit._arrays import FloatArray, IntArray, frozen
from aggbandit._checks import as_array, require_integer
from aggbandit.errors import InvalidInputError
from aggbandit.mdp.tabular import TabularMDP, as_initial_distribution

AGGREGATE = "aggregate"
SEMI_BANDIT = "semi-bandit"
FULL = "full"
FEEDBACK_LEVELS = (AGGREGATE, SEMI_BANDIT, FULL)

KNOWN = "known"
UNKNOWN = "unknown"
DYNAMICS = (KNOWN, UNKNOWN)

ADVERSARIAL = "adversarial"
STOCHASTIC = "stochastic"
BOTH = "both"
LOSSES = (ADVERSARIAL, STOCHASTIC, BOTH)

CLOSED_FORM = "closed form"
CONVEX_PROBLEM = "convex problem"

INIT_STREAM = 1
UPDATE_STREAM = 2

NOT_TUNED = ("confidence", "total_delay", "given")  # numbers that belong to the problem or to the question

Resolved = Mapping[str, float | int | str | bool]


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a learner must see and be told, and for which losses its guarantee is stated."""

    feedback: str = AGGREGATE
    dynamics: str = UNKNOWN
    losses: str = ADVERSARIAL
    late_feedback: bool = False  # takes feedback out of turn; `Episode.policy` is then the policy that played it

    def __post_init__(self) -> None:
        for name, value, known in (
            ("feedback", self.feedback, FEEDBACK_LEVELS),
            ("dynamics", self.dynamics, DYNAMICS),
            ("losses", self.losses, LOSSES),
        ):
            if value not in known:
                raise InvalidInputError(f"needs.{name} must be one of {', '.join(known)}, but is {value!r}.")


@dataclass(frozen=True, slots=True)
class Episode:
    """One finished episode as a learner may see it: of the last four fields but one only its own level's is set."""

    index: int  # which episode, counted from 0
    states: IntArray  # (H,)
    actions: IntArray  # (H,)
    total: float | None = None  # aggregate feedback: the sum of the H losses, in [0, H]
    losses: FloatArray | None = None  # semi-bandit feedback: (H,), the losses met on the way
    table: FloatArray | None = None  # full information: (H, S, A), the whole loss table
    policy: FloatArray | None = None  # (H, S, A), the policy that played; only with `needs.late_feedback`


class Draws:
    """A learner's own random numbers at one moment: a pure function of (seed, replica, episode, stream).

    Nothing needs to be saved: each `init` and each `update` is handed a fresh one that starts at its own counter.
    """

    def __init__(self, seed: int, replica: int, episode: int, stream: int) -> None:
        self._seed = seed
        self._replica = replica
        self._episode = episode
        self._stream = stream
        self._block = 0

    def uniform(self, size: int | tuple[int, ...]) -> FloatArray:
        """Doubles in [0, 1)."""
        from aggbandit.kernels import philox

        out = np.empty(size)
        flat = out.reshape(-1)
        philox.fill(self._replica, self._episode, self._block, self._stream, np.uint64(self._seed), flat)
        self._block += (flat.size + 1) // 2
        return out

    def normal(self, size: int | tuple[int, ...]) -> FloatArray:
        """Standard normal variables, by Box and Muller."""
        out = np.empty(size)
        flat = out.reshape(-1)
        half = (flat.size + 1) // 2
        pairs = self.uniform((half, 2))
        radius = np.sqrt(-2.0 * np.log1p(-pairs[:, 0]))  # log1p(-u): u = 0 gives 0, u never reaches 1
        angle = 2.0 * np.pi * pairs[:, 1]
        both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
        flat[:] = both[: flat.size]
        return out


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What a learner may know before it starts.

    `transition` is given as (H, S, A, S), or (S, A, S) when the same at every step, or a `TabularMDP`, which is
    nothing but transitions and an initial state; None where the dynamics are unknown.  Read, it is always (H, S, A, S)
    and read-only; `dynamics` is the same as a `TabularMDP`, which may be sparse and goes into `aggbandit.planning`.
    `episodes` is None for a process without a planned end; learners whose step size needs K then refuse.
    """

    H: int
    S: int
    A: int
    episodes: int | None
    initial_state: Any = 0
    transition: Any = dataclasses.field(default=None, repr=False, compare=False)
    dynamics: TabularMDP | None = dataclasses.field(init=False, repr=False, compare=False)
    initial: FloatArray = dataclasses.field(init=False, repr=False, compare=False)  # (S,), the first state's law

    def __post_init__(self) -> None:
        for name in ("H", "S", "A"):
            require_integer(name, getattr(self, name), low=1)
        if self.episodes is not None:
            require_integer("episodes", self.episodes, low=1)
        dynamics = self.transition
        if dynamics is not None and not isinstance(dynamics, TabularMDP):
            horizon = self.H if as_array("transition", dynamics).ndim == 3 else None
            dynamics = TabularMDP(dynamics, horizon, self.initial_state)
        if dynamics is not None and self.shape != (dynamics.H, dynamics.S, dynamics.A):
            found = (dynamics.H, dynamics.S, dynamics.A)
            raise InvalidInputError(f"transition describes (H, S, A) = {found}, but the problem is {self.shape}.")
        object.__setattr__(self, "dynamics", dynamics)
        object.__setattr__(self, "initial", frozen(as_initial_distribution(self.initial_state, self.S)))
        if dynamics is not None and not np.array_equal(self.initial, dynamics.initial):
            raise InvalidInputError(
                f"initial_state is {self.initial_state}, but the TabularMDP given as transition starts elsewhere "
                f"(its initial_state is {dynamics.initial_state}). Give initial_state=mdp.initial_state."
            )
        if dynamics is not None:
            del self.__dict__["transition"]  # from here on made when asked for: a sparse one may be too large

    def __getattr__(self, name: str) -> Any:
        if name != "transition":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.dynamics.transition if self.dynamics is not None else None

    @classmethod
    def of(cls, mdp: TabularMDP, episodes: int | None, needs: Needs) -> Problem:
        """The problem that `mdp` poses to a learner with these needs."""
        known = mdp if needs.dynamics == KNOWN else None
        return cls(H=mdp.H, S=mdp.S, A=mdp.A, episodes=episodes, initial_state=mdp.initial_state, transition=known)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        return self.H, self.S, self.A

    def require_episodes(self, who: str) -> int:
        """K, for a learner that cannot do without."""
        if self.episodes is None:
            raise InvalidInputError(f"{who} needs the number of episodes; give episodes=, or wrap it in 'doubling'.")
        return self.episodes


del Problem.transition  # its default: it would be found before `__getattr__` is asked

StateT = TypeVar("StateT")


class Learner(ABC, Generic[StateT]):
    """Base of every learner: a frozen, keyword-only dataclass that defines `needs` and the three methods."""

    id: ClassVar[str] = ""  # the registered id; empty for a learner of one's own
    version: ClassVar[int] = 1  # raised whenever the same arguments come to mean other numbers
    reconstructed: ClassVar[bool] = False  # built without the paper's full text at hand
    update_by: ClassVar[str] = ""  # CLOSED_FORM, or CONVEX_PROBLEM where every episode solves one; else not told
    exempt: ClassVar[Mapping[str, str]] = {}  # contract checks that cannot hold for it, each with the reason

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__repr__" not in cls.__dict__:
            # @dataclass writes a __repr__ of its own unless the class has one in its own body
            cls.__repr__ = Learner.__repr__  # type: ignore[method-assign]

    @property
    @abstractmethod
    def needs(self) -> Needs:
        """What this configuration must see and be told (a class attribute where it is always the same)."""

    @abstractmethod
    def init(self, problem: Problem, draws: Draws) -> StateT:
        """The state before the first episode."""

    @abstractmethod
    def policy(self, problem: Problem, state: StateT) -> FloatArray:
        """The policy to be played next, (H, S, A), rows summing to 1.  Changes nothing."""

    @abstractmethod
    def update(self, problem: Problem, state: StateT, episode: Episode, draws: Draws) -> StateT:
        """The state after this episode's feedback; may reuse the buffers of `state`."""

    def policy_at(self, problem: Problem, state: StateT, step: int, s: int) -> FloatArray:
        """The action probabilities (A,) at one place; worth overriding where S is large."""
        row: FloatArray = self.policy(problem, state)[step, s]
        return row

    @property
    def linear_features(self) -> Any:
        """(S, A, d) where the learner takes transitions and losses for linear in features, else None.

        Whoever holds the instance (`run`, a spec) checks that they express it; the learner cannot.
        """
        return None

    def resolved(self, problem: Problem) -> Resolved:
        """The numbers that this configuration comes to on this problem (step size, exploration, ...)."""
        return {}

    def check(self, problem: Problem) -> None:
        """Raise where this configuration cannot play this problem."""
        if self.needs.dynamics == KNOWN and problem.dynamics is None:
            raise InvalidInputError(f"{self.name} needs known dynamics, but the problem has transition=None.")

    @property
    def name(self) -> str:
        """The registered id, or `module:Class`."""
        return self.id or f"{type(self).__module__}:{type(self).__qualname__}"

    @property
    def arguments(self) -> dict[str, Any]:
        """The configuration's fields by name."""
        fields = getattr(self, "__dataclass_fields__", {})
        return {name: getattr(self, name) for name, field in fields.items() if field.init}

    @property
    def tuned(self) -> bool:
        """Whether a number was given by hand where the default is another, the theory's where there is one.

        Words choose between forms, and δ and delays are the user's to say: these are no tuning.
        """
        fields = getattr(self, "__dataclass_fields__", {})
        return any(
            _is_number(value) and name not in NOT_TUNED and fields[name].default is not dataclasses.MISSING
            and value != fields[name].default
            for name, value in self.arguments.items()
        )  # fmt: skip

    def bound(self, problem: Problem) -> Learner[StateT]:
        """The same configuration after `check`, whose repr also tells what it resolves to on `problem`."""
        self.check(problem)
        told = copy.copy(self)
        object.__setattr__(told, "_resolved", dict(self.resolved(problem)))
        return told

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        told = getattr(self, "_resolved", {})
        values = ", ".join(f"{k}={v:.6g}" if isinstance(v, float) else f"{k}={v}" for k, v in told.items())
        return f"{self.name}({arguments})" + (f" [{values}]" if values else "")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def inner_of(learner: Learner[Any]) -> Learner[Any] | None:
    """The learner that this one wraps, as its `inner`; None where it wraps none."""
    inner = getattr(learner, "inner", None)
    return inner if isinstance(inner, Learner) else None
