"""A layout: how one public set of questions writes its rows, and the prompt that it is asked with by default.

A row gives one question or several (a passage with ten statements). A question has named texts, which a template puts
together into the context, and the choices with the right one. Whether a question can be used is judged later and in
one place (``items.py``), so a layout hands over what stands in the row and raises
:class:`~wholestack.errors.InputError` only where a row does not follow the layout.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from wholestack.errors import InputError

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question as a layout found it, not yet judged."""

    texts: Mapping[str, str]
    """What a template may name, for instance ``passage`` and ``question``."""
    choices: tuple[str, ...]
    """The answers to choose from, as they are to be read behind context and delimiter."""
    gold: object
    """Index or text of the right one; ``None`` or anything else where the row does not say."""
    id: str = ""
    """Identity within the file; by default the hash of the content."""
    group: str = ""
    """Questions with the same group are not independent, for instance those of one passage."""
    source: str = ""
    """Where it is from; by default the name of the file."""
    delimiter: str | None = None
    """Stands between context and choice, where the row itself says so."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the row that mean nothing here; they are ignored, and kept in what is written back."""


@runtime_checkable
class Layout(Protocol):
    """One public layout; every one passes ``wholestack.testing.evals_layout``."""

    @property
    def name(self) -> str:
        """What ``--layout`` calls it."""

    @property
    def template(self) -> str:
        """The context by default, with the texts of a question in braces."""

    def recognises(self, values: Values) -> bool:
        """Whether a row has the documented fields of this layout, by their names and types alone."""

    def questions(self, values: Values) -> Iterator[Question]:
        """The questions of one row.

        Raises:
            InputError: the row does not follow the layout; names the field.
        """


def text(values: Values, name: str) -> str:
    """A field that holds text.

    Raises:
        InputError: it is missing or something else.
    """
    found: str = _of_type(values, name, str, "text")
    return found


def texts(values: Values, name: str) -> tuple[str, ...]:
    """A field that holds a list of texts.

    Raises:
        InputError: it is missing or something else.
    """
    found = _of_type(values, name, list, "a list of texts")
    if not all(isinstance(each, str) for each in found):
        raise InputError(f"{name} is not a list of texts")
    return tuple(found)


def mapping(values: Values, name: str) -> Mapping[str, Any]:
    """A field that holds an object.

    Raises:
        InputError: it is missing or something else.
    """
    found: Mapping[str, Any] = _of_type(values, name, dict, "an object")
    return found


def rest(values: Values, *used: str) -> Mapping[str, Any]:
    """The keys of a row that a layout does not read."""
    return {key: value for key, value in values.items() if key not in used}


def identity(values: Values, *names: str) -> str:
    """The first of these fields that is there, as text; empty where none is."""
    return next((str(values[name]) for name in names if isinstance(values.get(name), str | int)), "")


LONGEST_LABEL = 6
"""Digits of an index."""


def index_of_label(label: object, *, first: int = 0) -> int | None:
    """Index of a label that counts from ``first``, as number or as digits; ``None`` where it says nothing.

    Test splits without answers hold ``""`` or ``-1`` there.
    """
    digits = str(label).strip() if isinstance(label, str | int) and not isinstance(label, bool) else ""
    if not (len(digits) <= LONGEST_LABEL and digits.isascii() and digits.isdecimal() and int(digits) >= first):
        return None
    return int(digits) - first


def index_of_letter(label: object, letters: str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ") -> int | None:
    """Index of a capital letter; ``None`` where it says nothing."""
    known = isinstance(label, str) and len(label) == 1 and label in letters
    return letters.index(label) if known and isinstance(label, str) else None


def _of_type(values: Values, name: str, kind: type, called: str) -> Any:
    if name not in values:
        raise InputError(f"key {name!r} is missing")
    if not isinstance(values[name], kind):
        raise InputError(f"{name} is {type(values[name]).__name__}, not {called}")
    return values[name]
