"""What a rehearsal writes into its run directory, file by file.

======================  ==============================  ===============================================
file                    record                          appears
======================  ==============================  ===============================================
``run.json``            ``runs.RunManifest``            first of all; ``config`` is the recipe
``phases.jsonl``        :class:`PhaseRecord`            when a phase begins and when it ends
``plan.json``           :class:`Plan`                   after the preflight
``data/``               ``data.Corpus``                 after the data phase
``data-statement.txt``  text                            with it
``items/``              ``evals.ItemSet``, prepared.npz  after the evaluation phase
``baselines.json``      :class:`Baselines`              with it
``suggestions.jsonl``   :class:`SuggestionRecord`       before a trial starts
``trials.jsonl``        :class:`TrialRecord`            when a trial is acknowledged, rung and large run included
``laws-search.json``    :class:`Laws`                   after the ladder
``laws-rung.json``      :class:`Laws`                   after the rung, fitted again with it
``jobs/NAME/``          spec, result, curve, logs       while a trial runs
``claims.jsonl``        ``claim.Claim``                 when sealed
``findings.jsonl``      ``finding.Finding``             when found
``skipped.jsonl``       ``finding.Skipped``             when a check did not apply
``outcome.json``        :class:`Outcome`                last of all
======================  ==============================  ===============================================

Costs are training FLOPs, times wall seconds since the epoch, losses bits per byte unless a name says otherwise.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from wholestack.claim import ClaimStatus
from wholestack.record import Record

Params = dict[str, float | int | str]
Role = Literal["random", "search", "ladder", "rung", "large", "scaled", "rate", "repeat"]
SMALL_ROLES: tuple[Role, ...] = ("random", "search", "ladder")
"""Trials: what is small beside rung and large run."""
TrialOutcome = Literal["ok", "diverged", "out_of_memory", "timeout", "failed", "abandoned"]
PhaseName = Literal["preflight", "data", "evaluation", "search", "scaling", "rung", "large", "landing"]
PHASE_ORDER: tuple[PhaseName, ...] = get_args(PhaseName)
"""The phases as they follow each other; every list of phases elsewhere is this one."""

KIND = "rehearsal"
"""Of the run directory."""
PHASES = "phases.jsonl"
PLAN = "plan.json"
SUGGESTIONS = "suggestions.jsonl"
TRIALS = "trials.jsonl"
LAWS_SEARCH = "laws-search.json"
LAWS_RUNG = "laws-rung.json"
OUTCOME = "outcome.json"
REPORT = "report.html"
CURVE = "curve.jsonl"
SPEC = "spec.json"
RESULT = "result.json"
PREDICTED = "predicted.jsonl"
PREPARED = "items/prepared.npz"
ITEM_SCORES = "scores.npz"
HELD_OUT = "held-out.npz"
STATEMENT = "data-statement.txt"
BASELINES = "baselines.json"
SKIPPED = "skipped.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baselines(Record):
    """What no training at all reaches."""

    SCHEMA: ClassVar[str] = "baselines/1"

    unigram_bpb: float
    """Bits per byte of a unigram model over the tokens, on the answers of the evaluation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRecord(Record):
    """A phase began or ended. A phase that began and did not end was interrupted and begins again."""

    SCHEMA: ClassVar[str] = "phase/1"

    phase: PhaseName
    event: Literal["began", "ended"]
    at: float
    """Seconds since the epoch."""
    used_s: float
    """Budget used so far by the whole rehearsal, in seconds; pauses between a kill and a resume do not count."""
    note: str = ""
    """One line on what came out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Record):
    """How the budget is shared, and the costs that follow from the measured speed of this machine."""

    SCHEMA: ClassVar[str] = "plan/1"

    budget_s: float
    """Wall time of everything after installation."""
    rate_flops_s: float
    """Training FLOP/s of one worker with one thread, as the preflight measured it."""
    large_threads: int
    """Threads of rung and large run: the recipe's, or one where more of them were no faster on this machine."""
    speed_up: float
    """How much faster they train than one thread."""
    max_trial_cost_flops: float
    """No trial may cost more."""
    rung_cost_flops: float
    """Cost of the rung."""
    target_cost_flops: float
    """Cost of the large run."""
    workers: int
    """Trials at a time."""
    seconds: dict[str, float]
    """Planned wall seconds by phase."""
    disk_bytes: int
    """Expected size of the run directory."""
    queued_share: float = 0.0
    """Share of the preflight's probes that was spent waiting for a processor which other work had."""
    slowdown: float = 1.0
    """How much slower than at the preflight the machine was when all costs were divided by it; 1 if they were not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestionRecord(Record):
    """What was about to be trained; written before the trial starts, so that a kill neither loses nor doubles it."""

    SCHEMA: ClassVar[str] = "suggestion/1"

    name: str
    """Name of the trial, for instance ``search-0007``."""
    role: Role
    number: int
    """Number of the suggestion within its role, from 0."""
    params: Params
    seed: int
    cost_flops: float
    """Training FLOPs that the trial will cost."""
    origin: str = ""
    """How the suggestion was made."""
    note: str = ""
    after: int | None = None
    """Trials that were acknowledged when the search made it: it follows from these and from the suggestions before it.
    ``None`` where it does not depend on them so (random, the laws' settings), and in older runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord(Record):
    """One finished training run with its evaluation."""

    SCHEMA: ClassVar[str] = "trial/1"

    name: str
    role: Role
    number: int
    """Number of the suggestion within its role, from 0."""
    params: Params
    """Settings by name, as trained."""
    seed: int
    outcome: TrialOutcome
    cost_flops: float
    """Training FLOPs; of a failed trial, those that it was going to cost."""
    parameters: int
    """Parameters without the embedding tables."""
    tokens: int
    """Tokens trained on."""
    seconds: float
    """Wall seconds of the whole process, evaluation included."""
    train_seconds: float
    """Wall seconds of the training steps alone."""
    cpu_seconds: float
    queued_seconds: float = 0.0
    """Of the training steps: ready to run while other work had the processor; of a resumed run its last sitting's."""
    peak_bytes: int
    """Largest resident memory seen."""
    threads: int
    metrics: dict[str, float] = field(default_factory=dict)
    """By metric name: ``answer_bpb``, ``choice_nll_raw``, ``accuracy_per_byte``...; empty when it failed."""
    errors: dict[str, float] = field(default_factory=dict)
    """Standard error by metric name, over the items."""
    stability: dict[str, float] = field(default_factory=dict)
    """``loss_spikes`` (count), ``largest_spike_nats``, ``clipped_fraction``, ``max_gradient_norm``, ..."""
    origin: str = ""
    """How the suggestion was made."""
    detail: str = ""
    """Why it failed, in one line."""
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint(Record):
    """One line of ``curve.jsonl``: a moment of a training run."""

    step: int
    """Steps done."""
    tokens: int
    """Tokens seen."""
    cost_flops: float
    """Training FLOPs spent."""
    train_bpb: float
    """Mean training loss since the last point, in bits per byte."""
    gradient_norm: float
    """Largest gradient norm before clipping since the last point."""
    lr: float
    seconds: float
    """Wall seconds of training so far."""
    cpu_seconds: float
    """CPU seconds of the process so far."""
    queued_seconds: float = 0.0
    """Seconds so far that the process was ready to run and other work had the processor; 0 where nobody counts it."""
    at: float = 0.0
    """When it was written, seconds since the epoch; 0 in a predicted curve, and in curves of older runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastPoint(Record):
    """A law read off at one cost."""

    cost_flops: float
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingLaw(Record):
    """How one setting moves with cost along the best trials."""

    name: str
    form: str
    """How it moves, in words: the same everywhere, by its prior slope, straight or bent, and along which axis; ``vote``
    for a choice."""
    transform: Literal["linear", "log", "logit", "categorical"]
    """Axis on which the law is drawn."""
    why: str
    """Why this form: what validation towards larger cost said."""
    points: tuple[tuple[float, float], ...]
    """(cost, value) of the Pareto trials."""
    curve: tuple[ForecastPoint, ...]
    """The law with its interval over the costs from the cheapest trial to the target."""
    rung: float | int | str
    """The setting for the rung, rounded and within bounds."""
    target: float | int | str
    """The setting for the large run, rounded and within bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Laws(Record):
    """The laws fitted at one moment."""

    SCHEMA: ClassVar[str] = "laws/1"

    pareto: tuple[str, ...]
    """Names of the trials on the Pareto front, cheapest first."""
    form: str
    """Form of the law for the metric, or ``none``."""
    basis: str
    """Which runs it was fitted to."""
    supported: bool
    """Whether the points can support a prediction."""
    refusal: str
    """Why not, if not."""
    level: float
    """Probability that each interval is meant to cover."""
    curve: tuple[ForecastPoint, ...]
    """The metric's law over the costs from the cheapest trial to the target; empty if not supported."""
    rung: ForecastPoint | None
    target: ForecastPoint | None
    straight: ForecastPoint | None
    """Target by the baseline: a straight line through the Pareto set in log-log."""
    free_asymptote: float | None
    """Target with the irreducible loss left free."""
    fixed_asymptote: float | None
    """Target with the irreducible loss held fixed."""
    settings: tuple[SettingLaw, ...]
    rung_params: Params
    target_params: Params
    scaled_params: Params
    """The best small trial's settings with only size and tokens scaled to the target: the baseline."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing(Record):
    """Predicted against actual; the numbers are null when there was no prediction or no actual value."""

    metric: str
    """Name with the hash of the evaluation."""
    predicted: float | None
    interval: tuple[float, float] | None
    actual: float | None
    inside: bool | None
    relative_error: float | None
    """actual / predicted - 1."""
    cost_flops: float
    params: Params


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimLine(Record):
    """A claim and how it stands."""

    id: str
    name: str
    status: ClaimStatus
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Record):
    """What a rehearsal came to; what ``--json`` prints."""

    SCHEMA: ClassVar[str] = "rehearsal/1"

    metric: str
    predicted: float | None
    interval: tuple[float, float] | None
    actual: float | None
    inside: bool | None
    relative_error: float | None
    rung: Landing | None
    straight_line: ForecastPoint | None
    """Prediction of the baseline, a straight line through the Pareto set in log-log."""
    scaled: Landing | None
    """The best small trial's settings with only size and tokens scaled, where a benchmark trained them as well."""
    target_cost_flops: float
    largest_trial_cost_flops: float
    trials: int
    """Completed trials of the search, baselines not counted."""
    failures: dict[str, int]
    """Failed trials by kind."""
    seconds: float
    """Budget used, in wall seconds."""
    go: bool | None
    """Go or no-go after the rung; null when it was not reached."""
    reason: str
    """Why go or no-go, or why there is no prediction."""
    claims: tuple[ClaimLine, ...]
    exit_code: int
    report: str
    """Path of the report, relative to the run directory."""
