"""HTML that escapes by default, and the document round it.

A :class:`Markup` is text that is HTML already; every other string is escaped when it is put into an element, so a
value from a run directory cannot become a tag. Behind that stands a Content-Security-Policy: nothing is fetched from
anywhere, and the one script that may run is ours, by its hash.
"""

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wholestack.report.quantities import printable
from wholestack.report.style import SCRIPT, STYLE

_VOID = frozenset({"br", "hr", "meta", "wbr"})


class Markup(str):
    """A string that is HTML already."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the page."""

    anchor: str
    """Id in the page."""
    title: str
    """Heading."""
    body: Markup
    """Everything under the heading."""


def escape(text: str) -> Markup:
    """Make any text safe inside an element or an attribute."""
    return text if isinstance(text, Markup) else Markup(html.escape(printable(text, limit=4000), quote=True))


def element(tag: str, *children: str, **attributes: str) -> Markup:
    """One element; children that are not :class:`Markup` are escaped.

    Args:
        tag: Name of the element.
        *children: Text or markup inside it.
        **attributes: ``class_`` stands for ``class``, other underscores for hyphens.
    """
    listed = "".join(f' {name.rstrip("_").replace("_", "-")}="{_quoted(value)}"' for name, value in attributes.items())
    if tag in _VOID:
        return Markup(f"<{tag}{listed}>")
    return Markup(f"<{tag}{listed}>{''.join(map(escape, children))}</{tag}>")


def _quoted(value: str) -> str:
    """An attribute is never taken for markup, whatever its type."""
    return html.escape(printable(value, limit=4000), quote=True)


def join(parts: Iterable[str]) -> Markup:
    """Markup one after the other."""
    return Markup("".join(map(escape, parts)))


def paragraph(*children: str, class_: str = "") -> Markup:
    """A paragraph."""
    return element("p", *children, class_=class_) if class_ else element("p", *children)


def not_reached(text: str) -> Markup:
    """What a section says when the run has not come that far."""
    return paragraph(text, class_="absent")


def badge(status: str) -> Markup:
    """A status as word, colour and shape; a word that is not known looks like ``unknown``."""
    glyphs = {"ok": "✓", "held": "✓", "fail": "✕", "broken": "✕", "altered": "✕", "warn": "▲", "open": "○"}
    kinds = {"held": "ok", "broken": "fail", "altered": "fail", "ok": "ok", "fail": "fail", "warn": "warn"}
    kind = kinds.get(status, "open" if status == "open" else "unknown")
    mark = element("span", glyphs.get(status, "?"), class_="glyph", aria_hidden="true")
    return element("span", mark, status, class_=f"badge {kind}")


def details(summary: str, *children: str) -> Markup:
    """Something folded away under one line."""
    return element("details", element("summary", summary), *children)


def figure(pictures: str, caption: str, *tables: str) -> Markup:
    """A picture, one sentence on how to read it, and its numbers."""
    return element(
        "figure", element("div", pictures, class_="picture"), element("figcaption", caption), *tables, class_="plot"
    )


def listing(items: Iterable[str]) -> Markup:
    """A bulleted list."""
    return element("ul", *(element("li", item) for item in items))


def document(title: str, header: str, sections: Sequence[Section], footer: str) -> bytes:
    """The whole page, UTF-8, with nothing that would have to be fetched."""
    entries = (element("li", element("a", each.title, href=f"#{each.anchor}")) for each in sections)
    contents = element("nav", element("ol", *entries), aria_label="Contents")
    body = element("div", contents, element("main", header, *map(_section, sections)), class_="layout")
    head = join(
        [
            Markup('<meta charset="utf-8">'),
            element("meta", http_equiv="Content-Security-Policy", content=_policy()),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("title", title),
            Markup(f"<style>{STYLE}</style>"),
        ]
    )
    page = element(
        "html",
        element("head", head),
        element("body", body, element("footer", footer), Markup(f"<script>{SCRIPT}</script>")),
        lang="en",
    )
    return f"<!DOCTYPE html>\n{page}\n".encode()


def _section(section: Section) -> Markup:
    heading = element("h2", section.title, id=f"{section.anchor}-heading")
    return element("section", heading, section.body, id=section.anchor, aria_labelledby=f"{section.anchor}-heading")


def _policy() -> str:
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
