"""Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011)."""

import numpy as np

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox(counter, key):
    """Ten rounds. `counter`: 4 arrays of 32-bit words in uint64; `key`: 2 ints. 4 arrays back."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        product0, product1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            (product1 >> _HALF) ^ c1 ^ np.uint64(k0),
            product1 & _LOW,
            (product0 >> _HALF) ^ c3 ^ np.uint64(k1),
            product0 & _LOW,
        )
        k0, k1 = (k0 + _WEYL[0]) % 2**32, (k1 + _WEYL[1]) % 2**32
    return c0, c1, c2, c3


def dropout_mask(shape, p, seed, offset=0, row0=0, col0=0):
    """Which weights dropout keeps.

    A group of four pairs, rows and cols that differ in bit 3, shares one Philox block: key = seed,
    counter words 0 and 1 = row and col with bit 3 cleared, words 2 and 3 = h + 2^32 b + offset. The
    pair takes output word ``2 * bit3(row) + bit3(col)`` and is kept iff that word >= p * 2^32.

    Parameters
    ----------
    shape : (b, h, s_q, s_kv)
    p : float
        Probability to drop, in [0, 1).
    seed, offset : int
        64-bit.
    row0, col0 : int
        Where this chunk lies in a longer problem; multiples of 16.

    Returns
    -------
    bool array of that shape
    """
    b, h, s_q, s_kv = shape
    row = (np.arange(s_q, dtype=np.uint64) + np.uint64(row0))[:, None]
    col = (np.arange(s_kv, dtype=np.uint64) + np.uint64(col0))[None, :]
    bit3 = np.uint64(8)
    word = 2 * ((row & bit3) != 0) + ((col & bit3) != 0)
    keep = np.empty(shape, bool)
    for batch, head in np.ndindex(b, h):
        stream = (head + 2**32 * batch + offset) % 2**64
        halves = [np.full_like(row, part) for part in (stream % 2**32, stream >> 32)]
        counter = [(row & ~bit3 & _LOW), (col & ~bit3 & _LOW), *halves]
        words = philox(np.broadcast_arrays(*counter), (seed % 2**32, (seed >> 32) % 2**32))
        keep[batch, head] = np.choose(word, words) >= p * 2.0**32
    return keep
