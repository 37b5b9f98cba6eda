"""MultiRC: a passage, questions about it, and answers of which any number is right.

SuperGLUE's files hold a passage a row, ``idx`` and ``passage: {text, questions: [{question, answers: [{text,
label}]}]}``; the table on Hugging Face holds an answer a row: ``paragraph``, ``question``, ``answer``, ``label``. Every
proposed answer is an item of its own, right or not; all of a passage are one group.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wholestack.errors import InputError
from wholestack.evals.layouts.layout import Question, Values, mapping, rest, text
from wholestack.record import digest


@dataclass(frozen=True, slots=True)
class MultiRC:
    """See the module."""

    name: str = "multirc"
    template: str = "{passage}\nQuestion: {question}\nProposed answer: {answer}\nIs this answer right?"

    def recognises(self, values: Values) -> bool:
        """By a passage with questions inside, or a paragraph with one answer."""
        nested = values.get("passage")
        flat = {"paragraph", "question", "answer", "label"} <= values.keys()
        return flat or (isinstance(nested, dict) and "questions" in nested)

    def questions(self, values: Values) -> Iterator[Question]:
        """One for each proposed answer."""
        if "paragraph" in values:
            kept = rest(values, "paragraph", "question", "answer", "label")
            yield _judge(text(values, "paragraph"), text(values, "question"), values, "answer", kept)
            return
        passage = mapping(values, "passage")
        kept = rest(values, "passage")
        for asked in _objects(passage, "questions"):
            for answer in _objects(asked, "answers"):
                yield _judge(text(passage, "text"), text(asked, "question"), answer, "text", kept)


def _judge(passage: str, question: str, answer: Values, name: str, kept: Mapping[str, Any]) -> Question:
    return Question(
        texts={"passage": passage, "question": question, "answer": text(answer, name)},
        choices=("no", "yes"),
        gold=answer.get("label"),
        group=digest(passage),
        kept=kept,
    )


def _objects(values: Values, name: str) -> list[Mapping[str, Any]]:
    found = values.get(name)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError(f"{name} is not a list of objects")
    return found
