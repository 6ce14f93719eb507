"""The backward of the NumPy reference against finite differences of its own forward, and the two
references against each other."""

import numpy as np
import onepass
import pytest
from expressions import random_problem
from numpy.testing import assert_allclose, assert_array_equal
from onepass import reference
from problems import error, generate, inputs

reference_cpp = pytest.importorskip("_reference_cpp")


def backward_numpy(dout, q, k, v, dlse=None, **options):
    """(dq, dk, dv, dsink or empty, {name: gradient})"""
    found = reference.attention_backward(dout, q, k, v, dlse=dlse, return_args=True, **options)
    return found if len(found) == 5 else (*found[:3], np.zeros(0), found[3])


def backward_cpp(dout, q, k, v, dlse=None, **options):
    for name in ("q_start", "k_start", "sink"):
        if options.get(name) is not None:
            options[name] = np.atleast_1d(options[name]).tolist()
    *gradients, dargs = reference_cpp.attention_backward(dout, q, k, v, dlse=dlse, **options)
    shapes = {name: np.shape(options["args"][name]) for name in dargs}
    return (*gradients, {name: x.reshape(shapes[name]) for name, x in dargs.items()})


@pytest.fixture(params=(backward_numpy, backward_cpp), ids=("numpy", "cpp"))
def backward(request):
    return request.param


ARRAYS = {
    "slopes": np.array([0.5, 0.25]),
    "m": generate(7, 1, (2, 1, 5, 9)),
    "table": generate(8, 1, (2, 1, 3)),
    "gain": np.array(0.75),
}
SMOOTH = (
    (None, ()),
    ("softcap(s, 1.5)", ()),
    ("alibi(s, slopes)", ("slopes",)),
    ("bias(s, m)", ("m",)),
    ("softcap(alibi(s, slopes), 2) + m[b, 0, row, k]", ("slopes", "m")),
    ("s * gain + table[h, b, k % 3] * tanh(s)", ("gain", "table")),
    ("s * exp(table[h, q, k]) / (2 + table[h, 0, 1]) - log(2.5 + s % 7)", ("table",)),
    ("k < 4 ? sqrt(abs(s) + 1) : min(s, slopes[h_kv]) + max(gain, -s)", ("slopes", "gain")),
)
OPTIONS = (
    {},
    {"mask": "causal", "sink": np.array([0.3, -0.2])},
    {"mask": "window(2, 1)", "dropout": 0.4, "seed": 5, "offset": 3, "row0": 16},
    {"mask": "k != 3 & row != 1", "q_start": np.array([2, 7]), "k_start": 1, "scale": -0.3},
    {"align": "top_left", "mask": "causal & row > 0", "sink": np.zeros(2), "dropout": 0.3},
)


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
@pytest.mark.parametrize("score, names", SMOOTH)
def test_finite_differences(backward, score, names, options):
    """Central differences of the same program's forward along a random direction of each input."""
    rng = np.random.default_rng(3)
    tensors = {"q": rng.normal(size=(2, 5, 2, 3)), "k": rng.normal(size=(2, 9, 1, 3))}
    tensors |= {"v": rng.normal(size=(2, 9, 1, 2))}
    dout, dlse = rng.normal(size=(2, 5, 2, 2)), rng.normal(size=(2, 2, 5))
    args = {name: ARRAYS[name].copy() for name in names}
    options = options | {"score": score, "args": args}
    if "sink" in options:
        options["sink"] = options["sink"].copy()

    def loss():
        if backward is backward_numpy:
            o, lse = reference.attention(*tensors.values(), return_lse=True, **options)
        else:
            lists = {n: np.atleast_1d(options[n]).tolist() for n in STARTS if n in options}
            o, lse = reference_cpp.attention(*tensors.values(), **options | lists)
        return (dout * o).sum() + (dlse * np.where(np.isfinite(lse), lse, 0.0)).sum()

    *found, dargs = backward(dout, *tensors.values(), dlse=dlse, **options)
    pairs = list(zip(found, (*tensors.values(), options.get("sink", np.zeros(0)))))
    pairs += [(dargs[name], args[name]) for name in names]
    assert set(dargs) == set(names)
    for gradient, array in pairs:
        assert gradient.shape == array.shape
        original, direction, step = array.copy(), rng.normal(size=array.shape), 1e-5
        array[...] = original + step * direction
        above = loss()
        array[...] = original - step * direction
        below = loss()
        array[...] = original
        slope = (gradient * direction).sum()
        assert_allclose(slope, (above - below) / (2 * step), rtol=1e-6, atol=1e-8)


