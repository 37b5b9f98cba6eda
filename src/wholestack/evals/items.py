"""Items, item sets and their manifest: what is asked, in which order, and the hash that names the metric.

An item is a context, a delimiter and two or more choices, one of which is gold; the model reads
``context + delimiter + choice``. An item set is sealed by its manifest, whose digest covers the items with their
order, the prompt, the rules by which text was cut and tokens are counted, the Python version and the hashes of the
documents. The digest is part of every metric's name, ``answer_bpb[3f2a9c1b]``, so a number from another set, or
from this set with one byte changed, has another name and is never compared with it.

Reading a file gives items and refusals: a question without a gold answer, with a blank or repeated choice, with only
one, or with text that is no Unicode is refused with a reason and counted in the manifest. An empty context is no fault:
the item is scored where the model puts a start token first, and counted as unscorable where it does not.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from wholestack.errors import InputError, RunDirectoryError
from wholestack.evals.layouts.catalog import Reading, read_questions
from wholestack.evals.layouts.layout import Question
from wholestack.evals.layouts.own import Own
from wholestack.evals.layouts.template import LETTERS, options_text, render
from wholestack.evals.reading import read_file
from wholestack.evals.rows import NOT_TEXT, Refusal
from wholestack.journal import write_atomic
from wholestack.record import Record, digest, from_json, to_json

ITEMS_FILE = "items.jsonl"
MANIFEST_FILE = "manifest.json"
KEPT_FILE = "kept.jsonl"

NO_GOLD = "no gold answer"
FEW_CHOICES = "fewer than two choices"
BLANK_CHOICE = "a blank choice"
SAME_CHOICES = "two choices are the same"
SAME_ITEM = "the same item was there before"
SAME_ID = "its id was there before"
DELIMITER = " "

PROMPT = "{context}{delimiter}{choice}"
TOKEN_RULE = (
    "joint/1: context + delimiter + choice is tokenised as one text; the longest run of leading tokens that the context"
    " alone and all choices of the item have in common is context, everything behind it is scored; so a token that"
    " spans the join is scored with the choice"
)

Kind = Literal["continuation choices", "items from a file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(Record):
    """One question; make it with :func:`make_item`, which checks it and computes a missing id."""

    id: str
    """Identity within the set; by default the hash of the content."""
    source: str
    """Where the text is from, for instance ``code`` or ``prose``."""
    cluster: str
    """Items with the same cluster are not independent; for continuation choices the hash of the document."""
    context: str
    """What the model reads first; never scored."""
    delimiter: str
    """Stands between context and choice and is scored with the choice."""
    choices: tuple[str, ...]
    """Two or more different texts."""
    gold: int
    """Index of the right choice."""

    @property
    def answer(self) -> str:
        """The right choice."""
        return self.choices[self.gold]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(Record):
    """What an item set is, in the fields that its digest covers."""

    SCHEMA: ClassVar[str] = "item-set/1"

    digest: str
    """Hash of all other fields."""
    kind: Kind
    """How the items came about."""
    item_ids: tuple[str, ...]
    """Ids in order."""
    items_sha256: str
    """Hash of the items file, byte for byte."""
    sources: dict[str, int]
    """Items of each source."""
    prompt: str
    """How context, delimiter and choice are put together."""
    cut_rule: str
    """Where text was cut, with all bounds; empty for items from a file."""
    token_rule: str
    """Which tokens are scored."""
    python_version: str
    """Version whose standard library may be the text; empty for items from a file, which do not depend on it."""
    documents: dict[str, str]
    """Path of every document that any item uses, by the document's hash."""
    seed: int | None
    """Seed of the draw; ``None`` for items from a file."""
    passed_over: dict[str, int]
    """What was looked at and not used, counted by reason."""
    task: dict[str, Any] = field(default_factory=dict)
    """How the questions were put to the model, as plain values of a task; empty if they were not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSet:
    """Items in order with the manifest that seals them; make it with :func:`seal_items`."""

    items: tuple[Item, ...]
    """The items, in the order that the digest covers."""
    manifest: Manifest
    """What they are."""
    kept: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False)
    """By id, keys of the rows that mean nothing here: ignored, not in the digest, and written back."""
    refusals: tuple[Refusal, ...] = field(default=(), compare=False)
    """Where it was just read from a file: what was refused and why; of a saved set only the counts are known."""
    files: Mapping[Path, str] = field(default_factory=dict, compare=False)
    """Where it was just read from files: the hash of the bytes of each, as they were read."""

    @property
    def digest(self) -> str:
        """16 hex digits that identify everything about the set."""
        return self.manifest.digest

    def save(self, folder: Path) -> None:
        """Write items and manifest into a folder, made if it is missing; the manifest comes last.

        Raises:
            RunDirectoryError: the folder cannot be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunDirectoryError(f"{folder}: cannot be made: {error.strerror}") from error
        write_atomic(folder / ITEMS_FILE, items_bytes(self.items))
        if self.kept:
            lines = (_foreign_line({"id": name, "keys": keys}) for name, keys in self.kept.items())
            write_atomic(folder / KEPT_FILE, b"".join(lines))
        write_atomic(folder / MANIFEST_FILE, to_json(self.manifest, indent=2))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a saved set and check that nothing in it was changed since.

        Raises:
            InputError: a file is missing, or items or manifest are not what was sealed.
            RecordError: a file does not decode.
        """
        raw_manifest, raw_items = (read_file(folder / name) for name in (MANIFEST_FILE, ITEMS_FILE))
        manifest = from_json(Manifest, raw_manifest, where=str(folder / MANIFEST_FILE))
        if _manifest_digest(manifest) != manifest.digest:
            raise InputError(f"{folder / MANIFEST_FILE}: was changed after it was sealed as {manifest.digest}")
        if hashlib.sha256(raw_items).hexdigest() != manifest.items_sha256:
            raise InputError(
                f"{folder / ITEMS_FILE}: was changed after it was sealed as {manifest.digest}",
                remedy="restore it, or read the file as a set of its own, with its own metric name",
            )
        where = str(folder / ITEMS_FILE)
        items = [from_json(Item, line, where=f"{where}:{n}") for n, line in enumerate(raw_items.splitlines(), start=1)]
        return cls(items=tuple(items), manifest=manifest, kept=_read_kept(folder / KEPT_FILE))


def metric_name(name: str, item_set: ItemSet | str) -> str:
    """Name of a metric on one item set: ``answer_bpb[3f2a9c1b]``.

    Args:
        name: The metric without the set.
        item_set: The set or its digest.
    """
    identity = item_set if isinstance(item_set, str) else item_set.digest
    return f"{name}[{identity[:8]}]"


def make_item(
    context: str,
    choices: Sequence[str],
    gold: int,
    *,
    delimiter: str = " ",
    source: str,
    cluster: str = "",
    id: str = "",
) -> Item:
    """Make one item and check it.

    Raises:
        InputError: fewer than two choices, a blank or repeated one, gold out of range, text that is not Unicode.
    """
    problem = _problem_with(context, delimiter, choices, gold)
    if problem:
        raise InputError(problem.detail)
    identity = id or digest(context, delimiter, list(choices), gold)
    return Item(
        id=identity,
        source=source,
        cluster=cluster or identity,
        context=context,
        delimiter=delimiter,
        choices=tuple(choices),
        gold=gold,
    )


def seal_items(
    items: Sequence[Item],
    *,
    kind: Kind,
    cut_rule: str = "",
    python_version: str = "",
    documents: Mapping[str, str] | None = None,
    seed: int | None = None,
    passed_over: Mapping[str, int] | None = None,
    task: Mapping[str, Any] | None = None,
    kept: Mapping[str, Mapping[str, Any]] | None = None,
) -> ItemSet:
    """Seal items in their order.

    Raises:
        InputError: there are none, or two have the same id.
    """
    if not items:
        raise InputError("an item set needs at least one item")
    repeated = [identity for identity, times in Counter(item.id for item in items).items() if times > 1]
    if repeated:
        raise InputError(f"item id {repeated[0]!r} occurs more than once")
    unsealed = Manifest(
        digest="",
        kind=kind,
        item_ids=tuple(item.id for item in items),
        items_sha256=hashlib.sha256(items_bytes(items)).hexdigest(),
        sources=dict(sorted(Counter(item.source for item in items).items())),
        prompt=PROMPT,
        cut_rule=cut_rule,
        token_rule=TOKEN_RULE,
        python_version=python_version,
        documents=dict(sorted((documents or {}).items())),
        seed=seed,
        passed_over=dict(sorted((passed_over or {}).items())),
        task=dict(task or {}),
    )
    content = {each.name: getattr(unsealed, each.name) for each in fields(unsealed)}
    manifest = Manifest(**{**content, "digest": _manifest_digest(unsealed)})
    return ItemSet(items=tuple(items), manifest=manifest, kept=dict(kept or {}))


def items_bytes(items: Iterable[Item]) -> bytes:
    """The items file: one line of JSON an item, always the same bytes for the same items."""
    return b"".join(to_json(item) + b"\n" for item in items)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something is no item."""

    reason: str
    """In the words by which it is counted."""
    detail: str
    """What exactly is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a file gave: items in order, and what was refused."""

    items: tuple[Item, ...]
    """Those that can be scored."""
    refusals: tuple[Refusal, ...]
    """The others, with the line of each."""
    kept: Mapping[str, Mapping[str, Any]]
    """By id, keys that mean nothing here."""

    @property
    def refused(self) -> dict[str, int]:
        """Refusals counted by reason."""
        return dict(sorted(Counter(each.reason for each in self.refusals).items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """How a question becomes an item; a field left at its default is the layout's or the row's own."""

    template: str = ""
    """The context, with the question's texts and ``options`` (the choices as lettered lines) in braces."""
    delimiter: str | None = None
    """Stands between context and choice."""
    answers: Literal["texts", "letters"] = "texts"
    """Whether a choice is its text or its letter, A, B, ..., of ``options``."""


PLAIN = Wording()
"""As the layout words it."""


def read_items(path: Path) -> ItemSet:
    """Read somebody's own items from a JSONL file, all of them or none; they become a set with a digest of their own.

    A line is an object with ``context`` (text), ``choices`` (two or more different texts) and ``gold`` (index, or text
    of a choice). It may have ``delimiter`` (default one space), ``source`` (default the file's name), ``group`` or
    ``cluster`` (default each item by itself) and ``id`` (default a hash). Other keys are ignored, and kept beside the
    items. Blank lines are passed over.

    Raises:
        InputError: the file cannot be read, holds no item, or has bad lines; the first five are named by line.
    """
    found = find_items(read_questions(path, Own()))
    if found.refusals:
        said = "; ".join(f"{path}:{each.line}: {each.detail}" for each in found.refusals[:5])
        more = f"; and {len(found.refusals) - 5} more lines" if len(found.refusals) > 5 else ""
        raise InputError(said + more, remedy="mend or remove these lines")
    if not found.items:
        raise InputError(f"{path}: holds no item")
    return seal_items(found.items, kind="items from a file", kept=found.kept)


def find_items(reading: Reading, wording: Wording = PLAIN) -> Found:
    """Items of the questions of a file, and what was refused in it, each with line and reason.

    Raises:
        InputError: the template names a text that the layout does not give.
    """
    items: list[Item] = []
    refusals = list(reading.refusals)
    kept: dict[str, Mapping[str, Any]] = {}
    first_seen: dict[object, int] = {}
    for line, question in reading.questions:
        plain = _plain_item(question, reading)
        if isinstance(plain, Item):
            plain = _seen_before(plain, line, first_seen) or plain
        if isinstance(plain, Problem):
            refusals.append(Refusal(line=line, reason=plain.reason, detail=plain.detail))
            continue
        items.append(_worded(plain, question, reading, wording))
        if question.kept:
            kept[plain.id] = question.kept
    return Found(items=tuple(items), refusals=tuple(sorted(refusals, key=lambda each: each.line)), kept=kept)


def own_lines(item_set: ItemSet, beside: Mapping[str, Mapping[str, Any]]) -> bytes:
    """The items in our own layout, with what was kept of their rows and with more keys beside; again a file of items.

    Args:
        item_set: The items.
        beside: By id, keys to add; they win over what was kept, and the item's own keys over both.
    """
    return b"".join(
        _foreign_line({**item_set.kept.get(item.id, {}), **beside.get(item.id, {}), **_own_keys(item)})
        for item in item_set.items
    )


def _plain_item(question: Question, reading: Reading) -> Item | Problem:
    """The question as its layout words it, which also gives it its id; so no wording changes the id."""
    gold = _gold_index(question)
    if not isinstance(gold, int):
        return gold
    context = render(reading.layout.template, {**question.texts, "options": options_text(question.choices)})
    delimiter = DELIMITER if question.delimiter is None else question.delimiter
    names = "".join((question.id, question.source, question.group))
    problem = _problem_with(context + names, delimiter, question.choices, gold)
    return problem or make_item(
        context,
        question.choices,
        gold,
        delimiter=delimiter,
        source=question.source or reading.path.stem,
        cluster=question.group,
        id=question.id,
    )


def _worded(plain: Item, question: Question, reading: Reading, wording: Wording) -> Item:
    """The same question in other words, under the same id."""
    texts = {**question.texts, "options": options_text(question.choices)}
    letters = tuple(LETTERS[: len(plain.choices)])
    if wording.answers == "letters" and len(letters) < len(plain.choices):
        raise InputError(f"item {plain.id!r} has {len(plain.choices)} choices, more than there are letters")
    return Item(
        id=plain.id,
        source=plain.source,
        cluster=plain.cluster,
        context=render(wording.template or reading.layout.template, texts),
        delimiter=plain.delimiter if wording.delimiter is None else wording.delimiter,
        choices=letters if wording.answers == "letters" else plain.choices,
        gold=plain.gold,
    )


def _gold_index(question: Question) -> int | Problem:
    """Index of the right choice, given as index or as text."""
    gold, choices = question.gold, question.choices
    if gold is None:
        return Problem(NO_GOLD, "gold is missing")
    if isinstance(gold, str):
        return choices.index(gold) if gold in choices else Problem(NO_GOLD, f"gold {gold[:40]!r} is no choice")
    if not isinstance(gold, int) or isinstance(gold, bool):
        return Problem(NO_GOLD, f"gold is {type(gold).__name__}, neither index nor text of a choice")
    return gold


def _problem_with(context: str, delimiter: str, choices: Sequence[str], gold: int) -> Problem | None:
    """What is wrong with the content of an item, or nothing."""
    if len(choices) < 2:
        return Problem(FEW_CHOICES, f"an item has two or more choices, got {len(choices)}")
    for index, choice in enumerate(choices):
        if not choice.strip():
            return Problem(BLANK_CHOICE, f"choice {index} is empty")
    if len(set(choices)) < len(choices):
        return Problem(SAME_CHOICES, SAME_CHOICES)
    if not 0 <= gold < len(choices):
        return Problem(NO_GOLD, f"gold is {gold}, the choices are 0 to {len(choices) - 1}")
    try:
        "".join((context, delimiter, *choices)).encode()
    except UnicodeEncodeError:
        return Problem(NOT_TEXT, NOT_TEXT)
    return None


def _seen_before(item: Item, line: int, first_seen: dict[object, int]) -> Problem | None:
    """The same id, or the same question in any order of its choices, was there before."""
    content = (item.context, item.delimiter, tuple(sorted(item.choices)))
    if content in first_seen:
        return Problem(SAME_ITEM, f"the same item was on line {first_seen[content]}")
    if item.id in first_seen:
        return Problem(SAME_ID, f"id {item.id!r} was on line {first_seen[item.id]}")
    first_seen[content] = first_seen[item.id] = line
    return None


def _own_keys(item: Item) -> dict[str, Any]:
    return {
        "id": item.id,
        "context": item.context,
        "delimiter": item.delimiter,
        "choices": item.choices,
        "gold": item.gold,
        "group": item.cluster,
        "source": item.source,
    }


def _foreign_line(values: Mapping[str, Any]) -> bytes:
    """Foreign values may be whole numbers of any size, which msgspec does not write."""
    return json.dumps(values, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _read_kept(path: Path) -> dict[str, Mapping[str, Any]]:
    if not path.exists():
        return {}
    try:
        lines = [json.loads(line) for line in read_file(path).split(b"\n") if line]
        return {line["id"]: line["keys"] for line in lines}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: is damaged: {error}", remedy="remove it: nothing is computed from it") from error


def _manifest_digest(manifest: Manifest) -> str:
    """Over all other fields; a set without a task has the digest that it had before there were tasks."""
    content = {each.name: getattr(manifest, each.name) for each in fields(manifest) if each.name != "digest"}
    if not manifest.task:
        del content["task"]
    return digest(content)
