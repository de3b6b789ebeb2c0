"""`run`: exact regret, and the same bits however it is cut, spread, or interrupted."""

import math
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import DamagedFileError, InvalidInputError
from aggbandit.learners.base import Draws, Episode, Problem
from aggbandit.simulation import run as run_module
from aggbandit.simulation.engines.plain import sampler
from aggbandit.simulation.interrupts import interrupts_held
from aggbandit.simulation.losses import LossReader
from aggbandit.simulation.run import Progress, Simulation, checkpoint_episodes
from naive import planning as naive

MDP = ab.instances.make("random", states=4, actions=3, horizon=4, seed=2)
LEARNERS = ["po-known", "po-unknown", "uniform", "fixed-policy"]


class Noted(NamedTuple):
    policy_hsa: Any
    count: int


@dataclass(frozen=True, kw_only=True)
class Wanderer(ab.Learner[Noted]):
    """Plays a policy drawn anew each episode: a learner without a fused engine, with draws of its own."""

    needs = ab.Needs(late_feedback=True)

    def init(self, problem: Problem, draws: Draws) -> Noted:
        return Noted(_drawn(problem, draws), 0)

    def policy(self, problem: Problem, state: Noted) -> Any:
        return state.policy_hsa

    def update(self, problem: Problem, state: Noted, episode: Episode, draws: Draws) -> Noted:
        return Noted(_drawn(problem, draws), state.count + 1)


def _drawn(problem: Problem, draws: Draws) -> Any:
    weights = draws.uniform(problem.shape) + 0.01
    return weights / weights.sum(axis=-1, keepdims=True)


def simulation(
    learner: Any, losses: Any, K: int = 300, replicas: int = 3, fused: bool = True, **more: Any
) -> Simulation:
    made = ab.learners.as_learner(learner)
    problem = Problem.of(MDP, K, made.needs)
    marks = checkpoint_episodes(7, K)
    return Simulation(
        MDP, LossReader(losses, MDP, K), made.bound(problem), problem, replicas=replicas, seed=9, checkpoints=marks,
        fused=fused, **more,
    )  # fmt: skip


def switching(seed: int = 0) -> Any:
    return ab.adversaries.make("switching", MDP, blocks=5, seed=seed)


class Sampled:
    """A user's own sequence: only `.tables`, a new table every episode."""

    def __init__(self, K: int, seed: int = 0) -> None:
        self.all = np.random.default_rng(seed).random((K, MDP.H, MDP.S, MDP.A))

    def tables(self, start: int, stop: int) -> Any:
        return self.all[start:stop]


def same(one: ab.RunResult, two: ab.RunResult) -> None:
    for name in ("regret", "cost", "comparator", "policy", "hindsight_policy", "pseudo_regret"):
        a, b = getattr(one, name), getattr(two, name)
        assert (a is None) == (b is None), name
        assert a is None or np.array_equal(a, b), name


def test_regret_is_the_definition() -> None:
    """Cost and comparator from enumeration, for the policies that were played."""
    K = 12
    mdp = ab.instances.make("random", states=2, actions=2, horizon=3, seed=0)
    tables = np.random.default_rng(1).random((K, 3, 2, 2))
    result = ab.run(mdp, ab.adversaries.Recorded(tables), Wanderer(), episodes=K, seed=4, checkpoints=[3, K])
    problem = Problem.of(mdp, K, Wanderer().needs)
    policies = [_drawn(problem, Draws(4, 0, 0, 1))] + [_drawn(problem, Draws(4, 0, k, 2)) for k in range(K - 1)]
    transition = np.asarray(mdp.transition)
    costs = [
        naive.value(transition, policy, table, mdp.initial) for policy, table in zip(policies, tables, strict=True)
    ]
    for c, n in enumerate((3, K)):
        summed = tables[:n].sum(axis=0)
        best = min(naive.value(transition, pi, summed, mdp.initial) for pi in naive.deterministic_policies(3, 2, 2))
        assert result.cost[0, c] == pytest.approx(math.fsum(costs[:n]), rel=1e-12)
        assert result.comparator[c] == pytest.approx(best, rel=1e-12)
        assert result.regret[0, c] == result.cost[0, c] - result.comparator[c]


