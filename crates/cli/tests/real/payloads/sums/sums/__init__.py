"""Works out sums as people write them."""

from .evaluator import evaluate
from .lexer import Wrong
from .parser import parse


def work_out(text):
    """The value of a sum; raises Wrong with the place that cannot be read."""
    return evaluate(parse(text))


__all__ = ["Wrong", "work_out"]
