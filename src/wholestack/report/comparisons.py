"""Sections that hold trials against each other: accuracy against answer loss, and the effect of the mixture.

Every sentence here is computed from the trials; where they are too few or too noisy to say something, it says so.
"""

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from scipy.stats import spearmanr

from wholestack.experiments.records import SMALL_ROLES, ForecastPoint, TrialRecord
from wholestack.report import plots
from wholestack.report.evidence import Evidence, read_text
from wholestack.report.page import Markup, figure, join, not_reached, paragraph
from wholestack.report.quantities import flops, number, plural, printable, unit_of
from wholestack.report.tables import Table, folded

LOSS = "answer_bpb"
ACCURACIES = ("accuracy", "accuracy_per_byte", "accuracy_raw")
"""Names under which an accuracy is looked for; the first that the trials have is shown, and named."""
PROSE = "prose_weight"
ITEMS = "items/items.jsonl"

_FEWEST = 8
_CLEAR = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCorrelation:
    """Spearman's rank correlation."""

    rho: float | None
    """Between -1 and 1, None when one side is constant or there are fewer than three pairs."""
    p: float | None
    """Two-sided probability of one so far from 0 without any connection."""

    def told(self) -> str:
        """``-0.91 (p = 1e-9)``, or that it cannot be computed."""
        if self.rho is None or self.p is None:
            return "not computable"
        return f"{self.rho:+.2f} (p {'< 0.001' if self.p < 1e-3 else f'= {self.p:.2g}'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Where accuracy leaves chance for good, going from bad to good answer loss."""

    trial: TrialRecord
    """First trial from which on all are more than two standard errors above chance."""
    earlier: int
    """Trials with a worse loss that were above chance all the same."""


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> RankCorrelation:
    """Spearman's rank correlation of two columns."""
    if len(left) < 3 or len(set(left)) < 2 or len(set(right)) < 2:
        return RankCorrelation(rho=None, p=None)
    result = spearmanr(left, right)
    return RankCorrelation(rho=float(result.statistic), p=float(result.pvalue))


def accuracy_against_loss(evidence: Evidence) -> Markup:
    """Which moves first, the answer loss or the accuracy?"""
    accuracy = accuracy_name(evidence.trials)
    trials = [
        each
        for each in evidence.trials
        if each.outcome == "ok" and each.role != "scaled" and LOSS in each.metrics and accuracy in each.metrics
    ]
    if len(trials) < 3:
        return not_reached("Fewer than three runs have both an answer loss and an accuracy.")
    chance = chance_accuracy(evidence)
    points = [
        plots.AccuracyPoint(
            loss=each.metrics[LOSS],
            accuracy=each.metrics[accuracy],
            loss_error=each.errors.get(LOSS, 0.0),
            accuracy_error=each.errors.get(accuracy, 0.0),
            role=each.role,
        )
        for each in trials
    ]
    caption = (
        "Each point is one run with the standard errors of both measures; runs get better to the right and upwards,"
        " and a run whose bar reaches the dashed line is not told apart from guessing by accuracy."
    )
    told = [paragraph(each) for each in (_departure_told(trials, accuracy, chance), _movement_told(trials, accuracy))]
    pictured = plots.accuracy(points, chance, unit_of(LOSS), name=accuracy)
    return join([*told, figure(pictured, caption, folded("The numbers", _accuracy_table(trials, accuracy)))])


def accuracy_name(trials: Sequence[TrialRecord]) -> str:
    """The first name of an accuracy that any trial has."""
    known = {name for trial in trials for name in trial.metrics}
    return next((name for name in ACCURACIES if name in known), ACCURACIES[0])


def chance_accuracy(evidence: Evidence) -> float | None:
    """Accuracy of guessing, from the number of choices of every item; None when the items cannot be read."""
    text, _ = read_text(evidence.folder, ITEMS)
    if not text:
        return None
    try:
        counts = [len(json.loads(line)["choices"]) for line in text.splitlines() if line.strip()]
    except (ValueError, KeyError, TypeError):
        return None
    return sum(1 / count for count in counts) / len(counts) if counts and min(counts) > 0 else None


def departure(trials: Sequence[TrialRecord], accuracy: str, chance: float) -> Departure | None:
    """The loss at which accuracy leaves chance by two standard errors and stays away from it."""
    ordered = sorted(trials, key=lambda each: -each.metrics[LOSS])
    above = [_is_above(each, accuracy, chance) for each in ordered]
    first = len(ordered)
    while first > 0 and above[first - 1]:
        first -= 1
    return Departure(trial=ordered[first], earlier=sum(above[:first])) if first < len(ordered) else None


def _is_above(trial: TrialRecord, accuracy: str, chance: float) -> bool:
    error = trial.errors.get(accuracy)
    return error is not None and trial.metrics[accuracy] - _CLEAR * error > chance


def _departure_told(trials: Sequence[TrialRecord], accuracy: str, chance: float | None) -> str:
    if chance is None:
        return "The items could not be read, so the accuracy of guessing is not known."
    left = departure(trials, accuracy, chance)
    above = sum(_is_above(each, accuracy, chance) for each in trials)
    if left is None:
        return (
            f"Accuracy has not left chance ({number(chance)}) for good: {above} of {len(trials)} runs are more than two"
            " standard errors above it, and the run with the best answer loss is not among them."
        )
    loss = number(left.trial.metrics[LOSS])
    early = f"; {plural(left.earlier, 'run')} with a worse loss did so too" if left.earlier else ""
    where = f"from an answer loss of {loss} {unit_of(LOSS)} down ({printable(left.trial.name)})"
    return f"Accuracy is more than two standard errors above chance ({number(chance)}) in every run {where}{early}."


