"""``iblinkinfo``: every port of a fabric with its state, below a line for each node, or with ``--line`` a line a port.

Where the other end has no GUID in the output (without ``--line``), it is found by its LID, which the lines of its own
node state.

Source: infiniband-diags ``iblinkinfo.c``.
"""

import re

from wholestack.health.formats.ibnetdiscover import End, Fabric, Node
from wholestack.health.probe import UnreadableError

LANE_SPEEDS = {
    "2.5": "SDR", "5.0": "DDR", "10.0": "QDR", "10.0 (FDR10)": "FDR10", "14.0625": "FDR", "25.78125": "EDR",
    "53.125": "HDR", "106.25": "NDR", "212.5": "XDR",
}  # fmt: skip
"""Name by Gbit/s of a lane, as printed."""
_KINDS = {"Switch": "SW", "CA": "CA", "Router": "RT"}
_HEAD = re.compile(r"^(Switch|CA|Router):? (?:0x([0-9a-f]{1,16}) )?(.{0,128}?):\s*$")
_PORT = re.compile(
    r"^\s*(?:0x(?P<guid>[0-9a-f]{1,16})\s+)?(?:\"(?P<name>[^\"]{0,128})\"\s+)?"
    r"(?P<lid>\d{1,6})\s+(?P<port>\d{1,4})\[[\s\d]{0,4}\]\s+==\((?P<link>[^)]{0,60}(?:\(FDR10\)[^)]{0,40})?)\)"
    r"(?:\s*\(HOQ:[^)]{0,40}\))?==>\s+"
    r"(?:(?:0x(?P<peer_guid>[0-9a-f]{1,16})\s+)?(?P<peer_lid>\d{1,6})\s+(?P<peer_port>\d{1,4})\[[\s\d]{0,4}\]\s+"
    r"\"(?P<peer_name>[^\"]{0,128})\"\s*\((?P<could>[^)]{0,80})\)"
    r"|\[[\s\d]{0,4}\]\s*\"\"\s*\(\s*\)|\"Port not available\")\s*$"
)
_LINK = re.compile(r"^\s*(?:(\d{1,2})X\s*(\d{1,4}(?:\.\d{1,6})?) Gbps(?: (\(FDR10\)))?\s+)?(\w+)/\s*(\w+)\s*$")


def looks_like_iblinkinfo(text: str) -> bool:
    """An arrow with a state near the beginning."""
    return re.search(r"\]\s+==\([^\n]{0,80}/[^\n]{0,30}\)==>", text[:5000]) is not None


def read_iblinkinfo(text: str) -> Fabric:
    """Nodes and ends; ``End.state`` is given for each, also of ports without a link.

    Raises:
        UnreadableError: a line that is none of a node or a port, or no port at all.
    """
    rows = list(_rows(text))
    if not rows:
        raise UnreadableError("no port is in it")
    at_lid = {int(match["lid"]): node for node, match in rows if int(match["lid"])}
    ends = tuple(_end(node, match, at_lid) for node, match in rows)
    nodes = tuple({(node.kind, node.guid, node.name): node for node, _ in rows}.values())
    return Fabric(nodes=nodes, ends=ends, unconnected=sum(end.peer is None for end in ends))


def _rows(text: str) -> list[tuple[Node, "re.Match[str]"]]:
    rows: list[tuple[Node, re.Match[str]]] = []
    kind = guid = name = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        head = _HEAD.match(line)
        match = None if head else _PORT.match(line)
        if head:
            kind, guid, name = _KINDS[head[1]], head[2] or "", head[3].strip()
        elif match is None or not (match["guid"] or guid):
            raise UnreadableError(f"line {number} is none of a node or a port: {line.strip()[:60]!r}")
        elif match["name"] is not None:
            rows.append((Node(kind="", guid=_short(match["guid"]), name=match["name"].strip()), match))
        else:
            rows.append((Node(kind=kind, guid=_short(match["guid"] or guid), name=name), match))
    return rows


def _end(node: Node, match: "re.Match[str]", at_lid: dict[int, Node]) -> End:
    link = _LINK.match(match["link"])
    if link is None:
        raise UnreadableError(f"state of port {match['port']} of {node.name or node.guid} is not understood")
    lanes, gbps, fdr10, logical, physical = link.groups()
    peer, peer_kind = None, ""
    if match["peer_port"] is not None:
        there = at_lid.get(int(match["peer_lid"]))
        guid = _short(match["peer_guid"]) if match["peer_guid"] else there.guid if there else f"lid {match['peer_lid']}"
        peer, peer_kind = (guid, int(match["peer_port"])), there.kind if there else ""
    return End(
        node=node,
        port=int(match["port"]),
        width=f"{lanes}x" if lanes else "",
        speed=LANE_SPEEDS.get(f"{gbps} {fdr10}" if fdr10 else gbps, f"{gbps} Gbps") if gbps else "",
        peer=peer,
        peer_name=(match["peer_name"] or "").strip(),
        peer_kind=peer_kind,
        state=f"{logical}/{physical}".lower(),
        could_be=(match["could"] or "").strip(),
    )


def _short(guid: str) -> str:
    return guid.lower().lstrip("0") or "0"
