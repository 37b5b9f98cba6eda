"""A host: how it is called, how it is reached, what kind it is."""

from dataclasses import dataclass

from wholestack.record import Record


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
    kind: str = "default"
    """Hosts of one kind share expectations and are compared with each other."""
