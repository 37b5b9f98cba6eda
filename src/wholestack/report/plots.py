"""The pictures of a rehearsal's report, each a function from numbers to inline SVG.

Shapes mean the same everywhere: a line with a band is a law with its interval, a vertical bar with a tick a predicted
interval, a filled diamond (rung) or star (large run) an actual value, a grey dot a trial of the search, a triangle a
random trial. Costs are training FLOPs on a logarithmic axis.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from wholestack.experiments.records import SMALL_ROLES, CurvePoint, ForecastPoint, SettingLaw
from wholestack.report.canvas import Axes, legend, log_axis, logit_axis, no_ticks, paint, picture, text, whole_ticks
from wholestack.report.page import Markup
from wholestack.report.quantities import short

Point = tuple[float, float]
"""x and y."""

_COST = "training FLOPs (logarithmic axis)"
_FINDING_SHAPES = {"fail": "X", "unknown": "P", "warn": "^", "ok": "o"}
_MOST_POINTS = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The rung or the large run on the front: what was predicted and what came out."""

    label: str
    marker: str
    forecast: ForecastPoint | None
    actual: Point | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """Everything on the picture of the Pareto front."""

    metric: str
    """Label of the y axis."""
    trials: Sequence[Point]
    random: Sequence[Point]
    ladder: Sequence[Point]
    """Trials with the laws' own settings, which the law is fitted to."""
    front: Sequence[Point]
    law: Sequence[ForecastPoint]
    level: float
    runs: Sequence[Run]
    scaled: Point | None
    failures: Sequence[float]
    """Costs of failed trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A training curve."""

    name: str
    points: Sequence[Point]
    role: str
    """``large``, ``rung``, ``best`` or anything else for a thin line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A Finding on the time axis."""

    at: float
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A segment of a bar."""

    label: str
    seconds: float
    colour: str
    """Name in the style sheet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyPoint:
    """One trial on the picture of accuracy against answer loss."""

    loss: float
    accuracy: float
    loss_error: float
    accuracy_error: float
    role: str


def landing(
    forecast: ForecastPoint, actual: float | None, *, axis: str, inside: bool | None, straight: float | None
) -> Markup:
    """Predicted interval, predicted value and where the run landed, on one line."""

    def painter(axes: Axes) -> None:
        axes.plot([forecast.low, forecast.high], [0, 0], color=paint("predicted"), alpha=0.28, linewidth=16, zorder=2)
        axes.lines[-1].set_solid_capstyle("butt")
        axes.plot(
            forecast.value, 0, "|", color=paint("predicted"), markersize=22, markeredgewidth=2.4, label="predicted"
        )
        if straight is not None:
            axes.plot(straight, 0, "x", color=paint("muted"), markersize=8, label="straight-line baseline")
        if actual is not None:
            words = {True: "actual: inside", False: "actual: outside", None: "actual"}[inside]
            axes.plot(
                actual, 0, "*", color=paint("actual"), markersize=15, markeredgecolor=paint("surface"), label=words
            )
        shown = [forecast.low, forecast.high, *(each for each in (actual, straight) if each is not None)]
        margin = 0.18 * (max(shown) - min(shown)) or 0.05 * abs(forecast.value) or 1.0
        axes.set_xlim(min(shown) - margin, max(shown) + margin)
        axes.set_ylim(-1, 1)
        axes.set_xlabel(f"{axis}")
        no_ticks(axes, "y")
        axes.spines["left"].set_visible(False)
        legend(axes, columns=3)

    label = f"Predicted interval {short(forecast.low)} to {short(forecast.high)}, predicted {short(forecast.value)}" + (
        f", actual {short(actual)}" if actual is not None else ", no actual value"
    )
    return picture(painter, name="landing", label=label, width=560, height=118, small=True)


