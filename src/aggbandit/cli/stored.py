"""Stored cells as the curves that tables and pages draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from aggbandit.experiments.cells import canonical_text
from aggbandit.reporting import numbers
from aggbandit.reporting.curves import Curves

if TYPE_CHECKING:
    from aggbandit.experiments.store import Store, StoredCell
    from aggbandit.simulation.result import RunResult

MOST_SETTINGS = 60  # in one page: more would be slow to open


def curves_of(cells: Sequence[StoredCell]) -> list[Curves]:
    """One learner in one setting, its seeds together.

    Where seeds share the instance and the losses, their replicas are put together.  Where every seed has its own, the
    mean over replicas stands for a seed, and bands are over seeds: replicas that share an instance are not
    independent draws of it.
    """
    settings: dict[str, dict[str, list[StoredCell]]] = {}
    for one in sorted(cells, key=lambda one: one.cell.seed):
        settings.setdefault(_setting(one), {}).setdefault(one.cell.learner, []).append(one)
    return [
        _together(same, setting, label) for setting, learners in settings.items() for label, same in learners.items()
    ]


def _setting(one: StoredCell) -> str:
    cell, parameters = one.cell, one.cell.parameters
    text = f"{cell.instance} · {cell.adversary} losses · K = {numbers.grouped(cell.episodes)}"
    if parameters["delays"]:
        text += f", feedback {numbers.grouped(parameters['delays'])} episodes late"
    return text


def _together(cells: Sequence[StoredCell], setting: str, label: str) -> Curves:
    first = cells[0]
    made = Curves.of(cast("RunResult", first), setting=setting, label=label)  # has all that is read from a result
    if len(cells) == 1:
        return made
    same_grid = [one for one in cells if np.array_equal(one.episodes, first.episodes)]
    worlds = {canonical_text({kind: one.cell.parameters[kind] for kind in ("instance", "adversary")}) for one in cells}
    shared: dict[str, Any] = {"seconds": sum(one.seconds for one in same_grid)}
    if len(worlds) == 1:
        regret = np.concatenate([one.regret for one in same_grid])
        cost = np.concatenate([one.cost for one in same_grid])
        notes = made.notes
    else:
        regret = np.stack([one.regret.mean(axis=0) for one in same_grid])
        cost = np.stack([one.cost.mean(axis=0) for one in same_grid])
        notes = (*made.notes, f"{len(same_grid)} seeds, each with its own instance or losses and "
                 f"{first.regret.shape[0]} replicas: a seed's mean counts as one replica")  # fmt: skip
        shared["seconds"] /= first.regret.shape[0]  # so that episodes per second are those that were played
    comparator = np.mean([one.comparator for one in same_grid], axis=0)
    from dataclasses import replace

    return replace(made, regret=regret, cost=cost, comparator=comparator, notes=notes, **shared)


def report_of(store: Store) -> tuple[list[Curves], list[str]]:
    """What can be drawn now, and what the reader must know: what is missing, failed or damaged."""
    from aggbandit.errors import DamagedFileError

    cells, warnings = [], []
    for cell in store.finished:
        try:
            cells.append(store.read(cell))
        except DamagedFileError as error:
            warnings.append(f"Left out: {error}")
    order = {cell: i for i, cell in enumerate(cell for spec in store.specs() for ids in spec.groups.values()
                                              for cell in ids)}  # fmt: skip
    cells.sort(key=lambda one: order.get(one.cell.id, len(order)))
    missing = [cell for cell in order if not store.has(cell)]
    if missing:
        warnings.append(f"Not finished: {len(missing)} of {len(order)} cells are missing.")
    if store.failed:
        warnings.append(f"Failed: {len(store.failed)} cells; `aggbandit status {store.folder}` tells why.")
    curves = curves_of(cells)
    settings = list(dict.fromkeys(one.setting for one in curves))
    if len(settings) > MOST_SETTINGS:
        kept = set(settings[:MOST_SETTINGS])
        curves = [one for one in curves if one.setting in kept]
        warnings.append(
            f"The first {MOST_SETTINGS} of {len(settings)} settings are shown; ab.open_store(...).frame() has them all."
        )
    return curves, warnings
