"""Specs: what they resolve to, and what is said about mistakes in them."""

import hashlib
import json

import pytest

from aggbandit import learners
from aggbandit.cli import explain
from aggbandit.errors import InvalidInputError
from aggbandit.experiments import _positions
from aggbandit.experiments.cells import Cell, canonical, canonical_text
from aggbandit.experiments.named import Named
from aggbandit.experiments.spec import Spec, built_in
from aggbandit.learners.uniform import Uniform
from experiments_shared import SPEC, spec


def parse(text):
    return Spec.parse(text, source="study.toml", name="study")


LINES = """\
# a comment with [brackets] and "quotes"
episodes = 1_000

instance = "random:states=3,horizon=2"
adversary = { id = "switching", blocks = [2, 4] }

[[learner]]
id = "po-known"   # the paper's
confidence = [
  0.05,
  0.1,
]

[[group]]
name = "wide"
learner = [
  "uniform",

  { id = "po-unknown", radius_scale = 0.5 },
]

[[group]]
name = "long"
episodes = 10_000
"""


def test_a_grid_has_every_combination_once():
    read = parse(LINES)
    assert [(group.name, len(group.cells)) for group in read.groups] == [("wide", 4), ("long", 4)]
    labels = [(cell.learner, cell.adversary, cell.episodes) for cell in read.cells]
    assert len(set(labels)) == len(labels) == 8
    assert ("po-known:confidence=0.1", "switching:blocks=4", 10_000) in labels
    assert ("po-unknown:radius_scale=0.5", "switching:blocks=2", 1_000) in labels


def test_the_id_is_the_sha256_of_everything_that_the_numbers_depend_on():
    cell = spec(learner='["po-known"]', seed="3").cells[0]
    form = {
        "format": 1,
        "instance": {
            "id": "random",
            "arguments": {
                "states": 3, "actions": 2, "horizon": 2, "sparsity": None, "concentration": 1, "stationary": False,
                "sparse": False, "seed": 3,
            },
        },
        "adversary": {"id": "switching", "arguments": {"blocks": 3, "period": None, "seed": 3}},
        "learner": {
            "id": "po-known",
            "version": 1,
            "arguments": {"confidence": 0.05, "step_size": "appendix", "exploration": None, "bonus_scale": 1},
        },
        "episodes": 300, "replicas": 3, "seed": 3, "evaluate_every": 1, "delays": 0, "checkpoints": 12,
    }  # fmt: skip
    text = json.dumps(form, sort_keys=True, separators=(",", ":"))
    assert cell.text == text
    assert cell.id == hashlib.sha256(text.encode()).hexdigest()


def test_another_way_to_write_the_same_cell_has_the_same_id():
    plain = {cell.id for cell in spec().cells}
    assert {cell.id for cell in spec(episodes="3e2").cells} == plain
    assert {
        cell.id for cell in spec(learner='["uniform", {id = "po-known", confidence = 0.05}, "po-unknown"]').cells
    } == plain
    assert {cell.id for cell in spec(seed="{ count = 2 }").cells} == plain
    assert not {cell.id for cell in spec(checkpoints="13").cells} & plain


