"""Findings: the one Record for every verdict, and how a list of them is ordered, counted and turned into an exit code.

A check that does not apply gives no Finding; it is listed as :class:`Skipped`. ``unknown`` is never shown or
counted as ``ok``. Expected but missing is ``fail``; could not be read is ``unknown``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from wholestack.record import Record, digest

Status = Literal["ok", "warn", "fail", "unknown"]
SkipReason = Literal["not_installed", "not_supported", "not_expected"]

WORST_FIRST: tuple[Status, ...] = ("fail", "unknown", "warn", "ok")

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_UNKNOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Record):
    """One verdict with its evidence. Make it with :func:`finding`, which computes the id."""

    SCHEMA: ClassVar[str] = "finding/1"

    id: str
    """Stable hash of subject, check, part and cause: the same trouble has the same id tomorrow."""
    subject: str
    """What is judged: a host, rank, item, file, function, claim."""
    check: str
    """Name of the check, ``noun.verb`` or ``noun``."""
    status: Status
    """Verdict."""
    evidence: tuple[str, ...]
    """The very lines or numbers that the verdict rests on."""
    part: str = ""
    """Part of the subject: a GPU slot, a shard, a setting."""
    cause: str = ""
    """Why, in a few words; empty when ok."""
    owner: str = ""
    """Who has to act."""
    remedy: str = ""
    """What to do, in the imperative; empty when ok."""
    at: float | None = None
    """Seconds since the epoch."""
    step: int | None = None
    """Step of a run, where there is one."""
    settles: str = ""
    """Id of the Claim that this Finding settles: ok = held, warn or fail = broken, unknown = unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped(Record):
    """A check that did not apply, and why; not a verdict."""

    check: str
    """Name of the check."""
    reason: SkipReason
    """Why it did not apply."""
    detail: str = ""
    """What was looked for."""


def finding(
    subject: str,
    check: str,
    status: Status,
    *,
    evidence: Sequence[str],
    part: str = "",
    cause: str = "",
    owner: str = "",
    remedy: str = "",
    at: float | None = None,
    step: int | None = None,
    settles: str = "",
) -> Finding:
    """Make a Finding; its id does not depend on evidence, time or step."""
    return Finding(
        id=digest(subject, check, part, cause),
        subject=subject,
        check=check,
        status=status,
        evidence=tuple(evidence),
        part=part,
        cause=cause,
        owner=owner,
        remedy=remedy,
        at=at,
        step=step,
        settles=settles,
    )


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sorted fail, unknown, warn, ok; equals keep their order."""
    return sorted(findings, key=lambda each: WORST_FIRST.index(each.status))


def worst(findings: Iterable[Finding]) -> Status:
    """The worst status; of no Finding at all it is ``unknown``, for nothing was looked at."""
    ordered = worst_first(findings)
    return ordered[0].status if ordered else "unknown"


def exit_code(findings: Iterable[Finding]) -> int:
    """0 ok; 1 any fail or warn; else 3 any unknown."""
    statuses = {each.status for each in findings}
    if statuses & {"fail", "warn"}:
        return EXIT_FINDINGS
    return EXIT_UNKNOWN if "unknown" in statuses else EXIT_OK
