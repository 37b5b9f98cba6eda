"""Records: frozen dataclasses that cross a process or reach a disk, JSON in and out.

Two traps of msgspec are closed here and nowhere else: for dataclasses it ignores unknown keys (a misspelt key
would vanish), and it writes NaN and infinity as ``null`` (a failed number would come back as "absent"). A third
is why records have slots: without them msgspec leaves defaults on the class and then does not write them.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
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
    _refuse_non_finite(plain, type(record).__name__)
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
    _refuse_unknown(body, msgspec.to_builtins(record), where)
    return record


def digest(*parts: Any) -> str:
    """A stable 16-hex-digit identity of plain values, records or bytes: the first 64 bits of a SHA-256."""
    canonical = [to_builtins(part) if isinstance(part, Record) else part for part in parts]
    return hashlib.sha256(msgspec.json.encode(canonical, order="deterministic")).hexdigest()[:16]


def _refuse_non_finite(value: Any, path: str) -> None:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RecordError(f"{path} is {value}: a record holds finite numbers only")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            _refuse_non_finite(inner, f"{path}.{key}")
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for index, inner in enumerate(value):
            _refuse_non_finite(inner, f"{path}[{index}]")


def _refuse_unknown(raw: Any, known: Any, path: str) -> None:
    """A key that the record did not take over when it was built from ``raw`` is unknown to it."""
    if isinstance(raw, dict) and isinstance(known, dict):
        for key in raw:
            if key not in known:
                raise RecordError(f"{path}: unknown key {key!r}", remedy=f"known are: {', '.join(map(str, known))}")
            _refuse_unknown(raw[key], known[key], f"{path}.{key}")
    elif isinstance(raw, list) and isinstance(known, list | tuple):
        for index, (left, right) in enumerate(zip(raw, known, strict=False)):
            _refuse_unknown(left, right, f"{path}[{index}]")
