"""The named masks and scores, in the language itself, and the choice between overloads."""

import re

from ._syntax import parse_definition

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

    def __init__(self, parameters, tree):
        self.parameters = parameters
        self.tree = tree
        self.ranks = {}
        self._find_ranks(tree)

    def _find_ranks(self, node):
        if node[0] == "index" and node[2] in self.parameters:
            self.ranks[node[2]] = len(node[3])
        for part in node[2:]:
            if isinstance(part, tuple):
                self._find_ranks(part)
            elif isinstance(part, list):
                for item in part:
                    if isinstance(item, tuple):
                        self._find_ranks(item)

    def takes(self, ranks):
        """Whether arguments of these ranks (0 = a value) fit."""
        return len(ranks) == len(self.parameters) and all(
            self.ranks.get(name, rank if self._passed_on(name, self.tree) else 0) == rank
            for name, rank in zip(self.parameters, ranks)
        )

    def _passed_on(self, name, node):
        """Whether a parameter goes on into another definition, whatever its rank."""
        if node[0] == "call" and any(x[0] == "name" and x[2] == name for x in node[3]):
            return True
        parts = [x for part in node[2:] for x in (part if isinstance(part, list) else [part])]
        return any(isinstance(x, tuple) and self._passed_on(name, x) for x in parts)


def collect(text=None):
    """name -> overloads: the built-in definitions, with the caller's `text` in front."""
    table = {}
    for where, source in (("definitions", text or ""), ("built-in definitions", _BUILT_IN)):
        found = {}
        for line in re.split(r"[;\n]", source):
            if line.strip():
                name, parameters, tree = parse_definition(line, where)
                found.setdefault(name, []).append(Definition(parameters, tree))
        for name, overloads in found.items():
            table.setdefault(name, overloads)
    return table
