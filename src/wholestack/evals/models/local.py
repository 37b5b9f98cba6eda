"""The backend of every model that runs in this process: tokens, scores in chunks, writing, expense."""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from wholestack.errors import InputError
from wholestack.evals.backend import Expense, Generation, ItemScore, ModelIdentity, Opening, Writing, not_done
from wholestack.evals.items import TOKEN_RULE, Item
from wholestack.evals.models.tokens import PREFIX_RULE, TextTokens
from wholestack.evals.models.writing import Next, write
from wholestack.evals.prepared import PreparedItems, prepare_items
from wholestack.evals.scoring import ChoiceScores

_CHUNK_WEIGHTS = 1 << 32
"""Parameters times items of a chunk: one takes about so long on every model. It depends on nothing of the machine, so
that two runs form the same batches."""
_TIMED_ITEMS = 4
_PROMPTS_AT_ONCE = 512


class Scorer(Protocol):
    """What scores prepared items with one model."""

    def __call__(self, prepared: PreparedItems, *, batch_size: int) -> ChoiceScores:
        """Minus log-likelihood of every choice."""


@dataclass(frozen=True, kw_only=True)
class LocalBackend:
    """A model in this process; see :class:`wholestack.evals.backend.Backend`."""

    identity: ModelIdentity
    tokens: TextTokens
    context_tokens: int
    """Longest input."""
    vocabulary: int
    """Tokens that the model knows."""
    batch_size: int
    scorer: Scorer
    next_tokens: Next
    module: Any = None
    """The torch module that the scorer reads, for whoever trains it: from tokens ``[rows, places]`` to logits, or to
    something that holds them as ``logits``; ``None`` where there is none to train."""

    def expense(self, items: Sequence[Item], prompts: Sequence[str] = (), writing: Writing | None = None) -> Expense:
        """Count requests and tokens; four items, evenly spread, are scored to learn how long a token takes."""
        # As many texts at once as a scoring tokenises: those of a whole file may take more memory than the model.
        read = sum(_tokens_read(self.prepare(chunk)) for chunk in self._chunks(items))
        pieces = (prompts[start : start + _PROMPTS_AT_ONCE] for start in range(0, len(prompts), _PROMPTS_AT_ONCE))
        prompt_tokens = sum(len(tokens) for piece in pieces for tokens in self.tokens.encode_batch(piece))
        seconds = self._seconds(items, read) if items and not prompts else None
        return Expense(
            requests=sum(len(item.choices) for item in items) + len(prompts),
            prompt_tokens=read + prompt_tokens,
            written_tokens=len(prompts) * (writing.max_tokens if writing else 0),
            seconds=seconds,
            usd=0.0,
            basis="" if seconds is None else f"{min(_TIMED_ITEMS, len(items))} items were timed",
        )

    def score(self, items: Sequence[Item], *, done: Collection[str] = ()) -> Iterator[ItemScore]:
        """Score items in the order given, chunk by chunk; a chunk of which some are done is computed as a whole.

        Batches are made of the items of a chunk, and products of another shape round differently; so the chunks are
        those of all items, however many are left.
        """
        for chunk in self._chunks(items):
            if not_done(chunk, done):
                prepared = self.prepare(chunk)
                found = item_scores(prepared, self.scorer(prepared, batch_size=self.batch_size))
                yield from (score for score in found if score.id not in done)

    def generate(self, prompts: Sequence[str], writing: Writing) -> Iterator[Generation]:
        """Write behind prompts, in the order given; the text behind one depends on no other."""
        for start in range(0, len(prompts), self.batch_size):
            yield from write(
                prompts[start : start + self.batch_size],
                writing,
                tokens=self.tokens,
                next_tokens=self.next_tokens,
                context_tokens=self.context_tokens,
                vocabulary=self.vocabulary,
            )

    def _chunks(self, items: Sequence[Item]) -> Iterator[Sequence[Item]]:
        size = max(4 * self.batch_size, min(512, _CHUNK_WEIGHTS // max(1, self.identity.parameters or 1)))
        return (items[start : start + size] for start in range(0, len(items), size))

    def prepare(self, items: Sequence[Item]) -> PreparedItems:
        """Items as tokens of this model."""
        return prepare_items(
            items,
            self.tokens,
            context_tokens=self.context_tokens,
            prefix_token=self.tokens.prefix_token,
            empty_context_token=self.tokens.empty_context_token,
            vocabulary=self.vocabulary,
        )

    def _seconds(self, items: Sequence[Item], read: int) -> float:
        step = max(1, len(items) // _TIMED_ITEMS)
        prepared = self.prepare(items[::step][:_TIMED_ITEMS])
        start = time.monotonic()
        self.scorer(prepared, batch_size=self.batch_size)
        return (time.monotonic() - start) * read / max(1, _tokens_read(prepared))


def item_scores(prepared: PreparedItems, found: ChoiceScores) -> Iterator[ItemScore]:
    """One record an item, in order."""
    bounds = prepared.choice_offsets.tolist()
    tokens, nll = prepared.answer_tokens.tolist(), found.nll_nats.tolist()
    for number, identity in enumerate(prepared.item_ids.tolist()):
        first, end = bounds[number], bounds[number + 1]
        reason = str(found.reasons[number])
        yield ItemScore(
            id=identity,
            reason=reason,
            nll_nats=() if reason else tuple(nll[first:end]),
            tokens=() if reason else tuple(tokens[first:end]),
            truncated=bool(prepared.truncated[number]),
            spanning=bool(prepared.spanning[number]),
            positions=int(found.positions[number]),
        )


def identity_of(
    *,
    kind: str,
    name: str,
    parameters: int,
    opening: Opening,
    tokens: TextTokens,
    context_tokens: int,
    content: dict[str, str],
    versions: dict[str, str],
) -> ModelIdentity:
    """The identity of a model in this process.

    Args:
        kind: Backend.
        name: As the user said it.
        parameters: Weights.
        opening: Dtype and device are part of it, what only changes the speed is not.
        tokens: The tokenizer.
        context_tokens: Longest input.
        content: Hashes of weights and configuration.
        versions: Libraries that compute the numbers.
    """
    parts = {
        **content,
        "tokenizer": tokens.digest,
        "dtype": opening.dtype,
        "device": opening.device.partition(":")[0],
        "context_tokens": str(context_tokens),
        "prefix_token": str(tokens.prefix_token),
        "empty_context_token": str(tokens.empty_context_token),
        "end_tokens": ",".join(map(str, tokens.end_tokens)),
        "prefix_rule": PREFIX_RULE,
        "token_rule": TOKEN_RULE,
        **{f"version {library}": version for library, version in versions.items()},
    }
    return ModelIdentity(kind=kind, name=name, parts=parts, parameters=parameters)


def check_opening(opening: Opening) -> None:
    """Refuse what no model in this process can do.

    Raises:
        InputError: a batch without rows, or fewer than one thread.
    """
    for name, value in (("batch_size", opening.batch_size), ("threads", opening.threads)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}, must be at least 1")


def _tokens_read(prepared: PreparedItems) -> int:
    """Tokens of contexts and choices, each context once."""
    return len(prepared.contexts) + len(prepared.answers)