STARTS = ("q_start", "k_start", "sink")


@pytest.mark.parametrize("seed", range(300))
def test_references_agree(seed):
    rng = np.random.default_rng(10_000 + seed)
    q, k, v, options = random_problem(rng)
    if seed % 3 == 0:
        options |= {"dropout": 0.4, "seed": int(rng.integers(2**63)) * 2 + 1}
        options |= {"offset": int(rng.integers(2**63)), "row0": 32, "col0": 16}
    if seed % 4:
        options["score"] = f"({options.get('score', 's')}) * one[h] + tanh(s * three[q, k - q, b])"
        new = {"one": rng.normal(size=3), "three": rng.normal(size=(9, 9, 1))}
        options["args"] = options["args"] | new
    dout = rng.normal(size=(*q.shape[:3], v.shape[3]))
    dlse = rng.normal(size=(q.shape[0], q.shape[2], q.shape[1])) if seed % 2 else None
    *found, dargs = backward_numpy(dout, q, k, v, dlse, **options)
    *expected, dargs_cpp = backward_cpp(dout, q, k, v, dlse, **options)
    assert dargs.keys() == dargs_cpp.keys()
    pairs = [*zip(found, expected), *((dargs[n], dargs_cpp[n]) for n in dargs)]
    for x, y in pairs:
        assert error(x, y) <= 1e-10 * np.abs(y[np.isfinite(y)]).max(initial=1.0)


def probes(gradients):
    return [np.abs(x).sum() for x in gradients[:3]]


def test_empty_row(backward):  # D01
    q, k, v = inputs(1, 6, 10, 2, 2, 8)
    dout = generate(4, 1, (1, 6, 2, 8))
    k[:, 5:], v[:, 5:], dout[:, 5] = np.nan, np.nan, np.nan
    found = backward(dout, q, k, v, mask="row < 5 & k <= row", scale=0.125)
    assert_allclose(probes(found), [1.17656917, 6.42201392, 24.4797769], rtol=1e-8)
    dq, dk, dv = found[:3]
    assert not dq[:, 5].any() and not dk[:, 5:].any() and not dv[:, 5:].any()


def test_expanded_dout(backward):  # D12
    q, k, v = inputs(2, 49, 49, 2, 2, 32)
    dv = backward(np.ones(v.shape), q, k, v)[2]
    assert_allclose(dv.sum(axis=1), 49, rtol=1e-12)


@pytest.mark.parametrize(
    "s, d, mask, expected",
    [
        (96, 63, "full", (336.351273, 1339.69283, 1129.58495)),  # D13
        (96, 63, "causal", (433.687497, 1491.47551, 1458.97453)),
        (128, 64, "full", (439.094729, 1779.06122, 1360.26421)),  # D26
        (128, 64, "causal", (562.411651, 1959.89207, 1754.18008)),
    ],
)
def test_probes(backward, s, d, mask, expected):
    found = backward(generate(4, 1, (1, s, 2, d)), *inputs(1, s, s, 2, 2, d), mask=mask)
    assert_allclose(probes(found), expected, rtol=5e-9)  # nine digits are written
    if (s, mask) == (128, "full"):
        firsts = [x.ravel()[0] for x in found[:3]]
        assert_allclose(firsts, [-0.024524934, 0.433428554, 0.0291208802], rtol=4e-8)


def test_one_key(backward):  # D26
    q, k, v = inputs(1, 128, 1, 1, 1, 64)
    dq, dk, dv = backward(np.ones(q.shape), q, k, v)[:3]
    assert_allclose(dv, 128, rtol=1e-13)
    assert np.abs(dq).max() < 1e-12 and np.abs(dk).max() < 1e-12


