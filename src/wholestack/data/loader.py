"""Batches of tokens from a mixture of sources: a pure function of (seed, step), at any step, in any order.

Sequences are numbered 0, 1, 2, ... over the whole run; step s of batches of B holds numbers s*B to s*B + B - 1.
So the order of the data does not depend on the batch size, and nothing but the step is needed to resume.

Mixture. Numbers fall into blocks of 4,096. Each block holds a fixed count of each source (its weight by largest
remainder, at least one where the weight is not zero), in an order that a seeded permutation gives. Weights are
so met within 1/4096 in every block, not just on average, and how much of a source was seen is known at once.

Within a source. The stream is a ring. An epoch is every window of ``context`` tokens once, in the order of a
seeded permutation; each epoch has its own order and its own starting point, so windows are cut elsewhere.
At most ``context - 1`` tokens are left out of an epoch. A window carries one token more, the last target.

Schedule. A mixture may change on the way (a curriculum): the numbers are then cut into stretches, each with its own
weights and its own blocks from its first number on. What each source was seen is carried from stretch to stretch, so
its epochs go on. Until the first change a schedule gives the same batches as its first mixture alone.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wholestack.data.corpus import Corpus
from wholestack.data.permutation import Integers, key, permuted
from wholestack.data.shards import TokenStream
from wholestack.data.source import Split
from wholestack.data.tokenizer import Tokens
from wholestack.errors import InputError

BLOCK = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one sequence of a batch lies."""

    source: str
    """Name of the source."""
    first_token: int
    """Place of its first token in the stream, for :meth:`Corpus.where`; behind the end it goes on at 0."""
    epoch: int
    """How many times the source had been seen in full before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of a run with one mixture."""

    first_sequence: int
    """Number of its first sequence; 0 for the first stretch. It ends where the next one begins."""
    weights: Mapping[str, float]
    """Share of sequences for each source, as for a constant mixture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A stretch, made ready."""

    number: int
    first: int
    """Its first sequence."""
    counts: Integers
    """``[sources]``, slots of each in a block."""
    seen: Integers
    """``[sources]``, sequences of each before it begins."""


