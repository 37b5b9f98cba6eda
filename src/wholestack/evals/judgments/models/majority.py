"""The label that most reviewers gave; the posterior is the share of the votes."""

from dataclasses import dataclass

from wholestack.evals.judgments.models.model import Inference, tally
from wholestack.evals.judgments.votes import Votes
from wholestack.evals.statistics import Floats


@dataclass(frozen=True, slots=True)
class Majority:
    """See the module. The shares are what was said, no probability of being right."""

    name: str = "majority"
    weighs: bool = False

    def infer(self, votes: Votes, weight: Floats) -> Inference:
        """Of an item without votes every label is as likely."""
        counts = tally(votes, weight)
        total = counts.sum(axis=1, keepdims=True)
        posterior = (counts + (total == 0)) / (total + counts.shape[1] * (total == 0))
        return Inference(posterior=posterior, rounds=1, has_converged=True)
