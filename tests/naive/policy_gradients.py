"""Gradients of softmax policies by differences, and what totals say on average by enumeration."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from naive import planning

Floats = npt.NDArray[np.float64]


def softmax(theta: Floats) -> Floats:
    """exp θ over its sum."""
    weights = np.exp(theta)
    return weights / weights.sum(axis=-1, keepdims=True)


def gradient(function: Callable[[Floats], float], at: Floats, width: float = 1e-6) -> Floats:
    """Central differences."""
    out = np.empty(at.shape)
    for index in np.ndindex(*at.shape):
        step = np.zeros(at.shape)
        step[index] = width
        out[index] = (function(at + step) - function(at - step)) / (2 * width)
    return out


def value_gradient(transition: Floats, theta: Floats, loss: Floats, initial: Floats) -> Floats:
    """∇_θ E[L] under softmax(θ)."""
    return gradient(lambda t: planning.value(transition, softmax(t), loss, initial), theta)


def clipped_surrogate(
    theta: Floats, old: Floats, states: Floats, actions: Floats, advantage: Floats, clip: float
) -> float:
    """(1/n) Σ min(ρ Â, clip(ρ) Â), one step of one episode after the other."""
    policy, value = softmax(theta), 0.0
    for trail, taken, gain in zip(states, actions, advantage, strict=True):
        for h, (s, a) in enumerate(zip(trail, taken, strict=True)):
            ratio = policy[h, s, a] / old[h, s, a]
            value += min(ratio * gain, float(np.clip(ratio, 1 - clip, 1 + clip)) * gain)
    return value / len(states)
