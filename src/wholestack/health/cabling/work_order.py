"""The work order: what to move from where to where, by rack and unit, as rows and as CSV."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from wholestack.health.cabling.stories import Ground, Move, Story
from wholestack.health.cleaning import printable
from wholestack.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Record):
    """One move of one plug, or one place to look at."""

    rack: str
    """Where the hands are."""
    unit: str
    action: str
    """``move``, ``plug in``, ``take out`` or ``look``."""
    device: str
    port: str
    to_rack: str = ""
    to_unit: str = ""
    to_device: str = ""
    to_port: str = ""
    other_end: str = ""
    """Of the same cable; it stays."""
    label: str = ""
    length_m: str = ""
    lot: str = ""
    part_number: str = ""
    rail: str = ""
    story: int
    """Rows of one story belong together: unplug them all, then plug."""
    why: str
    """Code of the cause."""


def rows_of(stories: Sequence[Story], ground: Ground) -> tuple[Row, ...]:
    """Every move of every story, sorted by rack, unit, device and port; what has no place in the plan comes last."""
    rows = [
        _row(move, number, story, ground)
        for number, story in enumerate((story for story in stories if story.moves), 1)
        for move in story.moves
    ]
    return tuple(sorted(rows, key=_order))


def to_csv(rows: Iterable[Row]) -> bytes:
    """With a header; a text that a spreadsheet would take for a formula gets a ``'`` in front."""
    names = [each.name for each in fields(Row)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_plain(str(getattr(row, name))) for name in names])
    return out.getvalue().encode()


def _row(move: Move, number: int, story: Story, ground: Ground) -> Row:
    rack, unit = ground.place(move.at)
    device, port = _named(move.at, ground)
    to_rack, to_unit = ground.place(move.to) if move.to else ("", "")
    to_device, to_port = _named(move.to, ground) if move.to else ("", "")
    cable = move.cable
    return Row(
        rack=rack, unit=unit, action=move.action, device=device, port=port, to_rack=to_rack, to_unit=to_unit,
        to_device=to_device, to_port=to_port, other_end=printable(ground.show(move.other)) if move.other else "",
        label=cable.label if cable else "", length_m=cable.length_m if cable else "", lot=cable.lot if cable else "",
        part_number=cable.part_number if cable else "", rail=cable.rail if cable else "", story=number,
        why=story.cause.code,
    )  # fmt: skip


def _named(port: tuple[str, str], ground: Ground) -> tuple[str, str]:
    end = ground.matched.ends.get(port)
    return (end.device, end.port) if end else (printable(ground.name(port[0])), printable(port[1]))


def _order(row: Row) -> tuple[object, ...]:
    return not row.rack, *(_natural(text) for text in (row.rack, row.unit, row.device, row.port)), row.story


def _natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Numbers by their value."""
    return tuple(
        (0, int(part), "") if part.isdecimal() and len(part) < 20 else (1, 0, part.casefold())
        for part in re.split(r"(\d+)", text)
        if part
    )


def _plain(text: str) -> str:
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
