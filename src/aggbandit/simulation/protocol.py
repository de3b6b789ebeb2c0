"""The information barrier: what of a played episode reaches the learner."""

from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray, IntArray, frozen
from aggbandit._checks import (
    as_array,
    as_floats,
    require_distributions,
    require_number,
    require_shape,
    require_within,
)
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import AGGREGATE, SEMI_BANDIT, Draws, Episode, Learner, Needs, Problem, inner_of

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
        # a copy: a view's base would be the tables of the episodes to come as well
        return Episode(index, states, actions, table=frozen(table.copy()), policy=shown)
    losses = table[np.arange(len(states)), states, actions]
    if needs.feedback == SEMI_BANDIT:
        return Episode(index, states, actions, losses=frozen(losses), policy=shown)
    total = 0.0
    for loss in losses:
        total += float(loss)
    return Episode(index, states, actions, total=total, policy=shown)


def played(learner: Learner[Any], problem: Problem, state: Any) -> FloatArray:
    """The learner's policy, contiguous float64 (H, S, A); one that did not come with this package is checked."""
    policy = learner.policy(problem, state)
    if is_own(learner):
        policy = as_floats(f"the policy of {learner.name}", policy)
        require_shape(f"the policy of {learner.name}", policy, problem.shape, "(H, S, A)")
        require_distributions(f"the policy of {learner.name}", policy)
    return np.ascontiguousarray(policy, dtype=np.float64)


def updated(learner: Learner[Any], problem: Problem, state: Any, episode: Episode, draws: Draws) -> Any:
    """The learner's state after this episode."""
    after = learner.update(problem, state, episode, draws)
    if after is None and state is not None:
        raise InvalidInputError(f"update of {learner.name} returned None, but must return the state: `return state`.")
    return after


def is_own(learner: Learner[Any]) -> bool:
    """Whether it, or one that it wraps, is a user's: the contract checks of this package have not seen it."""
    if type(learner).__module__.partition(".")[0] != "aggbandit":
        return True
    inner = inner_of(learner)
    return inner is not None and is_own(inner)


def reported(
    needs: Needs, problem: Problem, index: int, states: Any, actions: Any, feedback: Any, policy: FloatArray | None
) -> Episode:
    """The episode that a user reports, checked against the problem and the feedback level."""
    H, S, A = problem.shape
    shown = policy if needs.late_feedback else None
    seen_states = as_indices("states", states, H, S, "S")
    seen_actions = as_indices("actions", actions, H, A, "A")
    if needs.feedback == AGGREGATE:
        return Episode(index, seen_states, seen_actions, total=_total(feedback, H), policy=shown)
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
    array = as_array(name, values)
    require_shape(name, array, (length,), "(H,)")
    if array.dtype.kind not in "iu":
        raise InvalidInputError(f"{name} must hold integers, counted from 0, but its dtype is {array.dtype}.")
    outside = (array < 0) | (array >= size)
    if outside.any():
        first = int(np.argmax(outside))
        raise InvalidInputError(
            f"{name}[{first}] is {array[first]}, but must lie in 0 ... {size - 1} ({axis} = {size})."
        )
    return frozen(array.astype(np.int64))


def _total(feedback: Any, H: int) -> float:
    """The total loss of an episode: a number in [0, H]."""
    given = as_array("feedback", feedback)
    if given.ndim != 0:
        raise InvalidInputError(
            f"feedback must be one number, the episode's total loss, but has shape {given.shape}. "
            "Add the losses of its steps up."
        )
    total = require_number("feedback", given.item())
    if not 0.0 <= total <= H * (1.0 + TOTAL_SLACK):
        raise InvalidInputError(
            f"feedback is {total!r}, but the total of H = {H} losses in [0, 1] lies in [0, {H}]. Shift and scale "
            f"totals to [0, {H}]; a total reward R in [0, {H}] becomes the loss {H} - R."
        )
    return total
