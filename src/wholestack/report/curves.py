"""Section on training curves: every run on one clock with the Findings, and the large run beside its prediction."""

import itertools

from wholestack.experiments.records import CurvePoint, TrialRecord
from wholestack.finding import worst_first
from wholestack.report import plots
from wholestack.report.evidence import Curves, Evidence, read_curves
from wholestack.report.page import Markup, badge, element, figure, join, not_reached, paragraph
from wholestack.report.quantities import flops, number, plural
from wholestack.report.tables import Table, folded

_MOST_LINES = 150
_DRAWN = frozenset({"rung", "large", "scaled"})


def training(evidence: Evidence) -> Markup:
    """All training curves, then the large run's."""
    starts = _starts(evidence)
    curves = read_curves(evidence.folder, starts)
    notes = [paragraph(f"Could not be read: {line}.", class_="notice") for line in curves.unreadable[:10]]
    if not curves.measured:
        return join([*notes, not_reached("No training curve has been written yet.")])
    return join([*notes, _on_one_clock(evidence, curves, starts), _large(evidence, curves)])


def _starts(evidence: Evidence) -> dict[str, float]:
    """Seconds since the run began at which each run started; at most so many, with the ones that matter."""
    matter = _roles(evidence)
    trials = sorted(evidence.trials, key=lambda trial: trial.name not in matter)[:_MOST_LINES]
    starts = {trial.name: trial.started_at - evidence.manifest.created_at for trial in trials}
    return starts | _running(evidence, set(starts))


def _running(evidence: Evidence, known: set[str]) -> dict[str, float]:
    """Rung and large run that have no trial record yet start with their phase."""
    began = {each.phase: each.at - evidence.manifest.created_at for each in evidence.phases if each.event == "began"}
    return {
        each.name: began[each.role]
        for each in evidence.suggestions
        if each.role in {"rung", "large"} and each.role in began and each.name not in known
    }


def _roles(evidence: Evidence) -> dict[str, str]:
    """Runs that are drawn strongly, by name."""
    known = [(each.name, each.role) for each in evidence.suggestions]
    known += [(each.name, each.role) for each in evidence.trials]
    roles: dict[str, str] = {name: role for name, role in known if role in _DRAWN}
    searched = evidence.completed("search", "random")
    if searched:
        best = min(searched, key=lambda trial: trial.metrics[evidence.metric])
        roles = {best.name: "best", **roles}
    return roles


def _on_one_clock(evidence: Evidence, curves: Curves, starts: dict[str, float]) -> Markup:
    roles = _roles(evidence)
    lines = [
        plots.Line(
            name=name,
            points=[(starts[name] + point.seconds, point.train_bpb) for point in points],
            role=roles.get(name, ""),
        )
        for name, points in curves.measured.items()
    ]
    begin = evidence.manifest.created_at
    marks = [plots.Mark(at=each.at - begin, status=each.status) for each in evidence.findings if each.at is not None]
    caption = (
        "Each line is the training loss of one run, drawn from the moment its process started; signs along the lower"
        " edge are findings at the time they were made (cross: fail, plus: unknown, triangle: warn, dot: ok)."
    )
    tables = folded("The numbers", _ends_table(evidence, curves, starts), _marks_table(evidence))
    return figure(plots.time_axis(lines, marks, unit="bits per byte"), caption, tables)


def _ends_table(evidence: Evidence, curves: Curves, starts: dict[str, float]) -> Table:
    by_name = {trial.name: trial for trial in evidence.trials}
    rows = [_ends_row(name, points, starts[name], by_name.get(name)) for name, points in curves.measured.items()]
    return Table(
        caption=f"First and last point of {plural(len(rows), 'training curve')}",
        columns=(
            "run",
            "started",
            "training",
            "first loss (bits/byte)",
            "last loss (bits/byte)",
            "loss spikes",
            "outcome",
        ),
        rows=rows,
        source="jobs/",
    )


def _ends_row(name: str, points: tuple[CurvePoint, ...], start: float, trial: TrialRecord | None) -> tuple[str, ...]:
    spikes = trial.stability.get("loss_spikes") if trial else None
    return (
        name,
        f"{start:.1f} s",
        f"{points[-1].seconds:.1f} s",
        number(points[0].train_bpb),
        number(points[-1].train_bpb),
        "–" if spikes is None else f"{spikes:g}",
        trial.outcome.replace("_", " ") if trial else "not finished",
    )


def _marks_table(evidence: Evidence) -> Table:
    begin = evidence.manifest.created_at
    timed = [each for each in worst_first(evidence.findings) if each.at is not None]
    rows = [(badge(each.status), f"{(each.at or begin) - begin:.1f} s", each.check, each.subject) for each in timed]
    columns = ("status", "time", "check", "subject")
    return Table(caption="Findings on the time axis", columns=columns, rows=rows, source="findings.jsonl")


def _large(evidence: Evidence, curves: Curves) -> Markup:
    names = [name for name, role in _roles(evidence).items() if role == "large" and name in curves.measured]
    heading = element("h3", "The large run beside its predicted curve")
    if not names:
        ended = evidence.outcome is not None
        return join([heading, not_reached("The large run was not trained." if ended else "It has not started.")])
    actual, predicted = curves.measured[names[-1]], curves.predicted.get(names[-1], ())
    caption = (
        "The solid line is the training loss of the large run, the dashed line the curve that was predicted before it"
        " started; a lasting gap means that something differs from the small runs."
        if predicted
        else "The training loss of the large run; no curve was predicted for it."
    )
    tables = folded("The numbers", _beside_table(actual, predicted))
    return join([heading, figure(plots.curve_beside(actual, predicted), caption, tables)])


def _beside_table(actual: tuple[CurvePoint, ...], predicted: tuple[CurvePoint, ...]) -> Table:
    rows = []
    for point in actual[:: max(1, len(actual) // 40)]:
        expected = _at(predicted, point.cost_flops)
        rows.append(
            (
                f"{point.step:,}",
                flops(point.cost_flops),
                number(point.train_bpb),
                "–" if expected is None else number(expected),
                number(point.gradient_norm),
            )
        )
    columns = ("step", "cost", "loss (bits/byte)", "predicted", "gradient norm")
    return Table(caption="The large run's curve, thinned", columns=columns, rows=rows)


def _at(points: tuple[CurvePoint, ...], cost: float) -> float | None:
    """The predicted loss at a cost, linear between points; None outside them."""
    for left, right in itertools.pairwise(points):
        if left.cost_flops <= cost <= right.cost_flops and right.cost_flops > left.cost_flops:
            share = (cost - left.cost_flops) / (right.cost_flops - left.cost_flops)
            return left.train_bpb + share * (right.train_bpb - left.train_bpb)
    return None
