"""What an agent is made with: checked once, kept in its file, and held against what a later opening says."""

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import timedelta
from typing import Any

import numpy as np

from aggbandit._checks import require_integer, require_number
from aggbandit.agent import values
from aggbandit.errors import InvalidInputError
from aggbandit.learners.po_model_free import PolicyOptimizationModelFree

WIDEST = 1e100  # greatest bound: squares of scores are added up
MAX_SEED = 2**64 - 1


class Given:
    """The configuration as the caller gave it, complete or in part."""

    def __init__(self, told: dict[str, Any], learner: dict[str, float]) -> None:
        self._told = told
        self._learner = learner
        needed = [name for name in ("actions", "horizon", "bounds") if told[name] is None]
        self.missing = " and ".join(f"{name}=" for name in needed)
        self.complete: dict[str, Any] | None = None
        if not needed:
            self.complete = told | {"learner": PolicyOptimizationModelFree(**learner).arguments}

    def against(self, stored: dict[str, Any], name: str) -> dict[str, Any]:
        """What the file was made with, after checking that nothing given differs."""
        differing = [
            (key, stored[key], value)
            for key, value in self._told.items()
            if value is not None and key != "seed" and stored[key] != value
        ]
        differing += [
            (key, stored["learner"][key], value)
            for key, value in self._learner.items()
            if stored["learner"][key] != value
        ]
        for key, was, now in differing:
            if key == "actions":
                was, now = ([values.decode(bytes.fromhex(item)) for item in told] for told in (was, now))
            raise InvalidInputError(
                f"{name} was made with {key} = {was!r}, but is opened with {now!r}. Leave it out to go on as "
                "before, or name another file."
            )
        return stored


def listed(actions: Any) -> list[Any]:
    """The actions in the order given, NumPy's scalars as Python's."""
    if isinstance(actions, (str, bytes, Set, Mapping)) or not isinstance(actions, Iterable):
        raise InvalidInputError(f"actions must be a list of actions, but is {actions!r:.80}.")
    return [action.item() if isinstance(action, np.generic) else action for action in actions]


def given_configuration(
    actions: Sequence[Any] | None,
    horizon: int | None,
    bounds: tuple[float, float] | None,
    seed: int,
    step_scale: float | None,
    exploration: float | None,
    forget: float | None,
) -> Given:
    told: dict[str, Any] = {"actions": None, "horizon": None, "bounds": None}
    if actions is not None:
        keys = [values.encode(action, f"actions[{i}]").hex() for i, action in enumerate(actions)]
        if not keys:
            raise InvalidInputError("actions must name at least one action, but is empty.")
        first: dict[Any, int] = {}
        for i, action in enumerate(actions):
            if isinstance(action, float) and action != action:
                raise InvalidInputError("actions must not name NaN, which equals nothing, itself included.")
            if isinstance(action, bytearray):
                raise InvalidInputError(f"actions[{i}] is {action!r:.80}, which may change. Give bytes(...) of it.")
            j = first.setdefault(action, i)
            if j != i and keys[i] == keys[j]:
                raise InvalidInputError(f"actions[{i}] is {action!r}, which is there already.")
            if j != i:
                raise InvalidInputError(
                    f"actions[{i}] = {action!r} equals actions[{j}] = {actions[j]!r}, so that `policy` could not tell "
                    "them apart. Give them names."
                )
        told["actions"] = keys
    if horizon is not None:
        told["horizon"] = require_integer("horizon", horizon, low=1)
    if bounds is not None:
        try:
            low, high = bounds
        except (TypeError, ValueError):
            raise InvalidInputError(f"bounds must be (low, high) of an episode's total, but is {bounds!r}.") from None
        low, high = require_number("bounds[0]", low), require_number("bounds[1]", high)
        if not low < high:
            raise InvalidInputError(f"bounds must be (low, high) with low < high, but is ({low:g}, {high:g}).")
        if max(-low, high) > WIDEST or high - low < 1.0 / WIDEST:
            raise InvalidInputError(
                f"bounds must lie within {-WIDEST:g} and {WIDEST:g} and be at least {1.0 / WIDEST:g} apart, but are "
                f"({low!r}, {high!r}). Count in other units."
            )
        told["bounds"] = [low, high]
    told["seed"] = require_integer("seed", seed, low=0, high=MAX_SEED)
    numbers = {"step_scale": step_scale, "exploration": exploration, "forget": forget}
    learner = {name: value for name, value in numbers.items() if value is not None}
    PolicyOptimizationModelFree(**learner)
    return Given(told, learner)


def check_expiry(expire_after: int | timedelta | None) -> None:
    if isinstance(expire_after, timedelta):
        if expire_after <= timedelta(0):
            raise InvalidInputError(f"expire_after must be positive, but is {expire_after}.")
    elif expire_after is not None:
        require_integer("expire_after", expire_after, low=1)
