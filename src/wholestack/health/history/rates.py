"""Exact statistics of rare events: rates, their ratio, enrichment, and many tests at once.

Standard library only: importing scipy takes as long as all that a history is asked for. The tests compare with it.

Sources: F. Garwood, Biometrika 28 (1936): interval of a Poisson mean. J. Przyborowski, H. Wilenski, Biometrika 31
(1940): two Poisson rates, given their sum, are a binomial. C. J. Clopper, E. S. Pearson, Biometrika 26 (1934).
R. A. Fisher, J. R. Stat. Soc. 98 (1935): the hypergeometric test. Y. Benjamini, D. Yekutieli, Ann. Stat. 29 (2001).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wholestack.record import Record

LEVEL = 0.95
"""Of intervals."""
_STEPS = 100
_CLOSE = 1e-13
_NOTHING = 1e-18
"""A term below this share of the sum ends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate(Record):
    """Events in a time, and between which rates that lets the true one lie."""

    count: int
    time_s: float
    low: float
    """Events a second."""
    high: float | None
    """``None`` where nothing was observed."""

    @property
    def mean_time_s(self) -> float | None:
        """Mean time between events; ``None`` where there was none."""
        return self.time_s / self.count if self.count else None

    @property
    def mean_time_low_s(self) -> float:
        """Lower end of its interval."""
        return 1 / self.high if self.high else 0.0

    @property
    def mean_time_high_s(self) -> float | None:
        """Upper end; ``None`` where there is none."""
        return 1 / self.low if self.low else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio(Record):
    """How many times one rate another one is."""

    ratio: float | None
    """``None`` where the other one is nought."""
    low: float
    high: float | None
    """``None``: without bound."""
    p: float
    """Of a difference as large in either direction, where the rates are equal."""


def rate(count: int, time_s: float) -> Rate:
    """A rate with its exact interval (Garwood)."""
    if time_s <= 0:
        return Rate(count=count, time_s=0.0, low=0.0, high=None)
    tail = (1 - LEVEL) / 2
    top = count + 10 * math.sqrt(count + 1) + 10
    low = 0.0 if count == 0 else _root(lambda mean: poisson_tail(count, mean) - tail, 0.0, float(count))
    high = _root(lambda mean: tail - (1 - poisson_tail(count + 1, mean)), 0.0, top)
    return Rate(count=count, time_s=time_s, low=low / time_s, high=high / time_s)


def compare_rates(count: int, time_s: float, other: int, other_s: float) -> Ratio:
    """One rate against another: the exact test given their sum, and the interval that belongs to it."""
    both = count + other
    if not both or time_s <= 0 or other_s <= 0:
        return Ratio(ratio=None, low=0.0, high=None, p=1.0)
    share = time_s / (time_s + other_s)
    p = min(1.0, 2 * min(binomial_tail(count, both, share), binomial_tail(other, both, 1 - share)))
    low, high = share_interval(count, both)
    return Ratio(
        ratio=(count / time_s) / (other / other_s) if other else None,
        low=low / (1 - low) * other_s / time_s,
        high=high / (1 - high) * other_s / time_s if high < 1 else None,
        p=p,
    )


def share_interval(count: int, trials: int) -> tuple[float, float]:
    """The exact interval of a share (Clopper and Pearson); of no trials, everything."""
    tail = (1 - LEVEL) / 2
    low = 0.0 if not count else _root(lambda q: binomial_tail(count, trials, q) - tail, 0.0, 1.0)
    high = 1.0 if count == trials else _root(lambda q: tail - binomial_tail(trials - count, trials, 1 - q), 0.0, 1.0)
    return low, high


def poisson_tail(count: int, mean: float) -> float:
    """Probability of at least so many events."""
    if count <= 0:
        return 1.0
    if mean <= 0:
        return 0.0
    if count > mean:
        return _sum_from(
            count, lambda k: mean / (k + 1), math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))
        )
    below = count - 1
    first = math.exp(below * math.log(mean) - mean - math.lgamma(below + 1))
    return 1 - _sum_from(below, lambda k: k / mean, first, step=-1)


def binomial_tail(count: int, trials: int, share: float) -> float:
    """Probability of at least so many successes."""
    if count <= 0:
        return 1.0
    if count > trials or share <= 0:
        return 0.0
    if share >= 1:
        return 1.0
    odds = share / (1 - share)
    if count > trials * share:
        return _sum_from(count, lambda k: (trials - k) / (k + 1) * odds, _binomial(count, trials, share))
    below = count - 1
    first = _binomial(below, trials, share)
    return 1 - _sum_from(below, lambda k: k / (trials - k + 1) / odds, first, step=-1)


