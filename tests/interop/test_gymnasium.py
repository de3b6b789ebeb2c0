"""Gymnasium on both sides: its environments for our learners, ours as its environments."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import InvalidInputError, OutOfOrderError
from aggbandit.learners.po_model_free import PolicyOptimizationModelFree
from aggbandit.learners.po_practical import PolicyOptimizationPractical

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402

from aggbandit.interop import gymnasium as gym  # noqa: E402


class Corridor(gymnasium.Env):
    """Two rooms on the way to a door: 1 opens it, 0 stays; every step costs 1, observations are what `seen` makes."""

    action_space = gymnasium.spaces.Discrete(2, start=5)

    def __init__(self, seen, space):
        self.observation_space = space
        self._seen = seen

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._room = 0
        return self._seen(self._room), {}

    def step(self, action):
        self._room += int(action == 6)
        return self._seen(self._room), -1.0, self._room == 2, False, {}


CORRIDORS = {
    "discrete": (lambda room: room, gymnasium.spaces.Discrete(3)),
    "text": (lambda room: "abc"[room], gymnasium.spaces.Text(1)),
    "array": (lambda room: np.array([room, 7.5]), gymnasium.spaces.Box(0, 9, (2,))),
    "dict": (lambda room: {"x": [room], "y": (room, 1)}, gymnasium.spaces.Dict({})),
}


def test_only_the_total_is_shown_and_only_at_the_end():
    env = gym.AggregateReward(gymnasium.make("CliffWalking-v1", max_episode_steps=7))
    plain = gymnasium.make("CliffWalking-v1", max_episode_steps=7)
    for _ in range(2):  # the sum starts anew at each reset
        env.reset(seed=3)
        plain.reset(seed=3)
        shown, true = [], []
        for action in (0, 1, 1, 2, 2, 0, 0):
            _, reward, terminated, truncated, info = env.step(action)
            shown.append(reward)
            true.append(plain.step(action)[1])
        assert truncated
        assert not terminated
        assert shown == [0.0] * 6 + [sum(true)]
        assert info["total"] == sum(true) < -7


@pytest.mark.parametrize("id", gym.register())
def test_our_instances_pass_gymnasiums_own_check(id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(id, disable_env_checker=True).unwrapped)


def test_an_instance_played_through_gymnasium_has_its_dynamics_and_losses():
    env = gym.InstanceEnv("random", {"states": 3, "actions": 2, "horizon": 2, "seed": 1}, "switching", {"blocks": 2})
    seen = np.zeros((3, 2, 3))
    rng = np.random.default_rng(0)
    for k in range(3000):
        s, info = env.reset(seed=5) if k == 0 else env.reset()
        assert info["episode"] == k
        first, action = s, int(rng.integers(2))
        s, reward, terminated, _, _ = env.step(action)
        assert reward == -env.losses.tables(k, k + 1)[0][0, first, action]
        assert not terminated
        seen[first, action, s] += 1
        assert env.step(0)[2]
    with pytest.raises(OutOfOrderError, match="The episode has ended; call reset"):
        env.step(0)
    start = env.mdp.initial_state
    shares = seen[start] / seen[start].sum(-1, keepdims=True)
    np.testing.assert_allclose(shares, env.mdp.transition[0, start], rtol=0, atol=0.05)  # three standard errors
    env.reset()
    with pytest.raises(InvalidInputError, match=r"action must be in 0 \.\.\. 1"):
        env.step(2)


def test_the_state_has_a_name_to_look_at():
    env = gymnasium.make("aggbandit/dialogue-v0", render_mode="ansi")
    env.reset(seed=0)
    assert env.render().startswith("step 0 of ")


def test_a_table_is_read_into_dynamics_and_losses():
    mdp, losses = gym.from_env("FrozenLake-v1", horizon=5, desc=["SH", "FG"], is_slippery=False)
    assert (mdp.H, mdp.S, mdp.A) == (5, 5, 4)
    assert mdp.is_stationary
    down, right = 1, 2
    for s, a, goes in [(0, down, 2), (0, right, 4), (2, right, 4), (4, 0, 4), (0, 0, 0)]:
        assert mdp.transition[0, s, a].tolist() == np.eye(5)[goes].tolist()
    assert (losses.low, losses.high) == (0.0, 1.0)
    assert losses.mean_table[3, 2, right] == 0.0  # the only step that is rewarded
    assert losses.mean_table.sum() == 5 * (5 * 4 - 1)
    _, value = ab.planning.best_policy(mdp, losses.mean_table)
    assert losses.reward(value) == pytest.approx(1.0)


def test_the_dynamics_read_are_those_that_are_played():
    """The cliff's own table says what happens after the goal; we must not go there."""
    mdp, losses = gym.from_env("CliffWalking-v1", horizon=30)
    _, value = ab.planning.best_policy(mdp, losses.mean_table)
    assert losses.reward(value) == pytest.approx(-13.0)
    env = gymnasium.make("CliffWalking-v1")
    rng = np.random.default_rng(0)
    for _ in range(20):
        s, _ = env.reset(seed=0)
        assert mdp.initial[s] > 0.0
        for h in range(30):
            action = int(rng.integers(4))
            goes, reward, terminated, _, _ = env.step(action)
            assert mdp.transition[h, s, action, mdp.S - 1 if terminated else goes] > 0.0
            low, high = losses.low, losses.high
            assert losses.mean_table[h, s, action] == pytest.approx((high - reward) / (high - low))
            if terminated:
                break
            s = goes


