"""The named masks and scores, in the language itself, and the choice between overloads."""

from ._syntax import CONSTANTS, FUNCTIONS, NAMES, fail, parse_definition, split_definitions

_BUILT_IN = """
full = true
null = true
causal = k <= q
window(l, r) = (l < 0 | k >= q - l) & (r < 0 | k <= q + r)
chunked(n) = q // n == k // n
sliding_window_causal(n) = q - n < k <= q
sliding_window_noncausal(n) = k > q - n
chunked_causal(n) = causal & chunked(n)
prefix(n) = k < n | k <= q
prefix(n) = k < n[b] | k <= q
document(ids) = ids[b, q] == ids[b, k]
document(ids) = ids[token_q] == ids[token_k]
lengths(n) = k < n
lengths(n) = k < n[b]
sink_window(n, l) = k < n | window(l, 0)
dense(m) = m[b, h, row, col]
softcap(s, c) = c * tanh(s / c)
alibi(s, slopes) = s - slopes[h] * abs(q - k)
alibi(s, slopes) = s - slopes[b, h] * abs(q - k)
bias(s, m) = s + m[b, h, row, col]
"""


class Definition:
    """One overload: its parameters, the rank at which each is read, and its tree."""

    def __init__(self, name, parameters, tree, where):
        self.name = name
        self.parameters = parameters
        self.tree = tree
        self.ranks = {}
        self.alone = set()  # parameters that are read as a number
        if name in (*NAMES, *FUNCTIONS, *CONSTANTS):
            fail(where, 1, f"{name} has a meaning of its own; definitions take other names")
        for parameter in parameters:
            if parameter in (*FUNCTIONS, *CONSTANTS) or parameters.count(parameter) > 1:
                fail(where, 1, f"{parameter} has another meaning; parameters take other names")
        self._find_uses(tree, where)
        for name in self.alone & self.ranks.keys():
            fail(where, 1, f"{name} is used as an array and as a number")

    def _find_uses(self, node, where):
        if node[0] == "name" and node[2] in self.parameters:
            self.alone.add(node[2])
        if node[0] == "index" and node[2] in self.parameters:
            rank = len(node[3])
            if self.ranks.setdefault(node[2], rank) != rank:
                fail(where, node[1], f"{node[2]} is used with {rank} dims and with another number")
        passes_on = node[0] == "call" and node[2] not in FUNCTIONS
        for part in parts(node):
            if not (passes_on and part[0] == "name"):  # whatever its rank
                self._find_uses(part, where)

    def takes(self, ranks):
        """Whether arguments of these ranks (0 = a number) fit."""
        return len(ranks) == len(self.parameters) and all(
            self.ranks.get(name, 0 if name in self.alone else rank) == rank
            and not (rank == 0 and name in self.ranks)
            for name, rank in zip(self.parameters, ranks)
        )

    def overlaps(self, other):
        """Whether some call could mean either."""
        pairs = list(zip(self._known_ranks(), other._known_ranks()))
        return len(self.parameters) == len(other.parameters) and all(
            None in pair or pair[0] == pair[1] for pair in pairs
        )

    def _known_ranks(self):
        return [self.ranks.get(x, 0 if x in self.alone else None) for x in self.parameters]


def parts(node):
    """The nodes right below one."""
    flat = [x for part in node[2:] for x in (part if isinstance(part, list) else [part])]
    return [x for x in flat if isinstance(x, tuple)]


def collect(text=None, args=()):
    """name -> overloads: the built-in definitions and the caller's `text`, for named `args`."""
    table = {}
    for where, source in (("built-in definitions", _BUILT_IN), ("definitions", text or "")):
        added = []
        for line in split_definitions(source):
            if line.strip(" \t\n\r"):
                new = Definition(*parse_definition(line, where), where)
                overloads = table.setdefault(new.name, [])
                if any(new.overlaps(old) for old in overloads):
                    fail(where, 1, f"{new.name} is defined already; choose another name")
                overloads.append(new)
                added.append(new)
        for new in added:
            _check_words(new, new.tree, table, args, where)
    for name in args:
        if name in (*NAMES, *FUNCTIONS, *CONSTANTS) or is_constant(name, table):
            raise ValueError(f"args: {name} is a name of the language; choose another name")
    return table


def is_constant(name, table):
    """Whether a definition of this name takes no arguments."""
    return any(not definition.parameters for definition in table.get(name, ()))


def _check_words(definition, node, table, args, where):
    """Finds unknown words at once, not only where a definition is used."""
    kind, column, word = node[:3]
    if kind == "call":
        known = word in FUNCTIONS or word in table
    elif kind in ("name", "index"):
        known = word in definition.parameters or word in args
        known = known or (kind == "name" and (word in NAMES or is_constant(word, table)))
    else:
        known = True
    if not known:
        fail(where, column, f'"{word}" is not a name here')
    for part in parts(node):
        _check_words(definition, part, table, args, where)
