"""Rows of somebody's JSONL file, each usable or refused with a reason; nothing is dropped in silence.

Blank lines, a byte order mark and line ends of Windows are harmless. A line that is not JSON, is no object, or holds
half of a surrogate pair anywhere is refused by itself and does not spoil the file.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from wholestack.evals.reading import read_file
from wholestack.record import Record

NOT_JSON = "the line is not a JSON object"
NOT_TEXT = "half of a surrogate pair, which is not text"


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


def read_rows(path: Path) -> Iterator[Row | Refusal]:
    """All lines of a file that are not blank, in order.

    Raises:
        InputError: the file cannot be read.
    """
    raw = read_file(path).removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(raw.split(b"\n"), start=1):
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
    return Row(line=number, values=values)


def _is_json_with_surrogates(line: bytes) -> bool:
    """Python reads an escaped half of a pair, which msgspec refuses; so tell it from other damage."""
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        return False
    return any("\ud800" <= letter <= "\udfff" for letter in text)
