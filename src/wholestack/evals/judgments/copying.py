"""Reviewers who do not vote by themselves: pairs that agree more often than their own tables explain.

If two reviewers vote independently given the truth, they agree on item ``i`` with probability

    sum_k q_ik sum_l table_r[k, l] table_s[k, l]

where ``q_i`` is what all *others* say of the item. Real reviewers agree a little more than that everywhere, because
some items are hard for all; the excess of the nine tenths of pairs that agree least is taken as usual. What is left is
tested by the binomial tail at the mean probability (not smaller than the exact tail, Hoeffding 1956, Annals of
Mathematical Statistics 27:713), with the false-discovery rate kept, and a pair is named only if it also agrees on
:data:`LEAST_SHARE` of what independence would leave apart. Named pairs that touch are one group, and a group has one
vote an item, shared by its members.

Who copies from whom cannot be seen from votes, and people with the same teacher look the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import binom

from wholestack.evals.judgments.models.dawid_skene import Tables
from wholestack.evals.judgments.models.model import normalised, votes_by_table
from wholestack.evals.judgments.votes import Votes
from wholestack.evals.signal import benjamini_hochberg
from wholestack.evals.statistics import Floats, Ints

FALSE_RATE = 0.01
LEAST_SHARE = 0.3
USUAL = 0.9
LEAST_TOGETHER = 4
"""Items that two reviewers must have in common: with fewer no agreement is remarkable among many pairs."""
MOST_PAIRS = 20_000_000
"""Pairs of votes on the same item that are looked at; of items with many votes a drawn part, where there are more."""
_BLOCK = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Copying:
    """Who votes alike."""

    group: Ints
    """``[reviewers]``; equal numbers are one group, most are alone in theirs."""
    pairs: tuple[tuple[int, int], ...]
    """Reviewers that were named."""
    usual_excess: float
    """Share of what independence leaves apart on which ordinary pairs agree as well."""

    @property
    def is_alone(self) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """``[reviewers]``, who votes as nobody else does."""
        return np.asarray(np.bincount(self.group, minlength=len(self.group))[self.group] == 1)

    def members(self, reviewer: int) -> tuple[int, ...]:
        """The others of a reviewer's group."""
        return tuple(int(each) for each in np.flatnonzero(self.group == self.group[reviewer]) if each != reviewer)


def find_copying(votes: Votes, posterior: Floats, tables: Tables, weight: Floats, *, seed: int) -> Copying:
    """Look at every pair of reviewers with an item in common.

    Args:
        votes: As given.
        posterior: ``[items, labels]``
        tables: Of the reviewers, from the same inference.
        weight: ``[votes]``, with which it was made.
        seed: Of the draw from items with very many votes.
    """
    people = len(votes.reviewers)
    alone = Copying(group=np.arange(people), pairs=(), usual_excess=0.0)
    shared = _shared(votes, seed)
    if not len(shared.first):
        return alone
    one, other = shared.one, shared.other
    number = np.bincount(shared.pair).astype(np.float64)
    agreed = np.bincount(shared.pair, votes.label[shared.first] == votes.label[shared.second])
    expected = np.bincount(shared.pair, _chances(votes, posterior, tables, weight, shared))
    apart = np.maximum(number - expected, 1e-9)
    excess = agreed - expected
    standing = excess / np.sqrt(np.maximum(expected * apart / number, 1e-9))
    ordinary = standing <= np.quantile(standing, USUAL)
    usual = max(0.0, float(excess[ordinary].sum() / apart[ordinary].sum()))
    chance = np.minimum(1.0, (expected + usual * apart) / number)
    tail = np.asarray(binom.sf(agreed - 1, number, chance))
    named = benjamini_hochberg(tail, FALSE_RATE) & (agreed - chance * number >= LEAST_SHARE * (1 - chance) * number)
    named &= agreed > chance * number + 1  # where Hoeffding's bound holds
    edges = coo_array((np.ones(named.sum()), (one[named], other[named])), shape=(people, people))
    return Copying(
        group=connected_components(edges, directed=False)[1].astype(np.int64),
        pairs=tuple(zip(one[named].tolist(), other[named].tolist(), strict=True)),
        usual_excess=usual,
    )


