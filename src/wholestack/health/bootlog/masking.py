"""What varies in a line of a log is taken out: the wording is left, and the values that stood in it.

A value is every run of letters and digits that holds a digit, with the hexadecimal groups that it hangs together with
by ``:``, ``.`` or ``-`` (addresses, GUIDs, versions). Nothing is lost by taking out too much: a value that never
changed is judged as strictly as a word (:mod:`wholestack.health.bootlog.expecting`).
"""

import re
from dataclasses import dataclass

SLOT = "<#>"
"""Stands for a value in a wording."""
LONGEST_MESSAGE = 1_000
"""Characters of a message that are looked at."""
MOST_SLOTS = 60
"""Values of a line that are told apart; what follows is one value."""

_VALUE = re.compile(r"([0-9a-fA-F]*\d[0-9A-Za-z]*(?:[.:\-][0-9a-fA-F]+(?![0-9A-Za-z]))*)")
_GROUPS = re.compile(r"((?:\b[a-fA-F]{2,8}[:\-])*[0-9a-fA-F]*\d[0-9A-Za-z]*(?:[.:\-][0-9a-fA-F]+(?![0-9A-Za-z]))*)")
"""The same, and takes groups of mere letters before it along (``ab:cd:0e:...``); half as fast."""
_IDENTITY = re.compile(
    r"[0-9a-f]{2}(?::[0-9a-f]{2}){5,7}|[0-9a-f]{4}(?::[0-9a-f]{4}){3}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?!0x)(?=[^\W_]*[a-z])[0-9a-z]{8,}|\d{9,}(?:[.:]\d+)*",
    re.IGNORECASE,
)
_SOURCE = re.compile(r"[\w\-./]*(?:<#>[\w\-./]*)*")
_DEVICE = re.compile(r"[^\[\]]*\d[0-9a-f]*\)?")


@dataclass(frozen=True, slots=True)
class Masked:
    """A message in two parts."""

    wording: str
    """With :data:`SLOT` for every value."""
    values: tuple[str, ...]
    """In their order."""


def masked(message: str) -> Masked:
    """Wording and values of a message."""
    pattern = _GROUPS if message.count(":") > 4 or message.count("-") > 3 else _VALUE
    parts = pattern.split(message, maxsplit=MOST_SLOTS)
    return Masked(SLOT.join(parts[::2]), tuple(parts[1::2]))


def filled(wording: str, values: tuple[str, ...]) -> str:
    """The message again."""
    parts = wording.split(SLOT)
    return "".join(part + value for part, value in zip(parts, (*values, ""), strict=True))


def is_identity(value: str) -> bool:
    """Whether a value names one thing or moment alone: a hardware address, a UUID, a serial number, a date."""
    return _IDENTITY.fullmatch(value) is not None


def source(wording: str) -> str:
    """Who speaks: the first word, for instance ``mlx<#>_core`` or ``ACPI``."""
    found = _SOURCE.match(wording)
    return (found[0] if found is not None else "").rstrip(".") or wording[:20]


def device(message: str) -> str:
    """The device that a message is about, where it begins with one: ``mlx5_core 0000:1a:00.0``; else empty.

    What the kernel says of one device it says in one thread, so the order of such lines is no matter of luck.
    """
    head, separator, _ = message[:60].partition(": ")
    return head if separator and _DEVICE.fullmatch(head) else ""
