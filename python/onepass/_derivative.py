"""Gradients of a score by forward mode: each node's value and what moves it."""

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
        ds, dargs = np.zeros(gradient.shape), {}
        with np.errstate(all="ignore"):
            for source, slope in self._slopes(self.tree, self.outer, {}).items():
                moved = np.broadcast_to(times(gradient, slope), gradient.shape)
                if source is _LOGIT:
                    ds = ds + moved
                else:
                    self._collect(source, moved, dargs)
        return ds, dargs

    def _slopes(self, node, scope, bound):
        """d node / d source of each source that moves it: the logit, or a `_Read`.

        `bound` holds the parameters of the definition being read: name -> (node, scope, bound) of
        the call's operand; `scope` holds their values.
        """
        if node[0] == "index":
            return self._slopes_of_index(node, scope, bound)
        if node[0] == "name":
            return self._slopes_of_name(node, scope, bound)
        if node[0] == "call" and node[2] in self.definitions:
            return self._slopes_of_definition(node, scope, bound)
        if self._value(node, scope).dtype.kind != "f":
            return {}  # ints and bools stand still
        if node[0] == "choose" or node[:1] + node[2:3] == ("call", "where"):
            condition, *branches = node[2:] if node[0] == "choose" else node[3]
            chosen = self._value(condition, scope)
            a, b = (self._slopes(branch, scope, bound) for branch in branches)
            sources = dict.fromkeys([*a, *b])
            return {x: np.where(chosen, a.get(x, 0.0), b.get(x, 0.0)) for x in sources}
        slopes = {}
        for operand, factor in self._factors(node, scope):
            for source, slope in self._slopes(operand, scope, bound).items():
                slopes[source] = slopes.get(source, 0.0) + times(slope, factor)
        return slopes

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

    def _slopes_of_name(self, node, scope, bound):
        name = node[2]
        if name in bound:
            return self._slopes(bound[name][0], *bound[name][1:])
        if name == "s":
            return {_LOGIT: np.float64(1)}
        if name in self.args:
            return self._slopes_of_read(name, np.bool_(True), ())
        if name not in scope:
            return self._slopes_of_definition((*node[:3], []), scope, bound)
        return {}

    def _slopes_of_definition(self, node, scope, bound):
        _, _, name, parts = node
        values = [self._node(part, scope) for part in parts]
        ranks = [value.data.ndim if isinstance(value, _Array) else 0 for value in values]
        definition = next(d for d in self.definitions[name] if d.takes(ranks))
        inner = self.outer | dict(zip(definition.parameters, values))
        operands = [(part, scope, bound) for part in parts]
        return self._slopes(definition.tree, inner, dict(zip(definition.parameters, operands)))

    def _slopes_of_index(self, node, scope, bound):
        name, inner = node[2], bound
        while name in inner:  # a parameter; an operand that is an array is a name
            (_, _, name), _, inner = inner[name]
        array, inside, where = self._places(node, scope)
        return self._slopes_of_read(name, inside, where) if array.data.size else {}

    def _slopes_of_read(self, name, inside, where):
        if self._data(name).dtype.kind != "f":
            return {}
        return {_Read(name, inside, where): np.where(inside, 1.0, 0.0)}

    def _data(self, name):
        argument = self.args[name]
        return argument.data if isinstance(argument, _Array) else argument

    def _collect(self, read, gradient, dargs):
        data = self._data(read.name)
        total = dargs.setdefault(read.name, np.zeros(data.shape))
        if read.where:
            places = tuple(np.broadcast_to(i, gradient.shape) for i in read.where)
            np.add.at(total, places, gradient)
        else:
            total += gradient.sum()


class _Read:
    """Which element of a float array each pair reads. Equal reads are one source."""

    def __init__(self, name, inside, where):
        self.name, self.where = name, where
        self.key = (name, *((x.shape, x.tobytes()) for x in map(np.asarray, (inside, *where))))

    def __eq__(self, other):
        return isinstance(other, _Read) and self.key == other.key

    def __hash__(self):
        return hash(self.key)


_LOGIT = "s"


def _smaller(x, y):
    """Which of min's operands is taken: both where one is NaN, the first at a tie."""
    nan = np.isnan(x) | np.isnan(y)
    return (x <= y) | nan, (y < x) | nan


def _quotient(x, y):
    return 1 / y, -(x / y) / y


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
