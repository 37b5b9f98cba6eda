"""The page of ``evals context``: loss and accuracy over demonstrations, their numbers, and the needle beside it.

Solid lines are demonstrations in the context, dashed ones fine-tuning on the same demonstrations, dotted ones the best
that any learner can do; bars are intervals over episodes.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from wholestack.experiments.in_context_plan import CONTEXT, PAGE, ContextOutcome, Measured, Point, Way
from wholestack.journal import write_atomic
from wholestack.report.canvas import Axes, legend, log_axis, paint, picture
from wholestack.report.page import Markup, Section, document, element, figure, join, listing, paragraph
from wholestack.report.quantities import number
from wholestack.report.tables import Table, draw

_LOOKS: dict[Way, tuple[str, str, str]] = {
    "in context": ("actual", "-", "o"),
    "fine-tuned": ("predicted", "--", "s"),
    "needle": ("muted", "-", "^"),
}
_LABELS: dict[Way, str] = {
    "in context": "in the context",
    "fine-tuned": "fine-tuned on the same",
    "needle": "fragment retrieval (needle)",
}


def write_page(folder: Path, outcome: ContextOutcome) -> Path:
    """Draw ``context.html`` into a run directory.

    Raises:
        RunDirectoryError: it cannot be written.
    """
    path = folder / PAGE
    write_atomic(path, page(outcome))
    return path


def page(outcome: ContextOutcome) -> bytes:
    """The whole page, UTF-8; nothing on it is fetched."""
    plan = outcome.plan
    told = (
        f"Model {plan.model}; {plan.episodes} episodes of {plan.questions} questions for every number of"
        f" demonstrations; {plan.keys} keys, {plan.labels} labels, {plan.noise:.0%} of the demonstrations show another"
        " label."
    )
    header = element("header", element("h1", "Demonstrations in the context, or fine-tuning"), paragraph(told))
    sections = [
        Section(anchor="chart", title="The same demonstrations, read or trained on", body=_learning(outcome)),
        Section(anchor="needle", title="Beside it: fragment retrieval", body=_needle(outcome)),
    ]
    footer = paragraph(f"All numbers: {CONTEXT} beside this page; each episode: arms.jsonl.")
    return document("Context against fine-tuning", header, sections, footer)


def _learning(outcome: ContextOutcome) -> Markup:
    points = [point for point in outcome.points if point.way != "needle"]
    pictures = join(
        [
            _chart(points, outcome, name="loss", unit="nats a question", read=_loss, best=_best_loss),
            _chart(points, outcome, name="accuracy", unit="share answered right", read=_accuracy, best=_best_accuracy),
        ]
    )
    caption = (
        "Loss (lower is better) and accuracy (higher is better) by number of demonstrations, with 95 % intervals over"
        " episodes; dotted the best that any learner of these demonstrations can do, thin the chance level."
    )
    said = [each.sentence for each in outcome.contrasts]
    if outcome.not_tuned:
        said.append(f"Nothing was fine-tuned: {outcome.not_tuned}.")
    return join([listing(said), figure(pictures, caption, draw(_table(points)))])


def _needle(outcome: ContextOutcome) -> Markup:
    points = [point for point in outcome.points if point.way == "needle"]
    note = (
        "The asked key stands once among the demonstrations, without noise, and its label has to be found. This is"
        " retrieval of a fragment; it says nothing on learning from many demonstrations, and is shown only beside it."
    )
    chart = _chart(points, outcome, name="needle", unit="share answered right", read=_accuracy, best=_best_accuracy)
    return join([paragraph(note), figure(chart, "Accuracy of retrieval.", draw(_table(points)))])


def _chart(
    points: Sequence[Point],
    outcome: ContextOutcome,
    *,
    name: str,
    unit: str,
    read: Callable[[Point], Measured],
    best: Callable[[Point], float | None],
) -> Markup:
    chance = outcome.chance_loss_nats if name == "loss" else outcome.chance_accuracy

    def painter(axes: Axes) -> None:
        for way, (colour, line, marker) in _LOOKS.items():
            ours = [point for point in points if point.way == way]
            if ours:
                _line(axes, ours, read, label=_LABELS[way], look=(colour, line, marker))
        bests = {point.demonstrations: value for point in points if (value := best(point)) is not None}
        if bests:
            axes.plot(list(bests), list(bests.values()), ":", color=paint("ink"), label="best possible")
        axes.axhline(chance, color=paint("muted"), linewidth=0.8, label="chance")
        axes.set_xlabel("demonstrations (logarithmic axis)")
        axes.set_ylabel(unit)
        log_axis(axes, "x", minor=False)
        axes.set_xticks([point.demonstrations for point in points])
        legend(axes, columns=3)

    return picture(painter, name=name, label=f"{name} by number of demonstrations", height=320)


def _line(
    axes: Axes,
    points: Sequence[Point],
    read: Callable[[Point], Measured],
    *,
    label: str,
    look: tuple[str, str, str],
) -> None:
    colour, line, marker = look
    values = [read(point) for point in points]
    reach = [each.value - each.interval.low if each.interval else 0.0 for each in values]
    axes.errorbar(
        [point.demonstrations for point in points],
        [each.value for each in values],
        yerr=reach,
        color=paint(colour),
        linestyle=line,
        marker=marker,
        capsize=3,
        label=label,
    )


def _loss(point: Point) -> Measured:
    return point.loss_nats


def _accuracy(point: Point) -> Measured:
    return point.accuracy


def _best_loss(point: Point) -> float | None:
    return point.best_loss_nats


def _best_accuracy(point: Point) -> float | None:
    return point.best_accuracy


def _table(points: Sequence[Point]) -> Table:
    rows = [
        (
            _LABELS[point.way],
            f"{point.demonstrations:,}",
            _written(point.loss_nats),
            "–" if point.best_loss_nats is None else number(point.best_loss_nats),
            _written(point.accuracy),
            "–" if point.best_accuracy is None else number(point.best_accuracy),
            f"{point.unscorable}",
            f"{point.truncated}",
        )
        for point in points
    ]
    columns = (
        "way",
        "demonstrations",
        "loss (nats)",
        "best possible",
        "accuracy",
        "best possible",
        "not scored",
        "cut",
    )
    return Table(
        caption="Means over episodes with 95 % intervals; cut: not all demonstrations fitted",
        columns=columns,
        rows=rows,
    )


def _written(value: Measured) -> str:
    if value.interval is None:
        return number(value.value)
    return f"{number(value.value)} ({number(value.interval.low)} to {number(value.interval.high)})"
