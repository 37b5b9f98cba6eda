"""From votes to judgments: each item's label with its probability, each reviewer's worth, and what stands in doubt."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wholestack.errors import InputError
from wholestack.evals.judgments.copying import Copying, find_copying, shared_weights
from wholestack.evals.judgments.models.dawid_skene import DawidSkene, Tables, tables_of
from wholestack.evals.judgments.models.model import Inference, ReviewerModel, tally, votes_by_table
from wholestack.evals.judgments.reviewers import LOG_ODDS, Reviewer, counts_by_others, log_odds, reviewers_of
from wholestack.evals.judgments.votes import Votes
from wholestack.evals.statistics import Floats, expected_calibration_error
from wholestack.finding import Finding, exit_code, finding
from wholestack.record import Record

TIE = 1e-9
"""Probabilities that differ by less are equal."""
MOST_TURNS = 6
LEAST = 1e-6
HARDLY = 1e-3
"""What a vote weighs that does not depend on its item."""
MOST_CELLS = 50_000_000
"""Numbers of all reviewers' tables together."""
REVIEWER = "judgments.reviewer"
ONE_LABEL = "there is only one label: agreement says nothing of whether it is right"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Record):
    """One item."""

    label: str | None
    """The most probable label; of a tie one that was drawn; ``None`` if nobody judged the item."""
    posterior: dict[str, float]
    """Probability of each label to be the right one; empty if nobody judged the item."""
    tie: bool
    tied: tuple[str, ...]
    """The labels of the tie."""
    votes: int


