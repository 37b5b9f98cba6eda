"""A grader is an instrument with an error rate: what it does with texts whose worth is known.

Controls need no labels: the right answer in the form that the rule reads must be accepted, and texts that answer
nothing must not be: nothing at all, the prompt again, one and the same answer for every question, all choices in a
row, the right answer hidden among many. They are tried on the very questions that a model is asked.

With answers that people labelled, :func:`measure_grader` counts wrong accepts and wrong rejects.
"""

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wholestack.errors import InputError
from wholestack.evals.calibration import clopper_pearson
from wholestack.evals.reading import read_file
from wholestack.evals.statistics import Interval
from wholestack.evals.written.grading import Grader
from wholestack.evals.written.questions import OpenQuestion, QuestionSet
from wholestack.record import Record, digest

_HIDDEN_AMONG = 20
LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate(Record):
    """How often something happened."""

    times: int
    """Times that it did."""
    of: int
    """Times that it could have."""
    interval: Interval | None
    """Exact binomial; ``None`` of nothing."""

    @property
    def share(self) -> float | None:
        """``None`` of nothing."""
        return self.times / self.of if self.of else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls(Record):
    """What a grader accepts of texts whose worth needs no labels."""

    reference: Rate
    """Right answers in the form that the rule reads; should be all."""
    cheats: dict[str, Rate]
    """Texts that answer nothing, by kind; should be none, but for a constant that is now and then right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderError(Record):
    """How often a grader was wrong about labelled answers."""

    wrong_accepts: Rate
    """Accepted, of those that people call wrong."""
    wrong_rejects: Rate
    """Not accepted, of those that people call right."""
    unknown: int
    """Answers on which the checker gave no verdict; not accepted, so a right one among them is a wrong reject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A text with people's verdict."""

    question: OpenQuestion
    """What was asked."""
    text: str
    """What was written."""
    right: bool
    """What people say."""


def rate(times: int, of: int) -> Rate:
    """A rate with its exact interval."""
    return Rate(times=times, of=of, interval=clopper_pearson(times, of, level=LEVEL) if of else None)


def try_controls(questions: Sequence[OpenQuestion], grader: Grader) -> Controls:
    """Put reference answers and cheats for every question through a grader.

    Raises:
        InputError: there are no questions.
    """
    if not questions:
        raise InputError("controls need at least one question")
    put = grader.extraction.put
    golds = Counter(question.gold for question in questions)
    constant = min(golds, key=lambda gold: (-golds[gold], gold))
    cheats: dict[str, list[bool]] = {
        "nothing": [],
        "the prompt again": [],
        f"always {_short(constant)}": [],
        "all choices": [],
        "the answer among many": [],
    }
    reference = []
    for question in questions:
        reference += grader.accepts(question, [put(question.gold)])
        texts = ["", question.prompt, put(constant), _all_choices(question, grader), _hidden(question, golds, grader)]
        for name, text in zip(cheats, texts, strict=True):
            if text is not None:
                cheats[name] += grader.accepts(question, [text])
    return Controls(
        reference=rate(sum(reference), len(reference)),
        cheats={name: rate(sum(found), len(found)) for name, found in cheats.items() if found},
    )


def measure_grader(labelled: Sequence[Labelled], grader: Grader) -> GraderError:
    """Wrong accepts and wrong rejects on answers that people labelled.

    Raises:
        InputError: there are none.
    """
    if not labelled:
        raise InputError("a grader is measured on at least one labelled answer")
    grades = [(each.right, grader.grade_text(each.question, each.text).grade) for each in labelled]
    wrong = [grade for right, grade in grades if not right]
    right = [grade for right, grade in grades if right]
    return GraderError(
        wrong_accepts=rate(sum(grade == "right" for grade in wrong), len(wrong)),
        wrong_rejects=rate(sum(grade != "right" for grade in right), len(right)),
        unknown=sum(grade == "unknown" for _, grade in grades),
    )


def read_labelled(path: Path, questions: QuestionSet) -> list[Labelled]:
    """Labelled answers: lines with ``id`` of a question, ``text`` and ``right`` (true or false).

    Raises:
        InputError: the file cannot be read, or a line is not so; names it.
    """
    by_id = {question.id: question for question in questions.questions}
    lines = read_file(path).split(b"\n")
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            labelled = Labelled(question=by_id[str(row["id"])], text=row["text"], right=row["right"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(
                f"{path}:{number}: is no labelled answer to one of the questions ({type(error).__name__}: {error})",
                remedy='a line is {"id": "of a question", "text": "...", "right": true}',
            ) from error
        if not isinstance(labelled.text, str) or not isinstance(labelled.right, bool):
            raise InputError(f"{path}:{number}: text is no text, or right neither true nor false")
        found.append(labelled)
    return found


def _all_choices(question: OpenQuestion, grader: Grader) -> str | None:
    """Every choice in the form that the rule reads; nothing for a question without choices."""
    if not question.choices:
        return None
    letters = [chr(65 + place) for place in range(len(question.choices))]
    offered = letters if question.gold in letters else question.choices
    return "\n".join(map(grader.extraction.put, offered))


def _hidden(question: OpenQuestion, golds: Counter[str], grader: Grader) -> str | None:
    """The right answer among other questions' answers, at a place that its id decides and that is not the last."""
    others = sorted(gold for gold in golds if gold != question.gold)
    if len(others) < 2:
        return None
    rng = random.Random(digest("hidden", question.id))
    listed = rng.sample(others, min(_HIDDEN_AMONG, len(others)))
    listed.insert(int(rng.random() * len(listed)), question.gold)
    return "\n".join(map(grader.extraction.put, listed))


def _short(text: str) -> str:
    return repr(text if len(text) <= 20 else text[:17] + "...")
