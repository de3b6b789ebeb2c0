"""Policies as the softmax of log weights."""

import numpy as np

from aggbandit._arrays import FloatArray


def softmax(log_weights_xa: FloatArray) -> FloatArray:
    """exp(θ(a)) / Σ_a' exp(θ(a')) along the last axis; whatever the weights, no overflow and never 0 / 0."""
    weights_xa = np.exp(log_weights_xa - log_weights_xa.max(axis=-1, keepdims=True))
    law_xa: FloatArray = weights_xa / weights_xa.sum(axis=-1, keepdims=True)
    return law_xa


def exponential_weights(log_weights_hsa: FloatArray, loss_hsa: FloatArray, step_size: float) -> FloatArray:
    """π' ∝ π exp(−η loss): adds to the log weights in place, the greatest of each (h, s) moved to 0; returns π'."""
    log_weights_hsa -= step_size * loss_hsa
    log_weights_hsa -= log_weights_hsa.max(axis=-1, keepdims=True)
    return softmax(log_weights_hsa)
