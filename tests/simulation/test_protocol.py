"""The information barrier: what of an episode, and of the world, a learner can get hold of."""

import gc
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.simulation.protocol import observed

MDP = ab.instances.make("random", states=3, actions=2, horizon=3, seed=1)
TABLE = np.random.default_rng(0).random((3, 3, 2))
STATES, ACTIONS = np.array([0, 2, 1]), np.array([1, 0, 1])


class Held(NamedTuple):
    policy_hsa: Any


@dataclass(frozen=True, kw_only=True, eq=False)
class Spy(ab.Learner[Held]):
    """Keeps everything that it is handed."""

    feedback: str = "aggregate"
    dynamics: str = "unknown"
    kept: list[Any]

    @property
    def needs(self) -> ab.Needs:
        return ab.Needs(feedback=self.feedback, dynamics=self.dynamics)

    def init(self, problem: Problem, draws: Draws) -> Held:
        self.kept.append(problem)
        self.kept.append(draws)
        return Held(np.full(problem.shape, 1 / problem.A))

    def policy(self, problem: Problem, state: Held) -> Any:
        return state.policy_hsa

    def update(self, problem: Problem, state: Held, episode: Episode, draws: Draws) -> Held:
        self.kept.append(episode)
        return state


def test_each_level_sees_its_own_field_alone() -> None:
    seen = {
        level: observed(ab.Needs(feedback=level), 4, STATES, ACTIONS, TABLE, TABLE)
        for level in ("aggregate", "semi-bandit", "full")
    }
    losses = TABLE[[0, 1, 2], STATES, ACTIONS]
    assert seen["aggregate"].total == losses[0] + losses[1] + losses[2]
    assert seen["aggregate"].losses is seen["aggregate"].table is None
    np.testing.assert_array_equal(seen["semi-bandit"].losses, losses)
    assert seen["semi-bandit"].total is seen["semi-bandit"].table is None
    np.testing.assert_array_equal(seen["full"].table, TABLE)
    assert seen["full"].total is seen["full"].losses is None
    for episode in seen.values():
        assert episode.index == 4
        assert episode.policy is None
        assert not episode.states.flags.writeable
    assert observed(ab.Needs(late_feedback=True), 0, STATES, ACTIONS, TABLE, TABLE).policy is TABLE


@pytest.mark.parametrize("dynamics", ["unknown", "known"])
@pytest.mark.parametrize("feedback", ["aggregate", "semi-bandit"])
def test_nothing_handed_over_leads_to_what_is_hidden(feedback: str, dynamics: str) -> None:
    """Follow every reference from what the learner holds: no loss table, and no transitions unless known."""
    kept: list[Any] = []
    tables = np.random.default_rng(1).random((5, 3, 3, 2))
    losses = ab.adversaries.Recorded(tables)
    ab.run(MDP, losses, Spy(feedback=feedback, dynamics=dynamics, kept=kept), episodes=5)
    assert sum(isinstance(item, Episode) for item in kept) == 5
    arrays = reachable_arrays(kept)
    hidden = tables.reshape(5, -1)
    for array in arrays:
        assert not any(np.shares_memory(array, table) for table in (losses.tables(0, 5), tables))
        if array.size >= hidden.shape[1]:
            flat = array.reshape(-1)
            assert not any(np.array_equal(flat[: row.size], row) for row in hidden)
    has_transition = any(array.shape[-4:] == (3, 3, 2, 3) or array.shape[-3:] == (3, 2, 3) for array in arrays)
    assert has_transition == (dynamics == "known")


@pytest.mark.parametrize("kind", ["recorded", "switching", "bernoulli"])
def test_full_information_is_that_of_one_episode(kind: str) -> None:
    """The tables shown used to be views, whose base held those of the episodes to come."""
    kept: list[Any] = []
    tables = np.random.default_rng(1).random((5, 3, 3, 2))
    losses = {
        "recorded": lambda: ab.adversaries.Recorded(tables),
        "switching": lambda: ab.adversaries.make("switching", MDP, blocks=5, seed=0),
        "bernoulli": lambda: ab.adversaries.make("bernoulli", MDP, seed=0),
    }[kind]()
    ab.run(MDP, losses, Spy(feedback="full", kept=kept), episodes=5, keep_policy=False)
    shown = [item for item in kept if isinstance(item, Episode)]
    everything = losses.for_episodes(5).tables(0, 5)
    assert [episode.index for episode in shown] == list(range(5))
    for episode in shown:
        np.testing.assert_array_equal(episode.table, everything[episode.index])
        reached = [array for array in reachable_arrays([episode]) if array.size >= everything[0].size]
        assert {array.shape for array in reached} == {(3, 3, 2)}
        assert not any(np.shares_memory(array, everything) for array in reached)


def test_the_search_for_hidden_arrays_finds_them() -> None:
    """The spy's own check, fed a leak."""
    leaky = Episode(0, STATES, ACTIONS, table=TABLE[:])
    assert any(np.shares_memory(array, TABLE) for array in reachable_arrays([leaky]))
    assert any(array.shape == (3, 3, 2, 3) for array in reachable_arrays([{"deep": [MDP]}]))


def reachable_arrays(roots: list[Any]) -> list[Any]:
    """Every array that can be reached from `roots` through attributes, containers and views."""
    found: list[Any] = []
    seen: set[int] = set()
    queue = list(roots)
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(item, (type, str, int, float, bytes)) or item is None:
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            found.append(item)
            queue.append(item.base)
        elif isinstance(item, (list, tuple, dict, set, frozenset)) or type(item).__module__.startswith("aggbandit"):
            if hasattr(item, "__dict__"):
                queue.extend(vars(item).values())
            if hasattr(type(item), "__slots__"):
                queue.extend(getattr(item, name, None) for name in type(item).__slots__)
            queue.extend(item.values() if isinstance(item, dict) else gc.get_referents(item))
    return found
