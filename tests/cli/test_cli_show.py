"""One learner, instance or adversary explained."""

import pytest

from aggbandit import adversaries, instances, learners
from aggbandit.cli import explain


def squeezed(text):
    """With single blanks, so that neither columns nor wrapping matter."""
    return " ".join(text.split())


def test_a_learner(aggbandit):
    said = aggbandit("show", "po-known")
    text = squeezed(said.out)
    assert said.code == 0
    assert text.startswith("po-known (learner)")
    assert "Sees the total loss of each episode (aggregate feedback)" in text
    assert "Is told the dynamics (known dynamics)" in text
    assert "Made for losses chosen by an adversary" in text
    assert "Paper [LM25] Algorithm 1" in text
    assert "Departs in nothing by default" in text
    assert "Cost O(H S² A)" in text
    assert "confidence 0.05 δ" in text
    assert "step_size 'appendix' η" in text
    assert "Use aggbandit run --learner po-known:confidence=..." in text
    assert "Code aggbandit.learners.po_known:PolicyOptimizationKnown" in text
    assert "[eq:" not in text  # tags are for the map from paper to code


def test_a_learner_with_a_choice(aggbandit):
    text = squeezed(aggbandit("show", "dlb").out)
    assert "Is told the dynamics (known dynamics); with dynamics=unknown: nothing about the dynamics" in text
    text = squeezed(aggbandit("show", "pomd").out)
    assert "Made for losses drawn independently from one distribution; with losses=adversarial: losses chosen" in text


def test_an_instance(aggbandit):
    text = squeezed(aggbandit("show", "random").out)
    assert text.startswith("random (instance) Random dynamics:")
    assert "sparsity None the number of successors of each row" in text
    assert "Use aggbandit run --instance random:states=..." in text


def test_an_adversary(aggbandit):
    text = squeezed(aggbandit("show", "switching").out)
    assert text.startswith("switching (adversary) Losses that stay for a block")
    assert "blocks 8 how many tables" in text


def everything():
    return [*learners.names(), *instances.names(), *adversaries.names()]


@pytest.mark.parametrize("name", everything())
def test_every_id_is_explained_and_every_argument_has_a_meaning(aggbandit, name):
    said = aggbandit("show", name)
    assert said.code == 0
    for _, get in explain.everything().values():
        try:
            told = explain.explained(get(name))
        except LookupError:
            continue
        assert told.summary.endswith(".")
        assert [one.name for one in told.arguments if not one.meaning] == []


def test_an_unknown_id_suggests_the_nearest(aggbandit):
    said = aggbandit("show", "swiching")
    assert said.code == 2
    assert "Did you mean 'switching'?" in said.err


OWN = '''
from dataclasses import dataclass, field
import aggbandit as ab

@dataclass(frozen=True, kw_only=True)
class Greedy(ab.Learner):
    """Takes what was best so far.

    A second paragraph,
    on two lines.  With a second sentence.

    Paper    none, it is
             an example.
    """

    needs = ab.Needs(feedback="semi-bandit", dynamics="unknown", losses="stochastic", late_feedback=True)
    reconstructed = True

    rate: float  # how fast
    window: int = 10  # how long
    spread: tuple = field(
        default=(1, 2)
    )  # between
    bare: str = "x"

    def init(self, problem, draws): ...
    def policy(self, problem, state): ...
    def update(self, problem, state, episode, draws): ...
'''


def test_a_learner_of_ones_own_in_the_current_folder(aggbandit, tmp_path):
    (tmp_path / "shown_learner.py").write_text(OWN)
    said = aggbandit("show", "shown_learner:Greedy")
    text = squeezed(said.out)
    assert said.code == 0, said.err
    assert "Takes what was best so far." in text
    assert "A second paragraph, on two lines. With a second sentence." in text
    assert "Paper none, it is an example." in text
    assert "rate required how fast window 10 how long spread (1, 2) between bare 'x'" in text
    # its needs stand on the class, though it cannot be made without an argument
    assert "Sees the loss of every step it took (semi-bandit feedback)" in text
    assert "Made for losses drawn independently from one distribution" in text
    assert "Takes late feedback" in text
    assert "Note reconstructed" in text


def test_formulas_keep_their_lines_and_prose_does_not(aggbandit, tmp_path):
    (tmp_path / "formula_learner.py").write_text(
        OWN.replace(
            "A second paragraph,\n",
            "Prose that fills the lines of its source file almost to their end, as most of what is written does, and\n"
            "    afterwards goes on.\n\n    Q = ℓ + P V   [eq:X25-Q]\n    V = π Q + a line that is long, as long as "
            "lines of prose with some places left, but was broken\n    W = U − Q\n\n",
        )
    )
    said = aggbandit("show", "formula_learner:Greedy")
    assert "\nQ = ℓ + P V\nV = π Q + a line" in said.out
    assert "but was broken\nW = U − Q\n" in said.out
    assert " does,\nand afterwards goes on.\n" in said.out  # wrapped for this width


def test_a_module_that_is_not_there_is_told(aggbandit):
    said = aggbandit("show", "nowhere_at_all:Greedy")
    assert said.code == 2
    assert "there is no module 'nowhere_at_all'" in said.err
