"""Few-shot examples: questions with their answers that stand in front of every question, chosen or written.

They stand in an order that the seed and their ids decide; a question is shown the first of them that are not the
question itself nor of its group.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wholestack.errors import InputError
from wholestack.record import Record, digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Shots(Record):
    """Examples with their answers that stand in front of every item."""

    count: int
    """Examples an item."""
    seed: int = 0
    """Decides which examples and in which order, together with their ids."""
    file_sha256: str = ""
    """Hash of the file that they are from; filled in when it is read."""
    ids: tuple[str, ...] = ()
    """Every example that any item was shown, in the order of the seed; filled in when they are drawn."""
    separator: str = "\n\n"
    """Stands between examples, and between them and the item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A question as it is asked, with its answer."""

    id: str
    """Identity within its file."""
    group: str
    """Those of one group give each other away."""
    prompt: str
    """What is read."""
    answer: str
    """The right answer with what stands in front of it."""
    content: Hashable
    """Equal for the same question in two files, whatever its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Questions with examples in front."""

    prompts: tuple[str, ...]
    """In the order of the questions."""
    shots: Shots
    """With the file's hash and the ids of all examples that were shown."""


def put_in_front(asked: Sequence[Example], pool: Sequence[Example], shots: Shots, *, path: Path, sha256: str) -> Shown:
    """Put examples in front of every question.

    Args:
        asked: The questions.
        pool: What examples are drawn from.
        shots: How many, and by which seed.
        path: File of the pool, for messages.
        sha256: Its hash.

    Raises:
        InputError: the count is negative, the file is not the one that ``shots`` names, or there are too few examples.
    """
    if shots.count < 0:
        raise InputError(f"shots is {shots.count}, must not be negative")
    if shots.file_sha256 not in ("", sha256):
        raise InputError(f"{path}: is not the file of examples that the task names by its hash")
    ordered = sorted(pool, key=lambda example: digest("shots", shots.seed, example.id))
    shown: set[str] = set()
    prompts = []
    for question in asked:
        examples = _examples(question, ordered, shots.count, path)
        shown |= {example.id for example in examples}
        prompts.append(shots.separator.join((*(each.prompt + each.answer for each in examples), question.prompt)))
    ids = tuple(example.id for example in ordered if example.id in shown)
    return Shown(prompts=tuple(prompts), shots=replace(shots, file_sha256=sha256, ids=ids))


def _examples(question: Example, ordered: Sequence[Example], count: int, path: Path) -> list[Example]:
    """The first examples that give nothing of the question away."""
    found: list[Example] = []
    for example in ordered:
        if len(found) == count:
            break
        if not _gives_away(example, question):
            found.append(example)
    if len(found) < count:
        raise InputError(
            f"{path}: {len(found)} examples are not item {question.id!r} nor of its group, {count} are asked for",
            remedy="ask for fewer --shots, or name a file with more",
        )
    return found


def _gives_away(example: Example, question: Example) -> bool:
    """Ids may differ from file to file, so the content counts as well."""
    return example.id == question.id or example.group == question.group or example.content == question.content
