"""Random numbers from which instances and loss tables are made: the same for a seed in every version of NumPy.

NumPy promises the raw stream of a bit generator for good, but not what `Generator` makes of it, so that a named
instance would otherwise be another world after an upgrade.
"""

import numpy as np

from aggbandit._arrays import FloatArray, IntArray
from aggbandit._checks import require_integer


def uniforms(stream: str, seed: int, shape: tuple[int, ...]) -> FloatArray:
    """Doubles in the open interval (0, 1); `stream` keeps those of an instance and of its losses apart."""
    require_integer("seed", seed, low=0, high=2**64 - 1)
    entropy = [int.from_bytes(stream.encode(), "little"), int(seed)]
    raw = np.random.PCG64(np.random.SeedSequence(entropy)).random_raw(int(np.prod(shape)))
    # 52 bits and a half: neither 0 nor 1 occurs, so that logarithms and inverse distribution functions stay finite
    return ((raw >> np.uint64(12)).astype(np.float64).reshape(shape) + 0.5) * 2.0**-52


def dirichlet(stream: str, seed: int, shape: tuple[int, ...], concentration: float) -> FloatArray:
    """Distributions along the last axis, Dirichlet(c, ..., c): Gamma(c) variables divided by their sum."""
    u = uniforms(stream, seed, shape)
    if concentration == 1.0:
        gamma = -np.log(u)
    else:
        from scipy.special import gammaincinv

        gamma = gammaincinv(concentration, u)
    weights: FloatArray = gamma / gamma.sum(axis=-1, keepdims=True)
    return weights


def subsets(stream: str, seed: int, leading: tuple[int, ...], size: int, of: int) -> IntArray:
    """For every leading index `size` different numbers below `of`, ascending; all subsets are equally likely.

    Floyd's algorithm (Bentley & Floyd 1987): `size` draws a row, whatever `of` is.
    """
    u = uniforms(stream, seed, (*leading, size))
    chosen = np.empty((*leading, size), dtype=np.int64)
    for i, j in enumerate(range(of - size, of)):
        candidate = (u[..., i] * (j + 1)).astype(np.int64)
        taken = (chosen[..., :i] == candidate[..., None]).any(axis=-1)
        chosen[..., i] = np.where(taken, j, candidate)
    return np.sort(chosen, axis=-1)