class Loader:
    """Random access to the batches of a mixture or of a schedule of mixtures.

    Args:
        corpus: The prepared corpus.
        weights: Share of sequences for each source; need not sum to one. A source not named is not used. Or the
            stretches of a schedule, in order.
        batch_size: Sequences a batch.
        context: Tokens that the model sees at once.
        seed: Another seed is another order.
        split: Train, unless you mean to look at held-out text.

    Raises:
        InputError: an unknown source, a weight that is no weight, a size below 1, a source with too little text, or
            stretches that do not begin at 0 and follow each other.
    """

    def __init__(
        self,
        corpus: Corpus,
        weights: Mapping[str, float] | Sequence[Stretch],
        batch_size: int,
        context: int,
        seed: int,
        *,
        split: Split = "train",
    ) -> None:
        if batch_size < 1 or context < 1:
            raise InputError(f"batch_size is {batch_size}, context is {context}", remedy="choose 1 or more")
        self.batch_size = batch_size
        self.context = context
        self._seed = seed
        stretches = _merged(weights, corpus)
        used = {name for _, shares in stretches for name in shares}
        self._sources = tuple(name for name in corpus.sources if name in used)
        self._streams = {name: _stream(corpus, split, name, context) for name in self._sources}
        self._block: tuple[tuple[int, int], Integers, Integers] | None = None
        self._parts: list[_Part] = []
        for number, (first, shares) in enumerate(stretches):
            seen = np.array([self._before(first, index) for index in range(len(self._sources))], dtype=np.int64)
            self._parts.append(_Part(number=number, first=first, counts=self._slots(shares), seen=seen))
        self._firsts = np.array([part.first for part in self._parts])

    @property
    def weights(self) -> dict[str, float]:
        """Share of sequences of each source as it is met at the beginning, summing to one."""
        return self.weights_at(0)

    def weights_at(self, step: int) -> dict[str, float]:
        """Share of sequences of each source as it is met where a step begins, summing to one.

        Raises:
            InputError: the step is negative.
        """
        if step < 0:
            raise InputError(f"step is {step}", remedy="steps count from 0")
        counts = self._part_of(step * self.batch_size).counts.tolist()
        return {name: count / BLOCK for name, count in zip(self._sources, counts, strict=True) if count}

    def batch(self, step: int) -> npt.NDArray[np.int64]:
        """The tokens of one step, shape [batch_size, context + 1]; row by row inputs are ``[:-1]``, targets ``[1:]``.

        Raises:
            InputError: the step is negative.
        """
        batch = np.empty((self.batch_size, self.context + 1), dtype=np.int64)
        for row, place in enumerate(self.places(step)):
            batch[row] = _ring(self._streams[place.source], place.first_token, self.context + 1)
        return batch

    def places(self, step: int) -> list[Place]:
        """Where each sequence of a step lies.

        Raises:
            InputError: the step is negative.
        """
        if step < 0:
            raise InputError(f"step is {step}", remedy="steps count from 0")
        numbers = np.arange(step * self.batch_size, (step + 1) * self.batch_size)
        sources, seen = self._drawn(numbers)
        found: dict[int, Place] = {}
        for index in np.unique(sources).tolist():
            rows = np.flatnonzero(sources == index)
            found.update(zip(rows.tolist(), self._windows(index, seen[rows]), strict=True))
        return [found[row] for row in range(self.batch_size)]

    def tokens_seen(self, step: int) -> dict[str, int]:
        """Targets trained on, by source, before a step begins."""
        number = step * self.batch_size
        counts = [self._before(number, index) for index in range(len(self._sources))]
        return {name: count * self.context for name, count in zip(self._sources, counts, strict=True)}

    def _drawn(self, numbers: Integers) -> tuple[Integers, Integers]:
        """For each sequence its source, and how many sequences before it had the same."""
        parts = np.searchsorted(self._firsts, numbers, side="right") - 1
        blocks, slots = np.divmod(numbers - self._firsts[parts], BLOCK)
        sources, seen = np.empty_like(numbers), np.empty_like(numbers)
        for number, block in dict.fromkeys(zip(parts.tolist(), blocks.tolist(), strict=True)):
            part = self._parts[number]
            here = (parts == number) & (blocks == block)
            order, ranks = self._order(part, block)
            sources[here] = order[slots[here]]
            seen[here] = part.seen[sources[here]] + block * part.counts[sources[here]] + ranks[slots[here]]
        return sources, seen

    def _windows(self, index: int, seen: Integers) -> list[Place]:
        """The windows of one source, given how many of it came before each."""
        name = self._sources[index]
        length = len(self._streams[name])
        epochs, places = np.divmod(seen, length // self.context)
        firsts = np.empty_like(seen)
        for epoch in np.unique(epochs).tolist():
            here = epochs == epoch
            epoch_key = key(self._seed, 1, *name.encode(), epoch)
            windows = permuted(places[here], length // self.context, epoch_key)
            firsts[here] = (epoch_key % length + windows * self.context) % length
        return [
            Place(source=name, first_token=first, epoch=epoch)
            for first, epoch in zip(firsts.tolist(), epochs.tolist(), strict=True)
        ]

    def _order(self, part: _Part, block: int) -> tuple[Integers, Integers]:
        """For each slot of a block of a stretch the source, and how many slots before it have the same."""
        if self._block is None or self._block[0] != (part.number, block):
            cut = np.repeat(np.arange(len(part.counts)), part.counts)
            stretch = (part.number,) if part.number else ()
            sources = cut[permuted(np.arange(BLOCK), BLOCK, key(self._seed, 0, block, *stretch))]
            ranks = np.empty(BLOCK, dtype=np.int64)
            for index, count in enumerate(part.counts):
                ranks[sources == index] = np.arange(count)
            self._block = (part.number, block), sources, ranks
        return self._block[1], self._block[2]

    def _before(self, number: int, index: int) -> int:
        """Sequences of one source with a smaller number; a number where a stretch begins ends the one before."""
        if number == 0:
            return 0
        part = self._part_of(number - 1)
        block, slot = divmod(number - part.first, BLOCK)
        whole = int(part.seen[index]) + block * int(part.counts[index])
        return whole + int((self._order(part, block)[0][:slot] == index).sum())

    def _part_of(self, number: int) -> _Part:
        """The stretch that a sequence lies in."""
        return next(part for part in reversed(self._parts) if part.first <= number)

    def _slots(self, shares: Mapping[str, float]) -> Integers:
        """``[sources]``, slots of a block; none for a source that the stretch does not use."""
        counts = np.zeros(len(self._sources), dtype=np.int64)
        counts[[self._sources.index(name) for name in shares]] = _apportioned(list(shares.values()))
        return counts


def _merged(weights: Mapping[str, float] | Sequence[Stretch], corpus: Corpus) -> list[tuple[int, dict[str, float]]]:
    """First sequence and shares of each stretch; neighbours with the same shares are one."""
    if isinstance(weights, Mapping):
        return [(0, _checked(weights, corpus))]
    firsts = [stretch.first_sequence for stretch in weights]
    if not firsts or firsts[0] != 0 or any(after <= before for before, after in itertools.pairwise(firsts)):
        raise InputError(
            f"stretches begin at the sequences {firsts}", remedy="begin the first at 0 and each behind the one before"
        )
    found: list[tuple[int, dict[str, float]]] = []
    for stretch in weights:
        shares = _checked(stretch.weights, corpus)
        if not found or _normal(shares) != _normal(found[-1][1]):
            found.append((stretch.first_sequence, shares))
    return found


def _normal(shares: Mapping[str, float]) -> dict[str, int]:
    """Shares as slots of a block: what a difference must reach to be one."""
    return dict(zip(shares, _apportioned(list(shares.values())).tolist(), strict=True))


def _checked(weights: Mapping[str, float], corpus: Corpus) -> dict[str, float]:
    """Weights that are not zero, in the order of the corpus, so that the order of a dict changes nothing."""
    for name, weight in weights.items():
        if name not in corpus.sources:
            raise InputError(
                f"weights name an unknown source {name!r}", remedy=f"known are: {', '.join(corpus.sources)}"
            )
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError(f"the weight of {name!r} is {weight}", remedy="give a number of 0 or more")
    used = {name: float(weights[name]) for name in corpus.sources if weights.get(name, 0) > 0}
    if len(used) > BLOCK:
        raise InputError(f"{len(used):,} sources with a weight", remedy=f"mix at most {BLOCK:,}")
    if not used:
        raise InputError("every weight is 0", remedy="give at least one source a weight")
    return used


def _apportioned(weights: list[float]) -> Integers:
    """Slots of a block by largest remainder, at least one each."""
    scaled = np.array(weights, dtype=np.float64) / max(weights)
    exact = scaled / scaled.sum() * BLOCK
    counts: Integers = np.maximum(np.floor(exact), 1).astype(np.int64)
    while (missing := BLOCK - int(counts.sum())) != 0:
        gap = exact - counts
        index = int(np.argmax(gap)) if missing > 0 else int(np.argmin(np.where(counts > 1, gap, np.inf)))
        counts[index] += 1 if missing > 0 else -1
    return counts


def _stream(corpus: Corpus, split: Split, name: str, context: int) -> TokenStream:
    stream = corpus.stream(split, name)
    if len(stream) <= context:
        raise InputError(
            f"source {name!r} holds {len(stream):,} {split} tokens, a sequence needs {context + 1:,}",
            remedy="shorten the context, give the source more text, or leave it out of the weights",
        )
    return stream


def _ring(stream: TokenStream, first: int, count: int) -> Tokens:
    """Tokens of a stream that goes on at its beginning."""
    before_end = min(count, len(stream) - first)
    if before_end == count:
        return stream.take(first, count)
    return np.concatenate([stream.take(first, before_end), stream.take(0, count - before_end)])
