"""Which learners have a fused engine, and how replicas are grouped for it."""

from importlib import import_module
from typing import Any

from aggbandit.learners.base import Learner, Problem
from aggbandit.mdp.tabular import TabularMDP
from aggbandit.simulation.engines.base import Engine
from aggbandit.simulation.engines.plain import PlainEngine

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