def test_a_new_version_of_an_algorithm_has_other_ids(monkeypatch):
    before = spec().cells
    monkeypatch.setattr(Uniform, "version", 2)
    after = spec().cells
    changed = [one.learner for one, other in zip(before, after, strict=True) if one.id != other.id]
    assert changed == ["uniform", "uniform"]
    with pytest.raises(InvalidInputError, match="asks for version 1 of uniform, but here it is 2"):
        before[0].made()
    # nor is what wraps it the same
    wrapping = '["doubling:learner=uniform", "doubling"]'
    now = spec(learner=wrapping).cells
    monkeypatch.setattr(Uniform, "version", 3)
    later = spec(learner=wrapping).cells
    assert [one.id == other.id for one, other in zip(now, later, strict=True)] == [False, True] * (len(now) // 2)
    with pytest.raises(InvalidInputError, match=r"asks for version \d+ of doubling, but here it is \d+"):
        now[0].made()


def test_the_seed_is_that_of_instance_and_losses_unless_they_have_one():
    cell = spec(seed="7").cells[0]
    assert cell.parameters["instance"]["arguments"]["seed"] == 7
    cell = spec(seed="7", instance='"random:states=2,seed=1"').cells[0]
    assert cell.parameters["instance"]["arguments"]["seed"] == 1
    assert cell.parameters["adversary"]["arguments"]["seed"] == 7


def test_none_and_lists_as_values():
    learner = '{ id = "po-known", exploration = ["none", 0.1] }'
    found = [cell.parameters["learner"]["arguments"]["exploration"] for cell in spec(learner=learner, seed="0").cells]
    assert found == [None, 0.1]


def test_listed_checkpoints_are_those_that_a_run_comes_to():
    text = spec(episodes="[10, 100, 1_000]", checkpoints="[500, 1e2, 20]", seed="0", learner='"uniform"').text
    cells = Spec.parse(text).cells
    assert [cell.parameters["checkpoints"] for cell in cells] == [[10], [20, 100], [20, 100, 500]]
    for cell in cells:
        assert cell.simulation().checkpoints.tolist() == sorted({*cell.parameters["checkpoints"], cell.episodes})


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = tmp_path / "study.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SPEC.encode())
    assert Spec.load(path).cells == spec().cells


def test_a_cell_makes_what_it_says():
    mdp, losses, learner = spec(learner='"po-known:confidence=0.2"', seed="5").cells[0].made()
    assert (mdp.S, mdp.A, mdp.H) == (3, 2, 2)
    assert learner.arguments["confidence"] == 0.2
    assert losses.tables(0, 1).shape == (1, 2, 3, 2)


MISTAKES = [
    ("confidence", "confidance", r"line 9: learner\[0\].confidance = \[0.05, 0.1\]: .*Did you mean 'confidence'\?"),
    ('"po-known"', '"po-knwn"', r"line 8: learner\[0\].id = 'po-knwn': .*Did you mean 'po-known'\?"),
    ("  0.1,", "  1.5,", r"line 11: learner\[0\].confidence\[1\] = 1.5: confidence must be .* less than 1"),
    ("  0.1,", "  0.1,\n  1e-1,", r"line 12: learner\[0\].confidence\[2\] = 0.1: it is there twice"),
    ("  0.1,", "  nan,", r"line 11: learner\[0\].confidence\[1\] = nan: must be finite, but is nan"),
    ("0.5 }", "-1 }", r"line 19: group\[0\].learner\[1\].radius_scale = -1: radius_scale must be"),
    ("episodes = 1_000", "episodes = 0", r"line 2: episodes = 0: episodes must be between 1 and"),
    ("episodes = 1_000", "episodes = [10, 2.5]", r"line 2: episodes\[1\] = 2.5: episodes must be an integer"),
    ("episodes = 1_000", "episodes = [10, 10]", r"line 2: episodes\[1\] = 10: it is there twice"),
    ("episodes = 1_000", "episodes = []", r"line 2: episodes = \[\]: an empty list leaves nothing"),
    ("episodes = 1_000", "episodes = true", r"line 2: episodes = true: episodes must be an integer"),
    ("episodes = 1_000", "episodes = 1e300", r"line 2: episodes = 1e\+300: episodes must be .* is 1e\+300"),
    ("episodes = 1_000", "episodes = nan", r"line 2: episodes = nan: episodes must be an integer"),
    ("episodes = 1_000\n", "", r"group 'wide' does not say how many episodes"),
    ("states=3", "staets=3", r"line 4: instance.staets = 3: .*Did you mean 'states'\?"),
    ('"random:states=3,horizon=2"', "3", r'line 4: instance = 3: must be "id:argument=value,..."'),
    ("blocks = [2, 4]", "blocks = [2, 0]", r"line 5: adversary.blocks\[1\] = 0: blocks must be at least 1"),
    ("blocks = [2, 4]", "blocks = []", r"line 5: adversary.blocks = \[\]: an empty list"),
    ("blocks = [2, 4]", "blocks = 2020-01-01", r"line 5: adversary.blocks = 2020-01-01: must be a number, a string"),
    ('id = "switching", ', "", r'line 5: adversary: it needs id = "..."'),
    ('name = "long"', 'name = "wide"', r"line 23: group\[1\].name = 'wide': another group has this name"),
    ('name = "long"\n', "", r"line 22: group\[1\]: every group needs a name"),
    ("episodes = 10_000", "epsiodes = 10_000", r"line 24: group\[1\].epsiodes = 10000: .*Did you mean 'episodes'\?"),
    ("[[group]]", "[[groups]]", r"line 14: groups = .*Did you mean 'group'\?"),
    ('"uniform",', '"uniform", "uniform",', r"line 17: group\[0\].learner\[1\] = 'uniform': this learner is already"),
    ("episodes = 1_000", "episodes == 1_000", r"it is no valid TOML: .*line 2"),
    ("episodes = 1_000", "episodes = 1_000\ncheckpoints = [5, 99_999]", r"line 3: checkpoints\[1\] = 99999: lies"),
    ("episodes = 1_000", "episodes = 1_000\ncheckpoints = [5, 5]", r"line 3: checkpoints\[1\] = 5: it is there twice"),
    ("episodes = 1_000", "episodes = 1_000\ndtype = 'float32'", r"line 3: dtype = 'float32': .* is for device='cuda'"),
    ("episodes = 1_000", "episodes = 1_000\nx = " + "[" * 999 + "]" * 999, r"nested too deep"),
    ("episodes = 1_000", "episodes = 1_000\ndelays = 3", r"line 3: delays = 3: .* does not take late feedback"),
    ("episodes = 1_000", "episodes = 1_000\nname = 'a/b'", r"line 3: name = 'a/b': must be letters"),
    ("episodes = 1_000", f"episodes = 1_000\nname = '{'a' * 101}'", r"line 3: name = 'a+\.\.\.: must have 100 letters"),
    ("episodes = 1_000", "episodes = 1_000\nseed = { first = 0xffff_ffff_ffff_ffff, count = 2 }",
     r"line 3: seed = .*: its last seed is 18446744073709551616, but the largest is 18446744073709551615"),
    ("episodes = 1_000", "episodes = 1_000\nseed = { count = 1_000 }\nreplicas = 1\nevaluate_every = "
     + str(list(range(1, 1002))), r"group 'wide' has 4004000 cells, but may have 1000000"),
    ("episodes = 1_000", "episodes = 1_000\nseed = { first = 3 }", r"line 3: seed = .*needs count"),
    ("episodes = 1_000", "episodes = 1_000\nseed = -1", r"line 3: seed = -1: seed must be between 0 and"),
]  # fmt: skip


@pytest.mark.parametrize("right, wrong, message", MISTAKES, ids=[wrong.strip()[:60] for _, wrong, _ in MISTAKES])
def test_a_mistake_is_told_with_line_key_value_rule_and_nearest_name(right, wrong, message):
    assert right in LINES
    with pytest.raises(InvalidInputError, match=rf"(?s)^study\.toml.*{message}"):
        parse(LINES.replace(right, wrong, 1))


def test_features_that_do_not_express_the_instance_are_told_before_anything_is_played():
    text = """
name = "linear"
episodes = 10
instance = "random:states=2,actions=1,horizon=2"
adversary = "bernoulli"
learner = { id = "repo", features = [[[[1.0]], [[1.0]]]] }
"""
    with pytest.raises(
        InvalidInputError, match=r"line 6: learner\.features\[0\] .* features cannot express transition"
    ):
        Spec.parse(text)


def test_a_spec_that_is_not_there_names_the_nearest():
    with pytest.raises(InvalidInputError, match="no spec file 'scalling', .*Did you mean 'scaling'"):
        Spec.load("scalling")


def test_no_utf8(tmp_path):
    path = tmp_path / "latin.toml"
    path.write_bytes("name = 'ä'".encode("latin-1"))
    with pytest.raises(InvalidInputError, match=r"latin\.toml: it is no UTF-8"):
        Spec.load(path)


@pytest.mark.parametrize("name", built_in())
def test_built_in_specs_resolve(name):
    read = Spec.load(name)
    assert read.name == name
    assert read.description
    assert len(read.cells) >= 3


def test_built_in_names():
    assert {"first-look", "scaling", "table1"} <= set(built_in())


def test_table_1_has_every_learner_of_totals_in_all_its_forms_and_references_of_the_other_levels():
    cells = Spec.load("table1").cells
    assert {Named.parse(cell.adversary).name for cell in cells} == {"fixed", "switching", "bernoulli"}
    played = {}
    for cell in cells:
        named = Named.parse(cell.learner)
        needs = learners.make(named.name, **named.arguments).needs
        form = named.name, needs.feedback, needs.dynamics
        played.setdefault(form, set()).add((cell.adversary, cell.parameters["seed"]))
    settings = {(cell.adversary, cell.parameters["seed"]) for cell in cells}
    assert len(settings) == 9
    for name in learners.names():
        kind = learners.get(name)
        if name in ("fixed-policy", "doubling"):  # is told what to play; plays another
            continue
        for feedback in explain.choices(kind, "feedback"):
            for dynamics in explain.choices(kind, "dynamics"):
                assert played[name, feedback, dynamics] == settings


def test_canonical_values():
    assert canonical({"a": (1.0, 2.5, True)}) == {"a": [1, 2.5, True]}
    assert canonical_text({"b": 1, "a": "é"}) == '{"a":"é","b":1}'
    with pytest.raises(InvalidInputError, match="must be finite"):
        canonical(float("inf"))


def test_cells_can_be_looked_at():
    cell = Cell(spec().cells[0].text, "an instance", "some", "a learner")
    assert cell.name == "a learner on an instance, some losses, K = 300, seed 0"
    assert cell.replicas == 3


@pytest.mark.parametrize(
    "text, path, line",
    [
        ('a = """\nx = 1\n"""\nb = 2', ("b",), 4),
        ("a = '''\n[b]\n'''\nb = 2", ("b",), 4),
        ('"odd key" = 1\nb.c = 2', ("b", "c"), 2),
        ("[a]\n[a.b]\nc = 1\n[d]\nc = 2", ("d", "c"), 5),
        ("[[a]]\n[[a.b]]\nx = 1\n[[a.b]]\nx = 2\n[[a]]\n[[a.b]]\nx = 3", ("a", 0, "b", 1, "x"), 5),
        ("[[a]]\n[[a.b]]\nx = 1\n[[a.b]]\nx = 2\n[[a]]\n[[a.b]]\nx = 3", ("a", 1, "b", 0, "x"), 8),
        ("a = [ # ]\n 1, # ,\n [2,\n 3]]", ("a", 1, 1), 4),
        ('a = { x = "}", y = [1, 2] }\nb = 1979-05-27 07:32:00\nc = 1', ("c",), 3),
        ('a = "\\"#"\r\nb = 1', ("b",), 2),
        ("a = 1", ("missing", 3), None),
        ("x = 1\na = 1", ("a", "missing"), 2),
    ],
)
def test_lines_are_found(text, path, line):
    assert _positions.line_of(text, path) == line


def test_the_text_of_the_shared_spec_is_the_one_that_is_played():
    assert spec().text.strip() == SPEC.strip()


def test_a_cell_in_two_groups_is_played_once_under_its_first_name():
    text = LINES + 'learner = ["po-known:confidence=0.1,bonus_scale=1", "uniform"]\n'
    read = parse(text)
    shared = [cell for group in read.groups for cell in group.cells if cell.learner == "uniform"]
    assert len({cell.id for cell in shared}) == len(shared)  # another K
    again = parse(text.replace("episodes = 10_000", "episodes = 1_000"))
    uniform = [cell for cell in again.cells if cell.learner == "uniform"]
    assert len(uniform) == 2  # one for each adversary
    assert len(again.groups[0].cells) + len(again.groups[1].cells) == len(again.cells) + 2
    text = LINES.replace('"uniform",', '"po-known",').replace("10_000", "1_000").replace("  0.1,", "")
    assert [cell.learner for cell in parse(text).cells if cell.learner.startswith("po-known")] == ["po-known"] * 2
