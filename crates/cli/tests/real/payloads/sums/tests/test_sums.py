import contextlib
import io
import unittest
from fractions import Fraction

from sums import work_out
from sums.__main__ import main


class Sums(unittest.TestCase):
    def test_differences(self):
        self.assertEqual(work_out("10 - 2 - 3"), 5)

    def test_one_difference(self):
        self.assertEqual(work_out("5 - 3"), 2)

    def test_quotients_are_exact(self):
        self.assertEqual(work_out("7 / 2 / 2"), Fraction(7, 4))

    def test_powers_and_minus(self):
        self.assertEqual(work_out("-2 ^ 2 + 2 ^ -1"), Fraction(-7, 2))

    def test_brackets(self):
        self.assertEqual(work_out("2 * (3 - (1 - 4))"), 12)


class Program(unittest.TestCase):
    def run_main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
        return code, out.getvalue(), err.getvalue()

    def test_it_prints_the_value(self):
        self.assertEqual(self.run_main("1", "+", "1/2"), (0, "3/2\n", ""))

    def test_it_says_what_is_wrong(self):
        self.assertEqual(self.run_main("1 +"), (1, "", "sums: at 3: a number is missing\n"))
        self.assertEqual(self.run_main("1 / 0")[0], 1)
