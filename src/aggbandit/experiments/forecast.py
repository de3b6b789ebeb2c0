"""What a spec will take: one short trial for every kind of cell that it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aggbandit.errors import AggbanditError
from aggbandit.experiments.cells import Cell

TRIALS_SECONDS = 15.0  # for all trials together
LONGEST_TRIAL = 0.5
SHORTEST_TRIAL = 0.02


@dataclass(frozen=True)
class Expected:
    """What a cell is expected to need on this machine, played by one thread."""

    seconds: float
    bytes: float


def expected(cells: Sequence[Cell]) -> dict[str, Expected]:
    """By cell id.  Cells that differ in their seed alone are tried once."""
    from aggbandit.experiments.planner import forecast

    kinds: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        key = cell.instance, cell.adversary, cell.learner, cell.episodes, cell.replicas, cell.parameters["delays"]
        kinds.setdefault(key, []).append(cell)
    trial = min(LONGEST_TRIAL, max(SHORTEST_TRIAL, TRIALS_SECONDS / max(1, len(kinds))))
    out = {}
    for same in kinds.values():
        mdp, _, learner = same[0].made()
        successors = mdp.next_states.shape[-1] if mdp.is_sparse else None
        try:
            found = forecast(
                learner, H=mdp.H, S=mdp.S, A=mdp.A, episodes=same[0].episodes, replicas=same[0].replicas,
                stationary=mdp.is_stationary, successors=successors, keep_policy=False, trial_seconds=trial,
            )  # fmt: skip
            one = Expected(found.seconds, found.peak_bytes)
        except AggbanditError:  # a learner that plays this instance only, not a random one of its size
            one = Expected(float("nan"), float("nan"))
        out.update({cell.id: one for cell in same})
    return out
