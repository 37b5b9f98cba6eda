"""The Pareto front of output against cost: of noisy trials, conservatively; and its monotone model against log cost."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from wholestack.errors import InputError
from wholestack.record import Record
from wholestack.search.dimensions import Array, Value
from wholestack.search.trials import Direction, Trial, key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPoint(Record):
    """One member of the front: all trials that ran the same params."""

    params: dict[str, float | int | str]
    """What was run."""
    output: float
    """Mean output over its trials, in the user's own sign."""
    cost: float
    """Mean cost over its trials."""
    trials: tuple[int, ...]
    """Numbers of its trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    members: tuple[Trial, ...]
    mean: float
    lucky: float
    cost: float

    @property
    def resampled(self) -> bool:
        return len(self.members) > 1


def pareto_front(
    trials: Iterable[Trial], *, direction: Direction = "minimise", min_cost_fraction: float = 0.2
) -> tuple[FrontPoint, ...]:
    """Members of the front by rising cost, each better than the one before.

    Conservative against luck, as in CARBS: params that ran once must beat the luckiest single trial of the member
    before, params that ran several times only its mean. All params among the cheapest ``min_cost_fraction`` of trials
    give one member, their best (only repeated ones count if there are any): else whatever is cheapest would be on the
    front however bad it is.

    Args:
        trials: Outcomes; those that are not ok are passed over.
        direction: Whether less or more output is better.
        min_cost_fraction: In [0, 1]; 0 keeps the plain front at the cheap end.

    Raises:
        InputError: the fraction is outside [0, 1].

    References:
        Fetterman et al. (2023), CARBS, arXiv 2306.08055.
    """
    if not 0.0 <= min_cost_fraction <= 1.0:
        raise InputError(f"min_cost_fraction must lie in [0, 1]: {min_cost_fraction}")
    sign = 1.0 if direction == "minimise" else -1.0
    groups = _groups(trials, sign)
    if not groups:
        return ()
    costs = [group.cost for group in groups for _ in group.members]
    edge = float(np.quantile(costs, min_cost_fraction))
    cheap = [group for group in groups if group.cost <= edge] or groups[:1]
    repeated = [group for group in cheap if group.resampled]
    front = [min(repeated or cheap, key=lambda group: group.mean)]
    for group in groups:
        bar = front[-1].mean if group.resampled else front[-1].lucky
        if group.cost > max(edge, front[-1].cost) and group.mean < bar:
            front.append(group)
    return tuple(_point(group) for group in front)


def _groups(trials: Iterable[Trial], sign: float) -> list[_Group]:
    """Ok trials of equal params together, by rising cost; outputs signed so that less is better."""
    by_params: dict[tuple[tuple[str, Value], ...], list[Trial]] = {}
    for trial in trials:
        if trial.status == "ok":
            by_params.setdefault(key_of(trial.params), []).append(trial)
    groups = [_group(members, sign) for members in by_params.values()]
    return sorted(groups, key=lambda group: (group.cost, group.mean))


def _group(members: Sequence[Trial], sign: float) -> _Group:
    outputs = [sign * trial.output for trial in members if trial.output is not None]
    costs = [trial.cost for trial in members if trial.cost is not None]
    share = 1.0 / len(members)
    mean = math.fsum(share * output for output in outputs)
    return _Group(members=tuple(members), mean=mean, lucky=min(outputs), cost=math.fsum(share * c for c in costs))


def _point(group: _Group) -> FrontPoint:
    outputs = [trial.output for trial in group.members if trial.output is not None]
    return FrontPoint(
        params=dict(group.members[0].params),
        output=math.fsum(output / len(outputs) for output in outputs),
        cost=group.cost,
        trials=tuple(trial.number for trial in group.members),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontModel:
    """Best output that is had for a cost: falls with log cost, by construction.

    Straight between its nodes, level beyond them: it never promises more than was seen.
    """

    log_cost: Array
    """[k] strictly rising."""
    value: Array
    """[k] strictly falling; less is better."""
    rows: tuple[int, ...]
    """[k] which of the given points the nodes are."""

    def at(self, log_cost: float) -> float:
        """Value at a log cost."""
        return float(np.interp(log_cost, self.log_cost, self.value))

    def slope(self, log_cost: float) -> float:
        """Fall per unit of log cost over the decade round a log cost; 0 or more."""
        half = 0.5 * math.log(10.0)
        low = max(log_cost - half, float(self.log_cost[0]))
        high = min(log_cost + half, float(self.log_cost[-1]))
        return (self.at(low) - self.at(high)) / (high - low) if high > low else 0.0


def model_front(log_cost: Array, value: Array) -> FrontModel:
    """Monotone model of the front.

    Args:
        log_cost: [n] of all points, n >= 1.
        value: [n] their outputs, less is better, freed of noise (posterior means): the front of raw outputs is a
            front of lucky ones.
    """
    order = np.lexsort((value, log_cost))
    rows: list[int] = []
    for row in order.tolist():
        if not rows or (value[row] < value[rows[-1]] and log_cost[row] > log_cost[rows[-1]]):
            rows.append(row)
    return FrontModel(log_cost=log_cost[rows], value=value[rows], rows=tuple(rows))
