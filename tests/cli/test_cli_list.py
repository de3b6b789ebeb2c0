"""Every learner, instance and adversary in one line."""

import pytest
from rich.cells import cell_len

from aggbandit import adversaries, instances, learners
from aggbandit.cli import explain


def rows(text):
    """Cells of the printed table by their first one; columns are parted by two blanks or more."""
    split = [[cell for cell in line.strip().split("  ") if cell] for line in text.splitlines()]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in split if cells}


def test_learners_with_feedback_dynamics_and_losses(aggbandit):
    said = aggbandit("list", "learners")
    found = rows(said.out)
    assert said.code == 0
    for name in learners.names():
        kind = learners.get(name)
        needs = explain.configured(kind).needs
        feedback, dynamics, losses = found[name + ("*" if kind.reconstructed else "")][:3]
        assert [cell.split()[0] for cell in (feedback, dynamics, losses)] == [
            needs.feedback, needs.dynamics, needs.losses,
        ]  # fmt: skip
    assert found["po-known"][:3] == ["aggregate", "known", "adversarial"]
    assert found["id"] == ["feedback", "dynamics", "losses", "what it does"]


def test_what_an_argument_chooses_is_listed_too(aggbandit):
    chosen = explain.choices(learners.get("dlb"), "dynamics")
    assert chosen == ["known", "unknown"]
    for value in chosen:
        assert learners.make("dlb", dynamics=value).needs.dynamics == value
    assert explain.choices(learners.get("po-known"), "dynamics") == ["known"]
    assert explain.choices(learners.get("pomd"), "losses") == ["stochastic", "adversarial"]
    lines = aggbandit("list", "learners").out.splitlines()
    (row,) = [i for i, line in enumerate(lines) if line.startswith(" dlb ")]
    assert lines[row].split()[2:4] == ["known", "or"]
    assert lines[row + 1].split()[0] == "unknown"


@pytest.mark.parametrize("kind, module", [("instances", instances), ("adversaries", adversaries)])
def test_instances_and_adversaries_with_what_they_are(aggbandit, kind, module):
    found = rows(aggbandit("list", kind).out)
    assert set(module.names()) <= set(found)
    for name in module.names():
        assert len(found[name][0]) > 10


def test_all_three_without_an_argument(aggbandit):
    text = aggbandit("list").out
    assert text.index("Learners") < text.index("Instances") < text.index("Adversaries")
    for name in (*learners.names(), *instances.names(), *adversaries.names()):
        assert f" {name}" in text
    assert max(map(cell_len, text.splitlines())) <= 120  # as wide as shown: ℓ̃ takes one place
    assert all(line == line.rstrip() for line in text.splitlines())


def test_reconstructed_learners_are_marked(aggbandit, monkeypatch):
    monkeypatch.setattr(learners.get("po-known"), "reconstructed", True)
    text = aggbandit("list", "learners").out
    assert " po-known*" in text
    assert "* reconstructed without the paper's full text at hand" in text
