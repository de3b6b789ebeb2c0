"""Does every relative link in the Markdown files lead somewhere, anchors included?  `python -m tools.links`"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)>?")
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_NOT_OURS = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)  # https:, mailto:
_SKIPPED = {"build", "dist", "node_modules", "results"}


def markdown_files(root: Path) -> list[Path]:
    """All Markdown files of the project; hidden folders and build products are left out."""
    return sorted(
        path
        for path in root.rglob("*.md")
        if not any(part.startswith(".") or part in _SKIPPED for part in path.relative_to(root).parts[:-1])
    )


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """(line number, line) outside of fenced code blocks."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        match = _FENCE.match(line)
        if match and (not fence or match[1].startswith(fence)):
            fence = "" if fence else match[1]
        elif not fence:
            yield number, line


def anchors(text: str) -> set[str]:
    """The anchors that a Markdown page has: one for each heading, as GitHub makes them, and those set by hand."""
    found: set[str] = set()
    for _, line in prose_lines(text):
        found.update(re.findall(r"<a\s+(?:id|name)=\"([^\"]+)\"", line))
        if match := _HEADING.match(line):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1])
            slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            repeated, number = slug, 0
            while repeated in found:
                number += 1
                repeated = f"{slug}-{number}"
            found.add(repeated)
    return found


def problems(root: Path) -> list[str]:
    """What is wrong, one sentence each; empty where every link leads somewhere."""
    files = markdown_files(root)
    wrong = [] if files else [f"There are no Markdown files in {root.name}: the checker looks in the wrong place."]
    for path in files:
        name = path.relative_to(root).as_posix()
        for number, line in prose_lines(path.read_text(encoding="utf-8")):
            plain = _INLINE_CODE.sub(lambda match: " " * len(match[0]), line)
            # a link's text may be code, so links are looked for in the line itself, but must not begin inside code
            targets = [m[1] for m in _LINK.finditer(line) if plain[m.start()] != " "]
            targets += [m[1] for m in _DEFINITION.finditer(line)]
            wrong += [
                f"{name}:{number}: {target} {fault}"
                for target in targets
                if not _NOT_OURS.match(target) and (fault := _fault(root, path, target))
            ]
    return wrong


def _fault(root: Path, page: Path, target: str) -> str:
    """What is wrong with a link from this page; empty where it leads somewhere."""
    file, _, anchor = unquote(target).partition("#")
    goal = (page.parent / file).resolve() if file else page
    if not goal.is_relative_to(root.resolve()):
        return "leads out of the repository."
    if not goal.exists():
        return "does not exist."
    if anchor and goal.suffix == ".md" and anchor not in anchors(goal.read_text(encoding="utf-8")):
        return "has no such heading."
    return ""


def main() -> None:
    wrong = problems(Path.cwd())
    for sentence in wrong:
        print(sentence)
    if wrong:
        sys.exit(1)
    print(f"Links in {len(markdown_files(Path.cwd()))} Markdown files: every one leads somewhere.")


if __name__ == "__main__":
    main()
