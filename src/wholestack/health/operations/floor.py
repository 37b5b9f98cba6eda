"""How many hosts must stay usable, whatever is found: ``--floor``, or ``[drain] floor`` in the file of hosts."""

import math
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from wholestack.errors import InputError
from wholestack.journal import read_at_most
from wholestack.remote.inventory import MAX_FILE_BYTES

HOW = 'write a number of hosts or a share, such as 60 or "90%"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """A number or a share of hosts."""

    amount: float
    is_share: bool

    def of(self, count: int) -> int:
        """Hosts that must stay usable among so many, rounded up."""
        return math.ceil(round(self.amount * count, 9)) if self.is_share else int(self.amount)

    def __str__(self) -> str:
        return f"{100 * self.amount:g}%" if self.is_share else f"{self.amount:g}"


def parse_floor(text: str, *, where: str = "--floor") -> Floor:
    """A floor such as ``60`` or ``90%``.

    Raises:
        InputError: it is neither, or a share of more than all.
    """
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)(%?)", text.strip())
    if found is None or (not found[2] and "." in found[1]) or (found[2] and float(found[1]) > 100):
        raise InputError(f"{where} is {text!r}", remedy=HOW)
    return Floor(amount=float(found[1]) / 100 if found[2] else float(found[1]), is_share=bool(found[2]))


def floor_from(given: str | None, hosts: Path | None) -> Floor:
    """The floor of the option, else of the file of hosts.

    Raises:
        InputError: neither names one, or the file cannot be read.
    """
    if given is not None:
        return parse_floor(given)
    if hosts is not None:
        try:
            table = tomllib.loads(read_at_most(hosts, MAX_FILE_BYTES, remedy="name a file of hosts").decode())
            table = table.get("drain", {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{hosts}: {error}", remedy="name a file of hosts (TOML)") from error
        if isinstance(table, dict) and "floor" in table:
            return parse_floor(str(table["floor"]), where=f"{hosts}: drain.floor")
    raise InputError(
        "no floor below which nothing is drained", remedy=f"give --floor, or [drain] floor in --hosts; {HOW}"
    )
