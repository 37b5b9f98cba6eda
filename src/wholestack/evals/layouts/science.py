"""ARC and OpenBookQA: a question of school science and labelled choices; one family of fields.

The authors' files (AI2) nest ``question: {stem, choices: [{text, label}]}`` beside ``id`` and ``answerKey``; the
tables on Hugging Face are flat: ``question`` or, for OpenBookQA, ``question_stem``, and ``choices: {text, label}``.
``answerKey`` is a label, A to E or 1 to 5. A nested row says by itself not of which set it is: it is read as ARC
unless it holds OpenBookQA's ``fact1`` or the layout is named.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wholestack.errors import InputError
from wholestack.evals.layouts.layout import Question, Values, identity, mapping, rest, text, texts


@dataclass(frozen=True, slots=True)
class ARC:
    """A question, answered in words."""

    name: str = "arc"
    template: str = "Question: {question}\nAnswer:"

    def recognises(self, values: Values) -> bool:
        """By labelled choices and the key."""
        return "answerKey" in values and "question" in values and _labelled(values) and not _is_open_book(values)

    def questions(self, values: Values) -> Iterator[Question]:
        """One a row."""
        yield _question(values)


@dataclass(frozen=True, slots=True)
class OpenBookQA:
    """The beginning of a sentence, or a question, and how it goes on."""

    name: str = "openbookqa"
    template: str = "{question}"

    def recognises(self, values: Values) -> bool:
        """By labelled choices, the key, and fields that ARC has not."""
        return "answerKey" in values and _labelled(values) and _is_open_book(values)

    def questions(self, values: Values) -> Iterator[Question]:
        """One a row."""
        yield _question(values)


def _is_open_book(values: Values) -> bool:
    return "question_stem" in values or "fact1" in values


def _labelled(values: Values) -> bool:
    """Commonsense sets have the same nesting; so look one level down."""
    question = values.get("question")
    choices = question.get("choices") if isinstance(question, dict) else values.get("choices")
    return isinstance(choices, list) if isinstance(question, dict) else isinstance(choices, dict)


def _question(values: Values) -> Question:
    nested = isinstance(values.get("question"), dict)
    inner = mapping(values, "question") if nested else values
    stem = text(inner, "stem" if nested else "question_stem" if "question_stem" in values else "question")
    labels, choices = _pairs(inner)
    key = values.get("answerKey")
    return Question(
        texts={"question": stem},
        choices=choices,
        gold=labels.index(key) if key in labels else None,
        id=identity(values, "id"),
        kept=rest(values, "question", "question_stem", "choices", "answerKey", "id"),
    )


def _pairs(inner: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels and texts, from a list of pairs or a pair of lists."""
    if isinstance(inner.get("choices"), dict):
        table = mapping(inner, "choices")
        labels, choices = texts(table, "label"), texts(table, "text")
    else:
        pairs = inner.get("choices")
        if not isinstance(pairs, list) or not all(isinstance(pair, dict) for pair in pairs):
            raise InputError("choices is neither a list of pairs nor a pair of lists")
        labels = tuple(text(pair, "label") for pair in pairs)
        choices = tuple(text(pair, "text") for pair in pairs)
    if len(labels) != len(choices):
        raise InputError(f"{len(labels)} labels for {len(choices)} choices")
    return labels, choices
