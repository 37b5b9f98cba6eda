"""Names with ranges: Slurm's ``gpu[001-128,200],r[1-2]n[01-04]`` and Ansible's ``gpu[001:128:2].example.org``."""

import itertools
import math
import re
import string
from collections.abc import Callable, Iterator, Sequence

from wholestack.errors import InputError

MAX_HOSTS = 100_000
"""A list that stands for more is taken for a slip of the pen."""
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_SLURM_PART = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)
_NUMBERS = re.compile(r"(\d{1,18}):(\d{1,18})(?::(\d{1,9}))?", re.ASCII)
_LETTERS = re.compile(r"([a-zA-Z]):([a-zA-Z])(?::(\d{1,9}))?", re.ASCII)


def expand_slurm(text: str, *, where: str = "") -> list[str]:
    """Every name of a comma-separated list, in its order; brackets that hold a colon are an IPv6 address.

    Args:
        text: For instance ``gpu[001-128,200],login1``.
        where: Named in errors.

    Raises:
        InputError: a bracket or range is malformed, or stands for more than :data:`MAX_HOSTS` names.
    """
    names: list[str] = []
    for item in _split(text, where):
        names.extend(_expand(item, _slurm_range, where, room=MAX_HOSTS - len(names)))
    return names


def expand_ansible(text: str, *, where: str = "") -> list[str]:
    """Every name that one Ansible host pattern stands for.

    Raises:
        InputError: see :func:`expand_slurm`.
    """
    return _expand(text, _ansible_range, where, room=MAX_HOSTS)


class _Range:
    """Numbers with leading zeros, or letters; made only when asked for, so a huge one costs nothing."""

    def __init__(self, numbers: range, write: Callable[[int], str]) -> None:
        self._numbers = numbers
        self._write = write

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        return map(self._write, self._numbers)


def _split(text: str, where: str) -> list[str]:
    """At commas and white space outside brackets."""
    items, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            raise _refusal(text, "brackets do not match", where)
        if depth == 0 and (letter == "," or letter.isspace()):
            items.append(text[start:place])
            start = place + 1
    if depth:
        raise _refusal(text, "a bracket is not closed", where)
    return [item for item in [*items, text[start:]] if item]


def _expand(item: str, parse: Callable[[str], Sequence[_Range] | None], where: str, *, room: int) -> list[str]:
    pieces: list[Sequence[_Range | list[str]]] = []
    end = 0
    for found in _BRACKETS.finditer(item):
        ranges = parse(found[1])
        if ranges is None:
            if ":" not in found[1]:
                raise _refusal(item, f"[{found[1]}] is not a range", where)
            continue  # an address
        pieces += [[[item[end : found.start()]]], ranges]
        end = found.end()
    pieces.append([[item[end:]]])
    count = math.prod(sum(map(len, piece)) for piece in pieces)
    if count > room:
        raise _refusal(item, f"that is {count:,} hosts or more, the most is {MAX_HOSTS:,}", where)
    return ["".join(parts) for parts in itertools.product(*(itertools.chain(*piece) for piece in pieces))]


def _slurm_range(text: str) -> list[_Range] | None:
    ranges = []
    for part in text.split(","):
        found = _SLURM_PART.fullmatch(part.strip())
        if not found:
            return None
        numbers = range(int(found[1]), int(found[2] or found[1]) + 1)
        if not numbers:
            return None
        ranges.append(_numbers(numbers, found[1]))
    return ranges


def _ansible_range(text: str) -> list[_Range] | None:
    found = _NUMBERS.fullmatch(text) or _LETTERS.fullmatch(text)
    step = int(found[3] or 1) if found else 0
    if not found or not step:
        return None
    if found[1].isdigit():
        numbers = range(int(found[1]), int(found[2]) + 1, step)
        return [_numbers(numbers, found[1])] if numbers else None
    first, last = string.ascii_letters.index(found[1]), string.ascii_letters.index(found[2])
    letters = range(first, last + 1, step)
    return [_Range(letters, string.ascii_letters.__getitem__)] if letters else None


def _numbers(numbers: range, first: str) -> _Range:
    """As wide as the first one is written, if that has a leading zero."""
    width = len(first) if first.startswith("0") else 0
    return _Range(numbers, lambda number: f"{number:0{width}d}")


def _refusal(item: str, why: str, where: str) -> InputError:
    return InputError(f"{where + ': ' if where else ''}{item[:80]!r}: {why}", remedy="write for instance gpu[001-128]")
