"""``df``: size and use of file systems, in blocks of 1 KiB (``-k``, ``-P``, default) or inodes (``-i``).

Pseudo file systems print ``-`` for what they do not have; old ``df`` breaks the line after a long device name. Names of
devices and mount points may hold blanks. ``df -T`` puts the type behind the device.
"""

import re
from dataclasses import dataclass

from wholestack.health.formats.sysfs import whole
from wholestack.health.probe import UnreadableError

_NOT_FILLED = ("devtmpfs", "udev", "squashfs", "efivarfs", "iso9660", "erofs", "ramfs")
"""Devices and types that nobody fills: of the kernel or the firmware, or images that are full from the first day."""
_SNAPS = ("/snap/", "/var/lib/snapd/")
_IMAGE_DEVICES = ("/dev/loop", "/dev/sr")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """One line."""

    device: str
    mount: str
    used_share: float | None
    """0..1; ``None`` where ``df`` prints ``-``."""
    line: str
    size: str
    """As printed; file systems that lie on one another have the same."""
    type: str = ""
    """Where ``df`` was asked for it."""
    whole: bool = False
    """Whether every block is in use and none is kept back, as in an image that cannot be written."""

    @property
    def fills(self) -> bool:
        """Whether it may run full: a root of overlay or a tmpfs may, a device file system or a mounted image not.

        Images are told by their type, by where snaps lie, or by a loop or optical device without a single free block.
        """
        if self.used_share is None or self.device in _NOT_FILLED or self.type in _NOT_FILLED:
            return False
        return not (self.device.startswith(_IMAGE_DEVICES) and (self.whole or self.mount.startswith(_SNAPS)))


def looks_like_df(text: str) -> bool:
    """The heading begins with the word Filesystem."""
    return text.lstrip().startswith("Filesystem")


def read_df(text: str) -> list[FileSystem]:
    """All file systems.

    Raises:
        UnreadableError: a line could not be read, or there is none.
    """
    heading, *lines = [line for line in whole(text).splitlines() if line.strip()]
    typed = "Type" in heading.split()
    found: list[FileSystem] = []
    broken = ""
    for line in lines:
        joined = f"{broken} {line.strip()}" if broken else line.strip()
        entry = _entry(joined, typed=typed)
        broken = "" if entry else joined
        if broken and len(broken.split()) > 1:
            raise UnreadableError(f"{broken[:60]!r} is no line of df")
        if entry:
            found.append(entry)
    if broken or not found:
        raise UnreadableError("df lists no file system, or is cut")
    return found


_COUNTS = re.compile(r"(?<=[ \t])(\d{1,20}|-)[ \t]+(\d{1,20}|-)[ \t]+(-?\d{1,20}|-)[ \t]+(\d{1,4}%|-)[ \t]+(?=/)")


def _entry(line: str, *, typed: bool) -> FileSystem | None:
    """Four counts stand between device and mount point."""
    counts = _COUNTS.search(line)
    if counts is None:
        return None
    share = counts[4].rstrip("%")
    device = line[: counts.start()].strip()
    name, _, kind = device.rpartition(" ") if typed else (device, "", "")
    return FileSystem(
        device=name.strip(),
        mount=line[counts.end() :].strip(),
        used_share=int(share) / 100 if share != "-" else None,
        line=line,
        size=counts[1],
        type=kind,
        whole=counts[1] == counts[2] and counts[3] == "0",
    )
