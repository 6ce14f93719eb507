"""Kinds of arrays, strides and dtypes."""

import sys
import types

import numpy as np
import onepass
import pytest
from ml_dtypes import bfloat16
from numpy.testing import assert_array_equal
from problems import DTYPES, check, inputs


class Foreign:
    """An array of a library that onepass has never heard of."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Namespaced(Foreign):
    """One that also says how to make its like from DLPack (the array API standard)."""

    def __array_namespace__(self):
        return Namespaced

    @staticmethod
    def from_dlpack(exported):
        return Namespaced(np.from_dlpack(exported))


def variants(x):
    """The values of x behind other strides."""
    longer = np.repeat(x, 2, axis=1)
    yield longer[:, ::2]
    yield np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    yield np.repeat(x, 2, axis=3)[..., ::2]
    yield x[:, ::-1].copy()[:, ::-1]
    yield x[..., ::-1].copy()[..., ::-1]
    yield np.asfortranarray(x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_strides(dtype):
    q, k, v = inputs(2, 17, 45, 4, 2, 32, dtype=dtype)
    expected = onepass.attention(q, k, v, mask="causal")
    check(*onepass.attention(q, k, v, mask="causal", return_lse=True), q, k, v, mask="causal")
    for other in (variants(q), variants(k), variants(v)):
        for strided in other:
            trio = [strided if x.shape == strided.shape and np.array_equal(x, strided) else x
                    for x in (q, k, v)]
            assert_array_equal(onepass.attention(*trio, mask="causal"), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_fused_and_expanded(dtype):
    q, k, v = inputs(1, 17, 17, 4, 2, 32, dtype=dtype)
    fused = np.concatenate((q, k, v), axis=2)
    expected = onepass.attention(q, k, v)
    assert_array_equal(onepass.attention(fused[:, :, :4], fused[:, :, 4:6], fused[:, :, 6:]),
                       expected)
    shared = [np.broadcast_to(x[:, :, :1], x.shape) for x in (k, v)]
    copied = [x.copy() for x in shared]
    assert_array_equal(onepass.attention(q, *shared), onepass.attention(q, *copied))


def test_strided_arguments():
    q, k, v = inputs(2, 9, 12, 4, 2, 8)
    bias = np.arange(2.0 * 4 * 9 * 24).reshape(2, 4, 9, 24)[..., ::2] % 5
    ids = (np.arange(24).reshape(2, 12) // 5)[:, ::-1]
    options = {"mask": "document(ids)", "score": "bias(s, m)"}
    expected = onepass.attention(q, k, v, args={"ids": ids.copy(), "m": bias.copy()}, **options)
    strided = onepass.attention(q, k, v, args={"ids": ids, "m": bias}, **options)
    assert_array_equal(strided, expected)


@pytest.mark.parametrize("dtype", (*DTYPES, np.int64, np.int32, np.uint8))
def test_dtypes_of_arguments(dtype):
    q, k, v = inputs(1, 5, 9, 1, 1, 4)
    table = np.arange(9).astype(dtype)
    o, lse = onepass.attention(q, k, v, mask="t[col] > 3", args={"t": table}, return_lse=True)
    check(o, lse, q, k, v, mask="col > 3")
    o, lse = onepass.attention(q, k, v, mask="t[col]", args={"t": table > 3}, return_lse=True)
    check(o, lse, q, k, v, mask="col > 3")


@pytest.mark.parametrize("value", (3, 3.0, np.int32(3), np.float32(3), np.array(3), np.array(3.0)))
def test_number_arguments(value):
    q, k, v = inputs(1, 5, 9, 1, 1, 4)
    assert_array_equal(onepass.attention(q, k, v, mask="col > n", args={"n": value}),
                       onepass.attention(q, k, v, mask="col > 3"))


@pytest.mark.parametrize("value", (True, np.True_, np.array(True)))
def test_bool_arguments(value):
    q, k, v = inputs(1, 5, 9, 1, 1, 4)
    assert_array_equal(onepass.attention(q, k, v, mask="on ? causal : full", args={"on": value}),
                       onepass.attention(q, k, v, mask="causal"))


def test_read_only_inputs():
    q, k, v = inputs(1, 5, 9, 1, 1, 4)
    expected = onepass.attention(q, k, v)
    for x in (q, k, v):
        x.flags.writeable = False
    assert_array_equal(onepass.attention(q, k, v), expected)


@pytest.mark.parametrize("dtype", (np.float64, np.float32, np.float16))
def test_anything_with_dlpack(dtype):
    q, k, v = inputs(2, 5, 9, 2, 1, 8, dtype=dtype)
    expected, lse = onepass.attention(q, k, v, return_lse=True)
    foreign = onepass.attention(Foreign(q), Foreign(k), v)
    assert isinstance(foreign, np.ndarray)
    assert_array_equal(foreign, expected)
    named, named_lse = onepass.attention(*map(Namespaced, (q, k, v)), return_lse=True)
    assert isinstance(named, Namespaced) and isinstance(named_lse, Namespaced)
    assert_array_equal(named.array, expected)
    assert_array_equal(named_lse.array, lse)
    out = np.empty_like(expected)
    boxed = Foreign(out)
    assert onepass.attention(q, k, v, out=boxed) is boxed
    assert_array_equal(out, expected)


@pytest.mark.parametrize("name", ("float64", "float32", "float16", "bfloat16"))
def test_torch(name):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.randn(2, 5, 4, 8).to(getattr(torch, name)) for _ in range(3))
    o, lse = onepass.attention(q, k, v, mask="causal", return_lse=True)
    assert isinstance(o, torch.Tensor) and o.dtype == q.dtype
    arrays = [x.float().numpy() if name == "bfloat16" else x.numpy() for x in (q, k, v)]
    arrays = [x.astype(bfloat16) if name == "bfloat16" else x for x in arrays]
    expected, expected_lse = onepass.attention(*arrays, mask="causal", return_lse=True)
    assert_array_equal(o.double().numpy(), expected.astype(np.float64))
    assert_array_equal(lse.numpy(), expected_lse)


@pytest.mark.parametrize("name", ("float32", "float16", "bfloat16"))
def test_jax(name):
    jax = pytest.importorskip("jax")
    arrays = inputs(2, 5, 9, 2, 1, 8, dtype=bfloat16 if name == "bfloat16" else np.dtype(name))
    o, lse = onepass.attention(*map(jax.numpy.asarray, arrays), return_lse=True)
    assert isinstance(o, jax.Array) and o.dtype == arrays[0].dtype
    expected, expected_lse = onepass.attention(*arrays, return_lse=True)
    assert_array_equal(np.asarray(o), expected)
    assert_array_equal(np.asarray(lse), expected_lse)
    with pytest.raises(TypeError, match="^out: read-only"):
        onepass.attention(*arrays, out=o)  # immutable


def test_tensors_that_make_their_like(monkeypatch):
    """What PyTorch's tensors offer, `new_empty`, by a stand-in: the real one is tested above."""

    class Tensor(Foreign):
        def new_empty(self, shape, dtype):
            return Tensor(np.empty(shape, dtype))

    torch = types.ModuleType("torch")
    torch.float32, torch.float64 = np.float32, np.float64
    monkeypatch.setitem(sys.modules, "torch", torch)
    q, k, v = inputs(2, 5, 9, 2, 1, 8, dtype=np.float16)
    o, lse = onepass.attention(*map(Tensor, (q, k, v)), return_lse=True, out_dtype=np.float32)
    assert isinstance(o, Tensor) and isinstance(lse, Tensor)
    expected, expected_lse = onepass.attention(q, k, v, return_lse=True, out_dtype=np.float32)
    assert_array_equal(o.array, expected)
    assert_array_equal(lse.array, expected_lse)
