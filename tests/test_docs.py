"""The documentation: links lead somewhere, examples run, versions agree; and the link checker notices faults."""

import doctest
import importlib
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import aggbandit
from tools import links

ROOT = Path(__file__).resolve().parent.parent
OPTIONAL = {"gymnasium", "distributed"}  # a module that needs one of these is left out where it is not installed


def python_blocks(path: Path) -> list[tuple[int, str]]:
    """(first line, source) of the ```python blocks; those marked ```python no-run are left out."""
    text = path.read_text(encoding="utf-8")
    found = re.finditer(r"^```python[ \t]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, m.start(1)) + 1, m[1]) for m in found]


PAGES = [path for path in links.markdown_files(ROOT) if python_blocks(path)]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(aggbandit.__path__, "aggbandit.")
    if not module.name.endswith("__main__")
)


def test_every_link_leads_somewhere():
    assert links.problems(ROOT) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_on_the_page_run(page, tmp_path, monkeypatch):
    """The blocks of one page run in turn, as a reader would put them into a file."""
    monkeypatch.chdir(tmp_path)
    module = ModuleType("example_page")  # classes of the page can be found again, as in a reader's file
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for line, source in python_blocks(page):
        exec(compile("\n" * (line - 1) + source, str(page), "exec"), module.__dict__)


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


def test_the_version_is_the_same_everywhere():
    version = aggbandit.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_ci_and_readme_give_the_same_test_command():
    assert "\nmake test\n" in (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


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
    page.write_text("```python\nx = 1\n```\n\n```python no-run\nx = nonsense\n```\n```toml\nx = 2\n```\n")
    assert python_blocks(page) == [(2, "x = 1\n")]
