"""``ibnetdiscover``: the graph of an InfiniBand fabric, as one line a port (``-p``) or as a topology file.

Source: infiniband-diags ``ibnetdiscover.c``.
"""

import re
from dataclasses import dataclass

from wholestack.health.formats.device_files import first_line
from wholestack.health.probe import UnreadableError

SPEEDS = ("SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR")
"""Slowest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A switch (``SW``), channel adapter (``CA``) or router (``RT``)."""

    kind: str
    guid: str
    """Lower case, without ``0x`` and leading zeros."""
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of a link as its own node tells it."""

    node: Node
    port: int
    width: str
    """``4x``."""
    speed: str
    """One of :data:`SPEEDS`; ``???`` or another word where it is not known."""
    peer: tuple[str, int] | None
    """GUID and port at the other end; ``None`` where nothing is connected."""
    peer_name: str = ""
    peer_kind: str = ""
    """Kind of the node at the other end; empty where the output does not tell."""
    state: str = ""
    """Logical and physical, ``down/polling``; empty where the output does not tell."""
    could_be: str = ""
    """What both ends could do and the link does not, as ``iblinkinfo`` words it."""

    @property
    def key(self) -> tuple[str, int]:
        """GUID and port."""
        return self.node.guid, self.port

    def __str__(self) -> str:
        there = f"{self.peer_name or self.peer[0]} port {self.peer[1]}" if self.peer else "nothing"
        return f"{self.node.name or self.node.guid} port {self.port} to {there}: {self.width} {self.speed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """All that was seen."""

    nodes: tuple[Node, ...]
    ends: tuple[End, ...]
    unconnected: int
    """Ports without a peer."""

    @property
    def adapters(self) -> set[str]:
        """GUIDs of the channel adapters that were asked."""
        return {node.guid for node in self.nodes if node.kind == "CA"}

    @property
    def links(self) -> list[End]:
        """One end of each link, the first seen."""
        seen: set[frozenset[tuple[str, int]]] = set()
        found: list[End] = []
        for end in self.ends:
            if end.peer is not None and (pair := frozenset((end.key, end.peer))) not in seen:
                seen.add(pair)
                found.append(end)
        return found


PORT_LINE = re.compile(
    r"^(SW|CA|RT)[ \t]+\d+[ \t]+(\d+)[ \t]+0x([0-9a-f]+)[ \t]+(\d+x)[ \t]+(\S+)[ \t]+"
    r"(?:- (SW|CA|RT)[ \t]+\d+[ \t]+(\d+)[ \t]+0x([0-9a-f]+)[ \t]+"
    r"\( '([^\n]{0,128})' - '([^\n]{0,128})' \)|'([^\n]{0,128})')[ \t]*$",
    re.MULTILINE,
)


def looks_like_ports(text: str) -> bool:
    """``CA   134  1 0x7cfe...`` first."""
    return re.match(r"(?:SW|CA|RT)[ \t]+\d+[ \t]+\d+[ \t]+0x", first_line(text)) is not None


def read_ports(text: str) -> Fabric:
    """From ``ibnetdiscover -p``.

    Raises:
        UnreadableError: a line that is none of a port.
    """
    ends: list[End] = []
    nodes: dict[tuple[str, str, str], Node] = {}
    lines = [line for line in text.splitlines() if line.strip()]
    matches = list(PORT_LINE.finditer(text))
    if len(matches) != len(lines):
        raise UnreadableError(f"{len(lines) - len(matches)} of {len(lines)} lines are none of a port")
    for match in matches:
        kind, port, guid, width, speed, peer_kind, peer_port, peer_guid, name, peer_name, alone = match.groups()
        shown = (name if name is not None else alone).strip()
        node = nodes.setdefault((kind, _guid(guid), shown), Node(kind=kind, guid=_guid(guid), name=shown))
        peer = (_guid(peer_guid), int(peer_port)) if peer_guid else None
        ends.append(
            End(
                node=node, port=int(port), width=width, speed=speed, peer=peer, peer_name=(peer_name or "").strip(),
                peer_kind=peer_kind or "",
            )
        )  # fmt: skip
    return Fabric(nodes=tuple(nodes.values()), ends=tuple(ends), unconnected=sum(end.peer is None for end in ends))


HEAD = re.compile(
    r'^(Switch|Ca|Rt)[ \t]+\d+ "[SHR]-([0-9a-f]+)"[ \t]*(?:# "([^"\n]*)")?[^\n]*\n((?:\[[^\n]*\n?)*)', re.MULTILINE
)
TOPOLOGY_PORT = re.compile(
    r'^\[(\d+)\](?:\([0-9a-fx]+\))?[ \t]+"([SHR])-([0-9a-f]+)"\[(\d+)\][^#\n]*# '
    r'(?:lid \d+ lmc \d+ )?"([^"\n]*)" lid \d+ (\d+x)([\w?]+)',
    re.MULTILINE,
)


def looks_like_topology(text: str) -> bool:
    """``Switch 41 "S-..."`` or ``vendid=`` somewhere near the beginning."""
    return re.search(r'^(?:vendid=|(?:Switch|Ca)[ \t]+\d+ ")', text[:5000], re.MULTILINE) is not None


def read_topology(text: str) -> Fabric:
    """From ``ibnetdiscover`` without ``-p``; names before the first node, as some tools put there, are passed over.

    Raises:
        UnreadableError: no node, or a port that is not understood.
    """
    kinds = {"Switch": "SW", "Ca": "CA", "Rt": "RT"}
    nodes: list[Node] = []
    ends: list[End] = []
    for kind, guid, name, body in HEAD.findall(text):
        node = Node(kind=kinds[kind], guid=_guid(guid), name=name.strip())
        nodes.append(node)
        ports = TOPOLOGY_PORT.findall(body)
        if len(ports) != len([line for line in body.splitlines() if line.startswith("[")]):
            raise UnreadableError(f"a port of {name or guid} is not understood")
        for port, letter, peer, peer_port, peer_name, width, speed in ports:
            there = (_guid(peer), int(peer_port))
            ends.append(
                End(
                    node=node, port=int(port), width=width, speed=speed, peer=there, peer_name=peer_name.strip(),
                    peer_kind={"S": "SW", "H": "CA", "R": "RT"}[letter],
                )
            )  # fmt: skip
    if not nodes:
        raise UnreadableError("no node is in it")
    return Fabric(nodes=tuple(nodes), ends=tuple(ends), unconnected=0)


def _guid(text: str) -> str:
    return text.lower().lstrip("0") or "0"
