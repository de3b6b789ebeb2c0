"""The teaching view tells the learner's own update: every number recomputed from the others."""

import re
from pathlib import Path

import numpy as np
import pytest

import aggbandit as ab
from aggbandit.cli.main import main
from aggbandit.errors import InvalidInputError
from aggbandit.experiments.one_episode import one_episode
from aggbandit.reporting import episode_text

MDP = ab.instances.make("dialogue")


@pytest.mark.parametrize("learner", ["po-known", "po-unknown"])
@pytest.mark.parametrize("number", [1, 40])
def test_the_policy_after_is_the_formula_s(learner: str, number: int) -> None:
    """π exp(-η (Û - B)), normalised, with the numbers told, gives the policy that the learner went on with."""
    told = one_episode(MDP, learner, number=number, episodes=200, seed=3)
    assert told.number == number
    assert told.total == pytest.approx(sum(step.loss for step in told.steps))
    for step in told.steps:
        taken = told.actions.index(step.action)
        estimate = np.zeros(len(told.actions))
        estimate[taken] = step.estimate
        weights = np.array(step.before) * np.exp(-told.step_size * (estimate - np.array(step.bonus)))
        np.testing.assert_allclose(weights / weights.sum(), step.after, rtol=1e-9)
        assert step.estimate == pytest.approx(told.total / (step.reach * step.before[taken] + told.exploration))
        assert 0 <= step.least_reach <= step.reach <= 1
        assert (step.least_reach == step.reach) == (learner == "po-known") or step.step == 1


@pytest.mark.parametrize("learner", ["po-known", "po-unknown"])
def test_told_in_the_terminal_and_as_a_page(learner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "new" / "episode.html"
    assert main(["episode", "--learner", learner, "--html", str(page)]) == 0
    out = capsys.readouterr().out
    assert f"Algorithm {1 if learner == 'po-known' else 2}" in out
    for name in ("policy before", "estimate Û", "local bonus b", "bonus B", "policy after", "true U"):
        assert out.count(name) == MDP.H
    html = page.read_text(encoding="utf-8")
    assert html.count("<h2>") == MDP.H
    assert not re.search(r"(src|href)=\"(?!data:)", html)


def test_refusals() -> None:
    with pytest.raises(InvalidInputError, match="Only po-known and po-unknown can be told"):
        one_episode(MDP, "uniform")
    with pytest.raises(InvalidInputError, match="number must be between 1 and 5"):
        one_episode(MDP, number=6, episodes=5)


def test_text_is_aligned() -> None:
    told = one_episode(MDP)
    assert all(len(line) < 150 for line in episode_text.terminal(told).splitlines())
