"""PCI devices and their links: ``lspci -nn`` (with or without ``-D``), ``lspci -vvv``, sysfs ``grep`` lines.

Source: pciutils ``lspci.c``, ``ls-caps.c``; Linux ``Documentation/ABI/testing/sysfs-bus-pci``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from wholestack.health.formats.device_files import first_line, read_tree
from wholestack.health.parts import pci_key
from wholestack.health.probe import UnreadableError

SPEED = re.compile(r"(?:Speed |^)(\d{1,3}(?:\.\d)?) ?GT/s")
WIDTH = re.compile(r"(?:Width x|^x?)(\d{1,2})(?!\d)")
JUDGED_CLASSES = ("0x01", "0x02", "0x03", "0x0b40", "0x12")
"""Storage, network, display, co-processors and accelerators: of sysfs, links of others are left out."""
ADDRESS = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One line of ``lspci -nn``."""

    address: str
    """As printed."""
    pci_class: str
    """Four hexadecimal digits: 0302 3D controller, 0207 InfiniBand, 0680 bridge (NVSwitch), 0108 NVMe."""
    vendor: str
    """Four hexadecimal digits."""
    device: str
    name: str
    line: str
    gone: bool = False
    """Revision ff: its configuration reads all ones."""

    @property
    def key(self) -> str:
        """As :func:`~wholestack.health.parts.pci_key` spells the address."""
        return pci_key(self.address)

    @property
    def is_gpu(self) -> bool:
        """Made by NVIDIA and of a display class."""
        return self.vendor == "10de" and self.pci_class in ("0300", "0302")

    @property
    def is_nvswitch(self) -> bool:
        """The only other bridge that NVIDIA makes."""
        return self.vendor == "10de" and self.pci_class == "0680"

    @property
    def virtual(self) -> bool:
        """A virtual function, as a guest sees it."""
        return "Virtual Function" in self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A device with a PCI Express link, and what it can and does run at."""

    key: str
    name: str
    faces_down: bool
    """A root or downstream port: it does what the device below it can; that one is judged."""
    speed_gts: float | None
    """GT/s; ``None`` if it is not told or no number."""
    width: int | None
    most_gts: float | None
    most_width: int | None
    line: str
    """What was read, for a person."""
    acs: str = ""
    """Access control services as printed; ``SrcValid+`` is on. Empty if not told."""
    is_verbose: bool = False
    """Whether all devices and both ends of links are told (``lspci -vvv``)."""
    is_gpu: bool = False
    """Its link is clocked down when idle."""

    @property
    def slot(self) -> str:
        """The address without the function: all functions share one link."""
        return self.key.partition(".")[0]


LSPCI = re.compile(
    rf"^({ADDRESS}) ([^\n]{{0,200}}?) \[([0-9a-f]{{4}})\]: "
    r"([^\n]{0,400}) \[([0-9a-f]{4}):([0-9a-f]{4})\]((?: \(rev ff\))?)",
    re.MULTILINE,
)


def looks_like_lspci(text: str) -> bool:
    """``0000:9b:00.0 3D controller [0302]: ...`` first."""
    return re.match(rf"{ADDRESS} \S", first_line(text)) is not None and not looks_like_verbose(text)


def read_lspci(text: str) -> list[Device]:
    """From ``lspci -nn`` or ``lspci -Dnn``.

    Raises:
        UnreadableError: no line, or lines without numbers (``-nn`` was not given), or a line that was cut.
    """
    lines = [line for line in text.splitlines() if re.match(ADDRESS, line)]
    found = [
        Device(
            address=address,
            pci_class=pci_class,
            vendor=vendor,
            device=device,
            name=name,
            line=f"{address} {what} [{pci_class}]: {name} [{vendor}:{device}]{revision}",
            gone=bool(revision),
        )
        for address, what, pci_class, name, vendor, device, revision in LSPCI.findall(text)
    ]
    if not found or len(found) != len(lines):
        raise UnreadableError(
            f"{len(lines) - len(found)} of {len(lines)} lines have no class and device number (lspci -nn)"
        )
    return found


def looks_like_verbose(text: str) -> bool:
    """Indented lines below the first device."""
    return re.match(rf"{ADDRESS} [^\n]*\n[ \t]+\S", text.lstrip()) is not None


def read_verbose(text: str) -> list[Link]:
    """From ``lspci -vvv`` (as root: else it does not show the links).

    Raises:
        UnreadableError: no link is in it.
    """
    links: list[Link] = []
    denied = False
    for block in re.split(r"\n(?=\S)", text.strip("\n")):
        head, _, body = block.partition("\n")
        match = re.match(rf"({ADDRESS}) ([^\n]*)", head)
        denied = denied or "<access denied>" in body
        capable, status = _line(body, "LnkCap:"), _line(body, "LnkSta:")
        if match is None or not (capable or status):
            continue
        links.append(_verbose_link(pci_key(match[1]), match[2], body, capable, status))
    if not links:
        raise UnreadableError(
            "needs root: capabilities are denied" if denied else "no link is in it (lspci -vvv as root)"
        )
    return links


def _verbose_link(key: str, name: str, body: str, capable: str, status: str) -> Link:
    acs = _line(body, "ACSCtl:")
    return Link(
        key=key,
        name=name[:120],
        faces_down=re.search(r"Express \(v\d+\) (?:Root|Downstream) Port", body) is not None,
        speed_gts=_gts(status),
        width=_width(status),
        most_gts=_gts(capable),
        most_width=_width(capable),
        line=f"{key} {name[:80]}: LnkCap {capable[:60]}; LnkSta {status[:60]}",
        acs=acs,
        is_verbose=True,
        is_gpu="NVIDIA" in name and re.match(r"3D|VGA", name) is not None,
    )


def _line(body: str, name: str) -> str:
    begin = body.find(name)
    return (
        body[begin + len(name) : body.find("\n", begin) if "\n" in body[begin:] else None].strip() if begin >= 0 else ""
    )


def _gts(text: str) -> float | None:
    found = SPEED.search(text)
    return float(found[1]) if found else None


def _width(text: str) -> int | None:
    found = WIDTH.search(text)
    return int(found[1]) if found else None


def looks_like_links(text: str) -> bool:
    """``0000:9b:00.0/current_link_speed:...`` first."""
    return re.match(rf"(?:\./)?{ADDRESS}/\w+:", first_line(text)) is not None


def read_links(text: str) -> list[Link]:
    """From ``path:value`` lines below ``/sys/bus/pci/devices``: links of :data:`JUDGED_CLASSES`."""
    devices: dict[str, dict[str, str]] = {}
    for path, value in read_tree(text).items():
        address, _, name = path.rpartition("/")
        devices.setdefault(address, {})[name] = value
    return [
        _sysfs_link(address, own)
        for address, own in devices.items()
        if "current_link_width" in own and own.get("class", "0x02").startswith(JUDGED_CLASSES)
    ]


def _sysfs_link(address: str, own: Mapping[str, str]) -> Link:
    speed, width = own.get("current_link_speed", ""), own["current_link_width"]
    most, widest = own.get("max_link_speed", ""), own.get("max_link_width", "")
    name = f"class {own.get('class', '?')} device {own.get('vendor', '?')}:{own.get('device', '?')}"
    return Link(
        key=pci_key(address),
        name=name,
        faces_down=False,
        speed_gts=_gts(speed),
        width=_width(width),
        most_gts=_gts(most),
        most_width=_width(widest),
        line=f"{pci_key(address)} {name}: {speed} x{width} of {most} x{widest}",
        is_gpu=own.get("vendor") == "0x10de" and own.get("class", "").startswith("0x03"),
    )
