"""What is learnt of the boots of one kind of host, as one JSON file.

Support is kept as sets of boots, written as hexadecimal bit masks: bit i is boot i of the model. So "k of n boots" and
"on so many hosts" can be told of every line, and boots can be added later.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from wholestack.errors import InputError
from wholestack.journal import read_at_most
from wholestack.record import Record, from_json

MOST_MODEL_BYTES = 200_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntBoot(Record):
    """One boot that was called good."""

    id: str
    host: str
    kernel: str
    whole: bool
    """Begun with the first lines of the kernel, not cut, nothing suppressed: only such boots tell what is missing."""
    lines: int
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant(Record):
    """One exact line of a wording."""

    values: tuple[str, ...]
    boots: str
    """Mask."""
    place: int
    """Its number in orders."""
    once: bool
    """Whether no boot said it twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording(Record):
    """Lines that differ in their values only."""

    text: str
    """With ``<#>`` for every value."""
    boots: str
    """Mask of those that have it."""
    least: int
    """Lines of it in a boot that has any."""
    most: int
    variants: tuple[Variant, ...]
    complete: bool
    """Whether ``variants`` are all that there were; else those that were in half of the boots or more."""
    slots: tuple[dict[str, int] | None, ...]
    """For each value: what stood there in a boot (all lines of it together) and in how many boots; ``None`` where
    it differs too often to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Record):
    """In which order the different lines of a boot came first."""

    boot: str
    """Its id."""
    places: tuple[int, ...]
    """Each is ``wording * STRIDE + variant + 1``, or ``wording * STRIDE`` for one that is not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance(Record):
    """A person's decision that a deviation may be."""

    id: str
    kind: str
    """``unknown``, ``missing``, ``value``, ``order``; empty for all of them."""
    line: str
    """The very line."""
    wording: str
    why: str
    by: str
    at: float
    """Seconds since the epoch."""
    until: float
    """Seconds since the epoch: from then on the line speaks again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootModel(Record):
    """Everything that is known of how a kind of host boots."""

    SCHEMA: ClassVar[str] = "bootlog/1"

    window_s: float
    """Uptime that counts as boot."""
    boots: tuple[LearntBoot, ...]
    wordings: tuple[Wording, ...]
    orders: tuple[Order, ...]
    left_out: int = 0
    """Rare wordings that found no room."""
    accepted: tuple[Acceptance, ...] = field(default=())


def mask_of(text: str) -> int:
    """The bits of a mask."""
    return int(text, 16)


def read_model(path: Path) -> BootModel:
    """Read a model.

    Raises:
        InputError: the file cannot be read, is too large or contradicts itself.
        RecordError: it is no model, or of another version.
    """
    data = read_at_most(path, MOST_MODEL_BYTES, remedy="make one with: wholestack health bootlog learn")
    model = from_json(BootModel, data, where=str(path))
    _refuse_contradictions(model, path)
    return model


def _refuse_contradictions(model: BootModel, path: Path) -> None:
    """A model that was edited by hand, or damaged, is refused here instead of failing anywhere later."""
    everything = (1 << len(model.boots)) - 1
    try:
        for each in model.wordings:
            masks = [mask_of(each.boots), *(mask_of(variant.boots) for variant in each.variants)]
            values = each.text.count("<#>")
            fits = len(each.slots) == values and all(len(variant.values) == values for variant in each.variants)
            if not fits or any(mask & ~everything or mask < 0 for mask in masks) or not mask_of(each.boots):
                raise ValueError(each.text)
    except ValueError as error:
        remedy = "learn it again from its logs"
        raise InputError(f"{path}: contradicts itself at {str(error)[:60]!r}", remedy=remedy) from error
    known = {boot.id for boot in model.boots}
    if any(order.boot not in known for order in model.orders):
        raise InputError(
            f"{path}: has the order of a boot that it does not know", remedy="learn it again from its logs"
        )
