"""Off-policy evaluation: right on average, and its interval says how far it can be trusted."""

import numpy as np
import pytest

from aggbandit.agent import Agent
from aggbandit.agent.evaluation import weighted_mean
from aggbandit.errors import InvalidInputError, UnknownNameError

ACTIONS = ("a", "b", "c")
LOSS = {"a": 0.2, "b": 0.5, "c": 0.9}


def lived(episodes, seed, horizon=2):
    agent = Agent(actions=ACTIONS, horizon=horizon, bounds=(0, horizon), seed=seed, step_scale=0.3)
    chance = np.random.default_rng(seed)
    for _ in range(episodes):
        with agent.episode() as episode:
            states = [int(chance.integers(2)) for _ in range(horizon)]
            loss = 0.0
            for state in states:
                p = LOSS[episode.act(state)] * (0.6 if state else 1.0)
                loss += chance.random() < p
            episode.end(loss=loss)
    return agent


def test_the_interval_covers_the_truth_as_often_as_it_says():
    policy = {"a": 0.2, "b": 0.5, "c": 0.3}
    truth = 2 * 0.8 * sum(policy[action] * LOSS[action] for action in ACTIONS)
    found = []
    for seed in range(60):
        agent = lived(200, seed)
        found.append(agent.evaluate(lambda state, step: policy, confidence=0.9))
    reliable = [evaluation for evaluation in found if evaluation.reliable]
    assert len(reliable) >= 20  # the agent soon prefers "a", and then few episodes speak for this policy
    covered = sum(evaluation.low <= truth <= evaluation.high for evaluation in reliable)
    assert covered >= 0.83 * len(reliable)  # 90 % less two standard errors of 60 draws


def test_its_own_policies_cost_what_they_cost():
    agent = Agent(actions=ACTIONS, horizon=1, bounds=(0, 1))
    agent.freeze()  # uniform for good
    for _ in range(400):
        with agent.episode() as episode:
            episode.end(loss=LOSS[episode.act(None)])
    uniform = agent.evaluate("uniform")
    assert uniform == agent.evaluate("current")
    assert uniform.effective == pytest.approx(400)
    assert uniform.mean_weight == pytest.approx(1)
    one = agent.evaluate(lambda state, step: "a")
    assert one.loss == pytest.approx(0.2)
    assert one.reliable
    assert one.low <= 0.2 <= one.high
    assert "400 episodes worth" in str(one)


def test_a_policy_that_was_never_lived_is_not_judged():
    agent = Agent(actions=ACTIONS, horizon=1, bounds=(0, 4))
    for _ in range(100):
        with agent.episode() as episode:
            episode.act("s", actions=["a", "b"])
            episode.end(loss=1.0)
    never = agent.evaluate(lambda state, step: "c")
    assert (never.low, never.high, never.reliable) == (0, 4, False)
    assert "too few to rely on" in str(never)


def test_weights_far_from_one_on_average_are_noticed():
    lopsided = [(0.1, 1.0)] * 200  # the policy is mostly elsewhere: its average weight ought to be 1
    assert not weighted_mean(lopsided, (0, 2), 0.95).reliable
    assert weighted_mean([(1.0, 1.0)] * 200, (0, 2), 0.95).reliable


def test_no_episodes_no_claim():
    found = weighted_mean([], (0, 2), 0.95)
    assert (found.loss, found.low, found.high, found.reliable) == (1.0, 0, 2, False)


def test_bad_policies_are_refused():
    agent = lived(3, 0)
    with pytest.raises(InvalidInputError, match="must be 'current', 'uniform' or a function"):
        agent.evaluate("best")
    with pytest.raises(InvalidInputError, match="sums to 0.5, but its probabilities must sum to 1"):
        agent.evaluate(lambda state, step: {"a": 0.5})
    with pytest.raises(UnknownNameError, match="There is no action 'z'"):
        agent.evaluate(lambda state, step: "z")
