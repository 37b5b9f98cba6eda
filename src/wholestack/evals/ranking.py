"""How alike two measures rank the same models, with intervals that stay honest for few models.

Notation: m models; u_i is the target and v_i the proxy of model i, both turned so that larger is better; e_i are
standard errors. A pair is told apart by the target when abs(u_i - u_j) > z * sqrt(e_i^2 + e_j^2), z = 1.96, and when
the difference matters at all. The share ranked alike is over such pairs; a pair that the proxy ties counts one half.

Pairs share models, so they are not independent: every interval rests on a bootstrap over *models*. From its variance
follows the number of independent comparisons that the estimate is worth, n = p (1 - p) / variance for a share p, and
tau and rho are taken as shares too, p = (1 + r) / 2. The interval is Clopper and Pearson's at that n, reduced by
(z / t)^2 for the few degrees of freedom (Korn and Graubard, Survey Methodology 24, 1998). A bootstrap of perfect
agreement has no variance; there n is m, one comparison a model, which holds also where a single odd model would spoil
the ranking. So five models never give a narrow interval, and no interval leaves the range of its statistic.

Measurement error: the *measured* values are what a user ranks by, so the plain statistics describe them. Errors pull
tau and rho towards zero; the corrected ones say how the true values rank, by Spearman's correction for attenuation
(1904) on the scale of the normal correlation r: tau = 2/pi asin(r) (Greiner), rho = 6/pi asin(r/2), and reliability
1 - mean(e^2) / variance, applied to the estimate and to both ends of its interval. It assumes values that are roughly
normal over models.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri, stdtr, stdtrit
from scipy.stats import rankdata

from wholestack.errors import InputError
from wholestack.evals.statistics import Floats, Interval, Ints
from wholestack.record import Record

TOLD_APART_Z = 1.96
LEAST_MODELS = 3
_BLOCK = 8_000_000
"""Numbers held at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAgreement(Record):
    """A statistic of agreement with the interval that it lies in."""

    value: float
    """The statistic."""
    interval: Interval
    """Over models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Bootstrap draws of models, the same for every proxy so that proxies are compared in pairs."""

    places: Ints
    """``[draws, models]``, which model stands at each place."""
    times: Floats
    """``[draws, models]``, how often each model was drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Pairs of models that the target tells apart."""

    sign: Floats
    """``[models, models]``, +1 where the row's target is the better, 0 where it is not told apart."""
    count: int
    """Pairs that are told apart."""
    all: int
    """All pairs."""


def draw_models(models: int, *, draws: int, rng: np.random.Generator) -> Draws:
    """Draw models with replacement.

    Raises:
        InputError: there are fewer than three models.
    """
    if models < LEAST_MODELS:
        raise InputError(
            f"a ranking needs at least {LEAST_MODELS} models, got {models}", remedy="measure the target on more models"
        )
    places = rng.integers(models, size=(draws, models))
    offsets = models * np.arange(draws)[:, None]
    times = np.bincount((places + offsets).ravel(), minlength=draws * models).reshape(draws, models)
    return Draws(places=places, times=times.astype(np.float64))


