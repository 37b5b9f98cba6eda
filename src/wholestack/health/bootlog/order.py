"""Which line comes before which, as far as that always held; and which lines of a boot broke it.

Drivers that start side by side make part of the order a matter of luck. A pair counts where it held in every boot whose
order is kept, and held clearly: the least distance is three times the range of them, or both lines are of one device,
which the kernel brings up in one thread. Not all pairs are looked at: each line with its nearest ones, then with ever
farther ones, some 60 of each line, so the work grows with the number of lines and not with its square.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NEAR = 32
"""Neighbours in the mean order that are all looked at; beyond, distances grow by a quarter."""
FEWEST_TOGETHER = 5
"""Boots in which both lines came."""
CLEAR = 3.0
"""Least distance over the range of distances. Delays have long tails: what lies three ranges beyond all that was seen
is rare even if they are exponential (one in some 100,000 after 20 boots)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precedence:
    """Pairs of units that always came in one order; parallel arrays."""

    before: NDArray[np.int64]
    after: NDArray[np.int64]
    support: NDArray[np.int64]
    """Boots in which both came."""
    mean: NDArray[np.float64]
    """Mean place of every unit, 0 to 1; the middle for one whose order is not known."""
    looked_at: int
    """Pairs that were compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One unit that came elsewhere than always."""

    unit: int
    other: int
    """One that it passed."""
    early: bool
    """It came before ``other`` though it always came after it."""
    support: int


def distances(units: int) -> list[int]:
    """In the mean order, that are looked at."""
    found, step = list(range(1, NEAR + 1)), NEAR
    while (step := step + step // 4) < units:
        found.append(step)
    return [each for each in found if each < units]


def learn_precedence(places: NDArray[np.float64], devices: Sequence[str]) -> Precedence:
    """Learn from some boots.

    Args:
        places: [units, boots] place at which a unit first came in a boot; NaN where it did not.
        devices: Of each unit; empty where it is of none.
    """
    units = len(places)
    count = np.sum(~np.isnan(places), axis=1) if places.size else np.zeros(units)
    highest = np.nanmax(places) if np.any(count) else 1.0
    mean = np.full(units, 0.5)
    known = count > 0
    mean[known] = np.nanmean(places[known], axis=1) / max(highest, 1.0)
    order = np.argsort(mean, kind="stable")
    same = {name: number for number, name in enumerate(dict.fromkeys(devices))}
    device = np.array([same[name] if name else -1 - place for place, name in enumerate(devices)])[order]
    sorted_places = places[order]
    found: list[NDArray[np.int64]] = []
    looked_at = 0
    for distance in distances(units) if places.size else []:
        step = sorted_places[distance:] - sorted_places[:-distance]
        looked_at += len(step)
        held, together = _clearly_held(step, device[distance:] == device[:-distance])
        (first,) = np.nonzero(held)
        found.append(np.stack([order[first], order[first + distance], together[first]]))
    pairs = np.concatenate(found, axis=1) if found else np.zeros((3, 0), dtype=np.int64)
    return Precedence(before=pairs[0], after=pairs[1], support=pairs[2], mean=mean, looked_at=looked_at)


def _clearly_held(
    step: NDArray[np.float64], one_device: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    there = ~np.isnan(step)
    together = there.sum(axis=1)
    least = np.where(there, step, np.inf).min(axis=1, initial=np.inf)
    spread = np.where(there, step, -np.inf).max(axis=1, initial=-np.inf) - least
    clear = one_device | (least >= CLEAR * spread)
    return (least > 0) & (together >= FEWEST_TOGETHER) & clear, together


def broken(precedence: Precedence, places: Mapping[int, int]) -> list[Moved]:
    """The fewest units, as far as greed finds them, whose move explains every pair that is the wrong way round.

    Args:
        precedence: Learnt.
        places: Of the units that the boot has.
    """
    at = np.full(len(precedence.mean), -1, dtype=np.int64)
    if places:
        at[np.fromiter(places, dtype=np.int64)] = np.fromiter(places.values(), dtype=np.int64)
    first, second = at[precedence.before], at[precedence.after]
    (wrong,) = np.nonzero((first >= 0) & (second >= 0) & (first > second))
    met: dict[int, set[int]] = {}
    for pair in wrong.tolist():
        met.setdefault(int(precedence.before[pair]), set()).add(pair)
        met.setdefault(int(precedence.after[pair]), set()).add(pair)
    moved: list[Moved] = []
    while met:
        unit = max(met, key=lambda each: (len(met[each]), -each))
        pairs = met.pop(unit)
        if not pairs:
            break
        moved.append(_moved(precedence, unit, min(pairs)))
        for pair in pairs:
            for end in (int(precedence.before[pair]), int(precedence.after[pair])):
                if end in met:
                    met[end].discard(pair)
        met = {each: left for each, left in met.items() if left}
    return moved


def _moved(precedence: Precedence, unit: int, pair: int) -> Moved:
    before, after = int(precedence.before[pair]), int(precedence.after[pair])
    early = unit == after
    return Moved(unit=unit, other=before if early else after, early=early, support=int(precedence.support[pair]))
