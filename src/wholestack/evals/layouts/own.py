"""Our own layout: ``id``, ``context``, ``choices``, ``gold`` and optional ``group``, ``source``, ``delimiter``.

``gold`` is an index from 0 or the text of a choice. ``group`` and ``cluster`` are the same; where both stand,
``cluster`` counts. Other keys are kept and ignored.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from wholestack.errors import InputError
from wholestack.evals.layouts.layout import Question, Values, rest, text, texts

_KEYS = ("id", "context", "choices", "gold", "group", "cluster", "source", "delimiter")


@dataclass(frozen=True, slots=True)
class Own:
    """See the module."""

    name: str = "own"
    template: str = "{context}"

    def recognises(self, values: Values) -> bool:
        """By context and choices."""
        return isinstance(values.get("context"), str) and "choices" in values

    def questions(self, values: Values) -> Iterator[Question]:
        """One a row."""
        yield Question(
            texts={"context": text(values, "context")},
            choices=texts(values, "choices"),
            gold=values.get("gold"),
            id=_optional(values, "id"),
            group=_optional(values, "cluster") or _optional(values, "group"),
            source=_optional(values, "source"),
            delimiter=text(values, "delimiter") if "delimiter" in values else None,
            kept=rest(values, *_KEYS),
        )


def _optional(values: Values, name: str) -> str:
    found = values.get(name, "")
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    if not isinstance(found, str):
        raise InputError(f"{name} is {type(found).__name__}, not text")
    return found
