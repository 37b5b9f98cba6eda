"""Devices on the PCI bus and their links: ``lspci -Dnn``, ``lspci -vvv``, files of ``/sys/bus/pci/devices``."""

import re
from dataclasses import dataclass

from wholestack.health.parts import pci_key
from wholestack.health.probe import UnreadableError

NVIDIA = "10de"
MELLANOX = "15b3"
GPU_CLASSES = ("0300", "0302")
"""VGA controller, 3D controller."""
BRIDGE_CLASSES = ("0604", "0680")

_HEAD = re.compile(
    r"(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]) "
    r"(?P<kind>[^\[:\n]{1,80}?)(?: \[(?P<class>[0-9a-f]{4})\])?: (?P<name>[^\n]{0,400})",
    re.IGNORECASE,
)
_IDS = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]", re.IGNORECASE)
_REVISION = re.compile(r"\(rev ([0-9a-f]{2})\)", re.IGNORECASE)
_LINK = re.compile(r"Lnk(Cap|Sta):[^\n]{0,60}?Speed ([\d.]{1,6})GT/s[^,\n]{0,40}, Width x(\d{1,2})")
_SPEED = re.compile(r"([\d.]{1,6}) GT/s")
_KINDS = {"3d controller": "0302", "vga compatible controller": "0300", "infiniband controller": "0207",
          "ethernet controller": "0200", "pci bridge": "0604", "bridge": "0680"}  # fmt: skip
_VENDORS = {"nvidia": NVIDIA, "mellanox": MELLANOX}


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """State of a PCIe link and what the device could do."""

    speed_gt_s: float
    width: int
    max_speed_gt_s: float
    max_width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One function on the bus."""

    key: str
    """Address as :func:`~wholestack.health.parts.pci_key` spells it."""
    class_code: str
    """Four hex digits, or empty."""
    vendor: str
    """Four hex digits, or empty."""
    line: str
    """What is told of it."""
    gone: bool = False
    """Revision ff: its configuration space reads all ones."""
    link: Link | None = None

    @property
    def is_gpu(self) -> bool:
        """An NVIDIA GPU."""
        return self.vendor == NVIDIA and self.class_code in GPU_CLASSES

    @property
    def is_nvswitch(self) -> bool:
        """An NVSwitch: the only other bridge that NVIDIA makes."""
        return self.vendor == NVIDIA and self.class_code == "0680"

    @property
    def is_hca(self) -> bool:
        """An adapter that can do RDMA to GPU memory."""
        return self.class_code == "0207" or (self.vendor == MELLANOX and self.class_code == "0200")


def looks_like_lspci(text: str) -> bool:
    """The first line is an address and a device."""
    return _HEAD.match(text.lstrip()) is not None


def read_lspci(text: str) -> tuple[Device, ...]:
    """All devices; with ``-vvv`` also their links.

    Raises:
        UnreadableError: a line that begins at the margin is no device.
    """
    devices = []
    for block in re.split(r"\n(?=[0-9a-fA-F])", text.strip()):
        head = _HEAD.match(block)
        if head is None:
            raise UnreadableError(f"not a device: {block[:60]!r}")
        devices.append(_device(head, block))
    return tuple(devices)


def looks_like_sysfs(text: str) -> bool:
    """Lines such as ``0000:9b:00.0/current_link_width:16``."""
    return re.match(r"[0-9a-fA-F:.]{7,20}/[a-z_]{4,30}:", text.lstrip()) is not None


def read_sysfs(text: str) -> tuple[Device, ...]:
    """All devices with their links.

    Raises:
        UnreadableError: a line is no file of a device.
    """
    files: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        address, slash, rest = line.partition("/")
        name, colon, value = rest.partition(":")
        if not (slash and colon):
            raise UnreadableError(f"not a file of a device: {line[:60]!r}")
        files.setdefault(address, {})[name] = value.strip()
    return tuple(
        Device(
            key=pci_key(address),
            class_code=each.get("class", "").removeprefix("0x")[:4],
            vendor=each.get("vendor", "").removeprefix("0x"),
            line=f"{address}: " + ", ".join(f"{name} {value}" for name, value in each.items() if "link" in name),
            link=_sysfs_link(each),
        )
        for address, each in files.items()
    )


def _device(head: re.Match[str], block: str) -> Device:
    name = head["name"]
    ids = _IDS.findall(name)
    kind = head["kind"].strip().lower()
    vendor = ids[-1][0].lower() if ids else next((code for word, code in _VENDORS.items() if word in name.lower()), "")
    revision = _REVISION.search(name)
    found = {which: (float(speed), int(width)) for which, speed, width in _LINK.findall(block)}
    link = None
    if "Cap" in found and "Sta" in found:
        (speed, width), (max_speed, max_width) = found["Sta"], found["Cap"]
        link = Link(speed_gt_s=speed, width=width, max_speed_gt_s=max_speed, max_width=max_width)
    return Device(
        key=pci_key(head["address"]),
        class_code=(head["class"] or _KINDS.get(kind, "")).lower(),
        vendor=vendor,
        line=head[0].strip(),
        gone=revision is not None and revision[1].lower() == "ff",
        link=link,
    )


def _sysfs_link(files: dict[str, str]) -> Link | None:
    speeds = [_SPEED.match(files.get(name, "")) for name in ("current_link_speed", "max_link_speed")]
    widths = [files.get(name, "") for name in ("current_link_width", "max_link_width")]
    if speeds[0] is None or speeds[1] is None or not all(width.isdigit() and len(width) < 4 for width in widths):
        return None
    return Link(
        speed_gt_s=float(speeds[0][1]),
        max_speed_gt_s=float(speeds[1][1]),
        width=int(widths[0]),
        max_width=int(widths[1]),
    )