@pytest.mark.parametrize("b, s_q, s_kv", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
def test_nothing(backward, b, s_q, s_kv):  # D15
    q, k, v = np.ones((b, s_q, 2, 3)), np.ones((b, s_kv, 1, 3)), np.ones((b, s_kv, 1, 2))
    found = backward(np.ones((b, s_q, 2, 2)), q, k, v)
    for gradient, x in zip(found, (q, k, v)):
        assert_array_equal(gradient, np.zeros(x.shape))


def test_very_negative_lse(backward):  # D24
    sign = np.where(np.arange(64) % 2 == 0, 1.0, -1.0)
    q, k, dout = np.zeros((3, 1, 64, 1, 64))
    q[..., 0], k[..., 0], dout[..., 0] = 32, -64, 1
    k[0, :, 0, 1] = sign
    v = np.broadcast_to(sign[None, :, None, None], q.shape).copy()
    dq, dk, dv = backward(dout, q, k, v, scale=0.125)[:3]
    assert_allclose(dq[..., 1], 0.125, rtol=1e-13)
    assert_allclose(dq[..., 0], 0, atol=1e-12)
    assert_allclose(dk[0, :2, 0, 0], [4, -4], rtol=1e-13)
    assert_allclose(dv[..., 0], 1, rtol=1e-12)

    q, k, v = (generate(seed, 1, (1, 192, 1, 64)) for seed in (1, 2, 3))
    q[..., 0], k[..., 0] = 48, -32
    found = backward(generate(4, 1, q.shape), q, k, v, scale=0.125)
    assert_allclose(probes(found), [140.49474, 292.314539, 370.059174], rtol=1e-8)


def test_language_corners(backward):
    """One key a row, so that a row's dlse is the gradient of its logit: s = q of 0, 1, 2, 3."""
    q, one = np.arange(4.0).reshape(1, 4, 1, 1), np.ones((1, 1, 1, 1))
    corners = {
        "abs(s)": [0, 1, 1, 1],
        "min(s, 2.0 * s)": [1, 1, 1, 1],  # a tie is the first's
        "max(2 * s, s)": [2, 2, 2, 2],
        "min(s, 2)": [1, 1, 1, 0],
        "floor(s) + s // 2 + s % 2": [1, 1, 1, 1],
        "s > 1 ? log(s - 1) : 3 * s": [3, 3, 1, 0.5],
        "s + (s > 0 ? sqrt(s - 0.0) : 0.0)": [1, 1.5, 1 + 0.5**1.5, 1 + 0.5 / 3**0.5],
        "s * 0 + row": [0, 0, 0, 0],
    }
    for score, expected in corners.items():
        dq = backward(np.zeros(q.shape), q, one, one, np.ones((1, 1, 4)), score=score, scale=1)[0]
        assert_allclose(dq.ravel(), expected, rtol=1e-14, err_msg=score)


def test_hidden_nan_stays_hidden(backward):  # D05
    q, k, v = inputs(1, 8, 8, 1, 1, 16)
    dout = generate(4, 1, v.shape)
    clean = backward(dout, q, k, v, mask="causal & k != 5")
    k[0, 5], v[0, 5] = np.nan, np.nan
    for x, y in zip(backward(dout, q, k, v, mask="causal & k != 5")[:3], clean):
        assert_array_equal(x, y)
    assert np.isnan(backward(dout, q, k, v, mask="causal")[0][0, 5:]).all()
    assert np.isfinite(backward(dout, q, k, v, mask="causal")[0][0, :5]).all()


def test_sink_of_an_empty_row(backward):
    """lse is the sink itself there, and a sink of -inf is none."""
    q, k, v = inputs(1, 3, 4, 2, 2, 2)
    dlse, sink = np.arange(6.0).reshape(1, 2, 3), np.array([0.5, -np.inf])
    found = backward(np.ones(v[:, :3].shape), q, k, v, dlse, mask="row > 2", sink=sink)
    assert_array_equal(found[3], [0 + 1 + 2, 0])


def test_an_infinite_sink_takes_the_whole_gradient_of_lse(backward):
    q = np.arange(24.0).reshape(1, 6, 2, 2)
    dlse = np.arange(12.0).reshape(1, 2, 6)
    dq, dk, dv, dsink, _ = backward(q, q, q, q, dlse=dlse, sink=np.array([np.inf, 0.5]))
    for gradient in (dq, dk, dv):
        assert (gradient[:, :, 0] == 0).all() and np.isfinite(gradient).all()
    assert dsink[0] == dlse[0, 0].sum()


def test_a_mask_has_no_s(backward):
    q = np.ones((1, 2, 1, 1))
    with pytest.raises(ValueError):
        backward(q, q, q, q, mask="s > 0")


def backward_library(dout, q, k, v, dlse=None, **options):
    """As backward_numpy, of arrays of any one dtype; dlse and dargs are float64 here."""
    dlse = None if dlse is None else dlse.astype(q.dtype)
    out, lse = onepass.attention(q, k, v, return_lse=True, **options)
    found = onepass.attention_backward(
        dout, q, k, v, out, lse, dlse=dlse, return_args=True, **options
    )
    return found if len(found) == 5 else (*found[:3], np.zeros(0), found[3])


STEEP = {
    "softcap(s, c)": {"c": 0.0},
    "softcap(s, c[h])": {"c": np.array([0.0, 2.0, 1e-300, 0.0])},
    "softcap(s + x[h], c[0])": {"c": np.zeros(1), "x": np.array([0.5, 0.25, -1.0, 0.0])},
    "2 * tanh(s / c[h]) * x[h]": {"c": np.zeros(4), "x": np.arange(4.0)},
    "sqrt(s - s) + x[h]": {"x": np.array([0.0, 0.5, 1.0, -1.0])},
    "s + x[h] * sqrt(abs(q - k) * x[h])": {"x": np.array([0.0, 0.5, 1.0, 0.0])},
    "exp(-1 / (x[h] * s * s))": {"x": np.array([0.0, 0.5, 1.0, 0.0])},
    "1 / (1 + exp(s * c)) + s": {"c": 1e6},
    "tanh(c[h] * s)": {"c": np.array([np.inf, 1.0, 0.5, np.inf])},
}


@pytest.mark.parametrize("score", STEEP)
def test_a_slope_of_zero_beside_an_infinite_one(score):
    """tanh of s / 0 stands still however s moves: 0, as finite differences say, and not NaN."""
    args, sink = STEEP[score], np.array([0.5, -0.5, 0.0, 1.0])
    rng = np.random.default_rng(8)
    q, k, v = (rng.uniform(0.5, 1, size=(1, n, 4, 2)) for n in (5, 7, 7))
    dout, dlse = rng.normal(size=(1, 5, 4, 2)), rng.normal(size=(1, 4, 5))
    options = {"score": score, "args": args, "sink": sink}
    expected = backward_numpy(dout, q, k, v, dlse, **options)
    for found in (backward_cpp, backward_library):
        found = found(dout, q, k, v, dlse, **options)
        for x, y in zip(found[:4], expected):
            assert_allclose(x, y, rtol=1e-9, atol=1e-12)
        for name, x in expected[4].items():
            assert_allclose(found[4][name], x, rtol=1e-9, atol=1e-12, err_msg=name)

    def loss():
        o, lse = reference.attention(q, k, v, return_lse=True, **options)
        return (dout * o).sum() + (dlse * lse).sum()

    for array, gradient in ((q, expected[0]), (k, expected[1])):
        assert np.isfinite(gradient).all()
        original, direction, step = array.copy(), rng.normal(size=array.shape), 1e-6
        array[...] = original + step * direction
        above = loss()
        array[...] = original - step * direction
        slope, below = (gradient * direction).sum(), loss()
        array[...] = original
        assert_allclose(slope, (above - below) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", (np.float32, np.float16))
@pytest.mark.parametrize("score", STEEP)
def test_a_slope_of_zero_in_fewer_bits(score, dtype):
    args = {n: np.float32(x) if np.ndim(x) else x for n, x in STEEP[score].items()}
    rng = np.random.default_rng(8)
    q, k, v, dout = (rng.uniform(0.5, 1, size=(1, 7, 4, 2)).astype(dtype) for _ in range(4))
    found = backward_library(dout, q, k, v, score=score, args=args)
    expected = backward_numpy(dout, q, k, v, score=score, args=args)
    pairs = [*zip(found[:3], expected), *((found[4][n], x) for n, x in expected[4].items())]
    for x, y in pairs:
        close = 1e-5 if dtype == np.float32 else 4e-3
        assert error(x, y) <= close * max(1.0, np.abs(y).max(initial=0.0))


def test_a_sink_beside_huge_logits(backward):
    """Weights come from differences: ln(sum) itself has no digits left for them."""
    q, k, v = inputs(1, 4, 6, 1, 1, 2)
    q[...], k[..., 0], k[..., 1] = 1.0, 2.0**56, 0.0
    dlse = np.arange(1.0, 5.0).reshape(1, 1, 4)
    for call in (backward, backward_library):
        dsink = call(np.zeros(q.shape), q, k, v, dlse, scale=1.0, sink=np.array([2.0**56]))[3]
        assert_allclose(dsink, [10 / 7], rtol=1e-12)
