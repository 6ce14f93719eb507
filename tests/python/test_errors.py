"""Wrong calls: the exception's type, the argument it names first, and nothing written."""

import ctypes
import re

import numpy as np
import onepass
import pytest
from ml_dtypes import bfloat16

X = np.ones((2, 5, 4, 8), np.float32)


def with_strides(strides):
    return np.lib.stride_tricks.as_strided(X, X.shape, strides)


class NoArray:
    def __dlpack__(self, **options):
        raise BufferError("not today")

    def __dlpack_device__(self):
        return (1, 0)


# name -> (exception, how the message starts, arguments that differ from a right call)
WRONG = {
    "q is a list": (TypeError, "q: found list;", {"q": [[1.0]]}),
    "q is None": (TypeError, "q: found NoneType;", {"q": None}),
    "q is a number": (TypeError, "q: found float;", {"q": 1.0}),
    "q exports nothing": (TypeError, "q: found NoArray;", {"q": NoArray()}),
    "q is complex": (TypeError, "q: found ndarray of complex64;", {"q": X.astype(np.complex64)}),
    "q is integer": (TypeError, "q: ", {"q": X.astype(np.int32)}),
    "q is int8": (TypeError, "q: found ndarray of int8;", {"q": X.astype(np.int8)}),
    "q is big-endian": (
        TypeError, "q: found ndarray of >f4; the byte order of this machine",
        {"q": X.astype(">f4")}),
    "out is big-endian": (
        TypeError, "out: found ndarray of >f4; the byte order of this machine",
        {"out": X.astype(">f4")}),
    "q holds objects": (TypeError, "q: found ndarray of object;", {"q": X.astype(object)}),
    "q of rank 3": (ValueError, "q: ", {"q": X[0]}),
    "q of rank 5": (ValueError, "q: 5 dims;", {"q": X[None]}),
    "odd byte strides": (
        TypeError, "q: found ndarray of float32 with strides of (160, 33, 8, 1) bytes;",
        {"q": with_strides((160, 33, 8, 1))}),
    "k of another dtype": (TypeError, "k: ", {"k": X.astype(np.float64)}),
    "v of another dtype": (TypeError, "v: ", {"v": X.astype(bfloat16)}),
    "k of another batch": (ValueError, "k: ", {"k": X[:1]}),
    "k of another d": (ValueError, "k: ", {"k": X[..., :4]}),
    "v of another length": (ValueError, "v: ", {"v": X[:, :3]}),
    "heads that do not divide": (ValueError, "k: ", {"k": X[:, :, :3], "v": X[:, :, :3]}),
    "no key heads": (ValueError, "k: ", {"k": X[:, :, :0], "v": X[:, :, :0]}),
    "mask is not text": (TypeError, "mask: found int;", {"mask": 5}),
    "mask is a boolean array": (
        TypeError, "mask: found ndarray; a str is allowed; pass the array as args={\"m\": array}",
        {"mask": np.ones((5, 5), bool)}),
    "score is an array": (TypeError, "score: found ndarray; a str", {"score": np.ones((5, 5))}),
    "align spelt with -": (ValueError, 'align: "top-left";', {"align": "top-left"}),
    "mask is None": (TypeError, "mask: found NoneType;", {"mask": None}),
    "mask is an int": (ValueError, "mask, column 1: ", {"mask": "q"}),
    "mask with a wrong name": (ValueError, "mask, column 6: ", {"mask": "k <= qq"}),
    "mask that ends early": (ValueError, "mask, column ", {"mask": "k <="}),
    "mask that divides by 0": (ValueError, "mask, column ", {"mask": "k // 0 == 1"}),
    "mask with exp": (ValueError, "mask, column ", {"mask": "exp(1.0) > 2.0"}),
    "mask reads s": (ValueError, "mask, column 1: ", {"mask": "s > 0"}),
    "mask with a null byte": (ValueError, "mask", {"mask": "k <= q\0"}),
    "mask with a surrogate": (ValueError, "mask", {"mask": "k <= q \udc80"}),
    "deep mask": (ValueError, "mask", {"mask": "(" * 100_000 + "true" + ")" * 100_000}),
    "score of type bool": (ValueError, "score, column ", {"score": "k < q"}),
    "definitions without =": (ValueError, "definitions", {"definitions": "f(a) a"}),
    "window of one": (ValueError, "mask, column 1: ", {"mask": "window(1)"}),
    "slopes of other heads": (
        ValueError, "args: 'slopes' has size 3 in dim 0, which alibi(s, slopes) = s - slopes[h]",
        {"score": "alibi(s, slopes)", "args": {"slopes": np.ones(3, np.float32)}}),
    "lengths of other sequences": (
        ValueError, "args: 'n' has size 3 in dim 0, which lengths(n) = k < n[b] indexes by b; 1",
        {"mask": "lengths(n)", "args": {"n": np.ones(3, np.int32)}}),
    "dense mask that is too narrow": (
        ValueError, "args: 'm' has size 4 in dim 3, which dense(m)",
        {"mask": "dense(m)", "args": {"m": np.ones((1, 1, 5, 4), bool)}}),
    "argument not given": (ValueError, "mask, column 10: ", {"mask": "document(ids)"}),
    "array of wrong rank": (ValueError, "mask, column ", {"mask": "m[b, h] > 0", "args": {"m": X}}),
    "args is a list": (TypeError, "args: found list;", {"args": [1]}),
    "args with int name": (TypeError, "args: found int;", {"args": {1: 1}}),
    "args with a list": (TypeError, "args: n: found list;", {"args": {"n": [1]}}),
    "args with text": (TypeError, "args: n: found str;", {"args": {"n": "1"}}),
    "args too large": (ValueError, "args: n: ", {"args": {"n": 2**63}}),
    "args of rank 5": (ValueError, "args: n: 5 dims;", {"args": {"n": X[None]}}),
    "args with a reserved name": (ValueError, "args: ", {"args": {"q": 1}}),
    "args not read": (ValueError, "args: ", {"args": {"unused": 1}}),
    "scale NaN": (ValueError, "scale: ", {"scale": float("nan")}),
    "scale inf": (ValueError, "scale: ", {"scale": np.float32("inf")}),
    "scale is text": (TypeError, "scale: found str;", {"scale": "1"}),
    "scale is an array": (TypeError, "scale: found ndarray;", {"scale": np.ones(2)}),
    "scale is huge": (ValueError, "scale: ", {"scale": 10**400}),
    "sink of wrong size": (ValueError, "sink: ", {"sink": np.zeros(3, np.float32)}),
    "sink of wrong dtype": (TypeError, "sink: ", {"sink": np.zeros(4)}),
    "dropout of 1": (ValueError, "dropout: ", {"dropout": 1.0}),
    "dropout below 0": (ValueError, "dropout: ", {"dropout": -0.1}),
    "dropout NaN": (ValueError, "dropout: ", {"dropout": float("nan")}),
    "seed below 0": (ValueError, "seed: -1;", {"seed": -1}),
    "seed too large": (ValueError, "seed: 18446744073709551616;", {"seed": 2**64}),
    "seed is a float": (TypeError, "seed: found float;", {"seed": 1.0}),
    "align unknown": (ValueError, 'align: "middle";', {"align": "middle"}),
    "q_start of wrong shape": (ValueError, "q_start: ", {"q_start": np.zeros(3, np.int64)}),
    "q_start of wrong dtype": (TypeError, "q_start: ", {"q_start": np.zeros(2)}),
    "q_start is a float": (TypeError, "q_start: found float;", {"q_start": 1.5}),
    "k_start too large": (ValueError, "k_start: ", {"k_start": 2**61}),
    "k_start array too large": (ValueError, "k_start: ", {"k_start": np.full(2, 2**61)}),
    "return_lse is an int": (TypeError, "return_lse: found int;", {"return_lse": 1}),
    "threads below 0": (ValueError, "threads: -1;", {"threads": -1}),
    "threads too many": (ValueError, "threads: 4097; 0 to 4096", {"threads": 4097}),
    "threads is a float": (TypeError, "threads: found float;", {"threads": 1.0}),
    "out_dtype unknown": (TypeError, "out_dtype: ", {"out_dtype": "int8", "out": None}),
    "out_dtype not allowed": (TypeError, "out: ", {"out_dtype": "float16", "out": None}),
    "out_dtype beside out": (TypeError, "out_dtype: ", {"out_dtype": np.float64}),
    "out of wrong shape": (ValueError, "out: ", {"out": np.zeros((2, 5, 4, 7), np.float32)}),
    "out of wrong dtype": (TypeError, "out: ", {"out": np.zeros(X.shape, np.float64)}),
    "out with stride 0": (ValueError, "out: ", {"out": with_strides((640, 128, 0, 4))}),
    "out is read-only": (
        TypeError, "out: read-only ndarray of float32;",
        {"out": np.broadcast_to(np.float32(0), X.shape)}),
    "out is an int": (TypeError, "out: found int;", {"out": 3}),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_call(name):
    kind, start, changes = WRONG[name]
    out = np.full(X.shape, 7, np.float32)
    call = {"q": X, "k": X, "v": X, "out": out} | changes
    with pytest.raises(kind) as caught:
        onepass.attention(**call)
    message = str(caught.value)
    assert message.startswith(start), message
    # argument: what was found; what is allowed; what to try
    parts = 1 if ", column " in message else 2  # an expression's errors say what is expected
    assert re.match(r"\S[^;]*: .+" + parts * "; .+", message, re.DOTALL), message
    assert (out == 7).all()
    if "out" not in changes:
        for function in (onepass.plan, onepass.explain):
            if name != "k_start array too large":  # a plan reads no memory
                with pytest.raises(kind):
                    function(**call)


def test_shapes_that_named_forms_take():
    """1, as many as there are, or more positions; expressions of one's own take any shape."""
    for shape in ((1, 1, 1, 1), (2, 4, 5, 5), (1, 4, 1, 7)):
        onepass.attention(X, X, X, mask="dense(m)", args={"m": np.ones(shape, bool)})
    onepass.attention(X, X, X, score="s - m[h]", args={"m": np.ones(3, np.float32)})


@pytest.mark.parametrize("which", ("q", "k", "v"))
def test_out_that_overlaps_an_input(which):
    call = {name: X.copy() for name in "qkv"}
    with pytest.raises(ValueError, match="^out: overlaps"):
        onepass.attention(**call, out=call[which])
    assert all((x == 1).all() for x in call.values())
    shared = np.ones((3, 5, 4, 8), np.float32)
    call[which] = shared[:2]
    with pytest.raises(ValueError, match="^out: overlaps"):
        onepass.attention(**call, out=shared[1:])
    assert (shared == 1).all()


@pytest.mark.parametrize(
    "start, positional, keywords",
    [
        ("causal: no argument of attention()", (X, X, X), {"causal": True}),
        ("attention(): 4 arguments by position", (X, X, X, "causal"), {}),
        ("v: missing", (X, X), {}),
        ("k: given twice", (X, X, X), {"k": X}),
    ],
)
def test_wrong_binding(start, positional, keywords):
    with pytest.raises(TypeError) as caught:
        onepass.attention(*positional, **keywords)
    assert str(caught.value).startswith(start), caught.value


@pytest.mark.parametrize(
    "name, value, advice",
    [
        ("causal", True, 'write mask="causal"'),
        ("is_causal", True, 'write mask="causal"'),
        ("attn_mask", X, "args={"),
        ("softmax_scale", 0.5, "write scale="),
        ("dropout_p", 0.5, "write dropout="),
        ("cu_seqlens_q", np.array([0, 5]), "write onepass.attention_varlen("),
        ("nonsense", 1, "see help(onepass)"),
    ],
)
def test_other_libraries_names(name, value, advice):
    with pytest.raises(TypeError) as caught:
        onepass.attention(X, X, X, **{name: value})
    message = str(caught.value)
    assert message.startswith(f"{name}: no argument of attention(); "), message
    assert advice in message, message


LSE = np.zeros((2, 4, 5), np.float32)


@pytest.mark.parametrize(
    "kind, start, changes",
    [
        (TypeError, "o: found list;", {"o": [1]}),
        (TypeError, "o: read-only ", {"o": np.broadcast_to(np.float32(1), X.shape)}),
        (TypeError, "o: ", {"o": X.astype(np.int64)}),
        (ValueError, "o: ", {"o": X[0]}),
        (ValueError, "o_other: ", {"o_other": X[:1]}),
        (ValueError, "lse: ", {"lse": LSE[:, :3].copy()}),
        (TypeError, "lse: ", {"lse": LSE.astype(np.float16)}),
        (ValueError, "lse_other: ", {"lse_other": LSE[..., :4]}),
        (ValueError, "threads: ", {"threads": -1}),
    ],
)
def test_wrong_merge(kind, start, changes):
    call = {"o": X.copy(), "lse": LSE.copy(), "o_other": X + 1, "lse_other": LSE} | changes
    with pytest.raises(kind) as caught:
        onepass.merge(**call)
    assert str(caught.value).startswith(start), str(caught.value)
    if "o" not in changes:
        assert (call["o"] == 1).all()


class OnMetal:
    """An array that says it lies on a device of DLPack's type 8."""

    def __dlpack__(self, **options):
        capsule = X.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        device_type = pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)
        ctypes.c_int32.from_address(device_type).value = 8
        return capsule

    def __dlpack_device__(self):
        return (8, 0)


def test_device_without_a_kernel():
    with pytest.raises(NotImplementedError, match="^q: on a device of DLPack type 8;"):
        onepass.attention(OnMetal(), X, X)
