"""The clock: does it follow a source, how far is it off, did it jump?

A wrong clock breaks certificates, credentials (munge allows five minutes) and the order of logs. The limits are ours.
"""

import re
import time
from collections.abc import Iterator
from datetime import datetime

from wholestack.finding import Status
from wholestack.health.check import Cause, Check, Limit, Measure, Seen, Symptom
from wholestack.health.formats.sysfs import trusted
from wholestack.health.formats.time_sync import (
    NO_ANSWER,
    TimeSync,
    looks_like_chrony,
    looks_like_no_service,
    looks_like_ntpq,
    looks_like_timedatectl,
    looks_like_timesync,
    read_chrony,
    read_no_service,
    read_ntpq,
    read_timedatectl,
    read_timesync,
)
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe
from wholestack.health.telemetry import MOMENT
from wholestack.remote.batch import Command

TIME_SYNC: Probe[TimeSync] = Probe(
    command=Command(
        name="time_sync",
        shell=f'(chronyc -n tracking || timedatectl timesync-status || ntpq -pn || echo "{NO_ANSWER}") 2>&1',
        limit_s=10,
        max_bytes=100_000,
    ),
    formats=(
        Format(name="chronyc tracking", matches=looks_like_chrony, read=read_chrony),
        Format(name="timedatectl timesync-status", matches=looks_like_timesync, read=read_timesync),
        Format(name="ntpq -p", matches=looks_like_ntpq, read=read_ntpq),
        Format(name="timedatectl", matches=looks_like_timedatectl, read=read_timedatectl),
        Format(name="no time service", matches=looks_like_no_service, read=read_no_service),
    ),
    failure=trusted,
)

CLOCK = Part(kind="clock")

UNSYNCHRONISED = Cause(
    code="time.unsynchronised",
    says="clock follows no source",
    owner="cluster team",
    remedy="systemctl restart chronyd; if it runs, see that its servers answer (chronyc sources, UDP port 123)",
    status="warn",
    explains=("service.failed",),
)
OFFSET = Cause(
    code="time.offset",
    says="clock is off",
    owner="cluster team",
    remedy="chronyc makestep; if it drifts again, look at its sources and at the host's real-time clock",
    status="warn",
    explains=("time.unsynchronised", "time.stale"),
)
STALE = Cause(
    code="time.stale",
    says="time source has not been heard for long",
    owner="network",
    remedy="see that the servers answer (chronyc sources, UDP port 123)",
    status="warn",
)
JUMPED = Cause(
    code="clock.jump",
    says="clock jumped",
    owner="cluster team",
    remedy="chronyc makestep, hwclock --systohc; if it returns at boot, have the vendor replace the clock's battery",
    explains=("time.offset", "time.unsynchronised", "time.stale", "bmc.clock"),
)

WARN_S = Limit(name="time.offset_warn_s", default=0.1, about="offset from the source that is a warning")
FAIL_S = Limit(name="time.offset_fail_s", default=5.0, about="offset from the source that is a fail")
STALE_HOURS = Limit(name="time.stale_hours", default=6.0, about="hours without a measurement that are a warning")
SKEW_S = Limit(name="clock.skew_s", default=60.0, about="difference from the sweeping machine's clock that is a fail")

EARLIEST = 1_767_225_600
"""2026-01-01 UTC: no host lives before this was written; a clock that says so was set back by an empty battery."""


def judge_sync(seen: Seen) -> Iterator[Symptom]:
    """Source, stratum, leap, offset."""
    found = seen.of(TIME_SYNC)
    if not found.synchronised:
        yield Symptom(cause=UNSYNCHRONISED, part=CLOCK, evidence=found.lines)
    if found.offset_s is not None and found.offset_s >= seen.limit(WARN_S):
        status: Status = "fail" if found.offset_s >= seen.limit(FAIL_S) else "warn"
        evidence = (f"{found.tool}: off by {found.offset_s:g} s", *found.lines)
        yield Symptom(cause=OFFSET, part=CLOCK, evidence=evidence, status=status)
    # A saved output has no moment to compare its times with.
    if seen.boot_id and found.synchronised and found.updated_at is not None:
        hours = (seen.now - found.updated_at) / 3600
        if hours >= seen.limit(STALE_HOURS):
            yield Symptom(cause=STALE, part=CLOCK, evidence=(f"last measured {hours:.0f} h ago", *found.lines))


def _offset(seen: Seen) -> Iterator[Measure]:
    found = seen.of(TIME_SYNC)
    if found.offset_s is not None and found.synchronised:
        yield Measure(name="clock.offset_s", value=found.offset_s, outlies=OFFSET, part=CLOCK, bad="high", least=0.01)


def judge_jump(seen: Seen) -> Iterator[Symptom]:
    """The host's clock against everything that is known of the time besides it."""
    now = seen.of(MOMENT).now
    evidence = [
        words for words in (_too_early(now), _skewed(now, seen), _went_back(now, seen), _log_ahead(now, seen)) if words
    ]
    if evidence:
        yield Symptom(cause=JUMPED, part=CLOCK, evidence=(f"the host says {_date(now)}", *evidence))


def _too_early(now: float) -> str:
    return f"that is before {_date(EARLIEST)}" if now < EARLIEST else ""


def _skewed(now: float, seen: Seen) -> str:
    """Only what the round trip cannot have caused counts."""
    if seen.asked_at is None or seen.answered_at is None or seen.answered_at < EARLIEST:
        return ""
    skew = max(now - seen.answered_at, seen.asked_at - now)
    return f"{skew:.0f} s away from the asking machine's clock" if skew >= seen.limit(SKEW_S) else ""


def _went_back(now: float, seen: Seen) -> str:
    before = seen.before
    if before is None or before.boot_id != seen.boot_id or before.at - now < seen.limit(SKEW_S):
        return ""
    return f"the last look, of the same boot, was at {_date(before.at)}"


def _log_ahead(now: float, seen: Seen) -> str:
    """The kernel's newest dated line, where the log has ISO dates with a time zone."""
    log = seen.outputs.get("kernel_log")
    dates = _ISO.findall(log.stdout[-20_000:].decode(errors="replace")) if log is not None else []
    # Within a zone the latest date is the greatest text; a log has one zone, or two.
    latest = {zone: date for date, zone in sorted(dates)}
    try:
        newest = max((datetime.fromisoformat(date + zone).timestamp() for zone, date in latest.items()), default=now)
    except (ValueError, OverflowError):
        return ""
    return f"the kernel's log reaches {_date(newest)}" if newest - now >= seen.limit(SKEW_S) else ""


_ISO = re.compile(r"\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[,.]\d{1,9}([+-]\d\d:\d\d)")


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(max(min(at, 253_402_300_799.0), 0.0)))


CHECKS = (
    Check(
        name="time.sync",
        about="whether the clock follows a source, and how far it is off",
        probes=(TIME_SYNC,),
        parts=("clock",),
        causes=(UNSYNCHRONISED, OFFSET, STALE),
        limits=(WARN_S, FAIL_S, STALE_HOURS),
        judge=judge_sync,
        measures=_offset,
    ),
    Check(
        name="clock.jump",
        about="clocks that are years back, away from ours, or went back since the last look",
        probes=(MOMENT,),
        parts=("clock",),
        causes=(JUMPED,),
        limits=(SKEW_S,),
        judge=judge_jump,
    ),
)
