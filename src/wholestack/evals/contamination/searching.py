"""Through a stream of training text on all cores: every flag, and what could not be read or looked for.

Files are shared out, a process takes the next one when it is done; flags are few and come back whole. Memory is that
of the index and of one document a process, whatever the size of the text.
"""

import multiprocessing
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wholestack.data.training_text import Text, Unread, texts_of, training_files, training_texts
from wholestack.evals.contamination.index import TOO_SHORT, Index, Wanted
from wholestack.evals.contamination.matching import RULES, Flag, Rule, match_documents, strictest
from wholestack.evals.items import Wording, find_items
from wholestack.evals.layouts.catalog import Reading
from wholestack.evals.rows import Refusal
from wholestack.finding import Finding, exit_code, finding
from wholestack.record import Record

MOST_FLAGS = 100_000
"""Kept of one search; all are counted."""
TOGETHER = 1 << 17
"""Characters of documents that are looked at together."""
MOST_UNREAD = 20
"""Places that could not be read that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contamination(Record):
    """What was found."""

    SCHEMA: ClassVar[str] = "contamination/1"

    items: int
    checked: int
    """Items that were looked for."""
    too_short: tuple[str, ...]
    """Those that were not."""
    documents: int
    characters: int
    flags: tuple[Flag, ...]
    """The strictest rule first, then the largest share; at most :data:`MOST_FLAGS`."""
    flagged: dict[str, int]
    """Different items by the strictest rule that held for them."""
    unread: int
    first_unread: tuple[str, ...]

    @property
    def findings(self) -> list[Finding]:
        """One for each item that was found, of its strictest flag, and for what is not known."""
        best: dict[str, Flag] = {}
        for flag in self.flags:
            best.setdefault(flag.item, flag)
        found = [_of_flag(flag) for flag in best.values()]
        if self.unread:
            evidence = [f"{self.unread:,} places of training text could not be read", *self.first_unread]
            found.append(_unknown("unread", evidence, "give it as text"))
        if self.too_short:
            evidence = [f"{len(self.too_short):,} of {self.items:,} items: {TOO_SHORT}"]
            found.append(_unknown("too short", evidence, "look for them by hand, or give their passages too"))
        return found

    @property
    def exit_code(self) -> int:
        """1 where an item was found, else 3 where something is not known, else 0."""
        return exit_code(self.findings)


def wanted_of(reading: Reading) -> tuple[list[Wanted], tuple[Refusal, ...]]:
    """The questions of a file, in their own words alone: a template's are not looked for; and what is no question."""
    fields = re.findall(r"\{(\w+)\}", reading.layout.template)
    own = Wording(template="\n".join(f"{{{name}}}" for name in fields if name != "options"))
    found = find_items(reading, own)
    wanted = [Wanted(id=item.id, text=item.context, choices=item.choices, answer=item.answer) for item in found.items]
    return wanted, found.refusals


def search(items: Sequence[Wanted], training: Path, *, processes: int = 1) -> Contamination:
    """Look for items in training text.

    Args:
        items: What to look for; ids are different.
        training: A corpus or run of ours, a folder of files, or one file.
        processes: At a time; a corpus of ours is read by one.

    Raises:
        InputError: there is no item, or no training text.
        DataError: a corpus is damaged.
    """
    index = Index(items)
    is_corpus = any((place / "manifest.json").exists() for place in (training, training / "data"))
    files = [] if is_corpus or not training.exists() else training_files(training)
    if len(files) < 2 or processes < 2:
        return _gathered(index, [_search(index, training_texts(training))])
    files.sort(key=lambda path: path.lstat().st_size, reverse=True)  # none is left over at the end
    with multiprocessing.get_context("fork").Pool(min(processes, len(files)), _begin, (index,)) as pool:
        return _gathered(index, pool.imap_unordered(_search_file, files))


@dataclass(slots=True)
class _Part:
    documents: int
    characters: int
    flags: list[Flag]
    unread: list[Unread]


_shared: list[Index] = []
"""In a process of the pool: the index, which it has from its parent's memory and never by a pipe."""


def _begin(index: Index) -> None:
    _shared.append(index)


def _search_file(path: Path) -> _Part:
    return _search(_shared[0], texts_of([path]))


def _search(index: Index, texts: Iterable[Text | Unread]) -> _Part:
    part = _Part(0, 0, [], [])
    waiting: list[Text] = []
    length = 0
    for each in texts:
        if isinstance(each, Unread):
            part.unread.append(each)
            continue
        part.documents, part.characters = part.documents + 1, part.characters + len(each.text)
        waiting.append(each)
        length += len(each.text)
        if length >= TOGETHER:
            part.flags += match_documents(index, waiting)
            waiting, length = [], 0
    part.flags += match_documents(index, waiting)
    return part


def _gathered(index: Index, parts: Iterable[_Part]) -> Contamination:
    documents = characters = unread = 0
    flags: list[Flag] = []
    first_unread: list[str] = []
    for part in parts:
        documents, characters = documents + part.documents, characters + part.characters
        unread += len(part.unread)
        first_unread += [f"{each.place}: {each.reason}" for each in part.unread[: MOST_UNREAD - len(first_unread)]]
        flags = sorted([*flags, *part.flags], key=strictest)[:MOST_FLAGS] if part.flags else flags
    best: dict[str, Rule] = {}
    for flag in flags:
        best.setdefault(flag.item, flag.rule)
    counts = Counter(best.values())
    return Contamination(
        items=len(index.items),
        checked=len(index.items) - len(index.too_short),
        too_short=index.too_short,
        documents=documents,
        characters=characters,
        flags=tuple(flags),
        flagged={rule: counts[rule] for rule in RULES},
        unread=unread,
        first_unread=tuple(sorted(first_unread)),
    )


def _of_flag(flag: Flag) -> Finding:
    answer = "its answer stands behind it" if flag.has_answer else "its answer does not stand behind it"
    return finding(
        flag.item,
        "contamination",
        "warn" if flag.rule == "near" else "fail",
        part=flag.document,
        cause=flag.rule,
        evidence=[f"{flag.share:.0%} of its own runs of five words, {answer}", flag.match],
        remedy="leave the item out of the score, or the document out of training",
    )


def _unknown(cause: str, evidence: Sequence[str], remedy: str) -> Finding:
    return finding("training text", "contamination", "unknown", cause=cause, evidence=evidence, remedy=remedy)
