"""docs/theory/paper-map.md agrees with the code and the tests, and its checker notices when it does not."""

from pathlib import Path

import pytest

from tools import paper_map

ROOT = Path(__file__).resolve().parent.parent


def test_code_map_and_tests_agree():
    assert paper_map.problems(ROOT) == []


SOURCE = '"""Values. [eq:X-V]"""\n\n\ndef q():\n    """[eq:X-Q]"""\n    return 1  # [eq:X-V]\n'
TESTS = """
import pytest

@pytest.mark.equation("X-V")
@pytest.mark.parametrize("n", [1])
def test_v(n): ...

@pytest.mark.equation("X-Q")
class TestQ: ...
"""
MAP = """
| tag | what | code | test |
| --- | --- | --- | --- |
| `X-V` | V | [v](../../src/v.py) | [t](../../tests/test_v.py) |
| `X-Q` | Q | [v](../../src/v.py#L3) | [t](../../tests/test_v.py) |
| `X-later` | | not yet covered | |
"""


@pytest.fixture
def tree(tmp_path) -> Path:
    for name, text in [("src/v.py", SOURCE), ("tests/test_v.py", TESTS), (paper_map.MAP, MAP)]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_tree_in_order_passes(tree):
    assert paper_map.problems(tree) == []
    assert paper_map.code_tags(tree) == {"X-V": {"src/v.py"}, "X-Q": {"src/v.py"}}
    assert paper_map.test_tags(tree) == {"X-V": {"tests/test_v.py"}, "X-Q": {"tests/test_v.py"}}


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("src/v.py", "[eq:X-Q]", "[eq:X-R]", "X-R (src/v.py) has no row"),
        ("src/v.py", "[eq:X-Q]", "", "X-Q has a row in docs/theory/paper-map.md, but no [eq:X-Q] in src/."),
        ("src/v.py", "[eq:X-Q]", "[eq:X-Q] [eq:X-later]", "X-later is not yet covered according to"),
        ("src/v.py", "eq:", "", "There are no tags in src/"),
        ("tests/test_v.py", '"X-Q"', '"X-V"', "X-Q has a row in docs/theory/paper-map.md, but no test is marked"),
        ("tests/test_v.py", '"X-Q"', '"X-S"', "X-S (tests/test_v.py) has no row"),
        ("tests/test_v.py", '"X-Q"', '"X-Q", "X-later"', "X-later is not yet covered according to"),
        ("tests/test_v.py", "equation", "slow", "There are no equation marks in tests/"),
        (paper_map.MAP, "| `X-Q`", "| X-Q", "X-Q (src/v.py, tests/test_v.py) has no row"),
        (paper_map.MAP, "`X-Q`", "`X-V`", "X-V has more than one row"),
        (
            paper_map.MAP,
            "src/v.py#L3",
            "src/w.py",
            "The row of X-Q links to none of the files that compute it: src/v.py.",
        ),
        (
            paper_map.MAP,
            "tests/test_v.py) |\n| `X-Q",
            "t.py) |\n| `X-Q",
            "The row of X-V links to none of the files that t",
        ),
        (paper_map.MAP, "`", "", "There are no covered rows in docs/theory/paper-map.md"),
    ],
)
def test_a_wrong_tree_is_noticed(tree, file, old, new, said):
    text = (tree / file).read_text()
    assert old in text
    (tree / file).write_text(text.replace(old, new))
    assert any(sentence.startswith(said) for sentence in paper_map.problems(tree)), paper_map.problems(tree)


def test_a_mark_that_cannot_be_read_is_refused(tree):
    (tree / "tests/test_w.py").write_text("import pytest\n@pytest.mark.equation(TAG)\ndef test_w(): ...\n")
    with pytest.raises(SystemExit, match=r"tests/test_w\.py:2: the tag of an equation mark must be a plain string"):
        paper_map.problems(tree)
