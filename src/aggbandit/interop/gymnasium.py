"""Gymnasium: its environments for our learners, our instances as its environments (`pip install "aggbandit[gym]"`).

Rewards live on Gymnasium's side and losses on ours; this file alone turns one into the other.

    AggregateReward(env)      hides step rewards, and gives their sum at the end
    from_env(env, horizon)    a tabular environment as (mdp, losses), for `ab.run` and exact planning
    train(env, learner, ...)  any learner in any environment with discrete actions
    "aggbandit/chain-v0"      ... our instances, registered with Gymnasium when this module is imported
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from aggbandit._arrays import FloatArray, IntArray, frozen
from aggbandit._checks import require_integer, require_number
from aggbandit.adversaries import make as make_losses
from aggbandit.adversaries.base import LossSequence, Shape, repeated, require_range
from aggbandit.errors import InvalidInputError, MissingExtraError, OutOfOrderError
from aggbandit.learners import as_learner
from aggbandit.learners.base import (
    AGGREGATE,
    FULL,
    INIT_STREAM,
    KNOWN,
    UPDATE_STREAM,
    Draws,
    Episode,
    Learner,
    Problem,
)
from aggbandit.mdp import instances
from aggbandit.mdp.tabular import TabularMDP

try:
    import gymnasium
except ImportError as error:
    raise MissingExtraError(
        'Gymnasium is not installed. Install it with: pip install "aggbandit[gym]"', name="gymnasium"
    ) from error

MAX_STATES = 2**20  # observations told apart where the environment does not say how many there are
SHOWN_POLICY_SIZE = 2**22  # entries of a policy that a learner with late feedback is still shown whole


class AggregateReward(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The same environment with every step's reward 0, but for the last, which is the sum of all.

    The sum is also in `info["total"]` at the end.  What an agent is told here is what this package is about.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._total = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._total = 0.0
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        self._total += float(reward)
        if terminated or truncated:
            return observation, self._total, terminated, truncated, {**info, "total": self._total}
        return observation, 0.0, terminated, truncated, info


@dataclass(frozen=True, eq=False)
class RewardLosses(LossSequence):
    """Rewards as losses: ℓ = (high - r) / (high - low), the same at every step and in every episode."""

    trusted = True

    loss_sa: FloatArray = field(repr=False)  # expected loss of an action in a state
    horizon: int
    low: float  # the least and the greatest reward of a step
    high: float

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        S, A = self.loss_sa.shape
        return self.horizon, S, A

    @property
    def mean_table(self) -> FloatArray:  # type: ignore[override]
        """The table itself, a view that repeats one step H times."""
        return np.broadcast_to(self.loss_sa, self.shape)

    def tables(self, start: int, stop: int, /) -> FloatArray:
        start, stop = require_range(start, stop)
        return repeated(self.mean_table, stop - start)

    def reward(self, loss: Any) -> Any:
        """The return of an episode whose total loss this is."""
        return self.horizon * self.high - (self.high - self.low) * loss


class Converted(NamedTuple):
    """What `from_env` gives; unpacks as (mdp, losses)."""

    mdp: TabularMDP
    losses: RewardLosses


def from_env(env: str | gymnasium.Env[Any, Any], horizon: int, **arguments: Any) -> Converted:
    """A tabular environment (FrozenLake, CliffWalking, Taxi, ...) as its dynamics and its losses.

    env         an id or an environment whose table is at `env.unwrapped.P[state][action]`, a list of (probability,
                next state, reward, terminated), and whose first state is drawn from `initial_state_distrib`
    arguments   for `gymnasium.make`, where env is an id

    A state "end" is added after the environment's own: whoever terminates goes there, and stays at reward 0.  Rewards
    become losses by their least and greatest value (0 included); `losses.reward(total loss)` is the way back.

    >>> mdp, losses = from_env("FrozenLake-v1", horizon=50, is_slippery=True)
    >>> mdp.S, mdp.state_names[-1], losses.reward(50.0)
    (17, 'end', 0.0)
    """
    made = gymnasium.make(env, **arguments) if isinstance(env, str) else env
    horizon = require_integer("horizon", horizon, low=1)
    world = made.unwrapped
    table: Any = getattr(world, "P", None)
    if table is None:
        raise InvalidInputError(
            f"{world} has no transition table P to read; only tabular environments do. `train` needs none."
        )
    S, A = len(table), len(table[0])
    end = S
    rows: list[dict[int, float]] = []
    reward_sa = np.zeros((S + 1, A))
    least, greatest = 0.0, 0.0
    for s in range(S):
        for a in range(A):
            row: dict[int, float] = {}
            for probability, s_next, reward, terminated in table[s][a]:
                goes = end if terminated else int(s_next)
                row[goes] = row.get(goes, 0.0) + float(probability)
                reward_sa[s, a] += probability * reward
                least, greatest = min(least, float(reward)), max(greatest, float(reward))
            rows.append(row)
    rows += [{end: 1.0}] * A
    if least == greatest:
        greatest = 1.0  # no reward anywhere: any unit will do
    width = max(len(row) for row in rows)
    next_states = np.zeros((S + 1, A, width), np.int64)
    probabilities = np.zeros((S + 1, A, width))
    for index, row in enumerate(rows):
        place = divmod(index, A)
        next_states[place][: len(row)] = list(row)
        probabilities[place][: len(row)] = list(row.values())
    first = getattr(world, "initial_state_distrib", None)
    if first is None:
        raise InvalidInputError(f"{world} does not say where it starts: it has no initial_state_distrib.")
    mdp = TabularMDP.sparse(
        next_states,
        probabilities,
        horizon,
        np.append(np.asarray(first, dtype=np.float64) / np.sum(first), 0.0),
        state_names=[*map(str, range(S)), "end"],
    )
    loss_sa = np.clip((greatest - reward_sa) / (greatest - least), 0.0, 1.0)  # a mean may pass its ends by rounding
    return Converted(mdp, RewardLosses(frozen(loss_sa), horizon, least, greatest))


class _Observations:
    """Observations as states: as they are where they count from 0, else numbered as they come."""

    def __init__(self, space: gymnasium.Space[Any], max_states: int | None) -> None:
        discrete = isinstance(space, gymnasium.spaces.Discrete)
        self._start = int(space.start) if isinstance(space, gymnasium.spaces.Discrete) else None
        if isinstance(space, gymnasium.spaces.Discrete) and max_states is None:
            self.known = int(space.n)
        else:
            self.known = require_integer("max_states", MAX_STATES if max_states is None else max_states, low=1)
        self._numbers: dict[Hashable, int] | None = None if discrete else {}

    def number(self, observation: Any) -> int:
        """The state of an observation."""
        if self._start is not None:
            return int(observation) - self._start
        assert self._numbers is not None
        key = _hashable(observation)
        number = self._numbers.setdefault(key, len(self._numbers))
        if number >= self.known:
            raise InvalidInputError(
                f"The environment has shown more than max_states = {self.known} different observations. Give a larger "
                "max_states, or coarser observations."
            )
        return number


def _hashable(observation: Any) -> Hashable:
    """The observation as a dictionary's key; arrays by their numbers, dicts and lists by their items."""
    if isinstance(observation, np.ndarray):
        return (observation.shape, observation.tobytes())
    if isinstance(observation, dict):
        return tuple((name, _hashable(item)) for name, item in sorted(observation.items()))
    if isinstance(observation, (list, tuple)):
        return tuple(map(_hashable, observation))
    if not isinstance(observation, Hashable):
        raise InvalidInputError(
            f"An observation must be discrete or hashable, but is a {type(observation).__name__}: wrap the environment."
        )
    return observation


