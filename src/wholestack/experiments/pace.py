"""How long will a training run take? A small linear model, fitted to the runs that ended.

A step costs a fixed time for each layer (kernel launches do not shrink with the model) and a time for its FLOPs::

    seconds = steps * (a + b * layers) + FLOPs / rate

a, b and 1 / rate are found by non-negative least squares on relative errors, so that short runs count as much as
long ones. The model serves the plan, the honest time left, and the judgment whether one worker was slow.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from wholestack.record import Record

PRIOR_STEP_S = 2e-3
"""Assumed until runs have ended: seconds a step whatever its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Record):
    """What a training run has to do."""

    steps: int
    layers: int
    cost_flops: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace(Record):
    """Speed of one worker with one thread."""

    step_s: float
    """Seconds a step, whatever its size."""
    layer_s: float
    """Seconds a step and layer."""
    rate_flops_s: float
    """FLOP/s beyond that."""

    def seconds(self, work: Work) -> float:
        """Expected wall seconds of training."""
        return work.steps * (self.step_s + self.layer_s * work.layers) + work.cost_flops / self.rate_flops_s


def prior_pace(rate_flops_s: float) -> Pace:
    """The pace before any run has ended, from the preflight's rate alone."""
    return Pace(step_s=PRIOR_STEP_S, layer_s=0.0, rate_flops_s=rate_flops_s)


def fit_pace(works: Sequence[Work], seconds: Sequence[float], prior: Pace) -> Pace:
    """Fit the pace to runs that ended; with fewer than six of them the prior stands.

    Args:
        works: What was done.
        seconds: Wall seconds of training, one a work.
        prior: Used while there are too few runs, and for a term that the fit leaves out.
    """
    if len(works) < 6:
        return prior
    rows = np.array([[work.steps, work.steps * work.layers, work.cost_flops / prior.rate_flops_s] for work in works])
    wall = np.asarray(seconds, dtype=float)
    kept = np.ones(len(wall), dtype=bool)
    solution = np.zeros(3)
    for _ in range(3):
        solution, _ = nnls(rows[kept] / wall[kept, None], np.ones(int(kept.sum())))
        # A worker that was held up must not set the pace it is judged by.
        kept = np.abs(np.log(np.maximum(rows @ solution, 1e-9) / wall)) < np.log(1.6)
        if kept.sum() < 6:
            break
    inverse_rate = float(solution[2])
    return Pace(
        step_s=float(solution[0]),
        layer_s=float(solution[1]),
        rate_flops_s=prior.rate_flops_s / inverse_rate if inverse_rate > 0 else prior.rate_flops_s * 1e3,
    )
