"""What a probe writes into its run directory, file by file.

=====================  ==========================  =================================================
file                   record                      appears
=====================  ==========================  =================================================
``run.json``           ``runs.RunManifest``        first of all; its ``config`` is the plan
``claims.jsonl``       ``claim.Claim``             before the first device is asked: one, on all of them
``rounds.jsonl``       :class:`Round`              a line a device and round, when it was judged
``devices.jsonl``      :class:`DeviceOutcome`      at the end, a line a device; ``learn`` reads them
``findings.jsonl``     ``finding.Finding``         last of all, worst first
=====================  ==========================  =================================================
"""

from dataclasses import dataclass
from typing import ClassVar

from wholestack.health.active.exactness import WrongElement
from wholestack.health.active.memory import WrongWord
from wholestack.health.active.operands import Case
from wholestack.health.active.speed import Pace
from wholestack.health.parts import Part
from wholestack.record import Record

KIND = "probe"
"""``RunManifest.kind`` of a probe."""
ROUNDS = "rounds.jsonl"
DEVICES = "devices.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Record):
    """What a probe is to do."""

    seconds: float = 60.0
    """Wall time of all of it."""
    room_bytes: int | None = None
    """Memory to fill on each device; default: a share of what is free."""
    rounds: int | None = None
    """End after so many; default: when the time is over."""
    side: int | None = None
    """Of a square product; default: by kind of device."""
    seed: int = 0
    false_rate: float = 1e-3
    """Chance that a sound device is called slow, for each of its measures."""
    even_if_busy: bool = False
    """Whether devices that something else uses are probed; their pace is not judged then."""
    idle: tuple[str, ...] = ()
    """Devices of which a person says that nothing uses them, though that cannot be told: address, ``kind address`` or
    serial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongProduct(Record):
    """One product that came out wrong."""

    case: Case
    golden: bool = False
    """Whether it differs from the value that was computed elsewhere; else by its row checksums."""
    wrong_rows: int = 0
    elements: tuple[WrongElement, ...] = ()
    shape: str = ""
    """How the wrong elements lie."""
    checksum_only: bool = False
    """Whether the same product was right when it was computed again in integers: the check did not repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(Record):
    """One pass or more over all patterns in all precisions, then over the memory."""

    SCHEMA: ClassVar[str] = "probe-round/1"

    device: str
    """Identity of its part."""
    number: int
    """From 1."""
    products: int
    elements: int
    """Of these products, each checked."""
    held_bytes: int
    """Most that lay in the device's memory at once."""
    tested_bytes: int
    """Of memory."""
    complete: bool
    """Whether every pattern was multiplied in every precision."""
    patterns: tuple[str, ...]
    """That came out wrong somewhere."""
    wrong_products: int
    wrong: tuple[WrongProduct, ...]
    """The first of them."""
    wrong_words: int
    words: tuple[WrongWord, ...]
    """The first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOutcome(Record):
    """What a probe knows of one device at its end."""

    SCHEMA: ClassVar[str] = "probe-device/1"

    part: Part
    kind: str
    serial: str
    busy: str
    """By what; empty if it was idle, or if that could not be told."""
    gave_up: str
    """What the device's library said when it failed; empty if it did not."""
    corrections: tuple[str, ...]
    rounds: int
    """Complete ones."""
    products: int
    elements: int
    tested_bytes: int
    wrong_products: int
    wrong_words: int
    paces: tuple[Pace, ...]
    sound: bool
    """Whether nothing was found in it: only such paces are learnt."""
