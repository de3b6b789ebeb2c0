"""The agent as its user meets it: episodes, scores, restarts, and what it says about itself."""

import random
import threading
from contextlib import suppress
from datetime import timedelta
from enum import Enum

import numpy as np
import pytest

from aggbandit.agent import Agent
from aggbandit.agent import agent as agent_module
from aggbandit.agent.beliefs import Act, Beliefs
from aggbandit.agent.values import encode
from aggbandit.errors import InvalidInputError, OutOfOrderError, UnknownNameError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.learners.po_model_free import PolicyOptimizationModelFree


class Stage(Enum):
    GREETED = 1
    ASKED = 2


def make(path=None, **arguments):
    return Agent(**({"actions": ["ask", "offer", "close"], "horizon": 3, "path": path, "bounds": (0, 6)} | arguments))


def play(agent, episodes, seed=0):
    """Episodes in which "ask" is best at every step."""
    chance = random.Random(seed)
    for _ in range(episodes):
        with agent.episode() as episode:
            loss = sum({"ask": 0.0, "offer": 1.0}.get(episode.act(h), 2.0) for h in range(3))
            episode.end(loss=min(6.0, loss * (0.9 + 0.1 * chance.random())))


@pytest.mark.parametrize("forget", [0.0, 0.01])
def test_an_agent_holds_the_numbers_of_the_learner_po_model_free(forget):
    H, S, A = 3, 4, 3
    agent = make(actions=[0, 1, 2], bounds=(0.0, H), forget=forget)
    learner = PolicyOptimizationModelFree(forget=forget)
    problem = Problem(H=H, S=S, A=A, episodes=None)
    draws = Draws(0, 0, 0, 1)
    state = learner.init(problem, draws)
    chance = np.random.default_rng(0)
    late = []
    for k in range(300):
        states = chance.integers(S, size=H)
        policy = learner.policy(problem, state).copy()
        episode = agent.episode(id=str(k))
        actions = np.array([episode.act(int(s)) for s in states])
        total = float((chance.random(H) * (1 + actions)).sum() / 3)
        late.append((k, Episode(k, states, actions, total=total, policy=policy)))
        while late and chance.random() < 0.6:  # scores come late and out of turn
            k_done, done = late.pop(int(chance.integers(len(late))))
            agent.score(str(k_done), loss=done.total)
            state = learner.update(problem, state, done, draws)
    policy = learner.policy(problem, state)
    for h in range(H):
        for s in range(S):
            assert list(agent.policy(s, h).values()) == policy[h, s].tolist()
    assert abs(policy - 1 / A).max() > 0.2


def test_it_learns_which_action_is_best():
    agent = make()
    play(agent, 400)
    assert all(agent.policy(h, h)["ask"] > 0.9 for h in range(3))
    assert agent.episodes == 400


def test_a_restart_repeats_what_was_decided_and_goes_on(fast_folder):
    path = fast_folder / "agent.db"
    with make(path) as agent:
        play(agent, 20)
        open_one = agent.episode(id="open")
        first = [open_one.act(Stage.GREETED), open_one.act(("x", 1.5, None))]
        before = {h: agent.policy(h, h) for h in range(3)}
    with Agent(path=path) as agent:
        assert {h: agent.policy(h, h) for h in range(3)} == before
        again = agent.episode(id="open")
        assert again.steps == 2
        assert [again.act(Stage.GREETED), again.act(("x", 1.5, None))] == first
        behind = agent.episode(id="open")
        behind.act(b"third", step=behind.steps)
        behind.end(loss=1)
        assert again.act(b"third") in agent.actions
        assert agent.episodes == 21


