"""Stored cells as one tidy pandas DataFrame."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aggbandit.experiments.cells import KINDS
from aggbandit.experiments.store import StoredCell

if TYPE_CHECKING:
    from pandas import DataFrame

NAMES = ("group", "cell", "learner", "instance", "adversary")


def arguments_of(stored: StoredCell) -> dict[str, Any]:
    """Every argument of a cell, flat: `{"instance.states": 3, ...}`."""
    parameters = stored.cell.parameters
    flat = {f"{kind}.{key}": value for kind in KINDS for key, value in parameters[kind]["arguments"].items()}
    rest = {key: parameters[key] for key in ("replicas", "evaluate_every", "delays")}
    rest |= {"device": parameters.get("device", "cpu"), "dtype": parameters.get("dtype", "float64")}
    return {**flat, "learner.version": parameters["learner"]["version"], **rest}


def varying(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The keys that do not have the same value in all rows, in order of appearance."""
    seen: dict[str, set[str]] = {}
    for row in rows:
        for key, value in row.items():
            seen.setdefault(key, set()).add(json.dumps(value, sort_keys=True))
    count = {key: sum(key in row for row in rows) for key in seen}
    return [key for key, values in seen.items() if len(values) > 1 or count[key] < len(rows)]


def frame_of(
    stored: Sequence[StoredCell], groups: Mapping[str, Sequence[str]], *, arguments: str, final: bool
) -> DataFrame:
    """One row a cell, replica and checkpoint; names and arguments are categories where they are text."""
    import pandas as pd

    last = slice(-1, None) if final else slice(None)
    shapes = [one.regret[:, last].shape for one in stored]
    lengths = np.array([rows * columns for rows, columns in shapes], dtype=np.int64)

    def repeated(values: Sequence[Any], *, text: bool = False) -> Any:
        """A value of each cell on all its rows."""
        if not text:
            return np.repeat(np.array(values), lengths)
        codes, categories = pd.factorize(np.array(values, dtype=object))
        return pd.Categorical.from_codes(np.repeat(codes, lengths), categories)

    def joined(parts: Sequence[Any]) -> Any:
        return np.concatenate([np.ravel(part) for part in parts]) if parts else np.empty(0)

    columns: dict[str, Any] = {}
    names = {
        "group": [", ".join(groups.get(one.cell.id, ())) for one in stored],
        "cell": [one.cell.id for one in stored],
        "learner": [one.cell.learner for one in stored],
        "instance": [one.cell.instance for one in stored],
        "adversary": [one.cell.adversary for one in stored],
    }
    for name, values in names.items():
        columns[name] = repeated(values, text=True)
    columns["K"] = repeated([one.cell.episodes for one in stored])
    columns["seed"] = repeated([one.cell.seed for one in stored])
    pairs = list(zip(stored, shapes, strict=True))
    columns["replica"] = joined([np.repeat(np.arange(rows), C) for _, (rows, C) in pairs])
    columns["episodes"] = joined([np.tile(one.episodes[last], rows) for one, (rows, _) in pairs])
    columns["regret"] = joined([one.regret[:, last] for one in stored])
    columns["pseudo_regret"] = joined(
        [np.full(shape, np.nan) if one.pseudo_regret is None else one.pseudo_regret[:, last] for one, shape in pairs]
    )
    columns["cost"] = joined([one.cost[:, last] for one in stored])
    columns["comparator"] = joined([np.tile(one.comparator[last], rows) for one, (rows, _) in pairs])
    columns["seconds"] = repeated([one.seconds for one in stored])
    flat = [arguments_of(one) for one in stored]
    wanted = {"none": [], "varying": varying(flat), "all": list(dict.fromkeys(key for row in flat for key in row))}
    for key in wanted[arguments]:
        given: list[Any] = [row.get(key) for row in flat]
        kinds: set[type] = {type(value) for value in given}
        if kinds <= {int, float} or kinds == {bool}:
            columns[key] = repeated(given)
        elif kinds <= {int, float, type(None)} and kinds != {type(None)}:
            columns[key] = repeated([np.nan if value is None else float(value) for value in given])
        else:
            columns[key] = repeated([_shown(value) for value in given], text=True)
    return pd.DataFrame(columns)


def _shown(value: Any) -> str | None:
    """An argument that is not a number everywhere, as text."""
    return value if value is None or isinstance(value, str) else json.dumps(value)
