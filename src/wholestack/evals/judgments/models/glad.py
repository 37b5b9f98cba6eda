"""GLAD (Whitehill et al. 2009, NIPS): reviewers are more or less able, items more or less easy.

A vote is right with probability ``s = sigmoid(ability_r * exp(ease_i))``, and each wrong label is as likely as the
others; abilities and eases have normal priors with mean and variance 1, and before any vote all labels are as likely,
as in the paper. EM, in which both are moved by
Newton steps in turn: given the eases every ability stands alone, and the other way round.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit

from wholestack.evals.judgments.models.model import Inference, normalised, tally
from wholestack.evals.judgments.votes import Votes
from wholestack.evals.statistics import Floats

MOST_ROUNDS = 200
TOLERANCE = 1e-3
STEPS = 2
"""Newton steps of each kind a round."""
LARGEST_STEP = 1.0


@dataclass(frozen=True, slots=True)
class Glad:
    """See the module."""

    name: str = "glad"
    weighs: bool = True

    def infer(self, votes: Votes, weight: Floats) -> Inference:
        """Starts from the majority, abilities and eases at their priors."""
        items, labels = len(votes.items), len(votes.labels)
        place = votes.item * labels + votes.label
        ability, ease = np.ones(len(votes.reviewers)), np.ones(items)
        posterior = tally(votes, weight) + 1e-6
        posterior /= posterior.sum(axis=1, keepdims=True)
        for number in range(1, MOST_ROUNDS + 1):
            right = posterior.ravel()[place]
            for _ in range(STEPS):
                ability, ease = _moved(votes, weight, right, ability, ease)
            product = ability[votes.reviewer] * np.exp(ease)[votes.item]
            wrong = log_expit(-product) - np.log(max(1, labels - 1))
            scores: Floats = np.zeros(items * labels)
            scores += np.bincount(place, weight * (log_expit(product) - wrong), minlength=items * labels)
            before, posterior = posterior, normalised(scores.reshape(items, labels))
            if np.abs(posterior - before).max() < TOLERANCE:
                return Inference(posterior=posterior, rounds=number, has_converged=True)
        return Inference(posterior=posterior, rounds=MOST_ROUNDS, has_converged=False)


def _moved(votes: Votes, weight: Floats, right: Floats, ability: Floats, ease: Floats) -> tuple[Floats, Floats]:
    """One Newton step of all abilities, then one of all eases (by the expected curvature, which is above nought)."""
    scale = np.exp(ease)[votes.item]
    sure = expit(ability[votes.reviewer] * scale)
    slope = np.bincount(votes.reviewer, weight * (right - sure) * scale, minlength=len(ability)) - (ability - 1.0)
    bend = np.bincount(votes.reviewer, weight * sure * (1 - sure) * scale**2, minlength=len(ability)) + 1.0
    ability = ability + np.clip(slope / bend, -LARGEST_STEP, LARGEST_STEP)
    product = ability[votes.reviewer] * scale
    sure = expit(product)
    slope = np.bincount(votes.item, weight * (right - sure) * product, minlength=len(ease)) - (ease - 1.0)
    bend = np.bincount(votes.item, weight * sure * (1 - sure) * product**2, minlength=len(ease)) + 1.0
    return ability, ease + np.clip(slope / bend, -LARGEST_STEP, LARGEST_STEP)