@dataclass(frozen=True, eq=False)
class Trained:
    """What training leaves: the return of every episode, and a policy to act by."""

    returns: FloatArray  # (episodes,): the sum of rewards
    steps: IntArray  # (episodes,): how long each took
    learner: Learner[Any]
    problem: Problem
    state: Any  # the learner's
    _observations: _Observations = field(repr=False)

    def probabilities(self, step: int, observation: Any) -> FloatArray:
        """(A,): the policy now."""
        return np.asarray(
            self.learner.policy_at(self.problem, self.state, step, self._observations.number(observation))
        )

    def policy(self) -> FloatArray:
        """(H, S, A): the whole policy now, its last state being "end"; for `ab.planning` with `from_env`."""
        return np.array(self.learner.policy(self.problem, self.state))


def train(
    env: str | gymnasium.Env[Any, Any],
    learner: Any,
    episodes: int,
    *,
    horizon: int | None = None,
    bounds: tuple[float, float] | None = None,
    max_states: int | None = None,
    seed: int = 0,
    on_episode: Callable[[int, float], None] | None = None,
) -> Trained:
    """Let a learner act in an environment for so many episodes; it is told what its feedback level allows.

    env         an id or an environment with a Discrete action space; observations discrete, or anything hashable
    learner     an id or a configured learner; one that needs known dynamics gets them from the environment's table
    horizon     the most steps of an episode, after which it is cut; None: the environment's own limit
    bounds      (low, high) of one step's reward; None: from the environment's table, where there is one
    max_states  how many observations to make room for, where the environment does not say (2^20)
    on_episode  called with the number and the return of each

    An episode that ends early goes on in a state "end" where nothing happens, at reward 0.
    """
    made = gymnasium.make(env) if isinstance(env, str) else env
    if not isinstance(made.action_space, gymnasium.spaces.Discrete):
        raise InvalidInputError(f"{made} must have a Discrete action space, but has {made.action_space}.")
    first_action, A = int(made.action_space.start), int(made.action_space.n)
    H = _horizon(made, horizon)
    episodes = require_integer("episodes", episodes, low=1)
    chosen = as_learner(learner)
    if chosen.needs.feedback == FULL:
        raise InvalidInputError(f"{chosen.name} needs the losses of all actions, which no environment shows.")
    tabular = getattr(made.unwrapped, "P", None) is not None
    known = from_env(made, H) if chosen.needs.dynamics == KNOWN or (bounds is None and tabular) else None
    low, high = _bounds(made, bounds, known)
    observations = _Observations(made.observation_space, max_states)
    S = observations.known + 1
    problem = Problem(
        H=H,
        S=S,
        A=A,
        episodes=episodes,
        initial_state=0 if known is None else known.mdp.initial_state,
        transition=known.mdp if known is not None and chosen.needs.dynamics == KNOWN else None,
    )
    bound = chosen.bound(problem)
    state = bound.init(problem, Draws(seed, 0, 0, INIT_STREAM))
    shown_whole = bound.needs.late_feedback and H * S * A <= SHOWN_POLICY_SIZE
    chance = np.random.default_rng(seed)
    returns, lengths = np.zeros(episodes), np.zeros(episodes, np.int64)
    for k in range(episodes):
        policy = frozen(np.array(bound.policy(problem, state))) if shown_whole else None
        states = np.full(H, S - 1)
        actions = np.zeros(H, np.int64)
        rewards = np.zeros(H)
        observation, _ = made.reset(seed=seed if k == 0 else None)
        h = 0
        while h < H:
            s = observations.number(observation)
            policy_a = bound.policy_at(problem, state, h, s) if policy is None else policy[h, s]
            a = min(int(np.searchsorted(np.cumsum(policy_a), chance.random(), side="right")), A - 1)
            states[h], actions[h] = s, a
            observation, reward, terminated, truncated, _ = made.step(a + first_action)
            rewards[h] = reward
            h += 1
            if terminated or truncated:
                break
        losses = _as_losses(rewards, low, high, h)
        told: dict[str, Any] = (
            {"total": float(losses.sum())} if bound.needs.feedback == AGGREGATE else {"losses": losses}
        )
        seen = Episode(k, frozen(states), frozen(actions), policy=policy, **told)
        state = bound.update(problem, state, seen, Draws(seed, 0, k, UPDATE_STREAM))
        returns[k], lengths[k] = rewards.sum(), h
        if on_episode is not None:
            on_episode(k, float(returns[k]))
    return Trained(returns, lengths, bound, problem, state, observations)


