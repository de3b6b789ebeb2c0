"""Playing a plan into a folder: the numbers of `run`, kept as they come, continued after a stop."""

import json
import signal
from dataclasses import replace

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.errors import DamagedFileError, InvalidInputError, UnknownNameError
from aggbandit.experiments.first_look import FIRST_LOOK, Plan, begun, play, set_aside, stored
from aggbandit.experiments.named import Named

SMALL = replace(FIRST_LOOK, episodes=60, replicas=2, learners=(Named("uniform"), Named("po-known")))


def played(plan, folder):
    return [result for _, result in play(plan, folder, threads=1)]


def test_the_results_are_those_of_run(tmp_path):
    uniform, known = played(SMALL, tmp_path)
    mdp = ab.instances.make("random", states=3, actions=2, horizon=3, seed=0)
    losses = ab.adversaries.make("switching", mdp, blocks=8, period=250, seed=0)
    for result, learner in ((uniform, "uniform"), (known, "po-known")):
        expected = ab.run(
            mdp, losses, learner, episodes=60, replicas=2, seed=0, checkpoints=SMALL.checkpoints(), threads=1
        )
        np.testing.assert_array_equal(result.episodes, expected.episodes)
        np.testing.assert_array_equal(result.regret, expected.regret)


def test_the_seed_moves_everything_and_an_argument_wins(tmp_path):
    """Instance, losses and play follow the plan's seed, unless one of them is given its own."""
    first = played(SMALL, tmp_path / "0")[1]
    other = played(replace(SMALL, seed=1), tmp_path / "1")[1]
    assert not np.array_equal(first.comparator, other.comparator)
    held = Plan(
        instance=Named("random", {**SMALL.instance.arguments, "seed": 0}),
        adversary=Named("switching", {**SMALL.adversary.arguments, "seed": 0}),
        learners=SMALL.learners, episodes=60, replicas=2, seed=1,
    )  # fmt: skip
    same_world = played(held, tmp_path / "2")[1]
    np.testing.assert_array_equal(same_world.comparator, first.comparator)
    assert not np.array_equal(same_world.regret, first.regret)


def test_checkpoints_serve_linear_and_logarithmic_axes():
    marks = FIRST_LOOK.checkpoints()
    assert (marks[0], marks[-1]) == (1, FIRST_LOOK.episodes)
    assert np.diff(marks).max() <= FIRST_LOOK.episodes / 100 + 1
    for decade in (1, 10, 100, 1000):
        assert np.count_nonzero((marks >= decade) & (marks <= 10 * decade)) >= 10
    assert replace(FIRST_LOOK, episodes=1).checkpoints().tolist() == [1]


def test_everything_lies_in_the_folder(tmp_path):
    results = played(SMALL, tmp_path)
    plan, found = stored(tmp_path)
    assert plan == SMALL
    assert [label for label, _ in found] == ["uniform", "po-known"]
    for (_, path), result in zip(found, results, strict=True):
        np.testing.assert_array_equal(ab.RunResult.load(path).regret, result.regret)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.result", "1.result", "plan.json"]
    assert json.loads((tmp_path / "plan.json").read_bytes())["finished"] is True


def test_a_stopped_play_continues_to_the_same_numbers(tmp_path):
    whole = played(SMALL, tmp_path / "whole")

    def interrupt(progress):
        if progress.learner == "po-known" and progress.done >= 20:
            signal.raise_signal(signal.SIGINT)

    folder = tmp_path / "stopped"
    with pytest.raises(KeyboardInterrupt):  # noqa: PT011  it has no message
        list(play(SMALL, folder, threads=1, progress=interrupt))
    assert begun(SMALL, folder)
    assert [label for label, _ in stored(folder)[1]] == ["uniform"]

    seen = []
    again = [r for _, r in play(SMALL, folder, threads=1, progress=lambda p: seen.append((p.learner, p.done)))]
    assert {learner for learner, _ in seen} == {"po-known"}  # the other was kept
    assert min(done for _, done in seen) >= 20  # and this one goes on where it was
    for one, other in zip(whole, again, strict=True):
        np.testing.assert_array_equal(one.regret, other.regret)
    assert not begun(SMALL, folder)


def test_another_plan_starts_afresh(tmp_path):
    played(SMALL, tmp_path)
    shorter = replace(SMALL, episodes=30, learners=SMALL.learners[:1])
    played(shorter, tmp_path)
    plan, found = stored(tmp_path)
    assert plan == shorter
    assert len(found) == 1
    assert not (tmp_path / "1.result").exists()


