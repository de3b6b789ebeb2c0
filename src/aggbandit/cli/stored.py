"""Stored cells as the curves that tables and pages draw."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from aggbandit.experiments.cells import canonical_text
from aggbandit.reporting import numbers
from aggbandit.reporting.curves import Curves

if TYPE_CHECKING:
    from aggbandit.experiments.cells import Cell
    from aggbandit.experiments.store import Store, StoredCell
    from aggbandit.simulation.result import RunResult

MOST_SETTINGS = 60  # in one page: more would be slow to open


def asked_of(store: Store) -> list[StoredCell]:
    """The finished cells that the specs in the folder ask for, in their order."""
    return store.read_all(cells=[cell for cell in store.asked() if store.has(cell)])


def curves_of(cells: Sequence[StoredCell]) -> list[Curves]:
    """One learner in one setting, its seeds together.

    Where seeds share the instance and the losses, their replicas are put together.  Where every seed has its own, the
    mean over replicas stands for a seed, and bands are over seeds: replicas that share an instance are not
    independent draws of it.
    """
    settings: dict[str, dict[tuple[int, str], dict[tuple[str, int], list[StoredCell]]]] = {}
    for one in sorted(cells, key=lambda one: one.cell.seed):
        by_measure = settings.setdefault(setting_of(one.cell), {})
        player = one.cell.learner, one.cell.parameters["learner"]["version"]
        by_measure.setdefault(_measure(one), {}).setdefault(player, []).append(one)
    return [
        _together(same, setting + (_in_words(measure) if len(measures) > 1 else ""), label)
        for setting, measures in settings.items()
        for measure, learners in measures.items()
        for (label, _), same in learners.items()
    ]


def setting_of(cell: Cell) -> str:
    """The instance, the losses and K in words: everything but the learner, the seed and how it was measured."""
    text = f"{cell.instance} · {cell.adversary} losses · K = {numbers.grouped(cell.episodes)}"
    if late := cell.parameters["delays"]:
        text += f", feedback {numbers.grouped(late)} episodes late"
    return text


def _measure(one: StoredCell) -> tuple[int, str]:
    """Replicas and how they were evaluated: cells that differ in it are not seeds of one another."""
    return one.cell.replicas, canonical_text(
        {key: one.cell.parameters[key] for key in ("evaluate_every", "checkpoints")}
        | {"device": one.cell.device, "dtype": one.cell.dtype}
    )


def _in_words(measure: tuple[int, str]) -> str:
    replicas, rest = measure
    found = json.loads(rest)
    words = f" · {numbers.counted(replicas, 'replica')}, "
    if found["evaluate_every"] > 1:
        words += f"every {found['evaluate_every']}th policy evaluated, "
    if found["device"] != "cpu":
        words += f"{found['dtype']} on a GPU, "
    marks = found["checkpoints"]
    return words + numbers.counted(len(marks) if isinstance(marks, list) else marks, "checkpoint")


def _together(cells: Sequence[StoredCell], setting: str, label: str) -> Curves:
    first = cells[0]
    made = Curves.of(cast("RunResult", first), setting=setting, label=label)  # has all that is read from a result
    if len(cells) == 1:
        return made
    worlds = {canonical_text({kind: one.cell.parameters[kind] for kind in ("instance", "adversary")}) for one in cells}
    shared: dict[str, Any] = {"seconds": sum(one.seconds for one in cells)}
    if len(worlds) == 1:
        regret = np.concatenate([one.regret for one in cells])
        cost = np.concatenate([one.cost for one in cells])
        notes = made.notes
    else:
        regret = np.stack([one.regret.mean(axis=0) for one in cells])
        cost = np.stack([one.cost.mean(axis=0) for one in cells])
        replicas = numbers.counted(first.regret.shape[0], "replica")
        notes = (*made.notes, f"{len(cells)} seeds, each with its own instance or losses and {replicas}: a seed's mean "
                 "counts as one replica")  # fmt: skip
        shared["seconds"] /= first.regret.shape[0]  # so that episodes per second are those that were played
    comparator = np.mean([one.comparator for one in cells], axis=0)
    return replace(made, regret=regret, cost=cost, comparator=comparator, notes=notes, **shared)


def report_of(store: Store) -> tuple[list[Curves], list[str]]:
    """What can be drawn now, and what the reader must know: what is missing, failed or damaged."""
    from aggbandit.errors import DamagedFileError

    cells, warnings = [], []
    asked = store.asked()
    for cell in asked:
        if not store.has(cell):
            continue
        try:
            cells.append(store.read(cell))
        except DamagedFileError as error:
            warnings.append(f"Left out: {error}")
    missing = sum(not store.has(cell) for cell in asked)
    failed = len(set(store.failed) & set(asked))
    if missing:
        warnings.append(f"Not finished: {numbers.grouped(missing)} of {numbers.counted(len(asked), 'cell')}.")
    if failed:
        warnings.append(f"Failed: {numbers.counted(failed, 'cell')}; `aggbandit status {store.folder}` tells why.")
    if rest := len(set(store.finished) - set(asked)):
        warnings.append(f"Not shown: {numbers.counted(rest, 'cell')} that no spec asks for now.")
    curves = curves_of(cells)
    settings = list(dict.fromkeys(one.setting for one in curves))
    if len(settings) > MOST_SETTINGS:
        kept = set(settings[:MOST_SETTINGS])
        curves = [one for one in curves if one.setting in kept]
        warnings.append(
            f"The first {MOST_SETTINGS} of {len(settings)} settings are shown; ab.open_store(...).frame() has them all."
        )
    return curves, warnings
