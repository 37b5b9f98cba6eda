"""Texts that a model wrote behind the prompts of questions, kept by key and gone on with after a kill.

The key is the hash of the model's identity, ids and prompts, the writing and how many texts a question: everything
that reaches the model. How answers are taken out and judged is not in it, for it only reads the texts: another rule
judges the same texts again and costs nothing. A folder, ``<questions>-<model>-<first 8 digits of the key>/``, holds

``writing.json``         what was written, with what (:class:`WritingPlan`); written first
``written.jsonl``        one sealed line a text, on the disk before it counts
``graded-<8>.jsonl``     what became of each text under one way to judge, whose own key names it
``metrics-<8>.json``     the numbers of it; no times in it, so two runs are equal to the bit

The last two follow from the others and are made anew whenever they are asked for.
"""

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import ClassVar

from wholestack import __version__
from wholestack.errors import InputError, RecordError, RunDirectoryError
from wholestack.evals.backend import Backend, Generation, ModelIdentity, Writing
from wholestack.evals.keyed import held, keyed_folder
from wholestack.evals.reading import read_file
from wholestack.evals.written.controls import Controls, GraderError
from wholestack.evals.written.grading import Graded, Grader
from wholestack.evals.written.questions import QuestionSet
from wholestack.evals.written.summary import WrittenScores, summarise_written
from wholestack.journal import JournalWriter, iterate_journal, write_atomic
from wholestack.record import Record, digest, from_json, to_builtins, to_json

RULES = "writing/1"
"""Version of everything between prompts and texts; part of every key."""
GRADING_RULES = "grading/1"
"""Version of extraction, checkers and summary; part of the key of what was judged."""

PLAN_FILE = "writing.json"
TEXTS_FILE = "written.jsonl"