def test_a_stopped_play_of_another_plan_is_kept_beside(tmp_path):
    """It used to be removed, however long it had played."""

    def interrupt(progress):
        if progress.learner == "po-known" and progress.done >= 20:
            signal.raise_signal(signal.SIGINT)

    whole = played(SMALL, tmp_path / "whole")
    shorter = replace(SMALL, episodes=30)
    folder = tmp_path / "look"
    for n in (1, 2):
        with pytest.raises(KeyboardInterrupt):  # noqa: PT011  it has no message
            list(play(SMALL, folder, threads=1, progress=interrupt))
        with pytest.raises(InvalidInputError, match="episodes must be at least 1"):
            set_aside(replace(SMALL, episodes=0), folder)
        assert begun(SMALL, folder)
        played(shorter, folder)
        assert stored(folder)[0] == shorter
        again = played(SMALL, tmp_path / f"look-stopped-{n}")
        for one, other in zip(whole, again, strict=True):
            np.testing.assert_array_equal(one.regret, other.regret)
    assert set_aside(SMALL, folder) is None  # what is finished is replaced


def test_only_its_own_files_are_removed(tmp_path):
    (tmp_path / "7.result").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine")
    played(SMALL, tmp_path)
    played(replace(SMALL, seed=3), tmp_path)
    assert (tmp_path / "7.result").read_text() == "mine"
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_damaged_result_of_a_stopped_play_is_played_again(tmp_path):
    whole = played(SMALL, tmp_path)
    record = json.loads((tmp_path / "plan.json").read_bytes())
    (tmp_path / "plan.json").write_text(json.dumps({**record, "finished": False}))
    damaged = bytearray((tmp_path / "0.result").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "0.result").write_bytes(damaged)
    np.testing.assert_array_equal(played(SMALL, tmp_path)[0].regret, whole[0].regret)


def test_what_does_not_fit_is_told_before_anything_is_written(tmp_path):
    folder = tmp_path / "new"
    for plan, error, message in (
        (replace(SMALL, learners=(Named("uniform"), Named("po-knwon"))), UnknownNameError, "Did you mean 'po-known'"),
        (replace(SMALL, learners=(Named("po-known", {"stepsize": 1}),)), InvalidInputError, "stepsize"),
        (replace(SMALL, instance=Named("random", {"states": 0})), InvalidInputError, "states must be at least 1"),
        (replace(SMALL, adversary=Named("switching", {"blocks": 1.5})), InvalidInputError, "blocks must be an integer"),
        (replace(SMALL, episodes=0), InvalidInputError, "episodes must be at least 1"),
        (replace(SMALL, replicas=0), InvalidInputError, "replicas must be at least 1"),
        (replace(SMALL, seed=-1), InvalidInputError, "seed must be at least 0"),
        (replace(SMALL, learners=(Named("fixed-policy", {"given": 9}),)), InvalidInputError, "given must be between 0"),
    ):
        with pytest.raises(error, match=message):
            played(plan, folder)
        assert not folder.exists()


def test_the_uniform_policy_is_added_once():
    alone = replace(SMALL, learners=(Named("po-known"),))
    assert alone.with_reference().labels == ["uniform", "po-known"]
    assert alone.with_reference().with_reference() == alone.with_reference()


def test_results_saved_by_hand_are_found_by_their_names(tmp_path):
    result = played(SMALL, tmp_path / "x")[0]
    folder = tmp_path / "mine"
    folder.mkdir()
    result.save(folder / "tuesday.result")
    plan, found = stored(folder)
    assert plan is None
    assert found == [("tuesday", folder / "tuesday.result")]


@pytest.mark.parametrize(
    "content, message",
    [
        ("{", "is no plan that can be read"),
        ("[]", "is no plan that can be read"),
        ('{"format": 99}', "has format 99, but this version reads format 1"),
        ('{"format": 1, "finished": true, "version": "0", "plan": {"episodes": 1}}', "is no plan that can be read"),
    ],
)
def test_a_damaged_plan_is_named(tmp_path, content, message):
    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(DamagedFileError, match=message):
        stored(tmp_path)


def test_a_folder_without_results_is_told(tmp_path):
    with pytest.raises(InvalidInputError, match="holds no results"):
        stored(tmp_path)
    with pytest.raises(InvalidInputError, match="there is no folder"):
        stored(tmp_path / "nowhere")
