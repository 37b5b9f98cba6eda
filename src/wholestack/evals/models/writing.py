"""Writing behind prompts, in batches, with the same text whatever the batch.

The next token is the one with the highest logit, or at a temperature the one with the highest logit / temperature +
Gumbel noise, which draws from the softmax (Gumbel 1954). The noise follows from seed, prompt and step alone.
Products of another shape round differently, so a batch could decide a tie otherwise than a prompt alone: where first
and second are closer than a bound far above rounding, the decision is that of the model reading this one text alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from wholestack.evals.backend import Generation, Writing
from wholestack.evals.models.tokens import TextTokens
from wholestack.evals.scoring import NOT_FINITE
from wholestack.evals.statistics import Floats
from wholestack.record import digest

TOO_LONG = "the prompt and the tokens to write do not fit into the model's context"
NO_PROMPT = "no token to write behind"
UNKNOWN_TOKEN = "the prompt has a token beyond the model's vocabulary"
NOT_TEXT = "the prompt holds half of a surrogate pair, which is not text"
CLOSE = 1e-2
"""Differences of logits (over the temperature) up to here are decided by the model reading one text alone."""
_TAIL = 16
"""Tokens of the prompt that are decoded with what is written, for tokenizers that treat a first token otherwise."""


class Next(Protocol):
    """The logits behind rows that grow by one token at a time."""

    def __call__(self, rows: Sequence[Sequence[int]], room: int) -> "Reading":
        """Read prompts behind which at most ``room`` tokens will be added."""


class Reading(Protocol):
    """Some rows that were read."""

    @property
    def logits(self) -> Floats:
        """``[B, V]`` behind the last token of each row."""

    def add(self, tokens: Sequence[int]) -> None:
        """Read one more token in each row."""


@dataclass(slots=True, kw_only=True)
class _Text:
    """What is written behind one prompt."""

    number: int
    prompt: list[int]
    seed: str
    written: list[int] = field(default_factory=list)
    text: str = ""
    finish: Literal["stop", "length", "none", ""] = ""
    reason: str = ""


def write(
    prompts: Sequence[str],
    writing: Writing,
    *,
    tokens: TextTokens,
    next_tokens: Next,
    context_tokens: int,
    vocabulary: int,
) -> Iterator[Generation]:
    """Write behind every prompt of one batch.

    Args:
        prompts: The texts.
        writing: How.
        tokens: The tokenizer.
        next_tokens: The model.
        context_tokens: Longest text that it reads.
        vocabulary: Tokens that it knows.
    """
    texts = [_begin(number, prompt, writing, tokens) for number, prompt in enumerate(prompts)]
    for text in texts:
        text.reason = text.reason or _problem(text, writing, context_tokens, vocabulary)
        text.finish = "none" if text.reason else ""
    open_texts = [text for text in texts if not text.finish]
    if open_texts:
        _go_on(open_texts, writing, tokens, next_tokens)
    for text in texts:
        assert text.finish
        yield Generation(text=text.text, tokens=len(text.written), finish=text.finish, reason=text.reason)


def _begin(number: int, prompt: str, writing: Writing, tokens: TextTokens) -> _Text:
    try:
        prompt.encode()
    except UnicodeEncodeError:
        return _Text(number=number, prompt=[], seed="", reason=NOT_TEXT)
    encoded = tokens.encode(prompt)
    if tokens.prefix_token is not None:
        encoded = [tokens.prefix_token, *encoded]
    elif not encoded and tokens.empty_context_token is not None:
        encoded = [tokens.empty_context_token]
    return _Text(number=number, prompt=encoded, seed=digest(writing.seed, prompt))


def _problem(text: _Text, writing: Writing, context_tokens: int, vocabulary: int) -> str:
    if not text.prompt:
        return NO_PROMPT
    if max(text.prompt) >= vocabulary:
        return UNKNOWN_TOKEN
    return TOO_LONG if len(text.prompt) + writing.max_tokens > context_tokens + 1 else ""


def _go_on(texts: Sequence[_Text], writing: Writing, tokens: TextTokens, next_tokens: Next) -> None:
    """Write until every text has ended; rows that ended are read on with any token, which nobody looks at."""
    reading = next_tokens([text.prompt for text in texts], writing.max_tokens)
    while True:
        chosen = [
            0 if text.finish else _choose(text, logits, writing, next_tokens)
            for text, logits in zip(texts, reading.logits, strict=True)
        ]
        for text, token in zip(texts, chosen, strict=True):
            if not text.finish:
                _take(text, token, writing, tokens)
        if all(text.finish for text in texts):
            return
        reading.add(chosen)


def _choose(text: _Text, logits: Floats, writing: Writing, next_tokens: Next) -> int:
    """The next token, or -1 where the logits are not finite."""
    noise = _noise(text, len(logits), writing)
    scores = _tempered(logits, writing) + noise
    if not np.isfinite(scores).all():
        return -1
    second, first = np.partition(scores, -2)[-2:]
    if first - second < CLOSE:
        scores = _tempered(next_tokens([[*text.prompt, *text.written]], 0).logits[0], writing) + noise
    return int(scores.argmax())


def _tempered(logits: Floats, writing: Writing) -> Floats:
    return logits / writing.temperature if writing.temperature > 0 else logits


def _noise(text: _Text, size: int, writing: Writing) -> Floats | float:
    if writing.temperature <= 0:
        return 0.0
    rng = np.random.default_rng([int(text.seed, 16), len(text.written)])
    return rng.gumbel(size=size)


def _take(text: _Text, token: int, writing: Writing, tokens: TextTokens) -> None:
    """Add one token and see whether the text ends with it."""
    if token < 0:
        text.finish, text.reason, text.text, text.written = "none", NOT_FINITE, "", []
        return
    if token in tokens.end_tokens:
        text.finish = "stop"
        return
    text.written.append(token)
    text.text = _decoded(text, tokens)
    found = [at for at in (text.text.find(stop) for stop in writing.stop if stop) if at >= 0]
    if found:
        text.finish, text.text = "stop", text.text[: min(found)]
    elif len(text.written) >= writing.max_tokens:
        text.finish = "length"


def _decoded(text: _Text, tokens: TextTokens) -> str:
    tail = text.prompt[-_TAIL:]
    return tokens.decode([*tail, *text.written])[len(tokens.decode(tail)) :]
