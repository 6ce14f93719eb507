"""The mask and score language as text: tokens, grammar, tree.

A tree node is a tuple ``(kind, column, ...)`` with the 1-based column where it starts:
``number value``, ``name text``, ``unary op x``, ``binary op x y``, ``compare [op...] [x...]``,
``choose c a b``, ``index name [x...]``, ``call name [x...]``.
"""

import re

INTEGER_NAMES = ("q", "k", "row", "col", "b", "h", "h_kv", "s_q", "s_kv", "token_q", "token_k")
NAMES = (*INTEGER_NAMES, "s")
CONSTANTS = ("true", "false", "inf")
FUNCTIONS = {  # name -> number of arguments
    **{"abs": 1, "min": 2, "max": 2, "floor": 1, "where": 3},
    **{"exp": 1, "log": 1, "tanh": 1, "sqrt": 1},
}
_SPACE = " \t\n\r"
_TOKEN = re.compile(
    r"[ \t\n\r]*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<op><=|>=|==|!=|//|[-+*/%<>!&|?:(),\[\]=]))",
    re.ASCII,
)
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class ExpressionError(ValueError):
    """A malformed expression; the message names the argument and the column."""


def fail(where, column, what):
    raise ExpressionError(f"{where}, column {column}: {what}")


def tokenize(text, where):
    """List of (kind, text, column), closed by an ("end", "", column) token."""
    tokens, at = [], 0
    while text[at:].strip(_SPACE):
        match = _TOKEN.match(text, at)
        if match is None:
            column = at + len(text[at:]) - len(text[at:].lstrip(_SPACE)) + 1
            fail(where, column, f'"{text[column - 1]}" is not a character of the language')
        kind = match.lastgroup
        tokens.append((kind, match.group(kind), match.start(kind) + 1))
        at = match.end()
    return tokens + [("end", "", len(text) + 1)]


class _Parser:
    """Recursive descent, one method a level of precedence, loosest first."""

    def __init__(self, text, where):
        self.where = where
        self.tokens = tokenize(text, where)
        self.at = 0

    def peek(self, *texts):
        kind, text, _ = self.tokens[self.at]
        return kind == "op" and text in texts

    def take(self):
        token = self.tokens[self.at]
        self.at += 1
        return token

    def expect(self, text):
        kind, found, column = self.take()
        if kind != "op" or found != text:
            fail(self.where, column, f'found {self.say(kind, found)}; "{text}" was expected')

    @staticmethod
    def say(kind, text):
        return "the end" if kind == "end" else f'"{text}"'

    def word(self, expected):
        kind, text, column = self.take()
        if kind != "name":
            fail(self.where, column, f"found {self.say(kind, text)}; {expected} was expected")
        return text

    def end(self):
        kind, text, column = self.tokens[self.at]
        if kind != "end":
            fail(self.where, column, f"found {self.say(kind, text)}; the end was expected")

    def expression(self):
        condition = self.either()
        if not self.peek("?"):
            return condition
        self.take()
        chosen = self.expression()
        self.expect(":")
        return ("choose", condition[1], condition, chosen, self.expression())

    def left_to_right(self, operators, operand):
        left = operand()
        while self.peek(*operators):
            op = self.take()[1]
            left = ("binary", left[1], op, left, operand())
        return left

    def either(self):
        return self.left_to_right(("|",), self.both)

    def both(self):
        return self.left_to_right(("&",), self.comparison)

    def comparison(self):
        operands, operators = [self.sum()], []
        while self.peek(*_COMPARISONS):
            operators.append(self.take()[1])
            operands.append(self.sum())
        return ("compare", operands[0][1], operators, operands) if operators else operands[0]

    def sum(self):
        return self.left_to_right(("+", "-"), self.product)

    def product(self):
        return self.left_to_right(("*", "/", "//", "%"), self.unary)

    def unary(self):
        if self.peek("-", "!"):
            _, op, column = self.take()
            return ("unary", column, op, self.unary())
        return self.primary()

    def primary(self):
        kind, text, column = self.take()
        if kind == "number":
            return ("number", column, number(text, self.where, column))
        if kind == "op" and text == "(":
            inside = self.expression()
            self.expect(")")
            return inside
        if kind != "name":
            found = self.say(kind, text)
            fail(self.where, column, f"found {found}; a number, a name or '(' was expected")
        if text in ("true", "false"):
            return ("number", column, text == "true")
        if text == "inf":
            return ("number", column, float("inf"))
        if self.peek("["):
            return ("index", column, text, self.sequence("[", "]"))
        if self.peek("("):
            return ("call", column, text, self.sequence("(", ")"))
        return ("name", column, text)

    def sequence(self, opening, closing):
        self.expect(opening)
        items = [self.expression()]
        while self.peek(","):
            self.take()
            items.append(self.expression())
        self.expect(closing)
        return items


def number(text, where, column):
    """An int (below 2^63) or a float (of float64's range)."""
    if text.isdigit():
        if int(text) >= 2**63:
            fail(where, column, f"{text} does not fit 64 bits")
        return int(text)
    value = float(text)
    lost = value == 0 and re.search("[1-9]", re.split("[eE]", text)[0])
    if value == float("inf") or lost:
        fail(where, column, f"{text} does not fit float64")
    return value


def parse(text, where):
    """The tree of one expression; `where` names it in errors."""
    parser = _Parser(text, where)
    tree = parser.expression()
    parser.end()
    return tree


def split_definitions(text):
    """The definitions of a text: separated by ; or, outside brackets, by the end of a line."""
    depth, start = 0, 0
    for at, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == ";" or (character == "\n" and depth == 0):
            yield text[start:at]
            depth, start = 0, at + 1
    yield text[start:]


def parse_definition(text, where):
    """(name, parameters, tree) of ``name(a, b) = expression`` or ``name = expression``."""
    parser = _Parser(text, where)
    name, parameters = parser.word("the name of a definition"), []
    if parser.peek("("):
        while not parameters or parser.peek(","):
            parser.take()
            parameters.append(parser.word("the name of a parameter"))
        parser.expect(")")
    parser.expect("=")
    tree = parser.expression()
    parser.end()
    return name, parameters, tree
