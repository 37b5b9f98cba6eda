"""Numbers as people write them, read exactly: ``$1,234.50`` is 1234.5, ``3/4`` is three quarters, ``1,5`` is nothing.

Every number is a ``Fraction``, so that no two ways to write one differ by rounding. A decimal comma is not guessed
at: ``1,5`` reads as two numbers. A percent sign, a currency and a unit are left aside, for ``50`` and ``50%`` are the
same answer to "how many percent"; 0.5 and 50% are not.
"""

import re
import unicodedata
from fractions import Fraction

_MOST_DIGITS = 400
"""Longer ones are no answer, and 1e999999999 would fill the memory."""

_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[-+])?(?:[$€£¥]\s?)?(?P<sign2>-)?"
    r"(?P<whole>\d{1,3}(?:,\d{3})+(?!\d)|\d+)?(?P<part>\.\d+)?(?P<exponent>[eE][-+]?\d{1,3})?"
    r"(?:\s?/\s?(?P<under>\d+)(?![\d.]))?(?!\d|[eE][-+]?\d)"
)


def find_numbers(text: str) -> list[Fraction]:
    """Every number in a text, in its order.

    Example:
        >>> [str(number) for number in find_numbers("from $1,200.50 to 3/4 of −2e3")]
        ['2401/2', '3/4', '-2000']
    """
    plain = unicodedata.normalize("NFKC", text).replace("\u2212", "-").replace("\u2044", "/")
    found = (_read(match) for match in _NUMBER.finditer(plain))
    return [number for number in found if number is not None]


def parse_number(text: str) -> Fraction | None:
    """The one number in a text; ``None`` where there is none or more than one."""
    found = find_numbers(text)
    return found[0] if len(found) == 1 else None


def _read(match: re.Match[str]) -> Fraction | None:
    whole, part = match["whole"], match["part"]
    if whole is None and part is None:
        return None
    exponent = match["exponent"] or ""
    digits = (whole or "0").replace(",", "") + (part or "")
    if len(digits) + abs(int(exponent[1:] or 0)) > _MOST_DIGITS:
        return None
    value = Fraction(digits + exponent)
    if match["under"] is not None:
        if len(match["under"]) > _MOST_DIGITS or int(match["under"]) == 0:
            return None
        value /= int(match["under"])
    return -value if "-" in (match["sign"], match["sign2"]) else value
