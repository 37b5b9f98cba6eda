"""From the arms of a context comparison to points, contrasts and sentences."""

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from wholestack.evals.statistics import mean_estimate, t_interval
from wholestack.experiments.in_context_plan import (
    WAYS,
    Arm,
    ContextOutcome,
    ContextPlan,
    Contrast,
    Measured,
    Point,
    Way,
)
from wholestack.finding import EXIT_OK, EXIT_UNKNOWN

LEVEL = 0.95


def summed_up(plan: ContextPlan, arms: Sequence[Arm], *, model: str, not_tuned: str, seconds: float) -> ContextOutcome:
    """Means over episodes, and the paired contrast of the two ways."""
    points = [
        _point(way, count, found)
        for way in WAYS
        for count in plan.demonstrations
        if (found := [arm for arm in arms if (arm.way, arm.demonstrations) == (way, count)])
    ]
    contrasts = [each for count in plan.demonstrations if (each := _contrast(count, arms)) is not None]
    untold = any(each.loss_nats.interval is None or _holds_zero(each.loss_nats) for each in contrasts)
    return ContextOutcome(
        plan=plan,
        model=model,
        points=tuple(points),
        contrasts=tuple(contrasts),
        not_tuned=not_tuned,
        chance_accuracy=1 / plan.labels,
        chance_loss_nats=math.log(plan.labels),
        seconds=seconds,
        exit_code=EXIT_UNKNOWN if untold else EXIT_OK,
    )


def _point(way: Way, demonstrations: int, arms: Sequence[Arm]) -> Point:
    bests = [(arm.best_loss_nats, arm.best_accuracy) for arm in arms]
    losses = [loss for loss, _ in bests if loss is not None]
    accuracies = [accuracy for _, accuracy in bests if accuracy is not None]
    return Point(
        way=way,
        demonstrations=demonstrations,
        loss_nats=measured([arm.loss_nats for arm in arms]),
        accuracy=measured([arm.accuracy for arm in arms]),
        best_loss_nats=fmean(losses) if losses else None,
        best_accuracy=fmean(accuracies) if accuracies else None,
        episodes=len(arms),
        unscorable=sum(sum(arm.unscorable.values()) for arm in arms),
        truncated=sum(arm.truncated for arm in arms),
    )


def measured(values: Sequence[float]) -> Measured:
    """Mean over episodes with Student's interval."""
    estimate = mean_estimate(np.array(values), np.arange(len(values)))
    return Measured(value=estimate.value, interval=t_interval(estimate, level=LEVEL))


def _contrast(demonstrations: int, arms: Sequence[Arm]) -> Contrast | None:
    here = {(arm.way, arm.episode): arm for arm in arms if arm.demonstrations == demonstrations}
    pairs = [
        (arm, here["fine-tuned", number])
        for (way, number), arm in sorted(here.items())
        if way == "in context" and ("fine-tuned", number) in here
    ]
    if not pairs:
        return None
    loss = measured([one.loss_nats - other.loss_nats for one, other in pairs])
    accuracy = measured([one.accuracy - other.accuracy for one, other in pairs])
    return Contrast(
        demonstrations=demonstrations, loss_nats=loss, accuracy=accuracy, sentence=_told(demonstrations, loss)
    )


def _told(demonstrations: int, loss: Measured) -> str:
    interval = loss.interval
    if interval is None or _holds_zero(loss):
        said = f" ({interval.low:+.3f} to {interval.high:+.3f})" if interval else ""
        return (
            f"{demonstrations} demonstrations: whether context or fine-tuning is better cannot be told; the loss"
            f" differs by {loss.value:+.3f} nats{said}."
        )
    better, worse = ("the context", "fine-tuning") if loss.value < 0 else ("fine-tuning", "the context")
    least, most = sorted((abs(interval.low), abs(interval.high)))
    return (
        f"{demonstrations} demonstrations: {better} is better than {worse} by {abs(loss.value):.3f} nats"
        f" ({least:.3f} to {most:.3f})."
    )


def _holds_zero(difference: Measured) -> bool:
    return difference.interval is not None and difference.interval.low <= 0 <= difference.interval.high