def front(shown: Front) -> Markup:
    """Metric against cost: trials, front, law with interval, rung and large run with their predicted intervals."""

    def painter(axes: Axes) -> None:
        _law_band(axes, shown.law, label=f"law, {100 * shown.level:.0f} % interval")
        ceiling = _ceiling(shown)
        _scatter(axes, shown.trials, "o", "trial", "trial", ceiling=ceiling, size=4.5)
        _scatter(axes, shown.random, "^", "random", "random search", ceiling=ceiling, size=5.5)
        _scatter(axes, shown.front, "o", "ink", "front", ceiling=None, size=5.5)
        if shown.front:
            axes.lines[-1].set_alpha(1)
        _scatter(axes, shown.ladder, "s", "predicted", "ladder (laws' settings)", ceiling=None, size=6)
        for run in shown.runs:
            _run(axes, run)
        if shown.scaled is not None:
            axes.plot(
                *shown.scaled, "s", mfc="none", mec=paint("ink"), markersize=7, zorder=5, label="only size scaled"
            )
        if ceiling is not None:
            axes.set_ylim(top=ceiling)
        _rug(axes, shown.failures)
        log_axis(axes, "x")
        axes.set_xlabel(_COST)
        axes.set_ylabel(f"{text(shown.metric)}")
        legend(axes)

    label = (
        f"{shown.metric} against training FLOPs for {len(shown.trials)} trials, {len(shown.random)} random trials,"
        f" {len(shown.front)} of them on the Pareto front, with the fitted law, the rung and the large run"
    )
    return picture(painter, name="front", label=label, height=430)


def setting_law(law: SettingLaw, number: int, *, rung_cost: float | None, target_cost: float | None) -> Markup:
    """One setting against cost, with its law and the values chosen from it."""

    def painter(axes: Axes) -> None:
        scale = _scale(law)
        points = [(cost, value) for cost, value in law.points if _fits(value, scale)]
        _law_band(axes, [each for each in law.curve if all(_fits(y, scale) for y in (each.low, each.high))], label="")
        axes.plot(*_columns(points), "o", color=paint("ink"), markersize=4, zorder=4)
        for cost, value, marker in ((rung_cost, law.rung, "D"), (target_cost, law.target, "*")):
            if cost is not None and isinstance(value, int | float) and _fits(value, scale):
                axes.plot(cost, value, marker, color=paint("predicted"), mec=paint("surface"), zorder=5)
                axes.lines[-1].set_markersize(12 if marker == "*" else 8)
        log_axis(axes, "x", minor=False)
        if scale == "log":
            log_axis(axes, "y", minor=False)
        elif scale == "logit":
            logit_axis(axes, "y")
        elif all(float(value).is_integer() for _, value in points):
            whole_ticks(axes, "y")
        axes.set_title(text(law.name, 32), loc="left", fontsize=12, fontweight="bold", pad=6, color=paint("ink"))
        axes.set_xlabel("FLOPs (logarithmic)", fontsize=10)
        axes.set_ylabel({"log": "logarithmic", "logit": "logit"}.get(scale, "linear") + " axis", fontsize=10)

    label = f"{law.name} of the Pareto trials against training FLOPs, with its law ({law.form})"
    return picture(painter, name=f"setting{number}", label=label, width=320, height=230, small=True)


def time_axis(lines: Sequence[Line], marks: Sequence[Mark], *, unit: str) -> Markup:
    """All training curves on one clock, Findings in a lane under them."""

    def painter(axes: Axes) -> None:
        for line in sorted(lines, key=lambda each: each.role in _STRONG):
            colour, width, label = _STRONG.get(line.role, ("trial", 0.8, "_"))
            alpha = 1.0 if line.role in _STRONG else 0.55
            points = [point for point in line.points if point[1] > 0]
            axes.plot(*_columns(points), color=paint(colour), linewidth=width, alpha=alpha, label=label)
        _lane(axes, marks)
        log_axis(axes, "y")
        axes.set_ylim(top=_usual_start(lines))
        axes.set_xlabel("wall-clock since the run began, s")
        axes.set_ylabel(f"training loss, {unit} (logarithmic axis)")
        legend(axes, columns=5)

    label = f"Training loss of {len(lines)} runs against wall-clock time, with {len(marks)} findings marked"
    return picture(painter, name="time", label=label, height=400)


def curve_beside(actual: Sequence[CurvePoint], predicted: Sequence[CurvePoint]) -> Markup:
    """The large run's training curve against the predicted one."""

    def painter(axes: Axes) -> None:
        if predicted:
            axes.plot(
                *_columns([(each.cost_flops, each.train_bpb) for each in predicted]),
                color=paint("predicted"),
                linewidth=1.8,
                linestyle=(0, (5, 3)),
                label="predicted",
            )
        axes.plot(
            *_columns([(each.cost_flops, each.train_bpb) for each in actual]),
            color=paint("actual"),
            linewidth=1.6,
            label="large run",
        )
        log_axis(axes, "x")
        axes.set_xlabel(f"{_COST.partition(' (')[0]} spent (logarithmic axis)")
        log_axis(axes, "y")
        axes.set_ylabel("training loss, bits per byte (logarithmic axis)")
        legend(axes)

    label = f"Training loss of the large run over training FLOPs{', beside the predicted curve' if predicted else ''}"
    return picture(painter, name="large-curve", label=label, height=320)


