"""MMLU and MMLU-Redux: a question of one of 57 subjects and four choices.

Fields: ``question``, ``choices``, ``subject`` and ``answer`` (an index, or a letter) as on Hugging Face; MMLU-Redux
adds ``error_type`` and what reviewers say. Our own extract of MMLU-Redux has ``gold`` (an index as text) and
``corrected``, and its ``id`` starts with the subject. The gold answer is the one that MMLU states, flagged or not:
``error_type`` is kept beside the item. Subjects are sources.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from wholestack.evals.layouts.layout import (
    Question,
    Values,
    identity,
    index_of_label,
    index_of_letter,
    rest,
    text,
    texts,
)


@dataclass(frozen=True, slots=True)
class MMLU:
    """See the module."""

    name: str = "mmlu"
    template: str = "Question: {question}\nAnswer:"

    def recognises(self, values: Values) -> bool:
        """By a question and a list of choices; a row with a context is our own layout's."""
        stated = ("answer" in values or "gold" in values) and "context" not in values
        return {"question", "choices"} <= values.keys() and stated and isinstance(values["choices"], list)

    def questions(self, values: Values) -> Iterator[Question]:
        """One a row."""
        label = values.get("gold", values.get("answer"))
        letter = index_of_letter(label)
        name = identity(values, "id")
        yield Question(
            texts={"question": text(values, "question")},
            choices=texts(values, "choices"),
            gold=index_of_label(label) if letter is None else letter,
            id=name,
            source=identity(values, "subject") or name.rpartition("-")[0],
            kept=rest(values, "question", "choices", "answer", "gold", "subject", "id"),
        )
