"""``ibswinfo``: identity, power supplies, fans and temperatures of an unmanaged InfiniBand switch.

Source: stanford-rc/ibswinfo, ``ibswinfo.sh``.
"""

import re
from dataclasses import dataclass, field

from wholestack.health.probe import UnreadableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One field, and the power supply that it is of."""

    name: str
    value: str
    supply: str = ""
    """``PSU0``; empty for the switch itself."""

    @property
    def line(self) -> str:
        """As a person would say it."""
        return f"{self.supply} {self.name}: {self.value}".strip()

    @property
    def number(self) -> float | None:
        """Of a reading; ``None`` if it is none."""
        return float(self.value) if re.fullmatch(r"-?\d{1,7}(?:\.\d{1,4})?", self.value) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One switch."""

    guid: str
    product: str
    firmware: str
    psid: str
    statuses: tuple[Item, ...] = field(default=())
    """``fan status``, ``DC power``, ``status`` of each power supply."""
    readings: tuple[Item, ...] = field(default=())
    """``fan#1 (rpm)``, ``temperature (C)``, ``power (W)``."""


def looks_like_ibswinfo(text: str) -> bool:
    """A line ``part number | ...`` early."""
    return re.search(r"^part number[ \t]+\|", text[:1000], re.MULTILINE) is not None


def read_ibswinfo(text: str) -> Switch:
    """Read one switch.

    Raises:
        UnreadableError: no fans or no temperature: the output was cut, or the switch did not answer for them.
    """
    plain: dict[str, str] = {}
    statuses: list[Item] = []
    readings: list[Item] = []
    supply = ""
    for indent, name, rest in re.findall(r"^([ \t]{0,40})(\S[^|\n]{0,80}?)[ \t]*\|(.*)$", text, re.MULTILINE):
        value = rest.strip()
        of_supply = re.match(r"(PSU\d{1,2}) (\S.*)", name)
        supply = of_supply[1] if of_supply else supply if indent else ""
        item = Item(name=of_supply[2] if of_supply else name, value=value, supply=supply)
        if item.name in ("status", "DC power", "fan status"):
            statuses.append(item)
        elif re.search(r"\((?:rpm|C|W)\)$", item.name):
            readings.append(item)
        else:
            plain[item.line.partition(":")[0]] = value
    named = {item.name for item in readings}
    if "temperature (C)" not in named or not any(name.startswith("fan#") for name in named):
        raise UnreadableError("no temperature or no fan is in it")
    return Switch(
        guid=plain.get("GUID", ""),
        product=plain.get("product name", ""),
        firmware=plain.get("firmware version", ""),
        psid=plain.get("PSID", ""),
        statuses=tuple(statuses),
        readings=tuple(readings),
    )
