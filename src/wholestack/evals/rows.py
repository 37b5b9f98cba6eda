"""Rows of somebody's JSONL file, each usable or refused with a reason; nothing is dropped in silence.

Blank lines, a byte order mark and line ends of Windows are harmless. A line that is not JSON, is no object, holds half
of a surrogate pair anywhere, or a key twice in one object, is refused by itself and does not spoil the file: of two
values of one key every reader takes the one it likes.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from wholestack.record import Record

NOT_JSON = "the line is not a JSON object"
NOT_TEXT = "half of a surrogate pair, which is not text"
KEY_TWICE = "a key stands twice in one object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal(Record):
    """A line, or a question of it, that cannot be used."""

    line: int
    """Counted from 1."""
    reason: str
    """In the words by which refusals are counted."""
    detail: str
    """What exactly is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line that holds an object."""

    line: int
    """Counted from 1."""
    values: Mapping[str, Any]
    """The object as it stands there."""


def read_rows(raw: bytes) -> Iterator[Row | Refusal]:
    """All lines of a file's bytes that are not blank, in order."""
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            yield _row(number, line)


def _row(number: int, line: bytes) -> Row | Refusal:
    try:
        values = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = NOT_TEXT if _is_json_with_surrogates(line) else NOT_JSON
        return Refusal(line=number, reason=reason, detail=NOT_TEXT if reason == NOT_TEXT else f"not JSON: {error}")
    if not isinstance(values, dict):
        return Refusal(line=number, reason=NOT_JSON, detail=f"expected an object, got {type(values).__name__}")
    twice = _key_that_stands_twice(line)
    if twice is not None:
        return Refusal(line=number, reason=KEY_TWICE, detail=f"key {twice[:40]!r} stands twice in one object")
    return Row(line=number, values=values)


class _TwiceError(Exception):
    """Ends the reading of a line; its argument is the key."""


def _key_that_stands_twice(line: bytes) -> str | None:
    """In any object of a line of JSON; msgspec takes the last value and says nothing."""

    def once(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _TwiceError(key)
            seen.add(key)

    try:
        json.loads(line, object_pairs_hook=once, parse_int=str, parse_float=str)
    except _TwiceError as error:
        return str(error.args[0])
    return None


def _is_json_with_surrogates(line: bytes) -> bool:
    """Python reads an escaped half of a pair, which msgspec refuses; so tell it from other damage."""
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        return False
    return any("\ud800" <= letter <= "\udfff" for letter in text)
