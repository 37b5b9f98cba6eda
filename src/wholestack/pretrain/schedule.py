"""The learning rate of every step: linear warm-up, then a fall."""

import math

from wholestack.pretrain.config import OptimizerConfig


def lr_fraction(config: OptimizerConfig, step: int) -> float:
    """Learning rate of a step over its peak.

    Args:
        config: Steps, warm-up and shape.
        step: 0 for the first step.

    Returns:
        In [0, 1]. The first step of a warm-up is already above zero; the last step of the run is still above the
        final fraction, which would be reached one step later.
    """
    warmup_steps = config.warmup_fraction * config.steps
    if step + 1 <= warmup_steps:
        return (step + 1) / warmup_steps
    after_warmup = (step - warmup_steps) / max(1.0, config.steps - warmup_steps)
    return config.final_lr_fraction + (1 - config.final_lr_fraction) * _shape(config, min(1.0, max(0.0, after_warmup)))


def _shape(config: OptimizerConfig, progress: float) -> float:
    if config.decay == "cosine":
        return 0.5 * (1 + math.cos(math.pi * progress))
    if config.decay == "linear":
        return 1 - progress
    falling = config.decay_fraction / max(1e-12, 1 - config.warmup_fraction)
    return min(1.0, (1 - progress) / max(1e-12, falling))
