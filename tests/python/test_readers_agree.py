"""The library and both references read every text alike: all refuse it, or all give one result."""

import re

import numpy as np
import onepass
import pytest
from expressions import mentioned, random_args, random_mask, random_score
from onepass import reference
from problems import error
from test_references_agree import in_cpp

TOKEN = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\w+|<=|>=|==|!=|//|\S")
STRAY = (
    *("+", "-", "*", "/", "//", "%", "<", "<=", "==", "!=", "&", "|", "!", "?", ":", "(", ")"),
    *("[", "]", ",", "=", ".", "0", "1", "1.", ".5", "0.0", "-0", "2e3", "1e999", "inf", "true"),
    *("q", "k", "s", "b", "h", "row", "count", "flag", "slope", "floats1", "ints2", "nobody"),
    *("abs", "min", "exp", "where", "causal", "window", "lengths", "lengths(count)", "own"),
)
DEFINITIONS = (
    *("", "", "", "own = k <= q", "own(n) = k < n", "own(n) = k < n[b]; own(n) = k < n"),
    *("own(a, b) = a | b\nother = own(causal, q < 2)", "own(n) = chunked(n)", "own = own"),
    *("causal = q < k", "lengths(n) = k <= n", "own(x, x) = x", "own(n) = n[0] < n"),
    "own = nobody",
)


def changed(text, rng):
    """The text with a token or two left out, exchanged, repeated or added."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.integers(1, 3)):
        at, stray = rng.integers(len(tokens)), str(rng.choice(STRAY))
        end = at + rng.integers(2)
        tokens[at:end] = ([], [stray], [tokens[at]] * 2)[rng.integers(3)]
        if not tokens:
            return stray
    return " ".join(tokens)


def random_text(rng):
    """The options of a call whose mask, score and definitions may have no meaning."""
    options = {"mask": random_mask(rng, 2)}
    if rng.random() < 0.4:
        options["score"] = random_score(rng, 2)
    which = str(rng.choice(list(options)))
    if rng.random() < 0.5:
        options[which] = changed(options[which], rng)
    options["definitions"] = str(rng.choice(DEFINITIONS))
    if options["definitions"] and rng.random() < 0.7:
        call = str(rng.choice(("own", "own(3)", "own(0)", "own(ints1)", "own(k < 3, flag)")))
        options["mask"] = f"({options['mask']}) & {call}"
    words = mentioned(random_args(rng), options["mask"], options.get("score", ""))
    return options | {"args": words}


def answer(attention, q, k, v, options):
    try:
        return attention(q, k, v, options)
    except ValueError:
        return None


READERS = {
    "the library": lambda q, k, v, options: onepass.attention(q, k, v, return_lse=True, **options),
    "NumPy": lambda q, k, v, options: reference.attention(q, k, v, return_lse=True, **options),
    "C++": in_cpp,
}


def hold_to_each_other(options):
    """Weights of every pair, seen through v = the identity."""
    pytest.importorskip("_reference_cpp")
    rng = np.random.default_rng(5)
    q = rng.integers(-3, 4, (2, 5, 2, 2)).astype(np.float64)
    k = rng.integers(-3, 4, (2, 9, 1, 2)).astype(np.float64)
    v = np.ascontiguousarray(np.broadcast_to(np.eye(9)[None, :, None], (2, 9, 1, 9)))
    options = options | {"scale": 0.5}
    answers = {name: answer(read, q, k, v, options) for name, read in READERS.items()}
    refused = {name for name, one in answers.items() if one is None}
    assert refused in (set(), set(READERS)), f"refused by {refused} only: {options}"
    if refused:
        return False
    o, lse = answers["NumPy"]
    for name in ("the library", "C++"):
        size = np.abs(lse[np.isfinite(lse)]).max(initial=1.0)
        assert error(answers[name][1], lse) <= 1e-11 * size, (name, options)
        assert error(answers[name][0], o) <= 1e-10, (name, options)
    return True


@pytest.mark.parametrize("seed", range(40))
def test_random_texts(seed):
    rng = np.random.default_rng(70_000 + seed)
    accepted = [hold_to_each_other(random_text(rng)) for _ in range(20)]
    assert any(accepted) and not all(accepted)


TEXTS = {
    **{"k < 1.": True, "k < 1.e1": True, "k < .5": False, "k < 1e": False, "k < 1.5.2": False},
    **{"k < 1e999": False, "k < 1e-999": False, "k <\n 1": True, "k < 1\f": False},
    **{"q / 0 < 1": False, "q / 0.0 < 1": False, "q // -0 == 1": False, "q % 0.0 < 1": False},
    **{"q / 1e-60 < 1": False, "chunked(0)": False, "chunked(-0)": False, "q / -(0) < 1": False},
    **{"q // (1 - 1) == 0": True, "q // min(k, 0) == 0": True, "causal()": False, "abs": False},
    **{"lengths(2)": True, "1 / min(-0.0, 0.0) < 0": True, "1 / min(-0.0, 0.0 * q) < 0": True},
    **{"1 / max(0.0, -0.0) < 0": True, "1 / max(0.0 * k, -0.0) < 0": True},
}


@pytest.mark.parametrize("mask", TEXTS)
def test_texts(mask):
    assert hold_to_each_other({"mask": mask}) == TEXTS[mask]


ZEROS = (0, 0.0, np.array(0), np.array(0.0))


@pytest.mark.parametrize("n", ZEROS)
@pytest.mark.parametrize("mask", ("chunked(n)", "q // n == 0", "q % n < 1", "q / n > 1"))
def test_an_argument_may_be_0_as_a_divisor(mask, n):
    assert hold_to_each_other({"mask": mask, "args": {"n": n}})


@pytest.mark.parametrize("n", (2, np.array(2), np.array([2, 7])))
def test_lengths_takes_a_number_or_one_for_each_sequence(n):
    assert hold_to_each_other({"mask": "lengths(n)", "args": {"n": n}})


@pytest.mark.parametrize(
    "definitions, mask, meant",
    [
        ("causal = k < 1", "full", False),
        ("lengths(x) = k < x", "full", False),
        ("lengths(x) = k < x[b]", "full", False),
        ("lengths(x, y) = k < x + y", "lengths(1, 2)", True),
        ("abs = true", "full", False),
        ("f(abs) = true", "full", False),
        ("f((x)) = x", "full", False),
        ("f(\nx) = x", "f(true)", True),
        ("f = nobody < 1", "full", False),
        ("loop = loop", "full", True),
        ("loop = loop", "loop", False),
        ("f(n) = chunked(n)", "f(0)", False),
        ("f(n) = n", "q // f(0) == 0", True),
        ("zero = 0", "q // zero == 0", True),
    ],
)
def test_definitions(definitions, mask, meant):
    assert hold_to_each_other({"definitions": definitions, "mask": mask}) == meant


@pytest.mark.parametrize("score", ("m[s > 0 ? 1 : 1]", "f(s)", "m[s - s < 1 ? 0 : 1]"))
def test_an_index_may_not_use_s(score):
    options = {"score": score, "definitions": "f(x) = m[x > 0 ? 0 : 0]"}
    assert not hold_to_each_other(options | {"args": {"m": np.arange(2.0)}})
