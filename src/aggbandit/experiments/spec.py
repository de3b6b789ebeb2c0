"""Specs: TOML files that say which cells a study has.

    name = "blocks"
    episodes = [1_000, 10_000]          # a list is a grid: every entry with every entry of every other list
    replicas = 32
    seed = { first = 0, count = 10 }
    instance = "random:states=5,horizon=4"
    learner = ["uniform", "po-known"]

    [[adversary]]
    id = "switching"
    blocks = [2, 8, 32]

    [[group]]                           # optional: named parts, each with its own keys instead of those above
    name = "step sizes"
    learner = { id = "po-known", step_size = ["appendix", "main"] }

With device = "cuda" (and dtype = "float32") cells are played on a GPU.
An argument that is a list itself is written as a list of lists; "none" is Python's None.  The cell's seed is also
that of the instance and the losses, unless they are given one.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, time
from difflib import get_close_matches
from functools import cached_property
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from aggbandit._checks import keywords_of, require_arguments, require_integer
from aggbandit.errors import AggbanditError, InvalidInputError
from aggbandit.experiments import _positions
from aggbandit.experiments.cells import FORMAT, KINDS, Cell, canonical, canonical_text, defaults, factory
from aggbandit.experiments.named import Named

DEFAULTS = {"replicas": 1, "seed": 0, "evaluate_every": 1, "delays": 0}
AXES = ("episodes", *DEFAULTS)
WHERE = {"device": ("cpu", "cuda"), "dtype": ("float64", "float32")}  # the first is the default
KEYS = (*KINDS, *AXES, "checkpoints", *WHERE)  # of a group
TOP = ("name", "description", *KEYS, "group")
MOST_CELLS = 1_000_000
LEAST = {"episodes": 1, "replicas": 1, "seed": 0, "count": 1, "evaluate_every": 1, "delays": 0, "checkpoints": 1}
MOST = {"episodes": 2**32 - 1, "replicas": 2**32 - 1, "seed": 2**64 - 1, "count": MOST_CELLS}
CHECKPOINTS = 60
BUILT_IN = resources.files("aggbandit.experiments") / "specs"
LONGEST_NAME = 100  # file systems take 255 bytes, and names of temporary files are longer
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Group:
    """A named part of a spec."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Spec:
    """What a spec file resolves to."""

    name: str
    description: str
    text: str  # the file
    groups: tuple[Group, ...]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell once, in the order in which they are played."""
        found: dict[str, Cell] = {}
        for group in self.groups:
            for cell in group.cells:
                found.setdefault(cell.id, cell)  # its names are those of the first group that has it
        return tuple(found.values())

    def on(self, device: str, dtype: str) -> Spec:
        """The same cells played on that device, whatever the file says; raises where they cannot be."""
        seen = set()
        for cell in self.cells:
            kind = canonical_text(cell.parameters["learner"]), cell.parameters["delays"]
            if kind not in seen:
                _require_playable(cell.made()[2], device, dtype, cell.parameters["delays"])
                seen.add(kind)
        groups = tuple(
            replace(group, cells=tuple(cell.on(device, dtype) for cell in group.cells)) for group in self.groups
        )
        return replace(self, groups=groups)

    @classmethod
    def load(cls, source: str | Path) -> Spec:
        """The spec in this file, or the built-in one of this name."""
        path = Path(source)
        if path.is_file():
            return cls.parse(path.read_bytes(), source=path.name, name=path.stem)
        known = built_in()
        if str(source) in known:
            return cls.parse((BUILT_IN / f"{source}.toml").read_bytes(), source=f"{source}.toml", name=str(source))
        near = get_close_matches(str(source), known, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidInputError(
            f"there is no spec file {str(source)!r}, and no built-in spec of that name.{hint} "
            f"Built in: {', '.join(known)}."
        )

    @classmethod
    def parse(cls, data: bytes | str, *, source: str = "spec", name: str = "spec") -> Spec:
        """The spec in this text; `source` stands in error messages, `name` is its name if it gives none."""
        try:
            text = data.decode("utf-8-sig") if isinstance(data, bytes) else data  # some editors put a mark first
            read = tomllib.loads(text)
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"{source}: it is no UTF-8 text ({error.reason} at byte {error.start}).") from None
        except tomllib.TOMLDecodeError as error:
            raise InvalidInputError(f"{source}: it is no valid TOML: {error}.") from None
        except RecursionError:
            raise InvalidInputError(f"{source}: its lists or tables are nested too deep to be read.") from None
        return _Reader(text, read, source).spec(name)


def built_in() -> list[str]:
    """The names of the specs that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in BUILT_IN.iterdir() if entry.name.endswith(".toml"))


