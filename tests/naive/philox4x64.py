"""Philox4x64-10 in whole numbers, from Salmon et al. 2011, and 0/1 losses drawn from it one entry at a time."""

from fractions import Fraction

M0, M1 = 0xD2E7470EE14C6C93, 0xCA5A826395121157
W0, W1 = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
MASK = 2**64 - 1


def block(counter, key):
    """The four 64-bit words at this counter (a 256-bit number) and key (two words)."""
    x = [(counter >> (64 * i)) & MASK for i in range(4)]
    k0, k1 = key
    for _ in range(10):
        p0, p1 = M0 * x[0], M1 * x[2]
        x = [(p1 >> 64) ^ x[1] ^ k0, p1 & MASK, (p0 >> 64) ^ x[3] ^ k1, p0 & MASK]
        k0, k1 = (k0 + W0) & MASK, (k1 + W1) & MASK
    return x


def bernoulli_loss(seed, stream, episode, entry, entries, mean):
    """The loss of one entry in one episode: 1 where its own 53-bit draw is below the mean."""
    blocks = (entries + 3) // 4
    word = block(episode * blocks + entry // 4 + 1, (seed, stream))[entry % 4]  # counters are raised before use
    return 1.0 if Fraction(word >> 11, 2**53) < Fraction(mean) else 0.0