def test_a_restart_without_a_snapshot_learns_everything_again(fast_folder, monkeypatch):
    path = fast_folder / "agent.db"
    monkeypatch.setattr(agent_module, "SNAPSHOT_EVERY", 7)
    with make(path) as agent:
        play(agent, 30)
        agent.freeze()
        play(agent, 3)
        agent.thaw()
        play(agent, 3)
        before = agent._beliefs.state()
        assert agent._journal.snapshot() is not None
        agent._journal.append([("UPDATE snapshots SET data = zeroblob(100)", ())])
        agent._snapshot_event = agent._last_event  # so that closing writes none
    with Agent(path=path) as agent:
        after = agent._beliefs.state()
        assert all(np.array_equal(before[name], after[name]) for name in before)


def test_leaving_the_block_by_an_exception_leaves_the_episode_open():
    agent = make()
    with suppress(ZeroDivisionError), agent.episode(id="open") as episode:
        episode.act("s")
        1 / 0  # noqa: B018
    agent.episode(id="open").act("t", step=1)
    with agent.episode(id="left") as episode:
        episode.act("s")
    with pytest.raises(OutOfOrderError, match="'left' has ended after 1 steps"):
        agent.episode(id="left").act("t", step=1)
    assert agent.unscored == ["open", "left"]
    agent.score("open", loss=3)
    assert agent.unscored == ["left"]


def test_a_score_counts_once_whatever_its_delay():
    agent = make()
    play(agent, 5)
    episode = agent.episode(id="late")
    episode.act(0)
    episode.end()
    episode.end()
    play(agent, 5)
    agent.score("late", loss=1.5)
    policy = agent.policy(0, 0)
    agent.score("late", loss=1.5)
    agent.score("late", reward=4.5)  # low + high - reward: the same
    episode.end(loss=1.5)
    assert agent.policy(0, 0) == policy
    assert agent.episodes == 11
    with pytest.raises(OutOfOrderError, match="scored with a loss of 1.5 already, and is now given 2"):
        agent.score("late", loss=2)


def test_rewards_are_losses_mirrored_in_the_bounds():
    by_loss, by_reward = make(bounds=(-2, 4)), make(bounds=(-2, 4))
    for k in range(50):
        for agent, name in ((by_loss, "loss"), (by_reward, "reward")):
            episode = agent.episode(id=str(k))
            value = {"ask": -2.0, "offer": 1.0, "close": 4.0}[episode.act("s")]
            episode.end(**{name: value if name == "loss" else 2.0 - value})
    assert by_loss.policy("s", 0) == by_reward.policy("s", 0)


@pytest.mark.parametrize("score", [{"loss": 6.5}, {"loss": -0.1}, {"reward": 7}, {"loss": float("nan")}])
def test_scores_out_of_bounds_change_nothing(score):
    agent = make()
    episode = agent.episode(id="e")
    episode.act("s")
    with pytest.raises(InvalidInputError, match=r"at least 0 and at most 6.*agent's bounds; nothing was changed"):
        agent.score("e", **score)
    assert agent.unscored == ["e"]
    agent.score("e", loss=6)


def test_a_reward_is_the_same_score_as_its_loss_whatever_is_rounded():
    agent = make(bounds=(0.1, 0.7))
    agent.episode(id="e").act("s")
    agent.score("e", reward=0.7)  # 0.1 + 0.7 - 0.7 is below 0.1
    assert agent.episode(id="e").loss == 0.1
    other = make(bounds=(0.1, 0.7))
    assert other.warm_start(agent.export()) == 1
    agent.episode(id="f").act("s")
    agent.score("f", loss=0.2)
    agent.score("f", reward=0.6)  # 0.1 + 0.7 - 0.6 is not 0.2
    with pytest.raises(OutOfOrderError, match="loss of 0.2 already, and is now given 0.20001"):
        agent.score("f", loss=0.20001)
    told = {"id": "f", "steps": list(agent.export())[-1]["steps"]}
    assert agent.warm_start([told | {"reward": 0.6}]) == 0
    assert other.warm_start([told | {"loss": 0.2}, told | {"reward": 0.6}]) == 1
    with pytest.raises(OutOfOrderError, match="'f' is here already, and differs"):
        agent.warm_start([told])


