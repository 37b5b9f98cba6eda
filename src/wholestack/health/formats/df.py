"""``df``: size and use of file systems, in blocks of 1 KiB (``-k``, ``-P``, default) or inodes (``-i``).

Pseudo file systems print ``-`` for what they do not have; a long device name is followed by a line break in old ``df``.
"""

import re
from dataclasses import dataclass

from wholestack.health.probe import UnreadableError

PSEUDO = ("tmpfs", "devtmpfs", "overlay", "squashfs", "efivarfs", "udev", "none", "shm", "ramfs")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """One line."""

    device: str
    mount: str
    used_share: float | None
    """0..1; ``None`` where ``df`` prints ``-``."""
    line: str


def looks_like_df(text: str) -> bool:
    """The heading begins with the word Filesystem."""
    return text.lstrip().startswith("Filesystem")


def read_df(text: str) -> list[FileSystem]:
    """All file systems.

    Raises:
        UnreadableError: no line could be read.
    """
    joined = re.sub(r"\n\s+(?=\d)", " ", text)
    found = [entry for line in joined.splitlines()[1:] if (entry := _entry(line)) is not None]
    if not found:
        raise UnreadableError("df lists no file system")
    return found


def _entry(line: str) -> FileSystem | None:
    words = re.fullmatch(r"(\S+(?: \S+)*?)\s+(?:\S+\s+)?(\d+|-)\s+(\d+|-)\s+(-?\d+|-)\s+(\d+%|-)\s+(/.*)", line.strip())
    if words is None:
        return None
    share = words[5].rstrip("%")
    return FileSystem(
        device=words[1], mount=words[6], used_share=int(share) / 100 if share != "-" else None, line=line.strip()
    )
