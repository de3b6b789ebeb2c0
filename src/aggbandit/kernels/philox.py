"""Philox4x32-10: counter-based random numbers, a pure function of (seed, replica, episode, step, stream).

Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".  Written by hand because NumPy's Philox is
the 4x64 variant behind a Generator (microseconds a call), and because kernels and a GPU must see the same draws.

Counter words are (replica, episode, step, stream); the key is the 64-bit seed, low word first.
Stream 0 is the environment's: words 0-1 choose the action, words 2-3 the next state.  The initial state is the
"next state" of the step before the first, `BEFORE_FIRST_STEP`.  Further streams belong to the learner.
"""

import numpy as np
from numba import njit, uint32, uint64

BEFORE_FIRST_STEP = 0xFFFFFFFF

_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = np.uint32(0x9E3779B9)
_W1 = np.uint32(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2^-53


@njit(cache=True, inline="always")
def philox(c0, c1, c2, c3, seed):
    """The four 32-bit words of one block, as uint32."""
    x0, x1, x2, x3 = uint32(c0), uint32(c1), uint32(c2), uint32(c3)
    k0 = uint32(uint64(seed) & _LOW)
    k1 = uint32(uint64(seed) >> uint64(32))
    for _ in range(10):
        p0 = _M0 * uint64(x0)
        p1 = _M1 * uint64(x2)
        x0, x1, x2, x3 = (
            uint32(uint32(p1 >> uint64(32)) ^ x1 ^ k0),
            uint32(p1 & _LOW),
            uint32(uint32(p0 >> uint64(32)) ^ x3 ^ k1),
            uint32(p0 & _LOW),
        )
        k0 = uint32(k0 + _W0)
        k1 = uint32(k1 + _W1)
    return x0, x1, x2, x3


@njit(cache=True, inline="always")
def unit(high, low):
    """A double in [0, 1) from the upper 53 of 64 random bits."""
    return float((uint64(high) << uint64(21)) | (uint64(low) >> uint64(11))) * _TO_UNIT


@njit(cache=True)
def uniforms(replica, episode, step, stream, seed):
    """The two doubles in [0, 1) of one block: (action, next state) in stream 0."""
    x0, x1, x2, x3 = philox(replica, episode, step, stream, seed)
    return unit(x0, x1), unit(x2, x3)


@njit(cache=True)
def fill(replica, episode, first_step, stream, seed, out_n):
    """Consecutive doubles of a stream, two a block, from block `first_step` on."""
    n = out_n.shape[0]
    for i in range((n + 1) // 2):
        u, v = uniforms(replica, episode, first_step + i, stream, seed)
        out_n[2 * i] = u
        if 2 * i + 1 < n:
            out_n[2 * i + 1] = v


@njit(cache=True)
def words(c0, c1, c2, c3, seed):
    """One block as four uint32, callable from Python: for the known-answer test."""
    return philox(c0, c1, c2, c3, seed)
