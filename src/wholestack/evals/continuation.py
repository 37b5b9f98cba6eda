"""Continuation choices: which of four pieces of text really follows this context?

The pieces are the true continuation and three pieces cut from other held-out documents of the same source at the
same kind of boundary, each of exactly the same number of UTF-8 bytes. Nothing is padded or shortened: a length is
drawn first, and only places are used where a word ends exactly that many bytes behind the cut. True and false
pieces go through the same draw (a document, then a cut in it), so that they differ in nothing but where they belong,
and somebody who guesses by length, place or rank is right one time in four.

The items depend on the held-out documents, the bounds and the seed, and on nothing of the training.
"""

import hashlib
import platform
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from wholestack.errors import InputError
from wholestack.evals.cuts import Boundary, Bounds, CutRule, Cuts, Offsets, find_cuts, near_identical, plain
from wholestack.evals.items import Item, ItemSet, make_item, seal_items
from wholestack.record import digest

_CHOICES = 4
_ATTEMPTS = 3
"""Attempts at an item in one turn of a document."""
_TRIES = 100
"""Draws for the wrong choices of an item."""


class HeldOutDocument(Protocol):
    """A document that no training reads."""

    @property
    def id(self) -> str:
        """Identity in the ledger."""

    @property
    def source(self) -> str:
        """Name of the source."""

    @property
    def path(self) -> str:
        """Path inside the source."""

    @property
    def text(self) -> str:
        """The whole text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """An item whose choices are not shuffled yet: the right one comes first."""

    source: str
    cluster: str
    context: str
    delimiter: str
    choices: tuple[str, ...]
    documents: tuple[Cuts, ...]


class _Draw:
    """Seeded draws built on ``random.Random.random`` alone, whose stream Python promises to keep between versions."""

    def __init__(self, *seed: object) -> None:
        self._random = random.Random(int(digest([str(part) for part in seed]), 16))

    def below(self, bound: int) -> int:
        return int(self._random.random() * bound)

    def shuffle(self, values: list[int]) -> list[int]:
        for index in range(len(values) - 1, 0, -1):
            other = self.below(index + 1)
            values[index], values[other] = values[other], values[index]
        return values


def build_continuation_items(
    documents: Iterable[HeldOutDocument],
    *,
    count: int = 400,
    seed: int,
    context_bytes: Bounds = (160, 256),
    answer_bytes: Bounds = (48, 80),
    boundary: Boundary = "word",
    per_document: int = 4,
    python_version: str = "",
    remedy: str = "hold out more text, raise per_document, or ask for fewer items",
) -> ItemSet:
    """Make four-way continuation choices from held-out documents, as evenly from each source as they allow.

    Args:
        documents: Held-out documents of any number of sources, in any order; the same text twice counts once.
        count: Items wanted.
        seed: Seed of every draw.
        context_bytes: Least and most bytes of a context.
        answer_bytes: Least and most bytes of a choice, without its delimiter.
        boundary: Cut at a space or line end (``word``), or at line ends only (``line``).
        per_document: Most items from one document.
        python_version: Goes into the manifest; by default that of this process.
        remedy: What to do where the documents do not hold that many items.

    Returns:
        The sealed set: shuffled, the right choice equally often at each place within each source.

    Raises:
        InputError: a bound is wrong, or the documents do not hold that many items.

    Example:
        >>> from types import SimpleNamespace
        >>> words = [" ".join(f"w{d}x{i * i % 97}" for i in range(300)) for d in range(8)]
        >>> held_out = [SimpleNamespace(id=str(d), source="s", path=str(d), text=t) for d, t in enumerate(words)]
        >>> len(build_continuation_items(held_out, count=8, seed=0).items)
        8
    """
    _check_bounds(count, context_bytes, answer_bytes, per_document)
    rule = CutRule(boundary=boundary, context=context_bytes, answer=answer_bytes, per_document=per_document)
    passed_over: Counter[str] = Counter()
    sources = _cut_sources(documents, rule, passed_over)
    drafts = _collect(
        [_Source(name, cuts, rule, _Draw(seed, name), passed_over) for name, cuts in sources.items()], count
    )
    if len(drafts) < count:
        raise InputError(
            f"{count} items were asked for, the held-out documents of {', '.join(sources) or 'no source'} hold"
            f" {len(drafts)} ({_counted(passed_over)})",
            remedy=remedy,
        )
    items = _place(drafts, seed)
    used = {cuts.hash: cuts.name for draft in drafts for cuts in draft.documents}
    return seal_items(
        items,
        kind="continuation choices",
        cut_rule=str(rule),
        python_version=python_version or platform.python_version(),
        documents=used,
        seed=seed,
        passed_over=passed_over,
    )


def _check_bounds(count: int, context: Bounds, answer: Bounds, per_document: int) -> None:
    for name, value in (("count", count), ("per_document", per_document)):
        if value < 1:
            raise InputError(f"{name} is {value}, must be at least 1")
    for name, (least, most) in (("context_bytes", context), ("answer_bytes", answer)):
        if not 1 <= least <= most:
            raise InputError(f"{name} is {(least, most)}, must be two rising numbers from 1")


def _cut_sources(
    documents: Iterable[HeldOutDocument], rule: CutRule, passed_over: Counter[str]
) -> dict[str, list[Cuts]]:
    """Documents with cuts by source; sources by name and documents by hash, so that input order does not matter."""
    by_source: dict[str, dict[str, Cuts]] = {}
    for document in sorted(documents, key=lambda each: (each.source, each.path, each.id)):
        found = by_source.setdefault(document.source, {})
        try:
            data = document.text.encode()
        except UnicodeEncodeError:
            passed_over["document: not Unicode text"] += 1
            continue
        identity = hashlib.sha256(data).hexdigest()[:16]
        if identity in found:
            passed_over["document: same text as another"] += 1
            continue
        cuts = find_cuts(data, identity, f"{document.source}:{document.path}", rule)
        if cuts is None:
            passed_over["document: no place to cut"] += 1
        else:
            found[identity] = cuts
    return {source: [found[key] for key in sorted(found)] for source, found in sorted(by_source.items())}


def _collect(sources: Sequence["_Source"], count: int) -> list[_Draft]:
    """Drafts in turn from each source until there are enough or every source is dry."""
    streams = [source.drafts() for source in sources]
    drafts: list[_Draft] = []
    while streams and len(drafts) < count:
        drawn = [(stream, next(stream, None)) for stream in streams]
        drafts.extend(draft for _, draft in drawn if draft is not None)
        streams = [stream for stream, draft in drawn if draft is not None]
    return drafts[:count]


class _Source:
    """The usable documents of one source, and what was drawn from them."""

    def __init__(
        self, name: str, documents: Sequence[Cuts], rule: CutRule, draw: _Draw, passed_over: Counter[str]
    ) -> None:
        self.name = name
        self._documents = documents
        self._rule = rule
        self._draw = draw
        self._passed_over = passed_over
        self._taken: dict[str, list[tuple[int, int]]] = {cuts.hash: [] for cuts in documents}
        self._answers: set[str] = set()

    def drafts(self) -> Iterator[_Draft]:
        """Rounds over the documents in a drawn order, one item a document and round."""
        if len(self._documents) < _CHOICES:
            self._passed_over[f"source {self.name}: fewer than {_CHOICES} usable documents"] += 1
            return
        for _ in range(self._rule.per_document):
            for number in self._draw.shuffle(list(range(len(self._documents)))):
                for _ in range(_ATTEMPTS):
                    draft = self._draft(number)
                    if isinstance(draft, _Draft):
                        yield draft
                        break
                    self._passed_over[f"item: {draft}"] += 1

    def _draft(self, number: int) -> _Draft | str:
        """One item from one document, or the reason why not."""
        cuts = self._documents[number]
        least, most = self._rule.answer
        length = least + self._draw.below(most - least + 1)
        free = self._free(cuts, length)
        if not len(free):
            return "no fitting cut left in its document"
        index = int(free[self._draw.below(len(free))])
        context, answer = cuts.context(index), cuts.answer(index, length)
        if plain(answer) in plain(context):
            return "answer stands in its context"
        if plain(answer) in self._answers:
            return "answer seen before"
        wrong = self._wrong_choices(number, cuts.delimiter(index), context, answer)
        if len(wrong) < _CHOICES - 1:
            return "too few wrong choices of its length"
        self._taken[cuts.hash].append(cuts.span(index, length))
        self._answers.add(plain(answer))
        return _Draft(
            source=self.name,
            cluster=cuts.hash,
            context=context,
            delimiter=cuts.delimiter(index),
            choices=(answer, *(text for _, text in wrong)),
            documents=(cuts, *(other for other, _ in wrong)),
        )

    def _wrong_choices(self, number: int, delimiter: str, context: str, answer: str) -> list[tuple[Cuts, str]]:
        """Up to three answers of other documents, drawn like the right one: a document first, then a cut in it."""
        length = len(answer.encode())
        surrounding = plain(context)
        chosen: list[tuple[Cuts, str]] = []
        for _ in range(_TRIES):
            other = self._draw.below(len(self._documents) - 1)
            cuts = self._documents[other + (other >= number)]
            fitting = cuts.fitting(length, delimiter)
            if not len(fitting):
                continue
            candidate = cuts.answer(int(fitting[self._draw.below(len(fitting))]), length)
            rivals = [answer, *(text for _, text in chosen)]
            if plain(candidate) in surrounding or any(near_identical(candidate, rival) for rival in rivals):
                continue
            chosen.append((cuts, candidate))
            if len(chosen) == _CHOICES - 1:
                break
        return chosen

    def _free(self, cuts: Cuts, answer_bytes: int) -> Offsets:
        """Fitting cuts whose text lies apart from that of earlier items: else one would give the other away."""
        fitting = cuts.fitting(answer_bytes)
        for start, end in self._taken[cuts.hash]:
            before = cuts.at[fitting] + 1 + answer_bytes <= start
            fitting = fitting[before | (cuts.context_from[fitting] >= end)]
        return fitting


def _place(drafts: Sequence[_Draft], seed: int) -> list[Item]:
    """Shuffle: the right choice lands equally often at each place within each source, then the items are mixed."""
    places: dict[str, list[int]] = {}
    for source, number in Counter(draft.source for draft in drafts).items():
        turn = _Draw(seed, "turn", source).below(_CHOICES)
        places[source] = _Draw(seed, "place", source).shuffle([(turn + i) % _CHOICES for i in range(number)])
    items = []
    for draft in drafts:
        gold = places[draft.source].pop()
        choices = [*draft.choices[1:]]
        choices.insert(gold, draft.choices[0])
        items.append(
            make_item(
                draft.context, choices, gold, delimiter=draft.delimiter, source=draft.source, cluster=draft.cluster
            )
        )
    return [items[index] for index in _Draw(seed, "order").shuffle(list(range(len(items))))]


def _counted(reasons: Counter[str]) -> str:
    return "; ".join(f"{reason}: {times}" for reason, times in sorted(reasons.items())) or "nothing was passed over"
