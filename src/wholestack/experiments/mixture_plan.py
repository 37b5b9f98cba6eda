"""What a comparison of mixtures is told, and the records that it writes.

=========================  ============================  ==================================================
file                       record                        appears
=========================  ============================  ==================================================
``run.json``               ``runs.RunManifest``          first of all; ``config`` holds the comparison
``initial/``               checkpoints                   with it, where training continues given weights
``data/``, ``items/``      as in a rehearsal             after these phases
``comparison-plan.json``   :class:`ComparisonPlan`       before the first training
``suggestions.jsonl``      ``records.SuggestionRecord``  before a training starts
``trials.jsonl``           ``records.TrialRecord``       when it has ended
``jobs/NAME/scores.npz``   ``evals.ItemScores``          with it
``mixtures.json``          :class:`MixturesOutcome`      last of all
=========================  ============================  ==================================================
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from wholestack.errors import InputError
from wholestack.evals.statistics import Interval
from wholestack.experiments.mixture_verdict import Difference, Verdict
from wholestack.experiments.recipe import Recipe
from wholestack.experiments.specs import MixtureStretch, TrainingSpec
from wholestack.record import Record, from_json

KIND = "mixtures"
COMPARISON_PLAN = "comparison-plan.json"
MIXTURES = "mixtures.json"
INITIAL = "initial"
EVEN = "even"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase(Record):
    """A part of a schedule."""

    share: float
    """Share of the run's tokens."""
    weights: dict[str, float]
    """Share of sequences of each source in it; need not sum to one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Record):
    """Which mixtures to compare; a constant mixture is a schedule of one phase.

    Raises:
        InputError: no contender, an unknown baseline, or a schedule that is none.
    """

    SCHEMA: ClassVar[str] = "mixtures/1"

    mixtures: dict[str, tuple[Phase, ...]]
    """By name, the baseline among them."""
    baseline: str
    """Name of the one that all others are compared to."""
    recipe: str = "laptop"
    """Built-in name or Python file: sources, model, tokenizer, evaluation."""
    rates: tuple[float, ...] = ()
    """Learning rates that every mixture tries, over the recipe's (or the given weights') own; default three."""
    tokens: int | None = None
    """Training tokens of each run; default: what the budget allows."""
    params: dict[str, float] | None = None
    """Other settings of the recipe than its centre, for instance ``width``."""

    def __post_init__(self) -> None:
        if self.baseline not in self.mixtures or len(self.mixtures) < 2:
            raise InputError(
                f"the baseline is {self.baseline!r}, mixtures are {', '.join(self.mixtures) or 'none'}",
                remedy="name the baseline among the mixtures, with at least one other",
            )
        if any(rate <= 0 for rate in self.rates):
            raise InputError(f"rates are {self.rates}, must be above 0")
        for name, phases in self.mixtures.items():
            _check(name, phases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(Record):
    """The weights that training continues from."""

    given: str
    """What the user named."""
    spec: TrainingSpec
    """How they were trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan(Record):
    """Costs, and what can be seen, before anything is trained."""

    SCHEMA: ClassVar[str] = "comparison-plan/1"

    runs: int
    """Trainings in all."""
    tokens: int
    """Of each."""
    steps: int
    cost_flops: float
    """Training FLOPs of each: the same for all, so is the model."""
    lr: float
    """That the rates multiply."""
    rates: tuple[float, ...]
    rate_flops_s: float
    """Measured training speed of one worker."""
    expected_s: float
    """Wall seconds of all trainings."""
    seeds: int
    items: int
    clusters: int
    level: float
    """Of each interval: 95 % for all of them together (Bonferroni)."""
    detectable: float
    """Smallest true difference that is expected to be found with probability 0.8, bits per byte."""
    basis: str
    """What that rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting(Record):
    """Loss on held-out text of the old mixture, before and after."""

    before_bpb: float
    after_bpb: float
    """Mean over seeds."""
    difference: float
    """After minus before: above zero something was forgotten."""
    interval: Interval | None
    """Over documents and seeds; ``None`` with one document or one seed."""
    documents: int
    """Documents that the held-out text is of; near-duplicates count as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureResult(Record):
    """One mixture: the rate that it chose, what it reached, and how it stands to the baseline."""

    name: str
    lr: float | None
    """Best of its rates; ``None`` where every one failed."""
    rate_losses: dict[str, float | None]
    """Loss by rate; ``None`` where it diverged or failed."""
    at_edge: bool
    """Whether the best rate is the lowest or highest that was tried: a better one may lie outside."""
    values: tuple[float, ...]
    """Metric of each seed that ended well."""
    difference: Difference | None
    """From the baseline; ``None`` for the baseline itself and where it could not be told at all."""
    verdict: Verdict | Literal["baseline"]
    sentence: str
    forgetting: Forgetting | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MixturesOutcome(Record):
    """What a comparison came to; what ``--json`` prints."""

    SCHEMA: ClassVar[str] = "mixtures-outcome/1"

    metric: str
    """With its item set."""
    baseline: str
    plan: ComparisonPlan
    trainings: int
    """That ended, of ``plan.runs``."""
    finished: bool
    """Whether all that was wanted was trained; ``False`` where the budget was used up before."""
    results: tuple[MixtureResult, ...]
    warnings: tuple[str, ...]
    seconds: float
    """Wall seconds used; pauses between a kill and a resume do not count."""
    budget_s: float
    exit_code: int