Watch = Callable[[int, int], None]
"""Told how many texts have their line, and of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingPlan(Record):
    """What a folder holds the texts of."""

    SCHEMA: ClassVar[str] = "writing-plan/1"

    key: str
    """Hash of everything that reaches the model."""
    model: ModelIdentity
    """What writes."""
    prompts: str
    """Digest of ids and prompts."""
    questions: int
    """How many."""
    writing: Writing
    """How it writes; the seed of the first text of a question, each further one has the next."""
    samples: int
    """Texts a question."""
    rules: str
    """Version of the rules."""
    versions: dict[str, str]
    """Versions of Python and wholestack that began it; not in the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedText(Record):
    """One line of the journal."""

    id: str
    """Of the question."""
    sample: int
    """Which of its texts."""
    written: Generation
    """What came."""
    check: str
    """Hash of the above with the key, so that a line of another writing is never taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMetrics(Record):
    """What ``metrics-<8>.json`` holds."""

    SCHEMA: ClassVar[str] = "written-metrics/1"

    key: str
    """Of the texts."""
    grading_key: str
    """Of the texts and how they were judged."""
    task: str
    """As the user calls it."""
    purpose: str
    """``reasoning`` or ``usefulness``; never compared across purposes."""
    extraction: str
    """Rule that takes the answer out."""
    checker: str
    """What judges it."""
    metrics: dict[str, float]
    """Flat, name to number."""
    scores: WrittenScores
    """All numbers."""
    controls: Controls
    """What the grader makes of reference answers and cheats for these questions."""
    grader_error: GraderError | None
    """Measured on labelled answers, where there were some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Texts of a folder, complete or not."""

    folder: Path
    """Where."""
    plan: WritingPlan
    """What was written with what."""
    texts: tuple[SealedText, ...]
    """By question in the order of the file, then by sample."""

    @property
    def complete(self) -> bool:
        """Whether every text is there."""
        return len(self.texts) == self.plan.questions * self.plan.samples


def writing_key(identity: ModelIdentity, questions: QuestionSet, writing: Writing, samples: int) -> str:
    """The key of texts: everything that reaches the model."""
    return digest(RULES, identity.digest, questions.prompts_digest, to_builtins(writing), samples)


def write_into(
    backend: Backend,
    questions: QuestionSet,
    writing: Writing,
    out: Path,
    *,
    samples: int = 1,
    stem: str = "questions",
    watch: Watch | None = None,
) -> Written:
    """Have texts written, or go on where an interrupted writing was; one that is complete is only read.

    Args:
        backend: The model.
        questions: What is asked.
        writing: How to write.
        out: Folder of results; the texts get a folder in it, named by their key.
        samples: Texts a question, each with a seed of its own.
        stem: How the questions are called.
        watch: Told at the beginning and whenever a text has its line.

    Raises:
        RunBusyError: a live process is at work in the folder.
        RecordError: a line of the journal is damaged or from another writing; names it.
        InputError: the model cannot write, or several texts are asked for that would all be the same.
    """
    _check_writing(writing, samples)
    identity = backend.identity
    key = writing_key(identity, questions, writing, samples)
    with held(keyed_folder(out, stem, identity.name, key)) as folder:
        plan = WritingPlan(
            key=key,
            model=identity,
            prompts=questions.prompts_digest,
            questions=len(questions.questions),
            writing=writing,
            samples=samples,
            rules=RULES,
            versions={"python": platform.python_version(), "wholestack": __version__},
        )
        _begin(folder, plan)
        there = {(line.id, line.sample) for line in _lines(folder, plan, questions)}
        total = len(questions.questions) * samples
        if watch:
            watch(len(there), total)
        with JournalWriter(folder / TEXTS_FILE, SealedText) as journal:
            for done, line in enumerate(_write(backend, questions, plan, there), start=len(there) + 1):
                journal.append(line)
                if watch:
                    watch(done, total)
        return read_written(folder, questions)


def read_written(folder: Path, questions: QuestionSet) -> Written:
    """Texts of a folder for these questions.

    Raises:
        InputError: the folder holds none, or those of other questions.
        RecordError: a line is damaged or from another writing; names it.
    """
    path = folder / PLAN_FILE
    if not path.is_file():
        raise InputError(f"{folder}: holds no written texts (no {PLAN_FILE})", remedy="name its folder")
    plan = from_json(WritingPlan, read_file(path), where=str(path))
    if plan.prompts != questions.prompts_digest:
        raise InputError(f"{folder}: holds texts behind other prompts", remedy="write again into another --out")
    place = {question.id: number for number, question in enumerate(questions.questions)}
    lines = sorted(_lines(folder, plan, questions), key=lambda line: (place[line.id], line.sample))
    return Written(folder=folder, plan=plan, texts=tuple(lines))


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
    purpose: str,
    controls: Controls,
    grader_error: GraderError | None = None,
) -> WrittenMetrics:
    """Judge texts and put the verdicts and numbers beside them.

    Raises:
        RunDirectoryError: the folder cannot be written.
    """
    graded = grade_written(written, questions, grader)
    scores = summarise_written(questions.questions, graded)
    rules = (grader.extraction.name, grader.checker.name)
    grading_key = digest(GRADING_RULES, written.plan.key, questions.digest, rules)
    found = WrittenMetrics(
        key=written.plan.key,
        grading_key=grading_key,
        task=task,
        purpose=purpose,
        extraction=grader.extraction.name,
        checker=grader.checker.name,
        metrics=scores.flat,
        scores=scores,
        controls=controls,
        grader_error=grader_error,
    )
    write_atomic(graded_path(written, found), b"".join(to_json(each) + b"\n" for each in graded))
    write_atomic(written.folder / f"metrics-{grading_key[:8]}.json", to_json(found, indent=2))
    return found


def graded_path(written: Written, found: WrittenMetrics) -> Path:
    """Where the verdict on each text stands."""
    return written.folder / f"graded-{found.grading_key[:8]}.jsonl"


_LOWEST_TEMPERATURE = 0.001
"""Of those that are not 0: logits divided by less may leave the range of numbers."""


def _check_writing(writing: Writing, samples: int) -> None:
    if samples < 1:
        raise InputError(f"samples is {samples}, must be at least 1")
    if writing.max_tokens < 1:
        raise InputError(f"max_tokens is {writing.max_tokens}, must be at least 1")
    if writing.temperature != 0 and not _LOWEST_TEMPERATURE <= writing.temperature <= 10:
        raise InputError(f"temperature is {writing.temperature}, must be 0, or {_LOWEST_TEMPERATURE} to 10")
    if samples > 1 and writing.temperature == 0:
        raise InputError(
            f"{samples} texts a question at temperature 0 would all be the same", remedy="say --temperature 0.8"
        )
    if any(not stop for stop in writing.stop):
        raise InputError("a stop text is empty")


def _write(
    backend: Backend, questions: QuestionSet, plan: WritingPlan, there: set[tuple[str, int]]
) -> Iterator[SealedText]:
    """Texts that are not there yet, all first ones before all second ones."""
    for sample in range(plan.samples):
        left = [question for question in questions.questions if (question.id, sample) not in there]
        writing = replace(plan.writing, seed=plan.writing.seed + sample)
        coming = backend.generate([question.prompt for question in left], writing) if left else iter(())
        for question in left:
            written = next(coming, None)
            if written is None:
                raise InputError(
                    f"the model gave nothing for question {question.id!r}",
                    remedy="see wholestack.testing.evals_backend",
                )
            yield _sealed(question.id, sample, written, plan.key)


def _sealed(question: str, sample: int, written: Generation, key: str) -> SealedText:
    check = digest(key, question, sample, to_builtins(written))
    return SealedText(id=question, sample=sample, written=written, check=check)


def _lines(folder: Path, plan: WritingPlan, questions: QuestionSet) -> Sequence[SealedText]:
    """The acknowledged texts, each bound to this writing and there once."""
    known = {question.id for question in questions.questions}
    path = folder / TEXTS_FILE
    found: dict[tuple[str, int], SealedText] = {}
    for number, line in enumerate(iterate_journal(path, SealedText), start=1):
        place = (line.id, line.sample)
        sound = _sealed(line.id, line.sample, line.written, plan.key).check == line.check
        if not sound or line.id not in known or not 0 <= line.sample < plan.samples or place in found:
            raise RecordError(
                f"{path}:{number}: is damaged, doubled, or from another writing",
                remedy=f"remove that line, and its text is written again: sed -i {number}d {quote(str(path))}",
            )
        found[place] = line
    return list(found.values())


def _begin(folder: Path, plan: WritingPlan) -> None:
    path = folder / PLAN_FILE
    if path.exists():
        there = from_json(WritingPlan, read_file(path), where=str(path))
        if there.key != plan.key:
            raise RunDirectoryError(
                f"{folder}: is the writing {there.key}, not {plan.key}", remedy="choose another --out"
            )
        return
    if (folder / TEXTS_FILE).exists():
        raise RunDirectoryError(f"{folder}: has texts and no {PLAN_FILE}", remedy="choose another --out")
    write_atomic(path, to_json(plan, indent=2))
