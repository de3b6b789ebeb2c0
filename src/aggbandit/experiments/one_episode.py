"""One episode of Algorithm 1 or 2, every quantity of the update by its definition, for people to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from aggbandit import adversaries, planning
from aggbandit._arrays import FloatArray
from aggbandit._checks import require_integer
from aggbandit.errors import InvalidInputError
from aggbandit.experiments.diagnosis import bonus_and_reach
from aggbandit.learners import as_learner
from aggbandit.learners.base import INIT_STREAM, KNOWN, UPDATE_STREAM, Draws, Learner, Problem
from aggbandit.learners.parts.confidence_sets import bernstein_box, logarithm
from aggbandit.learners.po_known import PolicyOptimizationKnown
from aggbandit.learners.po_unknown import PolicyOptimizationUnknown
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.plain import sampler
from aggbandit.simulation.protocol import observed


class Step(NamedTuple):
    """One step of the trajectory, and what the update does to the policy there."""

    step: int  # from 1, as in the paper
    state: str
    action: str
    loss: float  # hidden from the learner
    reach: float  # μ_h(s), or its upper bound μ̄_h(s)
    least_reach: float  # μ̲_h(s); the same where dynamics are known
    estimate: float  # Û_h(s, a) of the action taken
    truth: float  # U_h(s, a), which nobody but us knows
    local_bonus: float  # b_h(s)
    bonus: tuple[float, ...]  # B_h(s, ·)
    before: tuple[float, ...]  # π_h(·|s)
    after: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class OneEpisode:
    """The episode, told."""

    learner: str
    known: bool
    number: int  # which episode, from 1
    episodes: int
    actions: tuple[str, ...]
    total: float
    step_size: float
    exploration: float
    steps: tuple[Step, ...]


def one_episode(
    mdp: TabularMDP, learner: Any = "po-known", *, number: int = 1, episodes: int = 1000, seed: int = 0
) -> OneEpisode:
    """Play `number` episodes and tell the last one.  Losses are the instance's own, or a random table."""
    K = require_integer("episodes", episodes, low=1)
    number = require_integer("number", number, low=1, high=K)
    chosen = as_learner(learner)
    if not isinstance(chosen, (PolicyOptimizationKnown, PolicyOptimizationUnknown)):
        raise InvalidInputError(f"Only po-known and po-unknown can be told step by step, not {chosen.name}.")
    player: Learner[Any] = chosen
    problem = Problem.of(mdp, K, player.needs)
    losses = adversaries.make("fixed", mdp, seed=seed)
    table = losses.tables(0, 1)[0]
    H, S, A = problem.shape
    told = chosen.resolved(problem)
    gamma = float(told["exploration"])
    sample = sampler(mdp)
    state = player.init(problem, Draws(seed, 0, 0, INIT_STREAM))
    counts = np.zeros((H, S, A, S))
    for k in range(number):
        before = np.array(player.policy(problem, state))
        states, actions = sample(before, 0, k, np.uint64(seed))
        seen = observed(chosen.needs, k, states, actions, table, None)
        state = player.update(problem, state, seen, Draws(seed, 0, k, UPDATE_STREAM))
        if k + 1 < number:
            np.add.at(counts, (np.arange(H - 1), states[:-1], actions[:-1], states[1:]), 1.0)
    after = np.array(player.policy(problem, state))
    known = chosen.needs.dynamics == KNOWN
    box = None
    if isinstance(chosen, PolicyOptimizationUnknown):
        box = bernstein_box(counts, logarithm(H, S, A, K, chosen.confidence), chosen.radius_scale)
    upper, lower, local, B = bonus_and_reach(mdp, before, gamma, chosen.bonus_scale, box)
    U = planning.trajectory_values(mdp, before, table)
    total = float(seen.total or 0.0)
    return OneEpisode(
        learner=chosen.name,
        known=known,
        number=number,
        episodes=K,
        actions=mdp.action_names,
        total=total,
        step_size=float(told["step_size"]),
        exploration=gamma,
        steps=tuple(
            Step(
                step=h + 1,
                state=mdp.state_names[s],
                action=mdp.action_names[a],
                loss=float(table[h, s, a]),
                reach=float(upper[h, s]),
                least_reach=float(lower[h, s]),
                estimate=float(total / (upper[h, s] * before[h, s, a] + gamma)),
                truth=float(U[h, s, a]),
                local_bonus=float(local[h, s]),
                bonus=_row(B[h, s]),
                before=_row(before[h, s]),
                after=_row(after[h, s]),
            )
            for h, (s, a) in enumerate(zip(states, actions, strict=True))
        ),
    )


def _row(values: FloatArray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
