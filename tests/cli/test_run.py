"""onepass run on NPY files of every dtype and layout."""

import numpy as np
import pytest

ml_dtypes = pytest.importorskip("ml_dtypes")


def manual(q, k, v, visible=None, scale=None):
    """Float64 attention of (1, s, h, d) arrays; visible (s_q, s_kv)."""
    q, k, v = (np.asarray(x).astype(np.float64) for x in (q, k, v))
    group = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, group, axis=2), np.repeat(v, group, axis=2)
    s = np.einsum("bqhd,bkhd->bhqk", q, k) * (scale if scale is not None else q.shape[3] ** -0.5)
    if visible is not None:
        s = np.where(visible, s, -np.inf)
    top = np.max(s, axis=-1, keepdims=True)
    p = np.exp(s - np.where(np.isfinite(top), top, 0))
    total = p.sum(axis=-1, keepdims=True)
    o = np.einsum("bhqk,bkhd->bqhd", p / np.where(total == 0, 1, total), v)
    with np.errstate(divide="ignore"):
        return o, (np.log(total) + np.where(np.isfinite(top), top, 0))[..., 0]


def causal(s_q, s_kv):
    return np.arange(s_kv)[None, :] <= np.arange(s_q)[:, None] + s_kv - s_q


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    ((np.float64, 1e-12), (np.float32, 2e-6), (np.float16, 4e-3), (ml_dtypes.bfloat16, 3e-2)),
)
def test_dtypes(onepass, qkv, tmp_path, dtype, tolerance):
    arrays, arguments = qkv(dtype)
    result = onepass(*arguments, "--mask", "causal", "--lse", tmp_path / "l.npy")
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    o, lse = np.load(tmp_path / "o.npy"), np.load(tmp_path / "l.npy")
    if dtype is ml_dtypes.bfloat16:
        assert o.dtype == np.dtype("V2")
        o = o.view(ml_dtypes.bfloat16)
    wanted_o, wanted_lse = manual(*arrays.values(), causal(6, 9))
    assert o.dtype == dtype and o.shape == (1, 6, 4, 8)
    assert lse.dtype == (np.float64 if dtype is np.float64 else np.float32)
    np.testing.assert_allclose(o.astype(np.float64), wanted_o, atol=tolerance)
    np.testing.assert_allclose(lse, wanted_lse, atol=max(tolerance, 1e-6))


def test_fortran_order(onepass, qkv, tmp_path):
    arrays, arguments = qkv(np.float64)
    assert onepass(*arguments).returncode == 0
    plain = np.load(tmp_path / "o.npy")
    for name in ("q", "k", "v"):
        np.save(tmp_path / f"{name}.npy", np.asfortranarray(arrays[name]))
    assert onepass(*arguments).returncode == 0
    np.testing.assert_allclose(np.load(tmp_path / "o.npy"), plain, atol=1e-14)


def test_versions_and_key_order(onepass, qkv, tmp_path):
    """Headers of version 2 and with keys in another order are legal."""
    arrays, arguments = qkv()
    assert onepass(*arguments).returncode == 0
    plain = np.load(tmp_path / "o.npy")
    header = b'{"shape": (1, 6, 4, 8), "fortran_order": False, "descr": "<f4"}\n'
    data = arrays["q"].tobytes()
    (tmp_path / "q.npy").write_bytes(
        b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header + data)
    assert onepass(*arguments).returncode == 0
    np.testing.assert_array_equal(np.load(tmp_path / "o.npy"), plain)


def test_arguments(onepass, qkv, tmp_path):
    arrays, arguments = qkv()
    np.save(tmp_path / "ids.npy", np.array([[0, 0, 0, 1, 1, 1, 2, 2, 2]], np.int32))
    np.save(tmp_path / "bias.npy", np.full((1, 1, 6, 9), 2.0, np.float32))
    result = onepass(
        *arguments, "--mask", "document(ids) & k >= first", "--score", "bias(s, m) + shift",
        "--arg", f"ids={tmp_path / 'ids.npy'}", "--arg", f"m={tmp_path / 'bias.npy'}",
        "--arg", "first=4", "--arg", "shift=0.5")
    assert result.returncode == 0, result.stderr
    ids = np.load(tmp_path / "ids.npy")[0]
    visible = (ids[3:, None] == ids[None, :]) & (np.arange(9)[None, :] >= 4)
    wanted, _ = manual(*arrays.values(), visible)
    np.testing.assert_allclose(np.load(tmp_path / "o.npy"), wanted, atol=2e-6)


