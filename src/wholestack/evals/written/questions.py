"""Questions that are answered in writing: a prompt, what the right answer is, and how they are read from a file.

A line of the file is an object with ``prompt`` (or ``question``) and ``answer`` (or ``gold``): a text, a number, or
for schemas an object. It may have ``id`` (default a hash), ``group`` (questions that are not independent) and
``choices`` (texts). Other keys are kept for a checker of yours and change nothing else.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from wholestack.errors import InputError
from wholestack.evals.reading import read_file
from wholestack.evals.rows import NOT_TEXT
from wholestack.evals.shots import Example, Shots, put_in_front
from wholestack.evals.written.extraction import Extraction
from wholestack.journal import write_atomic
from wholestack.record import Record, digest, from_json, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion(Record):
    """One question."""

    id: str
    """Identity within the file."""
    group: str
    """Questions of one group are not independent; by default its id."""
    prompt: str
    """What the model reads, template applied."""
    gold: str
    """The right answer, a pattern or a schema, as the checker wants it."""
    choices: tuple[str, ...] = ()
    """Possible answers, where there are such."""
    row: dict[str, Any] = field(default_factory=dict)
    """The whole line, for a checker of the user's; not kept in a folder of results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSet:
    """Questions in order."""

    questions: tuple[OpenQuestion, ...]
    """As in the file."""
    sha256: str
    """Of the file."""

    @property
    def prompts_digest(self) -> str:
        """Identity of what reaches the model: ids and prompts in order."""
        return digest([[each.id, each.prompt] for each in self.questions])

    @property
    def digest(self) -> str:
        """Identity of prompts and right answers."""
        return digest([[each.id, each.group, each.prompt, each.gold, list(each.choices)] for each in self.questions])

    def save(self, folder: Path) -> None:
        """Write them as they were asked, without their rows, into a file that their digest names.

        Raises:
            RunDirectoryError: the folder cannot be written.
        """
        lines = b"".join(to_json(replace(each, row={})) + b"\n" for each in self.questions)
        write_atomic(questions_path(folder, self.digest), lines)

    @classmethod
    def load(cls, folder: Path, digest: str) -> Self:
        """Read what :meth:`save` wrote.

        Raises:
            InputError: the file is missing, or is not what the digest names.
            RecordError: a line does not decode.
        """
        path = questions_path(folder, digest)
        raw = read_file(path, remedy="run the same wholestack evals write again: the texts are kept")
        lines = raw.splitlines()
        found = cls(
            questions=tuple(
                from_json(OpenQuestion, line, where=f"{path}:{n}") for n, line in enumerate(lines, start=1)
            ),
            sha256=hashlib.sha256(raw).hexdigest(),
        )
        if found.digest != digest:
            raise InputError(
                f"{path}: was changed after it was kept as {digest}",
                remedy="run the same wholestack evals write again: the texts are kept",
            )
        return found


def questions_path(folder: Path, digest: str) -> Path:
    """Where the questions of a digest stand in a folder of results."""
    return folder / f"questions-{digest[:8]}.jsonl"


def read_questions(
    path: Path, *, template: str = "{prompt}", gold: Extraction | None = None, limit: int | None = None
) -> QuestionSet:
    """Read questions from JSONL.

    Args:
        path: The file.
        template: Text round the prompt; ``{prompt}`` (or ``{question}``) and ``{choices}`` are replaced in it.
        gold: Rule that takes the right answer out of ``answer``, for files whose answers are worked solutions.
        limit: At most so many, those whose ids have the smallest hashes, in the order of the file.

    Raises:
        InputError: the file cannot be read or holds bad lines; the first five are named.
    """
    if "{prompt}" not in template and "{question}" not in template:
        raise InputError("the template holds no {prompt}", remedy="write it where the question is to stand")
    raw = read_file(path)
    questions: list[OpenQuestion] = []
    problems: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            try:
                question = _of_line(line, template, gold)
                if seen.setdefault(question.id, number) != number:
                    raise InputError(f"id {question.id!r} was on line {seen[question.id]}")
                questions.append(question)
            except InputError as error:
                problems.append(f"{path}:{number}: {error.message}")
    if problems:
        more = f"; and {len(problems) - 5} more lines" if len(problems) > 5 else ""
        raise InputError("; ".join(problems[:5]) + more, remedy="mend or remove these lines")
    if not questions:
        raise InputError(f"{path}: holds no question")
    return QuestionSet(questions=tuple(_drawn(questions, limit)), sha256=hashlib.sha256(raw).hexdigest())


