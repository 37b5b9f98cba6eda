"""Is a device slower than its kind? A sequential test with a stated false rate, free of shapes where that can be.

Notation: ``y`` is the logarithm of a rate, a device's *level* the median of its ``y`` in one probe, ``D`` levels of a
kind were learnt, ``alpha`` is the chance that a sound device is called slow. Two things can go wrong, and each gets its
share of ``alpha``:

1. A sound device's level lies below the *bound* of sound levels. With ``D + 1 >= 1 / share`` levels the bound is an
   order statistic: a new level of the same kind lies below the k-th lowest of D with chance ``k / (D + 1)``, whatever
   their distribution (conformal prediction). With fewer nothing can be promised without a shape: the bound is then the
   lower of the lowest level and of Student's prediction bound, from the lower half's spread.
2. The bound lies below the device's median, yet its samples fell below the bound. Under that null each sample is below
   with a chance of at most a half, so ``E = prod (1 +- BET)``, plus where it is below, is a non-negative
   supermartingale: it reaches ``1 / share`` with a chance of at most the share, at whatever sample one stops (Ville
   1939; Ramdas et al. 2023). Nothing is asked of the samples' distribution, so hiccups do no harm; they must not
   depend on each other beyond what moves the whole level (temperature), which is in the levels that were learnt.

Where the device itself was probed before, its own earlier levels give a second bound of their own share: between
devices of one kind rates differ by several per cent in steady state (Sinha et al. 2022, SC22: 8 % on average over five
clusters, 22 % at most), so that 2 % below the kind can be sound; 2 % below itself is not.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from scipy.stats import t as student

from wholestack.errors import InputError
from wholestack.health.outliers import standing_out
from wholestack.record import Record

FALSE_RATE = 1e-3
"""Chance that a sound device is called slow in one probe and measure."""
MOST_SAMPLES = 60
FEWEST_LEVELS = 3
"""From which a bound is drawn."""
FEWEST_OWN = 4
BET = 0.9
"""Pays most where 19 of 20 samples are below; twelve in a row decide at a share of 5e-4."""
LEARNING_ALPHA = 0.01
"""Chance that learning leaves any sound device of a kind out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace(Record):
    """What one measure of one device came to in one probe."""

    measure: str
    """``noun.what_unit``, for instance ``product.float32_per_s``."""
    rates: tuple[float, ...]
    """In the order in which they were measured, all above 0."""

    @property
    def level(self) -> float:
        """Median of the logarithms."""
        return float(np.median(np.log(self.rates)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Level(Record):
    """A level that was learnt."""

    log_rate: float
    serial: str = ""
    """Of the device, where it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference(Record):
    """How fast sound devices are."""

    SCHEMA: ClassVar[str] = "pace/1"

    levels: dict[str, tuple[Level, ...]] = field(default_factory=dict)
    """By :func:`key_of` kind and measure; a line for every device and probe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Below which a level is not sound."""

    log_rate: float
    usual: float
    """The median level."""
    against: str
    """What it is compared with, in words."""


Verdict = Literal["slow", "sound", "open"]


def key_of(kind: str, measure: str) -> str:
    """What levels are kept under."""
    return f"{kind} | {measure}"


class SequentialTest:
    """Samples against one bound, until it is decided.

    Args:
        bound: Logarithm of a rate.
        share: Chance that a device with its median at the bound is called slow.
    """

    def __init__(self, bound: float, share: float) -> None:
        self.bound = bound
        self._slow = self._sound = 0.0
        self._enough = -math.log(share)
        self.verdict: Verdict = "open"
        self.taken = self.decided_at = 0

    def take(self, log_rate: float) -> Verdict:
        """One more sample; a verdict stays."""
        below = log_rate < self.bound
        self.taken += 1
        self._slow += math.log1p(BET if below else -BET)
        self._sound += math.log1p(-BET if below else BET)
        if self.verdict == "open" and max(self._slow, self._sound) >= self._enough:
            self.verdict = "slow" if self._slow > self._sound else "sound"
            self.decided_at = self.taken
        return self.verdict


def bound_of(levels: Sequence[float], *, share: float, against: str, fewest: int = FEWEST_LEVELS) -> Bound | None:
    """The bound of sound levels, or ``None`` if there are too few."""
    if len(levels) < fewest:
        return None
    ordered = np.sort(np.asarray(levels, dtype=float))
    usual = float(np.median(ordered))
    rank = math.floor(share * (len(ordered) + 1))
    if rank >= 1:
        return Bound(log_rate=float(ordered[rank - 1]), usual=usual, against=against)
    below = usual - ordered[ordered <= usual]
    # Twice the mean square of the lower half: a skewed tail on the slow side counts in full.
    spread = math.sqrt(float((below**2).sum()) / max(len(below) - 1, 1))
    reach = float(student.ppf(1 - share, len(ordered) - 1)) * spread * math.sqrt(1 + 1 / len(ordered))
    return Bound(log_rate=min(usual - reach, float(ordered[0])), usual=usual, against=against)


def bounds_for(
    kind: str,
    measure: str,
    serial: str,
    *,
    reference: Reference | None,
    siblings: Sequence[float] = (),
    false_rate: float = FALSE_RATE,
) -> tuple[Bound | None, float]:
    """The bound that counts, the higher of those there are, and the share that is left for the samples.

    Args:
        kind: Of the device.
        measure: What is measured.
        serial: Of the device.
        reference: What was learnt.
        siblings: Levels of the other devices of this kind on the host; asked only where nothing was learnt.
        false_rate: Of the whole comparison.
    """
    learnt = reference.levels.get(key_of(kind, measure), ()) if reference else ()
    own = [each.log_rate for each in learnt if serial and each.serial == serial]
    others = _one_each(each for each in learnt if not serial or each.serial != serial)
    has_own = len(own) >= FEWEST_OWN
    share = false_rate / (3 if has_own else 2)
    found = [
        bound_of(own, share=share, against=f"its own {len(own)} earlier probes", fewest=FEWEST_OWN),
        bound_of(others, share=share, against=f"{len(others)} devices of its kind"),
    ]
    known = [each for each in found if each is not None]
    if not known:
        beside = bound_of(siblings, share=share, against=f"the {len(siblings)} others on this host")
        known = [beside] if beside is not None else []
    return max(known, key=lambda each: each.log_rate, default=None), share


def learn(measured: Iterable[tuple[str, str, Pace]], old: Reference | None = None) -> tuple[Reference, list[str]]:
    """A reference from probes: (kind, serial, pace) each, of devices in which nothing else was wrong.

    Returns:
        The reference, and a line for every device that stands out of its kind on the slow side and was left out.

    Raises:
        InputError: there is nothing to learn from.
    """
    by_key = {key: list(levels) for key, levels in old.levels.items()} if old else {}
    for kind, serial, pace in measured:
        by_key.setdefault(key_of(kind, pace.measure), []).append(Level(log_rate=pace.level, serial=serial))
    if not by_key:
        raise InputError("no paces to learn from", remedy="name run directories of `wholestack health probe`")
    left_out: list[str] = []
    for key, levels in by_key.items():
        slow = standing_out(-np.array([each.log_rate for each in levels]), alpha=LEARNING_ALPHA)
        members = set(slow.members) if slow is not None else set()
        left_out += [f"{key}: {levels[place].serial or 'a device'} stands out" for place in sorted(members)]
        by_key[key] = [each for place, each in enumerate(levels) if place not in members]
    return Reference(levels={key: tuple(levels) for key, levels in sorted(by_key.items())}), left_out


def _one_each(levels: Iterable[Level]) -> list[float]:
    """The latest of every device: repeated probes of one must not make its kind look narrower."""
    named: dict[str, float] = {}
    unnamed: list[float] = []
    for each in levels:
        if each.serial:
            named[each.serial] = each.log_rate
        else:
            unnamed.append(each.log_rate)
    return [*named.values(), *unnamed]
