"""Which learners have a fused engine, on the CPU and on a GPU, and how replicas are grouped for it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aggbandit.errors import InvalidInputError
from aggbandit.learners.base import Learner, Problem
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine
from aggbandit.simulation.engines.plain import PlainEngine

if TYPE_CHECKING:
    from aggbandit.simulation.engines.cuda.base import CudaEngine
    from aggbandit.simulation.engines.cuda.device import Device

# By the learner's own class, not a subclass: who overrides a method gets the plain engine, which calls it.
FUSED = {
    "aggbandit.learners.fixed_policy:FixedPolicy": "aggbandit.simulation.engines.constant",
    "aggbandit.learners.po_known:PolicyOptimizationKnown": "aggbandit.simulation.engines.po_known",
    "aggbandit.learners.po_model_free:PolicyOptimizationModelFree": "aggbandit.simulation.engines.po_model_free",
    "aggbandit.learners.po_practical:PolicyOptimizationPractical": "aggbandit.simulation.engines.po_practical",
    "aggbandit.learners.po_unknown:PolicyOptimizationUnknown": "aggbandit.simulation.engines.po_unknown",
    "aggbandit.learners.uniform:Uniform": "aggbandit.simulation.engines.constant",
}


def choose(
    mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int, fused: bool = True
) -> tuple[type[Engine], int]:
    """The engine class for `learner`, and how many replicas one engine plays."""
    cls = type(learner)
    module = FUSED.get(f"{cls.__module__}:{cls.__qualname__}")
    if module is None or not fused:
        return PlainEngine, 1
    found: tuple[type[Engine], int] = import_module(module).choose(mdp, problem, learner, replicas)
    return found


ON_GPU = {
    "aggbandit.learners.po_known:PolicyOptimizationKnown": "aggbandit.simulation.engines.cuda.po_known",
    "aggbandit.learners.po_model_free:PolicyOptimizationModelFree": "aggbandit.simulation.engines.cuda.po_model_free",
    "aggbandit.learners.po_practical:PolicyOptimizationPractical": "aggbandit.simulation.engines.cuda.po_practical",
    "aggbandit.learners.po_unknown:PolicyOptimizationUnknown": "aggbandit.simulation.engines.cuda.po_unknown",
}
CONSTANT = "aggbandit.simulation.engines.constant"  # learners that never learn: a GPU has nothing to do for them


def require_on_gpu(learner: Learner[Any], delays: bool = False) -> None:
    """Refuse what has no kernel on a GPU."""
    if delays:
        raise InvalidInputError("late feedback is played on the CPU only; leave device out, or delays.")
    cls = type(learner)
    name = f"{cls.__module__}:{cls.__qualname__}"
    if name not in ON_GPU and FUSED.get(name) != CONSTANT:
        played = (*ON_GPU, *(one for one, module in FUSED.items() if module == CONSTANT))
        ids = sorted(getattr(import_module(one.partition(":")[0]), one.partition(":")[2]).id for one in played)
        raise InvalidInputError(
            f"{learner.name} has no kernel for a GPU: device='cuda' plays {', '.join(ids)}. Leave device out to play "
            "it on the CPU."
        )


def choose_on_gpu(
    mdp: TabularMDP, problem: Problem, learner: Learner[Any], replicas: int, device: Device
) -> type[CudaEngine] | None:
    """The engine class for so many replicas on this GPU; None for a learner that the CPU's engine plays at once."""
    cls = type(learner)
    module = ON_GPU.get(f"{cls.__module__}:{cls.__qualname__}")
    if module is None:
        return None
    found: type[CudaEngine] = import_module(module).choose(mdp, problem, learner, replicas, device)
    return found
