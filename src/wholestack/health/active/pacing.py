"""Timing of devices in turn, so that what changes with time changes for all, until each is decided."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from wholestack.health.active.device import Device
from wholestack.health.active.operands import Case, PrecisionName, WordArray, left_operand, noise, right_operand
from wholestack.health.active.speed import MOST_SAMPLES, Bound, Pace, Reference, SequentialTest, Verdict, bounds_for

FIRST_SAMPLES = 20
"""That are always taken: a level is their median."""
FEWEST_SAMPLES = 8
"""Below which a pace is not one."""
TIMINGS = 5
"""A sample is the median of so many: it keeps hiccups out and is narrower than one timing."""
TIMING_S = 0.02
"""Each takes at least so long."""
MOST_REPEATS = 1 << 14
COPY_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Paced:
    """One measure of one device, judged."""

    pace: Pace
    verdict: Verdict
    bound: Bound | None
    """``None``: there is nothing to compare with."""
    decided_at: int
    """Sample with which it was decided; 0 where it is open."""

    @property
    def slower(self) -> float:
        """Share by which its level is below the usual one; 0 without a bound."""
        return 1 - math.exp(self.pace.level - self.bound.usual) if self.bound else 0.0


@dataclass(slots=True)
class _Series:
    device: Device
    measure: str
    sample: Callable[[], float]
    """Gives one rate."""
    rates: list[float] = field(default_factory=list)
    bound: Bound | None = None
    test: SequentialTest | None = None

    @property
    def is_over(self) -> bool:
        """Whether more samples would tell nothing."""
        decided = self.test is None or self.test.verdict != "open"
        return len(self.rates) >= (FIRST_SAMPLES if decided else MOST_SAMPLES)


def measure(
    devices: Sequence[Device],
    *,
    side: Mapping[str, int],
    reference: Reference | None,
    false_rate: float,
    late: Callable[[], bool],
) -> dict[str, list[Paced]]:
    """Time products and copies on every device in turn.

    Args:
        devices: All on one host.
        side: Of a square product, by identity of the part.
        reference: What was learnt of their kinds.
        false_rate: Of each measure of each device.
        late: Whether time is up.

    Returns:
        By identity of the part; nothing of a measure with too few samples.
    """
    found: dict[str, list[Paced]] = {device.part.identity: [] for device in devices}
    for prepare in (_products, _copies):
        series = [prepare(device, side[device.part.identity]) for device in devices if not late()]
        _first_samples(series, late)
        for each in series:
            _compare(each, series, reference, false_rate)
        while not late() and any(not each.is_over for each in series):
            for each in series:
                if not each.is_over:
                    each.rates.append(each.sample())
                    if each.test is not None:
                        each.test.take(math.log(each.rates[-1]))
        for each in series:
            if len(each.rates) >= FEWEST_SAMPLES:
                found[each.device.part.identity].append(_judged(each))
    return found


def _first_samples(series: Sequence[_Series], late: Callable[[], bool]) -> None:
    for _ in range(FIRST_SAMPLES):
        for each in series:
            if late():
                return
            each.rates.append(each.sample())


def _compare(one: _Series, series: Sequence[_Series], reference: Reference | None, false_rate: float) -> None:
    if len(one.rates) < FEWEST_SAMPLES:
        return
    beside = [
        Pace(measure=each.measure, rates=tuple(each.rates)).level
        for each in series
        if each is not one and (each.device.kind, each.measure) == (one.device.kind, one.measure) and each.rates
    ]
    device = one.device
    one.bound, share = bounds_for(
        device.kind, one.measure, device.serial, reference=reference, siblings=beside, false_rate=false_rate
    )
    if one.bound is not None:
        one.test = SequentialTest(one.bound.log_rate, share)
        for rate in one.rates:
            one.test.take(math.log(rate))


def _judged(each: _Series) -> Paced:
    return Paced(
        pace=Pace(measure=each.measure, rates=tuple(each.rates)),
        verdict=each.test.verdict if each.test else "open",
        bound=each.bound,
        decided_at=each.test.decided_at if each.test else 0,
    )


def _products(device: Device, side: int) -> _Series:
    precision: PrecisionName = "bfloat16" if "bfloat16" in device.precisions else "float32"
    case = Case(pattern="random", precision=precision, rows=side, inner=side, columns=side, seed=0)
    left, right = device.put(left_operand(case), precision), device.put(right_operand(case), precision)
    sample = _sampling(device, lambda: device.multiply(left, right, precision), work=2.0 * side**3)
    return _Series(device, f"product.{precision}_{side}_flop_s", sample)


def _copies(device: Device, _: int) -> _Series:
    words: WordArray = noise(0, COPY_BYTES // 8)
    held = device.write(words)
    return _Series(device, "copy.bytes_s", _sampling(device, lambda: device.copy(held), work=2.0 * COPY_BYTES))


def _sampling(device: Device, work_once: Callable[[], object], *, work: float) -> Callable[[], float]:
    """Repeats the work until it is long enough to be timed; what that takes is thrown away as warming up."""
    repeats = 1

    def repeated() -> None:
        for _ in range(repeats):
            work_once()

    while device.timed(repeated) < TIMING_S and repeats < MOST_REPEATS:
        repeats *= 2

    def sample() -> float:
        return float(work * repeats / max(median(device.timed(repeated) for _ in range(TIMINGS)), 1e-9))

    return sample
