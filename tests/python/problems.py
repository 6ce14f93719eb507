"""Inputs, tolerances and random problems that the tests share."""

import numpy as np
from ml_dtypes import bfloat16
from onepass import reference
from onepass._evaluate import Expression

DTYPES = (np.float64, np.float32, np.float16, bfloat16)


def generate(seed, amplitude, shape, dtype=np.float64):
    """A 32-bit LCG's values in [-amplitude, amplitude], exact in every dtype."""
    values, x = np.empty(int(np.prod(shape))), seed
    for i in range(values.size):
        x = (1664525 * x + 1013904223) % 2**32
        values[i] = ((x >> 16) % 257 - 128) * amplitude / 128
    return values.reshape(shape).astype(dtype)


def inputs(b, s_q, s_kv, h_q, h_kv, d, d_v=None, dtype=np.float64):
    """q, k, v with logits of a few units."""
    return (
        generate(1, 4, (b, s_q, h_q, d), dtype),
        generate(2, 1, (b, s_kv, h_kv, d), dtype),
        generate(3, 1, (b, s_kv, h_kv, d_v or d), dtype),
    )


def ramp(b, s_kv, h_kv, d_v, dtype=np.float64):
    """v[j] = j: with q = 0 the output is the mean index of the visible keys."""
    line = np.arange(s_kv, dtype=np.float64)[None, :, None, None]
    return np.ascontiguousarray(np.broadcast_to(line, (b, s_kv, h_kv, d_v))).astype(dtype)


def plain(q, k, v, *, mask="full", score=None, scale=None, args=None, definitions=None, **others):
    """Unfused attention in q's dtype: float32 scores, weights and output rounded to the dtype."""
    dtype = q.dtype
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    (b, s_q, h_q, d), (s_kv, h_kv) = q.shape, k.shape[1:3]
    scale = np.float32(1 / np.sqrt(d) if scale is None else scale)
    positions = (others.get("align", "bottom_right"), others.get("q_start"), others.get("k_start"))
    mask = Expression(mask, "mask", args, definitions)
    score = Expression(score, "score", args, definitions) if score else None
    sink = others.get("sink")
    o = np.zeros((b, s_q, h_q, v.shape[3]), np.float32)
    scopes = reference._scopes(b, h_q, h_q // h_kv, s_q, s_kv, *positions)
    for batch, head, names in scopes:
        kv = names["h_kv"]
        s = scale * (q[batch, :, head] @ k[batch, :, kv].T)
        if score:
            s = np.broadcast_to(score({**names, "s": s.astype(np.float64)}), s.shape)
        s = np.where(mask(names), s, -np.inf).astype(np.float32)
        p, _, _ = reference._softmax(s, -np.inf if sink is None else float(sink[head]))
        o[batch, :, head] = p.astype(dtype).astype(np.float32) @ v[batch, :, kv]
    return o.astype(dtype)


def error(x, expected):
    """Largest absolute difference; NaN and infinities must sit at the same places."""
    x, expected = np.asarray(x).astype(np.float64), np.asarray(expected).astype(np.float64)
    assert x.shape == expected.shape
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.where(finite, 0.0, x), np.where(finite, 0.0, expected))
    return np.abs(x[finite] - expected[finite]).max(initial=0.0)


def check(o, lse, q, k, v, **options):
    """Holds a result to the float64 reference of the (rounded) inputs."""
    expected, expected_lse = reference.attention(q, k, v, return_lse=True, **options)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
    if q.dtype == np.float64:
        allowed, allowed_lse = 1e-12 * largest, 1e-12
    elif q.dtype == np.float32:
        allowed, allowed_lse = 1e-5 * largest, 1e-3
    else:
        allowed = 2 * error(plain(q, k, v, **options), expected) + 1e-5
        allowed_lse = 1e-3
    finite = expected_lse[np.isfinite(expected_lse)]
    assert error(o, expected) <= allowed
    assert error(lse, expected_lse) <= allowed_lse * max(1.0, np.abs(finite).max(initial=0.0) / 64)
