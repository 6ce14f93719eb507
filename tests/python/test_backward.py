"""attention_backward, attention_varlen_backward and dropout_mask beside the NumPy reference."""

import numpy as np
import onepass
import pytest
from ml_dtypes import bfloat16
from onepass import reference
from problems import inputs

TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}

CALLS = {
    "full": {},
    "causal": {"mask": "causal"},
    "no key": {"mask": "k < 3 & q > 20"},
    "score": {"mask": "window(9, 2)", "score": "softcap(s, 4)"},
    "sink": {"sink": [0.5, -1.0, 0.0, 3.0], "mask": "causal"},
    "dropout": {"dropout": 0.3, "seed": 11, "offset": 5},
    "slopes": {"score": "alibi(s, m)", "args": {"m": [0.1, 0.2, 0.3, 0.4]}},
    "scale": {"scale": -0.7},
}


def call_of(name, dtype):
    real = np.float64 if dtype == np.float64 else np.float32
    keywords = dict(CALLS[name])
    if "sink" in keywords:
        keywords["sink"] = np.array(keywords["sink"], real)
    if "args" in keywords:
        keywords["args"] = {n: np.array(a, real) for n, a in keywords["args"].items()}
    return keywords


def close(found, expected, dtype):
    expected = np.asarray(expected, np.float64)
    worst = np.abs(np.asarray(found, np.float64) - expected).max(initial=0)
    assert worst <= TOLERANCE[np.dtype(dtype).name] * max(np.abs(expected).max(initial=0), 1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, bfloat16])
@pytest.mark.parametrize("name", CALLS)
def test_gradients(name, dtype):
    q, k, v = inputs(2, 23, 37, 4, 2, 16, dtype=dtype)
    rng = np.random.default_rng(3)
    keywords = call_of(name, dtype)
    out, lse = onepass.attention(q, k, v, return_lse=True, **keywords)
    dout = rng.normal(size=out.shape).astype(dtype)
    dlse = rng.normal(size=lse.shape).astype(lse.dtype)
    found = onepass.attention_backward(dout, q, k, v, out, lse, dlse=dlse, return_args=True,
                                       **keywords)
    expected = reference.attention_backward(dout, q, k, v, dlse=dlse, return_args=True, **keywords)
    assert len(found) == len(expected)
    for a, b, like in zip(found, expected, (q, k, v)):
        assert a.dtype == like.dtype and a.shape == like.shape
        close(a, b, dtype)
    if "sink" in keywords:
        close(found[3], expected[3], dtype)
    assert found[-1].keys() == expected[-1].keys()
    for argument in found[-1]:
        assert found[-1][argument].dtype == keywords["args"][argument].dtype
        close(found[-1][argument], expected[-1][argument], dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_infinite_sink(dtype):
    """It takes all the weight: only dlse reaches it."""
    q, k, v = inputs(1, 5, 7, 2, 2, 8, dtype=dtype)
    sink = np.array([np.inf, 0.5], dtype)
    out, lse = onepass.attention(q, k, v, sink=sink, return_lse=True)
    dout, dlse = np.ones_like(out), np.ones_like(lse)
    found = onepass.attention_backward(dout, q, k, v, out, lse, sink=sink, dlse=dlse)
    expected = reference.attention_backward(dout, q, k, v, sink=sink, dlse=dlse)
    assert found[3][0] == 5
    for a, b in zip(found, expected):
        close(a, b, dtype)


def test_sequences_share_an_array_by_position():
    """Their key ranges overlap in it, whatever the threads."""
    q, k, v = inputs(2, 3, 1100, 2, 1, 8, dtype=np.float32)
    x = np.zeros(70000, np.float32)
    call = dict(score="s + x[k]", args={"x": x}, k_start=np.array([0, 300]))
    out, lse = onepass.attention(q, k, v, return_lse=True, **call)
    dout = np.random.default_rng(5).normal(size=out.shape).astype(np.float32)
    found = [onepass.attention_backward(dout, q, k, v, out, lse, return_args=True, threads=threads,
                                        **call)[3]["x"] for threads in (1, 2)]
    np.testing.assert_array_equal(*found)
    expected = reference.attention_backward(dout, q, k, v, return_args=True, **call)
    close(found[0], expected[3]["x"], np.float32)


def test_packed_sequences_are_sequences():
    q, k, v = (x[0] for x in inputs(1, 50, 60, 4, 2, 16, dtype=np.float64))
    cu_q, cu_k = np.array([0, 0, 12, 50], np.int32), np.array([0, 25, 42, 60])
    out, lse = onepass.attention_varlen(q, k, v, cu_q, cu_k, mask="causal", return_lse=True)
    dout = np.random.default_rng(4).normal(size=out.shape)
    found = onepass.attention_varlen_backward(dout, q, k, v, out, lse, cu_q, cu_k, mask="causal")
    for b in range(3):
        rows, cols = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
        one = [x[None] for x in (q[rows], k[cols], v[cols])]
        np.testing.assert_allclose(
            out[rows], reference.attention(*one, mask="causal")[0], atol=1e-12)
        expected = reference.attention_backward(dout[rows][None], *one, mask="causal")
        for gradient, part, where in zip(found, expected, (rows, cols, cols)):
            np.testing.assert_allclose(gradient[where], part[0], atol=1e-12)


def test_keys_in_use():
    q, k, v = inputs(2, 5, 30, 4, 2, 16, dtype=np.float64)
    used = np.array([30, 7])
    k[1, 7:], v[1, 7:] = np.nan, np.nan
    out = onepass.attention_varlen(q, k, v, None, None, seqused_k=used, mask="causal")
    for b in range(2):
        one = [q[b:b + 1], k[b:b + 1, :used[b]], v[b:b + 1, :used[b]]]
        np.testing.assert_allclose(out[b], reference.attention(*one, mask="causal")[0], atol=1e-12)


@pytest.mark.parametrize(("dtype", "logit", "score"),
                         [(np.float32, 1e3, ""), (np.float32, 64.0, ""), (np.float64, 1e3, ""),
                          (bfloat16, 8.0, "s + z[h] * col")])
def test_a_chunk_of_merged_rows_counts_the_keys_that_are_not_here(dtype, logit, score):
    q = np.ones((1, 1, 1, 1), dtype)
    k = np.array([logit, logit, logit + np.log(2 * 2.0**-12)], dtype).reshape(1, 3, 1, 1)
    v = np.array([1, -1, 1024], dtype).reshape(1, 3, 1, 1)
    dout = np.ones((1, 1, 1, 1), np.float64 if dtype == np.float64 else np.float32)
    keywords = {"scale": 1.0, "score": score} if score else {"scale": 1.0}
    if score:
        keywords["args"] = {"z": np.zeros(1, np.float32)}
    parts = [onepass.attention(q, k[:, c], v[:, c], return_lse=True, out_dtype=dout.dtype.name,
                               k_start=c.start, **keywords) for c in (slice(0, 2), slice(2, 3))]
    (o, lse), (o_other, lse_other) = parts
    onepass.merge(o, lse, o_other, lse_other)
    found = onepass.attention_backward(dout, q, k[:, :2], v[:, :2], o, lse, **keywords)
    wanted = reference.attention_backward(dout, q, k, v, **keywords)
    worst = np.abs(np.asarray(found[1], np.float64) - np.asarray(wanted[1])[:, :2]).max()
    assert worst <= (1e-12 if dtype == np.float64 else 5e-3) * np.abs(wanted[1]).max()


@pytest.mark.parametrize("row0, col0", [(0, 0), (32, 16)])
def test_dropout_mask(row0, col0):
    where = dict(offset=1 << 35, row0=row0, col0=col0)
    found = onepass.dropout_mask((2, 3, 40, 50), 0.3, 9, **where)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, reference.dropout_mask((2, 3, 40, 50), 0.3, 9, **where))


