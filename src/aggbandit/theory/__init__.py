"""The paper's step sizes, conditions and bounds as functions of (H, S, A, K, δ).

    from aggbandit import theory
    theory.known_regret_bound(H=5, S=5, A=3, K=10**6, confidence=0.05)

`step_size`, `exploration`, `iota` and `greatest_bonus` give the constants; `known_regret_bound` Theorem 1 with the
constants of its proof; `unknown_regret_bound` Theorem 2, one of whose constants the paper leaves open; `lower_bound`
Theorem 3 with the constants of its instance; `TABLE_1` the rows that the paper compares.  `lemma_bounds` are the lemmas
one by one and `lemmas_do_not_apply` their conditions; `confidence_radius` is that of Algorithm 2's sets.
"""

from aggbandit.theory.bounds import (
    LemmaBounds,
    confidence_radius,
    exploration,
    greatest_bonus,
    iota,
    known_regret_bound,
    known_regret_order,
    lemma_bounds,
    lemmas_do_not_apply,
    lower_bound,
    multitask_lower_bound,
    step_size,
    step_size_is_valid,
    sum_of_widths_order,
    uniform_regret_on_the_hard_instance,
    unknown_regret_bound,
    unknown_regret_order,
)
from aggbandit.theory.table_1 import TABLE_1, Row

__all__ = [
    "TABLE_1",
    "LemmaBounds",
    "Row",
    "confidence_radius",
    "exploration",
    "greatest_bonus",
    "iota",
    "known_regret_bound",
    "known_regret_order",
    "lemma_bounds",
    "lemmas_do_not_apply",
    "lower_bound",
    "multitask_lower_bound",
    "step_size",
    "step_size_is_valid",
    "sum_of_widths_order",
    "uniform_regret_on_the_hard_instance",
    "unknown_regret_bound",
    "unknown_regret_order",
]
