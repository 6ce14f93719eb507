"""The NumPy reference and the C++ one, written apart, agree over the language."""

import numpy as np
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
