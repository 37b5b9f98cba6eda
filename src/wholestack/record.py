"""Records: frozen dataclasses that cross a process or reach a disk, JSON in and out.

Two traps of msgspec are closed here and nowhere else: for dataclasses it ignores unknown keys (a misspelt key
would vanish), and it writes NaN and infinity as ``null`` (a failed number would come back as "absent"). A third
is why records have slots: without them msgspec leaves defaults on the class and then does not write them.
"""

import hashlib
import math
from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

import msgspec

from wholestack.errors import RecordError

R = TypeVar("R", bound="Record")


class Record:
    """Base of every Record; a subclass is a ``@dataclass(frozen=True, slots=True, kw_only=True)``.

    A subclass that stands alone in a file states ``SCHEMA = "name/version"``; it is written under the key
    ``schema`` and checked on reading. Records nested in others carry no schema of their own.

    Example:
        >>> @dataclass(frozen=True, slots=True, kw_only=True)
        ... class Point(Record):
        ...     SCHEMA: ClassVar[str] = "point/1"
        ...     x: float
        >>> from_json(Point, to_json(Point(x=1.0)))
        Point(x=1.0)
    """

    __slots__ = ()
    SCHEMA: ClassVar[str] = ""


def to_builtins(record: Record) -> dict[str, Any]:
    """Plain dicts, lists and scalars of a record, ``schema`` first where it has one.

    Raises:
        RecordError: a number is NaN or infinite; the message names its path.
    """
    plain: dict[str, Any] = msgspec.to_builtins(record)
    if (found := _not_finite(plain)) is not None:
        raise RecordError(f"{type(record).__name__}{found}: a record holds finite numbers only")
    return {"schema": record.SCHEMA, **plain} if record.SCHEMA else plain


def to_json(record: Record, *, indent: int = 0) -> bytes:
    """JSON of a record: one line, or with ``indent`` spaces a readable document ending in a newline."""
    line = msgspec.json.encode(to_builtins(record))
    return msgspec.json.format(line, indent=indent) + b"\n" if indent else line


def from_json(kind: type[R], data: bytes | str, *, where: str = "") -> R:
    """Decode one record.

    Args:
        kind: The Record class that is expected.
        data: One JSON document.
        where: Named in errors, for instance ``results.jsonl:12``.

    Raises:
        RecordError: not JSON, wrong type, unknown key, or another schema.
    """
    try:
        return from_builtins(kind, msgspec.json.decode(data), where=where)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(f"{where or kind.__name__}: not JSON: {error}") from error


def from_builtins(kind: type[R], raw: Any, *, where: str = "") -> R:
    """Build a record from plain dicts and lists, as strict as :func:`from_json`."""
    where = where or kind.__name__
    if not isinstance(raw, dict):
        raise RecordError(f"{where}: expected an object, got {type(raw).__name__}")
    body = dict(raw)
    if kind.SCHEMA and body.pop("schema", None) != kind.SCHEMA:
        raise RecordError(
            f"{where}: schema is {raw.get('schema')!r}, this version reads {kind.SCHEMA!r}",
            remedy="use the version of wholestack that wrote the file",
        )
    try:
        record = msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise RecordError(f"{where}: {error}") from error
    if (found := _unknown(body, msgspec.to_builtins(record))) is not None:
        place, key, known = found
        raise RecordError(f"{where}{place}: unknown key {key!r}", remedy=f"known are: {', '.join(map(str, known))}")
    return record


def digest(*parts: Any) -> str:
    """A stable 16-hex-digit identity of plain values, records or bytes: the first 64 bits of a SHA-256."""
    canonical = [to_builtins(part) if isinstance(part, Record) else part for part in parts]
    return hashlib.sha256(msgspec.json.encode(canonical, order="deterministic")).hexdigest()[:16]


_PLAIN = (str, int, bool, type(None))


def _not_finite(value: Any) -> str | None:
    """Where below ``value`` a number is not finite, and what it is; made up on the way back, since none mostly is."""
    if isinstance(value, float):
        return None if math.isfinite(value) else f" is {value}"
    if isinstance(value, dict):
        for key, inner in value.items():
            if type(inner) not in _PLAIN and (found := _not_finite(inner)) is not None:
                return f".{key}{found}"
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            if type(inner) not in _PLAIN and (found := _not_finite(inner)) is not None:
                return f"[{index}]{found}"
    return None


def _unknown(raw: Any, known: Any) -> tuple[str, str, Iterable[Any]] | None:
    """Where ``raw`` has a key that the record built from it did not take over, the key, and those that it knows."""
    if isinstance(raw, dict) and isinstance(known, dict):
        for key, inner in raw.items():
            if key not in known:
                return "", key, known
            if type(inner) not in _PLAIN and (found := _unknown(inner, known[key])) is not None:
                return f".{key}{found[0]}", found[1], found[2]
    elif isinstance(raw, list) and isinstance(known, list | tuple):
        for index, (left, right) in enumerate(zip(raw, known, strict=False)):
            if type(left) not in _PLAIN and (found := _unknown(left, right)) is not None:
                return f"[{index}]{found[0]}", found[1], found[2]
    return None
