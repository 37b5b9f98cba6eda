"""An owner: what it needs to be told of a fault before it acts, by the kind of part that is broken. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from wholestack.record import Record

Item = Literal[
    "machine_serial", "machine_model", "place", "slot", "serial", "model", "firmware", "driver", "kernel",
    "evidence", "log_lines", "counters", "counters_before", "history", "remedy",
]  # fmt: skip
SAYS: Mapping[Item, str] = {
    "machine_serial": "serial number of the machine",
    "machine_model": "model of the machine",
    "place": "where the machine stands",
    "slot": "slot of the part",
    "serial": "serial number of the part",
    "model": "model of the part",
    "firmware": "firmware",
    "driver": "driver",
    "kernel": "kernel and operating system",
    "evidence": "evidence",
    "log_lines": "log lines",
    "counters": "counters",
    "counters_before": "counters before",
    "history": "history",
    "remedy": "what is asked for",
}
"""Every item that a ticket can hold, as a person reads it. What a fault cannot have is not missing: a check that reads
no log has no log lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants(Record):
    """What an owner needs to be told of one kind of part."""

    items: tuple[Item, ...]
    """A ticket without one of these is not complete."""
    asks: tuple[str, ...] = ()
    """What it often asks for besides and no sweep reads: what, and the command that gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About(Record):
    """Who it is."""

    name: str
    """As the ticket is addressed."""
    acts_for: str
    """The owner that Findings name."""
    says: str
    """What it does, in a few words."""
    source: str
    """Where it is documented what it needs."""
    models: tuple[str, ...] = ()
    """Patterns such as ``Solidigm *``: only for parts, or machines, of such a model; empty: for all."""


class Owner(Protocol):
    """One who acts on Findings."""

    @property
    def about(self) -> About:
        """Who it is."""
        ...

    def wants(self, kind: str) -> Wants:
        """What it needs to be told of a kind of part (:data:`~wholestack.health.parts.PartKind`), any of them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOwner:
    """An owner that is a table."""

    about: About
    otherwise: Wants
    """Of kinds of part that are not in the table."""
    rows: Mapping[str, Wants] = field(default_factory=dict)
    """By kind of part."""

    def wants(self, kind: str) -> Wants:
        """See :class:`Owner`."""
        return self.rows.get(kind, self.otherwise)
