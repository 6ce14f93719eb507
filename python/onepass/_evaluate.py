"""Evaluates an expression over NumPy arrays: bool, int64, and one float dtype.

Masks compute in float32 and scores in float64; a value's dtype is its type in the language. Values
broadcast against (rows, columns): a name of the query side is a column, one of the key side a row.
"""

import difflib

import numpy as np

from ._definitions import collect
from ._syntax import fail, parse

INTEGER_NAMES = ("q", "k", "row", "col", "b", "h", "h_kv", "s_q", "s_kv", "token_q", "token_k")
_RESERVED = {*INTEGER_NAMES, "s", "true", "false", "inf"}
_TYPES = {"b": "bool", "i": "int", "f": "float"}
_FUNCTIONS = {  # name -> number of arguments
    **{"abs": 1, "min": 2, "max": 2, "floor": 1, "where": 3},
    **{"exp": 1, "log": 1, "tanh": 1, "sqrt": 1},
}
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
        self.definitions = collect(definitions)
        self.args = {name: self._argument(name, value) for name, value in (args or {}).items()}

    def _argument(self, name, value):
        if name in _RESERVED:
            raise ValueError(f"args: {name} is a name of the language; choose another name")
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
            return self._number(found, scope) if isinstance(found, tuple) else found
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

    @staticmethod
    def _is_literal_zero(node, scope):
        """Also behind a parameter of a definition, which is bound to the literal itself."""
        if node[0] == "name":
            node = scope.get(node[2])
        return isinstance(node, tuple) and node[0] == "number" and node[2] == 0

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
            index = self._typed(self._value(part, scope), "i", part)
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
        values = [self._node(part, scope) for part in parts]
        if name in _FUNCTIONS and name not in self.definitions:
            return self._function(node, scope)
        if name not in self.definitions:
            self._fail(node, f'"{name}" is not a function here')
        ranks = [value.data.ndim if isinstance(value, _Array) else 0 for value in values]
        for definition in self.definitions[name]:
            if definition.takes(ranks):
                bound = [part if part[0] == "number" else x for part, x in zip(parts, values)]
                inner = self.outer | dict(zip(definition.parameters, bound))
                return self._value(definition.tree, inner)
        self._fail(node, f"{name} takes no {len(ranks)} arguments of ranks {ranks}")

    def _function(self, node, scope):
        _, _, name, parts = node
        if len(parts) != _FUNCTIONS[name]:
            self._fail(node, f"{name} takes {_FUNCTIONS[name]} arguments; {len(parts)} were given")
        if name in _SCORE_ONLY and self.where == "mask":
            self._fail(node, f"{name} is for scores; a mask may not use it")
        if name == "where":
            return self._choose(("choose", node[1], *parts), scope)
        values = self._numbers([self._value(part, scope) for part in parts], node)
        if name in ("min", "max"):
            # One expression for both: NaN if either is NaN, the first argument at a tie.
            a, b = values
            first = a <= b if name == "min" else a >= b
            return np.where(np.isnan(a) | np.isnan(b), a + b, np.where(first, a, b))
        if name == "abs":
            return np.abs(values[0])
        return getattr(np, name)(values[0].astype(self.real))
