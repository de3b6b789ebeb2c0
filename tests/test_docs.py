"""The documentation: links lead somewhere, examples run, versions agree; and the link checker notices faults."""

import doctest
import importlib
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import aggbandit
from aggbandit.cli import explain
from tools import links

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
OPTIONAL = {"gymnasium", "distributed"}  # a module that needs one of these is left out where it is not installed


class Block(NamedTuple):
    """A ```python block of a page, and the ```text block right after it, if any: what it must print."""

    line: int
    source: str
    printed: str | None


def python_blocks(path: Path) -> list[Block]:
    """The ```python blocks of a page; those marked ```python no-run are left out."""
    text = path.read_text(encoding="utf-8")
    pattern = r"^```python[ \t]*\n(.*?)^```[ \t]*\n(?:\s*^```text[ \t]*\n(.*?)^```)?"
    found = re.finditer(pattern, text + "\n", re.MULTILINE | re.DOTALL)
    return [Block(text.count("\n", 0, m.start(1)) + 1, m[1], m[2]) for m in found]


PAGES = [path for path in links.markdown_files(ROOT) if python_blocks(path)]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(aggbandit.__path__, "aggbandit.")
    if not module.name.endswith("__main__")
)


def test_every_link_leads_somewhere():
    assert links.problems(ROOT) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_on_the_page_run(page, tmp_path, monkeypatch, capsys):
    """The blocks of one page run in turn, as a reader would put them into a file."""
    monkeypatch.chdir(tmp_path)
    module = ModuleType("example_page")  # classes of the page can be found again, as in a reader's file
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in python_blocks(page):
        capsys.readouterr()
        exec(compile("\n" * (block.line - 1) + block.source, str(page), "exec"), module.__dict__)
        if block.printed is not None:
            assert capsys.readouterr().out == block.printed


def test_readme_has_examples():
    assert ROOT / "README.md" in PAGES


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if error.name not in OPTIONAL:
            raise
        pytest.skip(f"{name} needs {error.name}")
    outcome = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0


def test_readme_tells_what_each_learner_sees():
    rows = re.findall(r"^\| `([\w-]+)` \| [^|]* \| ([\w-]+) \| (\w+) \| (\w+) \|$", README, re.MULTILINE)
    assert {"po-known", "po-unknown"} <= {name for name, *_ in rows} <= set(aggbandit.learners.names())
    for name, feedback, dynamics, losses in rows:
        needs = aggbandit.learners.get(name).needs
        assert (needs.feedback, needs.dynamics, needs.losses) == (feedback, dynamics, losses)


def table_rows(text: str) -> list[dict[str, str]]:
    """The rows of all tables of a page, each by the headings of its table."""
    rows, headings = [], []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            headings = []
        elif not headings:
            headings = cells
        elif not set(line) <= set("|-: "):
            rows.append(dict(zip(headings, cells, strict=True)))
    return rows


def test_coverage_names_every_learner_and_tells_what_it_sees():
    levels = {"A": "aggregate", "S": "semi-bandit", "F": "full"}
    named = set()
    for row in table_rows((ROOT / "docs/coverage.md").read_text(encoding="utf-8")):
        for name, mark in re.findall(r"`([\w-]+)`( \*\*r\*\*)?", row.get("id", "")):
            named.add(name)
            kind = aggbandit.learners.get(name)
            assert bool(mark) == kind.reconstructed, name
            if row["sees"] == "as wrapped":
                continue
            assert [levels[one] for one in row["sees"].split(", ")] == explain.choices(kind, "feedback"), name
            for what in {"dynamics", "losses"} & row.keys():
                if row[what] != "–":  # of no guarantee
                    assert row[what].split(", ") == explain.choices(kind, what), name
    assert named == set(aggbandit.learners.names())


CITED = """
    abernethy2008competing beygelzimer2011contextual bubeck2012towards cai2020provably cassel2024near
    cesa2012combinatorial chatterji2021theory chen2022human chen2022policy cohen2017tight cohen2021minimax
    cohen2021online dai2023refined dani2007price efroni2021reinforcement even2009online hazan2016introduction
    hazan2016volumetric jaksch2010near jin2018q jin2019learning kakade2001natural lattimore2020bandit liu2023towards
    luo2021policy rosenberg2019bandit rosenberg2019online saha2023dueling schulman2015trust schulman2017proximal
    shani2020optimistic sherman2023improved wu2023making zimin2013online
"""  # every key that the paper cites


def test_coverage_has_everything_that_the_paper_cites_and_nothing_twice():
    rows = table_rows((ROOT / "docs/coverage.md").read_text(encoding="utf-8"))
    told = [key for row in rows for key in re.findall(r"[a-z]+\d{4}[a-z]+", row.get("cited as", ""))]
    assert sorted(told) == CITED.split()
    for row in rows:
        if row.get("cited as"):
            assert row.get("id") or row.get("why not"), row["cited as"]


def test_the_version_is_the_same_everywhere():
    version = aggbandit.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_ci_and_readme_give_the_same_test_command():
    assert "\nmake test\n" in (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "make test" in README


GOOD = """
# A page: with `code` & more

[here](#a-page-with-code--more), [twice](#again-1), [`there`](sub/other.md#under_score), ![p](sub/p.png),
[out](https://example.org/x), a footnote [defined][d].

[d]: sub/other.md

## Again
## Again

```
[not a link](nowhere.md)
# not a heading
```
and `[nor this](nowhere.md)`.
"""


@pytest.fixture
def site(tmp_path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "page.md").write_text(GOOD)
    (tmp_path / "sub/other.md").write_text("### Under_score\n[back](../page.md)\n")
    (tmp_path / "sub/p.png").touch()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden/x.md").write_text("[broken](nowhere)")
    return tmp_path


def test_a_site_in_order_passes(site):
    assert links.problems(site) == []
    assert len(links.markdown_files(site)) == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("#a-page-with-code--more", "#a-page", "page.md:4: #a-page has no such heading."),
        ("#again-1", "#again-2", "page.md:4: #again-2 has no such heading."),
        ("#under_score", "#not-a-heading", "page.md:4: sub/other.md#not-a-heading has no such heading."),
        ("sub/p.png", "p.png", "page.md:4: p.png does not exist."),
        ("[d]: sub/other.md", "[d]: other.md", "page.md:7: other.md does not exist."),
        ("https://example.org/x", "../outside.md", "page.md:5: ../outside.md leads out of the repository."),
        (
            "```\nand `[nor this](nowhere.md)`",
            "```\nand [now this](nowhere.md)",
            "page.md:16: nowhere.md does not exist.",
        ),
    ],
)
def test_a_broken_link_is_noticed(site, old, new, said):
    text = (site / "page.md").read_text()
    assert old in text
    (site / "page.md").write_text(text.replace(old, new))
    assert links.problems(site) == [said]


def test_an_empty_site_is_noticed(tmp_path):
    assert len(links.problems(tmp_path)) == 1


def test_only_plain_python_blocks_are_examples(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\n```\n\n```python no-run\nx = nonsense\n```\n```toml\nx = 2\n```\n"
        "```python\nprint(x)\n```\n\n```text\n1\n```\n```text\nno output of anything\n```\n"
    )
    assert python_blocks(page) == [Block(2, "x = 1\n", None), Block(12, "print(x)\n", "1\n")]