def _movement_told(trials: Sequence[TrialRecord], accuracy: str) -> str:
    costs = [each.cost_flops for each in trials]
    by_loss = rank_correlation(costs, [each.metrics[LOSS] for each in trials]).told()
    by_accuracy = rank_correlation(costs, [each.metrics[accuracy] for each in trials]).told()
    ranks = f"Rank correlation with training FLOPs: answer loss {by_loss}, accuracy {by_accuracy}."
    if len(trials) < _FEWEST:
        return f"{ranks} With {len(trials)} runs that says little."
    moves = [_movement(trials, metric) for metric in (LOSS, accuracy)]
    if any(move is None for move in moves):
        return f"{ranks} Standard errors are missing, so it cannot be said which moves further beyond its noise."
    return (
        f"{ranks} From the cheapest quarter of the runs to the costliest the median answer loss moved by"
        f" {moves[0]:.1f} of its standard errors, the median accuracy by {moves[1]:.1f}."
    )


def _movement(trials: Sequence[TrialRecord], metric: str) -> float | None:
    """Distance between the medians of the cheapest and the costliest quarter, in standard errors of one run."""
    errors = [each.errors[metric] for each in trials if each.errors.get(metric, 0.0) > 0]
    if not errors:
        return None
    ordered = [each.metrics[metric] for each in sorted(trials, key=lambda each: each.cost_flops)]
    quarter = max(1, len(ordered) // 4)
    return abs(median(ordered[-quarter:]) - median(ordered[:quarter])) / median(errors)


def _accuracy_table(trials: Sequence[TrialRecord], accuracy: str) -> Table:
    rows = [
        (
            each.name,
            flops(each.cost_flops),
            number(each.metrics[LOSS]),
            _or_dash(each.errors.get(LOSS)),
            number(each.metrics[accuracy]),
            _or_dash(each.errors.get(accuracy)),
        )
        for each in sorted(trials, key=lambda each: -each.metrics[LOSS])
    ]
    columns = ("run", "cost", f"{LOSS} ({unit_of(LOSS)})", "standard error", accuracy, "standard error")
    return Table(caption="Runs by answer loss, worst first", columns=columns, rows=rows, source="trials.jsonl")


def mixture(evidence: Evidence) -> Markup:
    """Does the share of prose move the metric, once cost is accounted for?"""
    laws = evidence.laws
    weighed = [each for each in evidence.completed(*SMALL_ROLES) if isinstance(each.params.get(PROSE), int | float)]
    if not weighed:
        return not_reached(f"No completed trial has a setting named {PROSE}.")
    if laws is None or not laws.supported or len(laws.curve) < 2:
        return not_reached("Without a law of the metric there is nothing to measure the mixture's effect against.")
    points = [(_weight(each), 100 * residual(each, evidence.metric, laws.curve)) for each in weighed]
    caption = (
        "Each point is one trial: 0 % is the law of the best trials at the same cost, higher is worse where the metric"
        " is a loss; all other settings vary too, so only a trend over many points means something."
    )
    pictured = plots.residuals(points)
    return join(
        [paragraph(_mixture_told(points)), figure(pictured, caption, folded("The numbers", _mixture_table(points)))]
    )


def residual(trial: TrialRecord, metric: str, law: Sequence[ForecastPoint]) -> float:
    """metric / law - 1 at the trial's cost; the law is linear in log cost between its points, level beyond them."""
    return trial.metrics[metric] / _law_at(law, trial.cost_flops) - 1


def _weight(trial: TrialRecord) -> float:
    return float(trial.params[PROSE])


def _law_at(law: Sequence[ForecastPoint], cost: float) -> float:
    if cost <= law[0].cost_flops:
        return law[0].value
    for left, right in itertools.pairwise(law):
        if cost <= right.cost_flops:
            share = math.log(cost / left.cost_flops) / math.log(right.cost_flops / left.cost_flops)
            return left.value + share * (right.value - left.value)
    return law[-1].value


def _mixture_told(points: Sequence[tuple[float, float]]) -> str:
    link = rank_correlation([x for x, _ in points], [y for _, y in points])
    told = (
        f"Rank correlation of the distance from the law with the weight of prose: {link.told()}, {len(points)} trials."
    )
    if link.p is None or link.rho is None or len(points) < _FEWEST:
        return f"{told} Too few or too uniform to say anything."
    if link.p >= 0.05:
        return f"{told} These trials show no monotone effect of the mixture."
    return (
        f"{told} More prose went with a {'larger' if link.rho > 0 else 'smaller'} distance; other settings varied too."
    )


def _mixture_table(points: Sequence[tuple[float, float]]) -> Table:
    ordered = sorted(points)
    groups = min(5, len(ordered))
    rows = []
    for group in range(groups):
        part = ordered[group * len(ordered) // groups : (group + 1) * len(ordered) // groups]
        distances = sorted(y for _, y in part)
        rows.append(
            (
                f"{part[0][0]:.2f} to {part[-1][0]:.2f}",
                str(len(part)),
                f"{median(distances):+.1f} %",
                f"{distances[0]:+.1f} %",
                f"{distances[-1]:+.1f} %",
            )
        )
    columns = ("weight of prose", "trials", "median distance", "best", "worst")
    return Table(
        caption="Distance from the law, by weight of prose, in groups of equal size", columns=columns, rows=rows
    )


def _or_dash(value: float | None) -> str:
    return "–" if value is None else number(value)
