"""The page of ``wholestack evals curve``: the same checkpoints under every metric, on linear and logarithmic axes."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from wholestack.evals.curves import CurveJudgement, CurveReport
from wholestack.evals.jumps import JUMP_SHARE, JUMP_WIDTH, JumpTest
from wholestack.evals.straightness import ALL_AXES, CLEAN_R2, Axes, Line
from wholestack.journal import write_atomic
from wholestack.report.canvas import Axes as Canvas
from wholestack.report.canvas import legend, log_axis, paint, picture, text
from wholestack.report.page import Markup, Section, badge, document, element, figure, join, listing, paragraph
from wholestack.report.quantities import named, number, plural, printable, short
from wholestack.report.tables import Table, draw, folded

_COLOURS = ("predicted", "actual", "random", "ok", "warn", "phase-8", "trial", "phase-2")
_SHAPES = ("o", "s", "^", "D", "v", "P", "X", "*")
_TWO_COLUMNS = "grid-template-columns: repeat(auto-fit, minmax(290px, 1fr))"
_WORDS = {
    "smooth": "smooth",
    "accelerates": "gains more and more",
    "jumps": "jumps",
    "no change": "no change beyond its errors",
    "unknown": "too few checkpoints to tell",
}


def write_curves(path: Path, report: CurveReport, *, notes: Mapping[str, str], versions: Mapping[str, str]) -> Path:
    """Draw the page.

    Args:
        path: File that is written, whole or not at all.
        report: What was judged.
        notes: For every metric how it ranks beside the goal.
        versions: Of what produced the numbers, for the footer.

    Raises:
        RunDirectoryError: the file cannot be written.
    """
    write_atomic(path, page(report, notes=notes, versions=versions))
    return path


def page(report: CurveReport, *, notes: Mapping[str, str], versions: Mapping[str, str]) -> bytes:
    """The whole page, UTF-8."""
    sections = [
        Section(anchor="verdict", title="What these curves show", body=_verdict(report)),
        *(
            Section(
                anchor=f"metric-{place}",
                title=printable(curve.metric, limit=80),
                body=_metric(report, curve, place, notes.get(curve.metric, "")),
            )
            for place, curve in enumerate(report.curves)
        ),
        Section(anchor="method", title="How it was judged", body=_method(report)),
    ]
    count = max((len(curve.points) for curve in report.curves), default=0)
    told = (
        f"{plural(count, 'checkpoint')} along {printable(report.x, limit=40)}, {plural(len(report.curves), 'metric')}."
    )
    header = element("header", element("h1", "The same checkpoints under several metrics"), paragraph(told))
    made = ", ".join(f"{name} {version}" for name, version in versions.items())
    return document("Curves", header, sections, paragraph(f"{printable(made)}. Nothing on this page is fetched."))


def _verdict(report: CurveReport) -> Markup:
    kind = {"ok": "ok", "warn": "warn", "unknown": "unknown"}[report.status]
    first, *others = report.conclusions or ("There is nothing to conclude.",)
    said = element(
        "div", element("p", f"{_sentence(first)}"), listing(map(_sentence, others)), class_=f"verdict {kind}"
    )
    pictures = join(_overview(report, axis) for axis in _axes_of_x(report))
    caption = (
        "Every metric turned so that up is better, and scaled so that 0 is its worst and 1 its best value here; the"
        " same checkpoints are drawn on a linear and on a logarithmic axis."
    )
    return join(
        [said, figure(element("div", pictures, class_="grid", style=_TWO_COLUMNS), caption, draw(_summary(report)))]
    )


def _sentence(said: str) -> str:
    """With a full stop, and with a capital unless it begins with the name of a metric."""
    first = said.partition(" ")[0]
    return f"{said}." if not first.isalpha() else f"{said[:1].upper()}{said[1:]}."


def _axes_of_x(report: CurveReport) -> tuple[Axes, ...]:
    positive = all(point.x > 0 for curve in report.curves for point in curve.points)
    return ("linear", "logarithmic x") if positive else ("linear",)


def _overview(report: CurveReport, axes: Axes) -> Markup:
    def painter(canvas: Canvas) -> None:
        for place, curve in enumerate(report.curves):
            values = np.array([point.value for point in curve.points]) * (1 if curve.better == "higher" else -1)
            if len(values) < 2 or np.ptp(values) == 0:
                continue
            canvas.plot(
                [point.x for point in curve.points],
                (values - values.min()) / np.ptp(values),
                marker=_SHAPES[place % len(_SHAPES)],
                color=paint(_COLOURS[place % len(_COLOURS)]),
                linewidth=1.5,
                markersize=5,
                label=text(curve.metric, 24),
            )
        _x_axis(canvas, report.x, axes)
        canvas.set_ylabel("share of its whole range")
        legend(canvas, columns=2)

    label = f"All metrics scaled to their range against {report.x}, {axes} axis"
    return picture(painter, name=f"overview-{axes.replace(' ', '-')}", label=label, width=410, height=300, small=True)


def _summary(report: CurveReport) -> Table:
    rows = [
        (
            printable(curve.metric, limit=60),
            _shape(curve, "logarithmic"),
            _shape(curve, "linear"),
            _p_value(curve.jumps[0]),
            "–" if curve.jumps[0].share is None else f"{100 * curve.jumps[0].share:.0f} %",
            curve.straightness.look,
        )
        for curve in report.curves
    ]
    columns = (
        "metric",
        "on the logarithmic axis",
        "on the linear axis",
        "chance of such points if the gains only shrink (p)",
        "change in the fastest quarter",
        "straight line",
    )
    return Table(caption="Every metric at a glance", columns=columns, rows=rows)


def _shape(curve: CurveJudgement, axis: str) -> str:
    found = next((each for each in curve.jumps if each.axis == axis), None)
    if found is None:
        return "x has no logarithm"
    if found.shape in {"jumps", "accelerates"}:
        return element("strong", _WORDS[found.shape])
    return _WORDS[found.shape]


def _p_value(test: JumpTest) -> str:
    return "–" if test.p_value is None else f"{test.p_value:.2g}"


def _metric(report: CurveReport, curve: CurveJudgement, place: int, note: str) -> Markup:
    shape = curve.jumps[0]
    status = {"smooth": "ok", "no change": "ok", "unknown": "unknown"}.get(shape.shape, "warn")
    parts = [paragraph(badge(status), f" {_WORDS[shape.shape]}; {curve.better} is better. {_place(report, shape)}")]
    if note:
        parts.append(
            paragraph(f"What the number stands for: it {note}." if note.startswith("ranks") else f"{_sentence(note)}")
        )
    drawable: list[Axes] = ["linear", *(line.axes for line in curve.straightness.lines if line.axes != "linear")]
    drawn = join(_picture(report, curve, place, axes) for axes in (drawable if len(curve.points) > 1 else []))
    caption = (
        "The same points on each kind of axes, bars are one standard error. The dashed line is the straight line of"
        f" these axes where it explains at least {100 * CLEAN_R2:.0f} % of the variance on them; the shaded band is the"
        " fastest quarter of the logarithmic axis where the metric jumps."
    )
    tables = folded("The numbers", _points(report, curve))
    pictures = element("div", drawn, class_="grid")
    lines = draw(_lines(curve)) if curve.straightness.lines else Markup("")
    return join([*parts, figure(pictures, caption, lines, tables)])


def _place(report: CurveReport, test: JumpTest) -> str:
    if test.shape not in {"jumps", "accelerates"} or test.begin is None or test.end is None:
        return ""
    return (
        f"{100 * (test.share or 0):.0f} % of its whole change falls between {printable(report.x, limit=40)}"
        f" {short(test.begin)} and {short(test.end)}."
    )


def _picture(report: CurveReport, curve: CurveJudgement, place: int, axes: Axes) -> Markup:
    def painter(canvas: Canvas) -> None:
        test = curve.jumps[0]
        if test.shape == "jumps" and test.begin is not None and test.end is not None:
            canvas.axvspan(test.begin, test.end, color=paint("actual"), alpha=0.13, linewidth=0, zorder=0)
        x = [point.x for point in curve.points]
        line = next((each for each in curve.straightness.lines if each.axes == axes and each.looks_clean), None)
        if line is not None:
            canvas.plot(*_fitted(curve, line), color=paint("muted"), linewidth=1.3, linestyle=(0, (4, 3)), zorder=2)
        canvas.errorbar(
            x,
            [point.value for point in curve.points],
            yerr=[point.error or 0.0 for point in curve.points],
            color=paint(_COLOURS[place % len(_COLOURS)]),
            marker=_SHAPES[place % len(_SHAPES)],
            markersize=4.5,
            linewidth=1.4,
            elinewidth=1.1,
            zorder=3,
        )
        if axes == "logarithmic both":
            log_axis(canvas, "y", minor=False)
        _x_axis(canvas, report.x, axes)
        canvas.set_ylabel(named(curve.metric))

    label = f"{curve.metric} of {len(curve.points)} checkpoints against {report.x}, axes {axes}"
    name = f"m{place}-{axes.replace(' ', '-')}"
    return picture(painter, name=name, label=label, width=300, height=240, small=True)


def _fitted(curve: CurveJudgement, line: Line) -> tuple[list[float], list[float]]:
    """The straight line of these axes; it passes through the mean of the points, weighted as it was fitted."""
    x = np.array([point.x for point in curve.points])
    y = np.array([point.value for point in curve.points])
    errors = np.array([point.error or 0.0 for point in curve.points])
    t = x if line.axes == "linear" else np.log(x)
    folded_y = np.log(y) if line.axes == "logarithmic both" else y
    spread = errors / y if line.axes == "logarithmic both" else errors
    weights = spread**-2.0 if (errors > 0).all() else np.ones(len(x))
    middle, level = np.average(t, weights=weights), np.average(folded_y, weights=weights)
    ends = np.linspace(t[0], t[-1], 2)
    fitted = level + line.slope * (ends - middle)
    back = np.exp(fitted) if line.axes == "logarithmic both" else fitted
    places = ends if line.axes == "linear" else np.exp(ends)
    return [float(each) for each in places], [float(each) for each in back]


def _x_axis(canvas: Canvas, x: str, axes: Axes) -> None:
    if axes == "linear":
        canvas.set_xlabel(f"{text(x, 30)} (linear axis)")
        canvas.xaxis.set_major_formatter(lambda value, _: short(value))
        canvas.locator_params(axis="x", nbins=4)
        return
    log_axis(canvas, "x", minor=False)
    both = " on both sides" if axes == "logarithmic both" else ""
    canvas.set_xlabel(f"{text(x, 30)} (logarithmic axis{both})")


def _lines(curve: CurveJudgement) -> Table:
    rows = [
        (
            line.axes,
            f"{line.r_squared:.3f}",
            f"{line.linear_r_squared:.3f}",
            "–" if line.misfit is None else f"{line.misfit:.2f}",
            f"{line.order_p_value:.2g}",
            "; ".join(line.reasons) or ("nothing against it" if line.looks_clean else "does not look clean"),
        )
        for axes in ALL_AXES
        for line in curve.straightness.lines
        if line.axes == axes
    ]
    columns = ("axes", "R² on them", "R² on the linear scale", "chi² per degree", "p of the order", "against the line")
    return Table(caption=f"A straight line on each kind of axes: {curve.straightness.look}", columns=columns, rows=rows)


def _points(report: CurveReport, curve: CurveJudgement) -> Table:
    rows = [
        (number(point.x), number(point.value), "–" if point.error is None else number(point.error))
        for point in curve.points
    ]
    columns = (printable(report.x, limit=40), named(curve.metric), "standard error")
    return Table(caption="The points of all pictures of this metric", columns=columns, rows=rows)


def _method(report: CurveReport) -> Markup:
    return join(
        [
            paragraph(
                "A curve is smooth while the improvement for each step of the axis never grows from one checkpoint to"
                " the next: straight lines, power laws and decaying losses are all of that kind. The test asks how far"
                " the points are from the nearest such curve, in units of the metric's own errors, and simulates the"
                " answer for a straight line, which is the hardest case. A smooth curve of whatever form is called"
                f" anything else with a probability of at most {report.alpha:g} for each metric and axis."
            ),
            paragraph(
                f"A curve that fails jumps where at least {100 * JUMP_SHARE:.0f} % of its whole change falls into the"
                f" fastest {100 * JUMP_WIDTH:.0f} % of the axis; otherwise it gains more and more. The errors given are"
                " taken for all the noise there is: where seeds or checkpoints scatter more than their errors say,"
                " give that spread in the error column."
            ),
            paragraph(
                "An answer of k tokens, each right with probability p, matches exactly with probability p to the power"
                " of k: exact match lies flat and takes off while the loss of the same models falls smoothly"
                " (Schaeffer, Miranda and Koyejo 2023, arXiv:2304.15004)."
            ),
            paragraph(
                f"A line looks clean on axes where it explains {100 * CLEAN_R2:.0f} % of the variance. That look is"
                " owed to the axes when its residuals exceed the errors or follow each other in order (p < 0.01), when"
                " it explains less than 80 % on the linear scale, or when x spans less than a factor of ten."
            ),
        ]
    )
