"""CARBS, cost-aware Pareto-region Bayesian search: one pure function from what is known to what to try next.

Each suggestion draws a cost level t between the cheap end of the front and what may be spent on one trial now, and
looks round the front for the point that most improves on the front at t among those that cost at most t:

    score = log EI(output; front(t)) + log P(cost < t) + 3 log P(success) + log search prior

Levels fall off as cost^-bias, so that cheap trials, which are nearly free, are many and costly ones few and well
prepared. The highest level is no more than ``growth`` times the costliest trial yet, and beyond that trial no more than
``share`` of what has been spent; while the top e-fold below it has had less than ``top`` of the money, levels are drawn
there. A level at which less is to be gained than by paying ``worth`` more is left for a higher one.

This differs from the reference, which asks a point above t to beat the front at its own cost: an improvement under a
ceiling is what a user at that budget wants.

References:
    Fetterman et al. (2023), Tune As You Scale, arXiv 2306.08055; the reference code imbue-ai/carbs at 8f7fee0.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from wholestack.errors import InputError
from wholestack.record import Record
from wholestack.search.acquisition import (
    Bases,
    Maximum,
    along_front,
    local_candidates,
    log_below,
    log_expected_improvement,
    log_search_prior,
    maximise,
)
from wholestack.search.dimensions import Array
from wholestack.search.kernel import Mask, noise_variance
from wholestack.search.models import (
    Evidence,
    Memory,
    Models,
    failure_model,
    gather,
    hyperparameters,
    make_models,
    success_probability,
)
from wholestack.search.pareto import FrontModel, model_front
from wholestack.search.space import Params, Space
from wholestack.search.surrogate import Prediction
from wholestack.search.trials import Budget, Direction, Origin, Suggestion, Trial, spent

CostFunction: TypeAlias = Callable[[Params], float]

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Record):
    """Constants of the method; the defaults are meant to be left alone."""

    radius: float = 0.3
    """Length of a local step, in units of a dimension (its scale)."""
    starts: int = 4
    """Trials round the centre before the models take over."""
    resample_every: int = 5
    """Every so many trials a front point may be run again, if noise is worth it."""
    resample_noise: float = 0.05
    """Noise is worth it when its deviation is at least this share of the front's height."""
    bias: float = 0.3
    """Levels are drawn with density cost^-bias in log cost: 0 is even, 1 spends evenly on all costs."""
    growth: float = 4.0
    """A level is at most so many times the costliest trial yet."""
    share: float = 0.5
    """A level beyond the costliest trial yet is at most this share of what has been spent."""
    top: float = 0.3
    """A level is drawn from the top e-fold below the highest while less than this share of the money went there."""
    climb: float = 0.01
    """A level may be left for a higher one up to this share of what has been spent."""
    worth: float = 0.1
    """A level is left for a higher one when less is to be gained there than by paying this share more."""
    success_weight: float = 3.0
    """Power of P(success) in the score: with 1 the search keeps running along the edge of what fails."""
    apart: float = 0.05
    """Least distance from a pending point, in radii."""
    exact_costs: int = 48
    """A known cost function is asked for so many of the candidates that the models rank best."""
    candidates: int = 768
    """Candidates before refinement."""


