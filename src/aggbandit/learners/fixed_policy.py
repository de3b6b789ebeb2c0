"""One policy, given by the user, whatever happens: a reference to compare with."""

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import as_floats, require_distributions, require_integer, require_shape, require_within
from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import AGGREGATE, BOTH, UNKNOWN, Draws, Episode, Learner, Needs, Problem


class State(NamedTuple):
    policy_hsa: FloatArray


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class FixedPolicy(Learner[State]):
    """The policy given, always; learns nothing.

    `given` is an action (taken everywhere), actions (H, S), or probabilities (H, S, A).

    Cost     O(1) an episode.
    """

    id = "fixed-policy"
    needs = Needs(feedback=AGGREGATE, dynamics=UNKNOWN, losses=BOTH, late_feedback=True)

    exempt = {"relabelled_states_and_actions_relabel_the_policy": "its argument names actions, which stay as given"}

    given: Any = 0  # an action, (H, S) actions, or (H, S, A) probabilities

    def check(self, problem: Problem) -> None:
        super().check(problem)
        _as_policy(self.given, problem)

    def init(self, problem: Problem, draws: Draws) -> State:
        return State(_as_policy(self.given, problem))

    def policy(self, problem: Problem, state: State) -> FloatArray:
        return state.policy_hsa

    def update(self, problem: Problem, state: State, episode: Episode, draws: Draws) -> State:
        return state


def _as_policy(given: Any, problem: Problem) -> FloatArray:
    H, S, A = problem.shape
    if np.ndim(given) == 0:
        action = require_integer("given", given, low=0, high=A - 1)
        return np.broadcast_to(np.eye(A)[action], (H, S, A))
    values = as_floats("given", given)
    if values.ndim == 3:
        require_shape("given", values, (H, S, A), "(H, S, A)")
        require_distributions("given", values)
        return frozen(values.copy())
    require_shape("given", values, (H, S), "(H, S), or (H, S, A)")
    require_within("given", values, 0, A - 1)
    if (values != np.floor(values)).any():
        raise InvalidInputError("given of shape (H, S) must hold actions, that is integers.")
    return frozen(np.eye(A)[values.astype(np.int64)])
