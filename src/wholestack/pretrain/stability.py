"""Was a run stable? Spikes of the loss, the largest gradient, and whether it diverged.

A spike is a step whose loss exceeds the median of the 48 steps before it by more than 6 robust standard deviations
(1.4826 times their median absolute deviation) and by more than 0.25 nats. Median and MAD are blind to the spike
itself and to the slow fall of the loss; neighbouring spikes within 8 steps are one event. A run has diverged when a
loss or gradient norm is not finite, or when the median of its last 16 losses is more than 1 nat above its first
loss, which for a fresh model is about the log of the vocabulary: that is worse than knowing nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

from wholestack.record import Record

WINDOW_STEPS = 48
SPIKE_DEVIATIONS = 6.0
SPIKE_FLOOR_NATS = 0.25
EVENT_STEPS = 8
DIVERGED_WINDOW_STEPS = 16
DIVERGED_NATS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord(Record):
    """One step of training, as it happened. Of a diverged step, loss or gradient norm may be ``None``."""

    SCHEMA: ClassVar[str] = "step/1"

    step: int
    """1 for the first step."""
    tokens: int
    """Tokens trained on, up to and with this step."""
    loss_nats: float | None
    """Mean cross-entropy of the batch, nats a token, before the update; ``None`` if it is not finite."""
    gradient_norm: float | None
    """Global L2 norm before clipping; ``None`` if it is not finite."""
    lr: float
    """Learning rate (of matrices at the reference width)."""
    seconds: float
    """Wall time of training so far, over all resumptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability(Record):
    """Stability of a run, an outcome beside its loss."""

    spikes: int
    """Events in which the loss jumped up."""
    largest_spike_nats: float
    """Height of the highest over the median before it; 0 without a spike."""
    largest_gradient_norm: float | None
    """Largest finite gradient norm before clipping; ``None`` if there was none."""
    clipped_fraction: float
    """Part of the steps whose gradient was clipped."""
    diverged: bool
    """Whether training ended for it."""


def has_diverged(losses_nats: Sequence[float], gradient_norms: Sequence[float]) -> bool:
    """Judge the run so far by its last step; see the module for the rule."""
    if not losses_nats:
        return False
    if not (math.isfinite(losses_nats[-1]) and math.isfinite(gradient_norms[-1])):
        return True
    recent = losses_nats[-DIVERGED_WINDOW_STEPS:]
    return len(recent) == DIVERGED_WINDOW_STEPS and median(recent) > losses_nats[0] + DIVERGED_NATS


def spike_heights(losses_nats: Sequence[float]) -> list[float]:
    """Heights of the spikes, oldest first, in nats over the median before each."""
    heights: list[float] = []
    last = -EVENT_STEPS - 1
    for step in range(WINDOW_STEPS, len(losses_nats)):
        before = losses_nats[step - WINDOW_STEPS : step]
        height = _excess(before, losses_nats[step])
        if height is None:
            continue
        if step - last <= EVENT_STEPS:
            heights[-1] = max(heights[-1], height)
        else:
            heights.append(height)
        last = step
    return heights


def summarize(losses_nats: Sequence[float], gradient_norms: Sequence[float], *, clip_norm: float) -> Stability:
    """Sum up a run.

    Args:
        losses_nats: Loss of every step.
        gradient_norms: Gradient norm before clipping of every step.
        clip_norm: Bound of the clipping.
    """
    heights = spike_heights(losses_nats)
    finite = [norm for norm in gradient_norms if math.isfinite(norm)]
    return Stability(
        spikes=len(heights),
        largest_spike_nats=max(heights, default=0.0),
        largest_gradient_norm=max(finite, default=None),
        clipped_fraction=sum(norm > clip_norm for norm in finite) / max(1, len(finite)),
        diverged=has_diverged(losses_nats, gradient_norms),
    )


def _excess(before: Sequence[float], loss: float) -> float | None:
    centre = median(before)
    if not math.isfinite(loss) or loss - centre <= SPIKE_FLOOR_NATS:
        return None
    deviation = 1.4826 * median(abs(value - centre) for value in before)
    return loss - centre if loss - centre > SPIKE_DEVIATIONS * deviation else None