@pytest.mark.parametrize("score", [{}, {"loss": 1, "reward": 1}])
def test_a_score_is_one_thing(score):
    agent = make()
    with agent.episode(id="e") as episode:
        episode.act("s")
    with pytest.raises(InvalidInputError, match="either loss= or reward=, exactly one"):
        agent.score("e", **score)


def test_unknown_episodes_are_named():
    agent = make()
    agent.episode(id="begun only")
    for name in ("never", "begun only"):
        with pytest.raises(UnknownNameError, match=f"There is no episode '{name}' here"):
            agent.score(name, loss=1)


def test_a_choice_may_be_restricted():
    agent = make()
    play(agent, 200)
    assert agent.policy(0, 0, actions=["offer", "close"]).keys() == {"offer", "close"}
    assert sum(agent.policy(0, 0, actions=["offer", "close"]).values()) == pytest.approx(1)
    for k in range(20):
        assert agent.episode(id=str(k)).act(0, actions=["offer", "close"]) in ("offer", "close")
    with pytest.raises(OutOfOrderError, match="other actions on offer; a repeat must offer the same"):
        agent.episode(id="3").act(0)
    with pytest.raises(UnknownNameError, match="There is no action 'shout'"):
        agent.episode().act(0, actions=["shout"])
    with pytest.raises(InvalidInputError, match="at least one action"):
        agent.episode().act(0, actions=[])
    for told in ("ask", 3):
        with pytest.raises(InvalidInputError, match="actions must be a list of actions"):
            agent.episode().act(0, actions=told)


def test_a_choice_of_one_teaches_nothing_about_the_others():
    agent = make()
    play(agent, 30)
    row = agent._beliefs._row_of[1, agent._states[encode(1)]]
    before = agent._beliefs._rows_rw[row].copy()
    for _ in range(20):
        with agent.episode() as episode:
            episode.act(0)
            episode.act(1, actions=["close"])
            episode.end(loss=0)  # much better than what "close" led to before
    scores, baseline = slice(0, 3), 9
    after = agent._beliefs._rows_rw[row]
    np.testing.assert_array_equal(after[scores], before[scores])
    assert after[baseline] < before[baseline]  # what is expected there did change


def test_a_choice_among_some_says_nothing_of_the_others():
    """Averaged over what was on offer, a score is the same for all that was, and nothing for what was not."""
    agent = make()
    play(agent, 30)
    number = agent._states[encode(1)]
    offered = bytes([1, 0, 1])
    chances = agent._beliefs.probabilities(1, number, offered)
    state = agent._beliefs.state()
    kept = {name: array.copy() for name, array in state.items()}
    row = agent._beliefs._row_of[1, number]
    mean = np.zeros(3)
    for action in (0, 2):
        beliefs = Beliefs(3, 3, PolicyOptimizationModelFree(exploration=0.0))
        beliefs.restore({name: array.copy() for name, array in kept.items()})
        acts = [Act(agent._states[encode(0)], 0, 0.5, None), Act(number, action, float(chances[action]), offered)]
        beliefs.learn(acts, 2.5, 2.5)
        mean += chances[action] * (beliefs._rows_rw[row, :3] - kept["rows"][row, :3])
        assert beliefs._rows_rw[row, 1] == kept["rows"][row, 1]
    assert mean[0] == pytest.approx(-0.0, abs=1e-9)
    assert mean[2] == pytest.approx(-0.0, abs=1e-9)


def test_steps_are_held_to_the_script():
    agent = make()
    episode = agent.episode(id="e")
    episode.act("a")
    with pytest.raises(OutOfOrderError, match="in state 'a', but is now told 'b' there.*pass step=episode.steps"):
        agent.episode(id="e").act("b")
    with pytest.raises(OutOfOrderError, match="has 1 acts, so the next one is at step 1, not 2"):
        episode.act("c", step=2)
    episode.act("b")
    episode.act("b")
    with pytest.raises(OutOfOrderError, match="has used all 3 steps"):
        episode.act("b")
    with pytest.raises(InvalidInputError, match="step must be an integer, but is 'b'"):
        episode.act("b", step="b")
    with pytest.raises(InvalidInputError, match="step must be between 0 and 2"):
        agent.policy("a", 3)


