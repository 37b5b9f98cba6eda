"""What a baseboard management controller (BMC) kept and measures: ``ipmitool sel`` and ``ipmitool sdr`` or ``sensor``.

Layouts (ipmitool 1.8.18 and 1.8.19, with and without ``-c``): ``sel elist`` and ``sel list`` differ only in the name of
the sensor, which ``list`` gives as ``#0x63``. Dates are month first, with two or four digits of the year, in 1.8.19
with a time zone. Before the BMC's clock is set, an entry says ``Pre-Init`` and seconds since the BMC started.
"""

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from wholestack.health.formats.sysfs import whole
from wholestack.health.probe import UnreadableError

EARLIEST = calendar.timegm((2010, 1, 1, 0, 0, 0, 0, 0, 0))
"""A BMC that dates an entry before this had lost its clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry of the event log."""

    at: float | None
    """Seconds since the epoch as the BMC's clock was; ``None`` where it had none."""
    sensor: str
    """Type and name or number, ``Power Supply PS1 Status``, ``Power Supply #0x63``."""
    what: str
    asserted: bool
    line: str
    is_critical: bool = False
    """Whether the BMC itself calls it so; the IPMI event log has no word on that."""


_EVENT = re.compile(
    r"^[ \t]*[0-9a-f]{1,4}[ \t]*([|,])[ \t]*(Pre-Init|[0-9]{2}/[0-9]{2}/(?:[0-9]{4}|[0-9]{2}))[ \t]*"
    r"[|,]([^|,\n]{0,24})[|,](.+)$",
    re.MULTILINE | re.IGNORECASE,
)


def looks_like_sel(text: str) -> bool:
    """An entry among the first lines, or the words that there is none."""
    return "SEL has no entries" in text[:2000] or _EVENT.search(text[:20_000]) is not None


def read_sel(text: str) -> list[Event]:
    """Every entry, oldest first; ipmitool's own complaints between them are passed over.

    Raises:
        UnreadableError: no entry, although the log does not say that it is empty.
    """
    found = [_event(words) for words in _EVENT.finditer(whole(text))]
    if not found and "SEL has no entries" not in text:
        raise UnreadableError("no entry")
    return found


def _event(words: re.Match[str]) -> Event:
    """``number | date | time | sensor | what | Asserted``; a reading may follow, a module's name stand in brackets."""
    sensor, *rest = (column.strip() for column in words[4][:1000].split(words[1]))
    ended = "Deasserted" if "Deasserted" in rest else "Asserted" if "Asserted" in rest else ""
    what = rest[: rest.index(ended)] if ended else rest
    return Event(
        at=_epoch(words[2], words[3].strip()),
        sensor=sensor[:100],
        what=" ".join(filter(None, what))[:200],
        asserted=ended != "Deasserted",
        line=words[0].strip()[:300],
    )


def _epoch(date: str, clock: str) -> float | None:
    day = _day(date)
    words = re.match(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?: ([AP])M)?", clock)
    if day is None or words is None:
        return None
    hour = int(words[1]) % 12 + 12 * (words[4] == "P") if words[4] else int(words[1])
    at = day + hour * 3600 + int(words[2]) * 60 + int(words[3])
    return float(at) if at >= EARLIEST else None


@lru_cache(maxsize=4096)
def _day(date: str) -> int | None:
    """Midnight, seconds since the epoch."""
    found = re.fullmatch(r"([0-9]{2})/([0-9]{2})/([0-9]{2}|[0-9]{4})", date)
    if found is None:
        return None
    month, day, year = (int(part) for part in found.groups())
    # strptime's rule: 69 to 99 are of the last century.
    year += 0 if len(found[3]) == 4 else 2000 if year < 69 else 1900
    if not (1 <= month <= 12 and 1 <= day <= 31 and year >= 1970):
        return None
    return calendar.timegm((year, month, day, 0, 0, 0, 0, 0, 0))


def looks_like_sel_time(text: str) -> bool:
    """A date and a time, or the seconds of a clock that was never set."""
    return re.search(r"^[ \t]*(?:[0-9]{2}/[0-9]{2}/[0-9]{2,4} |S\+ ?[0-9])", text, re.MULTILINE) is not None


def read_sel_time(text: str) -> float | None:
    """The BMC's clock, seconds since the epoch; ``None`` if it was never set.

    Raises:
        UnreadableError: a date that is none.
    """
    if re.search(r"^[ \t]*S\+", text, re.MULTILINE):
        return None
    found = re.search(r"^[ \t]*([0-9]{2}/[0-9]{2}/[0-9]{2,4}) ([0-9].{7,20})$", text, re.MULTILINE)
    if found is None:
        raise UnreadableError("no date")
    return _epoch(found[1], found[2])


_POWER = re.compile(r"^Chassis Power is (on|off)[ \t]*$", re.MULTILINE)


def looks_like_power(text: str) -> bool:
    """The one line of ``chassis power status``."""
    return _POWER.search(text) is not None