def test_environments_without_a_table_are_refused():
    with pytest.raises(InvalidInputError, match="has no transition table P to read"):
        gym.from_env(Corridor(*CORRIDORS["discrete"]), 5)


@pytest.mark.parametrize("kind", CORRIDORS)
def test_a_learner_is_trained_on_discrete_and_on_hashable_observations(kind):
    env = Corridor(*CORRIDORS[kind])
    room = CORRIDORS[kind][0](0)
    told = []
    trained = gym.train(
        env, PolicyOptimizationModelFree(), 400, horizon=6, bounds=(-1, 0), seed=1, on_episode=lambda *x: told.append(x)
    )
    assert trained.returns[-50:].mean() > -2.3  # the way out takes 2 steps
    assert trained.returns[:20].mean() < -2.6
    assert (trained.returns == -trained.steps).all()
    assert trained.probabilities(0, room)[1] > 0.9
    assert told == list(enumerate(trained.returns))


def test_training_uses_the_table_where_there_is_one():
    trained = gym.train("CliffWalking-v1", PolicyOptimizationPractical(), 150, horizon=20)
    mdp, losses = gym.from_env("CliffWalking-v1", 20)
    assert trained.problem.dynamics is not None
    policy = trained.policy()
    reach = ab.planning.occupancy(mdp, policy)
    expected = losses.reward((reach[:, :, None] * policy * losses.mean_table).sum())
    assert trained.returns[:10].mean() < expected  # it has learned something, and the policy fits the states


def test_training_is_a_function_of_its_seed():
    def returns(seed):
        return gym.train("FrozenLake-v1", PolicyOptimizationModelFree(), 30, horizon=10, seed=seed).returns.tolist()

    found = {seed: returns(seed) for seed in range(6)}
    assert all(found[seed] == returns(seed) for seed in range(3))
    assert len({tuple(value) for value in found.values()}) > 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"horizon": None}, "has no limit of steps of its own; give horizon="),
        ({"bounds": None}, "does not tell the range of its rewards; give bounds="),
        ({"bounds": (1, 1)}, "with low < high"),
        ({"bounds": (-0.5, 0)}, r"The reward of step 0 is -1, outside of bounds = \(-0.5, 0\)"),
        ({"max_states": 1}, "more than max_states = 1 different observations"),
        ({"learner": PolicyOptimizationPractical()}, "has no transition table P"),
    ],
)
def test_what_training_cannot_know_must_be_told(arguments, message):
    given = {"learner": PolicyOptimizationModelFree(), "horizon": 6, "bounds": (-1, 0)} | arguments
    with pytest.raises(InvalidInputError, match=message):
        gym.train(Corridor(*CORRIDORS["text"]), given.pop("learner"), 5, **given)


def test_other_action_spaces_are_refused():
    env = Corridor(*CORRIDORS["discrete"])
    env.action_space = gymnasium.spaces.Box(0, 1, (1,))
    with pytest.raises(InvalidInputError, match="must have a Discrete action space"):
        gym.train(env, PolicyOptimizationModelFree(), 5, horizon=3, bounds=(0, 1))


def test_without_gymnasium_the_message_says_what_to_install():
    program = "import sys; sys.modules['gymnasium'] = None; import aggbandit.interop.gymnasium"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert 'MissingExtraError: Gymnasium is not installed. Install it with: pip install "aggbandit[gym]"' in done.stderr
