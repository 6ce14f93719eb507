"""The six mask strings of Modular MAX's `mo.mha.no_cache`, `local_window_size` as the argument.

Expected patterns are drawn from the pictures and sentences of its published documentation (module
nn.attention.mha_mask): rows are queries, columns keys, the last query stands at the last key.
"""

import numpy as np
import onepass
import pytest
from numpy.testing import assert_array_equal

CAUSAL_7 = """
1000000
1100000
1110000
1111000
1111100
1111110
1111111
"""
CHUNKED_4 = """
1111000000
0000111100
0000111100
0000111100
0000111100
0000000011
0000000011
"""
SLIDING_CAUSAL_3 = """
1000000
1100000
1110000
0111000
0011100
0001110
0000111
"""
SLIDING_NONCAUSAL_3 = """
1111111
1111111
1111111
0111111
0011111
0001111
0000111
"""
CHUNKED_CAUSAL_4 = """
1111000000
0000100000
0000110000
0000111000
0000111100
0000000010
0000000011
"""
PICTURES = {
    "null": "1111111\n" * 7,
    "causal": CAUSAL_7,
    "chunked(4)": CHUNKED_4,
    "sliding_window_causal(3)": SLIDING_CAUSAL_3,
    "sliding_window_noncausal(3)": SLIDING_NONCAUSAL_3,
    "chunked_causal(4)": CHUNKED_CAUSAL_4,
}


def seen_by(attention, mask, s_q, s_kv):
    """Which keys get weight, read off an identity in v."""
    q, k = np.zeros((1, s_q, 1, 4)), np.zeros((1, s_kv, 1, 4))
    v = np.eye(s_kv).reshape(1, s_kv, 1, s_kv)
    o = attention(q, k, v, mask=mask)[0, :, 0]
    weights = np.where(o > 0, 1 / np.maximum((o > 0).sum(axis=1, keepdims=True), 1), 0.0)
    np.testing.assert_allclose(o, weights, rtol=1e-12)
    return o > 0


@pytest.mark.parametrize("attention", (onepass.attention, onepass.reference.attention))
@pytest.mark.parametrize("mask", PICTURES)
def test_picture(mask, attention):
    picture = np.array([[c == "1" for c in line] for line in PICTURES[mask].split()])
    assert_array_equal(seen_by(attention, mask, *picture.shape), picture)


# Visible pairs as the documentation words them, of query position q and key position k.
RULES = {
    "null": lambda q, k, n: (q >= q) & (k >= k),
    "causal": lambda q, k, n: q >= k,
    "chunked": lambda q, k, n: q // n == k // n,
    "sliding_window_causal": lambda q, k, n: (k <= q) & (k + n > q),
    "sliding_window_noncausal": lambda q, k, n: k + n > q,
    "chunked_causal": lambda q, k, n: (q >= k) & (q // n == k // n),
}


@pytest.mark.parametrize("attention", (onepass.attention, onepass.reference.attention))
@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("s_q, s_kv", ((70, 70), (1, 130), (67, 131)))
@pytest.mark.parametrize("local_window_size", (1, 7, 64))
def test_rule(name, s_q, s_kv, local_window_size, attention):
    mask = name if name in ("null", "causal") else f"{name}({local_window_size})"
    q, k = np.arange(s_kv - s_q, s_kv)[:, None], np.arange(s_kv)[None, :]
    expected = np.broadcast_to(RULES[name](q, k, local_window_size), (s_q, s_kv))
    assert_array_equal(seen_by(attention, mask, s_q, s_kv), expected)
