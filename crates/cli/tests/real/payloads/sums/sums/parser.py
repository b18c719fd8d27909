"""From numbers and signs to a tree."""

from .lexer import Wrong, pieces


class Parser:
    def __init__(self, text):
        self.pieces = list(pieces(text))
        self.at = 0

    def next(self):
        piece = self.pieces[self.at]
        self.at += 1
        return piece

    def sees(self, signs):
        return self.pieces[self.at][0] == "sign" and self.pieces[self.at][1] in signs

    def binary(self, signs, below):
        """A row of the same rank, from the left."""
        left = below()
        while self.sees(signs):
            sign = self.next()[1]
            left = (sign, left, below())
        return left

    def whole(self):
        return self.binary("+-", self.product)

    def product(self):
        return self.binary("*/", self.negated)

    def negated(self):
        if self.sees("-"):
            self.next()
            return ("negate", self.negated())
        return self.power()

    def power(self):
        left = self.single()
        if self.sees("^"):
            self.next()
            return ("^", left, self.negated())
        return left

    def single(self):
        kind, text, place = self.next()
        if kind == "number":
            return ("number", text)
        if text == "(":
            inner = self.whole()
            kind, text, place = self.next()
            if text != ")":
                raise Wrong(place, "a bracket is not closed")
            return inner
        raise Wrong(place, "a number is missing")


def parse(text):
    parser = Parser(text)
    tree = parser.whole()
    kind, text, place = parser.next()
    if kind != "end":
        raise Wrong(place, f"`{text}` is one too many")
    return tree