def read_power(text: str) -> str:
    """``on`` or ``off``, of ``chassis power status``."""
    found = _POWER.search(text)
    return found[1] if found else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensor:
    """One sensor."""

    name: str
    number: str
    """``63`` in hexadecimal where the layout has it."""
    entity: str
    """``10.2`` where the layout has it: kind and instance (10 is a power supply), since names repeat."""
    status: str
    """``ok``; ``nc``, ``cr`` or ``nr`` beyond a non-critical, critical or non-recoverable limit; ``ns``: no reading."""
    value: float | None
    unit: str
    states: str
    """Words of a discrete sensor, ``Presence detected, Failure detected``; without a reading empty."""
    line: str


_STATUS = re.compile(r"[lu]?(?:ok|nc|cr|nr)|ns|na|us")
_SILENT = ("no reading", "na", "disabled", "not readable", "unknown")
_POWER_SUPPLY_BITS = ("Presence detected", "Failure detected", "Predictive failure", "Power Supply AC lost")


def looks_like_sensors(text: str) -> bool:
    """A row in one of the layouts among the first lines."""
    return any(_sensor(line) is not None for line in text[:8000].split("\n")[:60])


def read_sensors(text: str) -> list[Sensor]:
    """Every sensor of ``sdr elist``, ``sdr``, ``-c sdr`` or ``sensor``.

    Raises:
        UnreadableError: a row that is in none of these layouts.
    """
    rows = [line for line in whole(text).split("\n") if "|" in line or line.count(",") >= 3]
    found = [sensor for line in rows if (sensor := _sensor(line)) is not None]
    if not found or len(found) != len(rows):
        raise UnreadableError(f"{len(rows) - len(found)} of {len(rows)} rows are in no known layout")
    return found


def _sensor(line: str) -> Sensor | None:
    columns = [column.strip()[:200] for column in line.split("|" if "|" in line else ",")]
    layouts = (_extended, _plain, _comma, _full)
    return next((sensor for layout in layouts if (sensor := layout(columns, line)) is not None), None)


def _extended(columns: Sequence[str], line: str) -> Sensor | None:
    """``name | 63h | ok | 10.1 | reading``; with commas the same."""
    if len(columns) < 5 or not re.fullmatch(r"[0-9A-Fa-f]{2}h", columns[1]) or not _STATUS.fullmatch(columns[2]):
        return None
    place = (columns[1][:2].lower(), columns[3])
    return _made(columns[0], ", ".join(columns[4:]), columns[2], line, place=place)


def _plain(columns: Sequence[str], line: str) -> Sensor | None:
    """``name | reading | ok``."""
    if len(columns) != 3 or not _STATUS.fullmatch(columns[2]):
        return None
    return _made(columns[0], _worded(columns[0], columns[1]), columns[2], line)


def _comma(columns: Sequence[str], line: str) -> Sensor | None:
    """``name,reading,unit,ok``."""
    if len(columns) != 4 or not _STATUS.fullmatch(columns[3]):
        return None
    return _made(columns[0], _worded(columns[0], f"{columns[1]} {columns[2]}".strip()), columns[3], line)


def _full(columns: Sequence[str], line: str) -> Sensor | None:
    """``name | reading | unit | ok | six limits``; a discrete sensor has its states as bits instead of a status."""
    if len(columns) != 10:
        return None
    name, reading, unit, status = columns[:4]
    if unit == "discrete" and (bits := re.fullmatch(r"0x([0-9a-f]{2})[0-9a-f]{2}", status)):
        return _made(name, _power_supply_states(name, int(bits[1], 16)), "ok", line)
    if not _STATUS.fullmatch(status):
        return None
    return _made(name, f"{reading} {unit}", "ns" if reading == "na" else status, line)


def _worded(name: str, reading: str) -> str:
    """Plain ``sdr`` shows the states of a discrete sensor as bits."""
    bits = re.fullmatch(r"0x([0-9a-f]{1,2})", reading)
    return _power_supply_states(name, int(bits[1], 16)) if bits else reading


def _power_supply_states(name: str, bits: int) -> str:
    """Words for the bits of a power supply; what another discrete sensor's bits mean, this layout does not say."""
    if not re.match(r"PSU?[ _]?\d|.*(?:power supply|psu)", name, re.IGNORECASE):
        return f"states {bits:#04x}"
    return ", ".join(words for bit, words in enumerate(_POWER_SUPPLY_BITS) if bits >> bit & 1)


def _made(name: str, reading: str, status: str, line: str, *, place: tuple[str, str] = ("", "")) -> Sensor:
    """A discrete sensor may have a reading before its states: ``95 Watts, Presence detected``."""
    first, _, others = reading.partition(", ")
    found = re.fullmatch(r"(-?[0-9]{1,9}(?:\.[0-9]{1,6})?)(?: +(\S.*))?", first)
    silent = reading.lower() in _SILENT
    return Sensor(
        name=name,
        number=place[0],
        entity=place[1],
        status="ns" if silent or status in ("na", "us") else status,
        value=float(found[1]) if found else None,
        unit=(found[2] or "") if found else "",
        states="" if silent else others if found else reading,
        line=" ".join(line.split())[:200],
    )
