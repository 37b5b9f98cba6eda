"""Imbue's code comprehension (huggingface.co/datasets/imbue/code-comprehension): what a short program does.

Fields: ``question``, ``choices``, ``correct_answer``, the text of a choice. The question holds the program.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from wholestack.evals.layouts.layout import Question, Values, identity, rest, text, texts


@dataclass(frozen=True, slots=True)
class CodeComprehension:
    """See the module."""

    name: str = "code-comprehension"
    template: str = "{question}\nAnswer:"

    def recognises(self, values: Values) -> bool:
        """By the three fields."""
        return {"question", "choices", "correct_answer"} <= values.keys() and "answer" not in values

    def questions(self, values: Values) -> Iterator[Question]:
        """One a row."""
        yield Question(
            texts={"question": text(values, "question")},
            choices=texts(values, "choices"),
            gold=values.get("correct_answer"),
            id=identity(values, "id"),
            kept=rest(values, "question", "choices", "correct_answer", "id"),
        )