def test_a_plan_says_what_the_gradients_would_take():
    """Of 2^20 tokens that share one element: nothing is read, no gradient is made."""
    tokens = 1 << 20
    x = np.broadcast_to(np.float32(0), (1, tokens, 4, 64))
    lse = np.broadcast_to(np.float32(0), (1, 4, tokens))
    plans = [onepass.plan_backward(x, x, x, x, x, lse, mask="causal", threads=n) for n in (1, 2)]
    for threads, plan in enumerate(plans, 1):
        assert plan.kernel.startswith("cpu.backward.") and plan.threads == threads
        assert plan.problem_line == f"bwd f32 b=1 h=4 s={tokens} d=64 mask=causal"
        assert 0 < plan.workspace_bytes < tokens**2
    with pytest.raises(ValueError, match="^dout: "):
        onepass.plan_backward(x[:, :3], x, x, x, x, lse)
    args = {"m": np.ones(4, np.float32)}
    keywords = {"score": "alibi(s, m)", "args": args, "sink": args["m"], "return_args": True}
    plan = onepass.plan_backward(x, x, x, x, x, lse, **keywords)
    assert 'score="alibi(s, m)"' in plan.problem_line and "sink=" in plan.problem_line


def test_wrong_calls():
    q, k, v = inputs(1, 5, 6, 4, 2, 8, dtype=np.float32)
    out, lse = onepass.attention(q, k, v, return_lse=True)
    with pytest.raises(ValueError, match="^dout: "):
        onepass.attention_backward(out[:, :3], q, k, v, out, lse)
    with pytest.raises(ValueError, match="^out: "):
        onepass.attention_backward(out, q, k, v, out[:, :3], lse)
    with pytest.raises((ValueError, TypeError), match="^lse: "):
        onepass.attention_backward(out, q, k, v, out, lse.astype(np.float64))
    with pytest.raises(TypeError, match="^lse: missing"):
        onepass.attention_backward(out, q, k, v, out)
    with pytest.raises(ValueError, match="^p|^dropout"):
        onepass.dropout_mask((1, 1, 2, 2), 1.5)


def test_training_finds_the_other_layer():
    """The README's loop."""
    rng = np.random.default_rng(0)
    x, w, goal = rng.normal(size=(4, 64, 1, 16)), *rng.normal(size=(2, 3, 16, 16)) / 3
    y = onepass.attention(*(x @ m for m in goal), mask="causal")
    losses = []
    for _ in range(500):
        q, k, v = (x @ m for m in w)
        o, lse = onepass.attention(q, k, v, mask="causal", return_lse=True)
        losses.append(np.square(o - y).mean())
        grads = onepass.attention_backward(o - y, q, k, v, o, lse, mask="causal")
        w -= 0.001 * np.stack([np.einsum("bshi,bshj->ij", x, g) for g in grads])
    assert losses[-1] < 0.01 * losses[0]
