"""Whether the clock follows a source: ``chronyc tracking``, ``timedatectl timesync-status`` or plain, ``ntpq -p``.

Sources: chronyc(1), timedatectl(1), ntpq(8) ("peers", tally codes). All offsets come out in seconds and without
their sign, since only their size is judged.
"""

import calendar
import re
import time
from dataclasses import dataclass

from wholestack.health.probe import NotThereError, UnreadableError

NO_ANSWER = "no time service answers"
"""Printed by the probe's command when every tool failed."""
_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSync:
    """What one tool says."""

    tool: str
    synchronised: bool
    source: str
    """Server or reference; empty if none."""
    lines: tuple[str, ...]
    """The lines that say so."""
    stratum: int | None = None
    offset_s: float | None = None
    updated_at: float | None = None
    """Last measurement, seconds since the epoch."""


def looks_like_chrony(text: str) -> bool:
    """``chronyc tracking``."""
    return "Reference ID" in text and "Leap status" in text


def read_chrony(text: str) -> TimeSync:
    """``chronyc tracking``, with or without ``-n``.

    Raises:
        UnreadableError: a line that decides is missing.
    """
    fields = _fields(text)
    reference, leap = fields["Reference ID"], fields["Leap status"]
    if leap not in ("Normal", "Insert second", "Delete second", "Not synchronised"):
        raise UnreadableError(f"leap status {leap[:40]!r}")
    offset = re.match(r"([\d.]{1,30}) seconds (?:slow|fast)", fields["System time"])
    if offset is None:
        raise UnreadableError(f"system time {fields['System time'][:40]!r}")
    stratum = int(fields["Stratum"])
    # 7F7F0101 is 127.127.1.1: the daemon serves its own clock.
    own = reference.startswith(("00000000", "7F7F01"))
    return TimeSync(
        tool="chronyc",
        synchronised=leap != "Not synchronised" and not own and 0 < stratum < 16,
        source=reference,
        lines=_lines(text, "Reference ID", "Stratum", "Ref time", "System time", "Leap status"),
        stratum=stratum,
        offset_s=float(offset[1]),
        updated_at=_asctime(fields.get("Ref time (UTC)", "")),
    )


def looks_like_timesync(text: str) -> bool:
    """``timedatectl timesync-status``."""
    return re.search(r"^[ \t]*Server: ", text, re.MULTILINE) is not None


def read_timesync(text: str) -> TimeSync:
    """``timedatectl timesync-status``."""
    fields = _fields(text)
    server = fields["Server"]
    stratum = int(fields["Stratum"]) if "Stratum" in fields else None
    leap = fields.get("Leap", "")
    answered = server not in ("", "n/a") and fields.get("Packet count", "0") != "0"
    if answered and not {"Leap", "Stratum", "Offset"} <= fields.keys():
        raise UnreadableError("a server answers, but there is no leap, stratum or offset")
    return TimeSync(
        tool="timedatectl",
        synchronised=answered and leap in ("normal", "insert second", "delete second") and 0 < (stratum or 0) < 16,
        source=server,
        lines=_lines(text, "Server", "Leap", "Stratum", "Offset", "Packet count"),
        stratum=stratum,
        offset_s=duration_s(fields["Offset"]) if "Offset" in fields else None,
    )


def looks_like_timedatectl(text: str) -> bool:
    """Plain ``timedatectl`` (or ``status``)."""
    return "Time zone:" in text and "ynchronized:" in text


def read_timedatectl(text: str) -> TimeSync:
    """Plain ``timedatectl``: a yes or no, no offset."""
    found = re.search(r"^[ \t]*(?:System clock|NTP) synchronized: (yes|no)[ \t]*$", text, re.MULTILINE)
    if found is None:
        raise UnreadableError("synchronized is neither yes nor no")
    lines = _lines(
        text, "System clock synchronized", "NTP synchronized", "NTP service", "systemd-timesyncd.service active"
    )
    return TimeSync(tool="timedatectl", synchronised=found[1] == "yes", source="", lines=lines)


def looks_like_ntpq(text: str) -> bool:
    """``ntpq -p`` with or without ``-n``, or its words for no peer."""
    return re.search(r"^[ \t]*remote[ \t]+refid[ \t]+st|^No association ID", text, re.MULTILINE) is not None


def read_ntpq(text: str) -> TimeSync:
    """``ntpq -p``: the selected peer begins with ``*`` (or ``o``: by pulse per second).

    Raises:
        UnreadableError: the selected peer has no stratum or offset.
    """
    # A long name stands on a line of its own.
    body = re.sub(r"(\n[ x.\-+#*o]\S{1,255})\n[ \t]+", r"\1 ", text.partition("====")[2])
    rows = [line for line in body.splitlines()[1:] if line.strip()]
    chosen = next((line for line in rows if line[0] in "*o"), None)
    if chosen is None:
        shown = tuple(line.strip() for line in rows[:6]) or (text.strip().splitlines()[-1][:200],)
        return TimeSync(tool="ntpq", synchronised=False, source="", lines=("no line begins with *", *shown))
    words = chosen[1:].split()
    if len(words) < 10:
        raise UnreadableError(f"the selected peer has {len(words)} of 10 columns")
    stratum = int(words[2])
    return TimeSync(
        tool="ntpq",
        # 127.127.1.x is the local clock driver of ntpd.
        synchronised=0 < stratum < 16 and words[1] != ".LOCL." and words[6] != "0",
        source=words[0],
        lines=(chosen.strip(),),
        stratum=stratum,
        offset_s=abs(float(words[8])) / 1000,
    )


def looks_like_no_service(text: str) -> bool:
    """Every tool failed, or chrony's daemon does not answer."""
    return NO_ANSWER in text or "506 Cannot talk to daemon" in text


def read_no_service(text: str) -> TimeSync:
    """No service runs.

    Raises:
        NotThereError: none of the tools is installed.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip() and NO_ANSWER not in line]
    if lines and all("not found" in line for line in lines):
        raise NotThereError("not_installed", "neither chronyc nor timedatectl nor ntpq is installed")
    return TimeSync(tool="none", synchronised=False, source="", lines=(*lines[:4], NO_ANSWER))


def duration_s(text: str) -> float:
    """A span as systemd prints it, ``-5.224ms`` or ``+1min 2.5s``, without its sign.

    Raises:
        UnreadableError: it is none.
    """
    parts = re.findall(r"([\d.]{1,20})(us|ms|s|min|h|days?|d)(?![a-z])", text)
    if not parts or re.sub(r"[\d.\s+\-]|us|ms|s|min|h|days?|d", "", text):
        raise UnreadableError(f"{text[:40]!r} is no span of time")
    return sum(float(value) * _UNITS_S[unit] for value, unit in parts)


def _asctime(text: str) -> float | None:
    try:
        return float(calendar.timegm(time.strptime(text, "%a %b %d %H:%M:%S %Y")))
    except ValueError:
        return None


def _fields(text: str) -> dict[str, str]:
    return {key.strip(): value.strip() for key, value in re.findall(r"^([^:\n]{1,60}):(.*)$", text, re.MULTILINE)}


def _lines(text: str, *names: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip().startswith(names))