def read_comparison(path: Path) -> Comparison:
    """A comparison from a JSON file.

    Raises:
        InputError: it cannot be read.
        RecordError: it is no comparison; names what is wrong.
    """
    try:
        return from_json(Comparison, path.read_bytes(), where=str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", remedy="name an existing file") from error


def default_comparison(recipe: Recipe, name: str) -> Comparison:
    """For a recipe of several sources: each one heavy all along, and each one heavy towards the end, against even.

    Raises:
        InputError: the recipe has one source.
    """
    names = [source.name for source in recipe.sources]
    if len(names) < 2:
        raise InputError(f"recipe {name!r} has one source", remedy="a mixture needs two")
    even = dict.fromkeys(names, 1.0)
    mixtures: dict[str, tuple[Phase, ...]] = {EVEN: (Phase(share=1.0, weights=even),)}
    for each in names:
        heavy = {**even, each: 3.0 * (len(names) - 1)}
        light = {**even, each: (len(names) - 1) / 3.0}
        mixtures[f"more {each}"] = (Phase(share=1.0, weights=heavy),)
        mixtures[f"{each} last"] = (Phase(share=0.5, weights=light), Phase(share=0.5, weights=heavy))
    return Comparison(mixtures=mixtures, baseline=EVEN, recipe=name)


def stretches(phases: tuple[Phase, ...], sequences: int) -> tuple[MixtureStretch, ...]:
    """A schedule over a run of so many sequences; a phase that is shorter than one of them falls away."""
    ends = [round(share * sequences) for share in itertools.accumulate(phase.share for phase in phases)]
    starts = [0, *ends[:-1]]
    return tuple(
        MixtureStretch(first_sequence=start, weights=phase.weights)
        for phase, start, end in zip(phases, starts, ends, strict=True)
        if end > start
    )


def overall(phases: tuple[Phase, ...]) -> dict[str, float]:
    """What the phases of a schedule come to together, summing to one."""
    total: dict[str, float] = {}
    for phase in phases:
        for source, share in _shares(phase.weights).items():
            total[source] = total.get(source, 0.0) + phase.share * share
    return {source: share for source, share in total.items() if share > 0}


def told(phases: tuple[Phase, ...]) -> str:
    """A schedule in words: ``code 75 %, prose 25 %, then code 25 %, prose 75 % from 50 % of the tokens``."""
    begun = 0.0
    parts: list[str] = []
    for phase in phases:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in _shares(phase.weights).items() if share > 0)
        parts.append(shares if not parts else f"from {begun:.0%} of the tokens {shares}")
        begun += phase.share
    return "; ".join(parts)


def _shares(weights: Mapping[str, float]) -> dict[str, float]:
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _check(name: str, phases: tuple[Phase, ...]) -> None:
    if not phases or abs(sum(phase.share for phase in phases) - 1) > 1e-6 or any(phase.share <= 0 for phase in phases):
        raise InputError(
            f"mixture {name!r}: its phases have the shares {[phase.share for phase in phases]}",
            remedy="give shares above 0 that sum to 1",
        )
    for phase in phases:
        if any(weight < 0 for weight in phase.weights.values()) or sum(phase.weights.values()) <= 0:
            raise InputError(f"mixture {name!r}: weights are {phase.weights}", remedy="give numbers of 0 or more")