def suggest(
    space: Space,
    trials: Sequence[Trial],
    pending: Sequence[Suggestion],
    budget: Budget,
    rng: np.random.Generator,
    *,
    direction: Direction = "minimise",
    cost: CostFunction | None = None,
    number: int | None = None,
    settings: Settings | None = None,
    memory: Memory | None = None,
) -> Suggestion:
    """What to try next: a pure function of its arguments; the same arguments give the same suggestion bit by bit.

    Args:
        space: The search space.
        trials: Outcomes so far, in the order in which they became known.
        pending: Suggestions without an outcome yet; every model takes them into account.
        budget: Limits of cost.
        rng: Source of randomness, used for this suggestion only.
        direction: Whether less or more output is better.
        cost: Known cost of params, used in place of the cost model.
        number: Number of the suggestion; by default how many trials and pending ones there are.
        settings: Constants of the method.
        memory: Keeps fits between calls; never changes the result.

    Raises:
        InputError: a trial's params do not fit the space, or nothing affordable was found.

    Example:
        >>> from wholestack.search import Budget, Log, Space
        >>> suggest(Space([Log("lr", centre=1e-3)]), [], [], Budget(), np.random.default_rng(0)).params
        {'lr': 0.001}
    """
    step = _Step(
        space=space,
        trials=trials,
        pending=pending,
        budget=budget,
        rng=rng,
        direction=direction,
        cost=cost,
        number=number if number is not None else len(trials) + len(pending),
        settings=settings or Settings(),
        memory=memory if memory is not None else Memory(),
    )
    evidence = gather(space, trials, direction, step.memory)
    busy = step.memory.encode(space, [each.params for each in pending])
    if len(evidence.tried) + len(busy) < step.settings.starts:
        return _start(step, evidence, busy)
    if len(evidence.x) == 0:
        return _before_success(step, evidence, busy)
    return _modelled(step, evidence, busy)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """The arguments of one suggestion."""

    space: Space
    trials: Sequence[Trial]
    pending: Sequence[Suggestion]
    budget: Budget
    rng: np.random.Generator
    direction: Direction
    cost: CostFunction | None
    number: int
    settings: Settings
    memory: Memory

    def known_costs(self, points: Array) -> Array | None:
        """Log costs by the known function; None without one."""
        if self.cost is None:
            return None
        return np.array([self._known_cost(self.space.decode(point)) for point in points], np.float64)

    def _known_cost(self, params: Params) -> float:
        value = self.cost(params) if self.cost is not None else math.nan
        if not (value > 0 and math.isfinite(value)):
            raise InputError(f"the cost function gave {value} for {params}", remedy="a cost is above 0 and finite")
        return math.log(value)

    def ceiling(self) -> float:
        """Log of the most that a trial may cost; pending trials count with what they are expected to cost."""
        limit = self.budget.max_cost if self.budget.max_cost is not None else math.inf
        if self.budget.total_cost is not None:
            reserved = math.fsum(each.expected_cost or 0.0 for each in self.pending)
            limit = min(limit, self.budget.total_cost - spent(list(self.trials)) - reserved)
        if limit <= 0:
            raise InputError(
                f"the budget of {self.budget.total_cost:g} is spent or taken by pending trials",
                remedy="stop, or raise total_cost",
            )
        return math.log(limit) if math.isfinite(limit) else math.inf

    def suggestion(
        self,
        point: Array,
        origin: Origin,
        *,
        note: str = "",
        level: float | None = None,
        log_cost: float | None = None,
        success: float | None = None,
    ) -> Suggestion:
        """A Suggestion of one allowed point."""
        return Suggestion(
            number=self.number,
            params=self.space.decode(point),
            origin=origin,
            note=note,
            target_cost=None if level is None else _exp(level),
            expected_cost=None if log_cost is None else _exp(log_cost),
            success_probability=success,
        )


def _start(step: _Step, evidence: Evidence, busy: Array) -> Suggestion:
    """The centre first, then Gaussian steps round it; where the cost is known, nothing above the ceiling."""
    centre = step.space.encode([step.space.centre()])
    taken = np.concatenate([evidence.tried, busy])
    drawn = _round_centre(step, centre)
    points = drawn if len(taken) else np.concatenate([centre, drawn])
    points, costs = _affordable(step, points)
    fresh = np.flatnonzero(~_among(points, taken))
    row = int(fresh[0]) if len(fresh) else 0
    note = "" if len(fresh) else "every point near the centre is taken already"
    return step.suggestion(points[row], "start", note=note, log_cost=None if costs is None else float(costs[row]))


def _before_success(step: _Step, evidence: Evidence, busy: Array) -> Suggestion:
    """Nothing has succeeded: away from what failed, not far from the centre."""
    hyper = hyperparameters(step.space, step.trials, step.direction, step.memory)
    failure, trouble = failure_model(evidence, hyper.failure, step.memory.work)
    if failure is not None and len(busy):
        failure = failure.extended(busy, np.ones(len(busy)))
    centre = step.space.encode([step.space.centre()])
    points, costs = _affordable(step, _round_centre(step, centre))
    success = success_probability(failure, points)
    prior = log_search_prior(points, centre, step.space.ordered, 2.0 * step.settings.radius)
    score = np.log(np.maximum(success, 1e-12)) + prior
    score[_among(points, np.concatenate([evidence.tried, busy]))] -= 1e6
    row = int(np.argmax(score))
    note = "; ".join(filter(None, (f"none of {len(evidence.tried)} trials succeeded", hyper.trouble, trouble)))
    log_cost = None if costs is None else float(costs[row])
    return step.suggestion(points[row], "start", note=note, log_cost=log_cost, success=float(success[row]))


