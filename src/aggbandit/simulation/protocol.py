"""The information barrier: what of a played episode reaches the learner."""

from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray, IntArray, frozen
from aggbandit._checks import as_floats, require_number, require_shape, require_within
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import AGGREGATE, SEMI_BANDIT, Episode, Needs, Problem

TOTAL_SLACK = 1e-9  # a sum of H losses in [0, 1] may pass H by rounding


def observed(
    needs: Needs, index: int, states: IntArray, actions: IntArray, table: FloatArray, policy: FloatArray | None
) -> Episode:
    """The episode as these needs allow to see it, made from the whole loss table.

    States and actions are read-only: they are what happened.  The total is summed in the order of the steps.
    """
    states, actions = frozen(states), frozen(actions)
    shown = policy if needs.late_feedback else None
    if needs.feedback not in (AGGREGATE, SEMI_BANDIT):
        return Episode(index, states, actions, table=frozen(table), policy=shown)
    losses = table[np.arange(len(states)), states, actions]
    if needs.feedback == SEMI_BANDIT:
        return Episode(index, states, actions, losses=frozen(losses), policy=shown)
    total = 0.0
    for loss in losses:
        total += float(loss)
    return Episode(index, states, actions, total=total, policy=shown)


def reported(
    needs: Needs, problem: Problem, index: int, states: Any, actions: Any, feedback: Any, policy: FloatArray | None
) -> Episode:
    """The episode that a user reports, checked against the problem and the feedback level."""
    H, S, A = problem.shape
    shown = policy if needs.late_feedback else None
    seen_states = as_indices("states", states, H, S, "S")
    seen_actions = as_indices("actions", actions, H, A, "A")
    if needs.feedback == AGGREGATE:
        if np.ndim(feedback) != 0:
            raise InvalidInputError(
                f"feedback must be one number, the episode's total loss, but has shape {np.shape(feedback)}."
            )
        total = require_number("feedback", _item(feedback), low=0.0, high=H * (1.0 + TOTAL_SLACK))
        return Episode(index, seen_states, seen_actions, total=total, policy=shown)
    values = as_floats("feedback", feedback)
    if needs.feedback == SEMI_BANDIT:
        require_shape("feedback", values, (H,), "(H,)")
        require_within("feedback", values, 0.0, 1.0)
        return Episode(index, seen_states, seen_actions, losses=frozen(values.copy()), policy=shown)
    require_shape("feedback", values, (H, S, A), "(H, S, A)")
    require_within("feedback", values, 0.0, 1.0)
    return Episode(index, seen_states, seen_actions, table=frozen(values.copy()), policy=shown)


def as_indices(name: str, values: Any, length: int, size: int, axis: str) -> IntArray:
    """`values` as (length,) int64 within 0 ... size - 1, a read-only copy."""
    array = np.asarray(values)
    require_shape(name, array, (length,), "(H,)")
    if array.dtype.kind not in "iu":
        raise InvalidInputError(f"{name} must hold integers, but has dtype {array.dtype}.")
    outside = (array < 0) | (array >= size)
    if outside.any():
        first = int(np.argmax(outside))
        raise InvalidInputError(
            f"{name}[{first}] is {array[first]}, but must lie in 0 ... {size - 1} ({axis} = {size})."
        )
    return frozen(array.astype(np.int64))


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray) else value
