"""Questions and graders for the tests of written evaluation."""

from wholestack.evals.written.checkers import checker_named
from wholestack.evals.written.extraction import extraction_named
from wholestack.evals.written.grading import Grader
from wholestack.evals.written.questions import OpenQuestion


def question(gold, *, prompt="How many?", choices=(), id="q", group="", **row):
    return OpenQuestion(
        id=id, group=group or id, prompt=prompt, gold=gold, choices=tuple(choices), row={"answer": gold, **row}
    )


def grader(extract, check):
    return Grader(extraction=extraction_named(extract), checker=checker_named(check))


def even(answer, gold, row):
    """A user's checker: three kinds of answer, and one that breaks."""
    if answer == "break":
        raise ZeroDivisionError("on purpose")
    if answer == "hm":
        return None
    return int(answer) % 2 == row.get("rest", 0), f"{answer} % 2"


NOT_CALLABLE = 3
