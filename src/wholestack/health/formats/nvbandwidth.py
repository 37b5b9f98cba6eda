"""The matrices of nvbandwidth: bandwidth (GB/s) or latency (ns) by device.

Source: NVIDIA/nvbandwidth ``output.cpp``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from wholestack.health.parts import pci_key
from wholestack.health.probe import UnreadableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """One test."""

    name: str
    """``host_to_device_memcpy_ce``."""
    unit: str
    """``GB/s`` or ``ns``."""
    cells: Mapping[tuple[int, int], float]
    """By row and column; those that are ``N/A`` are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NvBandwidth:
    """One run."""

    devices: Mapping[int, str]
    """PCI key by index."""
    matrices: tuple[Matrix, ...]
    waived: int
    unfinished: tuple[str, ...]
    """Tests that began and neither ended nor were waived."""
    failure: str


FAILURE = re.compile(r"^.*(?:\[?ERROR\]?|CUDA_ERROR|Invalid value when checking|ASSERT).*$", re.MULTILINE)


def looks_like_nvbandwidth(text: str) -> bool:
    """``nvbandwidth Version`` first."""
    return "nvbandwidth Version" in text[:2000]


def read_nvbandwidth(text: str) -> NvBandwidth:
    """Read one run.

    Raises:
        UnreadableError: no test is in it.
    """
    head, *blocks = re.split(r"^Running (\w+)\.[ \t]*$", text, flags=re.MULTILINE)
    matrices: list[Matrix] = []
    unfinished: list[str] = []
    for name, body in zip(blocks[::2], blocks[1::2], strict=True):
        if re.search(rf"^SUM {name} ", body, re.MULTILINE):
            matrices.append(_matrix(name, body))
        elif "waived" not in body.lower():
            unfinished.append(name)
    failure = FAILURE.search(text)
    if not blocks and failure is None:
        raise UnreadableError("no test is in it")
    return NvBandwidth(
        devices=_devices(head),
        matrices=tuple(matrices),
        waived=len(re.findall(r"^Waived", text, re.MULTILINE)),
        unfinished=tuple(unfinished),
        failure=failure[0].strip()[:300] if failure else "",
    )


def _devices(head: str) -> dict[int, str]:
    found = re.findall(r"^Device (\d{1,3}): [^\n]*\(([0-9a-fA-F:.]+)\)", head, re.MULTILINE)
    return {int(index): pci_key(address) for index, address in found}


def _matrix(name: str, body: str) -> Matrix:
    table = body.partition(f"SUM {name}")[0]
    unit = re.search(r"\((GB/s|ns|us)\)", table)
    columns: list[int] = []
    cells: dict[tuple[int, int], float] = {}
    for line in table.splitlines():
        words = line.split()
        if not columns and words and all(word.isdigit() for word in words):
            columns = [int(word) for word in words]
        elif columns and words and words[0].isdigit():
            if len(words) != len(columns) + 1:
                raise UnreadableError(f"{name}: a row was cut: {line.strip()[:60]!r}")
            row = int(words[0])
            cells |= {
                (row, column): float(word) for column, word in zip(columns, words[1:], strict=True) if word != "N/A"
            }
    if unit is None or not cells:
        raise UnreadableError(f"{name}: its matrix is not understood")
    return Matrix(name=name, unit=unit[1], cells=cells)