def kendall_tau_b(first: Floats, second: Floats) -> Floats:
    """Kendall's tau-b of each row, ties corrected; NaN where a row is constant.

    Args:
        first: ``[rows, models]``.
        second: ``[rows, models]``.
    """
    rows, models = first.shape
    found = np.empty(rows)
    step = max(1, _BLOCK // models**2)
    for start in range(0, rows, step):
        one = np.sign(first[start : start + step, :, None] - first[start : start + step, None, :])
        other = np.sign(second[start : start + step, :, None] - second[start : start + step, None, :])
        top = np.einsum("bij,bij->b", one, other)
        untied = np.abs(one).sum(axis=(1, 2)) * np.abs(other).sum(axis=(1, 2))
        with np.errstate(invalid="ignore"):
            found[start : start + step] = top / np.sqrt(untied)
    return found


def spearman_rho(first: Floats, second: Floats) -> Floats:
    """Spearman's rho of each row, ties by mean rank; NaN where a row is constant."""
    one, other = rankdata(first, axis=1), rankdata(second, axis=1)
    one -= one.mean(axis=1, keepdims=True)
    other -= other.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        found = (one * other).sum(axis=1) / np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    return np.asarray(np.clip(found, -1, 1))


def pairs_told_apart(target: Floats, errors: Floats, *, matters: float = 0.0) -> Pairs:
    """Which pairs the target itself can tell apart.

    Args:
        target: ``[models]``, larger is better.
        errors: ``[models]``, standard errors; zero where they are not known.
        matters: A smaller difference is not counted.
    """
    difference = target[:, None] - target[None, :]
    reach = TOLD_APART_Z * np.sqrt(errors[:, None] ** 2 + errors[None, :] ** 2)
    # A difference that is rounded to just under what matters does matter.
    told = (np.abs(difference) > reach) & (np.abs(difference) >= matters * (1 - 1e-9)) & (difference != 0)
    count = len(target)
    return Pairs(sign=np.sign(difference) * told, count=int(told.sum()) // 2, all=count * (count - 1) // 2)


def share_alike(pairs: Pairs, proxy: Floats, times: Floats) -> Floats:
    """Share of told-apart pairs that the proxy ranks alike, of each draw; NaN where a draw holds no such pair.

    Args:
        pairs: What the target tells apart.
        proxy: ``[models]``, larger is better.
        times: ``[draws, models]``, weight of every model.
    """
    told = np.abs(pairs.sign)
    alike = told * (1 + pairs.sign * np.sign(proxy[:, None] - proxy[None, :])) / 2
    with np.errstate(invalid="ignore"):
        return np.asarray(((times @ alike) * times).sum(axis=1) / ((times @ told) * times).sum(axis=1))


def interval_of_share(share: float, variance: float, *, models: int, most: float, level: float) -> Interval:
    """Interval of a share of comparisons that are worth fewer than they are many.

    Args:
        share: The estimate.
        variance: Of the estimate, from a bootstrap over models.
        models: Models behind it.
        most: Comparisons made, which it cannot be worth more than.
        level: Probability of covering.
    """
    spread = share * (1 - share)
    worth = spread / variance if variance > 0 and spread > 0 else 0.0
    worth = max(min(worth, most), min(models, most))
    tail = (1 - level) / 2
    worth *= float(ndtri(tail) / stdtrit(models - 1, tail)) ** 2
    alike = share * worth
    low = 0.0 if share <= 0 else float(betaincinv(alike, worth - alike + 1, tail))
    high = 1.0 if share >= 1 else float(betaincinv(alike + 1, worth - alike, 1 - tail))
    return Interval(low=low, high=high, level=level)


def rank_with_interval(
    value: float, draws: Floats, *, models: int, level: float, least: float = -1.0, most: float = math.inf
) -> RankAgreement | None:
    """A statistic with its interval; ``None`` where it has no value.

    Args:
        value: The statistic on the models as they are.
        draws: ``[draws]``, the same of every bootstrap draw; NaN where a draw has none.
        models: Models behind it.
        level: Probability of covering.
        least: Lower end of its range, -1 for a correlation and 0 for a share; the upper is 1.
        most: Comparisons made.
    """
    known = draws[np.isfinite(draws)]
    if not np.isfinite(value) or len(known) < 2:
        return None
    width = 1 - least
    most = min(most, models * (models - 1) / 2)
    variance = float(np.var(known)) / width**2
    share = interval_of_share((value - least) / width, variance, models=models, most=most, level=level)
    return RankAgreement(
        value=value, interval=Interval(low=least + width * share.low, high=least + width * share.high, level=level)
    )


def reliability(values: Floats, errors: Floats) -> float:
    """Share of the variance between models that is not measurement error; not above zero if it is all of it.

    Args:
        values: ``[models]``.
        errors: ``[models]``, standard errors.
    """
    variance = float(values.var(ddof=1))
    return 1 - float((errors**2).mean()) / variance if variance > 0 else math.nan


def tau_of_true_values(tau: float, factor: float) -> float:
    """Kendall's tau without measurement error.

    Args:
        tau: Of the measured values.
        factor: Product of the reliabilities of both sides.
    """
    normal = math.sin(math.pi / 2 * tau)
    return 2 / math.pi * math.asin(_without_error(normal, factor))


def rho_of_true_values(rho: float, factor: float) -> float:
    """Spearman's rho without measurement error; arguments as :func:`tau_of_true_values`."""
    normal = 2 * math.sin(math.pi / 6 * rho)
    return 6 / math.pi * math.asin(_without_error(normal, factor) / 2)


def _without_error(normal: float, factor: float) -> float:
    return max(-1.0, min(1.0, normal / math.sqrt(factor)))


def corrected(
    measured: RankAgreement | None, factor: float, correct: Callable[[float, float], float]
) -> RankAgreement | None:
    """A statistic and both ends of its interval without measurement error; ``None`` where errors are all there is."""
    if measured is None or not factor > 0:
        return None
    low, high = correct(measured.interval.low, factor), correct(measured.interval.high, factor)
    return RankAgreement(
        value=correct(measured.value, factor), interval=Interval(low=low, high=high, level=measured.interval.level)
    )


def difference_p_value(difference: float, draws: Floats, *, models: int) -> float:
    """Two-sided probability of a difference between two statistics if there were none, by the draws' spread."""
    known = draws[np.isfinite(draws)]
    spread = float(np.std(known)) if len(known) > 1 else 0.0
    if spread == 0:
        return 1.0
    return 2 * float(stdtr(models - 1, -abs(difference) / spread))


def regret(target: Floats, proxy: Floats) -> Floats:
    """What is lost by taking the proxy's best instead of the target's, of each row; ties of the proxy share.

    Args:
        target: ``[rows, models]``, larger is better.
        proxy: ``[rows, models]``, larger is better.
    """
    taken: npt.NDArray[np.bool_] = proxy == proxy.max(axis=1, keepdims=True)
    return np.asarray(target.max(axis=1) - (target * taken).sum(axis=1) / taken.sum(axis=1))
