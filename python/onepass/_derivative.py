"""Gradients of a score by reverse mode: what arrives at a node is handed down to its operands."""

import numpy as np

from ._evaluate import Expression, _Array


def times(gradient, factor):
    """The product, 0 where either is 0 (even against inf or NaN): such a pair changes nothing."""
    return np.where((gradient == 0) | (factor == 0), 0.0, gradient * factor)


class DifferentiableScore(Expression):
    """A score that, besides its value, gives the gradients of its logit and float arrays."""

    def backward(self, names, gradient):
        """Gradients of sum(gradient * score) for one (sequence, head).

        Parameters
        ----------
        names : dict
            As in a call: the integer names and ``s`` (rows, columns).
        gradient : float64 array (rows, columns)

        Returns
        -------
        ds : float64 array (rows, columns)
        dargs : dict of str to float64 array
            Of each float array that is read, in its own shape.
        """
        self(names)  # sets `outer`, the scope of the tree
        self.ds = np.zeros(gradient.shape)
        self.dargs = {}
        with np.errstate(all="ignore"):
            self._down(self.tree, self.outer, {}, gradient)
        return self.ds, self.dargs

    def _down(self, node, scope, bound, gradient):
        """Hands `gradient`, that of `node`, down.

        `bound` holds the parameters of the definition being read: name -> (node, scope, bound) of
        the call's operand; `scope` holds their values.
        """
        if node[0] == "index":
            return self._down_index(node, scope, bound, gradient)
        if node[0] == "name":
            return self._down_name(node, scope, bound, gradient)
        if node[0] == "call" and node[2] in self.definitions:
            return self._down_definition(node, scope, bound, gradient)
        if self._value(node, scope).dtype.kind != "f":
            return None  # ints and bools stand still
        if node[0] == "choose" or node[:1] + node[2:3] == ("call", "where"):
            condition, a, b = node[2:] if node[0] == "choose" else node[3]
            chosen = self._value(condition, scope)
            self._down(a, scope, bound, np.where(chosen, gradient, 0.0))
            return self._down(b, scope, bound, np.where(chosen, 0.0, gradient))
        for operand, factor in self._factors(node, scope):
            self._down(operand, scope, bound, times(gradient, factor))
        return None

    def _factors(self, node, scope):
        """(operand, d node / d operand) of a float operator or function."""
        if node[0] == "unary":
            return [(node[3], np.float64(-1))]
        if node[0] not in ("binary", "call"):
            return []
        name, parts = node[2], node[3] if node[0] == "call" else node[3:]
        x = [self._value(part, scope).astype(np.float64) for part in parts]
        if len(x) == 1:
            return [(parts[0], _UNARY[name](x[0]))]
        return list(zip(parts, _BINARY[name](*x)))

    def _down_name(self, node, scope, bound, gradient):
        name = node[2]
        if name in bound:
            self._down(bound[name][0], *bound[name][1:], gradient)
        elif name == "s":
            self.ds = self.ds + gradient
        elif name in self.args:
            self._collect(name, (), gradient)
        elif name not in scope:
            self._down_definition((*node[:3], []), scope, bound, gradient)

    def _down_definition(self, node, scope, bound, gradient):
        _, _, name, parts = node
        values = [self._node(part, scope) for part in parts]
        ranks = [value.data.ndim if isinstance(value, _Array) else 0 for value in values]
        definition = next(d for d in self.definitions[name] if d.takes(ranks))
        inner = self.outer | dict(zip(definition.parameters, values))
        operands = [(part, scope, bound) for part in parts]
        self._down(definition.tree, inner, dict(zip(definition.parameters, operands)), gradient)

    def _down_index(self, node, scope, bound, gradient):
        name, inner = node[2], bound
        while name in inner:  # a parameter; an operand that is an array is a name
            (_, _, name), _, inner = inner[name]
        array, inside, where = self._places(node, scope)
        if array.data.size:
            self._collect(name, where, np.where(inside, gradient, 0.0))

    def _collect(self, name, where, gradient):
        argument = self.args[name]
        data = argument.data if isinstance(argument, _Array) else argument
        if data.dtype.kind == "f":
            total = self.dargs.setdefault(name, np.zeros(data.shape))
            if where:
                np.add.at(total, tuple(np.broadcast_to(i, gradient.shape) for i in where), gradient)
            else:
                total += gradient.sum()


def _smaller(x, y):
    """Which of min's operands is taken: both where one is NaN, the first at a tie."""
    nan = np.isnan(x) | np.isnan(y)
    return (x <= y) | nan, (y < x) | nan


def _quotient(x, y):
    return 1 / y, -x / (y * y)


_UNARY = {
    "abs": np.sign,
    "floor": lambda x: np.zeros(np.shape(x)),
    "sqrt": lambda x: 0.5 / np.sqrt(x),
    "exp": np.exp,
    "log": lambda x: 1 / x,
    "tanh": lambda x: 1 - np.tanh(x) ** 2,
}
_BINARY = {
    "+": lambda x, y: (np.float64(1), np.float64(1)),
    "-": lambda x, y: (np.float64(1), np.float64(-1)),
    "*": lambda x, y: (y, x),
    "/": _quotient,
    "//": lambda x, y: (np.float64(0), np.float64(0)),
    "%": lambda x, y: (np.float64(1), -np.floor(x / y)),
    "min": _smaller,
    "max": lambda x, y: _smaller(-x, -y),
}
