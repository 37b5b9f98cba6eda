"""What a source of text is, and what it hands over: documents with a licence, and refusals with a reason.

A source never decides silently. Whatever it finds and does not hand over as a document, it hands over as a
:class:`Refusal` that names it, so that the data statement can count and name it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from wholestack.errors import InputError
from wholestack.record import Record

Split = Literal["train", "held_out"]
SPLITS: tuple[Split, ...] = ("train", "held_out")

Reason = Literal[
    "no_licence",
    "not_utf8",
    "binary",
    "too_large",
    "unreadable",
    "outside",
    "malformed",
    "empty",
    "generated",
    "repetitive",
    "long_lines",
    "duplicate",
    "left_out",
]
WHY: dict[Reason, str] = {
    "no_licence": "no licence was given or could be identified",
    "not_utf8": "not UTF-8 text",
    "binary": "binary content",
    "too_large": "larger than the cap for one document",
    "unreadable": "could not be opened",
    "outside": "a symbolic link, or not a plain file",
    "malformed": "not of the form that the source asks for",
    "empty": "no text in it",
    "generated": "says itself that a program generated it",
    "repetitive": "compresses to almost nothing: generated or padded",
    "long_lines": "lines of a length that nobody writes: data or minified code",
    "duplicate": "the same text is already in, and is kept once",
    "left_out": "left out by choice",
}
"""What each reason means, for the data statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDocument:
    """One document as a source hands it over."""

    path: str
    """Where it lies inside the source; unique there."""
    text: str
    """The whole text."""
    licence: str
    """SPDX identifier or expression."""
    groups: tuple[str, ...] = ()
    """Documents that name a common group go to the same split, across sources too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal(Record):
    """One thing that was found and not taken."""

    SCHEMA: ClassVar[str] = "refusal/1"

    source: str
    """Name of the source."""
    path: str
    """What was refused: its place inside the source."""
    reason: Reason
    """Why."""
    detail: str = ""
    """The very thing that was seen, for instance the id of the document that holds the same text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(Record):
    """One document of a corpus, with its text."""

    id: str
    """Identity: hash of source, path and text."""
    source: str
    """Name of the source."""
    path: str
    """Where it lies inside the source."""
    text: str
    """The whole text."""


class Source(Protocol):
    """A named place that documents come from. Its conformance suite is ``wholestack.testing.sources``."""

    @property
    def name(self) -> str:
        """Short name: letters, digits, ``.``, ``_`` and ``-``; it becomes part of file names."""
        ...

    @property
    def licence(self) -> str:
        """One sentence for the data statement: which licence, and where it was read."""
        ...

    def documents(self) -> Iterator[SourceDocument | Refusal]:
        """Everything found, in an order that does not change while the content does not.

        Raises:
            InputError: there is nothing there that could be a document.
        """
        ...


def check_name(name: str) -> str:
    """Hand back a source name that is fit for a file name.

    Raises:
        InputError: it is not.
    """
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    if not (plain.isascii() and plain.isalnum() and name[0] != "." and len(name) <= 64):
        raise InputError(
            f"source name {name!r} is not usable",
            remedy="use 1 to 64 of the letters a-z A-Z, digits, '.', '_' and '-', not starting with '.'",
        )
    return name