def test_episodes_expire_by_count_and_by_time():
    agent = make(expire_after=2)
    for name in "abcd":
        agent.episode(id=name).act("s")
    with pytest.raises(OutOfOrderError, match="'a' has expired: its score did not come within expire_after = 2"):
        agent.score("a", loss=1)
    with pytest.raises(OutOfOrderError, match="'a' has expired"):
        agent.episode(id="a").act("s", step=1)
    assert agent.unscored == ["b", "c", "d"]
    agent.score("b", loss=1)
    by_time = make(expire_after=timedelta(microseconds=1))
    by_time.episode(id="a").act("s")
    with pytest.raises(OutOfOrderError, match="has expired"):
        by_time.score("a", loss=1)


def test_a_frozen_agent_keeps_scores_and_learns_nothing(fast_folder):
    path = fast_folder / "agent.db"
    with make(path) as agent:
        play(agent, 10)
        policy = agent.policy(0, 0)
        agent.freeze()
        play(agent, 20)
        assert agent.policy(0, 0) == policy
        assert agent.frozen
        assert "frozen" in agent.explain(0)
    with Agent(path=path) as agent:
        assert agent.frozen
        assert agent.policy(0, 0) == policy
        assert sum(record["loss"] is not None for record in agent.export()) == 30
        agent.thaw()
        play(agent, 20)
        assert agent.policy(0, 0) != policy


def test_it_explains_itself_in_plain_words():
    agent = make()
    assert agent.explain("s") == "Nothing has been learned yet, so in 's' every action is as likely as any other."
    play(agent, 300)
    text = agent.explain(1)
    assert text.startswith("1 at step 1 (of 3), met in 300 of 300 scored episodes: settled on ask.")
    assert "ask" in text.splitlines()[1]
    assert "episodes then lost" in text
    assert text.endswith("A loss lies between 0 and 6, less is better; a reward r is told as 6 - r.")
    assert agent.explain("elsewhere").startswith("'elsewhere' was met in none of the 300 scored episodes")
    long = "x" * 10_000
    with agent.episode() as episode:
        episode.act(long)
        episode.end(loss=0)
    assert agent.explain(long).startswith("'" + "x" * 100)
    assert len(agent.explain(long)) < 1000
    with pytest.raises(OutOfOrderError, match="acted at step 0 in state 'x{79}, but is now told 'x{79} there"):
        agent.episode(id=episode.id).act(long + "y")


def test_what_one_agent_exports_another_starts_from(fast_folder):
    agent = make()
    play(agent, 100)
    with agent.episode(id="odd") as episode:
        episode.act((Stage.ASKED, b"\0", float("inf")), actions=["ask", "close"])
        episode.end(loss=1)
    agent.episode(id="unscored").act(0)
    agent.export(fast_folder / "log.jsonl")
    for log in (fast_folder / "log.jsonl", list(agent.export())):
        other = make()
        assert other.warm_start(log) == 102
        assert other.warm_start(log) == 0  # the same again is safe
        assert other.policy(0, 0) == agent.policy(0, 0)
        assert [{**record, "source": "lived"} for record in other.export()] == list(agent.export())


def test_a_log_without_probabilities_is_weighted_by_its_own_shares():
    log = [
        {"steps": [{"state": "s", "action": action}], "reward": reward}
        for action, reward in [("ask", 5.0), ("offer", 1.0), ("offer", 1.5), ("close", 0.5)] * 40
    ]
    agent = make()
    agent.warm_start(log)
    assert agent.policy("s", 0)["ask"] > 0.9
    assert {step["probability"] for record in agent.export() for step in record["steps"]} == {0.25, 0.5}


