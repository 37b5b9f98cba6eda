"""``smartctl -j``: what drives say of themselves; one JSON document a drive, several may follow each other.

Sources: smartctl(8) of smartmontools 7 (EXIT STATUS, JSON keys), NVM Express Base Specification 2.0, figure
"SMART / Health Information Log Page". Only what is a finite number of the right kind is taken as a number.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wholestack.health.probe import UnreadableError

MOST_DRIVES = 512
MOST = 1 << 128
COMMAND_FAILED, DISK_FAILING, PREFAIL_NOW = 4, 8, 16
"""Bits 2, 3 and 4 of smartctl's exit status; bits 5 to 7 tell of the past."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """One document."""

    device: str
    """Key of the drive, ``/dev/nvme0``, ``/dev/sda``; behind a RAID controller with its place there."""
    protocol: str
    """``NVMe``, ``ATA`` or ``SCSI``; empty if it was not opened."""
    model: str
    serial: str
    firmware: str
    exit_status: int
    errors: tuple[str, ...]
    """smartctl's own messages of severity error."""
    supported: bool
    """``False`` where the drive, or smartctl, says that it has no SMART."""
    passed: bool | None
    """The drive's own overall verdict."""
    health: Mapping[str, Any]
    """The NVMe health log, as printed."""
    attributes: Mapping[int, Mapping[str, Any]]
    """The table of an ATA drive by id."""
    document: Mapping[str, Any] = field(repr=False)
    """All of it."""

    @property
    def opened(self) -> bool:
        """Whether anything of the drive itself was read."""
        return bool(self.model or self.health or self.attributes or self.passed is not None)

    def number(self, *path: str) -> float | None:
        """A number of the document, or ``None`` if it is absent or no finite number."""
        value: Any = self.document
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return finite(value)

    def raw(self, attribute: int) -> int | None:
        """Raw value of an ATA attribute."""
        row = self.attributes.get(attribute, {}).get("raw")
        value = finite(row.get("value")) if isinstance(row, dict) else None
        return int(value) if value is not None else None


def finite(value: Any) -> float | None:
    """A JSON number as it is, anything else as ``None``: a boolean, NaN, or beyond the 128 bits of any counter."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -MOST <= value <= MOST else None


def drive_key(device: str) -> str:
    """The drive that holds a partition or name space: ``/dev/nvme0n1p2`` and ``nvme0`` are ``/dev/nvme0``."""
    name = device.removeprefix("/dev/")
    found = re.fullmatch(r"(nvme\d+)(?:c\d+)?(?:n\d+)?(?:p\d+)?|([hsv]d[a-z]{1,4}|xvd[a-z]{1,3})\d*", name)
    return f"/dev/{found[1] or found[2]}" if found else device


def looks_like_smartctl(text: str) -> bool:
    """JSON whose first lines may be a tool's warning."""
    head = text[:4000]
    return re.search(r"^[ \t]*[\[{]", head, re.MULTILINE) is not None and '"' in head


def read_smartctl(text: str) -> list[Drive]:
    """Every drive of one or several documents.

    Raises:
        UnreadableError: a document is cut or not smartctl's.
    """
    drives = [_drive(document) for document in _documents(text)]
    if not drives:
        raise UnreadableError("no document of smartctl")
    return drives


def _documents(text: str) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    position, count = 0, 0
    beginning = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)
    while (found := beginning.search(text, position)) is not None:
        document, position = decoder.raw_decode(text, found.end())
        for each in document if isinstance(document, list) else [document]:
            count += 1
            if count > MOST_DRIVES:
                raise UnreadableError(f"more than {MOST_DRIVES} drives")
            yield each


def _drive(document: Any) -> Drive:
    if not isinstance(document, dict) or not isinstance(document.get("smartctl"), dict):
        raise UnreadableError("a document without the key `smartctl`")
    run = document["smartctl"]
    device = _table(document, "device")
    support = _table(document, "smart_support")
    exit_status = finite(run.get("exit_status"))
    if exit_status is None:
        raise UnreadableError("a document without smartctl's exit status")
    errors = tuple(_errors(run.get("messages")))
    passed = _table(document, "smart_status").get("passed")
    return Drive(
        device=_name(device, run),
        protocol=_text(device, "protocol"),
        model=_text(document, "model_name") or _text(document, "scsi_model_name") or _text(document, "product"),
        serial=_text(document, "serial_number"),
        firmware=_text(document, "firmware_version") or _text(document, "revision"),
        exit_status=int(exit_status),
        errors=errors,
        supported=support.get("available") is not False and not _unsupported(errors),
        passed=passed if isinstance(passed, bool) else None,
        health=_table(document, "nvme_smart_health_information_log"),
        attributes=_attributes(document),
        document=document,
    )


def _name(device: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    name, kind = _text(device, "name"), _text(device, "type")
    if not name:
        arguments = run.get("argv")
        last = arguments[-1] if isinstance(arguments, list) and arguments else ""
        name = last if isinstance(last, str) and last.startswith("/dev/") else ""
    if not name:
        raise UnreadableError("a document that names no device")
    return f"{name} {kind}" if "," in kind else drive_key(name)


def _unsupported(errors: tuple[str, ...]) -> bool:
    words = re.compile(
        r"unable to detect device type|lacks SMART|unknown USB bridge|unsupported|try adding", re.IGNORECASE
    )
    return any(words.search(line) for line in errors)


def _errors(messages: Any) -> Iterator[str]:
    for each in messages if isinstance(messages, list) else []:
        if isinstance(each, dict) and each.get("severity") == "error":
            yield str(each.get("string", ""))[:300]


def _attributes(document: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    rows = _table(document, "ata_smart_attributes").get("table")
    known = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return {int(number): row for row in known if (number := finite(row.get("id"))) is not None}


def _table(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def _text(holder: Mapping[str, Any], key: str) -> str:
    value = holder.get(key)
    return value.strip()[:200] if isinstance(value, str) else ""
