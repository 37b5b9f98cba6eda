"""The same checkpoints, or the same recipe at several sizes, under several metrics.

Which metric jumps (``wholestack.evals.jumps``), which curve looks clean only because of its axes
(``wholestack.evals.straightness``), and what both together say about the models and about the metrics.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from wholestack.errors import InputError
from wholestack.evals.goals import Better
from wholestack.evals.jumps import ALPHA, Axis, DetectableJump, JumpTest, detectable_jump, jump_test, rising
from wholestack.evals.measured import Numbers
from wholestack.evals.statistics import Floats
from wholestack.evals.straightness import Straightness, straightness
from wholestack.record import Record

Status = Literal["ok", "warn", "unknown"]
MOST_POINTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Point(Record):
    """One checkpoint under one metric."""

    x: float
    """Where it stands, for instance training tokens."""
    value: float
    """Of the metric."""
    error: float | None
    """Standard error as the test takes it; ``None`` where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveJudgement(Record):
    """One metric over all checkpoints that have it."""

    metric: str
    """Its name."""
    better: Better
    """Its direction."""
    points: tuple[Point, ...]
    """By rising x."""
    jumps: tuple[JumpTest, ...]
    """On the logarithmic axis, then on the linear one."""
    straightness: Straightness
    """On every way of drawing."""
    detectable_jump: DetectableJump | None = None
    """Where it is smooth and another metric jumps: the smallest such jump that it would have shown."""

    @property
    def shape(self) -> str:
        """On the first axis that was tested, which is the logarithmic one wherever x allows it."""
        return self.jumps[0].shape


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveReport(Record):
    """All metrics of the same checkpoints."""

    SCHEMA: ClassVar[str] = "curves/1"

    x: str
    """Name of x."""
    alpha: float
    """Probability at most of calling one curve of diminishing returns anything but smooth."""
    curves: tuple[CurveJudgement, ...]
    """One a metric, in the order given."""
    conclusions: tuple[str, ...]
    """What follows, one sentence each."""
    status: Status
    """``warn`` where a metric jumps or is clean by its axes only, ``unknown`` where a curve cannot be judged."""


def judge_curves(
    rows: Sequence[Numbers], directions: Mapping[str, Better], *, x: str, seed: int = 0, alpha: float = ALPHA
) -> CurveReport:
    """Judge every metric of the same checkpoints.

    Args:
        rows: One a checkpoint, with ``x`` among its values.
        directions: Metrics that are wanted, with their direction.
        x: Name of the value that the checkpoints are ordered by.
        seed: Of the simulations; every metric draws its own stream, so that none depends on the others.
        alpha: Level of the test for jumps.

    Raises:
        InputError: no row has ``x``, two checkpoints stand at the same one, or there is no metric.
    """
    if seed < 0:
        raise InputError(f"seed is {seed}, must not be negative")
    placed = _placed(rows, x)
    if not directions:
        raise InputError(f"there is no metric beside {x}", remedy="give a table with further columns of numbers")
    curves = tuple(
        _judge(name, way, placed, x, rng=np.random.default_rng([seed, place]), alpha=alpha)
        for place, (name, way) in enumerate(directions.items())
    )
    curves = _with_power(curves, seed=seed, alpha=alpha)
    return CurveReport(
        x=x, alpha=alpha, curves=curves, conclusions=tuple(_conclusions(curves, x)), status=_status(curves)
    )


def _placed(rows: Sequence[Numbers], x: str) -> list[Numbers]:
    for row in rows:
        if x not in row.values:
            raise InputError(
                f"{row.where}: has no {x!r}",
                remedy=f"name x with --x; known are: {', '.join(row.values) or 'no numbers'}",
            )
    placed = sorted(rows, key=lambda row: row.values[x])
    for left, right in itertools.pairwise(placed):
        if left.values[x] == right.values[x]:
            raise InputError(
                f"{right.where}: stands at {x} = {right.values[x]:g} like {left.where}",
                remedy="give every checkpoint its own place, for instance the mean over seeds",
            )
    if not 2 <= len(placed) <= MOST_POINTS:
        raise InputError(f"a curve needs 2 to {MOST_POINTS} checkpoints, got {len(placed)}")
    return placed