def with_examples(
    questions: QuestionSet, shots: Shots, path: Path, *, template: str, gold: Extraction | None, delimiter: str
) -> QuestionSet:
    """The same questions with examples in front, whose answers stand as their file has them, reasoning and all.

    Args:
        questions: What is asked.
        shots: How many examples, and by which seed.
        path: File of the examples, in the same form.
        template: As of the questions.
        gold: As of the questions.
        delimiter: Stands between a prompt and its answer.

    Raises:
        InputError: the file cannot be read, or the examples do not suffice.
    """
    pool = read_questions(path, template=template, gold=gold)
    shown = put_in_front(
        [_example(each, delimiter) for each in questions.questions],
        [_example(each, delimiter) for each in pool.questions],
        shots,
        path=path,
        sha256=pool.sha256,
    )
    posed = zip(questions.questions, shown.prompts, strict=True)
    return replace(questions, questions=tuple(replace(each, prompt=prompt) for each, prompt in posed))


def _example(question: OpenQuestion, delimiter: str) -> Example:
    answer = _first(question.row, "answer", "gold")
    return Example(
        id=question.id,
        group=question.group,
        prompt=question.prompt,
        answer=f"{delimiter}{answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)}",
        content=question.prompt,
    )


def _of_line(line: bytes, template: str, gold: Extraction | None) -> OpenQuestion:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise InputError(f"expected an object, got {type(row).__name__}")
    prompt, answer = _first(row, "prompt", "question"), _first(row, "answer", "gold")
    if not isinstance(prompt, str) or not prompt.strip():
        raise InputError("its prompt is no text")
    if isinstance(answer, bool) or answer is None or not isinstance(answer, str | int | float | dict):
        raise InputError(f"its answer is {type(answer).__name__}, not a text or number")
    choices = row.get("choices", [])
    if not isinstance(choices, list) or not all(isinstance(each, str) for each in choices):
        raise InputError("choices is not a list of texts")
    right = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if gold is not None:
        taken = gold(right, len(choices))
        if taken.reason:
            raise InputError(f"its answer {taken.reason} ({gold.name})")
        right = taken.value
    if not right.strip():
        raise InputError("its answer is empty")
    posed = _posed(template, prompt, choices)
    names = [str(row[key]) if isinstance(row.get(key), str | int) else "" for key in ("id", "group")]
    try:
        "".join((posed, right, *choices, *names)).encode()
    except UnicodeEncodeError:
        raise InputError(NOT_TEXT) from None
    # Whatever the template and the rule for the right answer: by its id a question is found again under another prompt.
    identity = names[0] or digest(prompt, choices, answer)
    group = names[1] or identity
    return OpenQuestion(id=identity, group=group, prompt=posed, gold=right, choices=tuple(choices), row=row)


def _posed(template: str, prompt: str, choices: Sequence[str]) -> str:
    """The template with its slots filled, all at once, so that braces in a question stay what they are."""
    lettered = "\n".join(f"{chr(65 + place)}. {choice}" for place, choice in enumerate(choices))
    values = {"prompt": prompt, "question": prompt, "choices": lettered}
    return re.sub(r"\{(prompt|question|choices)\}", lambda slot: values[slot[1]], template)


def _first(row: Mapping[str, Any], *keys: str) -> Any:
    for key in keys:
        if key in row:
            return row[key]
    raise InputError(f"key {keys[0]!r} (or {keys[1]!r}) is missing")


def _drawn(questions: Sequence[OpenQuestion], limit: int | None) -> Sequence[OpenQuestion]:
    if limit is None or limit >= len(questions):
        return questions
    if limit < 1:
        raise InputError(f"limit is {limit}, must be at least 1")
    taken = {each.id for each in sorted(questions, key=lambda each: digest("limit", each.id))[:limit]}
    return [each for each in questions if each.id in taken]
