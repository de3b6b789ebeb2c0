"""Philox4x32-10 in Python integers, after Salmon et al. 2011, section 4.4.  Imports nothing of aggbandit."""

WORD = 0xFFFFFFFF


def philox4x32(counter, key):
    """Four words from a counter of four and a key of two."""
    x = list(counter)
    k = list(key)
    for _ in range(10):
        high_0, low_0 = divmod(0xD2511F53 * x[0], 1 << 32)
        high_1, low_1 = divmod(0xCD9E8D57 * x[2], 1 << 32)
        x = [high_1 ^ x[1] ^ k[0], low_1, high_0 ^ x[3] ^ k[1], low_0]
        k = [(k[0] + 0x9E3779B9) & WORD, (k[1] + 0xBB67AE85) & WORD]
    return tuple(x)


def double(high, low):
    """The upper 53 of 64 bits over 2^53, exactly."""
    return ((high << 32 | low) >> 11) / 2**53
