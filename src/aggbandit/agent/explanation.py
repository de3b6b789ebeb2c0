"""An agent's beliefs about one state in plain words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from aggbandit._arrays import FloatArray
from aggbandit.agent.beliefs import Record

SETTLED = 0.9  # a policy this sure of one action has settled
LONGEST = 200  # signs of a state's repr
EVEN = 1.3  # a policy whose likeliest action is below this many times 1/A has learned nothing yet


def tell(
    state: Any,
    seen: Sequence[tuple[int, Record, FloatArray]],
    actions: Sequence[Any],
    episodes: int,
    horizon: int,
    bounds: tuple[float, float],
    frozen: bool,
) -> str:
    """A paragraph for each step at which the state was met in a scored episode."""
    shown = shortened(state)
    learned = f"{episodes} scored episode{'' if episodes == 1 else 's'}"
    if not seen:
        return (
            f"{shown} was met in none of the {learned} so far: every action there is as likely as any other."
            if episodes
            else f"Nothing has been learned yet, so in {shown} every action is as likely as any other."
        )
    lines = []
    for step, record, policy_a in seen:
        times = int(record.times_a.sum())
        lines.append(
            f"{shown} at step {step} (of {horizon}), met in {times} of {learned}: {_verdict(policy_a, actions)}"
        )
        width = max(len(str(action)) for action in actions)
        for a in np.argsort(-policy_a, kind="stable"):
            lines.append(f"  {actions[a]!s:<{width}}  {policy_a[a]:7.1%}  {_history(record, int(a))}")
    low, high = bounds
    lines.append(f"A loss lies between {low:g} and {high:g}, less is better; a reward r is told as {low + high:g} - r.")
    if frozen:
        lines.append("The agent is frozen: new scores are kept, but change nothing.")
    return "\n".join(lines)


def shortened(state: Any) -> str:
    """Its repr, or the two ends of it."""
    text = repr(state)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 20]} ... {text[-10:]}"


def _verdict(policy_a: FloatArray, actions: Sequence[Any]) -> str:
    best = int(np.argmax(policy_a))
    if len(actions) == 1:
        return "there is nothing to choose."
    if policy_a[best] >= SETTLED:
        return f"settled on {actions[best]!s}."
    if policy_a[best] <= EVEN / len(actions):
        return "no preference yet."
    return f"leaning to {actions[best]!s}, still trying others."


def _history(record: Record, a: int) -> str:
    times = int(record.times_a[a])
    if times == 0:
        return "never chosen"
    spread = f" ± {record.spread_a[a]:.2g}" if times > 1 else ""
    return (
        f"chosen {times} time{'' if times == 1 else 's'}, episodes then lost {record.mean_a[a]:.4g}{spread} on average"
    )