def _judge(
    metric: str, better: Better, placed: Sequence[Numbers], x: str, *, rng: np.random.Generator, alpha: float
) -> CurveJudgement:
    kept = [row for row in placed if metric in row.values]
    places = np.array([row.values[x] for row in kept])
    values = np.array([row.values[metric] for row in kept])
    errors = _errors(metric, kept, values, better)
    axes: tuple[Axis, ...] = ("logarithmic", "linear") if len(places) and places.min() > 0 else ("linear",)
    return CurveJudgement(
        metric=metric,
        better=better,
        points=tuple(
            Point(x=float(place), value=float(value), error=None if errors is None else float(errors[index]))
            for index, (place, value) in enumerate(zip(places, values, strict=True))
        ),
        jumps=tuple(jump_test(places, values, errors, axis=axis, rng=rng, alpha=alpha) for axis in axes),
        straightness=straightness(places, values, errors, rng=rng),
    )


def _with_power(curves: Sequence[CurveJudgement], *, seed: int, alpha: float) -> tuple[CurveJudgement, ...]:
    """Smooth curves beside one that jumps, with what their errors would have let them show of such a jump."""
    jumping = next((each for each in curves if each.shape == "jumps"), None)
    if jumping is None:
        return tuple(curves)
    return tuple(
        replace(each, detectable_jump=_power(each, jumping, rng=np.random.default_rng([seed, place, 1]), alpha=alpha))
        if each.shape == "smooth"
        else each
        for place, each in enumerate(curves)
    )


def _power(curve: CurveJudgement, jumping: CurveJudgement, *, rng: np.random.Generator, alpha: float) -> DetectableJump:
    axis = jumping.jumps[0].axis
    (x, values, errors), (jump_x, jump_values, jump_errors) = _arrays(curve), _arrays(jumping)
    turned = jump_values if jumping.better == "higher" else -jump_values
    taken = rising(turned, None if jump_errors is None else jump_errors**-2.0)
    at, jump_at = (np.log(each) if axis == "logarithmic" else each for each in (x, jump_x))
    form = np.interp(at, jump_at, (taken - taken[0]) / (taken[-1] - taken[0]))
    return detectable_jump(x, values, errors, form, like=jumping.metric, axis=axis, rng=rng, alpha=alpha)


def _arrays(curve: CurveJudgement) -> tuple[Floats, Floats, Floats | None]:
    errors = [point.error for point in curve.points if point.error is not None]
    return (
        np.array([point.x for point in curve.points]),
        np.array([point.value for point in curve.points]),
        np.array(errors) if len(errors) == len(curve.points) else None,
    )


def _errors(metric: str, kept: Sequence[Numbers], values: Floats, better: Better) -> Floats | None:
    """Errors that a test can divide by, or ``None`` where any is missing.

    A share of 0 or 1 has a standard error of 0 by the usual formula, which would outweigh every other point. The
    number of answers behind the shares follows from the points in between; with one right and one wrong answer added
    (Agresti and Caffo 2000) it gives every share an error above zero. Anything else without an error gets the
    smallest one of its curve.
    """
    if not kept or any(metric not in row.errors for row in kept):
        return None
    errors = np.array([row.errors[metric] for row in kept])
    if not (errors > 0).any():
        return None
    if better == "higher" and values.min() >= 0 and values.max() <= 1:
        inside = (errors > 0) & (values > 0) & (values < 1)
        if inside.any():
            count = float(np.median(values[inside] * (1 - values[inside]) / errors[inside] ** 2))
            shares = (values * count + 1) / (count + 2)
            errors = np.maximum(errors, np.sqrt(shares * (1 - shares) / (count + 2)))
    return np.asarray(np.where(errors > 0, errors, errors[errors > 0].min()))


