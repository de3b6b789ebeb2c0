"""A session: a learner driven by hand, one reported episode at a time, saved and loaded exactly."""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np

from aggbandit import _files
from aggbandit._arrays import FloatArray, frozen
from aggbandit._checks import require_integer
from aggbandit.errors import AggbanditError, InvalidInputError, OutOfOrderError
from aggbandit.learners import as_learner, make, require_told
from aggbandit.learners.base import INIT_STREAM, UPDATE_STREAM, Draws, Episode, Learner, Problem
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.interrupts import interrupts_held
from aggbandit.simulation.protocol import is_own, played, reported, updated
from aggbandit.simulation.state_trees import classes_of

KIND = "session"
FORMAT = 1
MAX_SEED = 2**64 - 1


def start(learner: Any, problem: Problem, *, seed: int = 0) -> Session:
    """A session of `learner` (an id or a configured learner) on `problem`, before the first episode.

    >>> import aggbandit as ab
    >>> session = ab.start("po-unknown", ab.Problem(H=3, S=4, A=2, episodes=100))
    >>> session.policy_at(0, 0)
    array([0.5, 0.5])
    >>> session.update(states=[0, 2, 1], actions=[1, 0, 0], feedback=1.5)
    >>> session.episode
    1
    """
    chosen = as_learner(learner)
    if not isinstance(problem, Problem):
        raise InvalidInputError(f"problem must be an aggbandit.Problem, but is {type(problem).__name__}.")
    seed = require_integer("seed", seed, low=0, high=MAX_SEED)
    bound = chosen.bound(problem)
    return Session(bound, problem, seed, bound.init(problem, Draws(seed, 0, 0, INIT_STREAM)))


