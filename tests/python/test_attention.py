"""onepass.attention against the float64 reference."""

import numpy as np
import onepass
import pytest
from expressions import MANY_TILES, mentioned, random_problem
from ml_dtypes import bfloat16
from problems import DTYPES, check, error, generate, inputs
from onepass import reference

MASKS = {
    "full": {},
    "causal": {},
    "window(9, 3)": {},
    "chunked_causal(16)": {},
    "prefix(20)": {},
    "sink_window(4, 11)": {},
    "document(ids)": {"ids": np.sort(generate(7, 2, (2, 71)).astype(int), axis=1)},
    "lengths(n)": {"n": np.array([50, 3], np.int32)},
    "dense(m)": {"m": generate(8, 1, (2, 1, 37, 71)) > 0.3},
    "(q + k) % 3 != 1 & k * 0.37 < q": {},
}
SCORES = {
    "softcap(s, 5)": {},
    "alibi(s, slopes)": {"slopes": np.array([0.5, 0.25, 0.125, 0.0625], np.float32)},
    "bias(s, m)": {"m": generate(9, 2, (1, 4, 37, 71), np.float32)},
    "softcap(s, 20) - where(k < 8, inf, 0.0)": {},
    "max(s, table[(q - k) % 5]) * 0.5": {"table": generate(10, 1, (5,))},
}


def run(q, k, v, **options):
    o, lse = onepass.attention(q, k, v, return_lse=True, **options)
    assert o.dtype == q.dtype
    assert lse.dtype == (np.float64 if q.dtype == np.float64 else np.float32)
    check(o, lse, q, k, v, **options)
    return o, lse


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_masks(mask, dtype):
    q, k, v = inputs(2, 37, 71, 4, 2, 24, 40, dtype)
    run(q, k, v, mask=mask, args=MASKS[mask])


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_scores(score, dtype):
    q, k, v = inputs(2, 37, 71, 4, 1, 16, dtype=dtype)
    run(q, k, v, score=score, args=SCORES[score], mask="causal")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("s", (1, 2, 3, 63, 64, 65, 127))
