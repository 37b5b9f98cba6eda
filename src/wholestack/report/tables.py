"""Tables: bounded, with a caption, columns of numbers set to the right."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from wholestack.report.page import Markup, details, element, join

MAX_ROWS = 300
"""A longer table is cut, and says so."""

_NUMBER = re.compile(r"[+\-−]?[\d.,]+(e-?\d+)?( ?(%|s|B|kB|MB|GB|FLOPs))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table whose cells are text (escaped when drawn) or markup."""

    caption: str
    """What it holds."""
    columns: tuple[str, ...]
    """Headings, with units."""
    rows: Sequence[Sequence[str]]
    """Cells, one sequence a row."""
    source: str = ""
    """File of the run directory that holds all rows, named when the table is cut."""
    most: int = MAX_ROWS
    """Rows that are shown at most."""


def draw(table: Table) -> Markup:
    """The table as HTML; on a narrow screen it scrolls by itself."""
    rows = table.rows[: table.most]
    numeric = [_is_numeric(rows, column) for column in range(len(table.columns))]
    head = element("tr", *(_cell("th", each, right) for each, right in zip(table.columns, numeric, strict=True)))
    body = [
        element("tr", *(_cell("td", each, right) for each, right in zip(row, numeric, strict=True))) for row in rows
    ]
    inside = (element("caption", table.caption), element("thead", head), element("tbody", *body or [_empty(table)]))
    drawn = element("table", *inside, class_="many" if len(table.columns) >= 5 else "few")
    scrolling = element("div", drawn, class_="scroll", tabindex="0", role="region", aria_label=table.caption)
    return join([scrolling, _cut(table)])


def folded(summary: str, *tables: Table) -> Markup:
    """Tables under a line that opens them."""
    return details(summary, *map(draw, tables))


def _cell(tag: str, content: str, right: bool) -> Markup:
    scope = {"scope": "col"} if tag == "th" else {}
    return element(tag, content, class_="n", **scope) if right else element(tag, content, **scope)


def _empty(table: Table) -> Markup:
    return element("tr", element("td", "none", colspan=str(len(table.columns)), class_="absent"))


def _cut(table: Table) -> Markup:
    left = len(table.rows) - table.most
    if left <= 0:
        return Markup("")
    where = f" {table.source} holds them all." if table.source else ""
    return element("p", f"{left:,} more rows are not shown.{where}", class_="absent")


def _is_numeric(rows: Sequence[Sequence[str]], column: int) -> bool:
    filled = [row[column] for row in rows if row[column] not in {"", "–"}]
    return bool(filled) and all(_NUMBER.fullmatch(each) for each in filled)
