"""``dmidecode``: memory modules, and what the machine is.

Source: dmidecode(8), DMTF DSP0134 (SMBIOS), types 0, 1 and 17. Older releases say "Configured Clock Speed" and MHz.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from wholestack.health.probe import NotThereError, UnreadableError
from wholestack.remote.batch import Output

BIOS, SYSTEM, MEMORY_DEVICE = 0, 1, 17
_EMPTY = ("", "Not Specified", "Unknown", "None", "N/A", "To Be Filled By O.E.M.", "Default string", "NO DIMM")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A place for a memory module."""

    key: str
    """Locator, with the bank's where the locator alone is not unique."""
    size_gib: float | None
    """0 without a module; ``None`` if the firmware does not know."""
    kind: str
    """``DDR5`` and so on."""
    rated_mts: int | None
    configured_mts: int | None
    label: str
    """Manufacturer, part and serial number."""
    part_number: str
    serial: str
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Who made the machine; a text is empty where the firmware says nothing."""

    vendor: str
    product: str
    serial: str
    bios_version: str


def no_tables(output: Output) -> str:
    """For :attr:`Probe.absent`: a machine (a small virtual one) without the firmware's tables."""
    said = output.stdout + output.stderr
    gone = b"No SMBIOS nor DMI entry point" in said or b"/dev/mem: No such file" in said
    return "no SMBIOS tables" if gone and b"Handle 0x" not in said else ""


def looks_like_dmidecode(text: str) -> bool:
    """dmidecode's own first line, or a handle."""
    return re.search(r"^# dmidecode |^Handle 0x|No SMBIOS nor DMI entry point", text[:2000], re.MULTILINE) is not None


def read_slots(text: str) -> list[Slot]:
    """Every place for a memory module.

    Raises:
        NotThereError: the tables name none.
        UnreadableError: one without locator or size (the output was cut).
    """
    # Boards list the chip of their firmware as a memory device too.
    devices = [device for device in _structures(text, MEMORY_DEVICE) if device.get("Type") not in ("Flash", "ROM")]
    if not devices:
        raise NotThereError("not_supported", "the firmware names no memory device")
    if any(not {"Size", "Locator"} <= device.keys() for device in devices):
        raise UnreadableError("a memory device without size or locator")
    locators = Counter(device["Locator"] for device in devices)
    return [_slot(device, _key(device, locators)) for device in devices]


def read_machine(text: str) -> Machine:
    """Vendor, product, serial number and BIOS.

    Raises:
        UnreadableError: there is no system information.
    """
    systems = _structures(text, SYSTEM)
    if not systems:
        raise UnreadableError("no system information")
    bios = next(iter(_structures(text, BIOS)), {})
    return Machine(
        vendor=_said(systems[0], "Manufacturer"),
        product=_said(systems[0], "Product Name"),
        serial=_said(systems[0], "Serial Number"),
        bios_version=_said(bios, "Version"),
    )


def _structures(text: str, kind: int) -> list[dict[str, str]]:
    """Fields of every structure of one type.

    Raises:
        NotThereError: the machine has no tables.
        UnreadableError: no structure of any type.
    """
    if "No SMBIOS nor DMI entry point found" in text:
        raise NotThereError("not_supported", "no SMBIOS tables")
    parts = re.split(r"^Handle 0x[0-9A-Fa-f]{1,8}, DMI type ", text, flags=re.MULTILINE)[1:]
    if not parts:
        raise UnreadableError("no structure")
    mine = [part for part in parts if part.startswith(f"{kind},")]
    return [{key: value.strip() for key, value in _FIELD.findall(part)} for part in mine]


_FIELD = re.compile(r"^[ \t]+([^:\n\s][^:\n]{0,60}): (.*)$", re.MULTILINE)


def _said(fields: Mapping[str, str], *names: str) -> str:
    """The first of these fields that says anything."""
    return next((value[:200] for name in names if (value := fields.get(name, "")) not in _EMPTY), "")


def _key(device: Mapping[str, str], locators: Mapping[str, int]) -> str:
    locator = device["Locator"][:100]
    return locator if locators[device["Locator"]] == 1 else f"{device.get('Bank Locator', '')[:100]} {locator}".strip()


def _slot(device: Mapping[str, str], key: str) -> Slot:
    size, rated = device["Size"], _said(device, "Speed")
    configured = _said(device, "Configured Memory Speed", "Configured Clock Speed")
    part_number, serial = _said(device, "Part Number"), _said(device, "Serial Number")
    names = (_said(device, "Manufacturer"), part_number, serial)
    return Slot(
        key=key,
        size_gib=_gib(size),
        kind=_said(device, "Type"),
        rated_mts=_mts(rated),
        configured_mts=_mts(configured),
        label=" ".join(filter(None, names))[:100],
        part_number=part_number,
        serial=serial,
        line=f"{key}: {size[:40]}, rated {rated or '?'}, configured {configured or '?'}",
    )


def _gib(size: str) -> float | None:
    if size in ("No Module Installed", "Not Installed"):
        return 0.0
    found = re.fullmatch(r"([0-9]{1,9}) ([kKMGT])i?B", size)
    if found is None:
        return None
    return int(found[1]) * {"k": 2**-20, "K": 2**-20, "M": 2**-10, "G": 1.0, "T": 1024.0}[found[2]]


def _mts(speed: str) -> int | None:
    found = re.fullmatch(r"([0-9]{1,6}) (?:MT/s|MHz)", speed)
    return int(found[1]) if found else None
