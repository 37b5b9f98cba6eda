"""What numbers of single items must offer to be compared, and the names of what is compared.

There are two families, which are never mixed: a model **chooses** (log-likelihoods of given choices, base competence)
or it **writes** (texts that are judged, reasoning or usefulness).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from wholestack.errors import InputError
from wholestack.evals.statistics import Floats, Ints

Texts = npt.NDArray[np.str_]
Flags = npt.NDArray[np.bool_]


class ItemNumbers(Protocol):
    """What one model gave to every item of a set, whether it chose or wrote."""

    @property
    def item_set(self) -> str:
        """Digest of the set."""

    @property
    def item_ids(self) -> Texts:
        """``[items]``."""

    @property
    def sources(self) -> Texts:
        """``[items]``."""

    @property
    def clusters(self) -> Ints:
        """``[items]``; equal numbers are one cluster."""

    @property
    def reasons(self) -> Texts:
        """``[items]``, why it has no number; empty if it has."""

    @property
    def is_scored(self) -> Flags:
        """``[items]``."""

    def take(self, places: Ints) -> Self:
        """Some of the items, or all in another order."""

    def values(self, metric: str) -> tuple[Floats, Floats]:
        """Numerator and weight of every item, ``[items]`` each: the metric is the ratio of their sums."""

    def standing(self) -> Floats:
        """``[items]``, how the right answer stands with the model; the family says in which unit."""

    def beats(self, other: Self, metric: str) -> Flags:
        """``[items]``, where this model is right and the other is not, in the sense of a metric."""

    def equals(self, other: Self) -> Flags:
        """``[items]``, where both gave the same, so that no metric could tell them apart."""


N = TypeVar("N", bound=ItemNumbers)


def relabelled(numbers: N, **changes: object) -> N:
    """The same numbers under other ids, clusters, reasons or the like."""
    return replace(numbers, **changes)  # type: ignore[type-var]  # those that there are, are dataclasses


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFamily:
    """Metrics of one way to answer."""

    default: str
    """The one that is taken where one is needed and none is named."""
    usual: tuple[str, ...]
    """Those that are shown where none is named."""
    names: tuple[str, ...]
    """All that can be compared."""
    variants: Mapping[str, str]
    """Short names with what they stand for."""
    standing: str
    """What :meth:`ItemNumbers.standing` is, with its unit."""
    equal: str
    """What two models gave that are equal."""

    def full(self, metric: str) -> str:
        """A metric's whole name; ``accuracy`` is ``accuracy_raw``, nothing the default.

        Raises:
            InputError: it is not of this family.
        """
        full = self.variants.get(metric, metric) or self.default
        if full not in self.names:
            raise InputError(f"no metric {metric!r} to compare", remedy=f"known are: {', '.join(self.names)}")
        return full


_KINDS = ("choice_nll", "accuracy", "brier")
_VARIANTS = ("raw", "per_byte", "per_token", "per_char")
CHOOSING = MetricFamily(
    default="answer_bpb",
    usual=("answer_bpb", "choice_nll_raw", "accuracy_raw"),
    names=("answer_bpb", "answer_bpb_macro", *(f"{kind}_{each}" for kind in _KINDS for each in _VARIANTS)),
    variants={kind: f"{kind}_raw" for kind in _KINDS},
    standing="log-likelihood of the right answer, nats",
    equal="the same numbers for every choice of every item",
)
SHARE_RIGHT = "share_right"
WRITING = MetricFamily(
    default=SHARE_RIGHT,
    usual=(SHARE_RIGHT,),
    names=(SHARE_RIGHT,),
    variants={},
    standing="share of its texts that are right",
    equal="the same texts behind every question",
)


def unit_of(metric: str) -> str:
    """Unit of a metric, empty for shares."""
    return {"answer": "bits per byte", "choice": "nats"}.get(metric.partition("_")[0], "")


def lower_is_better(metric: str) -> bool:
    """Direction of a metric."""
    return not is_share_of_right(metric)


def is_share_of_right(metric: str) -> bool:
    """Whether it counts right answers, so that a test of won and lost ones fits it."""
    return metric.startswith(("accuracy", SHARE_RIGHT))


def variant_of(metric: str) -> str:
    """How the choices' likelihoods are normalised where it counts right answers; empty of written answers."""
    if metric == SHARE_RIGHT:
        return ""
    return next((each for each in _VARIANTS if metric.endswith(f"_{each}")), "raw")
