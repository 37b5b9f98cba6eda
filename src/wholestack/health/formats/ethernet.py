"""Network interfaces: ``grep`` lines below ``/sys/class/net``.

Only interfaces with a PCI device behind them and bonds of such are real; loopback, bridges, ``veth``, tunnels and VLANs
have none. Source: Linux ``Documentation/ABI/testing/sysfs-class-net``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from wholestack.health.formats.device_files import first_line, read_tree
from wholestack.health.probe import UnreadableError

NUMBER = re.compile(r"-?\d{1,20}")
ETHERNET = "1"
"""ARP type (``type``); InfiniBand is 32, loopback 772."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One interface."""

    name: str
    operstate: str
    """``up``, ``down``, ``unknown``, ``lowerlayerdown``, ``dormant``, ``notpresent``; empty if missing."""
    vendor: str = ""
    """Of the PCI device (``0x15b3``); empty where there is none."""
    kind: str = ETHERNET
    speed_mbs: int | None = None
    """Mb/s; ``None`` where the kernel gives none or calls it unknown (-1)."""
    duplex: str = ""
    mtu: int | None = None
    carrier_changes: int | None = None
    slaves: tuple[str, ...] = ()
    is_bond: bool = False
    mii_status: str = ""
    """Of a bond: ``up`` while one of its ports has a link."""
    statistics: Mapping[str, int] = field(default_factory=dict)
    garbled: Mapping[str, str] = field(default_factory=dict)
    """Files that should hold a number and do not."""

    @property
    def is_up(self) -> bool:
        """``unknown`` is what drivers leave that do not follow their link."""
        return self.operstate in ("up", "unknown") and self.mii_status != "down"


def looks_like_net(text: str) -> bool:
    """``eth0/operstate:up`` or ``eth0/mtu:1500`` and the like first."""
    files = "operstate|speed|duplex|mtu|carrier_changes|type|device|statistics|bonding"
    return re.match(rf"(?:\./)?[^\s/]{{1,20}}/(?:{files})(?::|/)", first_line(text)) is not None


def read_net(text: str) -> dict[str, Interface]:
    """Interfaces by name.

    Raises:
        UnreadableError: none in it.
    """
    files: dict[str, dict[str, str]] = {}
    for path, value in read_tree(text).items():
        name, _, rest = path.partition("/")
        files.setdefault(name, {})[rest] = value
    found = {name: _interface(name, own) for name, own in files.items() if "operstate" in own or "type" in own}
    if not found:
        raise UnreadableError("no interface is in it")
    return found


def _interface(name: str, own: Mapping[str, str]) -> Interface:
    numbers: dict[str, int] = {}
    garbled: dict[str, str] = {}
    wanted = ("speed", "mtu", "carrier_changes", *(path for path in own if path.startswith("statistics/")))
    for path in wanted:
        value = own.get(path)
        if value is not None and NUMBER.fullmatch(value):
            numbers[path.removeprefix("statistics/")] = int(value)
        elif value is not None:
            garbled[path.removeprefix("statistics/")] = value[:40]
    speed = numbers.pop("speed", None)
    return Interface(
        name=name,
        operstate=own.get("operstate", ""),
        vendor=own.get("device/vendor", ""),
        kind=own.get("type", ETHERNET),
        speed_mbs=speed if speed is not None and 0 < speed < 2**31 else None,
        duplex=own.get("duplex", ""),
        mtu=numbers.pop("mtu", None),
        carrier_changes=numbers.pop("carrier_changes", None),
        slaves=tuple(own.get("bonding/slaves", "").split()),
        is_bond="bonding/slaves" in own or "bonding/mii_status" in own,
        mii_status=own.get("bonding/mii_status", ""),
        statistics=numbers,
        garbled=garbled,
    )
