"""Texts that a model wrote behind the prompts of questions, kept by key and gone on with after a kill.

The key is the hash of the model's identity, ids and prompts, the writing and how many texts a question: everything
that reaches the model. How answers are taken out and judged is not in it, for it only reads the texts: another rule
judges the same texts again and costs nothing. A folder, ``<questions>-<model>-<first 8 digits of the key>/``, holds

``writing.json``          what was written, with what (:class:`WritingPlan`); written first
``written.jsonl``         one sealed line a text, on the disk before it counts
``questions-<8>.jsonl``   the questions as they were asked, with their right answers, named by their digest
``graded-<8>.jsonl``      what became of each text under one way to judge, whose own key names it; sealed lines
``metrics-<8>.json``      the numbers of it; no times in it, so two runs are equal to the bit

The last three are written by ``wholestack.evals.written.judging`` and made anew whenever they are asked for.
"""

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import ClassVar

from wholestack import __version__
from wholestack.errors import InputError, RecordError
from wholestack.evals.backend import Backend, Generation, ModelIdentity, Writing
from wholestack.evals.keyed import held, keyed_folder
from wholestack.evals.sealed import SealedKind, Watch
from wholestack.evals.written.questions import OpenQuestion, QuestionSet
from wholestack.record import Record, digest, to_builtins

RULES = "writing/2"
"""Version of everything between prompts and texts; part of every key."""

PLAN_FILE = "writing.json"
TEXTS_FILE = "written.jsonl"


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
    seal: str = ""
    """What binds it to its writing."""


WRITTEN = SealedKind(
    plan_file=PLAN_FILE,
    plan=WritingPlan,
    lines_file=TEXTS_FILE,
    line=SealedText,
    called="writing",
    holds="texts",
    again="its text is written again",
    command="wholestack evals write",
)


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
        WRITTEN.begin(folder, plan)
        left = _left(folder, plan, questions)
        total = len(questions.questions) * samples
        done = total - len(left)
        if watch:
            watch(done, total)
        with WRITTEN.writer(folder, key) as append:
            for line in _write(backend, left, writing):
                append([line])
                done += 1
                if watch:
                    watch(done, total)
        return read_written(folder, questions)


def prompts_left(
    out: Path, stem: str, identity: ModelIdentity, questions: QuestionSet, writing: Writing, *, samples: int = 1
) -> tuple[str, ...]:
    """The prompts that a writing with these arguments has still to ask, once for each text that is not there.

    Raises:
        RecordError: a line of the journal is damaged or from another writing; names it.
    """
    key = writing_key(identity, questions, writing, samples)
    folder = keyed_folder(out, stem, identity.name, key)
    if not WRITTEN.is_in(folder):
        return tuple(question.prompt for question in questions.questions) * samples
    return tuple(question.prompt for question, _ in _left(folder, WRITTEN.read_plan(folder), questions))


def read_written(folder: Path, questions: QuestionSet) -> Written:
    """Texts of a folder for these questions.

    Raises:
        InputError: the folder holds none, or those of other questions.
        RecordError: a line is damaged or from another writing, or model, writing and key do not belong together.
    """
    plan = WRITTEN.read_plan(folder)
    if plan.prompts != questions.prompts_digest:
        raise InputError(f"{folder}: holds texts behind other prompts", remedy="write again into another --out")
    if plan.rules != RULES or writing_key(plan.model, questions, plan.writing, plan.samples) != plan.key:
        raise RecordError(
            f"{folder}: prompts, model, writing and key do not belong together", remedy="write again into a new --out"
        )
    place = {question.id: number for number, question in enumerate(questions.questions)}
    lines = sorted(_lines(folder, plan, questions), key=lambda line: (place[line.id], line.sample))
    return Written(folder=folder, plan=plan, texts=tuple(lines))


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


def _left(folder: Path, plan: WritingPlan, questions: QuestionSet) -> list[tuple[OpenQuestion, int]]:
    """Questions and samples without a text, all first ones before all second ones."""
    there = {(line.id, line.sample) for line in _lines(folder, plan, questions)}
    samples = range(plan.samples)
    return [(each, sample) for sample in samples for each in questions.questions if (each.id, sample) not in there]


def _write(backend: Backend, left: Sequence[tuple[OpenQuestion, int]], writing: Writing) -> Iterator[SealedText]:
    """The texts that are left, each sample with its own seed."""
    for sample, group in groupby(left, key=lambda each: each[1]):
        asked = [question for question, _ in group]
        coming = backend.generate([question.prompt for question in asked], replace(writing, seed=writing.seed + sample))
        for question in asked:
            written = next(coming, None)
            if written is None:
                raise InputError(
                    f"the model gave nothing for question {question.id!r}",
                    remedy="see wholestack.testing.evals_backend",
                )
            yield SealedText(id=question.id, sample=sample, written=written)


def _lines(folder: Path, plan: WritingPlan, questions: QuestionSet) -> list[SealedText]:
    """The acknowledged texts, each of a question of the set."""
    known = {question.id for question in questions.questions}
    return WRITTEN.read_lines(
        folder,
        plan.key,
        lambda line: (line.id, line.sample) if line.id in known and 0 <= line.sample < plan.samples else None,
    )
