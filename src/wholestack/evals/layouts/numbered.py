"""GSM8K as choices, and every other table with ``question`` and ``choice_1`` to ``choice_N``.

Imbue's public tables of 2024 (huggingface.co/imbue) recast GSM8K and ten other sets in these columns; the right one is
in ``original_answer`` (also read: ``answer``, ``correct_answer``, ``gold``). It is the text of a choice or the name of
its column. A bare number that is neither is no answer: whether "2" counts from 0 or from 1 nobody could say.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from wholestack.evals.layouts.layout import Question, Values, identity, rest, text

_ANSWERS = ("original_answer", "correct_answer", "answer", "gold")


@dataclass(frozen=True, slots=True)
class GSM8KChoices:
    """See the module."""

    name: str = "gsm8k-choices"
    template: str = "Question: {question}\nAnswer:"

    def recognises(self, values: Values) -> bool:
        """By numbered choices."""
        return {"question", "choice_1", "choice_2"} <= values.keys()

    def questions(self, values: Values) -> Iterator[Question]:
        """One a row; trailing columns that are empty are no choices."""
        columns = [name for name in _columns(values) if values[name] not in (None, "")]
        choices = tuple(_as_text(values, name) for name in columns)
        used = (*_columns(values), *_ANSWERS, "question", "id", "original_dataset")
        yield Question(
            texts={"question": text(values, "question")},
            choices=choices,
            gold=_gold(values, columns, choices),
            id=identity(values, "id"),
            source=identity(values, "original_dataset"),
            kept=rest(values, *used),
        )


def _columns(values: Values) -> list[str]:
    names: list[str] = []
    while f"choice_{len(names) + 1}" in values:
        names.append(f"choice_{len(names) + 1}")
    return names


def _as_text(values: Values, name: str) -> str:
    """A table of numbers may hold them as numbers."""
    found = values[name]
    return str(found) if isinstance(found, int | float) and not isinstance(found, bool) else text(values, name)


def _gold(values: Values, columns: list[str], choices: tuple[str, ...]) -> int | None:
    answer = identity(values, *_ANSWERS)
    if answer in choices:
        return choices.index(answer)
    return columns.index(answer) if answer in columns else None