def accuracy(points: Sequence[AccuracyPoint], chance: float | None, unit: str, *, name: str) -> Markup:
    """Accuracy with its standard error against answer loss; better is to the right."""

    def painter(axes: Axes) -> None:
        for role, colour, marker, label in (
            ("search", "trial", "o", "trials"),
            ("random", "random", "^", "random search"),
            ("ladder", "predicted", "s", "ladder"),
            ("rung", "actual", "D", "rung"),
            ("large", "actual", "*", "large run"),
        ):
            own = [each for each in points if each.role == role]
            if own:
                axes.errorbar(
                    [each.loss for each in own],
                    [each.accuracy for each in own],
                    xerr=[each.loss_error for each in own],
                    yerr=[each.accuracy_error for each in own],
                    fmt=marker,
                    color=paint(colour),
                    markersize=11 if marker == "*" else 5,
                    elinewidth=0.8,
                    label=label,
                    zorder=3 if role in SMALL_ROLES else 5,
                )
        if chance is not None:
            axes.axhline(chance, color=paint("muted"), linewidth=1, linestyle=(0, (4, 3)), label="chance")
        axes.invert_xaxis()
        axes.set_xlabel(f"answer loss, {unit} (better to the right)")
        axes.set_ylabel(f"{text(name)}, share of items")
        legend(axes, columns=5)

    label = f"Accuracy against answer loss for {len(points)} runs, with standard errors"
    return picture(painter, name="accuracy", label=label, height=340)


def residuals(points: Sequence[Point]) -> Markup:
    """How far each trial lies above or below the law, against its share of prose."""

    def painter(axes: Axes) -> None:
        axes.axhline(0, color=paint("muted"), linewidth=1)
        _scatter(axes, points, "o", "trial", "trial", ceiling=None, size=5)
        axes.set_xlabel("mixture weight of prose")
        axes.set_ylabel("distance from the law, %")

    label = f"Distance of {len(points)} trials from the law at the same cost against the mixture weight of prose"
    return picture(painter, name="mixture", label=label, height=300)


def best_so_far(search: Sequence[Point], random: Sequence[Point], limit: float | None, metric: str) -> Markup:
    """Best metric seen so far against training FLOPs spent so far, search and random search."""

    def painter(axes: Axes) -> None:
        for points, colour, style, label in (
            (search, "predicted", "-", "search"),
            (random, "random", (0, (5, 2)), "random search"),
        ):
            if points:
                axes.step(
                    *_columns(points),
                    where="post",
                    color=paint(colour),
                    linestyle=style,
                    linewidth=1.8,
                    label=label,
                    marker=".",
                    markersize=4,
                )
        if limit is not None:
            axes.axvline(limit, color=paint("muted"), linewidth=1, linestyle=(0, (4, 3)), label="compared here")
        log_axis(axes, "x")
        axes.set_xlabel("training FLOPs spent so far (logarithmic axis)")
        axes.set_ylabel(f"best {text(metric)} so far")
        legend(axes)

    label = f"Best {metric} so far against training FLOPs spent, search beside random search"
    return picture(painter, name="baselines", label=label, height=300)


def time_bar(rows: Sequence[tuple[str, Sequence[Share]]]) -> Markup:
    """One stacked bar a row: where the time went, where it was planned to go."""

    def painter(axes: Axes) -> None:
        seen: set[str] = set()
        for place, (_, shares) in enumerate(reversed(rows)):
            start = 0.0
            for share in shares:
                label = "_" if share.label in seen else text(share.label, 20)
                seen.add(share.label)
                axes.barh(place, share.seconds, left=start, height=0.62, color=paint(share.colour), label=label)
                axes.patches[-1].set(edgecolor=paint("surface"), linewidth=1)
                start += share.seconds
        axes.set_yticks(range(len(rows)), [name for name, _ in reversed(rows)])
        axes.grid(False, axis="y")
        axes.set_xlabel("wall time, s")
        legend(axes, columns=5)

    label = "Wall time by phase: " + "; ".join(
        f"{name}: " + ", ".join(f"{share.label} {share.seconds:.0f} s" for share in shares) for name, shares in rows
    )
    return picture(painter, name="phases", label=label, height=90 + 46 * len(rows))


