"""Section on baselines: random search at equal cost, a straight line, settings only scaled, a unigram model."""

import itertools
import math
from collections.abc import Sequence

from wholestack.experiments.records import Landing, TrialRecord
from wholestack.report import plots
from wholestack.report.evidence import Evidence
from wholestack.report.page import Markup, figure, join, not_reached, paragraph
from wholestack.report.quantities import flops, number, percent, printable
from wholestack.report.tables import Table, draw, folded
from wholestack.report.verdict import metric_label, target


def baselines(evidence: Evidence) -> Markup:
    """Random search at equal cost, a straight line, the settings only scaled, a unigram model."""
    parts = [_random_search(evidence), draw(_baseline_table(evidence))]
    return join(parts)


def best_so_far(trials: Sequence[TrialRecord], metric: str) -> list[tuple[float, float]]:
    """(training FLOPs spent so far, best metric so far); failed trials cost as well."""
    spent, best, path = 0.0, math.inf, []
    for trial in sorted(trials, key=lambda each: each.ended_at):
        spent += trial.cost_flops
        if trial.outcome == "ok" and metric in trial.metrics:
            best = min(best, trial.metrics[metric])
        if math.isfinite(best):
            path.append((spent, best))
    return path


def _random_search(evidence: Evidence) -> Markup:
    metric = evidence.metric
    ours = [each for each in evidence.trials if each.role == "search"]
    theirs = [each for each in evidence.trials if each.role == "random"]
    search, random = best_so_far(ours, metric), best_so_far(theirs, metric)
    if not search or not random:
        return not_reached("Random search or search has not completed a trial, so they cannot be compared.")
    limit = min(search[-1][0], random[-1][0])
    caption = (
        "Each step is a new best trial; the further left and the lower a line, the less was spent for the same result."
        " The dashed line is the cost at which both are compared. Failed trials are counted in the cost."
    )
    table = folded("The numbers", _steps_table(search, random, metric))
    pictured = plots.best_so_far(search, random, limit, metric_label(evidence))
    told = _compared(_value_at(search, limit), _value_at(random, limit), limit, metric)
    beaten = _beaten_told(within(ours, limit), within(theirs, limit), metric)
    return join([paragraph(told), paragraph(beaten), figure(pictured, caption, table)])


def within(trials: Sequence[TrialRecord], limit: float) -> list[TrialRecord]:
    """The first trials, in the order in which they ended, whose costs add up to no more than the limit."""
    ordered = sorted(trials, key=lambda each: each.ended_at)
    spent = itertools.accumulate(each.cost_flops for each in ordered)
    return [trial for trial, so_far in zip(ordered, spent, strict=True) if so_far <= limit * (1 + 1e-9)]


def beaten(trials: Sequence[TrialRecord], others: Sequence[TrialRecord], metric: str) -> int:
    """How many trials have a worse metric than some other trial that cost no more."""
    known = [each for each in others if metric in each.metrics]
    return sum(
        any(other.cost_flops <= each.cost_flops and other.metrics[metric] < each.metrics[metric] for other in known)
        for each in trials
        if metric in each.metrics
    )


def _beaten_told(ours: Sequence[TrialRecord], theirs: Sequence[TrialRecord], metric: str) -> str:
    done = [sum(metric in each.metrics for each in trials) for trials in (ours, theirs)]
    return (
        f"Among the trials up to that cost, {beaten(theirs, ours, metric)} of {done[1]} random ones were beaten by one"
        f" of the search that cost no more, and {beaten(ours, theirs, metric)} of {done[0]} of the search by a random"
        " one."
    )


def _value_at(path: Sequence[tuple[float, float]], spent: float) -> float | None:
    seen = [value for cost, value in path if cost <= spent * (1 + 1e-9)]
    return seen[-1] if seen else None


def _compared(ours: float | None, theirs: float | None, limit: float, metric: str) -> str:
    if ours is None or theirs is None:
        return f"After {flops(limit)} spent on each, one of them had no completed trial yet."
    gap = ours / theirs - 1
    word = "the same" if abs(gap) < 5e-4 else f"{percent(abs(gap), signed=False)} {'lower' if gap < 0 else 'higher'}"
    return (
        f"After {flops(limit)} spent on each, the best {printable(metric)} of random search was {number(theirs)} and"
        f" that of the search {number(ours)}, {word}."
    )


def _steps_table(search: Sequence[tuple[float, float]], random: Sequence[tuple[float, float]], metric: str) -> Table:
    rows = []
    for name, path in (("search", search), ("random search", random)):
        best = math.inf
        for spent, value in path:
            if value < best:
                rows.append((name, flops(spent), number(value)))
                best = value
    columns = ("by", "spent so far", f"best {printable(metric)}")
    return Table(caption="Every new best", columns=columns, rows=rows)


def _baseline_table(evidence: Evidence) -> Table:
    outcome, forecast = evidence.outcome, target(evidence)
    actual = outcome.actual if outcome else None
    rows = [_predicted_row("law (ours)", forecast.value if forecast else None, actual)]
    straight = outcome.straight_line if outcome else (evidence.laws.straight if evidence.laws else None)
    rows.append(_predicted_row("straight line in log-log", straight.value if straight else None, actual))
    rows.append(_scaled_row(outcome.scaled if outcome else None, actual))
    rows.append(_unigram_row(evidence, actual))
    columns = ("baseline", "value", "large run", "what it says")
    return Table(caption=f"Baselines beside the large run, {metric_label(evidence)}", columns=columns, rows=rows)


def _predicted_row(name: str, predicted: float | None, actual: float | None) -> tuple[str, ...]:
    if predicted is None:
        return f"prediction by {name}", "–", _or_dash(actual), "no prediction"
    told = "no actual value yet" if actual is None else f"the large run came out {_apart(actual / predicted - 1)} it"
    return f"prediction by {name}", number(predicted), _or_dash(actual), told


def _scaled_row(scaled: Landing | None, actual: float | None) -> tuple[str, ...]:
    name = "best small trial, only size and tokens scaled"
    if scaled is None or scaled.actual is None:
        return name, "–", _or_dash(actual), "not trained"
    told = "–" if actual is None else f"the large run came out {_apart(actual / scaled.actual - 1)} it"
    return name, number(scaled.actual), _or_dash(actual), told


def _unigram_row(evidence: Evidence, actual: float | None) -> tuple[str, ...]:
    name = "unigram model of the training tokens"
    if evidence.unigram_bpb is None:
        return name, "–", _or_dash(actual), "not computed"
    return name, number(evidence.unigram_bpb), _or_dash(actual), "a model that has learnt nothing of order lies here"


def _apart(gap: float) -> str:
    return f"{percent(abs(gap), signed=False)} {'above' if gap > 0 else 'below'}"


def _or_dash(value: float | None) -> str:
    return "–" if value is None else number(value)
