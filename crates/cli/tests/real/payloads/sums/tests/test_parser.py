import unittest

from sums.lexer import Wrong
from sums.parser import parse


def number(text):
    return ("number", text)


class Parser(unittest.TestCase):
    def test_a_row_is_read_from_the_left(self):
        self.assertEqual(parse("9-2-3"), ("-", ("-", number("9"), number("2")), number("3")))

    def test_powers_are_read_from_the_right(self):
        self.assertEqual(parse("2^3^2"), ("^", number("2"), ("^", number("3"), number("2"))))

    def test_products_before_sums(self):
        self.assertEqual(parse("1+2*3"), ("+", number("1"), ("*", number("2"), number("3"))))

    def test_what_is_missing_or_too_many_is_named(self):
        for text in ("1+", "(1", "1)", ""):
            with self.subTest(text), self.assertRaises(Wrong):
                parse(text)
