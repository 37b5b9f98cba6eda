"""What the tools see: links, ports without one, and how far the view goes.

A port is **listed** where an output says what is at it, be it nothing. A planned port that no output lists may have a
cable or not: that is unknown, never missing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wholestack.health.cabling import naming
from wholestack.health.cleaning import printable
from wholestack.health.formats.iblinkinfo import looks_like_iblinkinfo, read_iblinkinfo
from wholestack.health.formats.ibnetdiscover import (
    Fabric,
    looks_like_ports,
    looks_like_topology,
    read_ports,
    read_topology,
)
from wholestack.health.formats.lldp import looks_like_lldp, read_lldp
from wholestack.health.probe import UnreadableError

Port = tuple[str, str]
"""Key of the device and of its port, as :mod:`wholestack.health.cabling.naming` makes them."""
AGGREGATION = "Aggregation Node"
"""Sits inside a switch; nobody plugs a cable into it."""
_SUFFIXES = re.compile(r"(?:\.(?:json0?|txt|out|log|lldp|lldpctl|kv|keyvalue))+$", re.IGNORECASE)
_NO_HOST = re.compile(r"(?:lldp|lldpctl|lldpcli|neighbou?rs|output|stdout)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """More of a port than what is at it."""

    source: str
    """Name of the output."""
    state: str = ""
    width: str = ""
    speed: str = ""
    could_be: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All outputs as one."""

    peers: Mapping[Port, Port]
    """Both ways; without ports of which the outputs say two things."""
    conflicts: Mapping[Port, tuple[str, ...]]
    """Ports of which two things are said, and what; and those that are named there."""
    details: Mapping[Port, Detail]
    listed: frozenset[Port]
    whole: frozenset[str]
    """Switches that list all their ports with a link."""
    lldp: frozenset[str]
    """Hosts and switches whose LLDP neighbours are there."""
    switches: frozenset[str]
    """Keys of InfiniBand switches."""
    names: Mapping[str, frozenset[str]]
    """Devices by every name they have."""
    short_names: Mapping[str, frozenset[str]]
    """The same by names without a domain."""
    adapters: Mapping[str, Port]
    """Host and adapter by GUID."""
    labels: Mapping[Port, str]
    """Ports by another label."""
    shown: Mapping[str, str]
    """Name of a device for a person."""

    def is_asked(self, port: Port) -> bool:
        """Whether a link at this port would have been seen."""
        device, label = port
        return port in self.listed or device in self.whole or (device in self.lldp and not naming.is_infiniband(label))

    def state(self, port: Port) -> str:
        """``down/polling``; empty where no output says."""
        return self.details[port].state if port in self.details else ""

    def show(self, port: Port) -> str:
        """Device and port for a person."""
        return f"{self.shown.get(port[0], port[0])} {port[1]}"


