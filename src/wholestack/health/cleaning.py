"""Texts and numbers that come from a host, made fit for a terminal, a journal and arithmetic.

A host is not trusted: its text may hold escape sequences that move a cursor or set a title, surrogates that no
encoder takes, numbers that are not finite.
"""

import math
import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with every character that could steer a terminal, or cannot be encoded, replaced by U+FFFD."""
    # Nothing that Python calls printable is among them; most texts are, and a host has thousands.
    return text if text.isprintable() else _CONTROL.sub("\ufffd", text).replace("\n", " ").replace("\t", " ")


def is_number(value: object) -> bool:
    """Whether it is a finite number that a double can hold."""
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:
        return False
