"""The NumPy reference and the C++ one, written apart, agree over the language."""

import numpy as np
import onepass
import pytest
from expressions import random_problem
from onepass import reference
from problems import error

reference_cpp = pytest.importorskip("_reference_cpp")


def in_cpp(q, k, v, options):
    """The call with its arrays in the few types that the test module takes."""
    options = dict(options)
    for name in ("q_start", "k_start", "sink"):
        if name in options:
            options[name] = np.atleast_1d(options[name]).tolist()
    return reference_cpp.attention(q, k, v, **options)


@pytest.mark.parametrize("seed", range(600))
def test_random_problem(seed):
    rng = np.random.default_rng(seed)
    q, k, v, options = random_problem(rng)
    if seed % 3 == 0:
        options |= {"dropout": 0.4, "seed": int(rng.integers(2**63)) * 2 + 1}
        options |= {"offset": int(rng.integers(2**63)), "row0": 32, "col0": 16}
    o, lse = reference.attention(q, k, v, return_lse=True, **options)
    o_cpp, lse_cpp = in_cpp(q, k, v, options)
    largest = np.abs(o[np.isfinite(o)]).max(initial=1.0)
    assert error(lse_cpp, lse) <= 1e-12 * np.abs(lse[np.isfinite(lse)]).max(initial=1.0)
    assert error(o_cpp, o) <= 1e-11 * largest


def by_cpp(q, k, v, **options):
    return in_cpp(q, k, v, options)


def by_numpy(q, k, v, **options):
    return reference.attention(q, k, v, return_lse=True, **options)


def by_library(q, k, v, **options):
    return onepass.attention(q, k, v, return_lse=True, **options)


@pytest.mark.parametrize("attention", (by_numpy, by_cpp, by_library))
def test_a_dropped_pair_leaves_its_value_out_but_not_its_logit(attention):
    rng = np.random.default_rng(3)
    q, k, v = (rng.normal(size=(2, 20, 2, 4)) for _ in range(3))
    options = {"dropout": 0.5, "seed": 9}
    kept = reference.dropout_mask((2, 2, 20, 20), 0.5, 9).transpose(0, 2, 1, 3)  # (b, s_q, h, s_kv)
    o, lse = attention(q, k, v, **options)
    v[:, 7] = np.nan
    got, same_lse = attention(q, k, v, **options)
    assert not kept[..., 7].all() and kept[..., 7].any()
    np.testing.assert_array_equal(got, np.where(kept[..., 7, None], np.nan, o))
    np.testing.assert_array_equal(same_lse, lse)
    k[:, 7] = np.nan
    got, got_lse = attention(q, k, v, **options)
    assert np.isnan(got_lse).all() and np.isnan(got).all()


@pytest.mark.parametrize("attention", (by_numpy, by_cpp, by_library))
@pytest.mark.parametrize("mask", ("full", "k > q"))
def test_an_infinite_sink_leaves_no_weight(attention, mask):
    q = np.arange(24.0).reshape(1, 6, 2, 2)
    o, lse = attention(q, q, q, mask=mask, sink=np.array([np.inf, 0.5]))
    assert (o[:, :, 0] == 0).all() and (lse[:, 0] == np.inf).all()
    assert np.isfinite(o[:, :, 1]).all() and np.isfinite(lse[:, 1]).all()


REFUSED = (
    *("1 +", "k <= ", "kk", "q", "window(1)", "q // 0", "chunked(0)", "q[1]", "s < 1", "", "@"),
    *("exp(1.0) > 0", "true & 1", "!q", "k < q ? 1 : 2"),
)


@pytest.mark.parametrize("mask", REFUSED)
def test_both_refuse(mask):
    q = np.ones((1, 2, 1, 1))
    for attention in (reference.attention, reference_cpp.attention):
        with pytest.raises(ValueError):
            attention(q, q, q, mask=mask)
