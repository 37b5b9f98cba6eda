"""From a written text to a verdict: nothing came, no answer in it, right, wrong, or the checker cannot tell."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from wholestack.evals.backend import Generation
from wholestack.evals.patterns import TOO_SLOW
from wholestack.evals.written.checkers import Checker
from wholestack.evals.written.extraction import EMPTY, Extraction
from wholestack.evals.written.questions import OpenQuestion
from wholestack.record import Record

Grade = Literal["right", "wrong", "unparsable", "unknown", "unwritten"]
GRADES: Mapping[Grade, str] = {
    "right": "the checker accepts the answer",
    "wrong": "the checker refuses the answer",
    "unparsable": "there is a text and no answer in it; not right, and never credited with chance",
    "unknown": "the checker cannot tell; in no share, and the share says what it could change",
    "unwritten": "the model gave no text; in no share",
}
"""Each with what it means and whether it counts."""
JUDGED: tuple[Grade, ...] = ("right", "wrong", "unparsable")
"""Those that are verdicts: what a share of right ones is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded(Record):
    """What became of one text."""

    id: str
    """Of the question."""
    sample: int = 0
    """Which of several texts behind one prompt."""
    grade: Grade
    """One of :data:`GRADES`."""
    answer: str = ""
    """As taken out of the text."""
    reason: str = ""
    """Why there is no answer or no text; empty otherwise."""
    evidence: str = ""
    """Of the checker."""
    cut: bool = False
    """Whether the text was cut at the most tokens, which is why an answer may be missing."""
    tokens: int = 0
    """Tokens written."""
    seal: str = ""
    """What binds a line of a file to how and of what it was judged; empty as a grader gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    """A rule that takes the answer out and a checker that judges it."""

    extraction: Extraction
    """The rule."""
    checker: Checker
    """The checker."""

    def grade(self, question: OpenQuestion, written: Generation, *, sample: int = 0) -> Graded:
        """Judge one text."""
        cut = written.finish == "length"
        known = {"id": question.id, "sample": sample, "tokens": written.tokens, "cut": cut}
        if written.finish == "none":
            return Graded(**known, grade="unwritten", reason=written.reason or EMPTY)  # type: ignore[arg-type]
        taken = self.extraction(written.text, len(question.choices))
        if taken.reason == TOO_SLOW:
            return Graded(**known, grade="unknown", evidence=TOO_SLOW)  # type: ignore[arg-type]
        if taken.reason:
            return Graded(**known, grade="unparsable", reason=taken.reason)  # type: ignore[arg-type]
        verdict = self.checker(taken.value, question)
        return Graded(**known, grade=verdict.outcome, answer=taken.value, evidence=verdict.evidence)  # type: ignore[arg-type]

    def grade_text(self, question: OpenQuestion, text: str) -> Graded:
        """Judge a text that no model wrote."""
        return self.grade(question, Generation(text=text, tokens=0, finish="stop"))

    def accepts(self, question: OpenQuestion, texts: Iterable[str]) -> list[bool]:
        """Whether each text is graded right."""
        return [self.grade_text(question, text).grade == "right" for text in texts]
