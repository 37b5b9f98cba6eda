"""Dawid and Skene (1979, Applied Statistics 28:20): every reviewer has a table of what they say of each true label.

The tables are held as Dirichlet distributions and averaged over in place of one best table each (variational Bayes;
Kim and Ghahramani 2012, AISTATS, "Bayesian classifier combination"), since a best table from few votes claims more
than it knows: its posteriors are too sure. The prior of a row is the mean accuracy of all reviewers, learnt from the
votes, with all wrong labels alike, at the weight of :data:`PRIOR_VOTES` votes for each of its cells and labels. A mean
table in place of the mean accuracy would feed on itself where votes are few, and end in one label for everything.

    q(k | i)     proportional to  exp( E[log p_k] + sum_v weight_v E[log table_r[k, l]] )
    table_r[k]   Dirichlet( prior[k] + sum_v weight_v q(k | i) [l] )
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma

from wholestack.evals.judgments.models.model import Inference, incidence, normalised, tally
from wholestack.evals.judgments.votes import Votes
from wholestack.evals.statistics import Floats

PRIOR_VOTES = 0.5
"""A row of the prior weighs so many votes times the square of the number of labels."""
MOST_ROUNDS = 500
TOLERANCE = 1e-4
"""No probability moves by more in a round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What is believed of the reviewers: Dirichlet parameters, each a count with a prior."""

    counts: Floats
    """``[reviewers, truth, said]``, votes, each shared out by what its item may be."""
    prior: Floats
    """``[truth, said]``"""
    classes: Floats
    """``[truth]``, with its prior."""

    @property
    def cells(self) -> Floats:
        """``[reviewers, truth, said]``, counts with their prior."""
        return self.counts + self.prior

    @property
    def expected_logs(self) -> Floats:
        """``[reviewers, truth, said]``, expected logarithm of each probability."""
        cells = self.cells
        return np.asarray(digamma(cells) - digamma(cells.sum(axis=2, keepdims=True)))

    @property
    def means(self) -> Floats:
        """``[reviewers, truth, said]``, expected probabilities; rows sum to 1."""
        cells = self.cells
        return np.asarray(cells / cells.sum(axis=2, keepdims=True))

    @property
    def class_logs(self) -> Floats:
        """``[truth]``, expected logarithm of the share of each label."""
        return np.asarray(digamma(self.classes) - digamma(self.classes.sum()))


def tables_of(counts: Floats, posterior: Floats) -> Tables:
    """What follows from ``counts[reviewers, truth, said]`` and ``posterior[items, truth]``."""
    labels = counts.shape[1]
    pooled = counts.sum(axis=0) + 1.0
    right = float(np.trace(pooled) / pooled.sum())
    prior = np.full((labels, labels), (1 - right) / max(1, labels - 1))
    np.fill_diagonal(prior, right if labels > 1 else 1.0)
    return Tables(counts=counts, prior=PRIOR_VOTES * labels**2 * prior, classes=posterior.sum(axis=0) + 1.0)


@dataclass(frozen=True, slots=True)
class DawidSkene:
    """See the module."""

    name: str = "dawid-skene"
    weighs: bool = True
    learns_classes: bool = True
    """Whether some labels may be rarer; without it all are as likely before any vote. Somebody who always says the same
    makes that label likelier, which makes them right: so it is left out until such people are known."""

    def infer(self, votes: Votes, weight: Floats) -> Inference:
        """Starts from the majority."""
        return self.infer_from(tally(votes, weight) + 1e-6, votes, weight)

    def infer_from(self, start: Floats, votes: Votes, weight: Floats) -> Inference:
        """Starts from shares ``[items, labels]`` above nought, such as another posterior."""
        people, labels = len(votes.reviewers), len(votes.labels)
        by_vote = incidence(votes, weight)
        by_reviewer = by_vote.T.tocsr()
        posterior = start / start.sum(axis=1, keepdims=True)
        for number in range(1, MOST_ROUNDS + 1):
            counts = (by_reviewer @ posterior).reshape(people, labels, labels).transpose(0, 2, 1)
            tables = tables_of(counts, posterior)
            logs = tables.expected_logs.transpose(0, 2, 1).reshape(people * labels, labels)
            scores = by_vote @ logs + (tables.class_logs if self.learns_classes else 0.0)
            before, posterior = posterior, normalised(scores)
            if np.abs(posterior - before).max() < TOLERANCE:
                return Inference(posterior=posterior, rounds=number, has_converged=True)
        return Inference(posterior=posterior, rounds=MOST_ROUNDS, has_converged=False)
