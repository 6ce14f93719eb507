"""out=, out_dtype=, merge, plan and explain."""

import numpy as np
import onepass
import pytest
from ml_dtypes import bfloat16
from numpy.testing import assert_allclose, assert_array_equal
from problems import DTYPES, check, inputs


def guarded(shape, dtype):
    """An array of NaN inside a buffer of 7s."""
    buffer = np.full((shape[0], shape[1] + 2, shape[2] + 2, shape[3] + 2), 7, dtype)
    inside = buffer[:, 1:-1, 1:-1, 1:-1]
    inside[...] = np.nan
    return buffer, inside


@pytest.mark.parametrize("dtype", DTYPES)
def test_out_is_written_in_place(dtype):
    q, k, v = inputs(2, 17, 45, 4, 2, 32, 24, dtype)
    buffer, out = guarded((2, 17, 4, 24), dtype)
    result, lse = onepass.attention(q, k, v, mask="window(3, 2)", out=out, return_lse=True)
    assert result is out
    check(out, lse, q, k, v, mask="window(3, 2)")
    out[...] = 7
    assert (buffer.astype(np.float32) == 7).all()


@pytest.mark.parametrize("dtype", (np.float16, bfloat16))
@pytest.mark.parametrize("wanted", ("float32", np.float32, np.dtype("float32")))
def test_out_dtype(dtype, wanted):
    q, k, v = inputs(1, 9, 30, 2, 2, 16, dtype=dtype)
    o = onepass.attention(q, k, v, out_dtype=wanted)
    assert o.dtype == np.float32
    assert_allclose(o, onepass.attention(q, k, v).astype(np.float32), rtol=1e-2, atol=1e-2)
    out = np.empty_like(o)
    assert_array_equal(onepass.attention(q, k, v, out=out), o)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("cut", (0, 1, 20, 44, 45))
def test_merge_of_two_parts_is_the_whole(dtype, cut):
    q, k, v = inputs(2, 17, 45, 4, 2, 32, dtype=dtype)
    part = "float64" if dtype == np.float64 else "float32"
    options = {"mask": "causal", "return_lse": True, "out_dtype": part, "q_start": 28}
    o, lse = onepass.attention(q, k[:, :cut], v[:, :cut], **options)
    others = onepass.attention(q, k[:, cut:], v[:, cut:], k_start=cut, **options)
    assert onepass.merge(o, lse, *others) is None
    whole, whole_lse = onepass.attention(q, k, v, **options)
    tolerance = {"rtol": 1e-12, "atol": 1e-12} if part == "float64" else {"rtol": 0, "atol": 3e-6}
    tolerance = tolerance if dtype in (np.float64, np.float32) else {"rtol": 0, "atol": 1e-2}
    assert_allclose(o, whole, **tolerance)
    assert_allclose(lse, whole_lse, rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_merge_with_nothing_is_neutral(dtype):
    o = np.arange(24.0).reshape(1, 3, 2, 4).astype(dtype)
    lse = np.array([[[1.5, -np.inf, 0.0], [-3.0, 700.0, -700.0]]], np.float32)
    o[0, 1, 0] = 0
    nothing, never = np.zeros_like(o), np.full_like(lse, -np.inf)
    for first in (True, False):
        a, a_lse = (x.copy() for x in ((o, lse) if first else (nothing, never)))
        onepass.merge(a, a_lse, *((nothing, never) if first else (o, lse)))
        assert_array_equal(a, o)
        assert_array_equal(a_lse, lse)


def test_merge_is_the_weighted_mean():
    rng = np.random.default_rng(3)
    o, other = rng.normal(size=(2, 2, 5, 3, 4))
    lse, lse_other = rng.normal(size=(2, 2, 3, 5))
    total = np.logaddexp(lse, lse_other)
    weights = [np.exp(x - total).transpose(0, 2, 1)[..., None] for x in (lse, lse_other)]
    expected = weights[0] * o + weights[1] * other
    onepass.merge(o, lse, other, lse_other)
    assert_allclose(o, expected, rtol=1e-12)
    assert_allclose(lse, total, rtol=1e-12)


def test_plan_and_explain():
    q, k, v = inputs(2, 40, 70, 4, 2, 32, dtype=np.float32)
    plan = onepass.plan(q, k, v, mask="causal", threads=2)
    assert plan.kernel.startswith("cpu.")
    assert 1 <= plan.threads <= 2 and plan.workspace_bytes >= 0 and plan.splits >= 1
    assert all(size > 0 for size in plan.tile) and plan.reason
    assert all(kernel and reason for kernel, reason in plan.refused)
    for word in ("b=2", "h=4/2", "s=40/70", "d=32", "mask=causal"):
        assert word in plan.problem_line
    text = onepass.explain(q, k, v, mask="causal", threads=2)
    assert text == str(plan)
    for word in (plan.kernel, plan.problem_line, str(plan.workspace_bytes)):
        assert word in text
    for kernel, reason in plan.refused:
        assert kernel in text and reason in text
