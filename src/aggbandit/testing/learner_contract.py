"""What every learner must keep, each rule a function of its own."""

from __future__ import annotations

import copy
import pickle
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from aggbandit import _files, adversaries
from aggbandit._arrays import AnyArray, FloatArray, IntArray
from aggbandit.errors import InvalidInputError
from aggbandit.learners import as_learner, require_told
from aggbandit.learners.base import (
    AGGREGATE,
    INIT_STREAM,
    KNOWN,
    SEMI_BANDIT,
    UPDATE_STREAM,
    Draws,
    Episode,
    Learner,
    Problem,
)
from aggbandit.mdp import instances
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.losses import LossReader
from aggbandit.simulation.protocol import observed, updated
from aggbandit.simulation.run import Simulation, checkpoint_episodes
from aggbandit.simulation.session import Session, start

EPISODES = 40
ROUNDING = 1e-9  # what different orders of the same sums may leave after EPISODES episodes


class Played:
    """A learner played for some episodes: the policies it chose and what it was shown."""

    def __init__(
        self,
        learner: Learner[Any],
        mdp: TabularMDP | None = None,
        *,
        episodes: int = EPISODES,
        planned: int | None = None,
        seed: int = 0,
        totals: float | None = None,
    ) -> None:
        self.mdp = small_mdp() if mdp is None else mdp
        self.problem = Problem.of(self.mdp, planned or episodes, learner.needs)
        self.learner = learner.bound(self.problem)
        self.policies: list[FloatArray] = []
        self.shown: list[Episode] = []
        self.state = self.learner.init(self.problem, Draws(seed, 0, 0, INIT_STREAM))
        rng = np.random.default_rng([seed, 7])
        for k in range(episodes):
            policy = self._policy(f"episode {k}")
            states, actions = walk(self.mdp, policy, rng)
            table = rng.random(self.problem.shape) if totals is None else np.full(self.problem.shape, totals)
            seen = observed(self.learner.needs, k, states, actions, table, policy)
            self.shown.append(copy.deepcopy(seen))
            draws = Draws(seed, 0, k, UPDATE_STREAM)
            self.state = updated(self.learner, self.problem, self.state, seen, draws)
        self._policy("the end")

    def _policy(self, when: str) -> FloatArray:
        """The next policy, once it is one: the walk, and every check after it, relies on that."""
        policy = np.array(self.learner.policy(self.problem, self.state))
        assert policy.shape == self.problem.shape, f"{when}: the policy has shape {policy.shape}"
        assert policy.dtype.kind in "fiub", f"{when}: the policy has dtype {policy.dtype}"
        assert np.isfinite(policy).all(), f"{when}: the policy is not finite"
        assert (policy >= 0).all(), f"{when}: a probability is negative"
        off = np.abs(policy.sum(axis=-1) - 1).max()
        assert off <= 1e-9, f"{when}: a row of the policy is off 1 by {off:.3g}"
        self.policies.append(policy)
        return policy


def small_mdp() -> TabularMDP:
    """Three steps, three states, two actions."""
    return instances.make("random", states=3, actions=2, horizon=3, seed=1)


