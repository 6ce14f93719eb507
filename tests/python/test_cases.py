"""Closed forms of faults that users of other attention kernels met, forward."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import generate, inputs, ramp

CLOSE = {"rtol": 1e-8, "atol": 1e-12}


def zeros(b, s, h, d):
    return np.zeros((b, s, h, d))


def test_rows_with_every_key_masked(attend):
    q, k, v = inputs(1, 6, 10, 2, 2, 8)
    o, lse = attend(q, k, v, scale=0.125, mask="row < 5 & col <= row")
    assert_array_equal(o[0, 5], 0.0)
    assert_array_equal(lse[0, :, 5], -np.inf)
    assert_allclose(o[0, 4, 1, 0], 0.473008912, rtol=1e-8)
    assert_allclose(lse[0, 1, 4], 2.14786498, rtol=1e-8)
    assert_allclose(np.abs(o).sum(), 24.8567087, rtol=1e-8)


@pytest.mark.parametrize("hidden", ("bool", "-inf", "lowest"))
def test_first_key_tile_invisible(attend, hidden):
    far = np.arange(441) >= 128
    if hidden == "bool":
        options = {"mask": "dense(m)", "args": {"m": far[None, None, None, :]}}
    else:
        low = -np.inf if hidden == "-inf" else -3.4028235e38
        options = {"score": "bias(s, m)", "args": {"m": np.where(far, 0, low)[None, None, None]}}
    o, lse = attend(zeros(1, 441, 1, 64), zeros(1, 441, 1, 64), ramp(1, 441, 1, 64), **options)
    assert_allclose(o, 284.0, **CLOSE)
    assert_allclose(lse, np.log(313), **CLOSE)


@pytest.mark.parametrize(
    "s_q, s_kv, align, expected",
    [
        (8, 5, "bottom_right", [0, 0, 0, 1, 1.5, 2, 2.5, 3]),
        (5, 6, "bottom_right", [1.5, 2, 2.5, 3, 3.5]),
        (8, 5, "top_left", [1, 1.5, 2, 2.5, 3, 3, 3, 3]),
        (5, 6, "top_left", [1, 1.5, 2, 2.5, 3]),
    ],
)
def test_causal_with_unequal_lengths(attend, s_q, s_kv, align, expected):
    v = ramp(1, s_kv, 1, 4) + 1
    o, lse = attend(zeros(1, s_q, 1, 4), zeros(1, s_kv, 1, 4), v, mask="causal", align=align)
    assert_allclose(o[0, :, 0, 0], expected, **CLOSE)
    assert_array_equal(lse[0, 0] == -np.inf, np.array(expected) == 0)


def test_causal_with_many_empty_rows(attend):
    o, lse = attend(zeros(1, 2048, 1, 8), zeros(1, 1024, 1, 8), ramp(1, 1024, 1, 8) + 1,
                    mask="causal")
    assert_array_equal(o[0, :1024], 0.0)
    assert_allclose(o[0, 1024:, 0, 0], (np.arange(1024) + 2) / 2, **CLOSE)
    assert_array_equal(lse[0, 0, :1024], -np.inf)


@pytest.mark.parametrize("tail", (np.nan, np.inf, -np.inf))
@pytest.mark.parametrize("s_q", (1, 3))
def test_unused_tail_of_a_cache(attend, tail, s_q):
    lengths = np.array([1, 3])
    used = np.arange(3) < lengths[:, None]
    k = np.where(used, 0.5, tail)[:, :, None, None] * np.ones(64)
    v = np.where(used, np.array([[2.0], [5.0]]), tail)[:, :, None, None] * np.ones(64)
    q = np.full((2, s_q, 1, 64), 0.5)
    o, lse = attend(q, k, v, mask="lengths(n)", args={"n": lengths})
    clean = [np.where(np.isfinite(x), x, 0.0) for x in (k, v)]
    o_clean, lse_clean = attend(q, *clean, mask="lengths(n)", args={"n": lengths})
    assert_allclose(o, np.broadcast_to(np.array([2.0, 5.0])[:, None, None, None], o.shape), **CLOSE)
    assert_array_equal(o, o_clean)
    assert_array_equal(lse, lse_clean)


def test_hidden_and_visible_nan(attend):
    x = np.arange(8.0).reshape(1, 2, 1, 4)
    broken = x.copy()
    broken[0, 1] = np.nan
    for k, v in ((x, x), (broken, broken)):
        o, _ = attend(x, k, v, mask="k == 0")
        assert_array_equal(o[0, :, 0], [[0, 1, 2, 3]] * 2)
    q, k, v = inputs(1, 8, 8, 1, 1, 16)
    before, _ = attend(q, k, v, mask="causal")
    k[0, 5, 0, 3] = np.nan
    after, _ = attend(q, k, v, mask="causal")
    assert_array_equal(after[0, :5], before[0, :5])
    assert np.isnan(after[0, 5:]).all()


def test_visible_nan_in_v_reaches_its_channel(attend):
    q, k, v = inputs(1, 8, 8, 1, 1, 16)
    before, lse_before = attend(q, k, v, mask="causal")
    v[0, 5, 0, 3] = np.nan
    after, lse = attend(q, k, v, mask="causal")
    assert np.isnan(after[0, 5:, 0, 3]).all()
    after[0, 5:, 0, 3] = before[0, 5:, 0, 3]
    assert_allclose(after, before, **CLOSE)
    assert_array_equal(lse, lse_before)


@pytest.mark.parametrize("sign", (1, -1))
def test_very_negative_logits(attend, sign):
    q, k = zeros(1, 1, 1, 64), zeros(1, 3, 1, 64)
    q[..., 0], k[..., 0] = 512.0, -512.0 * sign
    v = np.array([1.0, 2.0, 6.0])[None, :, None, None] * np.ones(64)
    o, lse = attend(q, k, v, scale=1 / 8)
    assert_allclose(o, 3.0, **CLOSE)
    assert_allclose(lse, -32768.0 * sign + np.log(3), rtol=1e-12)


@pytest.mark.parametrize("s_kv", (1, 2, 15, 16, 17, 63, 64, 65, 66, 127, 128, 129, 255, 256, 257))
def test_softcap_with_a_partly_filled_tile(attend, s_kv):
    v = np.ones((1, s_kv, 1, 16))
    o, lse = attend(zeros(1, 1, 1, 16), zeros(1, s_kv, 1, 16), v, score="softcap(s, 1)")
    assert_allclose(o, 1.0, **CLOSE)
    assert_allclose(lse, np.log(s_kv), **CLOSE)


@pytest.mark.parametrize(
    "mask, rows",
    [
        ("window(7, 0)", {3: 1.5, 10: 6.5, 20: 16.5, 63: 59.5}),
        ("causal & window(7, -1)", {3: 1.5, 10: 6.5, 20: 16.5, 63: 59.5}),
        ("window(2, 3)", {0: 1.5, 10: 10.5, 63: 62}),
        ("window(0, 0)", {row: row for row in range(64)}),
        ("window(-1, 2)", {0: 1, 10: 6}),
        ("window(5, -1)", {0: 31.5, 10: 34, 63: 60.5}),
        ("window(-1, 0)", {row: row / 2 for row in range(64)}),
        ("window(64, 0)", {row: row / 2 for row in range(64)}),
        ("window(63, 0)", {row: row / 2 for row in range(64)}),
        ("causal", {row: row / 2 for row in range(64)}),
    ],
)
def test_windows(attend, mask, rows):
    o, lse = attend(zeros(1, 64, 1, 8), zeros(1, 64, 1, 8), ramp(1, 64, 1, 8), mask=mask)
    for row, expected in rows.items():
        assert_allclose(o[0, row, 0], expected, **CLOSE)
    if mask == "window(7, 0)":
        assert_allclose(lse[0, 0, 20], np.log(8), **CLOSE)


def test_alibi_decode_equals_last_row(attend):
    slopes = np.array([1 / 4, 1 / 16, 1 / 64, 1 / 256])
    k, v = zeros(1, 64, 4, 8), ramp(1, 64, 4, 8)
    k[:, 37:], v[:, 37:] = np.nan, np.nan
    o, lse = attend(zeros(1, 1, 4, 8), k, v, mask="lengths(n)", score="alibi(s, m)", q_start=36,
                    args={"n": np.array([37]), "m": slopes})
    expected = [32.4827448, 24.5608859, 19.7713987, 18.4451574]
    expected_lse = [1.50859543, 2.69941106, 3.34354535, 3.54147501]
    assert_allclose(o[0, 0, :, 0], expected, rtol=1e-8)
    assert_allclose(lse[0, :, 0], expected_lse, rtol=1e-8)
    long, lse_long = attend(zeros(1, 37, 4, 8), k[:, :37], v[:, :37], score="alibi(s, m)",
                            args={"m": slopes})
    assert_allclose(long[0, -1], o[0, 0], rtol=1e-12)
    assert_allclose(lse_long[0, :, -1], lse[0, :, 0], rtol=1e-12)


@pytest.mark.parametrize("h_kv", (1, 2, 8))
@pytest.mark.parametrize("s_q", (1, 2, 3, 4, 5))
def test_grouped_heads(attend, h_kv, s_q):
    q, k, _ = inputs(3, s_q, 100, 8, h_kv, 128)
    v = 10.0 * np.arange(3)[:, None, None, None] + np.arange(h_kv)[None, None, :, None]
    o, _ = attend(q, k, np.broadcast_to(v, k.shape))
    head = np.arange(8) // (8 // h_kv)
    expected = 10.0 * np.arange(3)[:, None, None, None] + head[None, None, :, None]
    assert_allclose(o, np.broadcast_to(expected, o.shape), rtol=1e-12)


def test_odd_head_dim_probes(attend):
    o, lse = attend(*inputs(1, 96, 96, 2, 2, 63))
    assert_allclose(o[0, 0, 0, 0], -0.0179212541, rtol=1e-8)
    assert_allclose(o[0, -1, -1, -1], -0.0826849926, rtol=1e-8)
    assert_allclose(lse[0, 0, 0], 5.40088969, rtol=1e-8)
    assert_allclose(np.abs(o).sum(), 1215.82385, rtol=1e-8)
    o, _ = attend(*inputs(1, 96, 96, 2, 2, 63), mask="causal")
    assert_allclose(np.abs(o).sum(), 1925.54796, rtol=1e-8)


@pytest.mark.parametrize("d", (1, 3, 8, 40, 72, 80, 100, 160, 192, 200, 256))
def test_head_dim_padded_with_zeros(attend, d):
    q, k, v = inputs(1, 9, 11, 2, 2, d)
    scale = 1 / np.sqrt(d)
    o, lse = attend(q, k, v)
    padded = [np.pad(x, ((0, 0),) * 3 + ((0, -d % 64),)) for x in (q, k, v)]
    o_padded, lse_padded = attend(*padded, scale=scale)
    assert_allclose(o_padded[..., :d], o, **CLOSE)
    assert_allclose(lse_padded, lse, **CLOSE)


@pytest.mark.parametrize("s", (1, 2, 3, 5, 31, 63, 64, 65, 127, 129, 191, 192, 193, 300, 513))
def test_length_not_a_multiple_of_the_tile(attend, s):
    q = zeros(1, s, 1, 4)
    o, lse = attend(q, q, ramp(1, s, 1, 4))
    assert_allclose(o, (s - 1) / 2, **CLOSE)
    assert_allclose(lse, np.log(s), **CLOSE)
    o, _ = attend(q, q, ramp(1, s, 1, 4), mask="causal")
    assert_allclose(o[0, :, 0, 0], np.arange(s) / 2, **CLOSE)
    o, _ = attend(q, q, np.ones((1, s, 1, 4)), mask="causal")
    assert_allclose(o, 1.0, rtol=1e-12)


@pytest.mark.parametrize("b, s_q, s_kv, h, d", [(0, 5, 4, 3, 8), (2, 0, 4, 3, 8), (2, 5, 4, 0, 8),
                                                (2, 5, 0, 3, 8), (0, 0, 0, 0, 0)])
def test_empty_sizes(attend, b, s_q, s_kv, h, d):
    o, lse = attend(zeros(b, s_q, h, d), zeros(b, s_kv, h, d), zeros(b, s_kv, h, d), mask="causal")
    assert o.shape == (b, s_q, h, d) and lse.shape == (b, h, s_q)
    assert_array_equal(o, 0.0)
    assert_array_equal(lse, -np.inf)


def test_head_dims_of_zero(attend):
    o, lse = attend(zeros(1, 2, 1, 0), zeros(1, 5, 1, 0), ramp(1, 5, 1, 3))
    assert_allclose(o, 2.0, **CLOSE)
    assert_allclose(lse, np.log(5), **CLOSE)
    o, lse = attend(zeros(1, 2, 1, 3), zeros(1, 5, 1, 3), zeros(1, 5, 1, 0))
    assert o.shape == (1, 2, 1, 0)
    assert_allclose(lse, np.log(5), **CLOSE)


def test_split_probe(attend):
    o, lse = attend(*inputs(1, 1, 257, 1, 1, 32))
    assert_allclose(o[0, 0, 0, [0, 31]], [-0.0360561663, -0.00698717065], rtol=1e-8)
    assert_allclose(lse, 6.17545486, rtol=1e-8)
    assert_allclose(np.abs(o).sum(), 1.66390265, rtol=1e-8)


def test_square_probes(attend):
    o, lse = attend(*inputs(1, 128, 128, 2, 2, 64))
    assert_allclose(np.abs(o).sum(), 1415.6109, rtol=1e-8)
    assert_allclose(o[0, 0, 0, 0], -0.151986823, rtol=1e-8)
    assert_allclose(lse[0, 0, 0], 5.89303695, rtol=1e-8)
    o, _ = attend(*inputs(1, 128, 128, 2, 2, 64), mask="causal")
    assert_allclose(np.abs(o).sum(), 2269.85608, rtol=1e-8)


def test_scales(attend):
    q = zeros(1, 1, 1, 4)
    k = generate(2, 1, (1, 300, 1, 4))
    o, lse = attend(q + 1, k, ramp(1, 300, 1, 4), scale=0.0)
    assert_allclose(o, 149.5, **CLOSE)
    assert_allclose(lse, np.log(300), **CLOSE)
    o, _ = attend(zeros(1, 64, 1, 4) + 1, k[:, :64], ramp(1, 64, 1, 4), scale=0.0, mask="causal")
    assert_allclose(o[0, :, 0, 0], np.arange(64) / 2, **CLOSE)
    q, k = np.ones((1, 1, 1, 1)), np.arange(3.0).reshape(1, 3, 1, 1)
    for scale, mean, total in ((-2.0, 11.4906291, 0.142931628), (2.0, 28.5093709, 4.14293163)):
        o, lse = attend(q, k, 10 * (k + 1), scale=scale)
        assert_allclose(o, mean, rtol=1e-8)
        assert_allclose(lse, total, rtol=1e-8)
    q, k, v = inputs(1, 5, 7, 1, 1, 192, 128)
    for a, b in zip(attend(q, k, v), attend(q, k, v, scale=1 / np.sqrt(192))):
        assert_array_equal(a, b)


def test_sink_of_empty_and_full_rows(attend):
    q, v = zeros(1, 3, 2, 4), ramp(1, 3, 2, 4)
    sink = np.array([0.0, np.log(2)])
    o, lse = attend(q, q, v, mask="k < q", sink=sink)
    assert_array_equal(o[0, 0], 0.0)
    assert_allclose(lse[0, :, 0], sink, **CLOSE)
    assert_allclose(o[0, 2, :, 0], [1 / 3, 1 / 4], **CLOSE)
    assert_allclose(lse[0, :, 2], np.log([3, 4]), **CLOSE)
