"""One question, as it stands on a line of a file.

The line is read as it is by ``wholestack evals score`` (``id``, ``context``, ``choices``, ``gold``) and carries what is
needed to check it again: the seed that makes it, its program, and the trace that proves its answer.
"""

import hashlib
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from wholestack.data.folder import numbered_lines, open_plain
from wholestack.errors import InputError, RecordError
from wholestack.record import Record, from_json, to_builtins

VERSION = "2"
"""Of the grammar: the same seed gives the same item as long as this is the same."""
LONGEST_LINE = 1 << 20
"""Bytes; a line of ours has some thousand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeItem(Record):
    """A question about a program; make one with :func:`seal`."""

    SCHEMA: ClassVar[str] = "code-item/1"

    id: str
    """``kind-difficulty-hash``: the hash covers program, question and choices."""
    kind: str
    """Name of the kind of question."""
    difficulty: int
    """1 to 10."""
    seed: int
    """Of the draft: with kind, difficulty and version it gives the whole item."""
    version: str
    """Of the grammar that made it."""
    program: str
    """Python source, valid from version 3.9 on."""
    question: str
    """What is asked, as one sentence."""
    context: str
    """Program and question as a prompt; a space and a choice continue it."""
    choices: tuple[str, ...]
    """Four texts, of which exactly one is right."""
    gold: int
    """Index of the right one."""
    misreadings: tuple[str | None, ...]
    """For each choice what a reader got wrong who takes it; ``None`` for gold."""
    program_hash: str
    """SHA-256 of the program."""
    trace: dict[str, Any]
    """Proof of the answer. Forward kinds: ``steps``, for each line run its number and the values that changed since,
    at most 60, and ``lines``, how many were run. Backward kinds: ``results``, for each choice what comes of it."""
    hash: str
    """SHA-256 of the line without this field."""


def seal(item: CodeItem) -> CodeItem:
    """The item with its hash."""
    return replace(item, hash=content_hash(item))


def content_hash(item: CodeItem) -> str:
    """SHA-256 over everything but the hash itself, as sorted JSON."""
    plain = to_builtins(item)
    del plain["hash"]
    return hashlib.sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()


def asked(item: CodeItem) -> bytes:
    """What makes two questions the same: program and question, whatever the choices."""
    return hashlib.sha256(item.context.encode()).digest()


def item_line(item: CodeItem) -> bytes:
    """The line of a file, always the same bytes for the same item."""
    return msgspec.json.encode(to_builtins(item)) + b"\n"


def training_line(item: CodeItem) -> bytes:
    """The question with its right answer, as a line of training text that ``wholestack.data`` reads.

    The programs are drawn by a machine: nobody has rights in them.
    """
    text = f"{item.context} {item.choices[item.gold]}\n"
    return msgspec.json.encode({"id": item.id, "licence": "CC0-1.0", "text": text}) + b"\n"


def read_line(line: bytes, *, where: str) -> CodeItem:
    """One item of a file, with its hash checked.

    Args:
        line: One line of JSON.
        where: Named in errors, for instance ``items.jsonl:12``.

    Raises:
        RecordError: it does not decode, or was changed after it was sealed.
    """
    try:
        item = from_json(CodeItem, line, where=where)
        is_sealed = content_hash(item) == item.hash
    except RecursionError as error:
        raise RecordError(f"{where}: nested too deep") from error
    if not is_sealed:
        raise RecordError(f"{where}: was changed after it was sealed", remedy="generate it again from its seed")
    if not (2 <= len(set(item.choices)) == len(item.choices) and 0 <= item.gold < len(item.choices)):
        raise RecordError(f"{where}: gold is {item.gold} of choices {list(item.choices)!r:.200}: no such question")
    return item


def read_items(path: Path) -> list[CodeItem]:
    """All questions of a file.

    Raises:
        InputError: it cannot be read.
        RecordError: a line does not decode, or was changed; the message names it.
    """
    with open_items(path) as file:
        return [
            read_line(line, where=f"{path}:{number}")
            for number, line in numbered_lines(file.readline, longest_bytes=LONGEST_LINE)
        ]


def open_items(path: Path) -> BufferedReader:
    """A file of questions, for reading.

    Raises:
        InputError: it cannot be read, or is a pipe or device.
    """
    file = open_plain(path, follow=True)
    if isinstance(file, tuple):
        raise InputError(f"{path}: cannot be read: {file[1]}", remedy="name a file that codetasks generate wrote")
    return file