class Session:
    """A learner between episodes.

    Read `policy` (or `policy_at`), act by it for one episode, then `update` with what was seen.  Where feedback may
    come late, call `begin` when an episode starts, so that its policy is remembered until the feedback arrives, and
    name the episode in `update`; learners whose needs do not allow late feedback refuse one that is out of turn.
    """

    def __init__(self, learner: Learner[Any], problem: Problem, seed: int, state: Any) -> None:
        self.learner = learner
        self.problem = problem
        self.seed = seed
        self._state = state
        self._oldest = 0  # every episode before has its feedback
        self._done: set[int] = set()  # those after it that have theirs already
        self._begun = 0  # episodes that have a policy to answer for
        self._policies: dict[int, FloatArray] = {}  # of the begun ones without feedback; late feedback only

    @property
    def episode(self) -> int:
        """The oldest episode without feedback, counted from 0."""
        return self._oldest

    @property
    def policy(self) -> FloatArray:
        """(H, S, A): the policy to be played next; a copy, reading it changes nothing."""
        return np.array(played(self.learner, self.problem, self._state))

    def policy_at(self, step: int, state: int) -> FloatArray:
        """(A,): the action probabilities at one step and state, without forming the whole policy where avoidable."""
        step = require_integer("step", step, low=0, high=self.problem.H - 1)
        state = require_integer("state", state, low=0, high=self.problem.S - 1)
        return np.array(self.learner.policy_at(self.problem, self._state, step, state), dtype=np.float64)

    def begin(self) -> int:
        """Note that an episode starts now, with the current policy; its index."""
        index = self._begun
        if self.problem.episodes is not None and index >= self.problem.episodes:
            raise OutOfOrderError(f"All {self.problem.episodes} episodes of this session have begun.")
        if not self.learner.needs.late_feedback and index > self._oldest:
            raise OutOfOrderError(
                f"Episode {self._oldest} has no feedback yet, and {self.learner.name} takes feedback in order: "
                f"update with it before episode {index} begins."
            )
        self._remember(index + 1, frozen(self.policy) if self.learner.needs.late_feedback else None)
        return index

    def update(self, states: Any, actions: Any, feedback: Any, episode: int | None = None) -> None:
        """Report an episode: states (H,), actions (H,), and what the learner's feedback level sees of the losses.

        `feedback` is the total, a float in [0, H] (aggregate); (H,) losses (semi-bandit); or the (H, S, A) table
        (full information).  `episode` is the index of the episode played; the default is the oldest one without
        feedback.  On any error nothing has changed.
        """
        index = self._turn(episode)
        needs = self.learner.needs
        late = needs.late_feedback
        today = frozen(self.policy) if late and index >= self._begun else None
        policy = self._policies[index] if late and today is None else today
        seen = reported(needs, self.problem, index, states, actions, feedback, policy)
        if is_own(self.learner):  # it may raise, or be stopped, with its arrays half written
            kept = copy.deepcopy(self._state)
            try:
                after = self._updated(seen)
                with interrupts_held():
                    self._finish(index, today, after)
                    kept = after  # what was stopped from here on is over
            except BaseException:
                self._state = kept
                raise
        else:
            with interrupts_held():
                self._finish(index, today, self._updated(seen))

    def _updated(self, seen: Episode) -> Any:
        draws = Draws(self.seed, 0, seen.index, UPDATE_STREAM)
        return updated(self.learner, self.problem, self._state, seen, draws)

    def _finish(self, index: int, policy: FloatArray | None, state: Any) -> None:
        """Episode `index` has its feedback."""
        self._state = state
        self._remember(index + 1, policy)
        self._policies.pop(index, None)
        self._done.add(index)
        while self._oldest in self._done:
            self._done.remove(self._oldest)
            self._oldest += 1

    def _turn(self, episode: Any) -> int:
        if episode is None:
            index = self._oldest
        elif isinstance(episode, (int, np.integer)) and not isinstance(episode, bool):
            index = int(episode)
        else:
            raise OutOfOrderError(f"episode must be the index of an episode, an integer, but is {episode!r}.")
        K = self.problem.episodes
        if index < 0:
            raise OutOfOrderError(f"There is no episode {index}; episodes are counted from 0.")
        if K is not None and index >= K:
            raise OutOfOrderError(f"Episode {index} is beyond the {K} episodes (0 ... {K - 1}) of this session.")
        if index < self._oldest or index in self._done:
            raise OutOfOrderError(f"Episode {index} has its feedback already; the next one without is {self._oldest}.")
        if index > self._oldest and not self.learner.needs.late_feedback:
            raise OutOfOrderError(
                f"Episode {index} is out of turn: {self.learner.name} takes feedback in order, and episode "
                f"{self._oldest} has none yet."
            )
        return index

    def _remember(self, begun: int, policy: FloatArray | None) -> None:
        """Episodes up to `begun` are under way; those not begun by name are taken to begin with this policy."""
        if policy is not None:
            for index in range(self._begun, begun):
                self._policies[index] = policy
        self._begun = max(self._begun, begun)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole session to `path` (temporary file, sync, rename); `Session.load` continues bit for bit."""
        problem = self.problem
        dynamics = problem.dynamics
        tree = {
            "learner": {"name": self.learner.name, "arguments": self.learner.arguments},
            "version": self.learner.version,
            "problem": {
                "H": problem.H,
                "S": problem.S,
                "A": problem.A,
                "episodes": problem.episodes,
                "initial_state": problem.initial_state
                if isinstance(problem.initial_state, int)
                else np.asarray(problem.initial_state),
            },
            "dynamics": None if dynamics is None else _dynamics_tree(dynamics),
            "seed": self.seed,
            "oldest": self._oldest,
            "done": sorted(self._done),
            "begun": self._begun,
            "late": [{"episode": index, "policy": policy} for index, policy in sorted(self._policies.items())],
            "state": np.frombuffer(self._dumped(), np.uint8),
        }
        _files.write_atomically(path, _files.sealed(_files.dump_tree(tree), KIND, FORMAT))

    def _dumped(self) -> bytes:
        """The learner's state as bytes; where `load` could not make it or the learner again, say so now."""
        state = _files.dump_tree(self._state)
        if is_own(self.learner):
            try:
                require_told(self.learner)
                make(self.learner.name, **self.learner.arguments)
                _files.load_tree(state, classes_of(self.learner))
            except AggbanditError as error:
                raise InvalidInputError(
                    f"This session could not be loaded again, so it is not saved. {error}"
                ) from error
        return state

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Session:
        """The session saved at `path`.  A damaged file raises DamagedFileError; nothing is half-read."""
        tree = _files.load_tree(_files.open_sealed(path, KIND, FORMAT), {})
        learner = make(tree["learner"]["name"], **tree["learner"]["arguments"])
        if learner.version != tree["version"]:
            raise InvalidInputError(
                f"{os.fspath(path)} was saved by version {tree['version']} of {learner.name}, which is now at version "
                f"{learner.version} and would continue differently. Load it with the release that wrote it."
            )
        state = _files.load_tree(tree["state"].tobytes(), classes_of(learner))
        known = None if tree["dynamics"] is None else _dynamics_of(tree["dynamics"])
        problem = Problem(**tree["problem"], transition=known)
        session = cls(learner.bound(problem), problem, tree["seed"], state)
        session._oldest = tree["oldest"]
        session._done = set(tree["done"])
        session._begun = tree["begun"]
        session._policies = {item["episode"]: item["policy"] for item in tree["late"]}
        return session

    def __repr__(self) -> str:
        K = self.problem.episodes
        return f"<Session of {self.learner!r}, episode {self._oldest}{'' if K is None else f' of {K}'}>"


def _dynamics_tree(mdp: TabularMDP) -> dict[str, Any]:
    tree: dict[str, Any] = {"horizon": mdp.H if mdp.is_stationary else None}
    if mdp.is_sparse:
        arrays = {"next_states": mdp.next_states, "probabilities": mdp.probabilities}
    else:
        arrays = {"transition": mdp.stored}
    tree |= {name: array[0] if mdp.is_stationary else array for name, array in arrays.items()}
    tree["initial_state"] = mdp.initial_state if isinstance(mdp.initial_state, int) else mdp.initial
    return tree


def _dynamics_of(tree: dict[str, Any]) -> TabularMDP:
    horizon, initial = tree["horizon"], tree["initial_state"]
    if "next_states" in tree:
        return TabularMDP.sparse(tree["next_states"], tree["probabilities"], horizon, initial)
    return TabularMDP(tree["transition"], horizon, initial)