def hypergeometric_tail(hits: int, *, cases: int, having: int, total: int) -> float:
    """Probability that at least so many of the cases have a property, if it has nothing to do with being one.

    Args:
        hits: Cases that have it.
        cases: All cases.
        having: All that have it, cases or not.
        total: All.
    """
    low, high = max(0, cases + having - total), min(cases, having)
    if hits <= low:
        return 1.0
    if hits > high:
        return 0.0
    first = math.exp(_choose(having, hits) + _choose(total - having, cases - hits) - _choose(total, cases))
    return min(
        1.0,
        _sum_from(
            hits,
            lambda k: (having - k) * (cases - k) / ((k + 1) * (total - having - cases + k + 1)),
            first,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Cases in one stratum; see :func:`hypergeometric_tail`."""

    hits: int
    cases: int
    having: int
    total: int


def stratified_tail(tables: Sequence[Table]) -> float:
    """The same over strata, in each of which the property may be as frequent as it likes: the exact test of the sum."""
    sums = [1.0]
    for each in tables:
        sums = _convolved(sums, _probabilities(each))
    return min(1.0, math.fsum(sums[sum(each.hits for each in tables) :]))


def adjusted(p_values: Sequence[float], *, tests: int | None = None) -> list[float]:
    """Benjamini and Yekutieli: a list cut at q holds at most that share of false ones, however the tests depend.

    Args:
        p_values: In any order.
        tests: How many tests there were, where those that cannot be small were left out.
    """
    count = max(tests or 0, len(p_values))
    harmonic = math.fsum(1 / k for k in range(1, count + 1))
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    found = [1.0] * len(p_values)
    least = 1.0
    for rank in range(len(order), 0, -1):
        least = min(least, p_values[order[rank - 1]] * count * harmonic / rank)
        found[order[rank - 1]] = least
    return found


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that grows passes nought: inverse quadratic steps where the last three points allow them, halves
    otherwise (Chandrupatla 1997, Advances in Engineering Software 28:145); a value is a long sum, so fewer are better.
    """
    new, old = high, low
    at_new, at_old = function(new), function(old)
    before, at_before = old, at_old
    share = 0.5
    for _ in range(_STEPS):
        place = new + share * (old - new)
        at_place = function(place)
        if (at_place > 0) == (at_new > 0):
            before, at_before = new, at_new
        else:
            before, at_before, old, at_old = old, at_old, new, at_new
        new, at_new = place, at_place
        best = new if abs(at_new) < abs(at_old) else old
        least = _CLOSE * abs(best) / max(abs(old - new), 5e-324)
        if least > 0.5 or at_new == 0:
            return best
        along = (new - old) / (before - old)
        up = (at_new - at_old) / (at_before - at_old)
        share = 0.5
        if up**2 < along and (1 - up) ** 2 < 1 - along:
            share = at_new / (at_old - at_new) * at_before / (at_old - at_before) + (before - new) / (
                old - new
            ) * at_new / (at_before - at_new) * at_old / (at_before - at_old)
        share = min(1 - least, max(least, share))
    return new


def _sum_from(place: int, following: Callable[[int], float], term: float, *, step: int = 1) -> float:
    """A sum of probabilities that fall from its first term on."""
    total = 0.0
    while term > total * _NOTHING and place >= 0:
        total += term
        term *= following(place)
        place += step
    return total


def _poisson(count: int, mean: float) -> float:
    return math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))


def _binomial(count: int, trials: int, share: float) -> float:
    return math.exp(_choose(trials, count) + count * math.log(share) + (trials - count) * math.log1p(-share))


def _choose(many: int, few: int) -> float:
    """Logarithm of the number of ways."""
    return math.lgamma(many + 1) - math.lgamma(few + 1) - math.lgamma(many - few + 1)


def _probabilities(table: Table) -> list[float]:
    """Of each number of hits, from none to as many as there can be."""
    low = max(0, table.cases + table.having - table.total)
    high = min(table.cases, table.having)
    whole = _choose(table.total, table.cases)
    return [0.0] * low + [
        math.exp(_choose(table.having, hits) + _choose(table.total - table.having, table.cases - hits) - whole)
        for hits in range(low, high + 1)
    ]


def _convolved(one: Sequence[float], other: Sequence[float]) -> list[float]:
    found = [0.0] * (len(one) + len(other) - 1)
    for place, left in enumerate(one):
        if left > 0:
            for further, right in enumerate(other):
                found[place + further] += left * right
    return found
