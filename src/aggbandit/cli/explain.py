"""What a docstring, a signature and the comments beside its fields say, taken apart for `list` and `show`."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import re
import textwrap
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aggbandit._checks import keywords_of
from aggbandit.errors import AggbanditError

KEYED = re.compile(r"([A-Za-z][\w-]*(?:, [A-Za-z]\w*)*) {2,}(\S.*)")  # `width, height   in cells`, `Paper   [LM25]`
TAG = re.compile(r"[ \t]*\[eq:[^\]]*\]")  # of the paper map; says nothing to a reader of the terminal
REQUIRED = "required"
FILLED = 111  # columns; where the next word would still have fitted, a line was broken on purpose, as formulas are
COMMON = {  # what several learners mean alike, where they do not say it themselves
    "confidence": "δ: the guarantee holds with probability 1 - δ",
    "step_size": "η: a number, used as given, or whose: 'appendix' or 'main'",
    "exploration": "γ; None: 2 η H of the step actually used",
    "bonus_scale": "multiplies all of the bonus b",
    "radius_scale": "multiplies the radius of the confidence sets",
    "damping": "added to every probability that it divides by; 0: nothing",
    "dynamics": "'known' or 'unknown': whether it is told the dynamics",
    "feedback": "'aggregate', 'semi-bandit' or 'full': what it sees of an episode",
}


@dataclass(frozen=True)
class Argument:
    """One argument of a factory or a learner."""

    name: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Explained:
    """What there is to tell about a learner, instance or adversary."""

    summary: str
    text: list[str]  # paragraphs after the summary, with the line breaks that are meant
    arguments: list[Argument]
    sections: list[tuple[str, str]]  # `Paper`, `Departs`, `Cost`, ... with their text


def explained(what: Any) -> Explained:
    """Of a learner class or of a factory."""
    names = _defaults(what)
    summary, text, keyed = _docstring(inspect.getdoc(what) or "")
    beside = _comments(what) if inspect.isclass(what) else {}
    told = {name: value for key, value in keyed for name in key.split(", ")}
    meanings = {**COMMON, **beside, **told}
    arguments = [Argument(name, default, meanings.get(name, "")) for name, default in names.items()]
    return Explained(
        summary, text, arguments, [(key, value) for key, value in keyed if key.split(", ")[0] not in names]
    )


def summary(what: Any) -> str:
    """The first sentence of its docstring."""
    return _docstring(inspect.getdoc(what) or "")[0]


def configured(kind: type[Any]) -> Any | None:
    """The learner with its default arguments; None where it has arguments without a default."""
    try:
        return kind()
    except (TypeError, AggbanditError):
        return None


def choices(kind: type[Any], what: str) -> list[str]:
    """The values of its needs that its argument of the same name chooses from, the default first; or the only one.

    `what` is "feedback", "dynamics" or "losses"; empty where it cannot be made without arguments and does not say it.
    """
    from aggbandit.learners.base import DYNAMICS, FEEDBACK_LEVELS, LOSSES

    values = {"feedback": FEEDBACK_LEVELS, "dynamics": DYNAMICS, "losses": LOSSES}
    made = configured(kind)
    default = getattr(getattr(kind if made is None else made, "needs", None), what, None)
    found = [] if default is None else [str(default)]
    if made is not None and what in getattr(made, "arguments", {}):
        for value in values[what]:
            try:
                other = getattr(kind(**{what: value}).needs, what)
            except (TypeError, AggbanditError):
                continue
            if other not in found:
                found.append(str(other))
    return found


def everything() -> dict[str, tuple[Callable[[], list[str]], Callable[[str], Any]]]:
    """What has ids: its singular, the function that lists them, and the one that finds one."""
    from aggbandit import adversaries, learners
    from aggbandit.mdp import instances

    return {
        "learner": (learners.names, learners.get),
        "instance": (instances.names, instances.get),
        "adversary": (adversaries.names, adversaries.get),
    }


def _defaults(what: Any) -> dict[str, str]:
    if inspect.isclass(what):
        if not dataclasses.is_dataclass(what):
            return {}
        out = {}
        for field in dataclasses.fields(what):
            if not field.init:
                continue
            if field.default is not dataclasses.MISSING:
                out[field.name] = repr(field.default)
            elif field.default_factory is not dataclasses.MISSING:
                out[field.name] = repr(field.default_factory())
            else:
                out[field.name] = REQUIRED
        return out
    return {
        name: REQUIRED if one.default is one.empty else repr(one.default) for name, one in keywords_of(what).items()
    }


def _docstring(text: str) -> tuple[str, list[str], list[tuple[str, str]]]:
    """First sentence, further paragraphs, and the lines of the form `name   meaning` with what is indented below."""
    paragraphs: list[str] = []
    keyed: list[tuple[str, str]] = []
    current: list[str] = []
    key = ""

    def close() -> None:
        nonlocal key, current
        joined = " ".join(" ".join(current).split())
        if joined and key:
            keyed.append((key, joined))
        elif joined:
            text = ""
            for line, following in zip(current, [*current[1:], ""], strict=True):
                word = "".join(following.split()[:1])
                text += line + (" " if len(line) + 1 + len(word) > FILLED else "\n")
            paragraphs.append(text.rstrip())
        key, current = "", []

    for line in TAG.sub("", text).splitlines():
        if line.lstrip().startswith(">>>"):
            break
        found = KEYED.fullmatch(line)
        if found:
            close()
            key, current = found[1], [found[2].strip()]
        elif not line.strip() or (key and not line.startswith(" ")):
            close()
            current = [line.rstrip()] if line.strip() else []
        else:
            current.append(line.rstrip())
    close()
    return " ".join(paragraphs[0].split()) if paragraphs else "", paragraphs[1:], keyed


def _comments(kind: type[Any]) -> dict[str, str]:
    """The comment on the last line of each field, from the class and those it inherits fields from."""
    out: dict[str, str] = {}
    for cls in reversed(kind.__mro__):
        if cls.__module__ == "builtins" or not dataclasses.is_dataclass(cls):
            continue
        try:
            source = textwrap.dedent(inspect.getsource(cls))
        except (OSError, TypeError):
            continue
        beside = {
            token.start[0]: token.string.lstrip("# ").strip()
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type == tokenize.COMMENT
        }
        body = ast.parse(source).body[0]
        for node in body.body if isinstance(body, ast.ClassDef) else []:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.end_lineno in beside:
                out[node.target.id] = beside[node.end_lineno]
    return out