UNJUDGED = Judged(label=None, posterior={}, tie=False, tied=(), votes=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth(Record):
    """Comparison with labels that are known."""

    items: int
    """With a known label and a vote."""
    accuracy: float
    """A tie counts for its share."""
    calibration_error: float
    """Expected calibration error in ten bins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgments(Record):
    """What votes come to."""

    SCHEMA: ClassVar[str] = "judgments/1"

    model: str
    seed: int
    labels: tuple[str, ...]
    items: dict[str, Judged]
    reviewers: dict[str, Reviewer]
    votes: int
    ignored: dict[str, int]
    rounds: int
    has_converged: bool
    usual_excess: float
    """Share of what independence leaves apart on which ordinary pairs of reviewers agree as well."""
    truth: Truth | None = None

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Items without a vote."""
        return tuple(name for name, each in self.items.items() if not each.votes)

    @property
    def findings(self) -> list[Finding]:
        """Reviewers who are not sound, and what could not be told."""
        found = [_of_reviewer(name, each) for name, each in self.reviewers.items() if each.standing != "sound"]
        if len(self.labels) == 1:
            found.append(_unknown("votes", "judgments.labels", ONE_LABEL, "name the others with --labels"))
        if not self.has_converged:
            found.append(
                _unknown("votes", "judgments.rounds", f"still moving after {self.rounds} rounds", "collect more votes")
            )
        if self.unjudged:
            evidence = f"{len(self.unjudged):,} of {len(self.items):,} items have no vote"
            found.append(_unknown("items", "judgments.coverage", evidence, "have them judged"))
        return found

    @property
    def exit_code(self) -> int:
        """As of findings, where reviewers of whom too little is known count for nothing."""
        return exit_code(
            each for each in self.findings if each.check != "judgments.reviewer" or each.status != "unknown"
        )


def aggregate(votes: Votes, model: ReviewerModel, *, seed: int = 0, truth: dict[str, str] | None = None) -> Judgments:
    """Infer, find who copies and who does not look, infer again with them apart, until they stay the same.

    Args:
        votes: At least one.
        model: How.
        seed: Of drawn labels where there is a tie.
        truth: Known labels by item.

    Raises:
        InputError: the tables of so many reviewers and labels do not fit, or no item has a known label.
    """
    apart = infer_apart(votes, model, seed=seed)
    posterior = apart.inference.posterior
    is_best = posterior >= posterior.max(axis=1, keepdims=True) - TIE
    drawn = np.argmax(np.where(is_best, np.random.default_rng(seed).random(posterior.shape), -1.0), axis=1)
    tied = {
        int(place): tuple(votes.labels[each] for each in np.flatnonzero(is_best[place]))
        for place in np.flatnonzero(is_best.sum(axis=1) > 1)
    }
    rows = zip(votes.items, votes.counts.tolist(), drawn.tolist(), posterior.tolist(), strict=True)
    items = {
        name: Judged(
            label=votes.labels[best],
            posterior=dict(zip(votes.labels, row, strict=True)),
            tie=place in tied,
            tied=tied.get(place, ()),
            votes=count,
        )
        if count
        else UNJUDGED
        for place, (name, count, best, row) in enumerate(rows)
    }
    return Judgments(
        model=model.name,
        seed=seed,
        labels=votes.labels,
        items=items,
        reviewers=reviewers_of(votes, posterior, apart.tables, apart.weight, apart.copying),
        votes=len(votes),
        ignored=votes.ignored,
        rounds=apart.inference.rounds,
        has_converged=apart.inference.has_converged,
        usual_excess=apart.copying.usual_excess,
        truth=_against(votes, posterior, is_best, truth) if truth is not None else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """An inference in which those who copy share a vote and those who do not look have hardly one."""

    inference: Inference
    tables: Tables
    """What it says of the reviewers."""
    weight: Floats
    """``[votes]``"""
    copying: Copying


def infer_apart(votes: Votes, model: ReviewerModel, *, seed: int) -> Apart:
    """Find who copies and who does not look, by the tables of Dawid and Skene whatever the model is, then infer.

    Simpler models would take common habits for copying: where all take one duck for another, they agree.

    Raises:
        InputError: the tables of so many reviewers and labels do not fit.
    """
    cells = len(votes.reviewers) * len(votes.labels) ** 2
    if cells > MOST_CELLS:
        raise InputError(
            f"{len(votes.reviewers):,} reviewers with {len(votes.labels):,} labels: their tables do not fit"
            f" ({MOST_CELLS:,} numbers do, these are {cells:,})",
            remedy="put labels together, or give parts of the votes",
        )
    looking, weight = DawidSkene(learns_classes=False), np.ones(len(votes))
    start = tally(votes, weight) + LEAST
    for _ in range(MOST_TURNS):
        inference = looking.infer_from(start, votes, weight)
        tables = tables_of(votes_by_table(votes, inference.posterior, weight), inference.posterior)
        copying = find_copying(votes, inference.posterior, tables, weight, seed=seed)
        odds = log_odds(counts_by_others(votes, inference.posterior, tables, weight), tables.prior)
        voice = np.where((odds < -LOG_ODDS) & copying.is_alone, HARDLY, 1.0)
        before, weight = weight, shared_weights(votes, copying.group) * voice[votes.reviewer]
        if np.array_equal(before, weight) and looking.learns_classes:
            break
        looking, start = DawidSkene(), inference.posterior + LEAST
    if model.name != looking.name:
        weight = weight if model.weighs else np.ones(len(votes))
        inference = model.infer(votes, weight)
        tables = tables_of(votes_by_table(votes, inference.posterior, weight), inference.posterior)
    return Apart(inference=inference, tables=tables, weight=weight, copying=copying)


def _against(
    votes: Votes, posterior: Floats, is_best: "np.ndarray[tuple[int, int], np.dtype[np.bool_]]", truth: dict[str, str]
) -> Truth:
    place_of = {label: place for place, label in enumerate(votes.labels)}
    known = [
        (place, place_of.get(truth[name], -1))
        for place, (name, count) in enumerate(zip(votes.items, votes.counts, strict=True))
        if count and name in truth
    ]
    if not known:
        raise InputError("no item of the votes has a known label", remedy="compare the names of the items")
    places, right = np.array(known).T
    shares = is_best[places] / is_best[places].sum(axis=1, keepdims=True)
    correct = np.where(right >= 0, shares[np.arange(len(places)), right], 0.0)
    error = expected_calibration_error(posterior[places].max(axis=1), correct)
    return Truth(items=len(places), accuracy=float(correct.mean()), calibration_error=error)


_REMEDIES = {
    "spammer": "leave them out, or talk to them: their answers do not depend on the items",
    "adversary": "talk to them: have they mistaken the labels for one another?",
    "copies": "have them judge apart; together they have one vote",
    "unknown": "let them judge more items",
}


def _of_reviewer(name: str, each: Reviewer) -> Finding:
    low, high = each.interval.low, each.interval.high
    evidence = [f"{each.votes:,} votes, {each.accuracy:.0%} right by what the others say ({low:.0%} to {high:.0%})"]
    if each.copies_with:
        shown = ", ".join(each.copies_with[:10]) + (" ..." if len(each.copies_with) > 10 else "")
        evidence.append(f"votes as {shown}")
    return finding(
        name,
        REVIEWER,
        "unknown" if each.standing == "unknown" else "warn",
        evidence=evidence,
        cause=each.standing,
        owner="whoever runs the review",
        remedy=_REMEDIES[each.standing],
    )


def _unknown(subject: str, check: str, evidence: str, remedy: str) -> Finding:
    return finding(
        subject, check, "unknown", evidence=[evidence], cause=evidence.split(":", maxsplit=1)[0], remedy=remedy
    )
