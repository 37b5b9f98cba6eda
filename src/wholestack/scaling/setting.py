"""Hyperparameters as a law sees them: a transform in which their law is smooth, bounds, rounding, and what is known.

Plain values, so that any search can hand over its trials.

Slopes are in transformed units per natural log of the axis: a log setting that grows as tokens^0.5 has slope 0.5.

Priors of the field that a caller may pass (the data override them):

===================  =======  =======  ================================================================
setting              slope    axis     source
===================  =======  =======  ================================================================
learning rate        -0.3     tokens   Delphi (Marin, 2026): lr times (T0/T)^0.3
batch size           +0.57    tokens   Step Law (arXiv:2503.04715): best batch depends on tokens alone
parameters           +0.5     cost     Hoffmann et al. 2022 (arXiv:2203.15556), table 2
tokens               +0.5     cost     the same
width, layers        +0.17    cost     parameters = 12 x layers x width^2 at a constant aspect ratio
===================  =======  =======  ================================================================
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wholestack.errors import InputError
from wholestack.record import Record
from wholestack.scaling.points import Array

Transform = Literal["linear", "log", "logit"]
Axis = Literal["cost", "tokens"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Record):
    """One hyperparameter."""

    name: str
    """Key in a trial's settings."""
    transform: Transform = "log"
    """Scale on which its law is smooth."""
    low: float | None = None
    """Smallest value allowed, or unbounded."""
    high: float | None = None
    """Largest value allowed, or unbounded."""
    rounding: float | None = None
    """Values are multiples of this (1 for integers), or real."""
    prior_slope: float | None = None
    """Expected slope, transformed units per natural log of the axis; ``None`` expects a constant."""
    prior_slope_sd: float | None = None
    """How far the slope may be off; ``None`` means 0.1 around a given slope."""
    prior_axis: Axis = "cost"
    """What the law runs along: ``tokens`` extrapolates better for learning rate and batch size."""

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise InputError(f"setting {self.name}: low {self.low} must be below high {self.high}")
        if self.transform == "log" and self.low is not None and self.low <= 0:
            raise InputError(f"setting {self.name}: a log setting needs low above 0, got {self.low}")
        if self.rounding is not None and self.rounding <= 0:
            raise InputError(f"setting {self.name}: rounding is {self.rounding}, must be above 0")
        if self.prior_slope_sd is not None and self.prior_slope_sd <= 0:
            raise InputError(f"setting {self.name}: prior_slope_sd is {self.prior_slope_sd}, must be above 0")

    def forward(self, value: float) -> float:
        """Transformed value; a logit is kept off its ends.

        Raises:
            InputError: the value has no transform.
        """
        if not math.isfinite(value) or (self.transform == "log" and value <= 0):
            raise InputError(f"setting {self.name}: {value} cannot be put on a {self.transform} scale")
        if self.transform == "linear":
            return value
        if self.transform == "log":
            return math.log(value)
        if not 0 <= value <= 1:
            raise InputError(f"setting {self.name}: {value} is outside 0 to 1 and has no logit")
        inside = min(max(value, 1e-4), 1 - 1e-4)
        return math.log(inside / (1 - inside))

    def backward(self, transformed: float) -> float:
        """Natural value inside the bounds, not rounded."""
        if self.transform == "linear":
            value = transformed
        elif self.transform == "log":
            value = math.exp(min(max(transformed, -700.0), 700.0))
        else:
            value = 1 / (1 + math.exp(-min(max(transformed, -700.0), 700.0)))
        return self.clip(value)

    def clip(self, value: float) -> float:
        """The nearest value inside the bounds."""
        value = value if self.low is None else max(value, self.low)
        return value if self.high is None else min(value, self.high)

    def round(self, value: float) -> float:
        """The nearest allowed multiple inside the bounds; on a log scale the nearest in ratio."""
        if self.rounding is None:
            return self.clip(value)
        down = math.floor(value / self.rounding) * self.rounding
        up = down + self.rounding
        if self.transform == "log" and down > 0:
            nearest = down if value / down <= up / value else up
        else:
            nearest = down if value - down <= up - value else up
        while self.high is not None and nearest > self.high * (1 + 1e-12):
            nearest -= self.rounding
        while self.low is not None and nearest < self.low * (1 - 1e-12):
            nearest += self.rounding
        return nearest if nearest > 0 or self.transform != "log" else self.rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingTrial(Record):
    """One completed trial of a search."""

    cost_flops: float
    """Training cost, > 0."""
    loss: float
    """Final loss, > 0."""
    settings: Mapping[str, float]
    """Natural values by name; tokens among them where a law runs along tokens."""
    weight: float = 1.0
    """Precision relative to a single trial."""

    def __post_init__(self) -> None:
        for name in ("cost_flops", "loss", "weight"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"SettingTrial.{name} is {value}: must be finite and above 0")


def transformed(trials: "list[SettingTrial]", settings: "list[Setting]") -> Array:
    """(n, k) transformed settings of the trials.

    Raises:
        InputError: a trial lacks a setting; names it.
    """
    rows = []
    for trial in trials:
        missing = [each.name for each in settings if each.name not in trial.settings]
        if missing:
            raise InputError(f"a trial of {trial.cost_flops:.3g} FLOPs lacks the setting {missing[0]!r}")
        rows.append([each.forward(trial.settings[each.name]) for each in settings])
    return np.array(rows, dtype=np.float64)
