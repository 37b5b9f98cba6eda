"""The three models of a search: output, log cost and failure, from a list of trials.

Hyperparameters are fitted at milestones only: at 3 trials and then whenever their number has grown by a quarter, each
fit warm-started from the milestone before and made on at most ``FIT_POINTS`` trials. So they are a function of the list
of trials alone, and the work of fitting grows with the logarithm of its length. Between milestones only the posteriors
are made anew. `Memory` keeps fits by the hash of the trials that they rest on; with or without it the numbers are the
same bit by bit.

Outputs are warped before they are modelled: z = log(1 + (y - best) / s), straight below ``best``, so that a tenth of a
per cent at the good end and a diverging run fit into one Gaussian process. s is chosen by marginal likelihood
(with the Jacobian of the warp) among multiples of the median distance from the best; the largest is a straight line.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from wholestack.record import digest
from wholestack.search.dimensions import Array, Value
from wholestack.search.kernel import Mask, default_prior, noise_variance
from wholestack.search.space import Space
from wholestack.search.surrogate import Fit, GaussianProcess, Prediction, Work, condition_on, fit
from wholestack.search.trials import Direction, Trial, key_of

FIT_POINTS = 300
"""At most so many trials have a say in the hyperparameters."""
MODEL_POINTS = 1000
"""At most so many trials are conditioned on."""
FIRST_MILESTONE = 3
WARP_SHIFTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 100.0)
"""s of the warp, in medians of the distance from the best output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warp:
    """Monotone map from signed outputs (less is better) to targets of about zero mean and unit spread."""

    unit: float
    """Outputs are divided by this first, so that no scale overflows."""
    best: float
    """Best output when the warp was made, in units."""
    shift: float
    """s, in units."""
    centre: float
    """Mean of the warped outputs."""
    spread: float
    """Their standard deviation."""

    def __call__(self, outputs: Array) -> Array:
        """Targets of outputs."""
        return np.asarray((self._log(outputs / self.unit) - self.centre) / self.spread, np.float64)

    def log_slope(self, outputs: Array) -> float:
        """Sum of the logs of dz/dy, up to the constant of the unit."""
        distance = np.maximum(outputs / self.unit - self.best, 0.0)
        return float(-np.sum(np.log(self.shift + distance)) - len(outputs) * math.log(self.spread))

    def _log(self, scaled: Array) -> Array:
        distance = (scaled - self.best) / self.shift
        return np.where(distance > 0.0, np.log1p(np.maximum(distance, 0.0)), distance)