def walk(mdp: TabularMDP, policy: FloatArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """A sampled episode, by NumPy alone."""
    states, actions = np.empty(mdp.H, np.int64), np.empty(mdp.H, np.int64)
    s = int(rng.choice(mdp.S, p=mdp.initial / mdp.initial.sum()))
    for h in range(mdp.H):
        row = np.asarray(policy[h, s])
        a = int(rng.choice(mdp.A, p=row / row.sum()))
        states[h], actions[h] = s, a
        following = np.asarray(mdp.transition[h, s, a])
        s = int(rng.choice(mdp.S, p=following / following.sum()))
    return states, actions


def policies_are_distributions(learner: Learner[Any]) -> None:
    """Every policy is (H, S, A) of probabilities whose rows sum to 1."""
    Played(learner)  # looks at each


def reading_the_policy_changes_nothing(learner: Learner[Any]) -> None:
    """`policy` and `policy_at` are pure reads, and agree."""
    played = Played(learner)
    before = _files.dump_tree(played.state)
    first = np.array(played.learner.policy(played.problem, played.state))
    second = np.array(played.learner.policy(played.problem, played.state))
    at = played.learner.policy_at(played.problem, played.state, 1, 2)
    assert _files.dump_tree(played.state) == before, "reading the policy changed the state"
    assert np.array_equal(first, second), "reading the policy twice gave two policies"
    assert np.array_equal(first[1, 2], at), "policy_at differs from policy"


def same_inputs_give_the_same_bits(learner: Learner[Any]) -> None:
    """Played twice, the same to the last bit; all randomness comes from `draws`."""
    one, two = Played(learner), Played(learner)
    for k, (a, b) in enumerate(zip(one.policies, two.policies, strict=True)):
        assert np.array_equal(a, b), f"the same inputs gave another policy at episode {k}"


def inputs_are_not_modified(learner: Learner[Any]) -> None:
    """Neither the episode nor the problem is written to."""
    played = Played(learner)
    problem = Problem.of(played.mdp, EPISODES, learner.needs)
    state = played.learner.init(problem, Draws(0, 0, 0, INIT_STREAM))
    given = copy.deepcopy(played.shown[0])
    held = copy.deepcopy(given)
    transition = None if problem.transition is None else np.array(problem.transition)
    played.learner.update(problem, state, given, Draws(0, 0, 0, UPDATE_STREAM))
    for name in ("states", "actions", "losses", "table", "policy"):
        now, before = getattr(given, name), getattr(held, name)
        assert (now is None) == (before is None), f"episode.{name} came or went"
        assert now is None or np.array_equal(now, before), f"update wrote into episode.{name}"
    if transition is not None:
        assert np.array_equal(np.asarray(problem.transition), transition), "update wrote into the transitions"


def the_configuration_is_frozen(learner: Learner[Any]) -> None:
    """Playing leaves `repr` as it was, the configuration survives pickling, and says its needs."""
    before = repr(learner)
    Played(learner)
    assert repr(learner) == before, "playing changed the configuration"
    again = pickle.loads(pickle.dumps(learner))
    assert repr(again) == before, "the configuration does not survive pickling (Dask sends it so)"
    assert again.needs == learner.needs, "pickling changed the needs"


def saving_mid_run_changes_nothing(learner: Learner[Any]) -> None:
    """A session saved and loaded half-way continues bit for bit."""
    played = Played(learner)
    whole = start(learner, played.problem)
    parts = start(learner, played.problem)
    with tempfile.TemporaryDirectory() as folder:
        for k, seen in enumerate(played.shown):
            if k in (0, 1, EPISODES // 2):
                path = Path(folder) / "session"
                parts.save(path)
                parts = Session.load(path)
            for session in (whole, parts):
                session.update(seen.states, seen.actions, feedback_of(seen))
            assert np.array_equal(whole.policy, parts.policy), f"after saving, the policy differs at episode {k + 1}"


def the_state_does_not_grow(learner: Learner[Any]) -> None:
    """Memory is bounded whatever the number of episodes played."""
    sizes = [len(_files.dump_tree(Played(learner, episodes=played, planned=400).state)) for played in (200, 400)]
    # numbers written in the tree's JSON part may get longer by some digits
    assert sizes[1] <= sizes[0] + 256, f"the state grew from {sizes[0]} to {sizes[1]} bytes with twice the episodes"


def only_its_own_level_is_read(learner: Learner[Any]) -> None:
    """Needs are honest: an unknown transition is None, and only the level's own field of an episode is set."""
    played = Played(learner)
    if learner.needs.dynamics != KNOWN:
        assert played.problem.transition is None, "the problem gave away the transitions"
        assert played.problem.dynamics is None, "the problem gave away the transitions"
    fields = {AGGREGATE: "total", SEMI_BANDIT: "losses"}
    own = fields.get(learner.needs.feedback, "table")
    for seen in played.shown:
        for name in ("total", "losses", "table"):
            assert (getattr(seen, name) is not None) == (name == own), f"episode.{name} at level {own}"
    session = start(learner, played.problem)
    H = played.problem.H
    if learner.needs.feedback == AGGREGATE:
        session.update(np.zeros(H, np.int64), np.zeros(H, np.int64), 0.5 * H)


def extreme_feedback_raises_no_warning(learner: Learner[Any]) -> None:
    """Totals of 0 and of H, one episode only: finite policies, no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for total in (0.0, 1.0):
            for episodes in (1, EPISODES):
                _named(f"losses of {total}, K = {episodes}", learner, episodes=episodes, totals=total)


def the_smallest_and_oddest_problems_are_survived(learner: Learner[Any]) -> None:
    """One step, one state, one action; places that nobody reaches, transitions without chance, several first states.

    Played for one episode and for some, without a warning.  What a configuration is not made for (features of another
    size, say) its `check` may refuse.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, mdp in odd_mdps().items():
            for episodes in (1, 12):
                try:
                    learner.check(Problem.of(mdp, episodes, learner.needs))
                except InvalidInputError:
                    continue
                for policy in _named(f"{name}, K = {episodes}", learner, mdp, episodes=episodes).policies:
                    if mdp.A == 1:
                        assert np.abs(policy - 1).max() <= 1e-12, f"{name}: with one action the policy must take it"


def _named(case: str, learner: Learner[Any], mdp: TabularMDP | None = None, **how: Any) -> Played:
    """The same as `Played`; what is wrong is told with the case."""
    try:
        return Played(learner, mdp, **how)
    except Exception as error:
        raise AssertionError(f"{case}: {_said(error)}") from error


def odd_mdps() -> dict[str, TabularMDP]:
    """Dynamics that trip learners, by name."""
    found = {
        f"H, S, A = {H}, {S}, {A}": TabularMDP(np.full((H, S, A, S), 1 / S))
        for H, S, A in ((1, 1, 1), (1, 1, 2), (1, 3, 2), (3, 1, 2), (3, 2, 1))
    }
    moves = np.zeros((3, 2, 3))
    moves[np.arange(3), 0, np.arange(3)] = 1.0  # action 0 stays, action 1 goes on
    moves[np.arange(3), 1, (np.arange(3) + 1) % 3] = 1.0
    found["transitions without chance"] = TabularMDP(moves, horizon=3)
    trap = moves.copy()
    trap[0, 1] = trap[1, 1] = [0.5, 0.5, 0.0]
    found["a state that nobody reaches"] = TabularMDP(trap, horizon=3)
    found["several first states"] = TabularMDP(moves, horizon=2, initial_state=[0.5, 0.0, 0.5])
    return found


def relabelled_states_and_actions_relabel_the_policy(learner: Learner[Any]) -> None:
    """Fed the same episodes under other names of states and actions, it returns the policy under those names.

    Only for learners without draws of their own, which is found out by playing with another seed.
    """
    played = Played(learner)
    mdp, problem = played.mdp, played.problem
    if uses_draws(learner, played):
        return
    state_to = np.concatenate([[0], np.arange(mdp.S - 1, 0, -1)])  # the initial state keeps its name
    action_to = np.roll(np.arange(mdp.A), 1)
    transition = np.empty_like(mdp.transition)
    transition[:, state_to[:, None, None], action_to[None, :, None], state_to[None, None, :]] = mdp.transition
    other = TabularMDP(transition)
    renamed = Problem.of(other, EPISODES, learner.needs)
    state = learner.init(renamed, Draws(0, 0, 0, INIT_STREAM))
    for k, seen in enumerate(played.shown):
        table = None
        if seen.table is not None:
            table = np.empty_like(seen.table)
            table[:, state_to[:, None], action_to[None, :]] = seen.table
        told = Episode(
            k, state_to[seen.states], action_to[seen.actions], seen.total, seen.losses, table,
            None if seen.policy is None else renamed_policy(seen.policy, state_to, action_to),
        )  # fmt: skip
        state = learner.update(renamed, state, told, Draws(0, 0, k, UPDATE_STREAM))
    expected = renamed_policy(np.array(played.policies[-1]), state_to, action_to)
    off = np.abs(np.asarray(learner.policy(renamed, state)) - expected).max()
    assert off <= 1e-7, f"under other names the policy differs by {off:.3g}"
    assert problem.shape == renamed.shape


def the_fused_engine_equals_the_plain_one(learner: Learner[Any]) -> None:
    """Where compiled code plays the episodes, it plays the same ones as the contract's plain loop."""
    mdp = small_mdp()
    problem = Problem.of(mdp, EPISODES, learner.needs)
    results = []
    for fused in (True, False):
        reader = LossReader(adversaries.make("switching", mdp, blocks=5, seed=2), mdp, EPISODES)
        simulation = Simulation(
            mdp, reader, learner.bound(problem), problem, replicas=2, seed=5,
            checkpoints=checkpoint_episodes(5, EPISODES), fused=fused,
        )  # fmt: skip
        simulation.play()
        results.append(simulation.result())
    fast, plain = results
    assert fast.policy is not None
    assert plain.policy is not None
    assert np.abs(fast.policy - plain.policy).max() <= ROUNDING, "the fused engine ends with other policies"
    assert np.abs(fast.cost - plain.cost).max() <= ROUNDING * EPISODES, "the fused engine counts another cost"


LEARNER_CHECKS: dict[str, Callable[[Learner[Any]], None]] = {
    check.__name__: check
    for check in (
        policies_are_distributions,
        reading_the_policy_changes_nothing,
        same_inputs_give_the_same_bits,
        inputs_are_not_modified,
        the_configuration_is_frozen,
        saving_mid_run_changes_nothing,
        the_state_does_not_grow,
        only_its_own_level_is_read,
        extreme_feedback_raises_no_warning,
        the_smallest_and_oddest_problems_are_survived,
        relabelled_states_and_actions_relabel_the_policy,
        the_fused_engine_equals_the_plain_one,
    )
}


def check_learner(learner: Learner[Any]) -> None:
    """Run every check that the learner's class does not exempt itself from, with its reason in `exempt`."""
    if not isinstance(learner, Learner):
        raise AssertionError(f"{learner!r} is no aggbandit.Learner instance")
    unknown = set(learner.exempt) - set(LEARNER_CHECKS)
    assert not unknown, f"exempt names no check: {', '.join(sorted(unknown))}"
    try:
        require_told(as_learner(learner))
    except InvalidInputError as error:
        raise AssertionError(str(error)) from error
    for name, check in LEARNER_CHECKS.items():
        if name not in learner.exempt:
            try:
                check(learner)
            except Exception as error:
                raise AssertionError(f"{learner.name} breaks {name}: {_said(error)}") from error


def _said(error: Exception) -> str:
    """What a check found, or what the learner raised meanwhile."""
    return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"


def feedback_of(seen: Episode) -> Any:
    """What a user would pass to `Session.update` for this episode."""
    for value in (seen.total, seen.losses, seen.table):
        if value is not None:
            return value
    raise AssertionError("the episode carries no feedback")


def uses_draws(learner: Learner[Any], played: Played) -> bool:
    """Whether another seed of the learner's own draws leads to other policies."""
    state = learner.init(played.problem, Draws(99, 0, 0, INIT_STREAM))
    for k, seen in enumerate(played.shown):
        if not np.array_equal(learner.policy(played.problem, state), played.policies[k]):
            return True
        state = learner.update(played.problem, state, seen, Draws(99, 0, k, UPDATE_STREAM))
    return not np.array_equal(learner.policy(played.problem, state), played.policies[-1])


def renamed_policy(policy: AnyArray, state_to: IntArray, action_to: IntArray) -> FloatArray:
    """The policy under new names: state s is called state_to[s], action a action_to[a]."""
    renamed = np.empty(policy.shape)
    renamed[:, state_to[:, None], action_to[None, :]] = policy
    return renamed