@pytest.mark.parametrize(
    "record, message",
    [
        ({"steps": [{"state": "s"}], "loss": 1}, r"log\[1\] must be a mapping with 'steps'"),
        ({"loss": 1}, r"log\[1\] must be a mapping with 'steps'"),
        ({"steps": [{"state": "s", "action": "shout"}], "loss": 1}, r"log\[1\]: There is no action 'shout'"),
        ({"steps": [{"state": "s", "action": "ask"}], "loss": 7}, r"log\[1\]: loss must be .* Nothing was changed"),
        ({"steps": [{"state": "s", "action": "ask"}] * 4, "loss": 1}, r"log\[1\]: it has 4 steps, more than"),
        ({"steps": [{"state": "s", "action": "ask", "probability": 0}]}, r"log\[1\]: probability must be"),
        ({"steps": [{"state": "s", "action": "ask", "actions": ["close"]}]}, r"log\[1\]: it takes 'ask'"),
    ],
)
def test_a_bad_log_changes_nothing(record, message):
    agent = make()
    with pytest.raises(InvalidInputError, match=message):
        agent.warm_start([{"steps": [{"state": "s", "action": "ask"}], "loss": 1}, record])
    assert list(agent.export()) == []


def test_a_log_that_contradicts_an_episode_is_refused_and_changes_nothing():
    def record(name, loss):
        return {"id": name, "steps": [{"state": "s", "action": "ask"}], "loss": loss}

    agent = make()
    agent.warm_start([record("a", 1)])
    policy = agent.policy("s", 0)
    with pytest.raises(OutOfOrderError, match="'a' is here already, and differs"):
        agent.warm_start([record("new", 5), record("a", 2)])
    with pytest.raises(OutOfOrderError, match="'b' is twice in the log, and differently"):
        agent.warm_start([record("b", 5), record("b", 2)])
    assert agent.policy("s", 0) == policy
    assert agent.warm_start([record("c", 5), record("c", 5), record("a", 1)]) == 1
    assert [told["id"] for told in agent.export()] == ["a", "c"]


@pytest.mark.parametrize("log", [3, {"steps": []}])
def test_a_log_is_a_list(log):
    with pytest.raises(InvalidInputError, match="log must be a list of episodes or a file of them"):
        make().warm_start(log)


def test_enum_actions_are_exported_by_name_and_come_back(fast_folder):
    agent = make(actions=[Stage.GREETED, Stage.ASKED])
    with agent.episode() as episode:
        episode.act(Stage.ASKED, actions=[Stage.GREETED])
        episode.end(loss=1)
    agent.export(fast_folder / "log.jsonl")
    other = make(actions=[Stage.GREETED, Stage.ASKED])
    assert other.warm_start(fast_folder / "log.jsonl") == 1
    assert [r["steps"] for r in other.export()] == [r["steps"] for r in agent.export()]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"actions": []}, "actions must name at least one"),
        ({"actions": "ask"}, "actions must be a list"),
        ({"actions": {"ask", "offer"}}, "actions must be a list"),  # whose order changes from run to run
        ({"actions": 3}, "actions must be a list"),
        ({"actions": ["a", 1, "a"]}, r"actions\[2\] is 'a', which is there already"),
        ({"actions": ["a", 1, True]}, r"actions\[2\] = True equals actions\[1\] = 1, so that `policy`"),
        ({"actions": ["a", float("nan")]}, "must not name NaN"),
        ({"actions": ["a", bytearray(b"b")]}, r"actions\[1\] is bytearray\(b'b'\), which may change"),
        ({"horizon": 0}, "horizon must be at least 1"),
        ({"horizon": None}, "A new agent needs horizon="),
        ({"bounds": (1, 1)}, "with low < high"),
        ({"bounds": (-1e308, 1e308)}, "bounds must lie within -1e.100 and 1e.100 and be at least 1e-100 apart"),
        ({"bounds": (0, 1e-300)}, "at least 1e-100 apart"),
        ({"bounds": 3}, r"bounds must be \(low, high\)"),
        ({"forget": 1.0}, "forget must be"),
        ({"expire_after": 0}, "expire_after must be at least 1"),
        ({"expire_after": timedelta(0)}, "expire_after must be positive"),
    ],
)
def test_bad_configurations_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    "id, message",
    [("", "string with something in it"), (3, "string with something in it"), ("\ud800", "text that UTF-8 can hold")],
)
def test_ids_are_strings(id, message):
    agent = make()
    for asked in (lambda: agent.episode(id=id), lambda: agent.act(id, 0, "s"), lambda: agent.score(id, loss=1)):
        with pytest.raises(InvalidInputError, match=f"id must be a {message}"):
            asked()


