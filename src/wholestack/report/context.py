"""The page of ``evals context``: one chart of loss and accuracy over demonstrations, with the needle test beside it.

On the left solid lines are demonstrations in the context, dashed ones fine-tuning on the same demonstrations, dotted
ones the best that any learner can do; bars are intervals over episodes. On the right, on the same axes and under its
own name, stands the needle test: what a model finds is not what it learns.
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
_COLUMNS = "grid-template-columns: repeat(auto-fit, minmax(min(340px, 100%), 1fr))"


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
        Section(anchor="chart", title="The same demonstrations, read or trained on", body=_chart(outcome)),
    ]
    footer = paragraph(f"All numbers: {CONTEXT} beside this page; each episode: arms.jsonl.")
    return document("Context against fine-tuning", header, sections, footer)


def _chart(outcome: ContextOutcome) -> Markup:
    learning = [point for point in outcome.points if point.way != "needle"]
    needle = [point for point in outcome.points if point.way == "needle"]
    columns = join(
        [
            _column("Learning from demonstrations", learning, outcome, name="learning"),
            _column("Beside it: fragment retrieval (needle test)", needle, outcome, name="needle"),
        ]
    )
    caption = (
        "Loss (lower is better) and accuracy (higher is better) by number of demonstrations, with 95 % intervals over"
        " episodes; dotted the best that any learner of these demonstrations can do, thin the chance level. Right: the"
        " asked key stands once among the demonstrations, without noise, and its label has to be found. That is"
        " retrieval of a fragment; it says nothing on learning from many demonstrations."
    )
    said = [each.sentence for each in outcome.contrasts]
    if outcome.not_tuned:
        said.append(f"Nothing was fine-tuned: {outcome.not_tuned}.")
    grid = element("div", columns, class_="grid", style=_COLUMNS)
    return join([listing(said), figure(grid, caption, draw(_table(outcome.points)))])


def _column(title: str, points: Sequence[Point], outcome: ContextOutcome, *, name: str) -> Markup:
    """Loss above accuracy, on axes that both columns share."""
    ends = [point.loss_nats.interval.high if point.loss_nats.interval else 0.0 for point in outcome.points]
    top = 1.08 * max([outcome.chance_loss_nats, *ends, *(point.loss_nats.value for point in outcome.points)])
    loss = _picture(
        points,
        f"{name}-loss",
        "loss, nats a question",
        read=_loss,
        best=_best_loss,
        chance=outcome.chance_loss_nats,
        top=top,
    )
    accuracy = _picture(
        points,
        f"{name}-accuracy",
        "accuracy, share answered right",
        read=_accuracy,
        best=_best_accuracy,
        chance=outcome.chance_accuracy,
        top=1.05,
    )
    return element("div", element("h3", title), loss, accuracy)


def _picture(
    points: Sequence[Point],
    name: str,
    unit: str,
    *,
    read: Callable[[Point], Measured],
    best: Callable[[Point], float | None],
    chance: float,
    top: float,
) -> Markup:
    def painter(axes: Axes) -> None:
        for way, (colour, line, marker) in _LOOKS.items():
            ours = [point for point in points if point.way == way]
            if ours:
                _line(axes, ours, read, label=_LABELS[way], look=(colour, line, marker))
        bests = {point.demonstrations: value for point in points if (value := best(point)) is not None}
        if bests:
            axes.plot(list(bests), list(bests.values()), ":", color=paint("ink"), label="best possible")
        axes.axhline(chance, color=paint("muted"), linewidth=0.8, label="chance")
        axes.set_ylim(0, top)
        axes.set_xlabel("demonstrations (logarithmic axis)")
        axes.set_ylabel(unit)
        log_axis(axes, "x", minor=False)
        axes.set_xticks(sorted({point.demonstrations for point in points}))
        legend(axes, columns=2)

    label = f"{unit} by number of demonstrations: {name.replace('-', ', ')}"
    return picture(painter, name=name, label=label, width=410, height=300, small=True)


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
