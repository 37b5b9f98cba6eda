"""Resources of DMTF Redfish, which a BMC gives as JSON: power state of a ``ComputerSystem``, ``LogEntryCollection``.

Source: DSP0268 (schemas ``ComputerSystem``, ``LogEntry``) and DSP2046. An entry of a log of type ``SEL`` carries words
of the IPMI event log (``SensorType``, ``EntryCode``, ``Message``); it becomes the same event that ``ipmitool sel
elist`` gives, with a line of the same layout, so that one judge reads both.
"""

import json
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from wholestack.health.formats.ipmi import EARLIEST, Event
from wholestack.health.probe import UnreadableError

_TYPES = {"Power Supply / Converter": "Power Supply", "Drive Slot/Bay": "Drive Slot / Bay"}
"""Names of sensor types for which ipmitool has others."""
_TAKEN_BACK = ("Deassert", "State Deasserted")
_NO_WORDS = ("Assert", "State Asserted", *_TAKEN_BACK)
"""Codes that say only whether something is so; what, the message says."""


def looks_like_system(text: str) -> bool:
    """A resource with a power state."""
    return text.lstrip().startswith("{") and '"PowerState"' in text


def read_power_state(text: str) -> str:
    """``on``, ``off``, ``poweringon``, ``poweringoff`` or ``paused``.

    Raises:
        UnreadableError: it is none of these.
    """
    state = str(_object(text).get("PowerState")).lower()
    if state not in ("on", "off", "poweringon", "poweringoff", "paused"):
        raise UnreadableError(f"PowerState is {state[:40]!r}")
    return state


def looks_like_log(text: str) -> bool:
    """A collection of entries."""
    return text.lstrip().startswith("{") and "LogEntryCollection" in text[:20_000]


def read_log(text: str) -> list[Event]:
    """Every entry, oldest first; those that somebody resolved count as taken back.

    Raises:
        UnreadableError: no collection, or an entry of another form.
    """
    members = _object(text).get("Members")
    if not isinstance(members, list) or not all(isinstance(each, dict) for each in members):
        raise UnreadableError("Members is no list of entries")
    events = [_event(each) for each in members]
    # BMCs give either the oldest first or the newest; an entry without a time keeps its place among its like.
    return sorted(events, key=lambda event: event.at or 0.0)


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError("no JSON") from error
    if not isinstance(found, dict):
        raise UnreadableError("no JSON object")
    return found


def _event(entry: Mapping[str, Any]) -> Event:
    if "Message" not in entry and "EntryCode" not in entry:
        raise UnreadableError("an entry without Message and EntryCode")
    code, message = _words(entry.get("EntryCode")), _words(entry.get("Message"))
    kind, number = _words(entry.get("SensorType")), entry.get("SensorNumber")
    place = f" #0x{number:02x}" if isinstance(number, int) and 0 <= number < 256 else ""
    sensor = (_TYPES.get(kind, kind) + place).strip()[:100]
    # "Lower Critical - going low" is "Lower Critical going low" of ipmitool.
    what = " ".join(filter(None, ("" if code in _NO_WORDS else code.replace(" - ", " "), message)))[:200]
    asserted = code not in _TAKEN_BACK and entry.get("Resolved") is not True
    at = _epoch(_words(entry.get("Created")))
    date = time.strftime("%m/%d/%Y | %H:%M:%S", time.gmtime(at)) if at is not None else "Pre-Init | "
    ended = "Asserted" if asserted else "Deasserted"
    return Event(
        at=at,
        sensor=sensor,
        what=what,
        asserted=asserted,
        line=f"{_words(entry.get('Id'))[:20]} | {date} | {sensor or 'Event'} | {what} | {ended}"[:300],
        is_critical=entry.get("Severity") == "Critical",
    )


def _words(value: Any) -> str:
    return " ".join(value[:1000].split()) if isinstance(value, str) else ""


def _epoch(created: str) -> float | None:
    """ISO 8601; a time without a zone is that of Greenwich."""
    if not re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", created):
        return None
    try:
        at = datetime.fromisoformat(created)
        seconds = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds >= EARLIEST else None
