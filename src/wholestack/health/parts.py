"""Parts of a host: what a Finding blames. The same part has the same key whichever tool named it."""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from wholestack.record import Record

PartKind = Literal[
    "host", "gpu", "nvlink", "nvswitch", "hca", "hca_port", "nic", "cable", "pci", "drive", "filesystem", "mount",
    "pool", "array", "dimm", "memory", "cpu", "fan", "psu", "sensor", "bmc", "clock", "kernel", "service",
    "container_runtime", "driver", "process", "switch", "probe",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Record):
    """One part."""

    kind: PartKind
    key: str = ""
    """Stable name within host and kind: PCI address of a GPU (``0000:9b:00``), ``mlx5_0/1``, ``/dev/nvme0``."""
    label: str = ""
    """More that helps to find it, for a person: slot, index, serial. Not part of its identity."""
    within: tuple[str, ...] = ()
    """``kind key`` of every part that holds this one, for instance the GPU of a link."""

    @property
    def identity(self) -> str:
        """``kind key``: what makes two parts the same."""
        return f"{self.kind} {self.key}".strip()

    def __str__(self) -> str:
        return f"{self.identity} ({self.label})" if self.label else self.identity


def identity_in(text: str) -> str:
    """The identity in what :class:`Part` gives as a text, as Findings have it: without the label."""
    return text.partition(" (")[0]


LONGEST_KEY = 200
"""Characters; what is longer was not made by a maker of hardware."""


def fitting(part: Part) -> Part:
    """The part with names of bounded length; keys that differ only beyond the bound stay apart."""
    if len(part.key) + len(part.label) + sum(map(len, part.within)) <= LONGEST_KEY:
        return part
    within = tuple(f"{kind} {_fitting(key)}".strip() for kind, _, key in (each.partition(" ") for each in part.within))
    return Part(kind=part.kind, key=_fitting(part.key), label=part.label[:LONGEST_KEY], within=within)


def _fitting(key: str) -> str:
    if len(key) <= LONGEST_KEY:
        return key
    mark = hashlib.sha256(key.encode(errors="replace")).hexdigest()[:8]
    return f"{key[: LONGEST_KEY - 9]}~{mark}"


HOST = Part(kind="host")
_PCI = re.compile(r"(?:PCI:)?(?:([0-9a-f]{4,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-9a-f]))?", re.IGNORECASE)


@lru_cache(maxsize=4096)
def pci_key(address: str) -> str:
    """One spelling of a PCI address: ``00000000:9B:00.0``, ``PCI:0000:9b:00`` and ``9b:00.0`` are ``0000:9b:00``.

    The function number is kept unless it is 0, so that NIC ports stay apart.

    Raises:
        ValueError: it is no PCI address.
    """
    found = _PCI.fullmatch(address.strip())
    if found is None:
        raise ValueError(f"{address[:40]!r} is no PCI address")
    domain, bus, device, function = found.groups()
    tail = f".{function}" if function not in (None, "0") else ""
    return f"{int(domain or '0', 16):04x}:{int(bus, 16):02x}:{int(device, 16):02x}{tail}"