def shared_weights(votes: Votes, group: Ints) -> Floats:
    """``[votes]``: the members of a group share one vote an item."""
    _, place, count = np.unique(
        votes.item * len(group) + group[votes.reviewer], return_inverse=True, return_counts=True
    )
    return np.asarray(1.0 / count[place])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """Pairs of votes on the same item, of pairs of reviewers who share enough items."""

    first: Ints
    """``[pairs of votes]``, one vote"""
    second: Ints
    """``[pairs of votes]``, the other"""
    pair: Ints
    """``[pairs of votes]``, whose they are: place in the two below"""
    one: Ints
    """``[pairs of reviewers]``, the one with the lower place"""
    other: Ints
    """``[pairs of reviewers]``"""


def _shared(votes: Votes, seed: int) -> _Shared:
    first, second = _together(votes, seed)
    people = len(votes.reviewers)
    low = np.minimum(votes.reviewer[first], votes.reviewer[second])
    key = low * people + np.maximum(votes.reviewer[first], votes.reviewer[second])
    often = _is_frequent(key, people**2)
    keys, pair = np.unique(key[often], return_inverse=True)
    return _Shared(first=first[often], second=second[often], pair=pair, one=keys // people, other=keys % people)


def _together(votes: Votes, seed: int) -> tuple[Ints, Ints]:
    """Pairs of votes on the same item, each once."""
    counts = votes.counts
    most = int(counts.max(initial=0))
    while most > 2 and int((np.minimum(counts, most) * (np.minimum(counts, most) - 1) // 2).sum()) > MOST_PAIRS:
        most = most * 9 // 10
    order = np.arange(len(votes))
    if most < counts.max(initial=0):
        order = np.lexsort((np.random.default_rng(seed).random(len(votes)), votes.item))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    found: list[tuple[Ints, Ints]] = []
    for size in np.unique(np.minimum(counts, most)):
        if size < 2:
            continue
        begin = starts[np.minimum(counts, most) == size]
        one, other = np.triu_indices(int(size), 1)
        found.append((order[(begin[:, None] + one).ravel()], order[(begin[:, None] + other).ravel()]))
    if not found:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found])


def _is_frequent(key: Ints, most: int) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Where a key, which is below ``most``, is one that occurs at least :data:`LEAST_TOGETHER` times."""
    if most <= 8 * MOST_PAIRS:
        return np.asarray(np.bincount(key)[key] >= LEAST_TOGETHER)
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(count[place] >= LEAST_TOGETHER)


def _chances(votes: Votes, posterior: Floats, tables: Tables, weight: Floats, shared: _Shared) -> Floats:
    """``[pairs of votes]``, the probability that independent votes would agree."""
    # With hardly a prior: two who always say the same one thing agree by that, and a prior would call it a surprise.
    cells = votes_by_table(votes, posterior) + tables.prior / tables.prior.sum(axis=1, keepdims=True)
    means = cells / cells.sum(axis=2, keepdims=True)
    logs, sure = tables.expected_logs, np.log(np.maximum(posterior, 1e-300))
    together = np.empty((len(shared.one), means.shape[1]))
    for part in _blocks(len(shared.one), means.shape[1] ** 2):
        together[part] = np.einsum("pkl,pkl->pk", means[shared.one[part]], means[shared.other[part]])
    chances = np.empty(len(shared.first))
    for part in _blocks(len(shared.first), means.shape[1]):
        left, right = shared.first[part], shared.second[part]
        rest = sure[votes.item[left]]
        for side in (left, right):
            rest = rest - weight[side, None] * logs[votes.reviewer[side], :, votes.label[side]]
        chances[part] = (normalised(rest) * together[shared.pair[part]]).sum(axis=1)
    return chances


def _blocks(count: int, width: int) -> Iterator[slice]:
    size = max(1, _BLOCK * 4 // width)
    return (slice(start, start + size) for start in range(0, count, size))