def _round_centre(step: _Step, centre: Array) -> Array:
    """Steps round the centre, the first few of plain length, then longer ones."""
    count = step.settings.candidates
    length = step.settings.radius * np.repeat(np.array([1.0, 2.0, 4.0, 8.0]), math.ceil(count / 4))[:count]
    return step.space.move(np.repeat(centre, count, axis=0), length, np.ones(count), step.rng)


def _affordable(step: _Step, points: Array) -> tuple[Array, Array | None]:
    """The points under the ceiling, and their log costs where the cost is known."""
    ceiling = step.ceiling()
    costs = step.known_costs(points)
    if costs is None:
        return points, None
    inside = costs <= ceiling
    if not inside.any():
        raise InputError(
            f"no params near the centre cost at most {_exp(ceiling):g}: the cheapest found costs {_exp(costs.min()):g}",
            remedy="move the search centre to cheaper params, or raise the budget",
        )
    return points[inside], costs[inside]


def _modelled(step: _Step, evidence: Evidence, busy: Array) -> Suggestion:
    hyper = hyperparameters(step.space, step.trials, step.direction, step.memory)
    try:
        plain = make_models(evidence, hyper, step.memory.work)
        models = plain.with_pending(busy, step.rng)
    except np.linalg.LinAlgError as error:
        return _fallback(step, evidence, f"models cannot be made: {error}")
    # The front is of what was seen: its outputs freed of noise, its costs as they were.
    front, bases = _front(evidence, plain)
    level = draw_level(step, evidence)
    again = _resample(step, evidence, busy, models=plain, front=front, bases=bases, level=level)
    if again is not None:
        return again
    taken = np.concatenate([evidence.tried, busy])
    score, found = _climb(
        step,
        _Score(
            step=step,
            evidence=evidence,
            models=models,
            front=front,
            bases=bases,
            level=level,
            taken=taken,
            busy=busy,
        ),
    )
    if not math.isfinite(found.score):
        if float(evidence.log_cost.min()) > step.ceiling():
            return _towards_cheaper(step, evidence, plain)
        return _fallback(step, evidence, "no candidate under the ceiling of cost that was not tried before")
    point = found.x[None, :]
    return step.suggestion(
        found.x,
        "model",
        note=plain.note,
        level=score.level,
        log_cost=float(score.log_cost(point).mean[0]),
        success=float(models.success(point)[0]),
    )


def _front(evidence: Evidence, models: Models) -> tuple[FrontModel, Bases]:
    value = models.output.mean(evidence.x)
    front = model_front(evidence.log_cost, value)
    rows = list(front.rows)
    return front, Bases(x=evidence.x[rows], log_cost=evidence.log_cost[rows])


def draw_level(step: _Step, evidence: Evidence) -> float:
    """Log cost under which this suggestion is to be the best: a point of a golden-ratio sequence, bent by the bias."""
    reach = _reach(step, evidence)
    width = max(reach - float(evidence.log_cost.min()), 0.0)
    fraction = ((step.number + 1) * _GOLDEN) % 1.0
    if _top_is_due(step, reach):
        return reach - min(width, 1.0) * (1.0 - fraction)
    bias = _bias(step, width, reach)
    if abs(bias * width) < 1e-9:
        return reach - width * (1.0 - fraction)
    # Inverse of the distribution function of density exp(-bias u) on [0, width].
    return reach - width + -math.log1p(-fraction * -math.expm1(-bias * width)) / bias


def _top_is_due(step: _Step, reach: float) -> bool:
    """Whether the costliest trials that may be run now have had less than their share of the money."""
    costs = [trial.cost or 0.0 for trial in step.trials] + [each.expected_cost or 0.0 for each in step.pending]
    floor = _exp(reach - 1.0)
    return math.fsum(cost for cost in costs if cost >= floor) < step.settings.top * math.fsum(costs)


def _reach(step: _Step, evidence: Evidence) -> float:
    """Log of the highest level that may be drawn now."""
    costliest, settings = float(evidence.log_cost.max()), step.settings
    afford = math.log(settings.share * max(spent(list(step.trials)), 1e-300))
    return min(max(costliest, min(costliest + math.log(settings.growth), afford)), step.ceiling())


