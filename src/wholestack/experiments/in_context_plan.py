"""What a comparison of demonstrations in the context with fine-tuning is told, and the records that it writes.

=====================  ========================  ================================================
file                   record                    appears
=====================  ========================  ================================================
``run.json``           ``runs.RunManifest``      first of all
``context-plan.json``  :class:`ContextPlan`      before pretraining
``pretrained/``        checkpoints               while the tiny model is pretrained
``model.json``         ``backend.ModelIdentity``  before the first arm: which model the arms are of
``tried.jsonl``        :class:`Tried`            one line a try of fine-tuning, when it was measured
``tuning.json``        :class:`Tunings`          when rates and lengths are chosen
``arms.jsonl``         :class:`Arm`              one line an episode and way, when it was measured
``context.json``       :class:`ContextOutcome`   last of all
``context.html``       page                      with it
=====================  ========================  ================================================
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from wholestack.evals.statistics import Interval
from wholestack.record import Record

KIND = "context"
PLAN = "context-plan.json"
PRETRAINED = "pretrained"
MODEL = "model.json"
TRIED = "tried.jsonl"
TUNING = "tuning.json"
ARMS = "arms.jsonl"
CONTEXT = "context.json"
PAGE = "context.html"

Way = Literal["in context", "fine-tuned", "needle"]
WAYS: tuple[Way, ...] = ("in context", "fine-tuned", "needle")


@dataclass(frozen=True, slots=True, kw_only=True)
class TinyModel(Record):
    """Shape of the model that is pretrained here."""

    layers: int = 2
    width: int = 32
    head_size: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(Record):
    """A part of pretraining."""

    context: int
    """Tokens of a row."""
    rows: int
    """Episodes a step."""
    steps: int
    lr: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning(Record):
    """How demonstrations are tuned on."""

    lr: float
    steps: int
    rows: int = 32
    """Demonstrations a step, at most all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPlan(Record):
    """What will be done; on the disk before anything is trained."""

    SCHEMA: ClassVar[str] = "context-plan/1"

    demonstrations: tuple[int, ...]
    episodes: int
    """Tables, each with its own seed, for every number of demonstrations; they are the unit of every interval."""
    questions: int
    """Of each episode."""
    keys: int
    labels: int
    noise: float
    model: str
    """``tiny``, or what the user named."""
    template: str
    """How a demonstration is written."""
    tiny: TinyModel
    stages: tuple[Stage, ...]
    """Empty for a model from elsewhere."""
    tried: tuple[Tuning, ...]
    """Rates and lengths that fine-tuning chooses from; empty where demonstrations are only read."""
    tuning_episodes: int
    """Episodes to choose by; none of them is measured later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried(Record):
    """One rate and length of fine-tuning on one episode that is not measured."""

    SCHEMA: ClassVar[str] = "context-tried/1"

    demonstrations: int
    number: int
    """Place of the rate and length in the plan."""
    episode: int
    loss_nats: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tunings(Record):
    """What fine-tuning chose for each number of demonstrations."""

    SCHEMA: ClassVar[str] = "tunings/1"

    chosen: dict[str, Tuning]
    """By number of demonstrations."""
    losses: dict[str, tuple[float, ...]]
    """Loss of each that was tried, in the order of the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm(Record):
    """One way on one episode."""

    SCHEMA: ClassVar[str] = "context-arm/1"

    way: Way
    demonstrations: int
    episode: int
    loss_nats: float
    """Mean over the questions of -log p(answer) among the choices."""
    accuracy: float
    """Share of the questions answered as shown."""
    best_loss_nats: float | None
    """Of the best learner that knows the task; ``None`` for the needle."""
    best_accuracy: float | None
    questions: int
    """Scored."""
    unscorable: dict[str, int]
    """The others, by reason."""
    truncated: int
    """Scored questions in front of which not all demonstrations fitted: the first ones were left out."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Record):
    """A mean over episodes."""

    value: float
    interval: Interval | None
    """Over episodes; ``None`` with fewer than two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point(Record):
    """One way at one number of demonstrations."""

    way: Way
    demonstrations: int
    loss_nats: Measured
    accuracy: Measured
    best_loss_nats: float | None
    best_accuracy: float | None
    episodes: int
    unscorable: int
    """Questions that could not be scored."""
    truncated: int
    """Scored questions in front of which not all demonstrations fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast(Record):
    """Fine-tuning beside demonstrations in the context, on the same demonstrations and questions."""

    demonstrations: int
    loss_nats: Measured
    """In context minus fine-tuned: below zero the context is better."""
    accuracy: Measured
    """In context minus fine-tuned: above zero the context is better."""
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextOutcome(Record):
    """What came out; what ``--json`` prints."""

    SCHEMA: ClassVar[str] = "context/1"

    plan: ContextPlan
    model: str
    """Digest of the model's identity."""
    points: tuple[Point, ...]
    contrasts: tuple[Contrast, ...]
    not_tuned: str
    """Why nothing was fine-tuned; empty if it was."""
    chance_accuracy: float
    chance_loss_nats: float
    seconds: float
    """Wall seconds of this sitting."""
    exit_code: int
