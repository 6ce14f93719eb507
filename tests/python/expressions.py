"""Random expressions of the language, typed so that every one of them is legal."""

import re

import numpy as np

_SIDES = ("q", "k", "row", "col")
_NAMES = (*_SIDES, *_SIDES, "b", "h", "h_kv", "s_q", "s_kv", "token_q", "token_k")
_MASKS = (
    *("full", "null", "causal", "window({}, {})", "chunked({})", "sliding_window_causal({})"),
    *("sliding_window_noncausal({})", "chunked_causal({})", "prefix({})", "sink_window({}, {})"),
)


def random_args(rng):
    """Named arguments of every kind, rank and dtype that an expression can read."""
    args = {
        "flag": bool(rng.integers(2)),
        "count": int(rng.choice([-5, -2, 1, 2, 5, 8])),
        "slope": float(np.round(rng.normal(), 3)),
        "scalar": np.array(rng.integers(-3, 9)),
    }
    for rank in (1, 2, 3, 4):
        shape = tuple(int(rng.choice([1, 2, 3, 9])) for _ in range(rank))
        args[f"floats{rank}"] = np.round(rng.normal(size=shape), 3)
        args[f"ints{rank}"] = rng.integers(-2, 12, shape)
        args[f"bools{rank}"] = rng.integers(2, size=shape).astype(bool)
    return args


class Writer:
    """Writes random text of a wanted type."""

    def __init__(self, rng, kind):
        self.rng = rng
        self.kind = kind

    def pick(self, choices):
        return choices[self.rng.integers(len(choices))]

    def array(self, base, depth):
        rank = int(self.rng.integers(1, 5))
        indices = ", ".join(self.integer(min(depth, 1)) for _ in range(rank))
        return f"{base}{rank}[{indices}]"

    def boolean(self, depth):
        if depth <= 0:
            return self.pick(("true", "false", "causal", "flag", "k <= q"))
        form = self.rng.integers(9)
        if form < 2:
            return f"({self.boolean(depth - 1)} {self.pick('&|')} {self.boolean(depth - 1)})"
        if form == 2:
            return f"!({self.boolean(depth - 1)})"
        if form == 3:
            return f"({self.boolean(depth - 1)} ? {self.boolean(depth - 1)} : {self.boolean(0)})"
        if form == 4:
            return self.array("bools", depth)
        if form == 5:
            name = self.pick(_MASKS)
            return name.format(*(self.divisor() for _ in range(name.count("{"))))
        terms = [self.number(depth - 1) for _ in range(self.pick((2, 2, 3)))]
        text = terms[0]
        for term in terms[1:]:
            text += f" {self.pick(('<', '<=', '>', '>=', '==', '!='))} {term}"
        return f"({text})"

    def number(self, depth):
        return self.integer(depth) if self.rng.integers(3) else self.real(depth)

    def integer(self, depth):
        if depth <= 0:
            form = self.rng.integers(8)
            if form < 5:
                return self.pick(_NAMES)
            if form < 7:
                return str(self.rng.integers(0, 20))
            return self.pick(("count", "scalar"))
        form = self.rng.integers(8)
        if form < 4:
            op = self.pick(("+", "-", "*", "//", "%"))
            right = self.divisor() if op in ("//", "%") else self.integer(depth - 1)
            return f"({self.integer(depth - 1)} {op} {right})"
        if form == 4:
            return f"-{self.integer(0)}"
        if form == 5:
            return self.array("ints", depth)
        if form == 6:
            a, b = self.integer(depth - 1), self.integer(depth - 1)
            return self.pick((f"min({a}, {b})", f"max({a}, {b})", f"abs({a})"))
        return f"where({self.boolean(depth - 1)}, {self.integer(depth - 1)}, {self.integer(0)})"

    def divisor(self):
        """Never a constant 0, which is refused; a value of 0 at run time is welcome."""
        form = self.rng.integers(4)
        if form == 0:
            return self.pick(_NAMES)
        if form == 1:
            return self.pick(("count", "scalar"))
        return str(self.rng.integers(1, 20)) if form == 2 else self.array("ints", 0)

    def real(self, depth):
        if depth <= 0:
            leaves = ["0.5", "1e-1", "2.25", "slope"]
            return self.pick(leaves + ["s"] * 6 if self.kind == "score" else leaves)
        form = self.rng.integers(9)
        if form < 4:
            op = self.pick(("+", "-", "*", "/", "//", "%"))
            right = self.real(depth - 1) if op in ("+", "-", "*") else self.divisor()
            return f"({self.number(depth - 1)} {op} {right})"
        if form == 4:
            return self.array("floats", depth)
        if form == 5:
            a, b = self.real(depth - 1), self.number(depth - 1)
            return self.pick((f"min({a}, {b})", f"max({a}, {b})", f"abs({a})", f"floor({a})"))
        if form == 6:
            return f"({self.boolean(depth - 1)} ? {self.real(depth - 1)} : {self.real(0)})"
        if form == 7 and self.kind == "score":
            a = self.real(depth - 1)
            return self.pick((f"tanh({a})", f"exp(-abs({a}))", f"sqrt(abs({a}))"))
        return f"-{self.real(depth - 1)}"


def random_mask(rng, depth=3):
    return Writer(rng, "mask").boolean(depth)


def random_score(rng, depth=3):
    return "s + " + Writer(rng, "score").real(depth)


def mentioned(args, *texts):
    """Those arguments that the texts name; the library refuses others."""
    words = set(re.findall(r"\w+", " ".join(texts)))
    return {name: value for name, value in args.items() if name in words}


SMALL, MANY_TILES = (0, 1, 2, 3, 7, 9, 17), (63, 130, 200, 257, 300)


def random_problem(rng, lengths=SMALL):
    """(q, k, v, options) in float64; logits are exact, so that comparisons cannot tip."""
    b, h_kv, group = (int(rng.integers(1, 4)) for _ in range(3))
    s_q, s_kv = (int(rng.choice(lengths)) for _ in range(2))
    d, d_v = (int(rng.choice([1, 2, 4, 5])) for _ in range(2))
    h_q = h_kv * group
    q = rng.integers(-3, 4, (b, s_q, h_q, d)).astype(np.float64)
    k = rng.integers(-3, 4, (b, s_kv, h_kv, d)).astype(np.float64)
    v = rng.normal(size=(b, s_kv, h_kv, d_v))
    mask = random_mask(rng) if rng.random() < 0.9 else "full"
    options = {"mask": mask, "scale": float(rng.choice([0.5, 0.25, -0.5, 0.0]))}
    if rng.random() < 0.6:
        options["score"] = random_score(rng)
    options["args"] = mentioned(random_args(rng), mask, options.get("score", ""))
    if rng.random() < 0.3:
        options["align"] = "top_left"
    if rng.random() < 0.3:
        options["q_start"] = rng.integers(-5, 20, b)
    if rng.random() < 0.3:
        options["k_start"] = rng.integers(-5, 20, b)
    if rng.random() < 0.3:
        options["sink"] = rng.normal(size=h_q)
    return q, k, v, options
