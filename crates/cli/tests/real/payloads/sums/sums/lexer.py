"""From text to numbers and signs, each with its place."""

import re

PIECE = re.compile(r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<sign>[-+*/^()]))")


class Wrong(ValueError):
    """The text is no sum."""

    def __init__(self, place, why):
        super().__init__(f"at {place}: {why}")
        self.place = place


def pieces(text):
    """Pairs of kind and text, then the end."""
    place = 0
    text = text.rstrip()
    while place < len(text):
        found = PIECE.match(text, place)
        if found is None:
            raise Wrong(place, f"`{text[place]}` is neither number nor sign")
        kind = found.lastgroup
        yield kind, found[kind], found.start(kind)
        place = found.end()
    yield "end", "", place
