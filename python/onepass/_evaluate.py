"""Evaluates an expression over NumPy arrays: bool, int64, and one float dtype.

Masks compute in float32 and scores in float64; a value's dtype is its type in the language. Values
broadcast against (rows, columns): a name of the query side is a column, one of the key side a row.
"""

import difflib

import numpy as np

from ._definitions import collect
from ._syntax import FUNCTIONS, INTEGER_NAMES, fail, parse

_TYPES = {"b": "bool", "i": "int", "f": "float"}
_SCORE_ONLY = ("exp", "log", "tanh", "sqrt")
_COMPARE = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


class _Array:
    """A named array of one dim or more: not a value until it is indexed."""

    def __init__(self, data):
        self.data = data


class _Bound:
    """What a parameter of a definition stands for."""

    def __init__(self, value, literal_zero, reads_logit):
        self.value = value
        self.literal_zero = literal_zero  # refused where it is a divisor
        self.reads_logit = reads_logit  # refused where it is part of an index


class Expression:
    """A mask (bool) or a score (float), evaluated for one (sequence, head) at a time.

    Parameters
    ----------
    text : str
    where : {"mask", "score"}
        What it is; also its name in errors.
    args : dict of str to bool, int, float or array, optional
    definitions : str, optional
        Definitions of the caller's own.
    """

    def __init__(self, text, where, args=None, definitions=None):
        self.where = where
        self.real = np.float32 if where == "mask" else np.float64
        self.tree = parse(text, where)
        self.definitions = collect(definitions, args or ())
        self.args = {name: self._argument(value) for name, value in (args or {}).items()}
        self.logit_reads = 0
        self.expanding = []
        # Every operand is evaluated, so one evaluation anywhere checks every type.
        self(dict.fromkeys(INTEGER_NAMES, 0) | ({"s": 0.0} if where == "score" else {}))

    def _argument(self, value):
        data = np.asarray(value)
        if data.dtype.kind != "b":
            data = data.astype(np.int64) if data.dtype.kind in "iu" else self._round(data)
        return _Array(data) if data.ndim else data

    def _round(self, data):
        return data.astype(np.float64).astype(self.real)

    def __call__(self, names):
        """The value over all pairs; `names` holds the integer names and, for a score, ``s``."""
        with np.errstate(all="ignore"):
            outer = {name: np.asarray(value) for name, value in names.items()} | self.args
            self.outer = outer
            value = self._value(self.tree, outer)
            if self.where == "mask":
                return self._typed(value, "b", self.tree)
            return self._numbers([value, self.real(0)], self.tree)[0]

    def _fail(self, node, what):
        fail(self.where, node[1], what)

    def _typed(self, value, kind, node):
        if value.dtype.kind != kind:
            self._fail(node, f"found {_TYPES[value.dtype.kind]}; {_TYPES[kind]} was expected")
        return value

    def _numbers(self, values, node):
        """Numbers brought to one type: int when all are, else float."""
        if any(value.dtype.kind == "b" for value in values):
            self._fail(node, "found bool; a number was expected")
        if all(value.dtype.kind == "i" for value in values):
            return values
        return [value.astype(self.real) for value in values]

    def _value(self, node, scope):
        """The value of a node; an array that is not indexed is refused."""
        value = self._node(node, scope)
        if isinstance(value, _Array):
            rank = value.data.ndim
            self._fail(node, f"{node[2]} has {rank} dims; index it as {node[2]}[...]")
        return value

    def _node(self, node, scope):
        return getattr(self, "_" + node[0])(node, scope)

    def _number(self, node, scope):
        value = node[2]
        return self.real(value) if isinstance(value, float) else np.asarray(value)[()]

    def _name(self, node, scope):
        name = node[2]
        if name in scope:
            found = scope[name]
            if isinstance(found, _Bound):
                self.logit_reads += found.reads_logit
                return found.value
            self.logit_reads += name == "s"
            return found
        if name in self.definitions:
            return self._call((*node[:3], []), scope)
        known = [*scope, *self.definitions]
        close = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        self._fail(node, f'"{name}" is not a name here; names: {" ".join(known)}{hint}')

    def _unary(self, node, scope):
        _, _, op, inner = node
        value = self._value(inner, scope)
        if op == "!":
            return ~self._typed(value, "b", inner)
        return -self._numbers([value], inner)[0]

    def _binary(self, node, scope):
        _, _, op, left, right = node
        a, b = self._value(left, scope), self._value(right, scope)
        if op in "&|":
            a, b = self._typed(a, "b", left), self._typed(b, "b", right)
            return a & b if op == "&" else a | b
        a, b = self._numbers([a, b], node)
        if op in ("//", "%", "/") and self._is_literal_zero(right, scope):
            self._fail(right, "the divisor is 0")
        if op in "+-*":
            return {"+": np.add, "-": np.subtract, "*": np.multiply}[op](a, b)
        if op == "/":
            return a.astype(self.real) / b.astype(self.real)
        if a.dtype.kind == "i":  # NumPy's integer division by 0 gives 0 too
            return a // b if op == "//" else a % b
        floor = np.floor(a / b)
        return floor if op == "//" else a - b * floor

    def _is_literal_zero(self, node, scope):
        """Also behind a minus and behind a parameter of a definition."""
        if node[0] == "unary":
            return self._is_literal_zero(node[3], scope)
        if node[0] == "name":
            bound = scope.get(node[2])
            return isinstance(bound, _Bound) and bound.literal_zero
        return node[0] == "number" and self._number(node, scope) == 0

    def _compare(self, node, scope):
        values = [self._value(operand, scope) for operand in node[3]]
        result = np.bool_(True)
        for op, a, b in zip(node[2], values, values[1:]):
            if op not in ("==", "!=") or a.dtype.kind != "b" or b.dtype.kind != "b":
                a, b = self._numbers([a, b], node)
            result = result & _COMPARE[op](a, b)
        return result

    def _choose(self, node, scope):
        condition, a, b = (self._value(part, scope) for part in node[2:])
        self._typed(condition, "b", node[2])
        if a.dtype.kind != "b" or b.dtype.kind != "b":
            a, b = self._numbers([a, b], node)
        return np.where(condition, a, b)

    def _places(self, node, scope):
        """(array, inside, index of each dim) of a read; an index outside is brought to the edge."""
        _, _, name, parts = node
        array = self._name((*node[:2], name), scope)
        rank = array.data.ndim if isinstance(array, _Array) else 0
        if rank != len(parts):
            self._fail(node, f"{name} has {rank} dims and {len(parts)} indices")
        inside, where = np.bool_(True), []
        for part, size in zip(parts, array.data.shape):
            reads = self.logit_reads
            index = self._typed(self._value(part, scope), "i", part)
            if self.logit_reads > reads:
                self._fail(part, "an index may not use s")
            if size == 1:
                index = index * 0
            inside = inside & (0 <= index) & (index < size)
            where.append(index)
        where = [np.clip(i, 0, max(size - 1, 0)) for i, size in zip(where, array.data.shape)]
        return array, inside, where

    def _index(self, node, scope):
        array, inside, where = self._places(node, scope)
        if array.data.size == 0:
            return np.zeros(np.broadcast_shapes(*(i.shape for i in where)), array.data.dtype)
        return np.where(inside, array.data[tuple(where)], array.data.dtype.type(0))

    def _call(self, node, scope):
        _, _, name, parts = node
        if name in FUNCTIONS:
            return self._function(node, scope)
        if name not in self.definitions:
            self._fail(node, f'"{name}" is not a function here')
        bound = [self._bind(part, scope) for part in parts]
        ranks = [x.value.data.ndim if isinstance(x.value, _Array) else 0 for x in bound]
        for definition in self.definitions[name]:
            if definition.takes(ranks):
                return self._expand(node, definition, bound)
        self._fail(node, f"{name} takes no {len(ranks)} arguments of ranks {ranks}")

    def _bind(self, part, scope):
        reads = self.logit_reads
        value = self._node(part, scope)
        return _Bound(value, self._is_literal_zero(part, scope), self.logit_reads > reads)

    def _expand(self, node, definition, bound):
        if definition in self.expanding:
            self._fail(node, f"{definition.name} uses itself")
        self.expanding.append(definition)
        inner = self.outer | dict(zip(definition.parameters, bound))
        value = self._value(definition.tree, inner)
        self.expanding.pop()
        return value

    def _function(self, node, scope):
        _, _, name, parts = node
        if len(parts) != FUNCTIONS[name]:
            self._fail(node, f"{name} takes {FUNCTIONS[name]} arguments; {len(parts)} were given")
        if name in _SCORE_ONLY and self.where == "mask":
            self._fail(node, f"{name} is for scores; a mask may not use it")
        if name == "where":
            return self._choose(("choose", node[1], *parts), scope)
        values = self._numbers([self._value(part, scope) for part in parts], node)
        if name in ("min", "max"):
            # One expression for both: NaN if either is NaN, the second argument of 0 and -0.
            a, b = values
            first = a < b if name == "min" else a > b
            return np.where(np.isnan(a) | np.isnan(b), a + b, np.where(first, a, b))
        if name == "abs":
            return np.abs(values[0])
        return getattr(np, name)(values[0].astype(self.real))
