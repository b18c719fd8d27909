"""From a tree to its value."""

from fractions import Fraction

SIGNS = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "^": lambda left, right: left ** right,
    "negate": lambda value: -value,
}


def evaluate(tree):
    sign, *parts = tree
    if sign == "number":
        return Fraction(parts[0])
    return SIGNS[sign](*map(evaluate, parts))
