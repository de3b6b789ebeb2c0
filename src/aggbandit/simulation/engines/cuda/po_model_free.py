"""`po-model-free` on a GPU: dense tables instead of the CPU's rows of the (h, s) met."""

from __future__ import annotations

from typing import Any, ClassVar

from aggbandit.learners.base import Learner, Problem
from aggbandit.learners.po_model_free import PolicyOptimizationModelFree
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.cuda.device import Device
from aggbandit.simulation.engines.cuda.practical import CudaPracticalEngine


class CudaPoModelFreeEngine(CudaPracticalEngine):
    """Learning touches the episode's rows alone, a lane to a step; lanes go over states for the exact cost."""

    plays: ClassVar[type[Learner[Any]]] = PolicyOptimizationModelFree
    learner: PolicyOptimizationModelFree
    file: ClassVar[str] = "po_model_free"
    marks: ClassVar[int] = 4  # baseline, Σ π x², the largest |residual|, visits
    kept: ClassVar[int] = 1

    @property
    def _numbers(self) -> tuple[float, float, float]:
        return self.learner.numbers


def choose(
    mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int, device: Device
) -> type[CudaPoModelFreeEngine]:
    """One layout for all sizes."""
    return CudaPoModelFreeEngine