def test_positions_sink_scale_definitions(onepass, qkv, tmp_path):
    arrays, arguments = qkv()
    np.save(tmp_path / "sink.npy", np.zeros(4, np.float32))
    np.save(tmp_path / "start.npy", np.array([2], np.int64))
    result = onepass(
        *arguments, "--mask", "near(3)", "--definitions", "near(n) = abs(q - k) < n",
        "--sink", tmp_path / "sink.npy", "--scale", "0.25", "--align", "top_left",
        "--q-start", tmp_path / "start.npy", "--k-start", "1", "--threads", "1")
    assert result.returncode == 0, result.stderr
    visible = abs(np.arange(6)[:, None] + 2 - np.arange(9)[None, :] - 1) < 3
    zeros = np.zeros((1, 1, 2, 8))  # a sink of 0 is a key of logit 0 whose value is 0
    wanted, _ = manual(
        arrays["q"], np.concatenate([arrays["k"], zeros], 1),
        np.concatenate([arrays["v"], zeros], 1),
        np.concatenate([visible, np.ones((6, 1), bool)], 1), 0.25)
    np.testing.assert_allclose(np.load(tmp_path / "o.npy"), wanted, atol=2e-6)


def test_dropout(onepass, qkv, tmp_path):
    """Values of 1 give the share of weight that was kept, over 1 - p; a seed repeats its mask."""
    arrays, arguments = qkv(np.float32, (1, 64, 4, 8), (1, 256, 2, 8))
    np.save(tmp_path / "q.npy", np.zeros_like(arrays["q"]))
    np.save(tmp_path / "v.npy", np.ones_like(arrays["v"]))
    outputs = []
    for seed in (1, 1, 2):
        assert onepass(*arguments, "--dropout", 0.25, "--seed", seed).returncode == 0
        outputs.append(np.load(tmp_path / "o.npy")[..., 0] * 0.75)
    assert (outputs[0] == outputs[1]).all() and (outputs[0] != outputs[2]).any()
    assert outputs[0].std() > 0.01 and outputs[0].mean() == pytest.approx(0.75, abs=0.01)


def test_seeds_of_64_bits(onepass, qkv, tmp_path):
    _, arguments = qkv()
    outputs = []
    for seed in (2**64 - 1, 2**63 - 1, 2**63):
        result = onepass(*arguments, "--dropout", 0.5, "--seed", seed)
        assert result.returncode == 0, result.stderr
        outputs.append(np.load(tmp_path / "o.npy"))
    assert (outputs[0] != outputs[1]).any() and (outputs[1] != outputs[2]).any()


def test_dtype_converts_inputs(onepass, qkv, tmp_path):
    arrays, arguments = qkv(np.float64)
    assert onepass(*arguments, "--dtype", "bf16").returncode == 0
    o = np.load(tmp_path / "o.npy").view(ml_dtypes.bfloat16).astype(np.float64)
    rounded = [x.astype(ml_dtypes.bfloat16) for x in arrays.values()]
    np.testing.assert_allclose(o, manual(*rounded)[0], atol=3e-2)


@pytest.mark.parametrize("shape", ((1, 0, 4, 8), (0, 6, 4, 8), (1, 6, 4, 8)))
def test_sizes_of_0(onepass, qkv, tmp_path, shape):
    keys = (shape[0], 0 if shape[1] == 6 else 9, 2, 8)
    _, arguments = qkv(np.float32, shape, keys)
    result = onepass(*arguments, "--lse", tmp_path / "l.npy")
    assert result.returncode == 0, result.stderr
    o, lse = np.load(tmp_path / "o.npy"), np.load(tmp_path / "l.npy")
    assert o.shape == shape and not o.any()
    assert lse.shape == (shape[0], 4, shape[1]) and (lse == -np.inf).all()
