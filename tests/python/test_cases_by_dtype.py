"""Closed forms whose right values are exact, or nearly, in every dtype: the library."""

import numpy as np
import onepass
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import DTYPES, inputs, ramp

EPSILON = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}


def attend(q, k, v, **options):
    o, lse = onepass.attention(q, k, v, return_lse=True, **options)
    assert o.dtype == v.dtype
    return o.astype(np.float64), lse.astype(np.float64)


@pytest.fixture(params=DTYPES, ids=[np.dtype(dtype).name for dtype in DTYPES])
def dtype(request):
    return np.dtype(request.param)


@pytest.fixture
def close(dtype):
    """assert_allclose to a rounding or two of the dtype."""
    return lambda x, wanted: assert_allclose(x, wanted, rtol=EPSILON[dtype.name], atol=0)


def zeros(dtype, *shape):
    return np.zeros(shape, dtype)


def test_first_key_tile_invisible(dtype, close):
    far = np.arange(441) >= 128
    q, v = zeros(dtype, 1, 441, 1, 64), ramp(1, 441, 1, 64, dtype)
    mean = v[0, 128:, 0, 0].astype(np.float64).mean()
    for low in (-np.inf, -3.4028235e38):
        bias = np.where(far, 0, low).astype(np.float32)[None, None, None]
        o, lse = attend(q, q, v, score="bias(s, m)", args={"m": bias})
        close(o, mean)
        assert_allclose(lse, np.log(313), atol=1e-5)
    o, lse = attend(q, q, v, mask="k >= 128")
    close(o, mean)
    assert_allclose(lse, np.log(313), atol=1e-5)


@pytest.mark.parametrize("tail", (np.nan, np.inf))
def test_unused_tail_of_a_cache(dtype, tail):
    lengths = np.array([1, 3])
    used = (np.arange(3) < lengths[:, None])[:, :, None, None]
    k = np.where(used, 0.5, tail) * np.ones(64)
    v = np.where(used, np.array([2.0, 5.0])[:, None, None, None], tail) * np.ones(64)
    q = np.full((2, 3, 1, 64), 0.5, dtype)
    o, _ = attend(q, k.astype(dtype), v.astype(dtype), mask="lengths(n)", args={"n": lengths})
    assert_array_equal(o[0], 2.0)
    assert_array_equal(o[1], 5.0)


def test_hidden_and_visible_nan(dtype):
    q, k, v = inputs(1, 40, 40, 1, 1, 16, dtype=dtype)
    before, lse_before = attend(q, k, v, mask="causal")
    for broken in (k, v):
        kept = broken[0, 25].copy()
        broken[0, 25] = np.nan
        after, lse = attend(q, k, v, mask="causal")
        broken[0, 25] = kept
        assert_array_equal(after[0, :25], before[0, :25])
        assert_array_equal(lse[0, 0, :25], lse_before[0, 0, :25])
        assert np.isnan(after[0, 25:]).all()


@pytest.mark.parametrize("sign", (1, -1))
def test_very_negative_logits(dtype, close, sign):
    q, k = zeros(dtype, 1, 1, 1, 64), zeros(dtype, 1, 3, 1, 64)
    q[..., 0], k[..., 0] = 512.0, -512.0 * sign
    v = (np.array([1.0, 2.0, 6.0])[None, :, None, None] * np.ones(64)).astype(dtype)
    o, lse = attend(q, k, v, scale=1 / 8)
    close(o, 3.0)
    assert_allclose(lse, -32768.0 * sign + np.log(3), rtol=1.2e-7)


def test_softcap_with_a_partly_filled_tile(dtype):
    for s_kv in (*range(1, 67), 127, 128, 129, 191, 192, 193, 255, 256, 257):
        v = np.ones((1, s_kv, 1, 16), dtype)
        o, lse = attend(zeros(dtype, 1, 1, 1, 16), zeros(dtype, 1, s_kv, 1, 16), v,
                        score="softcap(s, 1)")
        assert_allclose(o, 1.0, rtol=2e-6)
        assert_allclose(lse, np.log(s_kv), atol=1e-5)


def test_grouped_heads_read_their_own_values(dtype, close):
    for s_q in (1, 2, 3, 5):
        q, k, _ = inputs(3, s_q, 100, 8, 2, 128, dtype=dtype)
        v = 10.0 * np.arange(3)[:, None, None, None] + np.arange(2)[None, None, :, None]
        o, _ = attend(q, k, np.broadcast_to(v, k.shape).astype(dtype))
        expected = 10.0 * np.arange(3)[:, None, None] + np.arange(8)[None, None, :] // 4
        close(o, np.broadcast_to(expected[..., None], o.shape))


@pytest.mark.parametrize("mask", ("full", "causal"))
def test_every_length(dtype, mask):
    for s in (*range(1, 70), 95, 96, 97, 127, 128, 129, 191, 192, 193, 255, 256, 257, 300, 513):
        q = zeros(dtype, 1, s, 1, 8)
        o, lse = attend(q, q, np.ones((1, s, 1, 8), dtype), mask=mask)
        assert_allclose(o, 1.0, rtol=2e-6)
        seen = np.full(s, s) if mask == "full" else np.arange(1, s + 1)
        assert_allclose(lse[0, 0], np.log(seen), atol=1e-5)
