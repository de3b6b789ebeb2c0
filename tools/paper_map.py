"""Does docs/theory/paper-map.md tell the truth about the code and the tests?  `python -m tools.paper_map`

A tag such as [eq:LM25-U] stands in three places: beside the code that computes the equation, in a row of the map,
and as @pytest.mark.equation("LM25-U") on a test of it.  A row that says "not yet covered" stands in the map alone.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAP = "docs/theory/paper-map.md"
NOT_YET = "not yet covered"

_IN_CODE = re.compile(r"\[eq:([A-Za-z0-9-]+)\]")
_ROW = re.compile(r"^\|\s*`([^`]+)`\s*\|(.*)\|\s*$")
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


@dataclass(frozen=True)
class Row:
    """One line of the map: its tag, the files it links to (from the repository root), and whether it is covered."""

    tag: str
    files: frozenset[str]
    covered: bool


def code_tags(root: Path) -> dict[str, set[str]]:
    """Tag -> the source files, as paths from the root, that name it."""
    found: dict[str, set[str]] = {}
    for path in sorted((root / "src").rglob("*.py")):
        for tag in _IN_CODE.findall(path.read_text(encoding="utf-8")):
            found.setdefault(tag, set()).add(path.relative_to(root).as_posix())
    return found


def test_tags(root: Path) -> dict[str, set[str]]:
    """Tag -> the test files, as paths from the root, with a test marked by it."""
    found: dict[str, set[str]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        for tag in _marks(ast.parse(path.read_text(encoding="utf-8")), name):
            found.setdefault(tag, set()).add(name)
    return found


def _marks(tree: ast.Module, name: str) -> Iterator[str]:
    """The arguments of every pytest.mark.equation(...) that decorates a test, a class of tests or a whole file."""
    places: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            places += node.decorator_list
        elif isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "pytestmark" for t in node.targets):
            places.append(node.value)
    for call in (node for place in places for node in ast.walk(place)):
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("mark.equation"):
            for argument in call.args:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    raise SystemExit(f"{name}:{call.lineno}: the tag of an equation mark must be a plain string.")
                yield argument.value


def map_rows(root: Path) -> list[Row]:
    """The rows of the map that begin with a tag in backticks."""
    rows = []
    folder = (root / MAP).parent
    for line in (root / MAP).read_text(encoding="utf-8").splitlines():
        if match := _ROW.match(line):
            targets = ((folder / link).resolve() for link in _LINK.findall(match[2]) if "://" not in link)
            files = frozenset(
                t.relative_to(root.resolve()).as_posix() for t in targets if t.is_relative_to(root.resolve())
            )
            rows.append(Row(match[1], files, NOT_YET not in match[2]))
    return rows


def problems(root: Path) -> list[str]:
    """What is wrong, one sentence each; empty where code, map and tests agree."""
    code, tests, rows = code_tags(root), test_tags(root), map_rows(root)
    covered = {row.tag for row in rows if row.covered}
    open_tags = {row.tag for row in rows if not row.covered}
    wrong = [
        f"There are no {what}: the checker looks in the wrong place, or they are gone."
        for what, found in (
            ("tags in src/", code),
            (f"covered rows in {MAP}", covered),
            ("equation marks in tests/", tests),
        )
        if not found
    ]
    listed = [row.tag for row in rows]
    wrong += [f"{tag} has more than one row in {MAP}." for tag in sorted({t for t in listed if listed.count(t) > 1})]
    for tag in sorted(covered | open_tags | set(code) | set(tests)):
        files = ", ".join(sorted(code.get(tag, set()) | tests.get(tag, set())))
        if tag not in covered | open_tags:
            wrong.append(f"{tag} ({files}) has no row in {MAP}.")
        elif tag in open_tags and files:
            wrong.append(f"{tag} is {NOT_YET} according to {MAP}, but stands in {files}.")
        elif tag in covered:
            if tag not in code:
                wrong.append(f"{tag} has a row in {MAP}, but no [eq:{tag}] in src/.")
            if tag not in tests:
                wrong.append(f'{tag} has a row in {MAP}, but no test is marked @pytest.mark.equation("{tag}").')
    for row in rows:
        if row.covered and row.tag in code and not row.files & code[row.tag]:
            wrong.append(
                f"The row of {row.tag} links to none of the files that compute it: {', '.join(sorted(code[row.tag]))}."
            )
        if row.covered and row.tag in tests and not row.files & tests[row.tag]:
            wrong.append(
                f"The row of {row.tag} links to none of the files that test it: {', '.join(sorted(tests[row.tag]))}."
            )
    return wrong


def main() -> None:
    wrong = problems(Path.cwd())
    for sentence in wrong:
        print(sentence)
    if wrong:
        sys.exit(1)
    print(f"{MAP}: code, map and tests agree on {len(code_tags(Path.cwd()))} tags.")


if __name__ == "__main__":
    main()