def _bias(step: _Step, width: float, reach: float) -> float:
    """The bias that spreads what is left of the total cost over the trials that are left, if both are limited."""
    budget, settings = step.budget, step.settings
    if budget.total_cost is None or budget.max_trials is None:
        return settings.bias
    left = budget.max_trials - len(step.trials) - len(step.pending)
    wanted = (budget.total_cost - spent(list(step.trials))) / max(left, 1)
    low, high = -1.0, 1.5
    for _ in range(30):
        middle = 0.5 * (low + high)
        if _mean_cost(middle, width, reach) > wanted:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _mean_cost(bias: float, width: float, reach: float) -> float:
    """Mean of exp(u) under density exp(-bias u) on [reach - width, reach]."""
    u = np.linspace(0.0, width, 65)
    weight = np.exp(-bias * u)
    return float(np.sum(weight * np.exp(u)) / np.sum(weight)) * _exp(reach - width)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Score:
    """Log value of points, see the module's docstring."""

    step: _Step
    evidence: Evidence
    models: Models
    front: FrontModel
    bases: Bases
    level: float
    taken: Array
    busy: Array

    def log_cost(self, points: Array) -> Prediction:
        """Log cost, by the known function where there is one."""
        known = self.step.known_costs(points)
        if known is None:
            return self.models.log_cost(points)
        return Prediction(mean=known, deviation=np.zeros(len(points)))

    def log_gain(self, point: Array) -> float:
        """Log expected improvement of one point [1, d]."""
        output = self.models.output.predict(point)
        return float(log_expected_improvement(output.mean, output.deviation, self.front.at(self.level))[0])

    def __call__(self, points: Array) -> Array:
        value = np.full(len(points), -np.inf)
        allowed = ~_among(points, self.taken) & self._apart(points)
        if not allowed.any():
            return value
        points = points[allowed]
        worth, cost = self._worth(points), self.models.log_cost(points)
        if self.step.cost is None:
            value[allowed] = worth + self._under(cost)
            return value
        few = np.argsort(-(worth + self._under(cost)), kind="stable")[: self.step.settings.exact_costs]
        exact = worth[few] + self._under(self.log_cost(points[few]))
        value[np.flatnonzero(allowed)[few]] = exact
        return value

    def _worth(self, points: Array) -> Array:
        """Everything but cost."""
        settings, output = self.step.settings, self.models.output.predict(points)
        success = np.log(np.maximum(self.models.success(points), 1e-12))
        prior = log_search_prior(points, self.bases.x, self.step.space.ordered, settings.radius)
        gain = log_expected_improvement(output.mean, output.deviation, self.front.at(self.level))
        return np.asarray(gain + settings.success_weight * success + prior, np.float64)

    def _under(self, cost: Prediction) -> Array:
        """Log probability of costing at most the level; forbidden above the ceiling.

        Two deviations of doubt stay between an uncertain cost and the ceiling, which is a promise.
        """
        allowed = cost.mean + 2.0 * cost.deviation <= self.step.ceiling()
        return np.where(allowed, log_below(cost.mean, cost.deviation, self.level), -np.inf)

    def _apart(self, points: Array) -> Mask:
        """Which points are not next to a pending one."""
        ordered, least = self.step.space.ordered, self.step.settings.apart * self.step.settings.radius
        apart = np.ones(len(points), bool)
        for point in self.busy:
            near = np.sum((points[:, ordered] - point[ordered]) ** 2, axis=1) < least**2
            apart &= ~(near & (points[:, ~ordered] == point[~ordered]).all(axis=1))
        return apart


def _climb(step: _Step, score: "_Score") -> tuple["_Score", Maximum]:
    """The best candidate at the level drawn, or at a higher one if there is nothing left to gain at that level.

    Nothing is left to gain when the expected improvement is below what the front itself gains by paying
    ``worth`` more: cheap levels are done with once they are densely covered, and money moves up.
    """
    money = math.log(step.settings.climb * max(spent(list(step.trials)), 1e-300))
    reach = max(score.level, min(_reach(step, score.evidence), money))
    while True:
        found = _best(step, score)
        gain = score.log_gain(found.x[None, :]) if math.isfinite(found.score) else -math.inf
        bar = score.front.slope(score.level) * math.log1p(step.settings.worth)
        if score.level >= reach - 1e-9 or gain >= math.log(max(bar, 1e-300)):
            return score, found
        score = replace(score, level=min(reach, score.level + max(math.log(2.0), 0.34 * (reach - score.level))))


