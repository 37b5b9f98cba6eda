"""Manifests of gcm (``/etc/manifest.json``: the hardware that a node should have) and recorded states of nodes.

A manifest has tables ``pci`` (by address: type, slot, device, link speeds and width), ``eth`` (by slot: interface,
flags, speed in Mb/s, MTU) and ``ib`` (rate, firmware versions, interfaces). A state is either a table of kernel files
by path, or ``intf_status`` (``ip -j addr``), ``link_speed``, ``phys_macaddr`` and ``intf_ifcfg``. Keys not named here
are left alone.

Source: facebookresearch/gcm, ``health_checks/checks/check_pci.py``, ``check_iblink.py``, ``check_ethlink.py``.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wholestack.errors import InputError
from wholestack.health.check import Expectation, Scalar
from wholestack.health.parts import pci_key
from wholestack.health.probe import UnreadableError

OPTION = "manifest"
"""Name of the option of an expectation that holds the manifest's text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PciSlot:
    """One expected device."""

    address: str
    """As written: ``0000:8d:00.0``."""
    kind: str
    """``gpu``, ``nvme``, ``ib``, ``net``, ``pci``."""
    slot: str
    device: str
    """Last part of its path: ``nvme0``, ``ib4``, ``nvidia0``."""
    speeds_gts: tuple[float, ...]
    """Each of them is right."""
    width: int
    critical: bool
    """Without it the kernel numbers other devices in another way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EthernetSlot:
    """One expected interface."""

    slot: str
    interface: str
    physical: bool
    flags: tuple[str, ...]
    speed_mbs: int | None
    mtu: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a node should be."""

    pci: tuple[PciSlot, ...] = ()
    ethernet: tuple[EthernetSlot, ...] = ()
    ib_rate: str = ""
    ib_firmware: tuple[str, ...] = ()
    ib_adapters: Mapping[str, str] = field(default_factory=dict)
    """Name of the RDMA device by interface: ``mlx5_6`` of ``ib4``."""

    @property
    def ib(self) -> tuple[PciSlot, ...]:
        """InfiniBand adapters."""
        return tuple(slot for slot in self.pci if slot.kind == "ib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What the kernel made of one PCI device."""

    adapter: str = ""
    interface: str = ""
    drive: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files below ``infiniband/NAME`` and ``net/NAME``: ``ports/1/rate``, ``operstate``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What was recorded of a node."""

    speeds: Mapping[str, str]
    """Current link speed by PCI address."""
    widths: Mapping[str, str]
    bound: Mapping[str, Bound]
    """By PCI address."""
    interfaces: Mapping[str, Mapping[str, Any]] | None
    """``ip -j addr`` by name; ``None`` where it was not recorded."""
    speeds_mbs: Mapping[str, str]
    addresses: Mapping[str, str]
    """Permanent MAC addresses."""
    configured: Mapping[str, Mapping[str, Any]] | None
    """Configuration by interface."""
    is_empty: bool


def looks_like_manifest(text: str) -> bool:
    """A JSON object with one of the tables of a manifest and none of a state."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(raw, dict) and any(isinstance(raw.get(name), dict) for name in ("pci", "eth", "ib"))


def expectation(text: str) -> Expectation:
    """What to expect of a node by its manifest: the manifest itself, and the counts that a sweep can see.

    Raises:
        InputError: it is no manifest; names the key.
    """
    try:
        manifest = read_manifest(text)
    except UnreadableError as error:
        raise InputError(f"manifest: {error}") from error
    counts = {
        "pci.gpus": sum(slot.kind == "gpu" for slot in manifest.pci),
        "pci.nvswitches": sum(slot.device.startswith("nvswitch") for slot in manifest.pci),
        "pci.nvme": sum(slot.kind == "nvme" for slot in manifest.pci),
    }
    traits: dict[str, Scalar] = {name: count for name, count in counts.items() if count}
    return Expectation(traits=traits, options={OPTION: text})


def read_manifest(text: str) -> Manifest:
    """Read a manifest.

    Raises:
        UnreadableError: it is no JSON object, has none of the tables, or a value of the wrong type; names the key.
    """
    raw = _object(text)
    if not looks_like_manifest(text):
        raise UnreadableError("none of the tables pci, eth, ib is in it")
    ib = _table(raw, "ib", "")
    interfaces = _table(ib, "interfaces", "ib.")
    return Manifest(
        pci=tuple(_pci_slot(address, _table(raw["pci"], address, "pci.")) for address in _table(raw, "pci", "")),
        ethernet=tuple(_eth_slot(slot, _table(raw["eth"], slot, "eth.")) for slot in _table(raw, "eth", "")),
        ib_rate=_text(ib, "link_rate", "ib."),
        ib_firmware=_texts(ib, "firmware_version", "ib."),
        ib_adapters={
            name: _text(_table(interfaces, name, "ib.interfaces."), "mlx", f"ib.interfaces.{name}.")
            for name in interfaces
        },
    )


def _pci_slot(address: str, own: Mapping[str, Any]) -> PciSlot:
    where = f"pci.{address}."
    speeds = [_gts(speed) for speed in _texts(own, "link_speed", where)]
    width = _text(own, "link_width", where)
    try:
        pci_key(address)
    except ValueError as error:
        raise UnreadableError(f"pci: {error}") from error
    if None in speeds or not re.fullmatch(r"\d{1,3}", width):
        raise UnreadableError(f"{where}link_speed or link_width is no number")
    return PciSlot(
        address=address.lower(),
        kind=_text(own, "type", where),
        slot=_text(own, "slot", where),
        device=_text(own, "dev", where).rpartition("/")[2],
        speeds_gts=tuple(sorted({speed for speed in speeds if speed is not None})),
        width=int(width),
        critical=str(own.get("topology_critical", "")).lower() == "true",
    )


def _eth_slot(slot: str, own: Mapping[str, Any]) -> EthernetSlot:
    where = f"eth.{slot}."
    speed, mtu = own.get("speed"), own.get("mtu")
    for name, value in (("speed", speed), ("mtu", mtu)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise UnreadableError(f"{where}{name} is {value!r}, must be a whole number")
    return EthernetSlot(
        slot=slot,
        interface=_text(own, "netdev", where),
        physical=own.get("phys") is True,
        flags=_texts(own, "flags", where),
        speed_mbs=speed,
        mtu=mtu,
    )


STATE_PATH = re.compile(
    r"/sys/(?:class/pci_bus/[^/]{4,20}/device|bus/pci/devices)/([0-9a-fA-F:.]{7,20})/"
    r"(?:(current_link_speed|current_link_width)|(infiniband|net|nvme)/([^/]{1,64})/(.+))"
)


def looks_like_state(text: str) -> bool:
    """A JSON object."""
    return text.lstrip().startswith("{")


def read_state(text: str) -> State:
    """Read a recorded state; an empty object is a node of which nothing was there.

    Raises:
        UnreadableError: it is no JSON object, or one of other things.
    """
    raw = _object(text)
    found = [(match, value) for path, value in raw.items() if (match := STATE_PATH.fullmatch(path))]
    interfaces = raw.get("intf_status")
    if raw and not found and interfaces is None:
        raise UnreadableError("neither kernel files below /sys nor intf_status are in it")
    if interfaces is not None and not isinstance(interfaces, list):
        raise UnreadableError("intf_status is no list")
    configured = raw.get("intf_ifcfg")
    return State(
        speeds={match[1].lower(): str(value).strip() for match, value in found if match[2] == "current_link_speed"},
        widths={match[1].lower(): str(value).strip() for match, value in found if match[2] == "current_link_width"},
        bound=_bindings([(match, str(value).strip()) for match, value in found if match[3]]),
        interfaces=None
        if interfaces is None
        else {str(one["ifname"]): one for one in interfaces if isinstance(one, dict) and "ifname" in one},
        speeds_mbs={name: str(value) for name, value in _table(raw, "link_speed", "").items()},
        addresses={name: str(value) for name, value in _table(raw, "phys_macaddr", "").items()},
        configured=configured if isinstance(configured, dict) else None,
        is_empty=not raw,
    )


def _bindings(found: list[tuple[re.Match[str], str]]) -> dict[str, Bound]:
    names: dict[str, dict[str, str]] = {}
    files: dict[str, dict[str, str]] = {}
    for match, value in found:
        address, folder, name, rest = match[1].lower(), match[3], match[4], match[5]
        names.setdefault(address, {}).setdefault(folder, name)
        files.setdefault(address, {})[rest] = value
    return {
        address: Bound(
            adapter=own.get("infiniband", ""),
            interface=own.get("net", ""),
            drive=own.get("nvme", ""),
            files=files[address],
        )
        for address, own in names.items()
    }


def gts(text: str) -> float | None:
    """GT/s of ``16 GT/s`` and ``16.0 GT/s PCIe``."""
    return _gts(text)


def _gts(text: str) -> float | None:
    found = re.match(r"(\d{1,3}(?:\.\d{1,2})?) GT/s", text)
    return float(found[1]) if found else None


def _object(text: str) -> dict[str, Any]:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"no JSON: {str(error)[:100]}") from error
    if not isinstance(raw, dict):
        raise UnreadableError("no JSON object")
    return raw


def _table(own: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    value = own.get(name, {})
    if not isinstance(value, dict):
        raise UnreadableError(f"{where}{name} is {str(value)[:40]!r}, must be an object")
    return value


def _text(own: Mapping[str, Any], name: str, where: str) -> str:
    value = own.get(name, "")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise UnreadableError(f"{where}{name} is {str(value)[:40]!r}, must be a text")
    return value


def _texts(own: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = own.get(name, [])
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise UnreadableError(f"{where}{name} is {str(value)[:40]!r}, must be a list of texts")
    return tuple(value)
