"""``ethtool -m``: identity, readings and alarm flags of pluggable modules; one module, or several behind ``== NAME``.

Readings and flags are told by optical modules only. Source: ethtool ``sfpid.c``, ``sff-common.c``, ``qsfp.c``,
``cmis.c``; SFF-8472, SFF-8636, CMIS.
"""

import re
from dataclasses import dataclass

from wholestack.health.formats.device_files import first_line
from wholestack.health.probe import UnreadableError

NO_MODULE = re.compile(
    r"operation not supported|not supported|no such device|invalid argument|no module|module not present|unplugged"
    r"|does not exist",
    re.IGNORECASE,
)
"""What drivers say of a port without a module, of fixed ports, and of adapters that do not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One module."""

    port: str
    """Name of the interface; empty for a saved output without one."""
    vendor: str = ""
    part_number: str = ""
    serial: str = ""
    made: str = ""
    """Date code."""
    temperature_c: float | None = None
    rx_dbm: tuple[float, ...] = ()
    """Received power by lane."""
    tx_dbm: tuple[float, ...] = ()
    alarms: tuple[str, ...] = ()
    """Lines of alarm flags that are on."""
    warnings: tuple[str, ...] = ()
    """Lines of warning flags that are on, and of readings beyond an alarm threshold without a flag."""
    garbled: tuple[str, ...] = ()
    """Lines of readings that are no number, and of flags that are neither on nor off."""
    trouble: str = ""
    """Error of the tool, where there is a module that cannot be read."""


def looks_like_ethtool(text: str) -> bool:
    """``== eth0``, or fields with ``Identifier`` early."""
    return (
        first_line(text).startswith("== ")
        or re.search(r"^[ \t]*Identifier[ \t]+: ", text[:2000], re.MULTILINE) is not None
    )


def read_ethtool(text: str) -> list[Module]:
    """Modules that are there; ports that have none are left out.

    Raises:
        UnreadableError: a block that is neither a module nor a known reason for none.
    """
    head, *blocks = re.split(r"^== (\S+)[ \t]*$", text, flags=re.MULTILINE)
    named = [("", head), *zip(blocks[::2], blocks[1::2], strict=True)]
    return [module for port, body in named if body.strip() and (module := _module(port, body)) is not None]


def _module(port: str, body: str) -> Module | None:
    fields = re.findall(r"^[ \t]+(\S[^\n:]{0,80}?)[ \t]*:[ \t]?(.*)$", body, re.MULTILINE)
    if not any(name == "Identifier" for name, _ in fields):
        if NO_MODULE.search(body):
            return None
        if re.search(r"error|cannot|failed", body, re.IGNORECASE):
            return Module(port=port, trouble=first_line(body)[:200])
        raise UnreadableError(f"{port or 'the output'} has no Identifier; begins {first_line(body)[:60]!r}")
    readings = _Readings()
    for name, value in fields:
        readings.add(name, value.strip())
    plain = dict(fields)
    return Module(
        port=port,
        vendor=plain.get("Vendor name", "").strip(),
        part_number=plain.get("Vendor PN", "").strip(),
        serial=plain.get("Vendor SN", "").strip(),
        made=plain.get("Date code", "").strip(),
        temperature_c=readings.temperature_c,
        rx_dbm=tuple(readings.rx_dbm),
        tx_dbm=tuple(readings.tx_dbm),
        alarms=tuple(readings.alarms),
        warnings=tuple(readings.warnings),
        garbled=tuple(readings.garbled),
    )


class _Readings:
    """Sorts the fields of one module."""

    def __init__(self) -> None:
        self.temperature_c: float | None = None
        self.rx_dbm: list[float] = []
        self.tx_dbm: list[float] = []
        self.alarms: list[str] = []
        self.warnings: list[str] = []
        self.garbled: list[str] = []

    def add(self, name: str, value: str) -> None:
        """Take one ``name : value``."""
        low = name.lower()
        if low.endswith("threshold") or "implemented" in low or "support" in low:
            return
        if " alarm" in low or " warning" in low:
            self._flag(name, value, self.alarms if " alarm" in low else self.warnings)
        elif low == "module temperature":
            self.temperature_c = self._number(name, value, r"(-?\b\d{1,4}(?:\.\d{1,9})?) degrees C")
        elif re.match(r"(?:receiver signal|rcvr signal)", low) and "power" in low:
            self._power(name, value, self.rx_dbm)
        elif re.match(r"(?:laser output power|transmit avg optical power)", low):
            self._power(name, value, self.tx_dbm)

    def _flag(self, name: str, value: str, found: list[str]) -> None:
        if value.lower().startswith("on"):
            found.append(f"{name}: {value}")
        elif not re.match(r"off|\[?n/a", value, re.IGNORECASE):
            self.garbled.append(f"{name}: {value[:60]}")

    def _power(self, name: str, value: str, found: list[float]) -> None:
        # No light at all is "-inf dBm".
        dbm = self._number(name, value.replace("-inf", "-40.00"), r"/ (-?\d{1,4}(?:\.\d{1,9})?) dBm")
        if dbm is not None:
            found.append(dbm)

    def _number(self, name: str, value: str, pattern: str) -> float | None:
        number = re.search(pattern, value)
        if number is None and not re.match(r"\[?n/a|unsupported|not supported", value, re.IGNORECASE):
            self.garbled.append(f"{name}: {value[:60]}")
        return float(number[1]) if number else None