def _horizon(env: gymnasium.Env[Any, Any], horizon: int | None) -> int:
    if horizon is not None:
        return require_integer("horizon", horizon, low=1)
    limit = None if env.spec is None else env.spec.max_episode_steps
    if limit is None:
        raise InvalidInputError(f"{env} has no limit of steps of its own; give horizon=.")
    return int(limit)


def _bounds(
    env: gymnasium.Env[Any, Any], bounds: tuple[float, float] | None, known: Converted | None
) -> tuple[float, float]:
    if bounds is None:
        if known is None:
            raise InvalidInputError(f"{env} does not tell the range of its rewards; give bounds=(low, high) of a step.")
        return known.losses.low, known.losses.high
    low, high = require_number("bounds[0]", bounds[0]), require_number("bounds[1]", bounds[1])
    if not low < high:
        raise InvalidInputError(f"bounds must be (low, high) with low < high, but is ({low:g}, {high:g}).")
    return min(low, 0.0), max(high, 0.0)  # the steps after an early end have reward 0


def _as_losses(rewards: FloatArray, low: float, high: float, taken: int) -> FloatArray:
    outside = (rewards < low) | (rewards > high)
    if outside[:taken].any():
        first = int(np.argmax(outside))
        raise InvalidInputError(
            f"The reward of step {first} is {rewards[first]:g}, outside of bounds = ({low:g}, {high:g}); give "
            "wider ones."
        )
    return (high - rewards) / (high - low)