@dataclass(frozen=True)
class _Choice:
    """One instance, adversary or learner, all its arguments fixed but perhaps the seed."""

    path: _positions.Path  # where it stands
    id: str
    given: dict[str, Any]
    places: dict[str, _positions.Path]  # of the arguments given

    @property
    def label(self) -> str:
        return str(Named(self.id, self.given))


class _Reader:
    """Checks a parsed file and expands it; knows where everything stands."""

    def __init__(self, text: str, read: dict[str, Any], source: str) -> None:
        self.text, self.read, self.source = text, read, source
        self._tried: set[Any] = set()

    def spec(self, name: str) -> Spec:
        read = self.read
        self._known_keys(read, TOP, (), "A spec")
        name = self._string("name", read.get("name", name))
        description = self._string("description", read.get("description", ""), plain=False)
        groups = read.get("group")
        if groups is None:
            return Spec(name, description, self.text, (self._group(name, {}, ()),))
        if not isinstance(groups, list) or not groups or not all(isinstance(one, dict) for one in groups):
            raise self._wrong(("group",), groups, "groups are tables, each under its own line [[group]].")
        found: list[Group] = []
        for i, one in enumerate(groups):
            at: _positions.Path = ("group", i)
            self._known_keys(one, ("name", *KEYS), at, "A group")
            if "name" not in one:
                raise self._wrong(at, None, "every group needs a name.")
            title = self._string("name", one["name"], at, plain=False)
            if any(title == other.name for other in found):
                raise self._wrong((*at, "name"), title, "another group has this name.")
            found.append(self._group(title, one, at))
        return Spec(name, description, self.text, tuple(found))

    # Expansion

    def _group(self, name: str, own: Mapping[str, Any], at: _positions.Path) -> Group:
        from aggbandit.simulation.engines.places import require_dtype

        def entry(key: str) -> tuple[Any, _positions.Path]:
            if key in own:
                return own[key], (*at, key)
            return self.read.get(key, DEFAULTS.get(key)), (key,)

        choices: dict[str, list[_Choice]] = {}
        for kind in KINDS:
            value, path = entry(kind)
            if value is None:
                raise self._wrong(at, None, f"{self._who(name, at)} has no {kind}: give {kind} = ... ")
            choices[kind] = self._choices(kind, value, path)
        axes: dict[str, list[int]] = {}
        for axis in AXES:
            value, path = entry(axis)
            if value is None:
                raise self._wrong(at, None, f"{self._who(name, at)} does not say how many episodes: episodes = 10_000")
            axes[axis] = self._integers(axis, value, path)
        value, path = entry("checkpoints")
        checkpoints = self._checkpoints(CHECKPOINTS if value is None else value, path, max(axes["episodes"]))
        where = {}
        for key, known in WHERE.items():
            value, path = entry(key)
            where[key] = known[0] if value is None else value
            if where[key] not in known:
                raise self._wrong(path, value, f"must be {' or '.join(map(repr, known))}.")
        try:
            require_dtype(where["dtype"], where["device"] != "cpu")
        except AggbanditError as error:
            raise self._wrong(path, value, str(error)) from None
        count = 1
        for size in (*map(len, choices.values()), *map(len, axes.values())):
            count *= size
        if count > MOST_CELLS:
            raise self._wrong(
                at, None, f"{self._who(name, at)} has {count} cells, but may have {MOST_CELLS}. Write several specs."
            )
        # seeds outermost: a sweep stopped half-way has compared everything on the first seeds
        cells: dict[str, Cell] = {}
        orders = product(axes["seed"], axes["episodes"], axes["replicas"], axes["evaluate_every"], axes["delays"])
        for seed, episodes, replicas, every, delays in orders:
            for instance, adversary in product(choices["instance"], choices["adversary"]):
                for learner in choices["learner"]:
                    self._try(instance, adversary, learner, seed, episodes, delays, entry("delays")[1], where)
                    form = {
                        "format": FORMAT,
                        "instance": self._full("instance", instance, seed),
                        "adversary": self._full("adversary", adversary, seed),
                        "learner": self._full("learner", learner, None),
                        "episodes": episodes, "replicas": replicas, "seed": seed, "evaluate_every": every,
                        "delays": delays, "checkpoints": _up_to(episodes, checkpoints),
                    }  # fmt: skip
                    cell = Cell(canonical_text(form), instance.label, adversary.label, learner.label).on(**where)
                    cells.setdefault(cell.id, cell)
        return Group(name, tuple(cells.values()))

    def _who(self, name: str, at: _positions.Path) -> str:
        return f"group {name!r}" if at else "the spec"

    def _full(self, kind: str, choice: _Choice, seed: int | None) -> dict[str, Any]:
        """Id and all arguments: given, else the cell's seed, else the default."""
        known = defaults(kind, choice.id)
        own = {"seed": seed} if seed is not None and _takes_seed(kind, choice.id) else {}
        full = {"id": choice.id, "arguments": {**known, **own, **choice.given}}
        return {**full, "version": self.__dict__["_made"][kind, choice.label].version} if kind == "learner" else full

    def _choices(self, kind: str, value: Any, path: _positions.Path) -> list[_Choice]:
        """Every instance (adversary, learner) that this key stands for."""
        if value == []:
            raise self._wrong(path, value, f"it is empty: no {kind} is left to play.")
        found: dict[str, _Choice] = {}
        for one, place in self._several(value, path):
            for choice in self._expanded(kind, one, place):
                full = canonical_text({"id": choice.id, "arguments": {**defaults(kind, choice.id), **choice.given}})
                if full in found:
                    raise self._wrong(place, one, f"this {kind} is already there, as {found[full].label!r}.")
                found[full] = choice
        return list(found.values())

    def _expanded(self, kind: str, value: Any, path: _positions.Path) -> Iterator[_Choice]:
        if isinstance(value, str):
            try:
                named = Named.parse(value)
            except InvalidInputError as error:
                raise self._wrong(path, value, str(error)) from None
            name, arguments = named.name, dict(named.arguments)
        elif isinstance(value, dict):
            arguments = dict(value)
            name = arguments.pop("id", None)
            if not isinstance(name, str):
                raise self._wrong(path, name, f'it needs id = "...", the name of {_article(kind)}.')
        else:
            raise self._wrong(path, value, 'must be "id:argument=value,...", a table with an id, or a list of them.')
        try:
            made_by = factory(kind, name)
        except AggbanditError as error:
            raise self._wrong((*path, "id"), name, str(error)) from None
        for argument in arguments:
            try:
                known = {argument: None, **dict.fromkeys(_required(made_by))}
                require_arguments(kind, name, made_by, known)
            except InvalidInputError as error:
                raise self._wrong((*path, argument), arguments[argument], str(error)) from None
        try:
            require_arguments(kind, name, made_by, arguments)
        except InvalidInputError as error:
            raise self._wrong(path, None, str(error)) from None
        grids = []
        for argument, given in arguments.items():
            several = self._several(given, (*path, argument))
            if not several:
                raise self._wrong((*path, argument), given, "an empty list leaves nothing to play.")
            values: dict[str, tuple[Any, _positions.Path]] = {}
            for one, place in several:
                try:
                    value = None if one == "none" else canonical(one)
                except InvalidInputError as error:
                    raise self._wrong(place, one, str(error)) from None
                if canonical_text(value) in values:
                    raise self._wrong(place, one, "it is there twice.")
                values[canonical_text(value)] = value, place
            grids.append(values.values())
        for entries in product(*grids):
            chosen = dict(zip(arguments, entries, strict=True))
            yield _Choice(
                path, name, {key: one for key, (one, _) in chosen.items()}, {key: at for key, (_, at) in chosen.items()}
            )

    @staticmethod
    def _several(value: Any, path: _positions.Path) -> list[tuple[Any, _positions.Path]]:
        """The entries of a list, or the one value, each with its place."""
        return [(one, (*path, i)) for i, one in enumerate(value)] if isinstance(value, list) else [(value, path)]

    # Single keys

    def _integers(self, axis: str, value: Any, path: _positions.Path) -> list[int]:
        if axis == "seed" and isinstance(value, dict):
            self._known_keys(value, ("first", "count"), path, "A range of seeds")
            first = self._integer(axis, value.get("first", 0), (*path, "first"))
            if "count" not in value:
                raise self._wrong(path, value, "a range of seeds needs count = ...")
            count = self._integer("count", value["count"], (*path, "count"))
            if (last := first + count - 1) > MOST["seed"]:
                raise self._wrong(path, value, f"its last seed is {last}, but the largest is {MOST['seed']}.")
            return list(range(first, first + count))
        if value == []:
            raise self._wrong(path, value, "an empty list leaves nothing to play.")
        return self._distinct(axis, value, path)

    def _distinct(self, axis: str, value: Any, path: _positions.Path) -> list[int]:
        """One number or several, none of them twice."""
        numbers: dict[int, None] = {}
        for one, place in self._several(value, path):
            number = self._integer(axis, one, place)
            if number in numbers:
                raise self._wrong(place, one, "it is there twice.")
            numbers[number] = None
        return list(numbers)

    def _integer(self, axis: str, value: Any, path: _positions.Path) -> int:
        exact = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        try:
            return require_integer(axis, int(value) if exact else value, low=LEAST[axis], high=MOST.get(axis))
        except InvalidInputError as error:
            raise self._wrong(path, value, str(error)) from None

    def _checkpoints(self, value: Any, path: _positions.Path, episodes: int) -> int | list[int]:
        if value == []:
            raise self._wrong(path, value, "it is empty; give a count, or the episodes at which curves are noted.")
        numbers = self._distinct("checkpoints", value, path)
        if not isinstance(value, list):
            return numbers[0]
        for i, number in enumerate(numbers):
            if number > episodes:
                raise self._wrong((*path, i), value[i], f"lies beyond the {episodes} episodes that are played.")
        return sorted(numbers)

    def _string(self, key: str, value: Any, at: _positions.Path = (), *, plain: bool = True) -> str:
        if not isinstance(value, str) or (key == "name" and not value.strip()):
            raise self._wrong((*at, key), value, "must be a string.")
        if plain and not _NAME.fullmatch(value):
            raise self._wrong((*at, key), value, "must be letters, digits, '.', '-' and '_': it names a file.")
        if plain and len(value) > LONGEST_NAME:
            raise self._wrong((*at, key), value, f"must have {LONGEST_NAME} letters at most: it names a file.")
        return value

    def _known_keys(self, table: Mapping[str, Any], known: Iterable[str], at: _positions.Path, what: str) -> None:
        for key in table:
            if key not in known:
                near = get_close_matches(key, list(known), n=1, cutoff=0.4)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise self._wrong(
                    (*at, key), table[key], f"there is no such key.{hint} {what} has: {', '.join(known)}."
                )

    # What only making the things can tell

    def _try(
        self, instance: _Choice, adversary: _Choice, learner: _Choice, seed: int, episodes: int, delays: int,
        delays_at: _positions.Path, where: Mapping[str, str],
    ) -> None:  # fmt: skip
        """Make it all once, whatever the seed, so that a mistake is told before anything is played."""
        from aggbandit import adversaries, learners
        from aggbandit.learners.base import Problem
        from aggbandit.learners.parts.linear_mdp import require_expressive
        from aggbandit.mdp import instances

        key = instance.label, adversary.label, learner.label, episodes, delays
        if key in self._tried:
            return
        made = self.__dict__.setdefault("_made", {})
        for kind, choice, parts in (
            ("instance", instance, (instance.label,)),
            ("adversary", adversary, (instance.label, adversary.label)),
            ("learner", learner, (learner.label,)),
        ):
            if (kind, *parts) in made:
                continue
            own = {"seed": seed} if kind != "learner" and _takes_seed(kind, choice.id) else {}
            arguments = {**own, **choice.given}
            try:
                if kind == "instance":
                    made[kind, *parts] = instances.make(choice.id, **arguments)
                elif kind == "adversary":
                    mdp = made["instance", instance.label]
                    made[kind, *parts] = adversaries.make(choice.id, mdp, **arguments)
                else:
                    made[kind, *parts] = learners.make(choice.id, **arguments)
            except (AggbanditError, TypeError, ValueError) as error:
                raise self._wrong_choice(choice, str(error)) from None
        mdp, player = made["instance", instance.label], made["learner", learner.label]
        try:
            player.check(Problem.of(mdp, episodes, player.needs))
            if player.linear_features is not None:
                mean = getattr(made["adversary", instance.label, adversary.label], "mean_table", None)
                require_expressive(player.linear_features, mdp, mean)
        except AggbanditError as error:
            raise self._wrong_choice(learner, f"on {instance.label}, episodes = {episodes}: {error}") from None
        if delays and not player.needs.late_feedback:
            raise self._wrong(
                delays_at, delays, f"{learner.label} does not take late feedback; delays must be 0 for it."
            )
        try:
            _require_playable(player, where["device"], where["dtype"], delays)
        except AggbanditError as error:
            raise self._wrong_choice(learner, str(error)) from None
        self._tried.add(key)

    def _wrong_choice(self, choice: _Choice, message: str) -> InvalidInputError:
        """The error at the argument that its message names first, else at the whole."""
        named = [key for key in choice.given if re.search(rf"\b{re.escape(key)}\b", message)]
        named.sort(key=lambda key: re.search(rf"\b{re.escape(key)}\b", message).start())  # type: ignore[union-attr]
        if named:
            return self._wrong(choice.places[named[0]], choice.given[named[0]], message)
        return self._wrong(choice.path, choice.label, message)

    def _wrong(self, path: _positions.Path, value: Any, message: str) -> InvalidInputError:
        line = _positions.line_of(self.text, path) if path else None
        where = f"{self.source}, line {line}" if line else self.source
        what = dotted(path)
        shown = "" if value is None or not what else f" = {_short(value)}"
        return InvalidInputError(
            f"{where}: {what}{shown}: {message.strip()}" if what else f"{where}: {message.strip()}"
        )


