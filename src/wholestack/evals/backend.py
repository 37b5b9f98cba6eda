"""What evaluates items: the protocol of a model, wherever it runs, and the values that cross it.

A backend scores the choices of items, writes text, says what that would cost, and says what it is. Its identity covers
everything of it that reaches a number: weights, tokenizer, arithmetic, rules. With the digest of an item set it is
the key of a result, so that no result outlives what it was made with.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from wholestack.evals.items import Item
from wholestack.record import Record, digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIdentity(Record):
    """What a model is, by content and not by name."""

    kind: str
    """Backend, for instance ``transformers``, ``pretrain`` or ``endpoint``."""
    name: str
    """How the user called it; not part of the digest."""
    parts: dict[str, str]
    """Hash or value of everything that reaches a number: ``weights``, ``tokenizer``, ``dtype``, ``token_rule``, ..."""
    parameters: int | None = None
    """Number of weights, embeddings included; ``None`` where nobody says. Not part of the digest."""
    taken_at: str = field(default="", compare=False)
    """Day (UTC, ISO 8601) on which an endpoint was asked what it is; empty elsewhere. Not part of the digest."""

    @property
    def digest(self) -> str:
        """16 hex digits over kind and parts."""
        return digest(self.kind, self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemScore(Record):
    """What a model gave to the choices of one item; one line of a scoring's journal."""

    id: str
    """Of the item."""
    reason: str = ""
    """Why it could not be scored; empty if it was."""
    nll_nats: tuple[float, ...] = ()
    """``[choices]``, minus log-likelihood of the scored tokens; empty where there is a reason."""
    tokens: tuple[int, ...] = ()
    """``[choices]``, scored tokens; empty where there is a reason."""
    truncated: bool = False
    """Whether the context was cut on the left to fit the model."""
    spanning: bool = False
    """Whether a token spans the join of context and choice; it was scored with the choice."""
    positions: int = 0
    """Positions that were computed for it, padding included; 0 where nobody says."""
    seal: str = ""
    """What binds a line of a journal to its scoring; empty as a backend gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation(Record):
    """What a model wrote behind one prompt."""

    text: str
    """Without the prompt, and cut in front of a stop text."""
    tokens: int
    """Tokens written."""
    finish: Literal["stop", "length", "none"]
    """Ended by itself or at a stop text; cut at the most tokens; or nothing came, for ``reason``."""
    reason: str = ""
    """Why there is no text; empty if there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expense(Record):
    """What a scoring or a generation will take, said before it starts."""

    requests: int
    prompt_tokens: int
    """Tokens read."""
    written_tokens: int = 0
    """Most tokens written."""
    seconds: float | None = None
    """``None`` where it is not known."""
    usd: float | None = None
    """``None`` where no price is known."""
    basis: str = ""
    """What the figures rest on, for instance a timed first request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing(Record):
    """How to write: everything that decides the text besides prompt and model."""

    max_tokens: int
    stop: tuple[str, ...] = ()
    """The text ends in front of the first of these."""
    temperature: float = 0.0
    """0 takes the likeliest token."""
    seed: int = 0


@runtime_checkable
class Backend(Protocol):
    """A model behind one interface; every implementation passes ``wholestack.testing.evals_backend``."""

    @property
    def identity(self) -> ModelIdentity:
        """What it is."""

    def expense(self, items: Sequence[Item], prompts: Sequence[str] = (), writing: Writing | None = None) -> Expense:
        """What scoring these items and writing behind these prompts will take; may make one small request."""

    def score(self, items: Sequence[Item], *, done: Collection[str] = ()) -> Iterator[ItemScore]:
        """Score items in the order given, handing each over as soon as it is final.

        An item that cannot be scored comes with a reason; numbers never depend on the other items of the call. What
        is computed together follows from ``items`` alone, so that a scoring that goes on gives to the bit what one
        without a break gives; some items that are done may be computed again for that.

        Args:
            items: All of them.
            done: Ids of those whose scores are there: they are not handed over.

        Raises:
            InputError: the model cannot score at all, for instance an endpoint without log-probabilities.
        """

    def generate(self, prompts: Sequence[str], writing: Writing) -> Iterator[Generation]:
        """Write behind prompts, in the order given.

        Raises:
            InputError: the model cannot write.
        """


def not_done(items: Sequence[Item], done: Collection[str]) -> list[Item]:
    """The items whose scores are not there, in order."""
    return [item for item in items if item.id not in done]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What a user may say about a model besides its name; each backend reads what concerns it."""

    dtype: Literal["float32", "bfloat16", "float64"] = "float32"
    device: str = "cpu"
    threads: int | None = None
    batch_size: int = 8
    """Rows computed at a time."""
    api_key: str = field(default="", repr=False)
    """Of an endpoint; never stored nor logged."""
    usd_per_million_tokens: tuple[float, float] | None = None
    """Price of an endpoint's tokens read and written."""
    requests_at_a_time: int = 4
    """Of an endpoint."""
