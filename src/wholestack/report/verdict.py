"""The verdict in one plain sentence, from the evidence alone; shared by the page and the terminal.

The tone is that of the landing: ``ok`` when the large run landed inside its interval and nothing that the landing rests
on broke or is unsettled: no claim but those on how fast it went, no Finding, no file. A slow machine changes no number,
so its claims stand in lines of their own. Anything that is not settled is never called good.
"""

from dataclasses import dataclass
from typing import Literal

from wholestack.experiments.claims import TO_PREDICT, metric_claim
from wholestack.experiments.records import SMALL_ROLES, ForecastPoint, Outcome, TrialRecord
from wholestack.experiments.stage import MACHINE_PACE
from wholestack.report.evidence import ClaimView, Evidence
from wholestack.report.quantities import flops, named, number, percent, plural, printable, unit_of, with_interval

Tone = Literal["ok", "warn", "fail", "unknown", "open"]

BROKEN = "✕ "
"""Begins a remark on claims that broke."""
_REFUSED = "no prediction: "
"""Begins the reason of an outcome whose points could not support a law."""
_LOWER_IS_BETTER = ("answer_bpb", "answer_nll", "choice_nll", "brier", "ece")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a rehearsal came to, in words."""

    tone: Tone
    """How it is to be shown."""
    sentence: str
    """The one plain sentence."""
    further: tuple[str, ...]
    """What has to be known beside it, one sentence each."""


def judge(evidence: Evidence) -> Verdict:
    """Put the run into one sentence."""
    tone, sentence = _outcome(evidence)
    further = [
        *_remedy(evidence),
        *_claims(evidence),
        *_findings(evidence),
        *_damage(evidence),
        *_decision(evidence),
    ]
    if tone == "ok":
        tone = _lowered(evidence)
    return Verdict(tone=tone, sentence=sentence, further=tuple(further))


def target(evidence: Evidence) -> ForecastPoint | None:
    """The prediction for the large run: as the outcome has it, else as the last laws have it."""
    outcome = evidence.outcome
    if outcome is not None:
        if outcome.predicted is None or outcome.interval is None:
            return None
        low, high = outcome.interval
        return ForecastPoint(cost_flops=outcome.target_cost_flops, value=outcome.predicted, low=low, high=high)
    return evidence.laws.target if evidence.laws is not None and evidence.laws.supported else None


def rung(evidence: Evidence) -> ForecastPoint | None:
    """The prediction for the rung: as it was sealed before the rung ran."""
    landing = evidence.outcome.rung if evidence.outcome else None
    if landing is not None and landing.predicted is not None and landing.interval is not None:
        low, high = landing.interval
        return ForecastPoint(cost_flops=landing.cost_flops, value=landing.predicted, low=low, high=high)
    laws = evidence.laws_search
    return laws.rung if laws is not None and laws.supported else None


def which_way(metric: str, relative_error: float) -> str:
    """``better`` or ``worse`` where the metric is a loss, else ``above`` or ``below``."""
    if metric.startswith(_LOWER_IS_BETTER):
        return "worse" if relative_error > 0 else "better"
    return "above" if relative_error > 0 else "below"


def _outcome(evidence: Evidence) -> tuple[Tone, str]:
    outcome = evidence.outcome
    if outcome is None:
        return "open", _unfinished(evidence)
    if outcome.predicted is None or outcome.interval is None:
        return "unknown", _refused(outcome)
    predicted = with_interval(outcome.predicted, *outcome.interval)
    if outcome.actual is None:
        return _no_actual(evidence, outcome, predicted)
    metric = evidence.metric
    unit = f" {unit_of(metric)}" if unit_of(metric) else ""
    actual = f"{number(outcome.actual)}{unit}"
    error = outcome.relative_error
    off = f"; it came out {_off(metric, error)}" if error is not None else ""
    if outcome.inside:
        return "ok", (
            f"The large run landed inside its predicted interval: {printable(metric)} was predicted at {predicted}"
            f" and came to {actual}{off.replace('; it came out', ',')}."
        )
    side = "above" if outcome.actual > outcome.interval[1] else "below"
    return "fail", (
        f"The large run missed its prediction: {printable(metric)} was predicted at {predicted} and came to {actual},"
        f" {side} the interval{off}."
    )


def _off(metric: str, error: float) -> str:
    if abs(error) < 5e-4:
        return "equal to the prediction to 0.1 %"
    way = which_way(metric, error)
    size = percent(abs(error), signed=False)
    return f"{size} {way} than predicted" if way in {"better", "worse"} else f"{size} {way} the prediction"


def _unfinished(evidence: Evidence) -> str:
    done = evidence.completed(*SMALL_ROLES)
    so_far = f"it is in the phase “{printable(evidence.phase)}”" if evidence.phase else "no phase has begun"
    return (
        f"This rehearsal has no result yet: {so_far}, {plural(len(done), 'trial')} completed."
        " It is still at work or was interrupted; nothing below is a verdict."
    )


def _refused(outcome: Outcome) -> str:
    if outcome.actual is None and outcome.reason and not outcome.reason.startswith(_REFUSED):
        reason = outcome.reason.removeprefix("the large run: ").removeprefix("not trained: ")
        return f"The large run was not trained, so no prediction of it was sealed: {_sentence(reason)}"
    trained = (
        f" A large run was trained all the same and came to {number(outcome.actual)}."
        if outcome.actual is not None
        else " No large run was completed."
    )
    reason = outcome.reason.removeprefix(_REFUSED) or "no reason is recorded"
    return f"No prediction was made: {_sentence(reason)}{trained}"


def _no_actual(evidence: Evidence, outcome: Outcome, predicted: str) -> tuple[Tone, str]:
    metric = printable(evidence.metric)
    large = evidence.last("large")
    if large is not None and large.outcome != "ok":
        return "fail", f"The large run failed ({_why(large)}), so its prediction of {metric}, {predicted}, is untested."
    if outcome.go is False:
        return "warn", (
            f"Stopped after the rung: {_sentence(outcome.reason)} The large run was not trained; its prediction of"
            f" {metric}, {predicted}, is untested."
        )
    return "unknown", f"The large run has no result, so its prediction of {metric}, {predicted}, is untested."


def _why(trial: TrialRecord) -> str:
    kind = trial.outcome.replace("_", " ")
    return f"{kind}: {printable(trial.detail, limit=200)}" if trial.detail else kind


def _decision(evidence: Evidence) -> list[str]:
    outcome = evidence.outcome
    if outcome is None or outcome.go is None or outcome.predicted is None:
        return []
    reason = f": {_sentence(outcome.reason)}" if outcome.reason else "."
    return [f"After the rung it was {'go' if outcome.go else 'no-go'}{reason}"]


def _remedy(evidence: Evidence) -> list[str]:
    """What to do when nothing was predicted because too little was trained, or too little time was left."""
    if evidence.outcome is None or evidence.outcome.predicted is not None:
        return []
    unsupported = evidence.laws is not None and not evidence.laws.supported
    late = any(each.check == "budget.left" for each in evidence.standing)
    return [f"To get a prediction, {TO_PREDICT}."] if unsupported or late else []


def _claims(evidence: Evidence) -> list[str]:
    views, outcome = evidence.claims, evidence.outcome
    lines = []
    for status in ("broken", "unknown", "expired", "open"):
        names = [printable(view.claim.name, limit=60) for view in views if view.status == status]
        if names:
            listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
            mark = BROKEN if status == "broken" else ""
            lines.append(f"{mark}{plural(len(names), 'claim')} {status}: {listed}.")
    held = sum(view.status == "held" for view in views)
    if views and held == len(views):
        unpredicted = outcome is not None and outcome.predicted is None
        told = f"All {plural(held, 'claim')} {'' if outcome else 'sealed so far '}held"
        lines.append(f"{told}, but none of them predicts where the large run lands." if unpredicted else f"{told}.")
    return lines


def _findings(evidence: Evidence) -> list[str]:
    counted = {
        status: sum(each.status == status for each in evidence.standing) for status in ("fail", "unknown", "warn")
    }
    listed = ", ".join(f"{count} {status}" for status, count in counted.items() if count)
    return [f"Findings that are not ok: {listed}."] if listed else []


def _damage(evidence: Evidence) -> list[str]:
    return [f"Could not be read: {printable(line, limit=300)}." for line in evidence.unreadable]


def _lowered(evidence: Evidence) -> Tone:
    """The tone of a landing inside its interval, from everything but how fast the machine went."""
    pace = {view.claim.id for view in evidence.claims if view.genuine and _is_on_pace(view)}
    statuses = {view.status for view in evidence.claims if view.claim.id not in pace}
    found = {each.status for each in evidence.standing if each.settles not in pace}
    if any(view.status == "broken" and view.claim.name == metric_claim("large") for view in evidence.claims):
        return "fail"
    if "broken" in statuses or "fail" in found:
        return "warn"
    if evidence.unreadable or not statuses or statuses - {"held"} or "unknown" in found:
        return "unknown"
    return "warn" if "warn" in found else "ok"


def _is_on_pace(view: ClaimView) -> bool:
    return view.claim.name == MACHINE_PACE or view.claim.name.endswith(".duration")


def _sentence(text: str) -> str:
    cleaned = printable(text.strip(), limit=400)
    return cleaned if cleaned.endswith((".", "!", "?")) else f"{cleaned}."


def key_numbers(evidence: Evidence) -> list[tuple[str, str, str]]:
    """(name, value, remark) of the numbers to show first."""
    shown: list[tuple[str, str, str]] = []
    outcome, forecast, plan = evidence.outcome, target(evidence), evidence.plan
    if forecast is not None:
        interval = f"{number(forecast.low)} to {number(forecast.high)}"
        shown.append(("predicted", number(forecast.value), interval))
    if outcome is not None and outcome.actual is not None:
        where = {True: "inside the interval", False: "outside the interval", None: ""}[outcome.inside]
        error = f"{percent(outcome.relative_error)} against predicted" if outcome.relative_error is not None else ""
        shown.append(("actual", number(outcome.actual), ", ".join(filter(None, (where, error)))))
    shown.extend(_costs(evidence))
    failed = f"{len(evidence.failures)} failed" if evidence.failures else "none failed"
    random = len(evidence.completed("random"))
    beside = f"and {random} of random search; {failed}" if random else failed
    shown.append(("trials of the search", str(len(evidence.completed("search"))), beside))
    used = outcome.seconds if outcome else max((each.used_s for each in evidence.phases), default=None)
    if used is not None:
        over = ": over the budget" if plan and used > plan.budget_s else ""
        of = f"of {number(round(plan.budget_s))} s{over}" if plan else ""
        shown.append(("time used", f"{number(round(used))} s", of))
    return shown


def _costs(evidence: Evidence) -> list[tuple[str, str, str]]:
    trials = evidence.completed(*SMALL_ROLES)
    cost = evidence.plan.target_cost_flops if evidence.plan else None
    cost = evidence.outcome.target_cost_flops if evidence.outcome else cost
    if cost is None:
        return []
    largest = max((trial.cost_flops for trial in trials), default=0.0)
    times = f"{cost / largest:.3g} times the costliest trial" if largest else ""
    return [("cost of the large run", flops(cost), times)]


def metric_label(evidence: Evidence) -> str:
    """The metric with its unit, for headings and axes."""
    return named(evidence.metric)
