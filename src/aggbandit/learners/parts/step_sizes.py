"""The paper's step size η and exploration γ, and the condition under which its analysis holds."""

from math import log, sqrt

from aggbandit._checks import require_number
from aggbandit.errors import InvalidInputError

NAMED_STEPS = ("appendix", "main")


def iota(H: int, S: int, A: int, K: int, confidence: float) -> float:
    """The logarithmic factor ι = ln(H S A K / δ).  [eq:LM25-iota]"""
    return log(H * S * A * K / confidence)


def named_step(name: str, H: int, S: int, A: int, K: int, confidence: float) -> float:
    """η of Theorems 1 and 2, as printed in the main text or in the appendix.  [eq:LM25-eta]

    main       1 / (H √(S A K) + H² √K)
    appendix  √ι / (H √(S A K) + H² √K)
    """
    main = 1.0 / (H * sqrt(S * A * K) + H * H * sqrt(K))
    return main if name == "main" else main * sqrt(iota(H, S, A, K, confidence))


def policy_optimization_step(
    step_size: float | str, H: int, S: int, A: int, K: int, confidence: float, greatest_bonus: float
) -> tuple[float, bool]:
    """η as used, and whether a named step had to be lowered.  [eq:LM25-eta-condition]

    The proof needs η max B <= 1 (Lemma OMD: η (Û - B) >= -1).  Where a named step breaks that, which happens for
    small K, it is lowered to at most 1/(4 H²), or less where `greatest_bonus` exceeds 4 H².  A number given by the
    user is used as it is.
    """
    if not isinstance(step_size, str):
        return float(step_size), False
    step = named_step(step_size, H, S, A, K, confidence)
    if step * greatest_bonus <= 1.0:
        return step, False
    return min(step, 1.0 / max(4.0 * H * H, greatest_bonus)), True


def policy_optimization_exploration(exploration: float | None, step: float, H: int) -> float:
    """γ: as given, or 2 η H of the step actually used.  [eq:LM25-gamma]"""
    return 2.0 * step * H if exploration is None else float(exploration)


def check_step_arguments(step_size: float | str, exploration: float | None, confidence: float) -> None:
    """The arguments that the paper's learners share, checked once when the learner is configured."""
    require_number("confidence", confidence, low=0.0, high=1.0, low_open=True, high_open=True)
    if isinstance(step_size, str):
        if step_size not in NAMED_STEPS:
            raise InvalidInputError(
                f"step_size must be a positive number or one of {', '.join(map(repr, NAMED_STEPS))}, "
                f"but is {step_size!r}."
            )
    else:
        require_number("step_size", step_size, low=0.0, low_open=True)
    if exploration is not None:
        require_number("exploration", exploration, low=0.0, low_open=True)
