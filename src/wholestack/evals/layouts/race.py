"""RACE: an article from an examination and questions about it.

The authors' files hold an article a row (``article``, ``id``, and the lists ``questions``, ``options``, ``answers``);
the table on Hugging Face holds a question a row (``example_id``, ``article``, ``question``, ``options``, ``answer``).
Answers are letters. Questions about the same article are a group.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from wholestack.errors import InputError
from wholestack.evals.layouts.layout import Question, Values, identity, index_of_letter, rest, text, texts
from wholestack.record import digest


@dataclass(frozen=True, slots=True)
class RACE:
    """See the module."""

    name: str = "race"
    template: str = "Article: {article}\n\nQuestion: {question}\nAnswer:"

    def recognises(self, values: Values) -> bool:
        """By article and options."""
        return {"article", "options"} <= values.keys()

    def questions(self, values: Values) -> Iterator[Question]:
        """One a row, or all of an article."""
        article = text(values, "article")
        kept = rest(values, "article", "question", "questions", "options", "answer", "answers", "id", "example_id")
        for question, options, answer, name in _asked(values):
            yield Question(
                texts={"article": article, "question": question},
                choices=options,
                gold=index_of_letter(answer),
                id=name,
                group=digest(article),
                kept=kept,
            )


def _asked(values: Values) -> Iterator[tuple[str, tuple[str, ...], object, str]]:
    if "questions" not in values:
        # On Hugging Face example_id names the article's file, so several rows share it: no identity of a question.
        yield text(values, "question"), texts(values, "options"), values.get("answer"), ""
        return
    asked, options, answers = texts(values, "questions"), values.get("options"), values.get("answers")
    if not isinstance(options, list) or not isinstance(answers, list) or not len(asked) == len(options) == len(answers):
        raise InputError("questions, options and answers are not lists of one length")
    name = identity(values, "id", "example_id")
    for number, (question, given, answer) in enumerate(zip(asked, options, answers, strict=True)):
        yield question, texts({"options": given}, "options"), answer, f"{name}#{number}" if name else ""