@dataclass(slots=True)
class Sights:
    """Gathers outputs; :meth:`seen` makes them one."""

    links: list[tuple[Port, Port]] = field(default_factory=list)
    alone: list[Port] = field(default_factory=list)
    details: dict[Port, Detail] = field(default_factory=dict)
    listed: set[Port] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    lldp: set[str] = field(default_factory=set)
    switches: set[str] = field(default_factory=set)
    aliases: dict[str, set[str]] = field(default_factory=dict)
    adapters: dict[str, Port] = field(default_factory=dict)
    labels: dict[Port, str] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)

    def add(self, text: str, *, source: str, host: str) -> None:
        """Take up one output.

        Args:
            text: Of it.
            source: Its name.
            host: Whose it is, where it is LLDP.

        Raises:
            UnreadableError: it is of none of the tools, cut or garbled; or LLDP of no host, or without a neighbour.
        """
        if looks_like_iblinkinfo(text):
            self._add_fabric(read_iblinkinfo(text), source, whole=False)
        elif looks_like_ports(text):
            self._add_fabric(read_ports(text), source, whole=False)
        elif looks_like_topology(text):
            self._add_fabric(_whole(read_topology(text)), source, whole=True)
        elif looks_like_lldp(text):
            self._add_lldp(text, source, host)
        else:
            raise UnreadableError("is no output of ibnetdiscover, iblinkinfo or lldpctl (json, keyvalue)")

    def _add_fabric(self, fabric: Fabric, source: str, *, whole: bool) -> None:
        kinds = {node.guid: node.kind for node in fabric.nodes}
        for node in fabric.nodes:
            key, adapter = self._device(node.kind, node.guid, node.name)
            if whole and not adapter:
                self.whole.add(key)
        for end in fabric.ends:
            if AGGREGATION in end.node.name or AGGREGATION in end.peer_name:
                continue
            here = self._port(end.node.kind, end.node.guid, end.node.name, end.port)
            self.listed.add(here)
            self.details[here] = Detail(
                source=source, state=end.state, width=end.width, speed=end.speed, could_be=end.could_be
            )
            if end.peer is None:
                self.alone.append(here)
            else:
                guid, number = end.peer
                there = self._port(kinds.get(guid) or end.peer_kind, guid, end.peer_name, number)
                self.links.append((here, there))

    def _port(self, kind: str, guid: str, description: str, number: int) -> Port:
        key, adapter = self._device(kind, guid, description)
        return key, naming.adapter_port(adapter, number) if adapter else str(number)

    def _device(self, kind: str, guid: str, description: str) -> tuple[str, str]:
        """Key of the device; and the adapter where it is a host."""
        found = None if kind in ("SW", "RT") else naming.adapter_of(description)
        if found is not None:
            host, adapter = found
            self.adapters.setdefault(guid, (host, adapter))
            self._named(host, description.strip()[: len(host)])
            return found
        key = f"0x{guid}"
        if kind != "CA":
            self.switches.add(key)
        if key not in self.shown or self.shown[key] == key:
            names = naming.switch_names(description) if description else (key,)
            self.shown[key] = printable(names[0]) if description and kind != "CA" else f"{printable(description)} {key}"
            for name in names if kind != "CA" else ():
                self.aliases.setdefault(name, set()).add(key)
        return key, ""

    def _named(self, key: str, shown: str) -> None:
        self.shown.setdefault(key, printable(shown))
        self.aliases.setdefault(key, set()).add(key)

    def _add_lldp(self, text: str, source: str, host: str) -> None:
        if not host:
            raise UnreadableError("LLDP does not say whose it is: name the file by its host, such as gpu001.json")
        neighbours = read_lldp(text)
        if not neighbours:
            # Rather nobody speaks LLDP to it, or it just began to listen, than that all its cables are gone.
            raise UnreadableError("no neighbour is in it; is LLDP on at both ends, and is lldpd up for a minute?")
        here = host.casefold()
        self._named(here, host)
        self.lldp.add(here)
        for each in neighbours:
            there = each.name.casefold()
            self._named(there, each.name)
            ports = (here, each.interface.casefold()), (there, each.port.casefold())
            self.listed.add(ports[0])
            self.details.setdefault(ports[0], Detail(source=source))
            self.links.append(ports)
            if each.description:
                self.labels.setdefault((there, each.description.casefold()), each.port.casefold())

    def seen(self) -> Seen:
        """All of it; names with and without domain are one where no two domains have the name."""
        one = self._one_name()
        claims: dict[Port, dict[Port, None]] = {}
        for here, there in ((_renamed(a, one), _renamed(b, one)) for a, b in self.links):
            claims.setdefault(here, {})[there] = None
            claims.setdefault(there, {})[here] = None
        alone = {_renamed(port, one) for port in self.alone}
        conflicts = _conflicts(claims, alone)
        peers = {port: next(iter(at)) for port, at in claims.items() if port not in conflicts}
        names: dict[str, set[str]] = {}
        short: dict[str, set[str]] = {}
        for alias, keys in self.aliases.items():
            mine = {one.get(key, key) for key in keys}
            names.setdefault(alias, set()).update(mine)
            short.setdefault(naming.without_domain(alias), set()).update(mine)
        return Seen(
            peers=peers,
            conflicts=conflicts,
            details={_renamed(port, one): detail for port, detail in self.details.items()},
            # What is at a port is known as well where only the other end tells it.
            listed=frozenset(_renamed(port, one) for port in self.listed) | frozenset(claims),
            whole=frozenset(self.whole),
            lldp=frozenset(one.get(key, key) for key in self.lldp),
            switches=frozenset(self.switches),
            names={name: frozenset(keys) for name, keys in names.items()},
            short_names={name: frozenset(keys) for name, keys in short.items()},
            adapters={guid: _renamed(port, one) for guid, port in self.adapters.items()},
            labels={_renamed(port, one): label for port, label in self.labels.items()},
            shown={one.get(key, key): name for key, name in reversed(self.shown.items())},
        )

    def _one_name(self) -> dict[str, str]:
        """One key for ``gpu001`` and ``gpu001.example.com``."""
        full: dict[str, set[str]] = {}
        for key in self.shown:
            if not key.startswith("0x") and naming.without_domain(key) != key:
                full.setdefault(naming.without_domain(key), set()).add(key)
        return {next(iter(keys)): short for short, keys in full.items() if len(keys) == 1}


def _whole(fabric: Fabric) -> Fabric:
    """A topology as it is, if it was not cut.

    It lists ports with a link only, each link at both its ends. Where one end is not there the rest of the file is
    not either, and a port that is not listed may have a link.
    """
    ends = [end for end in fabric.ends if AGGREGATION not in end.node.name and AGGREGATION not in end.peer_name]
    if not ends:
        raise UnreadableError("no link is in it; it may be cut")
    listed = {(end.key, end.peer) for end in ends}
    for end in ends:
        if end.peer is not None and (end.peer, end.key) not in listed:
            here = f"{printable(end.node.name or end.node.guid)} port {end.port}"
            there = f"port {end.peer[1]} of {printable(end.peer_name or end.peer[0])}"
            raise UnreadableError(f"is cut: {here} goes to {there}, which does not say so")
    return fabric


def _renamed(port: Port, one: Mapping[str, str]) -> Port:
    return one.get(port[0], port[0]), port[1]


def _conflicts(claims: Mapping[Port, Iterable[Port]], alone: set[Port]) -> dict[Port, tuple[str, ...]]:
    found: dict[Port, tuple[str, ...]] = {}
    for port, at in claims.items():
        said = [f"{device} {label}" for device, label in at] + (["nothing"] if port in alone else [])
        if len(said) > 1 or port in at:
            found[port] = tuple(said)
    named = {other for port in found for other in claims[port]}
    return found | {port: ("named by a port of which two things are said",) for port in named if port not in found}


def files_of(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Every file with the host that it would be of, were it LLDP; folders are walked through.

    The host is the file's name without its ending; of a file called ``lldp`` or the like, the folder it lies in.
    """
    for path in paths:
        if path == "-":
            yield path, ""
            continue
        found = Path(path)
        inside = sorted(each for each in found.rglob("*") if each.is_file()) if found.is_dir() else [found]
        for file in inside:
            stem = _SUFFIXES.sub("", file.name)
            yield str(file), file.absolute().parent.name if _NO_HOST.fullmatch(stem) else stem
