import unittest

from sums.lexer import Wrong, pieces


class Lexer(unittest.TestCase):
    def test_numbers_and_signs_with_their_places(self):
        found = list(pieces("12 +3.5"))
        self.assertEqual(found, [("number", "12", 0), ("sign", "+", 3), ("number", "3.5", 4), ("end", "", 7)])

    def test_anything_else_is_wrong_where_it_stands(self):
        with self.assertRaises(Wrong) as caught:
            list(pieces("1 $ 2"))
        self.assertEqual(caught.exception.place, 1)
