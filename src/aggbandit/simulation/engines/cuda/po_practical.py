"""`po-practical` on a GPU, with known dynamics or with counts of what was seen."""

from __future__ import annotations

from typing import Any, ClassVar

from aggbandit.learners.base import UNKNOWN, Learner, Problem
from aggbandit.learners.po_practical import PolicyOptimizationPractical
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.cuda.device import Device
from aggbandit.simulation.engines.cuda.practical import CudaPracticalEngine


class CudaPoPracticalEngine(CudaPracticalEngine):
    """Every episode sweeps all (h, s, a) backwards, a lane to a state."""

    plays: ClassVar[type[Learner[Any]]] = PolicyOptimizationPractical
    learner: PolicyOptimizationPractical
    file: ClassVar[str] = "po_practical"
    marks: ClassVar[int] = 2  # Σ π x², and the largest |residual|
    kept: ClassVar[int] = 2

    @property
    def _sweeps(self) -> bool:
        return not self._counts_next

    @property
    def _counts_next(self) -> bool:
        return self.learner.dynamics == UNKNOWN

    @property
    def _numbers(self) -> tuple[float, float, float]:
        return self.learner.numbers


def choose(
    mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int, device: Device
) -> type[CudaPoPracticalEngine]:
    """One layout for all sizes."""
    return CudaPoPracticalEngine
