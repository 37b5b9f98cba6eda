"""InfiniBand and RoCE adapters: sysfs (``grep`` lines, TAB lines), ``perfquery -x``, ``ibstat``, ``ibstatus``.

Names of counters are those of ``/sys/class/infiniband/*/ports/*/counters``. A field that a format does not have, or
that is missing, is empty; a counter that is no number is in ``garbled``.

Source: Linux ``Documentation/ABI/stable/sysfs-class-infiniband``; infiniband-diags ``perfquery.c``, ``ibstat.c``.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from wholestack.health.formats.device_files import first_line, read_tab_tree, read_tree
from wholestack.health.probe import UnreadableError

PERFQUERY_NAMES = {
    "SymbolErrorCounter": "symbol_error",
    "LinkErrorRecoveryCounter": "link_error_recovery",
    "LinkDownedCounter": "link_downed",
    "PortRcvErrors": "port_rcv_errors",
    "PortRcvRemotePhysicalErrors": "port_rcv_remote_physical_errors",
    "PortRcvSwitchRelayErrors": "port_rcv_switch_relay_errors",
    "PortXmitDiscards": "port_xmit_discards",
    "PortXmitConstraintErrors": "port_xmit_constraint_errors",
    "PortRcvConstraintErrors": "port_rcv_constraint_errors",
    "LocalLinkIntegrityErrors": "local_link_integrity_errors",
    "ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors",
    "VL15Dropped": "VL15_dropped",
    "PortXmitWait": "port_xmit_wait",
    "PortXmitData": "port_xmit_data",
    "PortRcvData": "port_rcv_data",
}
RATE = re.compile(r"(\d{1,5}(?:\.\d{1,3})?)(?: Gb/sec|$)")
LANES = re.compile(r"\((\d{1,2})X")


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One port."""

    device: str
    """``mlx5_0``; of ``perfquery``, which does not know it, ``lid 133``."""
    number: str
    state: str = ""
    """Logical state in lower case: ``active``, ``down``, ``init``, ``armed``."""
    phys_state: str = ""
    """In lower case: ``linkup``, ``polling``, ``disabled``."""
    rate: str = ""
    """As printed: ``400 Gb/sec (4X NDR)``, or ``400`` in ``ibstat``."""
    link_layer: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    hw_counters: Mapping[str, int] = field(default_factory=dict)
    garbled: Mapping[str, str] = field(default_factory=dict)
    """Counters that are no numbers, as printed."""

    @property
    def key(self) -> str:
        """``mlx5_0/1``."""
        return f"{self.device}/{self.number}"

    @property
    def rate_gbs(self) -> float | None:
        """Gb/s; ``None`` if it cannot be read."""
        found = RATE.match(self.rate)
        return float(found[1]) if found else None

    @property
    def lanes(self) -> int | None:
        """4 for ``4X``; ``None`` where the rate does not say."""
        found = LANES.search(self.rate)
        return int(found[1]) if found else None

    @property
    def is_infiniband(self) -> bool:
        """Where the link layer is not told it is InfiniBand: only old tools leave it out."""
        return self.link_layer in ("", "InfiniBand")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One device of ``/sys/class/infiniband``."""

    name: str
    ports: tuple[Port, ...]
    firmware: str = ""
    board: str = ""
    kind: str = ""
    """``hca_type``, for instance ``MT4129``."""
    guid: str = ""
    numa_node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfiniBand:
    """What one host (or one saved output) says."""

    adapters: tuple[Adapter, ...]
    format: str
    has_state: bool
    """Whether this format tells states, rates and link layers."""
    has_counters: bool

    @property
    def ports(self) -> Iterator[Port]:
        """All ports of all adapters."""
        return (port for adapter in self.adapters for port in adapter.ports)


def looks_like_sysfs(text: str) -> bool:
    """Lines such as ``mlx5_0/ports/1/state:4: ACTIVE`` or ``mlx5_0/fw_ver:28.41.1000``."""
    files = r"ports/|fw_ver:|board_id:|hca_type:|node_guid:|device/numa_node:"
    return re.match(rf"(?:\./)?[\w-]{{1,64}}/(?:{files})", first_line(text)[:200]) is not None


def looks_like_tab(text: str) -> bool:
    """Lines such as ``ports/1/state TAB 4: ACTIVE``, with or without the device in front."""
    files = r"ports/\d+/[\w/]+|fw_ver|board_id|hca_type|node_guid|device/numa_node"
    return re.match(rf"(?:[\w-]{{1,64}}/)?(?:{files})\t", first_line(text)[:200]) is not None


def looks_like_perfquery(text: str) -> bool:
    """``# Port counters: Lid 12 port 1`` or ``# Port extended counters: ...``."""
    return re.match(r"# Port (?:extended )?counters: ", text.lstrip()) is not None


