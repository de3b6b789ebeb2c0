"""What the world is: a finite-horizon Markov decision process given by tables, validated once and then immutable.

An MDP here is (H, S, A, s_init, p): horizon, states, actions, where an episode starts, and the transition function
p_h(s'|s, a).  Losses are no part of it: an adversary sets them (`aggbandit.adversaries`), and a learner that knows the
dynamics may hold a `TabularMDP` without holding a single loss.

Three forms are kept as they are given, none is unfolded into another unless asked for:

    dense, horizon-dependent   (H, S, A, S)
    dense, stationary          (S, A, S) with `horizon=H`, stored once
    sparse                     n successors per row, (S, A, n) or (H, S, A, n)

Inside they all have a leading axis of length T, which is 1 where p is the same at every step and H otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from aggbandit._arrays import AnyArray, FloatArray, IntArray
from aggbandit._checks import as_array, as_floats, place, require_distributions, require_integer
from aggbandit.errors import InvalidInputError

DENSE_LIMIT_BYTES = 10**9
MAX_HORIZON = 2**32 - 1  # a step is one word of the random numbers' counter


class Origin(NamedTuple):
    """Which instance an MDP was made from: `aggbandit.instances.make(name, **dict(arguments))` makes it again."""

    name: str
    arguments: tuple[tuple[str, Any], ...]


@final
class TabularMDP:
    """A finite-horizon MDP: `TabularMDP(transition, horizon=None, initial_state=0)`.

    transition      p_h(s'|s, a): (H, S, A, S), or (S, A, S) together with `horizon` when it is the same at every step
    horizon         H; needed with (S, A, S), may be left out with (H, S, A, S)
    initial_state   a state, or a distribution (S,) over states
    state_names, action_names   optional, for people to read; "s0", "s1", ... and "a0", "a1", ... otherwise

    Arrays are copied and read-only.  The transition out of the last step is never used, but must be there and valid.

    >>> import numpy as np
    >>> flip_or_stay = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    >>> TabularMDP(flip_or_stay, horizon=3)
    TabularMDP(H=3, S=2, A=2, stationary, initial_state=0)
    """

    H: int
    S: int
    A: int
    initial_state: int | FloatArray  # as given
    initial: FloatArray  # (S,), always the distribution
    origin: Origin | None  # the instance it was made from, None for a user's own

    _stored: FloatArray | None  # (T, S, A, S), None where sparse
    _next_states: IntArray | None  # (T, S, A, n), None where dense
    _probabilities: FloatArray | None
    _state_names: tuple[str, ...] | None
    _action_names: tuple[str, ...] | None

    def __init__(
        self,
        transition: Any,
        horizon: int | None = None,
        initial_state: Any = 0,
        *,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> None:
        given = as_array("transition", transition)
        if given.ndim not in (3, 4) or 0 in given.shape or given.shape[-1] != given.shape[-3]:
            raise InvalidInputError(
                f"transition must have shape (H, S, A, S), or (S, A, S) with horizon=H, every axis at least 1, "
                f"but has {given.shape}."
            )
        H = _horizon("transition", given, horizon, "S")
        if given.ndim == 4 and given.strides[0] == 0:
            given = given[:1]  # H times the same memory, as `transition` of a stationary MDP is: kept once
        given = as_floats("transition", given)
        require_distributions("transition", given)
        stored = _own(given, np.float64)
        _, S, A, _ = stored.shape
        self._assemble(H, S, A, initial_state, state_names, action_names, stored=stored)

    @classmethod
    def sparse(
        cls,
        next_states: Any,
        probabilities: Any,
        horizon: int | None = None,
        initial_state: Any = 0,
        *,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
    ) -> TabularMDP:
        """The MDP whose rows have n successors: from (s, a) to `next_states[s, a, i]` with `probabilities[s, a, i]`.

        Both are (S, A, n) together with `horizon` when the same at every step, or (H, S, A, n).  A row with fewer
        successors is padded with probability 0 and any valid state.  A successor named twice gets the sum.

        >>> mdp = TabularMDP.sparse([[[0, 1]], [[1, 0]]], [[[0.5, 0.5]], [[1.0, 0.0]]], horizon=4)
        >>> mdp
        TabularMDP(H=4, S=2, A=1, stationary, 2 successors per row, initial_state=0)
        >>> mdp.transition[0, :, 0]
        array([[0.5, 0.5],
               [0. , 1. ]])
        """
        successors = as_array("next_states", next_states)
        given = as_floats("probabilities", probabilities)
        if successors.dtype.kind not in "iu":
            raise InvalidInputError(f"next_states must hold integers, but its dtype is {successors.dtype}.")
        if successors.ndim not in (3, 4) or 0 in successors.shape:
            raise InvalidInputError(
                f"next_states must have shape (H, S, A, n), or (S, A, n) with horizon=H, every axis at least 1, "
                f"but has {successors.shape}."
            )
        if given.shape != successors.shape:
            raise InvalidInputError(
                f"probabilities must have the shape of next_states, {successors.shape}, but has {given.shape}."
            )
        H = _horizon("next_states", successors, horizon, "n")
        S, A = successors.shape[-3:-1]
        outside = (successors < 0) | (successors >= S)
        if outside.any():
            first = np.argwhere(outside)[0]
            raise InvalidInputError(
                f"{place('next_states', first)} is {successors[tuple(first)]}, but every successor must be a state "
                f"between 0 and {S - 1}, also where its probability is 0 (put 0 there)."
            )
        require_distributions("probabilities", given)
        mdp = cls.__new__(cls)
        mdp._assemble(
            H,
            S,
            A,
            initial_state,
            state_names,
            action_names,
            next_states=_own(successors, np.int64),
            probabilities=_own(given, np.float64),
        )
        return mdp

    def _assemble(
        self,
        H: int,
        S: int,
        A: int,
        initial_state: Any,
        state_names: Sequence[str] | None,
        action_names: Sequence[str] | None,
        *,
        stored: AnyArray | None = None,
        next_states: AnyArray | None = None,
        probabilities: AnyArray | None = None,
    ) -> None:
        initial = as_initial_distribution(initial_state, S)
        self.__dict__.update(
            H=H,
            S=S,
            A=A,
            initial=initial,
            initial_state=int(initial_state) if np.ndim(initial_state) == 0 else initial,
            origin=None,
            _stored=stored,
            _next_states=next_states,
            _probabilities=probabilities,
            _state_names=_names("state_names", state_names, S, "S"),
            _action_names=_names("action_names", action_names, A, "A"),
        )

    @property
    def is_stationary(self) -> bool:
        """Whether p is the same at every step, and stored once."""
        return len(self._rows) == 1

    @property
    def is_sparse(self) -> bool:
        """Whether it holds n successors per row instead of all S."""
        return self._stored is None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        return self.H, self.S, self.A

    @property
    def state_names(self) -> tuple[str, ...]:
        """S names, for people to read."""
        return self._state_names or tuple(f"s{s}" for s in range(self.S))

    @property
    def action_names(self) -> tuple[str, ...]:
        """A names, for people to read."""
        return self._action_names or tuple(f"a{a}" for a in range(self.A))

    @cached_property
    def transition(self) -> FloatArray:
        """p_h(s'|s, a), read-only (H, S, A, S): a view of stride 0 where stationary, made on demand where sparse."""
        stored = self._stored if self._stored is not None else self._unfolded()
        return np.broadcast_to(stored, (self.H, *stored.shape[1:]))

    @property
    def stored(self) -> FloatArray:
        """p as it is stored, C-contiguous (T, S, A, S); only where dense."""
        if self._stored is None:
            raise InvalidInputError(
                "mdp.stored belongs to dense MDPs, but this one is sparse. Use mdp.next_states and mdp.probabilities, "
                "or mdp.transition for the dense form."
            )
        return self._stored

    @property
    def next_states(self) -> IntArray:
        """The successors of each row, int64 (T, S, A, n); only where sparse."""
        if self._next_states is None:
            raise InvalidInputError("mdp.next_states belongs to sparse MDPs, but this one is dense. Use mdp.stored.")
        return self._next_states

    @property
    def probabilities(self) -> FloatArray:
        """The probability of each successor, float64 (T, S, A, n); only where sparse."""
        if self._probabilities is None:
            raise InvalidInputError("mdp.probabilities belongs to sparse MDPs, but this one is dense. Use mdp.stored.")
        return self._probabilities

    @cached_property
    def cumulative(self) -> FloatArray:
        """Cumulative sums of each row for sampling, (T, S, A, S) or (T, S, A, n) where sparse.

        The successor for u in [0, 1) is the one at `#{j : cumulative[j] <= u}`.  From the row's last positive
        probability on the entries are +inf, so that neither rounding nor a u next to 1 leads to a successor of
        probability 0.
        """
        return _cumulative(self._rows)

    @cached_property
    def initial_cumulative(self) -> FloatArray:
        """The same for the first state, (S,)."""
        return _cumulative(self.initial)

    def digest(self) -> str:
        """sha256 of all that numbers depend on: sizes, dynamics as stored, initial distribution; not the names."""
        sha = hashlib.sha256(f"TabularMDP 1 H={self.H} S={self.S} A={self.A} sparse={self.is_sparse}".encode())
        for array in (self._stored, self._next_states, self._probabilities, self.initial):
            if array is not None:
                sha.update(f"{array.shape}".encode())
                sha.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
        return sha.hexdigest()

    @property
    def _rows(self) -> FloatArray:
        """The probabilities as stored, dense or sparse."""
        return self.probabilities if self._stored is None else self._stored

    def _unfolded(self) -> FloatArray:
        T = self.next_states.shape[0]
        size = T * self.S * self.A * self.S * 8
        if size > DENSE_LIMIT_BYTES:
            raise InvalidInputError(
                f"mdp.transition of this sparse MDP would take {size / 1e9:.3g} GB, but the dense form is made up to "
                f"{DENSE_LIMIT_BYTES / 1e9:g} GB only. Use mdp.next_states and mdp.probabilities."
            )
        dense = np.zeros((T * self.S * self.A, self.S))
        rows = np.arange(dense.shape[0])[:, None]
        n = self.next_states.shape[-1]
        # add.at, not assignment: a successor that is named twice gets the sum
        np.add.at(dense, (rows, self.next_states.reshape(-1, n)), self.probabilities.reshape(-1, n))
        return _read_only(dense.reshape(T, self.S, self.A, self.S))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name}: a TabularMDP is immutable. Make a new one.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete {name}: a TabularMDP is immutable.")

    def __getstate__(self) -> dict[str, Any]:
        derived = ("transition", "cumulative", "initial_cumulative")
        return {name: value for name, value in self.__dict__.items() if name not in derived}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                _read_only(value)  # pickle brings arrays back writeable
        self.__dict__.update(state)

    def __copy__(self) -> TabularMDP:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TabularMDP:
        return self

    def __repr__(self) -> str:
        parts = [f"H={self.H}", f"S={self.S}", f"A={self.A}"]
        parts.append("stationary" if self.is_stationary else "horizon-dependent")
        if self.is_sparse:
            n = self.next_states.shape[-1]
            parts.append(f"{n} successor{'s' * (n > 1)} per row")
        first = self.initial_state
        parts.append(f"initial_state={first}" if isinstance(first, int) else "initial_state=a distribution")
        if self.origin is not None:
            parts.append(f"instance={self.origin.name!r}")
        return f"TabularMDP({', '.join(parts)})"


def as_initial_distribution(initial_state: Any, S: int) -> FloatArray:
    """The distribution of the first state, read-only (S,), from a state or a distribution over states."""
    if as_array("initial_state", initial_state).ndim == 0:
        if not isinstance(initial_state, (int, np.integer)):
            raise InvalidInputError(
                f"initial_state must be a state, that is an integer, or a distribution of shape (S,) = {(S,)}, "
                f"but is {initial_state!r}."
            )
        s = require_integer("initial_state", initial_state, low=0, high=S - 1)
        return _read_only(np.eye(1, S, s)[0].copy())
    given = as_floats("initial_state", initial_state)
    if given.shape != (S,):
        raise InvalidInputError(
            f"initial_state must be a state or a distribution of shape (S,) = {(S,)}, but has shape {given.shape}."
        )
    require_distributions("initial_state", given)
    return _read_only(np.array(given, dtype=np.float64))


def with_origin(mdp: TabularMDP, name: str, arguments: Mapping[str, Any]) -> TabularMDP:
    """The same MDP, sharing all arrays, that remembers the instance it was made from."""
    twin = TabularMDP.__new__(TabularMDP)
    twin.__dict__.update(mdp.__getstate__(), origin=Origin(name, tuple(arguments.items())))
    return twin


def _horizon(name: str, array: AnyArray, horizon: int | None, last: str) -> int:
    """H from the argument, the array's first axis, or both where they agree."""
    if horizon is not None:
        horizon = require_integer("horizon", horizon, low=1)
        if horizon > MAX_HORIZON:
            raise InvalidInputError(f"horizon is {horizon}, but must be at most {MAX_HORIZON}.")
    if array.ndim == 3:
        if horizon is None:
            raise InvalidInputError(
                f"{name} has shape (S, A, {last}) = {array.shape}, the same at every step, so horizon= must say how "
                f"many steps an episode has. Otherwise give (H, S, A, {last})."
            )
        return horizon
    if horizon is not None and horizon != array.shape[0]:
        raise InvalidInputError(
            f"horizon is {horizon}, but {name} has shape (H, S, A, {last}) = {array.shape}, so that H = "
            f"{array.shape[0]}. Leave horizon out, or give (S, A, {last})."
        )
    return int(array.shape[0])


def _own(array: AnyArray, dtype: type) -> AnyArray:
    """A read-only C-contiguous copy with the leading axis T."""
    copy: AnyArray = np.array(array, dtype=dtype, order="C")
    return _read_only(copy if copy.ndim == 4 else copy[None])


def _read_only(array: AnyArray) -> AnyArray:
    array.flags.writeable = False
    if isinstance(array.base, np.ndarray):
        array.base.flags.writeable = False
    return array


def _cumulative(rows: FloatArray) -> FloatArray:
    sums = np.cumsum(rows, axis=-1)
    n = rows.shape[-1]
    last_positive = n - 1 - np.argmax(rows[..., ::-1] > 0.0, axis=-1)
    sums[np.arange(n) >= last_positive[..., None]] = np.inf
    return _read_only(sums)


def _names(name: str, given: Sequence[str] | None, size: int, axis: str) -> tuple[str, ...] | None:
    if given is None:
        return None
    if isinstance(given, str):
        raise InvalidInputError(
            f"{name} must be a sequence of {axis} = {size} texts, but is the single text {given!r}."
        )
    try:
        names: tuple[Any, ...] = tuple(given)
    except TypeError:
        raise InvalidInputError(f"{name} must be a sequence of {axis} = {size} texts, but is {given!r}.") from None
    if len(names) != size:
        raise InvalidInputError(f"{name} must have one name for each of {axis} = {size}, but has {len(names)}.")
    seen: set[str] = set()
    for i, text in enumerate(names):
        if not isinstance(text, str) or not text:
            raise InvalidInputError(f"{place(name, (i,))} must be a text that is not empty, but is {text!r}.")
        if text in seen:
            raise InvalidInputError(f"{place(name, (i,))} is {text!r} again, but names must differ.")
        seen.add(text)
    return names
