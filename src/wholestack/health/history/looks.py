"""What one sweep says that a history keeps: of every host its facts, its parts by serial number, its Findings.

A **fact** is a version or a place, a **seat** a part in its slot, a **sight** a Finding that is not ok. What a host is
in, taken together, is its ``state``: two looks of equal state are no change, and nothing is written.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from wholestack.finding import Status
from wholestack.record import digest
from wholestack.remote.host import SHARED

PLACES = tuple(f"host.{name}" for name in SHARED)
"""Facts that the inventory declares."""
MACHINE = "host"
"""Seat of the machine itself: its serial number is the host's identity."""
INSTALLATION = "host installation"
"""Seat of the operating system."""
_NONE = re.compile(r"(.)\1*|0?123456789?0?|.{0,3}|(?:system|chassis|base board)? ?serial.?number|not .*|n/?a|to be .*|"
                   r"default.*|unknown|empty|none|invalid.*", re.IGNORECASE)  # fmt: skip
"""Serial numbers that are none, as firmware has them that nobody filled in."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Fact:
    """One value."""

    name: str
    value: str
    part: str = ""
    """Identity of the part that alone has it; empty where all parts of the host that say have the same."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Seat:
    """A part in its slot."""

    part: str
    """Identity of the part by its place: ``gpu 0000:9b:00``."""
    serial: str
    model: str = ""
    lot: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """A Finding that is not ok."""

    id: str
    check: str
    part: str
    """Identity of the part by its place."""
    cause: str
    owner: str
    status: Status
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLook:
    """What a sweep says of one host."""

    host: str
    """Name."""
    kind: str
    facts: tuple[Fact, ...] = ()
    seats: tuple[Seat, ...] = ()
    sights: tuple[Sight, ...] = ()
    judged: frozenset[str] = frozenset()
    """Checks that were put, applied and could be read; of a host that did not answer, none."""

    @property
    def serial(self) -> str:
        """Of the machine; empty if it did not say."""
        return next((seat.serial for seat in self.seats if seat.part == MACHINE), "")

    def state(self) -> str:
        """Digest of all but the evidence, which is another at every look."""
        sights = [(each.id, each.status) for each in self.sights]
        return digest(self.kind, [*map(_fact, self.facts)], [*map(_seat, self.seats)], sights, sorted(self.judged))


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLook:
    """What a sweep says."""

    id: str
    """Hash of what was found: the same sweep has the same id wherever its folder lies."""
    at: float
    """Seconds since the epoch, when it ended, by the clock of the machine that asked."""
    folder: str
    checks: tuple[str, ...]
    """Those that were put."""
    hosts: tuple[HostLook, ...]
    states: tuple[str, ...]
    """Of the hosts, in their order."""
    in_full: bool = True
    """Whether no check was left out: else nothing is said on who may train."""


def sweep_look(
    looks: Iterable[HostLook], *, id: str, at: float, folder: str, checks: Iterable[str], in_full: bool = True
) -> SweepLook:
    """Put looks together; a serial number that two parts of a kind have in one sweep tells neither of them."""
    hosts = tuple(looks)
    counts = Counter((_kind(seat), seat.serial) for look in hosts for seat in look.seats)
    doubled = {key for key, count in counts.items() if count > 1}
    if doubled:
        hosts = tuple(_without(look, doubled) for look in hosts)
    states = tuple(look.state() for look in hosts)
    return SweepLook(id=id, at=at, folder=folder, checks=tuple(checks), hosts=hosts, states=states, in_full=in_full)


def is_serial(text: str) -> bool:
    """Whether a text can be a serial number: firmware that nobody filled in says other things in its place."""
    return _NONE.fullmatch(text.strip()) is None


def _kind(seat: Seat) -> str:
    return seat.part.partition(" ")[0]


def _without(look: HostLook, doubled: set[tuple[str, str]]) -> HostLook:
    kept = tuple(seat for seat in look.seats if (_kind(seat), seat.serial) not in doubled)
    return HostLook(
        host=look.host, kind=look.kind, facts=look.facts, seats=kept, sights=look.sights, judged=look.judged
    )


def _fact(each: Fact) -> tuple[str, ...]:
    return each.name, each.part, each.value


def _seat(each: Seat) -> tuple[str, ...]:
    return each.part, each.serial, each.model, each.lot
