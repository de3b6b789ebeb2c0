"""What a spec will take: one short trial for every kind of cell that it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aggbandit.experiments.cells import Cell, canonical_text

if TYPE_CHECKING:
    from aggbandit.learners.base import Learner
    from aggbandit.mdp.tabular import TabularMDP

TRIALS_SECONDS = 15.0  # for all trials together
LONGEST_TRIAL = 0.5
SHORTEST_TRIAL = 0.02
CELL_SECONDS = 0.003  # to make a cell and to write its file: `python -m tools.sweep_overhead threads`


@dataclass(frozen=True)
class Expected:
    """What a cell is expected to need on this machine, played by one thread."""

    seconds: float
    bytes: float  # beside what every process of this package holds
    in_python: bool = False  # mostly: no compiled engine plays it, so threads wait for one another


def expected(
    cells: Sequence[Cell], tell: Callable[[int, int, str], None] = lambda done, kinds, learner: None
) -> tuple[dict[str, Expected], float]:
    """By cell id, and the bytes that a process holds without any cell.  Cells that differ in seeds are tried once.

    tell  called before each trial: how many kinds of cells have been tried, of how many, and whose cell is next
    """
    from aggbandit.experiments.planner import forecast_of

    kinds: dict[str, list[Cell]] = {}
    for cell in cells:
        kinds.setdefault(_but_for_seeds(cell), []).append(cell)
    trial = min(LONGEST_TRIAL, max(SHORTEST_TRIAL, TRIALS_SECONDS / max(1, len(kinds))))
    out = {}
    process = 0.0
    for done, same in enumerate(kinds.values()):
        cell = same[0]
        tell(done, len(kinds), cell.learner)
        try:
            mdp, _, learner = cell.made()
            found = forecast_of(
                cell.simulation, learner, mdp, episodes=cell.episodes, replicas=cell.replicas, threads=1,
                keep_policy=False, trial_seconds=trial, whole=cell.device != "cpu",
            )  # fmt: skip
            seconds = found.seconds + CELL_SECONDS
            one = Expected(seconds, found.held_bytes + _model_bytes(mdp), _in_python(cell, mdp, learner))
            process = max(process, found.peak_bytes - found.held_bytes)
        except Exception:  # noqa: BLE001  a learner may raise anything; playing it will say what
            one = Expected(float("nan"), float("nan"))
        out.update({cell.id: one for cell in same})
    return out, process


def _in_python(cell: Cell, mdp: TabularMDP, learner: Learner[Any]) -> bool:
    from aggbandit.learners.base import Problem
    from aggbandit.simulation.engines.plain import PlainEngine
    from aggbandit.simulation.engines.registry import choose

    problem = Problem.of(mdp, cell.episodes, learner.needs)
    return cell.device == "cpu" and choose(mdp, problem, learner, cell.replicas)[0] is PlainEngine


def _model_bytes(mdp: TabularMDP) -> float:
    """Of the transitions as they are kept: once if stationary, successors with their numbers if sparse."""
    rows = (1 if mdp.is_stationary else mdp.H) * mdp.S * mdp.A
    return rows * 8.0 * (2 * mdp.next_states.shape[-1] if mdp.is_sparse else mdp.S)


def _but_for_seeds(cell: Cell) -> str:
    """The canonical form without any seed."""
    form = {**cell.parameters, "seed": None}
    for kind in ("instance", "adversary"):
        arguments = {name: value for name, value in form[kind]["arguments"].items() if name != "seed"}
        form[kind] = {**form[kind], "arguments": arguments}
    return canonical_text(form)
