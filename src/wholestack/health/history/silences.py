"""Silences: a person's word that something is known and shall not be raised, for a reason and until an end. Pure.

A silenced Finding is still shown, as silenced, and counted apart; it is never ok, and it makes no failure. A silence
ends by itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from wholestack.errors import InputError
from wholestack.health.history.spans import FindingSpan
from wholestack.record import Record

LEAST_ID = 6
"""Digits of a Finding's id that are enough to mean it."""
YEAR_S = 365 * 86400.0
LONGEST_S = 10 * YEAR_S
"""What shall never be raised again is no silence: leave the check out (``--skip``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence(Record):
    """One silence; what is empty is not asked for."""

    id: int
    check: str = ""
    """Name or pattern, such as ``gpu.*``."""
    finding: str = ""
    """Id of a Finding or its beginning."""
    host: int | None = None
    part: str = ""
    """Place of a part (``gpu 0000:9b:00``), or its serial number wherever it sits."""
    reason: str
    by: str
    since: float
    until: float
    lifted: float | None = None

    @property
    def end(self) -> float:
        """When it ended or will."""
        return self.until if self.lifted is None else min(self.until, self.lifted)

    @property
    def scope(self) -> str:
        """What it is about, but for the host, whose name may change."""
        asked = (("check", self.check), ("finding", self.finding), ("part", self.part))
        return ", ".join(f"{name} {value}" for name, value in asked if value) or "everything of the host"

    def is_active(self, at: float) -> bool:
        """Whether it counts at a time."""
        return self.since <= at < self.end

    def means(self, each: FindingSpan) -> bool:
        """Whether it is about a Finding, at any time."""
        return (
            (self.host is None or self.host == each.host)
            and (not self.check or fnmatchcase(each.check, self.check))
            and (not self.finding or each.id.startswith(self.finding))
            and (not self.part or self.part in (each.part, each.serial))
        )


def silence(
    *,
    check: str = "",
    finding: str = "",
    host: int | None = None,
    part: str = "",
    reason: str,
    by: str,
    since: float,
    until: float,
) -> Silence:
    """A new silence, not kept yet.

    Raises:
        InputError: it would silence everything, has no reason or person, ends before it begins, or as good as never.
    """
    if not (check.strip("*? ") or finding or host is not None or part):
        raise InputError("a silence needs a check, finding, host or part", remedy="say what is to be silent")
    if finding and len(finding) < LEAST_ID:
        raise InputError(f"finding {finding!r} may be many", remedy=f"give at least {LEAST_ID} digits of its id")
    if not reason.strip() or not by.strip():
        raise InputError("a silence needs a reason and a person", remedy="give --reason and --by")
    if until > since + LONGEST_S:
        raise InputError(
            f"a silence ends within {LONGEST_S / YEAR_S:g} years", remedy="give an earlier --until; it can be renewed"
        )
    if until <= since:
        raise InputError("a silence ends after it begins", remedy="give a later --until")
    return Silence(id=0, check=check, finding=finding, host=host, part=part, reason=reason, by=by, since=since,
                   until=until)  # fmt: skip


def silenced_by(each: FindingSpan, silences: Iterable[Silence], at: float) -> Silence | None:
    """The silence that counts for a Finding at a time; the one that ends last, if there are several."""
    active = [silent for silent in silences if silent.is_active(at) and silent.means(each)]
    return max(active, key=lambda silent: silent.end, default=None)


def without_silenced(spans: Iterable[FindingSpan], silences: Sequence[Silence]) -> list[FindingSpan]:
    """Spans that began while nobody had silenced them: those that count as failures."""
    if not silences:
        return list(spans)
    return [each for each in spans if silenced_by(each, silences, each.first) is None]