def looks_like_ibstat(text: str) -> bool:
    """``CA 'mlx5_0'`` first."""
    return first_line(text).startswith("CA '")


def looks_like_ibstatus(text: str) -> bool:
    """``Infiniband device 'mlx5_0' port 1 status:`` first."""
    return first_line(text).startswith("Infiniband device '")


def read_sysfs(text: str) -> InfiniBand:
    """From ``path:value`` lines below ``/sys/class/infiniband``."""
    return _from_tree(read_tree(text), "sysfs")


def read_tab(text: str) -> InfiniBand:
    """From ``path TAB value`` lines; without a device in front they are all of one that is called ``hca``."""
    tree = read_tab_tree(text)
    bare = ("ports/", "fw_ver", "board_id", "hca_type", "node_guid", "device/")
    return _from_tree({f"hca/{path}" if path.startswith(bare) else path: tree[path] for path in tree}, "sysfs (TAB)")


def _from_tree(tree: Mapping[str, str], name: str) -> InfiniBand:
    devices: dict[str, dict[str, str]] = {}
    ports: dict[tuple[str, str], dict[str, str]] = {}
    for path, value in tree.items():
        device, _, rest = path.partition("/")
        own = devices.setdefault(device, {})
        if rest.startswith("ports/"):
            _, number, rest = rest.split("/", 2)
            ports.setdefault((device, number), {})[rest] = value
        else:
            own[rest] = value
    if not ports:
        raise UnreadableError("no port is in it")
    adapters = (
        Adapter(
            name=device,
            ports=tuple(_port(device, number, ports[d, number]) for d, number in ports if d == device),
            firmware=own.get("fw_ver", ""),
            board=own.get("board_id", ""),
            kind=own.get("hca_type", ""),
            guid=own.get("node_guid", ""),
            numa_node=own.get("device/numa_node", ""),
        )
        for device, own in devices.items()
    )
    return InfiniBand(adapters=tuple(adapters), format=name, has_state=True, has_counters=True)


def _port(device: str, number: str, own: Mapping[str, str]) -> Port:
    numbers: dict[str, dict[str, int]] = {"counters": {}, "hw_counters": {}}
    garbled: dict[str, str] = {}
    for path, value in own.items():
        folder, _, counter = path.partition("/")
        if folder in numbers and counter:
            if value.isascii() and value.isdigit() and len(value) <= 20:
                numbers[folder][counter] = int(value)
            elif not value.startswith("N/A"):
                garbled[counter] = value[:40]
    return Port(
        device=device,
        number=number,
        state=link_state(own.get("state", "")),
        phys_state=link_state(own.get("phys_state", "")),
        rate=own.get("rate", ""),
        link_layer=own.get("link_layer", ""),
        counters=numbers["counters"],
        hw_counters=numbers["hw_counters"],
        garbled=garbled,
    )


