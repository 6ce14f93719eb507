"""Fixtures of the Python tests."""

import numpy as np
import onepass
import pytest


def _reference(q, k, v, **options):
    return onepass.reference.attention(q, k, v, return_lse=True, **options)


def _library(q, k, v, **options):
    return onepass.attention(q, k, v, return_lse=True, **options)


@pytest.fixture(params=("reference", "library"))
def attend(request):
    """(o, lse) of float64 inputs, by the reference and by the library."""
    return {"reference": _reference, "library": _library}[request.param]


@pytest.fixture
def rng():
    return np.random.default_rng(20)