def make_warp(outputs: Array, shift: float) -> Warp:
    """The warp for n >= 1 signed outputs and a shift in medians of their distance from the best."""
    unit = float(np.max(np.abs(outputs))) or 1.0
    scaled = outputs / unit
    best = float(scaled.min())
    distance = scaled - best
    typical = float(np.median(distance)) or float(distance.mean())
    raw = Warp(unit=unit, best=best, shift=max(shift * typical, 1e-12), centre=0.0, spread=1.0)
    targets = raw(outputs)
    spread = float(targets.std())
    return replace(raw, centre=float(targets.mean()), spread=spread if spread > 1e-9 else 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters:
    """All that a milestone fixes."""

    output: Array
    """theta of the output model."""
    cost: Array
    """theta of the cost model."""
    failure: Array
    """theta of the failure model."""
    shift: int
    """Index into WARP_SHIFTS."""
    trouble: str = ""
    """What went wrong in a fit."""


@dataclass(slots=True)
class Memory:
    """What a caller may keep between suggestions so that nothing is computed twice; never changes a result."""

    fits: dict[str, Hyperparameters] = field(default_factory=dict)
    """By hash of space, direction and the trials of a milestone; the latest few."""
    coordinates: dict[tuple[tuple[str, Value], ...], Array] = field(default_factory=dict)
    """Encoded params."""
    work: Work = field(default_factory=Work)
    """Counter of arithmetic."""

    def encode(self, space: Space, many: Sequence[dict[str, Value]]) -> Array:
        """Coordinates [n, d], checked when seen for the first time."""
        rows = np.zeros((len(many), len(space)))
        for row, params in enumerate(many):
            key = key_of(params)
            if key not in self.coordinates:
                space.check(params)
                self.coordinates[key] = space.encode([params])[0]
            rows[row] = self.coordinates[key]
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Trials as arrays; abandoned ones are left out."""

    ordered: Mask
    """[d] which columns are ordered."""
    x: Array
    """[n, d] coordinates of the ok trials."""
    loss: Array
    """[n] their outputs, signed so that less is better."""
    log_cost: Array
    """[n] their log costs."""
    tried: Array
    """[m, d] coordinates of ok and failed trials."""
    label: Array
    """[m] -1 ok, +1 failed."""


def gather(space: Space, trials: Sequence[Trial], direction: Direction, memory: Memory) -> Evidence:
    """Arrays of the trials that are learnt from."""
    learnt = [trial for trial in trials if trial.status != "abandoned"]
    tried = memory.encode(space, [trial.params for trial in learnt])
    ok = np.array([trial.status == "ok" for trial in learnt], bool)
    sign = 1.0 if direction == "minimise" else -1.0
    return Evidence(
        ordered=space.ordered,
        x=tried[ok],
        loss=np.array([sign * trial.output for trial in learnt if trial.output is not None], np.float64),
        log_cost=np.log(np.array([trial.cost for trial in learnt if trial.status == "ok"], np.float64)),
        tried=tried,
        label=np.where(ok, -1.0, 1.0),
    )


def milestones(count: int) -> list[int]:
    """Numbers of trials up to ``count`` at which hyperparameters are fitted."""
    sizes, size = [], FIRST_MILESTONE
    while size <= count:
        sizes.append(size)
        size = max(size + 1, math.ceil(1.25 * size))
    return sizes


def hyperparameters(space: Space, trials: Sequence[Trial], direction: Direction, memory: Memory) -> Hyperparameters:
    """Hyperparameters of the last milestone, through all milestones that are not in memory."""
    sizes = milestones(len(trials))
    identity = space.identity()
    missing: list[tuple[int, str]] = []
    current: Hyperparameters | None = None
    for size in reversed(sizes):
        key = digest(identity, direction, *trials[:size])
        current = memory.fits.get(key)
        if current is not None:
            break
        missing.append((size, key))
    current = current or _from_prior(space.ordered)
    for size, key in reversed(missing):
        current = _refit(gather(space, trials[:size], direction, memory), current, memory.work)
        memory.fits[key] = current
    for key in list(memory.fits)[:-4]:
        del memory.fits[key]
    return current


def _from_prior(ordered: Mask) -> Hyperparameters:
    mean = default_prior(ordered).mean
    return Hyperparameters(output=mean, cost=mean, failure=mean, shift=WARP_SHIFTS.index(1.0))


def _refit(evidence: Evidence, last: Hyperparameters, work: Work) -> Hyperparameters:
    few = choose(evidence, FIT_POINTS)
    troubles: list[str] = []
    output, shift = last.output, last.shift
    cost, failure = last.cost, last.failure
    if len(few.x) >= 2:
        output, shift, trouble = _refit_output(few, last, work)
        troubles.append(trouble and f"output model: {trouble}")
        targets, _, _ = standardised(few.log_cost)
        found = fit(few.x, targets, few.ordered, default_prior(few.ordered, noise=1e-4), start=last.cost, work=work)
        troubles.append(found.trouble and f"cost model: {found.trouble}")
        cost = found.theta
    if (few.label > 0).any():
        prior = default_prior(few.ordered, noise=0.05)
        found = fit(few.tried, few.label, few.ordered, prior, start=last.failure, work=work)
        troubles.append(found.trouble and f"failure model: {found.trouble}")
        failure = found.theta
    return Hyperparameters(
        output=output, cost=cost, failure=failure, shift=shift, trouble="; ".join(filter(None, troubles))
    )


def _refit_output(few: Evidence, last: Hyperparameters, work: Work) -> tuple[Array, int, str]:
    """The last shift of the warp and its neighbours compete, each with its own fit."""
    prior = default_prior(few.ordered)
    fits: dict[int, tuple[float, Fit]] = {}
    for index in (last.shift, last.shift - 1, last.shift + 1):
        if 0 <= index < len(WARP_SHIFTS):
            warp = make_warp(few.loss, WARP_SHIFTS[index])
            found = fit(few.x, warp(few.loss), few.ordered, prior, start=last.output, work=work)
            fits[index] = (found.objective - warp.log_slope(few.loss), found)
    shift = min(fits, key=lambda index: (fits[index][0], index))
    return fits[shift][1].theta, shift, fits[shift][1].trouble


def choose(evidence: Evidence, limit: int) -> Evidence:
    """At most ``limit`` trials for an exact model: a third near the front, a third latest, the rest spread out."""
    ok = _chosen(evidence, limit)
    tried = _recent_and_spread(np.ones(len(evidence.tried), bool), limit)
    return replace(
        evidence,
        x=evidence.x[ok],
        loss=evidence.loss[ok],
        log_cost=evidence.log_cost[ok],
        tried=evidence.tried[tried],
        label=evidence.label[tried],
    )


def _chosen(evidence: Evidence, limit: int) -> npt.NDArray[np.intp] | slice:
    n = len(evidence.x)
    if n <= limit:
        return slice(None)
    order = np.argsort(evidence.log_cost, kind="stable")
    bar = np.minimum.accumulate(evidence.loss[order])
    excess = np.empty(n)
    excess[order] = evidence.loss[order] - bar
    near = np.argsort(excess, kind="stable")[: limit // 3]
    rest = np.ones(n, bool)
    rest[near] = False
    others = _recent_and_spread(rest, limit - len(near))
    return np.sort(np.concatenate([near, np.flatnonzero(others)]))


def _recent_and_spread(among: Mask, limit: int) -> Mask:
    rows = np.flatnonzero(among)
    kept = np.zeros(len(among), bool)
    if len(rows) <= limit:
        kept[rows] = True
        return kept
    recent = limit // 2
    kept[rows[len(rows) - recent :]] = True
    older = rows[: len(rows) - recent]
    kept[older[np.linspace(0, len(older) - 1, limit - recent).round().astype(int)]] = True
    return kept


def standardised(values: Array) -> tuple[Array, float, float]:
    """Values less their mean over their spread, and both; the spread of equal values is 1."""
    centre, spread = float(values.mean()), float(values.std())
    spread = spread if spread > 1e-9 else 1.0
    return (values - centre) / spread, centre, spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """What is believed after some trials; needs at least one ok trial for output and cost."""

    output: GaussianProcess
    """Of warped outputs."""
    warp: Warp
    """The warp."""
    cost: GaussianProcess
    """Of standardised log costs."""
    cost_centre: float
    """Mean log cost."""
    cost_spread: float
    """Standard deviation of log costs."""
    failure: GaussianProcess | None
    """Of labels -1 ok, +1 failed; None while nothing has failed."""
    note: str
    """Numerical trouble on the way."""

    def log_cost(self, points: Array) -> Prediction:
        """Log cost at [m, d] points."""
        raw = self.cost.predict(points)
        mean = self.cost_centre + self.cost_spread * raw.mean
        return Prediction(mean=mean, deviation=self.cost_spread * raw.deviation)

    def success(self, points: Array) -> Array:
        """Probability of not failing at [m, d] points."""
        return success_probability(self.failure, points)

    def with_pending(self, points: Array, rng: np.random.Generator) -> "Models":
        """All three models conditioned on a joint draw of what the pending trials will show."""
        if len(points) == 0:
            return self
        fails = rng.random(len(points)) > self.success(points)
        ok = points[~fails]
        output = self.output.extended(ok, self.output.sample(ok, rng)) if len(ok) else self.output
        cost = self.cost.extended(ok, self.cost.sample(ok, rng)) if len(ok) else self.cost
        labels = np.where(fails, 1.0, -1.0)
        failure = None if self.failure is None else self.failure.extended(points, labels)
        return replace(self, output=output, cost=cost, failure=failure)


def success_probability(failure: GaussianProcess | None, points: Array) -> Array:
    """P(label drawn at a point < 0) = Phi(-mean / sqrt(variance + noise)); 1 without a failure model."""
    if failure is None:
        return np.ones(len(points))
    found = failure.predict(points)
    deviation = np.sqrt(found.deviation**2 + noise_variance(failure.theta))
    return np.asarray(ndtr(-found.mean / deviation), np.float64)


def failure_model(evidence: Evidence, theta: Array, work: Work) -> tuple[GaussianProcess | None, str]:
    """Model of failures, and trouble on the way; None while nothing has failed."""
    if not (evidence.label > 0).any():
        return None, ""
    return _condition("failure model", evidence.tried, evidence.label, evidence.ordered, theta=theta, work=work)


def make_models(evidence: Evidence, hyper: Hyperparameters, work: Work) -> Models:
    """Posteriors of all three, given at least one ok trial.

    Raises:
        np.linalg.LinAlgError: a covariance stays singular even with a thousandfold noise.
    """
    evidence = choose(evidence, MODEL_POINTS)
    warp = make_warp(evidence.loss, WARP_SHIFTS[hyper.shift])
    targets, centre, spread = standardised(evidence.log_cost)
    ordered = evidence.ordered
    output, first = _condition("output model", evidence.x, warp(evidence.loss), ordered, theta=hyper.output, work=work)
    cost, second = _condition("cost model", evidence.x, targets, ordered, theta=hyper.cost, work=work)
    failure, third = failure_model(evidence, hyper.failure, work)
    return Models(
        output=output,
        warp=warp,
        cost=cost,
        cost_centre=centre,
        cost_spread=spread,
        failure=failure,
        note="; ".join(filter(None, (hyper.trouble, first, second, third))),
    )


def _condition(
    name: str, x: Array, y: Array, ordered: Mask, *, theta: Array, work: Work
) -> tuple[GaussianProcess, str]:
    """A posterior; where rounding makes its covariance singular, with more noise and a note that says so."""
    for factor in (1.0, 10.0, 1e3):
        raised = theta.copy()
        raised[-1] += math.log(factor)
        try:
            found = condition_on(x, y, ordered, raised, work=work)
        except np.linalg.LinAlgError as error:
            trouble = error
            continue
        return found, "" if factor == 1.0 else f"{name}: noise raised {factor:g} times, {trouble}"
    raise trouble