class InstanceEnv(gymnasium.Env[Any, Any]):
    """One of our instances with a loss sequence, as an environment: observations are states, rewards minus the losses.

    instance    its id in `ab.instances`, with `arguments`
    losses      the id of a loss sequence in `ab.adversaries`, with `loss_arguments`; each `reset` is its next episode,
                and one with a seed its first again
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(
        self,
        instance: str = "random",
        arguments: dict[str, Any] | None = None,
        losses: str = "fixed",
        loss_arguments: dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.mdp: TabularMDP = instances.make(instance, **(arguments or {}))
        self.losses = make_losses(losses, self.mdp, **(loss_arguments or {}))
        self.observation_space = gymnasium.spaces.Discrete(self.mdp.S)
        self.action_space = gymnasium.spaces.Discrete(self.mdp.A)
        self.render_mode = render_mode
        self._episode = -1
        self._step = self.mdp.H
        self._state = 0
        self._table: FloatArray = np.zeros(self.mdp.shape)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._episode = 0 if seed is not None else self._episode + 1
        self._table = self.losses.tables(self._episode, self._episode + 1)[0]
        self._step = 0
        self._state = self._drawn(self.mdp.initial_cumulative)
        return self._state, {"episode": self._episode}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        mdp, h, s = self.mdp, self._step, self._state
        if h >= mdp.H:
            raise OutOfOrderError("The episode has ended; call reset before the next step.")
        if not self.action_space.contains(action):
            raise InvalidInputError(f"action must be in 0 ... {mdp.A - 1}, but is {action!r}.")
        loss = float(self._table[h, s, action])
        self._step = h + 1
        if self._step < mdp.H:
            t = 0 if mdp.is_stationary else h
            drawn = self._drawn(mdp.cumulative[t, s, action])
            self._state = int(mdp.next_states[t, s, action, drawn]) if mdp.is_sparse else drawn
        return self._state, -loss, self._step == mdp.H, False, {}

    def render(self) -> str | None:
        """The state's name, in the mode "ansi"."""
        if self.render_mode != "ansi":
            return None
        return f"step {self._step} of {self.mdp.H}: {self.mdp.state_names[self._state]}"

    def _drawn(self, cumulative: FloatArray) -> int:
        return int(np.searchsorted(cumulative, self.np_random.random(), side="right"))


def register() -> list[str]:
    """Register every instance that needs no arguments as "aggbandit/<id>-v0"; the ids."""
    ids = []
    for name in instances.names():
        id = f"aggbandit/{name}-v0"
        if id not in gymnasium.registry:
            gymnasium.register(id=id, entry_point="aggbandit.interop.gymnasium:InstanceEnv", kwargs={"instance": name})
        ids.append(id)
    return ids


register()
