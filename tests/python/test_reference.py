"""What the NumPy reference alone says: dropout's contract and the language's corners."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onepass import reference
from onepass._evaluate import Expression
from onepass._philox import philox
from problems import inputs


@pytest.mark.parametrize(
    "word, expected",
    [
        (0x00000000, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (0xFFFFFFFF, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ],
)
def test_philox_known_answers(word, expected):
    """Of the generator's authors (Random123)."""
    assert tuple(int(x) for x in philox([np.uint64(word)] * 4, (word, word))) == expected


def test_dropout_mask_word_by_word():
    """The contract, one pair at a time."""
    seed, offset, p, row0, col0 = 2**63 + 12345, 2**64 - 3, 0.3, 32, 48
    mask = reference.dropout_mask((2, 3, 19, 21), p, seed, offset, row0, col0)
    for b, h, row, col in ((0, 0, 0, 0), (1, 2, 18, 20), (1, 0, 7, 8), (0, 2, 8, 7), (1, 1, 9, 15)):
        r, c = row + row0, col + col0
        stream = (h + 2**32 * b + offset) % 2**64
        counter = [np.uint64(x) for x in (r & ~8, c & ~8, stream % 2**32, stream >> 32)]
        word = philox(counter, (seed % 2**32, seed >> 32))[2 * (r >> 3 & 1) + (c >> 3 & 1)]
        assert mask[b, h, row, col] == (int(word) >= p * 2**32)


def test_chunks_see_the_mask_of_the_whole():
    whole = reference.dropout_mask((1, 2, 48, 64), 0.5, 3)
    part = reference.dropout_mask((1, 2, 16, 32), 0.5, 3, row0=32, col0=16)
    assert_array_equal(part, whole[:, :, 32:, 16:48])


def test_dropout_drops_weights_and_leaves_lse():
    q, k, _ = inputs(2, 64, 64, 2, 2, 64)
    v = np.broadcast_to(np.eye(64)[None, :, None, :], (2, 64, 2, 64))
    o, lse = reference.attention(q, k, v, dropout=0.48, seed=11, return_lse=True)
    plain, lse_plain = reference.attention(q, k, v, return_lse=True)
    assert_array_equal(lse, lse_plain)
    kept = o != 0
    assert_allclose(o[kept], plain[kept] / 0.52, rtol=1e-12)
    assert_array_equal(kept.transpose(0, 2, 1, 3), reference.dropout_mask((2, 2, 64, 64), 0.48, 11))
    assert 0.504 < kept.mean() < 0.536  # 4 sigma of 16384 draws
    again = reference.attention(q, k, v, dropout=0.48, seed=12)
    patterns = [kept[b, :, h].tobytes() for b in range(2) for h in range(2)]
    assert len({*patterns, (again[0, :, 0] != 0).tobytes()}) == 5


def value(text, kind="score", args=None, **names):
    zeros = dict.fromkeys(("q", "k", "row", "col", "b", "h", "h_kv", "s_q", "s_kv"), 0)
    zeros |= {"token_q": 0, "token_k": 0} | ({"s": 0.0} if kind == "score" else {})
    return Expression(text, kind, args)(zeros | names)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("-3 // 8", -1),
        ("(-3) % 8", 5),
        ("3 % -8", -5),
        ("7 // k", 0),  # a divisor that is 0 at run time
        ("7 % k", 0),
        ("9223372036854775807 + 1 + row", -(2.0**63)),  # wraps
        ("1 / 2", 0.5),
        ("-7.5 // 2", -4),
        ("-7.5 % 2", 0.5),
        ("2 + 3 * 4 - 1", 13),
        ("2 - 3 - 4", -5),
        ("true ? 1 : false ? 2 : 3", 1),
        ("true | false & false ? 1 : 2", 1),
        ("1 < 2 < 3 & !(1 < 3 < 2) ? 1 : 2", 1),
        ("min(2, 1.5) + max(2, 3)", 4.5),
        ("abs(-4) + floor(-0.5) + sqrt(4)", 5),
        ("exp(0) + log(1) + tanh(0)", 1),
        ("where(k == 0, inf, 1)", np.inf),
        ("1e-3 * 1E+3", 1),
    ],
)
def test_values(text, expected):
    assert value(text) == expected


def test_masks_compute_in_float32():
    assert value("0.1 + 0.2 == t", "mask", {"t": np.float64(np.float32(0.1) + np.float32(0.2))})
    assert value("k * 1.0 == 16777216.0", "mask", k=16777217)
    assert value("k == 16777217.0", "mask", k=16777216)
    assert not value("k == 16777217", "mask", k=16777216)


def test_array_reads():
    args = {"m": np.array([[1.0, 2.0, 3.0]]), "flags": np.array([True, False])}
    assert value("m[7, 1]", args=args) == 2.0  # a dim of size 1 takes any index
    for outside in (-1, 3):
        assert value(f"m[0, {outside}]", args=args) == 0.0
    assert value("flags[0]", "mask", args) and not value("flags[9]", "mask", args)


@pytest.mark.parametrize("op", ("min", "max"))
def test_nan_is_not_lost(op):
    nan = {"n": float("nan")}
    assert np.isnan(value(f"{op}(1, n)", args=nan)) and np.isnan(value(f"{op}(n, 1)", args=nan))
    assert not value("n < 1 | n >= 1 | n == n", "mask", nan)
    assert value("n != n", "mask", nan)