def _best(step: _Step, score: "_Score") -> Maximum:
    settings, bases, level = step.settings, score.bases, score.level
    many = settings.candidates
    near = bases.near(level)
    local = local_candidates(step.space, bases.x, near, count=many * 2 // 3, radius=settings.radius, rng=step.rng)
    along = along_front(step.space, bases, level, count=many // 3, radius=settings.radius, rng=step.rng)
    return maximise(step.space, score, np.concatenate([local, along]), step.rng, radius=settings.radius)


def _resample(
    step: _Step,
    evidence: Evidence,
    busy: Array,
    *,
    models: Models,
    front: FrontModel,
    bases: Bases,
    level: float,
) -> Suggestion | None:
    """Now and then, the front point with fewest runs again, cheapest first; only if noise blurs the front."""
    settings = step.settings
    if (step.number + 1) % settings.resample_every:
        return None
    noise = math.sqrt(noise_variance(models.output.theta))
    affordable = bases.log_cost <= min(max(level, float(bases.log_cost[0])), step.ceiling())
    if noise < settings.resample_noise * float(np.ptp(front.value)) or not affordable.any():
        return None
    rows = np.flatnonzero(affordable)
    everything = np.round(np.concatenate([evidence.x, busy]), 9)
    runs = [int((everything == np.round(bases.x[row], 9)).all(axis=1).sum()) for row in rows]
    row = rows[int(np.argmin(runs))]
    point = bases.x[row]
    note = f"run {min(runs) + 1} of this front point: noise {noise:.2g}, front {np.ptp(front.value):.2g} (warped units)"
    success = float(models.success(point[None, :])[0])
    log_cost = float(bases.log_cost[row])
    return step.suggestion(point, "resample", note=note, level=level, log_cost=log_cost, success=success)


def _towards_cheaper(step: _Step, evidence: Evidence, models: Models) -> Suggestion:
    """All trials cost more than one may cost now: the cheapest of wide steps round the cheapest trial."""
    base = evidence.x[[int(np.argmin(evidence.log_cost))]]
    count = step.settings.candidates
    length = step.settings.radius * np.repeat(np.array([1.0, 2.0, 4.0]), math.ceil(count / 3))[:count]
    points = step.space.move(np.repeat(base, count, axis=0), length, np.full(count, 0.5), step.rng)
    known = step.known_costs(points)
    costs = models.log_cost(points).mean if known is None else known
    row, ceiling = int(np.argmin(costs)), step.ceiling()
    # With a limit on each trial an uncertain cost may be tried out; what is left of the total may not be overrun.
    certain = known is not None or step.budget.total_cost is not None
    if certain and costs[row] > ceiling:
        raise InputError(
            f"nothing found costs less than the {_exp(ceiling):g} that is left, but {_exp(costs[row]):g} or more",
            remedy="stop here, or raise the budget",
        )
    note = f"every trial so far cost more than {_exp(ceiling):g}: towards cheaper params"
    return step.suggestion(points[row], "fallback", note=note, log_cost=float(costs[row]))


def _fallback(step: _Step, evidence: Evidence, why: str) -> Suggestion:
    """A step from an affordable trial near the raw front, with the reason."""
    ceiling = step.ceiling()
    rows = [row for row in model_front(evidence.log_cost, evidence.loss).rows if evidence.log_cost[row] <= ceiling]
    if not rows:
        raise InputError(
            f"{why}, and no trial so far cost less than {_exp(ceiling):g}",
            remedy="move the search centre to cheaper params, or raise the budget",
        )
    bases = evidence.x[rows]
    count = len(rows)
    points = local_candidates(
        step.space, bases, np.full(count, 1.0 / count), count=64, radius=step.settings.radius, rng=step.rng
    )
    costs = step.known_costs(points)
    keep = np.ones(len(points), bool) if costs is None else costs <= ceiling
    if not keep.any():
        cheapest = bases[:1]
        return step.suggestion(cheapest[0], "fallback", note=f"{why}; the cheapest front point again")
    return step.suggestion(points[keep][0], "fallback", note=f"{why}; a local step from the front instead")


def _among(points: Array, taken: Array) -> Mask:
    """[m] which points are among the taken ones, up to the rounding of one trip through params."""
    seen = {row.tobytes() for row in np.round(taken, 9) + 0.0}
    return np.array([row.tobytes() in seen for row in np.round(points, 9) + 0.0], bool)


def _exp(value: float) -> float:
    return math.exp(min(value, 709.0))