def link_state(text: str) -> str:
    """``4: ACTIVE`` and ``Active`` are ``active``; ``Initializing`` is ``init``."""
    word = text.partition(":")[2].strip().lower() if ":" in text else text.strip().lower()
    return {"initializing": "init", "initialize": "init", "link up": "linkup"}.get(word, word)


def read_perfquery(text: str) -> InfiniBand:
    """From ``perfquery`` with or without ``-x``; several ports may follow each other.

    Raises:
        UnreadableError: a port without error counters: the output was cut.
    """
    found: list[Port] = []
    for lid, number, body in re.findall(
        r"^# Port (?:extended )?counters: Lid (\d+) port (\d+)[^\n]*\n((?:[^#\n][^\n]*\n?|\n)*)", text, re.MULTILINE
    ):
        fields = dict(re.findall(r"^(\w+):\.*(.*)$", body, re.MULTILINE))
        own = {f"counters/{PERFQUERY_NAMES[name]}": value for name, value in fields.items() if name in PERFQUERY_NAMES}
        missing = [name for name in list(PERFQUERY_NAMES)[:3] if name not in fields]
        if missing:
            raise UnreadableError(f"port {number} of lid {lid} has no {missing[0]}")
        found.append(_port(f"lid {lid}", number, own))
    if not found:
        raise UnreadableError("no port is in it")
    adapters = tuple(
        Adapter(name=device, ports=tuple(port for port in found if port.device == device))
        for device in dict.fromkeys(port.device for port in found)
    )
    return InfiniBand(adapters=adapters, format="perfquery", has_state=False, has_counters=True)


def read_ibstat(text: str) -> InfiniBand:
    """From ``ibstat``."""
    adapters: list[Adapter] = []
    for name, body in re.findall(r"^CA '([^'\n]*)'\n((?:[ \t][^\n]*\n?|\n)*)", text, re.MULTILINE):
        head, *blocks = re.split(r"^[ \t]*Port (\d+):[ \t]*$", body, flags=re.MULTILINE)
        own = _colon_fields(head)
        ports = tuple(
            _ibstat_port(name, number, _colon_fields(block))
            for number, block in zip(blocks[::2], blocks[1::2], strict=True)
        )
        adapters.append(
            Adapter(
                name=name,
                ports=ports,
                firmware=own.get("Firmware version", ""),
                kind=own.get("CA type", ""),
                guid=own.get("Node GUID", ""),
            )
        )
    if not any(adapter.ports for adapter in adapters):
        raise UnreadableError("no port is in it")
    return InfiniBand(adapters=tuple(adapters), format="ibstat", has_state=True, has_counters=False)


def _ibstat_port(device: str, number: str, own: Mapping[str, str]) -> Port:
    return Port(
        device=device,
        number=number,
        state=link_state(own.get("State", "")),
        phys_state=link_state(own.get("Physical state", "")),
        rate=own.get("Rate", ""),
        link_layer=own.get("Link layer", ""),
    )


def read_ibstatus(text: str) -> InfiniBand:
    """From ``ibstatus``."""
    by_device: dict[str, list[Port]] = {}
    for device, number, body in re.findall(
        r"^Infiniband device '([^'\n]*)' port (\d+) status:[^\n]*\n((?:[ \t][^\n]*\n?)*)", text, re.MULTILINE
    ):
        own = _colon_fields(body)
        by_device.setdefault(device, []).append(
            Port(
                device=device,
                number=number,
                state=link_state(own.get("state", "")),
                phys_state=link_state(own.get("phys state", "")),
                rate=own.get("rate", ""),
                link_layer=own.get("link_layer", ""),
            )
        )
    if not by_device:
        raise UnreadableError("no port is in it")
    adapters = tuple(Adapter(name=device, ports=tuple(ports)) for device, ports in by_device.items())
    return InfiniBand(adapters=adapters, format="ibstatus", has_state=True, has_counters=False)


def _colon_fields(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found[name.strip()] = value.strip()
    return found
