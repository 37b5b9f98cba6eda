"""Verdicts on the texts of a folder, kept beside them: whatever the way to judge, it writes nothing anew.

The key of a way to judge covers the texts' key, the questions with their right answers, the rule that takes answers
out, the checker, and the purpose. Every verdict is sealed with it, as scores are with theirs. A folder may hold several
ways; ``metrics-<8>.json`` names one.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wholestack.errors import InputError, RecordError
from wholestack.evals.reading import read_file
from wholestack.evals.sealed import sealed, sealed_lines
from wholestack.evals.tasks import Purpose
from wholestack.evals.written.answering import WRITTEN, Written, read_written
from wholestack.evals.written.controls import Controls, GraderError
from wholestack.evals.written.grading import Graded, Grader
from wholestack.evals.written.questions import QuestionSet
from wholestack.evals.written.summary import WrittenScores, summarise_written
from wholestack.journal import write_atomic
from wholestack.record import Record, digest, from_json, to_json

GRADING_RULES = "grading/3"
"""Version of extraction, checkers and summary; part of the key of what was judged."""

METRICS_FILES = "metrics-*.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMetrics(Record):
    """What ``metrics-<8>.json`` holds."""

    SCHEMA: ClassVar[str] = "written-metrics/2"

    key: str
    """Of the texts."""
    grading_key: str
    """Of the texts and how they were judged."""
    task: str
    """As the user calls it."""
    purpose: Purpose
    """``reasoning`` or ``usefulness``; never compared across purposes."""
    extraction: str
    """Rule that takes the answer out."""
    checker: str
    """What judges it."""
    questions: str
    """Digest of the questions with their right answers."""
    metrics: dict[str, float]
    """Flat, name to number."""
    scores: WrittenScores
    """All numbers."""
    controls: Controls
    """What the grader makes of reference answers and cheats for these questions."""
    grader_error: GraderError | None
    """Measured on labelled answers, where there were some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Texts of a folder with their verdicts under one way to judge."""

    written: Written
    """The texts."""
    questions: QuestionSet
    """What was asked; without the rows that they were read from."""
    metrics: WrittenMetrics
    """How it was judged; its numbers follow from ``graded``."""
    graded: tuple[Graded, ...]
    """One a text, in the order of the texts."""

    @property
    def scores(self) -> WrittenScores:
        """The numbers, made anew of the verdicts."""
        return summarise_written(self.questions.questions, self.graded)


def grade_written(written: Written, questions: QuestionSet, grader: Grader) -> tuple[Graded, ...]:
    """Judge every text that is there; pure, so another grader judges the same texts."""
    by_id = {question.id: question for question in questions.questions}
    return tuple(grader.grade(by_id[line.id], line.written, sample=line.sample) for line in written.texts)


def judge_into(
    written: Written,
    questions: QuestionSet,
    grader: Grader,
    *,
    task: str,
    purpose: Purpose,
    controls: Controls,
    grader_error: GraderError | None = None,
) -> WrittenMetrics:
    """Judge texts and put questions, verdicts and numbers beside them.

    Raises:
        RunDirectoryError: the folder cannot be written.
    """
    graded = grade_written(written, questions, grader)
    scores = summarise_written(questions.questions, graded)
    found = WrittenMetrics(
        key=written.plan.key,
        grading_key=_grading_key(
            written.plan.key, questions.digest, grader.extraction.name, grader.checker.name, purpose
        ),
        task=task,
        purpose=purpose,
        extraction=grader.extraction.name,
        checker=grader.checker.name,
        questions=questions.digest,
        metrics=scores.flat,
        scores=scores,
        controls=controls,
        grader_error=grader_error,
    )
    questions.save(written.folder)
    lines = b"".join(to_json(sealed(each, found.grading_key)) + b"\n" for each in graded)
    write_atomic(graded_path(written.folder, found), lines)
    write_atomic(written.folder / f"metrics-{found.grading_key[:8]}.json", to_json(found, indent=2))
    return found


def graded_path(folder: Path, found: WrittenMetrics) -> Path:
    """Where the verdict on each text stands."""
    return folder / f"graded-{found.grading_key[:8]}.jsonl"


def holds_written(path: Path) -> bool:
    """Whether a path means written texts: their folder, or one of its files of metrics."""
    return WRITTEN.is_in(path if path.is_dir() else path.parent)


def read_judged(path: Path) -> Judged:
    """Verdicts of a folder of ``wholestack evals write``, each bound to model, prompts, right answers and rules.

    Args:
        path: The folder, where it holds one way to judge; else its ``metrics-<8>.json`` of the way that is meant.

    Raises:
        InputError: there is none, several to choose from, or a text without a verdict.
        RecordError: a file or line is damaged or from elsewhere; names it.
    """
    path = _metrics_file(path) if path.is_dir() else path
    folder = path.parent
    metrics = from_json(WrittenMetrics, read_file(path), where=str(path))
    questions = QuestionSet.load(folder, metrics.questions)
    written = read_written(folder, questions)
    key = _grading_key(written.plan.key, questions.digest, metrics.extraction, metrics.checker, metrics.purpose)
    if key != metrics.grading_key or metrics.key != written.plan.key:
        raise RecordError(
            f"{path}: texts, questions, rules and key do not belong together",
            remedy="run the same wholestack evals write again: the texts are kept",
        )
    places = [(line.id, line.sample) for line in written.texts]
    known = set(places)
    by_place = {
        (each.id, each.sample): each
        for each in sealed_lines(
            graded_path(folder, metrics),
            Graded,
            key,
            lambda line: (line.id, line.sample) if (line.id, line.sample) in known else None,
            called="judging",
            remedy="run the same wholestack evals write again: the texts are kept",
        )
    }
    if not written.complete or len(by_place) < len(places):
        raise InputError(
            f"{folder}: the writing has not ended, or some of its texts are not judged",
            remedy="let the same wholestack evals write go on to its end",
        )
    return Judged(
        written=written,
        questions=questions,
        metrics=metrics,
        graded=tuple(by_place[place] for place in places),
    )


def _grading_key(texts: str, questions: str, extraction: str, checker: str, purpose: str) -> str:
    return digest(GRADING_RULES, texts, questions, (extraction, checker), purpose)


def _metrics_file(folder: Path) -> Path:
    found = sorted(folder.glob(METRICS_FILES))
    if not found:
        raise InputError(
            f"{folder}: holds texts and no verdict on them",
            remedy="let the same wholestack evals write go on to its end",
        )
    if len(found) > 1:
        raise InputError(
            f"{folder}: was judged in {len(found)} ways", remedy=f"name one, for instance {folder / found[0].name}"
        )
    return found[0]
