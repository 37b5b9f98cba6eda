"""A ticket, as a value. Every text in it is printable, bounded, and without secrets that are known as such."""

from dataclasses import dataclass
from typing import ClassVar

from wholestack.finding import EXIT_FINDINGS, EXIT_OK, Status
from wholestack.health.history.spans import Event
from wholestack.health.owners.owner import Item
from wholestack.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Datum(Record):
    """One thing that the owner wants to know, or why it is not here."""

    item: Item
    value: str = ""
    """In a few words; lists are elsewhere in the ticket."""
    source: str = ""
    """Where it is from: this sweep, the sweep before, the history, the file of hosts."""
    missing: str = ""
    """What to do so that it is here; empty if it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterRow(Record):
    """A counter of the part, before and after."""

    name: str
    part: str
    before: int | None
    before_at: float | None
    """Seconds since the epoch, by the host's clock."""
    after: int | None
    after_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow(Record):
    """A part that has to do with it, by its serial number."""

    place: str
    """``kind key``."""
    serial: str
    model: str
    lot: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow(Record):
    """A version of the machine, or of some of its parts."""

    name: str
    value: str
    parts: tuple[str, ...]
    """That alone have it; empty where all that say so have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside(Record):
    """Another Finding of the same host and sweep."""

    id: str
    status: Status
    part: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Past(Record):
    """What the history says of the Finding."""

    first: float
    """Seconds since the epoch, when it was first seen."""
    returns: int
    gone: float | None
    """When it was no longer seen, as far as the history goes; ``None``: it is still there."""
    story: str
    repeat: int
    """Which story of its host within 30 days it is, among those in which something was done, and itself."""
    tried: tuple[Event, ...]
    """What was done about this part: drains, fixes, proofs, replaced parts, by whom and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket(Record):
    """The evidence pack of one Finding."""

    SCHEMA: ClassVar[str] = "health-ticket/1"

    finding: str
    """Id."""
    to: str
    """Name of the owner."""
    host: str
    kind: str
    part: str
    """``kind key (label)``."""
    check: str
    code: str
    """Of the cause."""
    cause: str
    status: Status
    remedy: str
    at: float
    """When the host was looked at, seconds since the epoch by its clock where it said."""
    is_complete: bool
    data: tuple[Datum, ...]
    """What the owner wants to know, in its order."""
    evidence: tuple[str, ...]
    log_lines: tuple[str, ...]
    counters: tuple[CounterRow, ...]
    parts: tuple[PartRow, ...]
    versions: tuple[VersionRow, ...]
    beside: tuple[Beside, ...]
    past: Past | None
    asks: tuple[str, ...]
    """What the owner often asks for besides and no sweep reads."""
    cut: tuple[str, ...]
    """What is longer than a ticket may be: what, and how much of it is not here."""
    masked: int = 0
    """Texts in which something was masked."""

    @property
    def missing(self) -> tuple[Datum, ...]:
        """What is not here."""
        return tuple(each for each in self.data if each.missing)

    @property
    def exit_code(self) -> int:
        """0 complete, 1 not."""
        return EXIT_OK if self.is_complete else EXIT_FINDINGS
