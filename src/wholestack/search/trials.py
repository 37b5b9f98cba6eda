"""What goes into and comes out of a search: Trial, Suggestion, Budget."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import ClassVar, Literal

from wholestack.errors import InputError
from wholestack.record import Record
from wholestack.search.dimensions import Value

Direction = Literal["minimise", "maximise"]
Status = Literal["ok", "failed", "abandoned"]
Origin = Literal["start", "model", "resample", "fallback", "given"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial(Record):
    """The outcome of one trial: ok with output and cost, failed with a kind, or abandoned. Never NaN."""

    SCHEMA: ClassVar[str] = "trial/1"

    number: int
    """Number of the suggestion that it answers."""
    params: dict[str, float | int | str]
    """What was run."""
    status: Status
    """``failed`` (diverged, out of memory, timed out) is learnt from; ``abandoned`` (worker killed) is not."""
    output: float | None = None
    """The metric, in the user's own sign; ok trials only."""
    cost: float | None = None
    """What it cost, above 0; of a failed trial what it cost until then, if known."""
    kind: str = ""
    """Why it failed or was abandoned."""

    def __post_init__(self) -> None:
        where = f"trial {self.number}"
        for key in ("output", "cost"):
            value = getattr(self, key)
            if value is None:
                continue
            if not isinstance(value, Real) or not math.isfinite(value):
                raise InputError(f"{where}: {key} is {value!r}", remedy="tell it as failed, with a kind")
            object.__setattr__(self, key, float(value))
        object.__setattr__(self, "params", {key: _plain(value) for key, value in self.params.items()})
        if self.status == "ok" and (self.output is None or self.cost is None or self.cost <= 0):
            raise InputError(f"{where}: ok needs an output and a cost above 0, got {self.output} and {self.cost}")
        if self.status != "ok" and (self.output is not None or not self.kind):
            raise InputError(f"{where}: {self.status} needs a kind and no output, got {self.kind!r} and {self.output}")
        if self.cost is not None and self.cost < 0:
            raise InputError(f"{where}: cost must not be negative: {self.cost}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion(Record):
    """What to try next, and why."""

    SCHEMA: ClassVar[str] = "suggestion/1"

    number: int
    """Counts the suggestions of a study from 0; also names the random stream that made it."""
    params: dict[str, float | int | str]
    """What to run."""
    origin: Origin
    """``start`` (round the centre), ``model``, ``resample`` (a front point again), ``fallback`` (see ``note``)."""
    note: str = ""
    """What was done and why, where it was not the plain way; every numerical trouble is named here."""
    target_cost: float | None = None
    """The cost under which this suggestion was to be the best."""
    expected_cost: float | None = None
    """Its own expected (or known) cost."""
    success_probability: float | None = None
    """Probability that it does not fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(Record):
    """Limits of a search, in the unit of the trials' cost. A known cost function is passed beside it."""

    SCHEMA: ClassVar[str] = "budget/1"

    max_cost: float | None = None
    """No trial is to cost more."""
    total_cost: float | None = None
    """All trials together are to cost no more; a suggestion fits into what is left."""
    max_trials: int | None = None
    """With a total cost: about how many trials it is to be spread over."""

    def __post_init__(self) -> None:
        for key in ("max_cost", "total_cost", "max_trials"):
            value = getattr(self, key)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"budget: {key} must be positive and finite: {value}")


def _plain(value: Value | Real) -> Value:
    """Scalars of numpy cannot be written as JSON."""
    if isinstance(value, (str, int)):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def spent(trials: "list[Trial] | tuple[Trial, ...]") -> float:
    """Cost of all trials, failed and abandoned ones included as far as it is known."""
    return math.fsum(trial.cost or 0.0 for trial in trials)


def key_of(params: dict[str, Value]) -> tuple[tuple[str, Value], ...]:
    """A hashable identity of params."""
    return tuple(sorted(params.items()))
