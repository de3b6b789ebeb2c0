"""Curves made up for the tests of tables, figures and pages: nothing is played."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from aggbandit.reporting.curves import Curves


def _made_up(
    label: str, power: float = 0.6, scale: float = 5.0, *, replicas: int = 8, K: int = 20_000, **other: Any
) -> Curves:
    random = np.random.default_rng(len(label))
    k = np.unique(np.concatenate([np.geomspace(1, K, 80), np.linspace(1, K, 50)]).round().astype(np.int64))
    spread = np.zeros((replicas, 1)) if label == "uniform" else 0.05 * random.standard_normal((replicas, 1))
    regret = scale * k**power * (1 + spread)
    fields: dict[str, Any] = {
        "label": label,
        "learner": label.partition(":")[0],
        "text": f"{label}(confidence=0.05) [step_size=0.00123]",
        "feedback": "aggregate",
        "dynamics": "unknown",
        "losses": "adversarial",
        "episodes": k,
        "regret": regret,
        "cost": regret + k * 1.5,
        "comparator": k * 1.5,
        "seconds": 2.0,
        "setting": "random · switching losses",
    }
    return Curves(**{**fields, **other})


@pytest.fixture(scope="session")
def made_up() -> Callable[..., Curves]:
    """`made_up(label, power, scale, ...)`: regret scale · k^power, a little different in each replica."""
    return _made_up


@pytest.fixture(scope="session")
def three() -> list[Curves]:
    """The first look's cast."""
    return [
        _made_up("uniform", 1.0, 0.8, seconds=0.02),
        _made_up("po-known", 0.6, 6.0, dynamics="known"),
        _made_up("po-unknown", 0.7, 5.0, seconds=12.0, notes=("the step was lowered",)),
    ]


@pytest.fixture(scope="session")
def many() -> list[Curves]:
    """More than a reader can tell apart: two races of ten learners and more, the last of each the best."""
    known = [_made_up(f"known-{i}", 0.6, 20.0 - i, dynamics="known") for i in range(10)]
    unknown = [_made_up(f"unknown-{i}:step_scale={i}", 0.6, 20.0 - i, tuned=i > 5) for i in range(12)]
    return [_made_up("uniform", 1.0, 0.8), _made_up("po-known", 0.6, 25.0, dynamics="known"), *known, *unknown]
