"""The wiring plan: one cable a row, two ends each.

CSV with a header (comma, semicolon or tab), TOML (``[[cable]]``) or JSON (a list, or ``{"cable": [...]}``), with the
same names. ``a``, ``a_port``, ``b`` and ``b_port`` are needed; every other column of :data:`COLUMNS` may be left out.
"""

import csv
import io
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from wholestack.errors import InputError
from wholestack.health.cleaning import printable
from wholestack.record import Record

NEEDED = ("a", "a_port", "b", "b_port")
COLUMNS = {
    "a": "one end: name of a host or switch, or a GUID",
    "a_port": "its port",
    "b": "the other end",
    "b_port": "its port",
    "a_rack": "where a is",
    "a_unit": "rack unit of a",
    "b_rack": "where b is",
    "b_unit": "rack unit of b",
    "rail": "which rail the cable belongs to",
    "label": "what is written on the cable",
    "length_m": "its length",
    "lot": "when or with which others it was made",
    "part_number": "its product",
    "width": "lanes that the link should have, such as 4x",
    "speed": "speed that it should have, such as NDR",
}
LONGEST = 200
"""Characters of a field."""
MOST_CABLES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEnd(Record):
    """One end as the plan writes it."""

    device: str
    port: str
    rack: str = ""
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.device} {self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cable(Record):
    """One planned cable."""

    where: str
    """``line 7``, or ``cable 7`` of TOML and JSON."""
    a: PlanEnd
    b: PlanEnd
    rail: str = ""
    label: str = ""
    length_m: str = ""
    lot: str = ""
    part_number: str = ""
    width: str = ""
    speed: str = ""

    @property
    def ends(self) -> tuple[PlanEnd, PlanEnd]:
        """Both."""
        return self.a, self.b

    def __str__(self) -> str:
        return f"{self.label}: {self.a} - {self.b}" if self.label else f"{self.a} - {self.b}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All cables, and where each device stands."""

    name: str
    """Of the file."""
    cables: tuple[Cable, ...]
    places: Mapping[str, tuple[str, str]]
    """Rack and unit by device, in lower case."""


def read_plan(content: bytes, *, name: str) -> Plan:
    """Read a plan.

    Args:
        content: Of the file; UTF-8, with or without a byte order mark, any line ends.
        name: Of the file; ``.toml`` and ``.json`` say the form, everything else is CSV.

    Raises:
        InputError: one line that names the line: not UTF-8, empty, unknown or missing column, a row of another length,
            an end without name or port, an end that is in two cables, a cable with both ends the same, a device in
            two racks.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"{name}:{line}: is not UTF-8", remedy="save the plan as UTF-8") from error
    if not text.strip():
        raise InputError(f"{name}: is empty", remedy=f"write a header ({','.join(NEEDED)}) and a row a cable")
    if name.lower().endswith((".toml", ".json")):
        rows = _tables(text, name)
    else:
        rows = _csv(text, name)
    cables: list[Cable] = []
    for where, row in rows:
        if len(cables) == MOST_CABLES:
            raise InputError(f"{name}: has more than {MOST_CABLES:,} cables")
        cables.append(_cable(row, name, where))
    if not cables:
        raise InputError(f"{name}: has no cable", remedy="write a row a cable")
    _refuse_doubles(cables, name)
    return Plan(name=name, cables=tuple(cables), places=_places(cables, name))


def _csv(text: str, name: str) -> Iterator[tuple[str, dict[str, str]]]:
    first = next(line for line in text.splitlines() if line.strip())
    delimiter = next((each for each in (",", ";", "\t") if each in first), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    line = 1
    try:
        for fields in reader:
            where, line = f"line {line}", reader.line_num + 1
            if not any(field.strip() for field in fields) or fields[0].lstrip().startswith("#"):
                continue
            if not header:
                header = [field.strip().lower() for field in fields]
                _refuse_columns(header, f"{name}: {where}")
            elif len(fields) != len(header):
                raise InputError(f"{name}: {where}: has {len(fields)} fields, the header has {len(header)}")
            else:
                yield where, {key: field.strip() for key, field in zip(header, fields, strict=True)}
    except csv.Error as error:
        raise InputError(f"{name}: line {line}: {error}", remedy="see to quotes and line ends there") from error


def _tables(text: str, name: str) -> Iterator[tuple[str, dict[str, str]]]:
    try:
        found = tomllib.loads(text) if name.lower().endswith(".toml") else msgspec.json.decode(text)
    except (tomllib.TOMLDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{name}: {error}") from error
    rows = found.get("cable") if isinstance(found, dict) and set(found) <= {"cable"} else found
    if not isinstance(rows, list):
        raise InputError(f"{name}: is no list of cables", remedy="write [[cable]] tables (TOML) or a list (JSON)")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not all(type(value) in (str, int, float) for value in row.values()):
            raise InputError(f"{name}: cable {number}: is no table of texts and numbers")
        _refuse_columns(list(row), f"{name}: cable {number}")
        yield f"cable {number}", {key: str(value).strip() for key, value in row.items()}


def _refuse_columns(header: list[str], where: str) -> None:
    for place, column in enumerate(header):
        if column not in COLUMNS:
            raise InputError(f"{where}: unknown column {printable(column)[:40]!r}", remedy=f"use {', '.join(COLUMNS)}")
        if column in header[:place]:
            raise InputError(f"{where}: column {column!r} is there twice")
    for column in NEEDED:
        if column not in header:
            raise InputError(f"{where}: column {column!r} is missing", remedy=f"{', '.join(NEEDED)} are needed")


def _cable(row: dict[str, str], name: str, where: str) -> Cable:
    for column, value in row.items():
        if len(value) > LONGEST or printable(value) != value:
            raise InputError(f"{name}: {where}: {column} is longer than {LONGEST} characters or not printable")
        if column in NEEDED and not value:
            raise InputError(f"{name}: {where}: {column} is empty", remedy="each end needs a device and a port")
    a, b = (
        PlanEnd(
            device=row[side],
            port=row[f"{side}_port"],
            rack=row.get(f"{side}_rack", ""),
            unit=row.get(f"{side}_unit", ""),
        )
        for side in "ab"
    )
    more = {
        key: row[key] for key in ("rail", "label", "length_m", "lot", "part_number", "width", "speed") if key in row
    }
    return Cable(where=where, a=a, b=b, **more)


def _refuse_doubles(cables: list[Cable], name: str) -> None:
    seen: dict[tuple[str, str], Cable] = {}
    for cable in cables:
        for end in cable.ends:
            earlier = seen.setdefault((end.device.casefold(), end.port.casefold()), cable)
            if earlier is cable and end is cable.b and str(cable.a).casefold() == str(cable.b).casefold():
                raise InputError(f"{name}: {cable.where}: both ends are {end}")
            if earlier is not cable:
                raise InputError(
                    f"{name}: {cable.where}: {end} has a cable already in {earlier.where}", remedy="one cable an end"
                )


def _places(cables: list[Cable], name: str) -> dict[str, tuple[str, str]]:
    places: dict[str, tuple[str, str]] = {}
    for cable in cables:
        for end in cable.ends:
            if end.rack or end.unit:
                earlier = places.setdefault(end.device.casefold(), (end.rack, end.unit))
                if earlier != (end.rack, end.unit):
                    here, there = (
                        f"rack {rack or '-'} unit {unit or '-'}" for rack, unit in (earlier, (end.rack, end.unit))
                    )
                    raise InputError(f"{name}: {cable.where}: {end.device} is in {there}, before in {here}")
    return places
