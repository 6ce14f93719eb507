"""Arrays on a GPU: what is asked of their packages, and with PyTorch and a GPU the results."""

import ctypes
import sys
import types

import numpy as np
import onepass
import pytest

CUDA = 2  # DLPack's kDLCUDA


class Tensor(ctypes.Structure):
    """DLManagedTensor of DLPack's ABI."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class Array:
    """float32 that says it lies on a GPU, where there is nothing: enough to plan."""

    def __init__(self, shape, device=0):
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.tensor = Tensor(None, CUDA, device, len(shape), 2, 32, 1, self.shape)

    def __dlpack__(self, **_):
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p) + (
            ctypes.c_void_p,
        )
        return capsule(ctypes.addressof(self.tensor), b"dltensor", None)

    def __dlpack_device__(self):
        return (CUDA, self.tensor.device_id)


@pytest.fixture
def package(monkeypatch):
    """A package of GPU arrays like CuPy, with empty() and a current stream, which notes calls."""
    made = types.ModuleType("gpu_arrays_of_a_test")
    made.asked = []

    class Packaged(Array):
        pass

    def empty(shape, dtype):
        made.asked.append((tuple(shape), np.dtype(dtype).name))
        return Packaged(shape)

    def current():
        made.asked.append("stream")
        return types.SimpleNamespace(ptr=7)

    Packaged.__module__ = made.__name__
    made.Packaged, made.empty = Packaged, empty
    made.cuda = types.SimpleNamespace(get_current_stream=current)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def no_gpu():
    """The library says so."""
    try:
        onepass.plan(*[Array((1, 4, 2, 8))] * 3)
    except RuntimeError as error:
        return "cuda: no driver" in str(error) or "CUDA devices are here" in str(error)
    return False


def test_a_plan_needs_a_gpu_or_says_so():
    arrays = [Array((1, 4, 2, 8))] * 3
    if no_gpu():
        with pytest.raises(RuntimeError, match="cuda: "):
            onepass.plan(*arrays)
    else:
        assert onepass.plan(*arrays).kernel.startswith("cuda.")
        assert "device=cuda" in onepass.plan(*arrays).problem_line


def test_two_devices_are_refused():
    q, k = Array((1, 4, 2, 8)), Array((1, 4, 2, 8), device=1)
    with pytest.raises(NotImplementedError, match="k: lies on cuda:1; cuda:0 is needed here"):
        onepass.plan(q, k, q)
    with pytest.raises(NotImplementedError, match="k: lies on the CPU; cuda:0 is needed here"):
        onepass.plan(q, np.zeros((1, 4, 2, 8), np.float32), q)


def test_outputs_and_stream_come_from_the_package(package):
    q = package.Packaged((1, 4, 2, 8))
    v = package.Packaged((1, 4, 2, 16))
    with pytest.raises((RuntimeError, ValueError)):
        onepass.attention(q, q, v, return_lse=True)
    assert package.asked == [((1, 4, 2, 16), "float32"), ((1, 2, 4), "float32"), "stream"]
    package.asked.clear()
    with pytest.raises((RuntimeError, ValueError)):
        onepass.attention(q, q, q, out=package.Packaged((1, 4, 2, 8)), stream=9)
    assert package.asked == []


def test_a_package_without_empty(package):
    del package.empty
    q = package.Packaged((1, 4, 2, 8))
    with pytest.raises(TypeError, match=r"out: not given beside q, a Packaged on a GPU"):
        onepass.attention(q, q, q)


@pytest.mark.parametrize(
    ("stream", "error", "said"),
    (
        ("seven", TypeError, "stream: found str; an int"),
        (True, TypeError, "stream: found bool; an int"),
        (-1, ValueError, "stream: -1; the handle of a stream"),
        (2**64, ValueError, "stream: 18446744073709551616; the handle"),
        (types.SimpleNamespace(ptr=2**70), ValueError, "the handle of a stream"),
    ),
)
def test_what_is_no_stream(package, stream, error, said):
    q = package.Packaged((1, 4, 2, 8))
    with pytest.raises(error, match=said):
        onepass.attention(q, q, q, stream=stream)


def test_on_the_cpu_a_stream_says_nothing():
    q = np.ones((1, 4, 2, 8), np.float32)
    np.testing.assert_array_equal(onepass.attention(q, q, q, stream=5), onepass.attention(q, q, q))


@pytest.fixture
def torch():
    """PyTorch where it sees a GPU."""
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("PyTorch sees no GPU here")
    return found


def test_pytorch_on_a_gpu(torch):
    q, k, v, dout = torch.randn(4, 2, 70, 4, 32, device="cuda")
    options = {"mask": "causal", "score": "softcap(s, 5)"}
    with torch.cuda.stream(torch.cuda.Stream()):
        o, lse = onepass.attention(q, k, v, return_lse=True, **options)
        gradients = onepass.attention_backward(dout, q, k, v, o, lse, **options)
        torch.cuda.current_stream().synchronize()
    assert o.device == q.device and isinstance(lse, torch.Tensor)
    on_cpu = [x.cpu() for x in (q, k, v)]
    o_cpu, lse_cpu = onepass.attention(*on_cpu, return_lse=True, **options)
    torch.testing.assert_close(o.cpu(), o_cpu, rtol=0, atol=1e-5)
    torch.testing.assert_close(lse.cpu(), lse_cpu, rtol=0, atol=1e-5)
    for ours, theirs in zip(
        gradients,
        onepass.attention_backward(dout.cpu(), *on_cpu, o_cpu, lse_cpu, **options),
        strict=True,
    ):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=0, atol=1e-4)


def test_cupy(torch):
    cupy = pytest.importorskip("cupy")
    x = np.random.default_rng(3).standard_normal((3, 1, 50, 2, 16)).astype(np.float32)
    q, k, v = cupy.asarray(x)
    o = onepass.attention(q, k, v)
    assert isinstance(o, cupy.ndarray)
    np.testing.assert_allclose(cupy.asnumpy(o), onepass.attention(*x), rtol=0, atol=1e-5)
    given = cupy.empty_like(q)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.get_current_stream().synchronize()
    assert onepass.attention(q, k, v, out=given, stream=stream) is given
    stream.synchronize()
    np.testing.assert_array_equal(cupy.asnumpy(given), cupy.asnumpy(o))
