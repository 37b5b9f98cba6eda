"""Which documents are near-duplicates of each other, as clusters that a split may not cut.

Definition. A document is the set of its *shingles*: every run of five consecutive words, a word being a run of
ASCII letters (folded to lower case), digits and two-byte characters, or one single character of three or four
bytes (scripts that do not put spaces between words). A document of fewer words is one shingle. Two documents are
near-duplicates when they share at least half of the shingles of the smaller one. Containment is used and not
Jaccard similarity, for a chapter that is repeated inside a larger document must not straddle the split either.

Guarantee. Up to ``limit`` shingles (8 million, about 60 MB of text) the shingle sets are complete, and every pair
that meets the definition is found (64-bit hashes: a wrong match has a chance of about 1e-6 in all), as long as a
shared shingle lies in at most 32 documents. A shingle that lies in more is counted between each of its documents
and its first eight only, so the count is then a lower bound: pairs can be missed, never invented. Above the
limit only shingles whose hash ends in j zero bits are kept (modulo sampling, Broder 1997), j as small as
memory allows: containment is then estimated, and small documents near the threshold can be missed.

Rough recall of edits: replacing a share r of the words at random leaves (1 - r)^5 of the shingles, so r up to
0.13 is found.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

WORDS_A_SHINGLE = 5
THRESHOLD = 0.5
LIMIT_SHINGLES = 8_000_000
COMMON_DOCUMENTS = 32
HUBS = 8
_BLOCK_BYTES = 1 << 16  # what fits into a processor's cache, in arrays of eight times its size

_BYTES = np.arange(256)
_IS_WORD = (
    ((_BYTES >= 48) & (_BYTES < 58))
    | ((_BYTES >= 65) & (_BYTES < 91))
    | ((_BYTES >= 97) & (_BYTES < 123))
    | (_BYTES >= 128)
)
_LOWER = np.where((_BYTES >= 65) & (_BYTES < 91), _BYTES + 32, _BYTES).astype(np.uint64) + np.uint64(1)


def _powers(base: int, count: int) -> Hashes:
    return np.array([pow(base, exponent, 1 << 64) for exponent in range(count)], dtype=np.uint64)


_LETTER_POWERS = _powers(0x9E3779B97F4A7C15, 256)
_WORD_POWERS = _powers(0xD1342543DE82EF95, WORDS_A_SHINGLE)


def mix(values: Hashes) -> Hashes:
    """Spread 64-bit values evenly (the finaliser of splitmix64, Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def word_hashes(data: bytes) -> Hashes:
    """One 64-bit hash a word, in order."""
    return words_with_starts(data)[0]


def words_with_starts(data: bytes) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """One 64-bit hash a word, in order, and the byte with which it begins."""
    if len(data) <= _BLOCK_BYTES:
        return _words_of_block(data)
    parts, begin = [], 0
    while begin < len(data):
        end = begin + _BLOCK_BYTES
        if end < len(data):
            # Behind a line or space, so that no word is cut; a word of more than a block stays whole.
            cut = max(data.rfind(b"\n", begin, end), data.rfind(b" ", begin, end))
            end = cut + 1 if cut >= begin else _next_gap(data, end)
        hashes, starts = _words_of_block(data[begin:end])
        parts.append((hashes, starts + begin))
        begin = end
    return np.concatenate([each for each, _ in parts]), np.concatenate([each for _, each in parts])


def _next_gap(data: bytes, place: int) -> int:
    found = [at for gap in (b"\n", b" ") if (at := data.find(gap, place)) >= 0]
    return min(found) + 1 if found else len(data)


def _words_of_block(data: bytes) -> tuple[Hashes, npt.NDArray[np.int64]]:
    codes = np.frombuffer(data, dtype=np.uint8)
    is_word = _IS_WORD[codes]
    is_start = is_word.copy()
    is_start[1:] &= ~is_word[:-1] | (codes[1:] >= 0xE0)
    letters = np.flatnonzero(is_word)
    first = np.flatnonzero(is_start[letters])
    if not len(first):
        return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    start_of = np.repeat(letters[first], np.diff(np.append(first, len(letters))))
    terms = _LOWER[codes[letters]] * _LETTER_POWERS[(letters - start_of) & 255]
    return mix(np.add.reduceat(terms, first)), letters[first]


def shingles(data: bytes) -> Hashes:
    """The sorted set of shingle hashes of a UTF-8 text; never empty."""
    words = word_hashes(data)
    if len(words) < WORDS_A_SHINGLE:
        whole = (words * _WORD_POWERS[: len(words)]).sum(dtype=np.uint64)
        return mix(np.array([whole + np.uint64(len(words))], dtype=np.uint64))
    return np.unique(runs(words))


def runs(words: Hashes) -> Hashes:
    """One hash for every run of five words, by its first word; none where there are fewer."""
    count = max(0, len(words) - WORDS_A_SHINGLE + 1)
    total = np.zeros(count, dtype=np.uint64)
    for place in range(WORDS_A_SHINGLE):
        total += words[place : place + count] * _WORD_POWERS[place]
    return mix(total)


class Sketches:
    """Shingle sets of a stream of documents, in bounded memory.

    Args:
        limit: Largest number of shingle hashes that are kept, 8 bytes each.
    """

    def __init__(self, limit: int = LIMIT_SHINGLES) -> None:
        self._limit = limit
        self._sets: list[Hashes] = []
        self._kept = 0
        self.zero_bits = 0

    def __len__(self) -> int:
        return len(self._sets)

    def add(self, data: bytes) -> None:
        """Take the next document, as UTF-8."""
        kept = self._sampled(shingles(data))
        self._sets.append(kept)
        self._kept += len(kept)
        while self._kept > self._limit and self._kept > 2 * len(self._sets):
            self.zero_bits += 1
            self._sets = [self._sampled(each) for each in self._sets]
            self._kept = sum(map(len, self._sets))

    def near_pairs(self) -> npt.NDArray[np.int64]:
        """Pairs of documents that share half of the smaller one, shape [pairs, 2]."""
        if not self._sets:
            return np.zeros((0, 2), dtype=np.int64)
        sizes = np.array([len(each) for each in self._sets], dtype=np.int64)
        documents = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        hashes = np.concatenate(self._sets)
        order = np.argsort(hashes, kind="stable")
        pairs = _pairs_within_groups(hashes[order], documents[order])
        keys, shared = np.unique(pairs[:, 0] * len(sizes) + pairs[:, 1], return_counts=True)
        left, right = np.divmod(keys, len(sizes))
        near = shared >= THRESHOLD * np.minimum(sizes[left], sizes[right])
        return np.stack([left[near], right[near]], axis=1)

    def _sampled(self, hashes: Hashes) -> Hashes:
        """A document always keeps its smallest sampled hash, so that none becomes invisible."""
        if not self.zero_bits:
            return hashes
        kept = hashes[(hashes & np.uint64((1 << self.zero_bits) - 1)) == 0]
        return kept if len(kept) else hashes[:1]


def _pairs_within_groups(hashes: Hashes, documents: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """All pairs of documents that hold the same hash; ``documents`` ascend within a group."""
    starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
    sizes = np.diff(np.append(starts, len(hashes)))
    found = [np.zeros((0, 2), dtype=np.int64)]
    for size in np.unique(sizes[sizes > 1]):
        members = documents[starts[sizes == size][:, None] + np.arange(size)].astype(np.int64)
        left, right = np.triu_indices(size, k=1)
        if size > COMMON_DOCUMENTS:
            left, right = left[left < HUBS], right[left < HUBS]
        found.append(np.stack([members[:, left].ravel(), members[:, right].ravel()], axis=1))
    return np.concatenate(found)


class UnionFind:
    """Disjoint sets of the numbers 0 to count - 1."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def find(self, item: int) -> int:
        """The smallest member of the item's set."""
        while self._parent[item] != item:
            self._parent[item] = self._parent[self._parent[item]]
            item = self._parent[item]
        return item

    def join(self, left: int, right: int) -> None:
        """Make one set of two."""
        low, high = sorted((self.find(left), self.find(right)))
        self._parent[high] = low


def clusters(count: int, pairs: Iterable[tuple[int, int]], groups: Sequence[Sequence[str]]) -> list[int]:
    """Label every document with the smallest document of its cluster.

    Args:
        count: Number of documents.
        pairs: Documents that belong together.
        groups: For each document the names of its groups; a common name joins.
    """
    sets = UnionFind(count)
    for left, right in pairs:
        sets.join(left, right)
    first_of: dict[str, int] = {}
    for document, names in enumerate(groups):
        for name in names:
            sets.join(first_of.setdefault(name, document), document)
    return [sets.find(document) for document in range(count)]
