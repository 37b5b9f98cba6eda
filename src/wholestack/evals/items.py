"""Items, item sets and their manifest: what is asked, in which order, and the hash that names the metric.

An item is a context, a delimiter and two or more choices, one of which is gold; the model reads
``context + delimiter + choice``. An item set is sealed by its manifest, whose digest covers the items with their
order, the prompt, the rules by which text was cut and tokens are counted, the Python version and the hashes of the
documents. The digest is part of every metric's name, ``answer_bpb[3f2a9c1b]``, so a number from another set, or
from this set with one byte changed, has another name and is never compared with it.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import msgspec

from wholestack.errors import InputError, RunDirectoryError
from wholestack.journal import write_atomic
from wholestack.record import Record, digest, from_json, to_json

ITEMS_FILE = "items.jsonl"
MANIFEST_FILE = "manifest.json"

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSet:
    """Items in order with the manifest that seals them; make it with :func:`seal_items`."""

    items: tuple[Item, ...]
    """The items, in the order that the digest covers."""
    manifest: Manifest
    """What they are."""

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
        write_atomic(folder / MANIFEST_FILE, to_json(self.manifest, indent=2))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read a saved set and check that nothing in it was changed since.

        Raises:
            InputError: a file is missing, or items or manifest are not what was sealed.
            RecordError: a file does not decode.
        """
        raw_manifest, raw_items = (_read(folder / name) for name in (MANIFEST_FILE, ITEMS_FILE))
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
        return cls(items=tuple(items), manifest=manifest)


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
        raise InputError(problem)
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
    )
    content = {field.name: getattr(unsealed, field.name) for field in fields(unsealed)}
    return ItemSet(items=tuple(items), manifest=Manifest(**{**content, "digest": _manifest_digest(unsealed)}))


def items_bytes(items: Iterable[Item]) -> bytes:
    """The items file: one line of JSON an item, always the same bytes for the same items."""
    return b"".join(to_json(item) + b"\n" for item in items)


def read_items(path: Path) -> ItemSet:
    """Read somebody's own items from a JSONL file; they become a set with a digest of their own.

    A line is an object with ``context`` (text), ``choices`` (two or more different texts) and ``gold`` (index).
    It may have ``delimiter`` (default one space), ``source`` (default the file's name), ``cluster`` (default each
    item by itself) and ``id`` (default a hash). Other keys are ignored and not kept. Blank lines are passed over.

    Raises:
        InputError: the file cannot be read, holds no item, or has bad lines; the first five are named by line.
    """
    raw = _read(path).removeprefix(b"\xef\xbb\xbf")
    items: list[Item] = []
    problems: list[str] = []
    first_seen: dict[object, int] = {}
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            item = _item_of_line(line, path.stem)
            _refuse_duplicate(item, number, first_seen)
            items.append(item)
        except InputError as error:
            problems.append(f"{path}:{number}: {error.message}")
    if problems:
        more = f"; and {len(problems) - 5} more lines" if len(problems) > 5 else ""
        raise InputError("; ".join(problems[:5]) + more, remedy="mend or remove these lines")
    if not items:
        raise InputError(f"{path}: holds no item")
    return seal_items(items, kind="items from a file")


def _item_of_line(line: bytes, default_source: str) -> Item:
    """Decode one foreign line: strict about the keys we read, silent about others."""
    try:
        raw: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise InputError(f"expected an object, got {type(raw).__name__}")
    for key in ("context", "choices", "gold"):
        if key not in raw:
            raise InputError(f"key {key!r} is missing")
    texts = {
        key: raw.get(key, default)
        for key, default in (
            ("context", ""),
            ("delimiter", " "),
            ("source", default_source),
            ("cluster", ""),
            ("id", ""),
        )
    }
    for key, value in texts.items():
        if not isinstance(value, str):
            raise InputError(f"{key} is {type(value).__name__}, not text")
    choices, gold = raw["choices"], raw["gold"]
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        raise InputError("choices is not a list of texts")
    if not isinstance(gold, int) or isinstance(gold, bool):
        raise InputError(f"gold is {type(gold).__name__}, not a whole number")
    return make_item(
        texts["context"],
        choices,
        gold,
        delimiter=texts["delimiter"],
        source=texts["source"],
        cluster=texts["cluster"],
        id=texts["id"],
    )


def _problem_with(context: str, delimiter: str, choices: Sequence[str], gold: int) -> str:
    """What is wrong with the content of an item, or nothing."""
    if len(choices) < 2:
        return f"an item has two or more choices, got {len(choices)}"
    for index, choice in enumerate(choices):
        if not choice.strip():
            return f"choice {index} is empty"
    if len(set(choices)) < len(choices):
        return "two choices are the same"
    if not 0 <= gold < len(choices):
        return f"gold is {gold}, the choices are 0 to {len(choices) - 1}"
    try:
        "".join((context, delimiter, *choices)).encode()
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is not text"
    return ""


def _refuse_duplicate(item: Item, number: int, first_seen: dict[object, int]) -> None:
    """The same id, or the same question in any order of its choices, was there before."""
    for what, key in (
        ("the same item", (item.context, item.delimiter, tuple(sorted(item.choices)))),
        (f"id {item.id!r}", item.id),
    ):
        if first_seen.setdefault(key, number) != number:
            raise InputError(f"{what} was on line {first_seen[key]}")


def _manifest_digest(manifest: Manifest) -> str:
    return digest({f.name: getattr(manifest, f.name) for f in fields(manifest) if f.name != "digest"})


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
