"""BoolQ: a passage, a question about it, yes or no.

Fields: ``question``, ``passage``, ``answer`` (true or false) and ``title`` in the authors' files
(github.com/google-research-datasets/boolean-questions); ``label`` (0 or 1) and ``idx`` in SuperGLUE.
Questions about the same passage are a group.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from wholestack.evals.layouts.layout import Question, Values, identity, rest, text
from wholestack.record import digest


@dataclass(frozen=True, slots=True)
class BoolQ:
    """See the module."""

    name: str = "boolq"
    template: str = "{passage}\nQuestion: {question}?\nAnswer:"

    def recognises(self, values: Values) -> bool:
        """By passage and question, and an answer that is a truth value or a label without options."""
        stated = isinstance(values.get("answer"), bool) or ("label" in values and "answer" not in values)
        return {"passage", "question"} <= values.keys() and isinstance(values["passage"], str) and stated

    def questions(self, values: Values) -> Iterator[Question]:
        """One a row; a question mark of the row's own is not doubled."""
        passage = text(values, "passage")
        yield Question(
            texts={"passage": passage, "question": text(values, "question").rstrip("?")},
            choices=("no", "yes"),
            gold=_gold(values),
            id=identity(values, "id", "idx"),
            group=digest(passage),
            kept=rest(values, "passage", "question", "answer", "label", "id", "idx"),
        )


def _gold(values: Values) -> object:
    answer = values.get("answer", values.get("label"))
    return int(answer) if isinstance(answer, bool) else answer
