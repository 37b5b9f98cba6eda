"""What a model of reviewers is given and what it gives.

Notation: item ``i``, reviewer ``r``, label ``l``, truth ``k``; ``posterior[i, k]`` is the probability that ``k`` is the
true label of item ``i``; ``weight[v]`` how much of a vote a vote is (1 unless its reviewer copies from
others or does not look).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from wholestack.evals.judgments.votes import Votes
from wholestack.evals.statistics import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """What a model makes of votes."""

    posterior: Floats
    """``[items, labels]``, rows sum to 1; of an item without votes what is known of all items."""
    rounds: int
    """Until it no longer moved."""
    has_converged: bool


class ReviewerModel(Protocol):
    """One way to infer the truth; has no state."""

    @property
    def name(self) -> str:
        """As the command line has it."""

    @property
    def weighs(self) -> bool:
        """Whether votes of those who copy or do not look are to weigh less; else each is one vote."""

    def infer(self, votes: Votes, weight: Floats) -> Inference:
        """The posterior.

        Args:
            votes: At least one.
            weight: ``[votes]``, above 0, at most 1.
        """


def tally(votes: Votes, weight: Floats) -> Floats:
    """``[items, labels]``, the weight of the votes for each label."""
    items, labels = len(votes.items), len(votes.labels)
    counts: Floats = np.bincount(votes.item * labels + votes.label, weight, minlength=items * labels).astype(np.float64)
    return counts.reshape(items, labels)


def incidence(votes: Votes, weight: Floats) -> sp.csr_array:
    """``[items, reviewers * labels]``, the weight of each vote: products with it are the sums of both steps of EM."""
    column: Ints = votes.reviewer * len(votes.labels) + votes.label
    shape = (len(votes.items), len(votes.reviewers) * len(votes.labels))
    return sp.csr_array((weight, (votes.item, column)), shape=shape)


def votes_by_table(votes: Votes, posterior: Floats, weight: Floats | None = None) -> Floats:
    """``[reviewers, truth, said]``, votes, each shared out by what its item may be."""
    people, labels = len(votes.reviewers), len(votes.labels)
    by_vote = incidence(votes, np.ones(len(votes)) if weight is None else weight)
    return np.asarray((by_vote.T.tocsr() @ posterior).reshape(people, labels, labels).transpose(0, 2, 1))


def normalised(scores: Floats) -> Floats:
    """Probabilities, rows of ``exp(scores)`` that sum to 1."""
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