def test_odd_sizes(dtype, s):
    run(*inputs(1, s, s, 2, 1, s % 50 + 1, dtype=dtype), mask="causal")
    run(*inputs(1, 1, s, 4, 2, 64, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("group", (1, 4, 8))
def test_groups_sinks_and_positions(dtype, group):
    q, k, v = inputs(3, 5, 19, 8, 8 // group, 32, dtype=dtype)
    sink = np.linspace(-1, 2, 8).astype(np.float64 if dtype == np.float64 else np.float32)
    starts = {"q_start": np.array([0, 40, 7]), "k_start": np.array([-3, 30, 7], np.int32)}
    run(q, k, v, mask="window(6, 6)", sink=sink, **starts)
    run(q, k, v, mask="causal", sink=sink, q_start=4, k_start=-1)
    run(q, k, v, mask="causal", align="top_left")


@pytest.mark.parametrize("dtype", (np.float32, bfloat16))
@pytest.mark.parametrize("d, d_v", ((576, 512), (192, 128), (1, 576), (100, 7)))
def test_wide_and_unequal_head_dims(dtype, d, d_v):
    run(*inputs(1, 33, 70, 2, 1, d, d_v, dtype), mask="causal")


@pytest.mark.parametrize("seed", range(300))
def test_random_problem(seed):
    """float64 inputs: every pair is decided as in the reference, whatever the expression."""
    hold_to_reference(*random_problem(np.random.default_rng(10_000 + seed)))


@pytest.mark.parametrize("seed", range(60))
def test_random_problem_over_many_tiles(seed):
    """Tiles that a mask skips, fills or cuts."""
    hold_to_reference(*random_problem(np.random.default_rng(30_000 + seed), MANY_TILES))


def hold_to_reference(q, k, v, options):
    o, lse = onepass.attention(q, k, v, return_lse=True, **options)
    expected, expected_lse = reference.attention(q, k, v, return_lse=True, **options)
    assert error(lse, expected_lse) <= 1e-11 * size(expected_lse)
    assert error(o, expected) <= 1e-10 * size(expected)


def size(x):
    return np.abs(x[np.isfinite(x)]).max(initial=1.0)


@pytest.mark.parametrize("seed", range(100))
def test_random_mask_in_float32(seed):
    """A mask decides alike for every dtype of q."""
    q, k, v, options = random_problem(np.random.default_rng(20_000 + seed))
    options.pop("score", None)
    options["args"] = mentioned(options["args"], options["mask"])
    if "sink" in options:
        options["sink"] = options["sink"].astype(np.float32)
    run(*(x.astype(np.float32) for x in (q, k, v)), **options)


def test_own_definitions():
    q, k, v = inputs(1, 20, 20, 2, 2, 8)
    definitions = "near(n) = abs(q - k) <= n\nfar(n) = !near(n); capped(s) = softcap(s, 3)"
    run(q, k, v, mask="far(2) & causal", score="capped(s) * 2", definitions=definitions)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", (0, 7, 2**64 - 1))
def test_dropout(dtype, seed):
    q, k, _ = inputs(2, 64, 64, 4, 2, 64, dtype=dtype)
    v = np.ascontiguousarray(np.broadcast_to(np.eye(64)[:, None], k.shape[1:])[None].repeat(2, 0))
    options = {"mask": "window(40, 40)", "dropout": 0.48, "seed": seed}
    o, lse = onepass.attention(q, k, v.astype(dtype), return_lse=True, **options)
    expected, expected_lse = reference.attention(q, k, v, return_lse=True, **options)
    assert error(o, expected) <= {2: 2e-2, 4: 1e-5, 8: 1e-12}[q.itemsize]
    assert error(lse, expected_lse) <= 1e-3
    large = expected > 1e-6  # a smaller weight may round to 0
    np.testing.assert_array_equal(o[large] != 0, True)
    np.testing.assert_array_equal(o[expected == 0], 0)
    without = onepass.attention(q, k, v.astype(dtype), mask="window(40, 40)", return_lse=True)
    np.testing.assert_array_equal(lse, without[1])
    np.testing.assert_array_equal(onepass.attention(q, k, v.astype(dtype), dropout=0.0, seed=seed),
                                  onepass.attention(q, k, v.astype(dtype)))


def test_large_logits_and_tiny_weights():
    q, k, v = inputs(1, 9, 200, 1, 1, 8, dtype=np.float32)
    run(q * 200, k, v)
    run(q, k, v, scale=-3.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_repeats_are_bitwise_equal(dtype):
    q, k, v = inputs(2, 65, 130, 4, 2, 64, dtype=dtype)
    first = onepass.attention(q, k, v, mask="causal", return_lse=True)
    for _ in range(9):
        for a, b in zip(first, onepass.attention(q, k, v, mask="causal", return_lse=True)):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("attention", (onepass.attention, reference.attention))
def test_divisors(attention):
    """A literal 0 is refused; a value that turns out to be 0 gives 0."""
    q, k, v = inputs(1, 4, 4, 1, 1, 4)
    for mask in ("k // 0 == 0", "chunked(0)", "q / 0 < 1"):
        with pytest.raises(ValueError, match="divisor"):
            attention(q, k, v, mask=mask)
    expected = attention(q, k, v)
    for n in (0, np.array(0)):
        o = attention(q, k, v, mask="chunked(n)", args={"n": n})
        np.testing.assert_array_equal(o, expected)
        o = attention(q, k, v, mask="k % n == 0 & k // min(k, 0) == 0", args={"n": n})
        np.testing.assert_array_equal(o, expected)


def test_dropout_of_a_chunk():
    """row0, col0 and offset place a chunk in a longer problem's dropout."""
    q, k, v = (np.random.default_rng(5).normal(size=(1, 64, 2, 8)) for _ in range(3))
    keywords = dict(dropout=0.5, seed=3, offset=1 << 40)
    whole = onepass.attention(q, k, v, **keywords)
    later = onepass.attention(q[:, 32:], k, v, row0=32, **keywords)
    np.testing.assert_array_equal(later, whole[:, 32:])
    expected = onepass.reference.attention(q[:, 32:], k[:, 16:], v[:, 16:], row0=32, col0=16,
                                           **keywords)
    found = onepass.attention(q[:, 32:], k[:, 16:], v[:, 16:], row0=32, col0=16, **keywords)
    np.testing.assert_allclose(found, expected, atol=1e-13)