@pytest.mark.parametrize("bounds", [(-1e100, 1e100), (0, 1e-100)])
def test_it_learns_in_any_units(bounds):
    agent = make(bounds=bounds)
    for _ in range(60):
        with agent.episode() as episode:
            episode.end(loss=bounds[episode.act("s") != "ask"])
    assert agent.policy("s", 0)["ask"] > 0.9
    assert "nan" not in agent.explain("s")


def test_actions_may_come_from_anything_that_lists_them():
    for actions in (("a" * n for n in (1, 2)), np.array(["a", "aa"]), {"a": 1, "aa": 2}.values()):
        agent = make(actions=actions)
        assert len(agent.policy("s", 0)) == 2
        assert agent.episode().act("s", actions=iter(agent.actions[1:])) == agent.actions[1]
        assert not any(isinstance(action, np.generic) for action in agent.actions)


def test_many_episodes_are_open_at_once_and_more_than_memory_holds(fast_folder, monkeypatch):
    monkeypatch.setattr(agent_module, "LIVE_LIMIT", 3)
    with make(fast_folder / "agent.db") as agent:
        episodes = [agent.episode(id=str(k)) for k in range(12)]
        for h in range(3):
            for episode in episodes:
                episode.act(h)
        assert len(agent._live) <= 4
        for k in reversed(range(12)):
            agent.score(str(k), loss=k % 6)
        assert agent.episodes == 12
        assert all(len(record["steps"]) == 3 for record in agent.export())


def test_memory_lets_nothing_go_that_is_not_on_the_disk_yet(fast_folder, monkeypatch):
    monkeypatch.setattr(agent_module, "LIVE_LIMIT", 1)
    with make(fast_folder / "agent.db") as agent:
        make_durable = agent._make_durable
        monkeypatch.setattr(agent, "_make_durable", lambda batch: None)  # as while another thread's commit is under way
        for name in "abc":
            agent.episode(id=name).act("s")
        monkeypatch.setattr(agent, "_make_durable", make_durable)
        assert [agent.episode(id=name).steps for name in "abc"] == [1, 1, 1]


def test_threads_share_one_agent_and_lose_nothing(fast_folder):
    with make(fast_folder / "agent.db") as agent:
        kept = []

        def work(worker):
            for k in range(25):
                episode = agent.episode(id=f"{worker}-{k}")
                actions = [episode.act((worker % 2, h)) for h in range(3)]
                episode.end(loss=float(worker))
                kept.append((episode.id, actions, float(worker)))

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        policy = agent.policy((0, 0), 0)
    with Agent(path=fast_folder / "agent.db") as agent:
        found = {r["id"]: ([step["action"] for step in r["steps"]], r["loss"]) for r in agent.export()}
        assert found == {name: (actions, loss) for name, actions, loss in kept}
        assert agent.episodes == 100
        assert agent.policy((0, 0), 0) == policy


def test_a_closed_agent_says_so(fast_folder):
    agent = make(fast_folder / "agent.db")
    agent.close()
    agent.close()
    with pytest.raises(OutOfOrderError, match="is closed; make a new Agent on its path"):
        agent.episode()
    assert "closed" in repr(agent)