def _status(curves: Sequence[CurveJudgement]) -> Status:
    if any(each.shape in {"jumps", "accelerates"} for each in curves):
        return "warn"
    if any(each.straightness.look == "clean by its axes only" for each in curves):
        return "warn"
    return "unknown" if any("unknown" in (each.shape, each.straightness.look) for each in curves) else "ok"


def _conclusions(curves: Sequence[CurveJudgement], x: str) -> list[str]:
    return [*_about_jumps(curves, x), *_about_axes(curves)]


def _about_jumps(curves: Sequence[CurveJudgement], x: str) -> list[str]:
    jumping = [each for each in curves if each.shape == "jumps"]
    smooth = [each for each in curves if each.shape == "smooth"]
    found = []
    for each in jumping:
        test = each.jumps[0]
        said = (
            f"{each.metric} jumps: {100 * (test.share or 0):.0f} % of its whole change falls between"
            f" {x} = {_short(test.begin)} and {_short(test.end)}, a quarter of the {test.axis} axis"
        )
        other = each.jumps[-1]
        if other.axis != test.axis and other.shape in {"smooth", "no change"}:
            said += f"; on the {other.axis} axis it does not"
        found.append(said)
    if jumping and smooth:
        found.append(
            f"the same checkpoints show no jump under {_and([each.metric for each in smooth])}: it is in"
            f" {_and([each.metric for each in jumping])}"
        )
        found += [_hidden(each.metric, each.detectable_jump) for each in smooth if each.detectable_jump]
    elif jumping:
        found.append("no metric of these checkpoints is smooth, so the metric alone does not explain the jump")
    gentle = [each.metric for each in curves if each.shape == "accelerates"]
    if gentle:
        found.append(f"{_and(gentle)} gains more and more with {x}, without a jump at one place")
    flat = [each.metric for each in curves if each.shape == "no change"]
    if flat:
        found.append(f"{_and(flat)} shows no change beyond its errors")
    if not jumping and not gentle and smooth:
        found.append(f"no metric jumps: {_and([each.metric for each in smooth])} improve smoothly or stay")
    unknown = [each.metric for each in curves if each.shape == "unknown"]
    if unknown:
        found.append(f"{_and(unknown)} has fewer than five checkpoints: too few to tell a jump from a curve")
    return found


def _hidden(metric: str, power: DetectableJump) -> str:
    if power.size is None:
        return f"the errors of {metric} would hide a jump like that of {power.like}, however large"
    return (
        f"a jump like that of {power.like} would have been seen in {metric} ({power.power:.0%} of times) from"
        f" {power.size:.2g} on, {power.share:.0%} of its whole change; a smaller one may be hidden"
    )


def _about_axes(curves: Sequence[CurveJudgement]) -> list[str]:
    found = []
    for each in curves:
        straight = each.straightness
        looking = [line for line in straight.lines if line.looks_clean]
        passing = [line for line in looking if not line.reasons]
        if straight.look == "clean by its axes only":
            best = max(looking, key=lambda line: line.r_squared)
            found.append(
                f"{each.metric} looks clean on axes {best.axes} (R² {best.r_squared:.3f}) because of the axes only:"
                f" {'; '.join(best.reasons)}"
            )
        elif straight.look == "clean in several ways":
            found.append(
                f"{each.metric} is straight on axes {_and([line.axes for line in passing])} alike: these points do not"
                " tell which form it follows"
            )
        elif straight.look == "clean":
            found.append(
                f"{each.metric} is straight on axes {passing[0].axes} within its errors and on the linear scale too"
            )
    return found


def _short(value: float | None) -> str:
    return "?" if value is None else f"{value:.2g}".replace("e+0", "e").replace("e+", "e")


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
