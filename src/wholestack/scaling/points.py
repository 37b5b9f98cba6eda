"""What goes into a fit: the runs, how far they reach, and the value that says "these runs cannot support a forecast".

Losses are positive, in any one unit (nats per token, bits per byte); costs are training FLOPs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wholestack.errors import InputError
from wholestack.record import Record

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPoint(Record):
    """One finished training run, as far as a law needs it."""

    cost_flops: float
    """Training cost, > 0."""
    loss: float
    """Final loss, > 0, in the unit that the forecast will have."""
    params: float | None = None
    """Parameters, > 0; without the embedding they extrapolate better."""
    tokens: float | None = None
    """Training tokens, > 0."""
    seed: int | None = None
    """Seed of the run: runs that differ in nothing else measure the noise."""
    weight: float = 1.0
    """Precision relative to a single run, > 0: a mean of four runs has 4."""

    def __post_init__(self) -> None:
        for name in ("cost_flops", "loss", "params", "tokens", "weight"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise InputError(f"RunPoint.{name} is {value}: must be finite and above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal(Record):
    """The runs cannot support what was asked for: a value, to be turned into a Finding."""

    SCHEMA: ClassVar[str] = "scaling.refusal/1"

    reason: str
    """Which demand is not met, with the number demanded and the number found."""
    remedy: str
    """What to run next, in the imperative."""
    n_points: int
    """Runs given."""
    n_supporting: int
    """Runs that carry the law: all of them, or in a search those on the edge within noise."""
    span_decades: float
    """Decades of cost that the supporting runs span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Runs as arrays of shape (n,), in order of cost."""

    log_cost: Array
    """Natural log of FLOPs."""
    log_loss: Array
    """Natural log of the loss."""
    log_params: Array | None
    """Natural log of parameters, if every run states them."""
    log_tokens: Array | None
    """Natural log of tokens, if every run states them."""
    weight: Array
    """Relative precision."""

    def __len__(self) -> int:
        return len(self.log_cost)

    def take(self, index: NDArray[np.intp]) -> "Table":
        """The runs at ``index``."""
        return Table(
            log_cost=self.log_cost[index],
            log_loss=self.log_loss[index],
            log_params=None if self.log_params is None else self.log_params[index],
            log_tokens=None if self.log_tokens is None else self.log_tokens[index],
            weight=self.weight[index],
        )


def table_of(points: Sequence[RunPoint]) -> Table:
    """Arrays of the points, cheapest first; the order of equal costs is by loss, so input order does not matter."""
    ordered = sorted(points, key=lambda p: (p.cost_flops, p.loss, p.params or 0.0, p.tokens or 0.0))
    return Table(
        log_cost=np.log([p.cost_flops for p in ordered]),
        log_loss=np.log([p.loss for p in ordered]),
        log_params=_logs([p.params for p in ordered]),
        log_tokens=_logs([p.tokens for p in ordered]),
        weight=np.array([p.weight for p in ordered], dtype=np.float64),
    )


def pareto_points(points: Sequence[RunPoint]) -> list[RunPoint]:
    """The runs that no cheaper or equally cheap run beats, cheapest first."""
    best = math.inf
    front = []
    for point in sorted(points, key=lambda p: (p.cost_flops, p.loss)):
        if point.loss < best:
            best = point.loss
            front.append(point)
    return front


def span_decades(log_values: Array) -> float:
    """Decades between the smallest and the largest of some natural logs; 0 for fewer than two."""
    return float((log_values.max() - log_values.min()) / math.log(10)) if len(log_values) > 1 else 0.0


def _logs(values: Sequence[float | None]) -> Array | None:
    known = [value for value in values if value is not None]
    return np.log(known) if known and len(known) == len(values) else None