def test_pseudo_regret_is_against_the_mean_table() -> None:
    losses = ab.adversaries.make("bernoulli", MDP, seed=3)
    result = ab.run(MDP, losses, "uniform", episodes=50, checkpoints=[10, 50])
    uniform = np.full((MDP.H, MDP.S, MDP.A), 1 / MDP.A)
    per_episode = float(ab.planning.values(MDP, uniform, losses.mean_table)[0] @ MDP.initial)
    _, best = ab.planning.best_policy(MDP, losses.mean_table)
    np.testing.assert_allclose(result.pseudo_regret[0], np.array([10, 50]) * (per_episode - best), rtol=1e-12)
    assert ab.run(MDP, switching(), "uniform", episodes=5).pseudo_regret is None


@pytest.mark.parametrize("learner", [*LEARNERS, Wanderer()])
def test_any_cut_into_blocks_gives_the_same_bits(learner: Any) -> None:
    for make in (switching, lambda: Sampled(300), lambda: ab.adversaries.make("bernoulli", MDP, seed=1)):
        results = []
        for size in (1, 7, 300):
            played = simulation(learner, make())
            played.play(block_episodes=size)
            results.append(played.result())
        same(results[0], results[1])
        same(results[0], results[2])


@pytest.mark.parametrize("learner", [*LEARNERS, Wanderer()])
def test_any_number_of_threads_gives_the_same_bits(learner: Any) -> None:
    one, two = (ab.run(MDP, switching(), learner, episodes=200, replicas=5, threads=n) for n in (1, 2))
    same(one, two)


@pytest.mark.parametrize("learner", ["po-unknown", "uniform", Wanderer()])
def test_a_replica_does_not_depend_on_its_company(learner: Any) -> None:
    few, many = (ab.run(MDP, switching(), learner, episodes=150, replicas=n) for n in (2, 5))
    np.testing.assert_array_equal(few.regret, many.regret[:2])


@pytest.mark.parametrize("learner", [*LEARNERS, Wanderer()])
def test_saved_and_continued_gives_the_same_bits(learner: Any, tmp_path: Path) -> None:
    whole = simulation(learner, switching())
    whole.play(block_episodes=50)
    stopped_half_way(simulation(learner, switching())).save(tmp_path / "state")
    second = simulation(learner, switching())
    second.play(block_episodes=50, state_file=tmp_path / "state")
    same(whole.result(), second.result())


