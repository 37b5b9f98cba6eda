"""The smallest difference between two models that an item set can show, said before anything is run.

Both models answer the same n items; t is the quantile of the two-sided test with (clusters - 1) degrees of freedom, z
the normal quantile of the power.

- A loss: (t + z) * SD / sqrt(n), SD the assumed spread of one item's difference.
- Accuracy: the answers differ in being right on a share d of items, their difference is D <= d, and one item's
  difference has variance d under no difference and d - D^2 under D. So D solves
  sqrt(n) D = t sqrt(d) + z sqrt(d - D^2) (Connor 1987, for McNemar's test), with d = max(1 - agreement, D). With the
  exact test, which is cautious on few items, a power of 0.8 comes out as 0.77 to 0.80 (100 to 1,000 items).
"""

import math

from scipy.special import ndtri, stdtrit

from wholestack.errors import InputError
from wholestack.evals.statistics import ASSUMED_PAIRED_SD_BPB, DetectableDifference, detectable_difference

ASSUMED_AGREEMENT = 0.8
"""Share of items on which two models are both right or both wrong. Four pairs of small models on 400 continuation
choices differed on at most 0.10 of them (paired SD 0.322; ``benchmarks/scoring.py spread``); twice that is assumed,
for on harder items models differ on more: two that are each right on half of them by luck differ on 0.5."""
ASSUMED_PAIRED_SD_NATS_PER_BYTE = 0.15
"""Spread of one item's difference in ``choice_nll_per_byte``: the largest of the same four pairs (0.049 other seed,
0.049 wider, 0.142 lower rate, 0.149 half the steps). For ``choice_nll_raw`` it is taken times the bytes of an answer,
which for those pairs gives 9.6 nats where 8.4 were measured."""


ASSUMED_CORRELATION = 0.1
"""Of the differences of two items of one group (a passage, a document). An assumption: a variance of a mean over groups
of m items is 1 + (m - 1) times this as large (Kish 1965); at 0.3 the difference that is seen is larger still."""


def detectable_before_scoring(
    *,
    items: int,
    clusters: int | None = None,
    paired_sd_bpb: float = ASSUMED_PAIRED_SD_BPB,
    paired_sd_nats_per_byte: float = ASSUMED_PAIRED_SD_NATS_PER_BYTE,
    answer_bytes: float | None = None,
    agreement: float = ASSUMED_AGREEMENT,
    level: float = 0.05,
    power: float = 0.8,
) -> tuple[DetectableDifference, ...]:
    """What so many items can show in ``answer_bpb``, accuracy and choice loss; what they cannot show at all is absent.

    Args:
        items: Items that both models will answer.
        clusters: Independent clusters among them; default every item by itself.
        paired_sd_bpb: Assumed spread of one item's difference, bits per byte.
        paired_sd_nats_per_byte: The same in the choice loss per byte.
        answer_bytes: Mean bytes of an answer; without it nothing is said of the raw choice loss.
        agreement: Assumed share of items on which both models are right or both wrong.
        level: Two-sided error probability of the test.
        power: Probability of finding a difference of the returned size.
    """
    groups = items if clusters is None else clusters
    if groups < 2:
        return ()

    def loss(paired_sd: float, metric: str, basis: str) -> DetectableDifference:
        return detectable_difference(
            items=items,
            clusters=groups,
            paired_sd=paired_sd,
            level=level,
            power=power,
            design_effect=design_effect(items, groups),
            metric=metric,
            basis=basis + _grouped(items, groups),
        )

    accuracy = detectable_accuracy(items=items, clusters=groups, agreement=agreement, level=level, power=power)
    per_byte = f"assumed paired SD {paired_sd_nats_per_byte:g} nats per byte"
    found = [
        loss(paired_sd_bpb, "answer_bpb, bits per byte", f"assumed paired SD {paired_sd_bpb:g} bits per byte"),
        loss(paired_sd_nats_per_byte, "choice_nll_per_byte, nats", per_byte),
    ]
    if answer_bytes is not None:
        basis = f"{per_byte}, answers of {answer_bytes:.3g} bytes"
        found.append(loss(paired_sd_nats_per_byte * answer_bytes, "choice_nll_raw, nats", basis))
    return (*found, accuracy) if accuracy else tuple(found)


def detectable_accuracy(
    *,
    items: int,
    clusters: int | None = None,
    agreement: float = ASSUMED_AGREEMENT,
    level: float = 0.05,
    power: float = 0.8,
) -> DetectableDifference | None:
    """Smallest true difference in accuracy that a paired comparison finds; ``None`` if even the largest is not.

    Raises:
        InputError: the agreement is not from 0 to 1.
    """
    from scipy.optimize import brentq  # a third of what importing this package takes

    if not 0 <= agreement <= 1:
        raise InputError(f"agreement is {agreement}, must be from 0 to 1")
    groups = items if clusters is None else clusters
    independent = items / design_effect(items, groups)
    t, z = float(stdtrit(groups - 1, 1 - level / 2)), float(ndtri(power))

    def excess(difference: float) -> float:
        differing = max(1 - agreement, difference)
        spread = math.sqrt(max(0.0, differing - difference**2))
        return math.sqrt(independent) * difference - t * math.sqrt(differing) - z * spread

    if excess(1.0) <= 0:
        return None
    difference = float(brentq(excess, 1e-12, 1.0))
    return DetectableDifference(
        metric="accuracy, share of items",
        difference=difference,
        items=items,
        clusters=groups,
        paired_sd=math.sqrt(max(1 - agreement, difference)),
        level=level,
        power=power,
        basis=f"paired binomial; assumed: both right or both wrong on {agreement:.0%} of the items"
        + _grouped(items, groups),
    )


def design_effect(items: int, clusters: int) -> float:
    """How much larger the variance of a mean is than if all items were independent, under the assumed correlation."""
    return 1 + (items / clusters - 1) * ASSUMED_CORRELATION


def _grouped(items: int, clusters: int) -> str:
    return f"; differences within a group correlate by {ASSUMED_CORRELATION:g}" if clusters < items else ""
