"""A host: how it is called, how it is reached, what kind it is."""

import re
from dataclasses import dataclass

from wholestack.errors import InputError
from wholestack.record import Record

SHARED = ("rack", "switch", "power", "lot")
"""Fields of a host that name what it has in common with others."""
DEFAULT_KIND = "default"
"""Of hosts for which nobody said one."""

_PLACE = re.compile(
    r"(?:(?P<user>[^@\s:\[\]]+)@)?(?:\[(?P<six>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<name>[\w][\w.-]*))(?::(?P<port>\d{1,5}))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host(Record):
    """One machine. ``None`` leaves a choice to the user's ssh configuration."""

    name: str
    """As findings name it; unique in a sweep."""
    address: str | None = None
    """Name or IP address to connect to; the name itself if not given."""
    port: int | None = None
    user: str | None = None
    jump: str | None = None
    """``[user@]host[:port]`` to go through."""
    identity: str | None = None
    """Path of the private key."""
    bmc: str | None = None
    """Where its baseboard management controller is (:mod:`wholestack.health.outofband.address`)."""
    kind: str = DEFAULT_KIND
    """Hosts of one kind share expectations and are compared with each other."""
    rack: str | None = None
    """Where it stands. This and what follows name what it has in common with others."""
    switch: str | None = None
    """What it is plugged into."""
    power: str | None = None
    """The unit that feeds it."""
    lot: str | None = None
    """The delivery that it came with."""


def parse_host(text: str) -> Host:
    """A host from ``[user@]name[:port]``; an IPv6 address stands in brackets.

    Raises:
        InputError: it is not of that form, or the port is none.
    """
    found = _PLACE.fullmatch(text)
    if not found:
        raise InputError(f"{text!r} is not a host", remedy="write [user@]name[:port], an IPv6 address in brackets")
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 0 < port < 1 << 16:
        raise InputError(f"{text!r}: the port is {port}, must be 1 to 65535")
    return Host(name=found["six"] or found["name"], port=port, user=found["user"])
