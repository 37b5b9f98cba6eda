"""Social IQa: a situation, a question about the people in it, three answers.

Fields (allenai.org, Sap et al. 2019): ``context``, ``question``, ``answerA``, ``answerB``, ``answerC`` and ``label``
("1" to "3"; some versions write ``correct`` with a letter). Questions about the same situation are a group.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from wholestack.evals.layouts.layout import Question, Values, identity, index_of_label, index_of_letter, rest, text
from wholestack.record import digest

_ANSWERS = ("answerA", "answerB", "answerC")


@dataclass(frozen=True, slots=True)
class SocialIQa:
    """See the module."""

    name: str = "socialiqa"
    template: str = "{context}\nQuestion: {question}\nAnswer:"

    def recognises(self, values: Values) -> bool:
        """By the three answers."""
        return {"context", "question", *_ANSWERS} <= values.keys()

    def questions(self, values: Values) -> Iterator[Question]:
        """One a row."""
        context = text(values, "context")
        label = values.get("label", values.get("correct"))
        letter = index_of_letter(label, "ABC")
        yield Question(
            texts={"context": context, "question": text(values, "question")},
            choices=tuple(text(values, name) for name in _ANSWERS),
            gold=index_of_label(label, first=1) if letter is None else letter,
            id=identity(values, "id"),
            group=digest(context),
            kept=rest(values, "context", "question", "label", "correct", "id", *_ANSWERS),
        )
