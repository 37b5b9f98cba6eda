"""Section on the data and on the evaluation: their own statements, as they lie in the run directory."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wholestack.experiments.records import STATEMENT
from wholestack.report.evidence import DATA_MANIFEST, ITEMS_MANIFEST, Evidence, read_foreign, read_text
from wholestack.report.page import Markup, details, element, escape, join, not_reached, paragraph
from wholestack.report.quantities import number, plural, printable
from wholestack.report.tables import Table, draw

_MOST_LINES = 400
_MOST_ENTRIES = 12


def data_and_evaluation(evidence: Evidence) -> Markup:
    """What the models read, and what they were measured with."""
    return join([element("h3", "Data"), _data(evidence), element("h3", "Evaluation"), _evaluation(evidence)])


def _data(evidence: Evidence) -> Markup:
    text, why = read_text(evidence.folder, STATEMENT)
    if text is not None:
        lines = text.splitlines()
        outline = [line for line in lines if not line.startswith("    ")]
        if len(outline) == len(lines):
            return _lines(lines)
        return join([_lines(outline), details(f"The whole statement ({len(lines):,} lines)", _lines(lines))])
    return _document(evidence, DATA_MANIFEST, why, "The data phase has not ended, so there is no data statement yet.")


def _lines(lines: Sequence[str]) -> Markup:
    more = f"\n… {len(lines) - _MOST_LINES:,} more lines in {STATEMENT}" if len(lines) > _MOST_LINES else ""
    shown = Markup("\n").join(escape(_line(line)) for line in lines[:_MOST_LINES])
    return element("pre", Markup(shown), more)


def _line(line: str) -> str:
    """A line with its indentation, which says what belongs to what."""
    return printable(line.rstrip().replace("\t", "    "), limit=400)


def _evaluation(evidence: Evidence) -> Markup:
    intro = paragraph(
        "The items are fixed before the search; their hash is part of the metric's name, so that numbers of different"
        " items are never compared."
    )
    absent = "The evaluation phase has not ended, so there are no items yet."
    return join([intro, _document(evidence, ITEMS_MANIFEST, "", absent)])


def _document(evidence: Evidence, name: str, why: str, absent: str) -> Markup:
    raw, unreadable = read_foreign(evidence.folder, name)
    if raw is None:
        reason = why or unreadable
        return paragraph(f"Could not be read: {reason}.", class_="notice") if reason else not_reached(absent)
    return draw(Table(caption=f"From {name}", columns=("field", "value"), rows=list(rows(raw)), source=name))


def rows(raw: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """A JSON document as (dotted key, value); long lists and maps are counted and begun, not told in full."""
    if isinstance(raw, Mapping) and raw and (not path or len(raw) <= _MOST_ENTRIES):
        for key, inner in raw.items():
            yield from rows(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(raw, Mapping):
        named = ", ".join(f"{key}: {_scalar(inner)}" for key, inner in list(raw.items())[:3])
        yield path, f"{plural(len(raw), 'entry', 'entries')}: {named}, …" if raw else "none"
    elif isinstance(raw, Sequence) and not isinstance(raw, str):
        yield from _sequence(raw, path)
    else:
        yield path, _scalar(raw)


def _sequence(raw: Sequence[Any], path: str) -> Iterator[tuple[str, str]]:
    if any(isinstance(each, Mapping) for each in raw) and len(raw) <= _MOST_ENTRIES:
        for place, each in enumerate(raw):
            yield from rows(each, f"{path}[{place}]")
        return
    shown = raw if len(raw) <= _MOST_ENTRIES else raw[:3]
    begun = ", ".join(_scalar(each) for each in shown)
    yield path, (begun or "none") if shown is raw else f"{len(raw):,} entries: {begun}, …"


def _scalar(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else number(value)
    return printable(str(value), limit=300)
