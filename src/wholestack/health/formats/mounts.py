"""``/proc/mounts``, ``/etc/fstab``, swap areas, and NFS mounts with the exit status of ``stat -f``.

Sources: fstab(5), proc(5): white space in names is written in octal (``\\040``).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from wholestack.health.formats.smartctl import drive_key
from wholestack.health.formats.sysfs import filled_lines, whole
from wholestack.health.probe import UnreadableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of ``/proc/mounts`` or ``/etc/fstab``."""

    device: str
    place: str
    """Mount point without a trailing slash."""
    kind: str
    options: frozenset[str]
    """As written, ``key=value`` or ``key``."""
    line: str

    @property
    def drive(self) -> str:
        """Identity of the drive below, or empty where the device does not name one."""
        key = drive_key(self.device)
        return f"drive {key}" if key != self.device or re.fullmatch(r"/dev/(?:[hsv]d[a-z]+|nvme\d+)", key) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Whether a network mount answered."""

    place: str
    exit_status: int
    """0; 124 or 137 if it was killed for silence; else ``stat`` failed."""


_KERNELS = re.compile(r"\S* /\S* \S+ (?:\S*,)?r[ow](?:,\S*)? 0 0")
"""Device (may be empty), place, kind, options with ``ro`` or ``rw``, two zeros (fs/proc_namespace.c, show_vfsmnt)."""


def looks_like_mounts(text: str) -> bool:
    """Its first line that is no comment has a device, a path, a type."""
    for line in text.lstrip()[:4000].split("\n"):
        words = line.split()
        if words and not words[0].startswith("#"):
            return len(words) >= 3 and (words[1].startswith("/") or words[1] in ("none", "swap"))
    return False


def looks_like_fstab(text: str) -> bool:
    """Mounts, or nothing but comments."""
    return looks_like_mounts(text) or all(line.lstrip().startswith("#") for line in filled_lines(text))


def read_mounts(text: str) -> list[Mount]:
    """Every mount of the kernel's own table, which has six words in every line and no comments.

    Raises:
        UnreadableError: a line that the kernel does not write, or a table that is cut.
    """
    lines = filled_lines(whole(text))
    for line in lines:
        if not _KERNELS.fullmatch(line):
            raise UnreadableError(f"{line[:60]!r} is no line of /proc/mounts")
    return [_mount(line, line.split(" ")) for line in lines]


def read_fstab(text: str) -> list[Mount]:
    """Every mount that a person wrote down: three to six words, and comments.

    Raises:
        UnreadableError: a line that is neither a mount nor a comment.
    """
    entries = (line for line in filled_lines(text) if not line.lstrip().startswith("#"))
    return [_mount(line, line.split()) for line in entries]


def _mount(line: str, words: Sequence[str]) -> Mount:
    if not 3 <= len(words) <= 6 and not (len(words) > 6 and words[6].startswith("#")):
        raise UnreadableError(f"{line[:60]!r} is no mount")
    return Mount(
        device=unescaped(words[0]),
        place=unescaped(words[1]).rstrip("/") or "/",
        kind=words[2],
        options=frozenset(words[3].split(",")) if len(words) > 3 else frozenset(),
        line=line.strip()[:300],
    )


def unescaped(name: str) -> str:
    r"""``\040`` and the like as the characters that they stand for."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), name) if "\\" in name else name


def looks_like_answers(text: str) -> bool:
    """A number and a path."""
    return re.match(r"\d{1,3} /", text.lstrip()) is not None


def read_answers(text: str) -> list[Answer]:
    """One line a mount, ``status path``.

    Raises:
        UnreadableError: a line is neither.
    """
    found = re.findall(r"^(\d{1,3}) (/.*)$", whole(text), re.MULTILINE)
    if len(found) != len(filled_lines(text)):
        raise UnreadableError("a line is not `status path`")
    return [Answer(place=unescaped(place).rstrip("/") or "/", exit_status=int(status)) for status, place in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """One swap area in use."""

    device: str
    line: str


def looks_like_swaps(text: str) -> bool:
    """The heading of ``/proc/swaps`` or of ``swapon --show``."""
    return text.split(None, 3)[:3] in (["Filename", "Type", "Size"], ["NAME", "TYPE", "SIZE"])


def read_swaps(text: str) -> list[Swap]:
    """Every area.

    Raises:
        UnreadableError: a line without the columns of the heading.
    """
    rows = [line.split() for line in filled_lines(whole(text))[1:]]
    if any(len(row) < 5 for row in rows):
        raise UnreadableError("a line without type, size, use and priority")
    return [Swap(device=row[0], line=" ".join(row)) for row in rows]