_STRONG = {
    "large": ("actual", 2.0, "large run"),
    "rung": ("predicted", 1.8, "rung"),
    "best": ("ink", 1.6, "best trial of the search"),
    "scaled": ("random", 1.4, "only size scaled"),
}


def _columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _law_band(axes: Axes, law: Sequence[ForecastPoint], *, label: str) -> None:
    if not law:
        return
    costs = [each.cost_flops for each in law]
    axes.fill_between(
        costs,
        [each.low for each in law],
        [each.high for each in law],
        color=paint("predicted"),
        alpha=0.16,
        linewidth=0,
        zorder=1,
    )
    axes.plot(
        costs, [each.value for each in law], color=paint("predicted"), linewidth=1.6, zorder=2, label=label or "_"
    )


def _scatter(
    axes: Axes, points: Sequence[Point], marker: str, colour: str, noun: str, *, ceiling: float | None, size: float
) -> None:
    """Points of one kind; those above the ceiling stand at the upper edge as small arrows."""
    if not points:
        return
    kept = points[:: 1 + len(points) // _MOST_POINTS]
    low = [point for point in kept if ceiling is None or point[1] <= ceiling]
    label = f"{noun} ({len(points)})"
    axes.plot(*_columns(low), marker, color=paint(colour), markersize=size, alpha=0.75, mew=0, zorder=3, label=label)
    above = [point[0] for point in kept if ceiling is not None and point[1] > ceiling]
    if above and ceiling is not None:
        edge = axes.get_xaxis_transform()
        axes.plot(above, [0.985] * len(above), linestyle="", marker=6, color=paint(colour), transform=edge, zorder=3)


def _ceiling(shown: Front) -> float | None:
    """An upper end of the y axis that a few hopeless trials cannot push away, or None when none are."""
    everything = sorted(value for _, value in (*shown.trials, *shown.random))
    if len(everything) < 8:
        return None
    law = [each.high for each in shown.law] + [run.forecast.high for run in shown.runs if run.forecast]
    actual = [run.actual[1] for run in shown.runs if run.actual]
    usual = max([everything[int(0.9 * (len(everything) - 1))], *law, *actual, *(y for _, y in shown.front)])
    room = usual + 0.25 * (usual - min([everything[0], *law, *actual]))
    return room if everything[-1] > room else None


def _run(axes: Axes, run: Run) -> None:
    if run.forecast is not None:
        cost = run.forecast.cost_flops
        axes.plot([cost, cost], [run.forecast.low, run.forecast.high], color=paint("predicted"), linewidth=3, alpha=0.6)
        axes.plot(cost, run.forecast.value, "_", color=paint("predicted"), markersize=13, markeredgewidth=2.2)
    if run.actual is not None:
        size = 14 if run.marker == "*" else 7
        axes.plot(*run.actual, run.marker, color=paint("actual"), mec=paint("surface"), markersize=size, zorder=6)
        axes.lines[-1].set_label(run.label)


def _rug(axes: Axes, costs: Sequence[float]) -> None:
    if costs:
        axes.plot(costs, [0.015] * len(costs), "|", color=paint("fail"), transform=axes.get_xaxis_transform())
        axes.lines[-1].set(markersize=10, markeredgewidth=1.6, label=f"failed ({len(costs)})", clip_on=False)


def _scale(law: SettingLaw) -> str:
    if law.transform == "log" and all(value > 0 for _, value in law.points):
        return "log"
    if law.transform == "logit" and all(0 < value < 1 for _, value in law.points):
        return "logit"
    return "linear"


def _fits(value: float, scale: str) -> bool:
    return scale == "linear" or (value > 0 and (scale == "log" or value < 1))


def _usual_start(lines: Sequence[Line]) -> float | None:
    """Upper end of the loss axis: a little above where nearly all runs begin, so that one that exploded hides none."""
    firsts = sorted(line.points[0][1] for line in lines if line.points and line.points[0][1] > 0)
    return 1.3 * firsts[int(0.95 * (len(firsts) - 1))] if firsts else None


def _lane(axes: Axes, marks: Sequence[Mark]) -> None:
    """Findings along the lower edge, worst on top."""
    across = axes.get_xaxis_transform()
    for status in ("ok", "warn", "unknown", "fail"):
        times = [mark.at for mark in marks if mark.status == status]
        if times:
            shape = _FINDING_SHAPES[status]
            axes.plot(times, [0.03] * len(times), shape, color=paint(status), mec=paint("surface"), transform=across)
            axes.lines[-1].set(markersize=8, label=f"finding: {status}", clip_on=False, zorder=7)
