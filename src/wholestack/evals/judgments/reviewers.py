"""What each reviewer is worth: how often right, how much a vote tells, and whether they look at the items at all.

Every vote is compared with what the *others* say of its item, so nobody is confirmed by their own vote. Two accounts of
a reviewer's votes are weighed: one table row for each true label (they look; as the others do, or in any other way), or
one row for all (they do not). The marginal likelihood of Dirichlet-multinomial counts gives the odds, and a reviewer is
named only at odds of :data:`ODDS` to one. Somebody who looks and is right less often than their answers would be by
chance is an adversary: their votes are worth as much as others', the other way round.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import gammaln
from scipy.stats import beta

from wholestack.evals.judgments.copying import Copying
from wholestack.evals.judgments.models.dawid_skene import Tables
from wholestack.evals.judgments.models.model import normalised
from wholestack.evals.judgments.votes import Votes
from wholestack.evals.statistics import Floats, Interval
from wholestack.record import Record

Standing = Literal["sound", "spammer", "adversary", "copies", "unknown"]
STANDINGS: tuple[Standing, ...] = ("spammer", "adversary", "copies", "unknown", "sound")
ODDS = 100.0
LOG_ODDS = math.log(ODDS)
LEVEL = 0.95
_BLOCK = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewer(Record):
    """One reviewer."""

    SCHEMA: ClassVar[str] = "reviewer/1"

    standing: Standing
    """``spammer``: answers without looking; ``adversary``: looks and says something else; ``copies``: votes as others
    do, right or wrong; ``unknown``: too few votes to tell; else ``sound``."""
    votes: int
    accuracy: float
    """Expected share of right votes, by what the others say."""
    interval: Interval
    """Of the accuracy (Jeffreys)."""
    information_bits: float
    """What one vote of theirs tells about an item of which nothing is known."""
    confusion: dict[str, dict[str, float]]
    """For each true label, how often they say which."""
    copies_with: tuple[str, ...]


def reviewers_of(
    votes: Votes, posterior: Floats, tables: Tables, weight: Floats, copying: Copying
) -> dict[str, Reviewer]:
    """All of them by name, in the order of their first vote.

    Args:
        votes: As given.
        posterior: ``[items, labels]``
        tables: From the same inference.
        weight: ``[votes]``, with which it was made.
        copying: Groups.
    """
    counts = counts_by_others(votes, posterior, tables, weight)
    odds = log_odds(counts, tables.prior)
    shares = tables.classes / tables.classes.sum()
    said = counts.sum(axis=1)
    number = np.bincount(votes.reviewer, minlength=len(votes.reviewers))
    right = np.einsum("rkk->r", counts)
    totals = np.maximum(said.sum(axis=1), 1e-12)
    by_chance = ((counts.sum(axis=2) / totals[:, None]) * (said / totals[:, None])).sum(axis=1)
    low, high = beta.interval(LEVEL, right + 0.5, np.maximum(totals - right, 0.0) + 0.5)
    cells = counts + tables.prior
    means = cells / cells.sum(axis=2, keepdims=True)
    information = _information_bits(means, shares)
    found: dict[str, Reviewer] = {}
    for place, name in enumerate(votes.reviewers):
        others = copying.members(place)
        standing: Standing = "unknown"
        if others:
            standing = "copies"
        elif odds[place] < -LOG_ODDS:
            standing = "spammer"
        elif odds[place] > LOG_ODDS:
            standing = "adversary" if high[place] < by_chance[place] else "sound"
        found[name] = Reviewer(
            standing=standing,
            votes=int(number[place]),
            accuracy=float(right[place] / totals[place]),
            interval=Interval(low=float(low[place]), high=float(high[place]), level=LEVEL),
            information_bits=float(information[place]),
            confusion={
                truth: dict(zip(votes.labels, map(float, row), strict=True))
                for truth, row in zip(votes.labels, means[place], strict=True)
            },
            copies_with=tuple(votes.reviewers[each] for each in others),
        )
    return found


def log_odds(counts: Floats, prior: Floats) -> Floats:
    """``[reviewers]``, logarithm of the odds that their answers depend on the items: ``counts`` are those by others."""
    as_others = _log_marginal(counts, prior).sum(axis=1)
    otherwise = _log_marginal(counts, np.ones_like(prior)).sum(axis=1)
    said = counts.sum(axis=1)
    looks = np.logaddexp(as_others, otherwise) - math.log(2)
    return np.asarray(looks - _log_marginal(said, np.ones(said.shape[1])))


def counts_by_others(votes: Votes, posterior: Floats, tables: Tables, weight: Floats) -> Floats:
    """``[reviewers, truth, said]``: votes, each shared out by what the others say of its item."""
    people, labels = len(votes.reviewers), len(votes.labels)
    logs, sure = tables.expected_logs, np.log(np.maximum(posterior, 1e-300))
    counts = np.zeros((labels, people * labels))
    for start in range(0, len(votes), _BLOCK):
        part = slice(start, start + _BLOCK)
        who, label = votes.reviewer[part], votes.label[part]
        others = normalised(sure[votes.item[part]] - weight[part, None] * logs[who, :, label])
        for truth in range(labels):
            counts[truth] += np.bincount(who * labels + label, others[:, truth], minlength=people * labels)
    return counts.reshape(labels, people, labels).transpose(1, 0, 2)


def _log_marginal(counts: Floats, prior: Floats) -> Floats:
    """Of counts under a Dirichlet-multinomial, along the last axis (without the coefficient, which is common)."""
    total, weight = counts.sum(axis=-1), prior.sum(axis=-1)
    each = (gammaln(counts + prior) - gammaln(prior)).sum(axis=-1)
    return np.asarray(gammaln(weight) - gammaln(total + weight) + each)


def _information_bits(tables: Floats, shares: Floats) -> Floats:
    """``[reviewers]``, mutual information of truth and answer."""
    said = np.einsum("k,rkl->rl", shares, tables)
    told = np.einsum("k,rkl,rkl->r", shares, tables, np.log2(tables))
    return np.asarray(told - (said * np.log2(said)).sum(axis=1))