def stopped_half_way(under_way: Simulation) -> Simulation:
    """Played up to some episode from 150 on, and told to stop there."""

    class Stop(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.done >= 150:
            raise Stop("half-way")

    with pytest.raises(Stop, match="half-way"):
        under_way.play(block_episodes=50, report=stop)
    return under_way


def test_a_state_of_another_run_is_refused(tmp_path: Path) -> None:
    first = simulation("uniform", switching())
    first.save(tmp_path / "state")
    with pytest.raises(InvalidInputError, match="state of another run"):
        simulation("uniform", switching(seed=1)).load(tmp_path / "state")
    data = bytearray((tmp_path / "state").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "state").write_bytes(bytes(data))
    with pytest.raises(DamagedFileError, match="altered"):
        simulation("uniform", switching()).load(tmp_path / "state")


press_at: list[int] = []  # at which updates somebody presses Ctrl-C


@dataclass(frozen=True, kw_only=True)
class Interrupted(Wanderer):
    def update(self, problem: Problem, state: Noted, episode: Episode, draws: Draws) -> Noted:
        if episode.index in press_at:
            press_at.remove(episode.index)
            os.kill(os.getpid(), signal.SIGINT)
        return super().update(problem, state, episode, draws)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_saves_whole_blocks_and_continues(threads: int, tmp_path: Path) -> None:
    path = tmp_path / "state"
    arguments = {"episodes": 400, "replicas": 2, "seed": 3, "threads": threads}
    undisturbed = ab.run(MDP, switching(), Interrupted(), **arguments)
    before = signal.getsignal(signal.SIGINT)
    for moment in (0, 30, 150, 399):
        press_at.append(moment)
        with pytest.raises(KeyboardInterrupt, match="^$"):
            ab.run(MDP, switching(), Interrupted(), **arguments, state_file=path)
        assert signal.getsignal(signal.SIGINT) is before
    same(undisturbed, ab.run(MDP, switching(), Interrupted(), **arguments, state_file=path))


def test_a_damaged_state_is_named_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "state"
    half = simulation("po-known", switching())
    half.save(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedFileError, match=r"state is truncated: .* Remove it to start afresh\.$"):
        simulation("po-known", switching()).play(state_file=path)


@pytest.mark.parametrize("name, why", [("", "it is a folder"), ("missing/state", r"there is no folder '.*missing'")])
def test_a_place_where_no_state_can_be_kept_is_told_before_anything_is_played(
    name: str, why: str, tmp_path: Path
) -> None:
    """It used to be told by the first Ctrl-C, which then lost the run."""
    with pytest.raises(InvalidInputError, match=rf"^state_file must be a file, .*: {why}\.$"):
        ab.run(MDP, switching(), "uniform", episodes=4, state_file=tmp_path / name)


class ByHand(ab.Learner[Any]):
    """Keeps what it was told where no saved state looks for it."""

    needs = ab.Needs()

    def __init__(self, share: float) -> None:
        self.share = share

    def init(self, problem: Problem, draws: Draws) -> Any:
        return (np.full(problem.shape, 1 / problem.A),)

    def policy(self, problem: Problem, state: Any) -> Any:
        return state[0]

    def update(self, problem: Problem, state: Any, episode: Episode, draws: Draws) -> Any:
        return state if self.share else None


class OneBuffer:
    """Losses in one array that is filled anew by every call."""

    def __init__(self, losses: Any) -> None:
        self.losses = losses
        self.buffer = np.empty((100, *MDP.shape))
        self.calls: list[tuple[int, int]] = []

    def tables(self, start: int, stop: int) -> Any:
        self.calls.append((start, stop))
        self.buffer[: stop - start] = self.losses.tables(start, stop)
        return self.buffer[: stop - start]


class OneTable(OneBuffer):
    def tables(self, start: int, stop: int) -> Any:
        self.buffer[0] = self.losses.tables(start, start + 1)[0]
        return np.broadcast_to(self.buffer[0], (stop - start, *MDP.shape))


class OneBufferInPieces(OneBuffer):
    def segments(self, start: int, stop: int) -> Any:
        for first, last, table in self.losses.segments(start, stop):
            self.buffer[0] = table
            yield first, last, self.buffer[0]


@pytest.mark.parametrize("kind", [OneBuffer, OneTable, OneBufferInPieces])
def test_losses_may_fill_one_buffer_again_and_again(kind: type[OneBuffer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of one block used to be views of the buffer, which then held the last of them."""
    size = int(np.prod(MDP.shape))
    monkeypatch.setattr("aggbandit.simulation.losses.BLOCK_BYTES", 20 * 8 * size)  # 20 tables
    sequence = ab.adversaries.make("switching", MDP, period=20)
    own = kind(sequence)
    reader = LossReader(own, MDP, 100)
    done = 0
    while done < 100:
        block = reader.block(done, 100)
        told = block.tables_mhsa[block.row_n]
        np.testing.assert_array_equal(told, sequence.tables(done, done + len(told)))
        done += len(told)
    if kind is OneBuffer:  # and nothing is made twice
        assert own.calls == [(start, start + 20) for start in range(0, 100, 20)]


def test_a_learner_whose_arguments_are_hidden_plays_but_keeps_no_state_file(tmp_path: Path) -> None:
    """Its state file would be taken up by the same learner with other arguments."""
    assert ab.run(MDP, switching(), ByHand(0.5), episodes=4).episodes[-1] == 4
    with pytest.raises(
        InvalidInputError, match=r"ByHand must be a frozen dataclass for its arguments to be saved and t"
    ):
        ab.run(MDP, switching(), ByHand(0.5), episodes=4, state_file=tmp_path / "state")


def test_an_update_that_forgets_the_state_says_so() -> None:
    with pytest.raises(InvalidInputError, match=r"^update of .*:ByHand returned None, but must return the state: `ret"):
        ab.run(MDP, switching(), ByHand(0.0), episodes=4)


def test_an_interrupt_is_held_until_the_block_is_whole() -> None:
    reached = []

    def block() -> None:
        with interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append(True)

    with pytest.raises(KeyboardInterrupt, match="^$"):
        block()
    assert reached


def test_fused_and_plain_play_the_same_episodes() -> None:
    for learner in ("po-known", "po-unknown"):
        results = []
        for fused in (True, False):
            played = simulation(learner, switching(), K=200, fused=fused)
            played.play()
            results.append(played.result())
        np.testing.assert_allclose(results[0].policy, results[1].policy, atol=1e-9)
        np.testing.assert_allclose(results[0].cost, results[1].cost, rtol=1e-9)


def test_another_learner_leaves_the_environment_where_it_was() -> None:
    """Two learners that happen to play the same policy meet the same trajectories."""
    seen: dict[str, list[Any]] = {"a": [], "b": []}

    @dataclass(frozen=True, kw_only=True)
    class Spy(ab.Learner[Noted]):
        needs = ab.Needs()
        label: str
        greedy_for_draws: int

        def init(self, problem: Problem, draws: Draws) -> Noted:
            draws.uniform(self.greedy_for_draws)
            return Noted(np.full(problem.shape, 1 / problem.A), 0)

        def policy(self, problem: Problem, state: Noted) -> Any:
            return state.policy_hsa

        def update(self, problem: Problem, state: Noted, episode: Episode, draws: Draws) -> Noted:
            draws.uniform(self.greedy_for_draws)
            seen[self.label].append((episode.states.tolist(), episode.actions.tolist(), episode.total))
            return state

    for label, draws in (("a", 1), ("b", 1000)):
        ab.run(MDP, switching(), Spy(label=label, greedy_for_draws=draws), episodes=40, replicas=2, seed=1, threads=1)
    assert seen["a"] == seen["b"]
    assert len({str(trajectory[:2]) for trajectory in seen["a"]}) > 20


def test_evaluating_rarely_holds_the_last_value() -> None:
    exact = ab.run(MDP, switching(), Wanderer(), episodes=30, checkpoints=np.arange(1, 31))
    rare = ab.run(MDP, switching(), Wanderer(), episodes=30, checkpoints=np.arange(1, 31), evaluate_every=4)
    costs = np.diff(exact.cost[0], prepend=0.0)
    held = costs[np.arange(30) // 4 * 4]
    np.testing.assert_allclose(rare.cost[0], np.cumsum(held), rtol=1e-12)
    assert rare.evaluate_every == 4
    assert exact.evaluate_every == 1
    np.testing.assert_array_equal(rare.policy, exact.policy)


def test_late_feedback_arrives_when_it_is_due() -> None:
    arrivals: list[tuple[int, int]] = []
    played: list[int] = []

    @dataclass(frozen=True, kw_only=True)
    class Late(ab.Learner[Noted]):
        needs = ab.Needs(late_feedback=True)

        def init(self, problem: Problem, draws: Draws) -> Noted:
            return Noted(np.full(problem.shape, 1 / problem.A), 0)

        def policy(self, problem: Problem, state: Noted) -> Any:
            played.append(len(played))
            return state.policy_hsa

        def update(self, problem: Problem, state: Noted, episode: Episode, draws: Draws) -> Noted:
            arrivals.append((len(played) - 1, episode.index))
            assert episode.policy is not None
            return state

    ab.run(MDP, switching(), Late(), episodes=5, delays=[2, 0, 0, 9, 0], keep_policy=False)
    assert arrivals == [(1, 1), (2, 0), (2, 2), (4, 4)]
    taking = [name for name in ab.learners.names() if ab.learners.make(name).needs.late_feedback]
    assert set(taking) - {"uniform", "fixed-policy"} == set(run_module.TAKE_LATE_FEEDBACK)
    way_out = "po-known does not take late feedback; .* Learners that take it: dapo, po-model-free, po-practical"
    with pytest.raises(InvalidInputError, match=way_out):
        ab.run(MDP, switching(), "po-known", episodes=5, delays=1)
    with pytest.raises(InvalidInputError, match=r"delays\[3\] is -1, but feedback cannot arrive before"):
        ab.run(MDP, switching(), Late(), episodes=5, delays=[2, 0, 0, -1, 0])
    with pytest.raises(InvalidInputError, match="delays is -1, but feedback cannot arrive before"):
        ab.run(MDP, switching(), Late(), episodes=5, delays=-1)
    arrivals.clear()
    # after the last episode, or later
    for never in (5, 2**63 - 1, np.array([4, 2**64 - 1, 3, 2, 2**64 - 1], np.uint64)):
        ab.run(MDP, switching(), Late(), episodes=5, delays=never, keep_policy=False)
    assert [index for _, index in arrivals] == [0]
    np.testing.assert_array_equal(run_module._delays(never, 5, Late()), [4, 5, 3, 2, 5])  # it used to wrap to -1
    few = np.array([0, 1, 2, 127] * 75, np.int8)  # a type that K = 300 does not fit into
    np.testing.assert_array_equal(run_module._delays(few, 300, Late()), few)


LATE = [
    ("dapo", {}),
    ("dapo", {"dynamics": "unknown", "radius_scale": 0.1}),
    ("dapo", {"feedback": "aggregate"}),
    ("po-practical", {}),
    ("po-practical", {"dynamics": "unknown"}),
    ("po-model-free", {}),
]
DELAYS = {
    "fixed": np.full(300, 7),
    "random": np.random.default_rng(0).integers(0, 60, size=300),
    "one that never comes": np.where(np.arange(300) % 9, 0, 10**6),
    "all at once": 299 - np.arange(300),
}


@pytest.mark.parametrize("delays", DELAYS.values(), ids=DELAYS)
@pytest.mark.parametrize("name, arguments", LATE)
def test_late_feedback_is_that_of_a_session(name: str, arguments: dict[str, Any], delays: Any) -> None:
    """`run` with delays, against a person who begins each episode and reports it when its feedback has come."""
    learner = ab.learners.make(name, **arguments)
    K = delays.size
    result = ab.run(MDP, switching(), learner, episodes=K, seed=9, delays=delays)
    session = ab.start(learner, Problem.of(MDP, K, learner.needs), seed=9)
    sample, tables = sampler(MDP), switching().for_episodes(K).tables(0, K)
    due: dict[int, list[Any]] = {}
    for k in range(K):
        assert session.begin() == k
        states, actions = sample(session.policy, 0, k, np.uint64(9))
        losses = tables[k, np.arange(MDP.H), states, actions]
        told = losses if learner.needs.feedback == "semi-bandit" else float(sum(losses))
        due.setdefault(k + delays[k], []).append((states, actions, told, k))
        for report in due.pop(k, []):
            session.update(*report)
    np.testing.assert_array_equal(result.policy[0], session.policy)
    assert np.abs(session.policy - 1 / MDP.A).max() > 1e-3


@pytest.mark.parametrize("delays", DELAYS.values(), ids=DELAYS)
@pytest.mark.parametrize("name, arguments", LATE)
def test_saved_and_continued_while_feedback_is_under_way(
    name: str, arguments: dict[str, Any], delays: Any, tmp_path: Path
) -> None:
    learner = ab.learners.make(name, **arguments)
    whole = simulation(learner, switching(), delays=delays)
    whole.play(block_episodes=50)
    stopped_half_way(simulation(learner, switching(), delays=delays)).save(tmp_path / "state")
    continued = simulation(learner, switching(), delays=delays)
    continued.play(block_episodes=50, state_file=tmp_path / "state")
    same(whole.result(), continued.result())
    with pytest.raises(InvalidInputError, match="state of another run"):
        simulation(learner, switching(), delays=delays + 1).load(tmp_path / "state")


def test_only_what_is_still_to_come_is_kept() -> None:
    """Feedback that never arrives used to be kept, and every wait to be looked through at every episode."""
    for never in (300, 10**6):
        played = simulation(Wanderer(), switching(), delays=np.full(300, never), replicas=1)
        played.play()
        assert played.engines[0].state()["late"] == [[]]
    waiting = stopped_half_way(simulation(Wanderer(), switching(), delays=np.full(300, 20), replicas=1))
    done = waiting._done
    assert [episode["index"] for episode in waiting.engines[0].state()["late"][0]] == list(range(done - 20, done))


def test_checkpoints() -> None:
    np.testing.assert_array_equal(checkpoint_episodes([5, 3, 5], 9), [3, 5, 9])
    np.testing.assert_array_equal(checkpoint_episodes(1, 9), [9])
    spaced = checkpoint_episodes(None, 10**6)
    assert spaced[0] == 1
    assert spaced[-1] == 10**6
    assert (np.diff(spaced) > 0).all()
    assert checkpoint_episodes(None, 1).tolist() == [1]
    assert checkpoint_episodes(4, 1000).tolist() == [1, 10, 100, 1000]


@pytest.mark.parametrize("K", [1, 2, 3, 17, 100, 10**4, 2**32 - 1])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 60, 500, 10**12])
def test_as_many_checkpoints_as_asked_for(K: int, count: int) -> None:
    """Log-spaced ones coincide early on; there used to be fewer than asked for."""
    if min(count, K) > 10**6:
        pytest.skip("a curve of so many points needs gigabytes")
    marks = checkpoint_episodes(count, K)
    assert marks.size == min(count, K)
    assert marks[-1] == K
    assert (np.diff(marks) > 0).all()
    assert marks[0] == 1 or marks.size == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"episodes": 0}, "episodes must be between 1 and 4294967295, but is 0"),
        ({"episodes": 2.5}, "episodes must be an integer, but is 2.5"),
        ({"replicas": 0}, "replicas must be"),
        ({"seed": -1}, "seed must be"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"evaluate_every": 0}, "evaluate_every must be"),
        ({"checkpoints": [0, 4]}, r"checkpoints\[0\] is 0, but must lie in 1 ... 10"),
        ({"checkpoints": [[1]]}, "checkpoints must be None, a count, or a list"),
        ({"checkpoints": [[1], [2, 3]]}, "checkpoints must be an array, but its rows differ in length"),
        ({"delays": 0.5}, "delays must be an integer"),
        ({"delays": [[1], [2, 3]]}, "delays must be an array, but its rows differ in length"),
        ({"progress": "yes"}, "progress must be True, False or a function of a Progress, but is 'yes'"),
        ({"keep_policy": "no"}, "keep_policy must be True or False, but is 'no'"),
        ({"mdp": "random"}, "mdp must be an aggbandit.TabularMDP, but is str"),
        ({"learner": "po-knwon"}, "There is no learner 'po-knwon'. Did you mean 'po-known'"),
        ({"learner": Wanderer}, "must be an instance, but is the class Wanderer"),
        ({"learner": 3}, "learner must be an id or an aggbandit.Learner, but is int"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    given = {"mdp": MDP, "losses": switching(), "learner": "uniform", "episodes": 10} | arguments
    with pytest.raises((InvalidInputError, ab.errors.UnknownNameError), match=message):
        ab.run(given.pop("mdp"), given.pop("losses"), given.pop("learner"), **given)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.full((4, 4, 3), np.nan), r"the policy of \S*Stuck\[0, 0, 0\] is nan, but every entry must be finite"),
        (np.full((4, 3), 1 / 3), r"the policy of \S*Stuck must have shape \(H, S, A\) = \(4, 4, 3\)"),
        (np.full((4, 4, 3), 0.3), r"the policy of \S*Stuck\[0, 0\] sums to 0\.9"),
    ],
)
def test_what_a_learner_of_ones_own_answers_is_checked(policy: Any, message: str) -> None:
    """NaN used to end in a table of NaN, another shape in an error of the compiler."""

    class Stuck(Wanderer):
        def policy(self, problem: Problem, state: Noted) -> Any:
            return policy

    with pytest.raises(InvalidInputError, match=message):
        ab.run(MDP, switching(), Stuck(), episodes=3)
    with pytest.raises(InvalidInputError, match=message):
        _ = ab.start(Stuck(), Problem.of(MDP, 3, Stuck().needs)).policy


def test_result_is_saved_whole(tmp_path: Path) -> None:
    result = ab.run(MDP, ab.adversaries.make("bernoulli", MDP, seed=0), "po-known", episodes=20, replicas=2)
    result.save(tmp_path / "result")
    again = ab.RunResult.load(tmp_path / "result")
    same(result, again)
    assert repr(again) == repr(result)
    assert repr(again.learner) == repr(result.learner)
    assert not again.regret.flags.writeable
    data = (tmp_path / "result").read_bytes()
    (tmp_path / "result").write_bytes(data[:-1])
    with pytest.raises(DamagedFileError, match="truncated"):
        ab.RunResult.load(tmp_path / "result")


def test_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Progress] = []
    ab.run(MDP, switching(), "uniform", episodes=50, progress=told.append)
    assert told[0].compiling
    assert told[-1].done == told[-1].episodes == 50
    ab.run(MDP, switching(), "uniform", episodes=50, progress=True)
    assert "50/50 episodes" in capsys.readouterr().err


def test_blas_is_left_as_it_was() -> None:
    from threadpoolctl import threadpool_info

    before = [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()]
    with run_module.single_threaded_blas():
        assert all(pool["num_threads"] == 1 for pool in threadpool_info() if pool["user_api"] == "blas")
    assert [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()][: len(before)] == before


def test_what_a_learner_compiles_in_its_first_update_is_no_play() -> None:
    import time
    from dataclasses import dataclass
    from typing import NamedTuple

    class Waited(NamedTuple):
        policy_hsa: np.ndarray

    slept = 0.5

    @dataclass(frozen=True, kw_only=True)
    class Compiles(ab.Learner):
        needs = ab.Needs()

        def init(self, problem, draws):
            return Waited(np.full(problem.shape, 1 / problem.A))

        def policy(self, problem, state):
            return state.policy_hsa

        def update(self, problem, state, episode, draws):
            if episode.index == 0:
                time.sleep(slept)
            return state

    assert 0 < ab.run(MDP, switching(), Compiles(), episodes=20).seconds < slept
    assert ab.run(MDP, switching(), Compiles(), episodes=1).seconds >= slept  # nothing to tell it from
