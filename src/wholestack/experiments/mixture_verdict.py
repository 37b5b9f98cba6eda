"""Whether one recipe is better than another: paired differences over items and over seeds, and a verdict in words.

Notation: d_is is the difference of item i between the two runs of seed s, S seeds, G clusters of items. Two things
vary. Other items would give another mean: SE_items, cluster-robust, of the differences averaged over the seeds. Another
seed would give another model: SE_seeds = sd_s(D_s) / sqrt(S), with D_s the difference of seed s on all items. The
interval takes both, SE = sqrt(SE_items^2 + SE_seeds^2): what a run and an item add only together is in both, so it is
a little too wide and never too narrow. Degrees of freedom are Satterthwaite's, from G - 1 and S - 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri, stdtrit

from wholestack.errors import InputError
from wholestack.evals.scores import ItemScores, item_values
from wholestack.evals.statistics import Estimate, Floats, Interval, Ints, ratio_estimate
from wholestack.record import Record

Verdict = Literal["better", "worse", "cannot be told"]

ASSUMED_SEED_SD_BPB = 0.015
"""Spread of answer_bpb over seeds of one recipe, assumed before anything is trained. Measured on tiny transformers:
0.0075 over five seeds (``benchmarks/evals_decisions.py``), 0.016 from a pair (``benchmarks/scoring.py spread``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(Record):
    """How far a mean difference may be off, and which part varies more."""

    items: float
    """Standard error over items (clusters)."""
    seeds: float
    """Standard error over seeds."""
    clusters: int
    runs: int
    """Seeds."""

    @property
    def standard_error(self) -> float:
        """Of both."""
        return math.hypot(self.items, self.seeds)

    @property
    def larger(self) -> Literal["items", "seeds"]:
        """What varies more: more of it would narrow the interval most."""
        return "seeds" if self.seeds > self.items else "items"

    @property
    def degrees_of_freedom(self) -> float:
        """By Satterthwaite, at least those of the seeds alone."""
        parts = self.items**4 / max(1, self.clusters - 1) + self.seeds**4 / max(1, self.runs - 1)
        return max(1.0, self.standard_error**4 / parts) if parts > 0 else float(max(1, self.clusters - 1))

    def reach(self, level: float) -> float:
        """Half the width of the interval."""
        return float(stdtrit(self.degrees_of_freedom, 0.5 + level / 2)) * self.standard_error

    def detectable(self, level: float, power: float = 0.8) -> float:
        """Smallest true difference that is found with probability ``power``."""
        return self.reach(level) + float(ndtri(power)) * self.standard_error


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Record):
    """A recipe against the baseline; negative is better, for losses."""

    metric: str
    value: float
    """Mean over items and seeds, contender minus baseline."""
    by_seed: tuple[float, ...]
    """On all items, seed by seed."""
    spread: Spread
    interval: Interval
    detectable: float
    """Smallest true difference that a comparison with this spread finds with probability 0.8."""
    verdict: Verdict


def judge(
    baseline: Sequence[ItemScores], contender: Sequence[ItemScores], *, metric: str = "answer_bpb", level: float = 0.95
) -> Difference:
    """Compare two recipes by their runs, the same seeds in the same order.

    Args:
        baseline: Scores of the baseline, one a seed.
        contender: Scores of the contender.
        metric: A loss, as in :func:`wholestack.evals.scores.item_values`.
        level: Of the interval and of the verdict.

    Raises:
        InputError: fewer than two seeds, other items, or no item that every run scored.
    """
    runs = [*baseline, *contender]
    if len(baseline) != len(contender) or len(baseline) < 2:
        raise InputError(
            f"{len(baseline)} seeds of the baseline and {len(contender)} of the contender",
            remedy="compare recipes with the same two or more seeds each",
        )
    if any(run.item_set != runs[0].item_set or not np.array_equal(run.item_ids, runs[0].item_ids) for run in runs):
        raise InputError("the runs were scored on different items", remedy="score all on one item set")
    keep = np.logical_and.reduce([run.is_scored for run in runs])
    if not keep.any():
        raise InputError("no item was scored by every run")
    weight = item_values(runs[0], metric)[1][keep]
    pairs = zip(baseline, contender, strict=True)
    differences = np.stack([(item_values(two, metric)[0] - item_values(one, metric)[0])[keep] for one, two in pairs])
    return judged(differences, weight, runs[0].clusters[keep], metric=metric, level=level)


def judged(differences: Floats, weight: Floats, clusters: Ints, *, metric: str, level: float) -> Difference:
    """The difference from arrays: ``[seeds, items]`` numerators, ``[items]`` weights and clusters."""
    by_seed = differences.sum(1) / weight.sum()
    over_items = ratio_estimate(differences.mean(0), weight, clusters)
    spread = Spread(
        items=over_items.standard_error or 0.0,
        seeds=float(by_seed.std(ddof=1)) / math.sqrt(len(by_seed)),
        clusters=over_items.clusters,
        runs=len(by_seed),
    )
    interval = _interval(over_items, spread, level)
    return Difference(
        metric=metric,
        value=over_items.value,
        by_seed=tuple(by_seed.tolist()),
        spread=spread,
        interval=interval,
        detectable=spread.detectable(level),
        verdict=_verdict(interval, over_items),
    )


def expected_spread(*, items: int, clusters: int, seeds: int, paired_sd: float, seed_sd: float) -> Spread:
    """The spread to expect before anything is trained: two runs a seed differ by sqrt(2) times the spread of one."""
    return Spread(
        items=paired_sd / math.sqrt(items), seeds=seed_sd * math.sqrt(2 / seeds), clusters=clusters, runs=seeds
    )


def _interval(estimate: Estimate, spread: Spread, level: float) -> Interval:
    reach = spread.reach(level)
    return Interval(low=estimate.value - reach, high=estimate.value + reach, level=level)


def _verdict(interval: Interval, estimate: Estimate) -> Verdict:
    """One cluster of items says nothing on others, whatever its interval."""
    if estimate.clusters < 2 or interval.low <= 0 <= interval.high:
        return "cannot be told"
    return "better" if interval.high < 0 else "worse"