def _require_playable(learner: Any, device: str, dtype: str, delays: int) -> None:
    """Whether a learner can be played there, on a machine that has what it takes."""
    from aggbandit.simulation.engines.places import require_dtype
    from aggbandit.simulation.engines.registry import require_on_gpu

    require_dtype(dtype, device != "cpu")
    if device != "cpu":
        require_on_gpu(learner, bool(delays))


def dotted(path: _positions.Path) -> str:
    """`group[0].learner[1].confidence`."""
    out = ""
    for part in path:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else part
    return out


def _up_to(episodes: int, checkpoints: int | list[int]) -> int | list[int]:
    """Of listed checkpoints those that a run of so many episodes comes to; its last episode is always one."""
    if isinstance(checkpoints, int):
        return checkpoints
    return [one for one in checkpoints if one <= episodes] or [episodes]


def _short(value: Any) -> str:
    """As the file has it, if it is short."""
    text = str(value).lower() if isinstance(value, (bool, date, time)) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aei" else f"a {kind}"


def _required(made_by: Any) -> list[str]:
    return [name for name, one in keywords_of(made_by).items() if one.default is one.empty]


_TAKES_SEED: dict[tuple[str, str], bool] = {}


def _takes_seed(kind: str, name: str) -> bool:
    key = kind, name
    if key not in _TAKES_SEED:
        _TAKES_SEED[key] = "seed" in inspect.signature(factory(kind, name)).parameters
    return _TAKES_SEED[key]
