"""Items as token arrays: tokenised once for a tokenizer and a context length, stored, and laid out into rows.

Which tokens are scored is ``items.TOKEN_RULE``. For item i and choice j let W_j be the tokens of context +
delimiter + choice_j and C those of the context alone. The shared context is the longest common prefix of C and all
W_j, so it is the same for every choice and holds no text of any choice; the tokens of W_j behind it are scored. For a
tokenizer with ``encode(a + b) != encode(a) + encode(b)`` the token that spans the join is thereby scored, with the
few bytes of context inside it; such items are counted. A start token that the tokenizer puts first is context.
An item that cannot be scored has a reason in place of tokens.

A row is a context followed by the choices of its item without their last token, which predicts nothing that is
scored. Its segments (0 context, 1... choices) say who may attend to whom, its positions restart behind the
context for each choice; so each choice sees exactly what it would see alone.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from wholestack.errors import InputError
from wholestack.evals.arrays import npz_bytes, read_npz
from wholestack.evals.comparable import Texts
from wholestack.evals.items import Item, ItemSet
from wholestack.evals.statistics import Ints
from wholestack.journal import write_atomic
from wholestack.record import digest

NO_CONTEXT = "no token before the answer to predict it from"
NO_TOKENS = "a choice has no tokens of its own"
TOO_LONG = "a choice is longer than the model's context"
NOT_TEXT = "holds half of a surrogate pair, which is not text"
UNKNOWN_TOKEN = "a token is beyond the model's vocabulary"


class Tokenizer(Protocol):
    """Anything that turns text into token ids; it may put a start token first but no end token last."""

    def encode(self, text: str) -> Iterable[int]:
        """Token ids of a text."""


@runtime_checkable
class BatchTokenizer(Protocol):
    """A :class:`Tokenizer` that is faster on many texts at once."""

    def encode_batch(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """Token ids of every text, each as ``encode`` gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedItems:
    """The tokens of an item set; make it with :func:`prepare_items` or :meth:`load`."""

    item_set: str
    """Digest of the item set; empty for items without one."""
    context_tokens: int
    """Context length that the items were fitted to."""
    item_ids: Texts
    """``[items]``."""
    sources: Texts
    """``[items]``."""
    clusters: Ints
    """``[items]``; equal numbers are one cluster."""
    gold: Ints
    """``[items]``."""
    reasons: Texts
    """``[items]``, why the item cannot be scored; empty if it can."""
    truncated: npt.NDArray[np.bool_]
    """``[items]``, whether the context was cut on the left."""
    spanning: npt.NDArray[np.bool_]
    """``[items]``, whether a token spans the join."""
    choice_offsets: Ints
    """``[items + 1]``, where the choices of each item start."""
    answer_bytes: Ints
    """``[choices]``, UTF-8 bytes of delimiter and choice."""
    answer_chars: Ints
    """``[choices]``, characters of delimiter and choice."""
    context_offsets: Ints
    """``[items + 1]``, where the context of each item starts in ``contexts``."""
    contexts: Ints
    """``[context tokens]`` of all items, one behind the other; none for an unscorable item."""
    answer_offsets: Ints
    """``[choices + 1]``, where each choice starts in ``answers``."""
    answers: Ints
    """``[scored tokens]`` of all choices; none for those of an unscorable item."""

    @property
    def answer_tokens(self) -> Ints:
        """``[choices]``, scored tokens."""
        return np.diff(self.answer_offsets)

    @property
    def digest(self) -> str:
        """Identity of item set and tokens together: another tokenizer or context length has another."""
        return digest(hashlib.sha256(npz_bytes(self._arrays())).hexdigest())

    def _arrays(self) -> dict[str, npt.ArrayLike]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def save(self, path: Path) -> None:
        """Write as ``.npz`` by atomic rename.

        Raises:
            RunDirectoryError: the file cannot be written.
        """
        write_atomic(path, npz_bytes(self._arrays()))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises:
            InputError: the file is missing, damaged or something else.
        """
        arrays = read_npz(path, [field.name for field in fields(cls)])
        plain = {"item_set": str(arrays["item_set"]), "context_tokens": int(arrays["context_tokens"])}
        return cls(**{**arrays, **plain})  # type: ignore[arg-type]  # one mapping of arrays and two scalars


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of tokens without padding, one behind the other, and what is scored in them."""

    offsets: Ints
    """``[rows + 1]``."""
    tokens: Ints
    """``[places]``, input tokens."""
    positions: Ints
    """``[places]``, position in the text that the token belongs to."""
    segments: Ints
    """``[places]``, 0 context, from 1 the choices."""
    queries: Ints
    """``[scored tokens]``, place whose logits predict the token."""
    targets: Ints
    """``[scored tokens]``, the tokens scored."""
    choices: Ints
    """``[scored tokens]``, choice that each belongs to, over all items."""

    @property
    def lengths(self) -> Ints:
        """``[rows]``."""
        return np.diff(self.offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    """Tokens of one item, or the reason why there are none."""

    context: Sequence[int] = ()
    answers: Sequence[Sequence[int]] = ()
    truncated: bool = False
    spanning: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """What tokens are fitted to."""

    context_tokens: int
    prefix: Sequence[int]
    stand_in: Sequence[int]
    vocabulary: int | None


def prepare_items(
    item_set: ItemSet | Sequence[Item],
    tokenizer: Tokenizer,
    *,
    context_tokens: int,
    prefix_token: int | None = None,
    empty_context_token: int | None = None,
    vocabulary: int | None = None,
) -> PreparedItems:
    """Tokenise an item set once for every model with this tokenizer and context length.

    Args:
        item_set: The items, sealed or as they are.
        tokenizer: Called with the context alone and with each choice behind it.
        context_tokens: Longest input of the model; a longer context is cut on its left, which is counted.
        prefix_token: Put before every text, for models that expect a start token; it survives truncation. Without
            one, an item whose context is empty cannot be scored.
        empty_context_token: Stands for a context that has no token, where there is no prefix token.
        vocabulary: Tokens that the model knows; an item with another cannot be scored. Default: not looked at.

    Raises:
        InputError: ``context_tokens`` is below 2, or the tokenizer puts an end token behind every text.
    """
    if context_tokens < 2:
        raise InputError(f"context_tokens is {context_tokens}, must be at least 2")
    _refuse_end_token(tokenizer)
    items, identity = (item_set.items, item_set.digest) if isinstance(item_set, ItemSet) else (item_set, "")
    limits = _Limits(
        context_tokens=context_tokens,
        prefix=() if prefix_token is None else (prefix_token,),
        stand_in=() if empty_context_token is None else (empty_context_token,),
        vocabulary=vocabulary,
    )
    found = [_fit(tokens, limits) for tokens in _tokenise(items, tokenizer)]
    texts = [item.delimiter + choice for item in items for choice in item.choices]
    answers = [answer for item, tokens in zip(items, found, strict=True) for answer in _answers(item, tokens)]
    _, clusters = np.unique([item.cluster for item in items], return_inverse=True)
    return PreparedItems(
        item_set=identity,
        context_tokens=context_tokens,
        item_ids=np.array([item.id for item in items], np.str_),
        sources=np.array([item.source for item in items], np.str_),
        clusters=clusters.astype(np.int64),
        gold=np.array([item.gold for item in items], np.int64),
        reasons=np.array([tokens.reason for tokens in found], np.str_),
        truncated=np.array([tokens.truncated for tokens in found], np.bool_),
        spanning=np.array([tokens.spanning for tokens in found], np.bool_),
        choice_offsets=_offsets([len(item.choices) for item in items]),
        answer_bytes=np.array([len(text.encode(errors="surrogatepass")) for text in texts], np.int64),
        answer_chars=np.array([len(text) for text in texts], np.int64),
        context_offsets=_offsets([len(tokens.context) for tokens in found]),
        contexts=_flat([tokens.context for tokens in found]),
        answer_offsets=_offsets([len(answer) for answer in answers]),
        answers=_flat(answers),
    )


def lay_out(prepared: PreparedItems, *, share_context: bool = True) -> Rows:
    """Rows of all items that can be scored: one an item, or with ``share_context=False`` one a choice."""
    item_of_choice = np.repeat(np.arange(len(prepared.gold)), np.diff(prepared.choice_offsets))
    choices = np.flatnonzero(prepared.reasons[item_of_choice] == "")
    item_of_choice = item_of_choice[choices]
    if share_context:
        items, row_of_choice = np.unique(item_of_choice, return_inverse=True)
        segment_of_choice = choices - prepared.choice_offsets[item_of_choice] + 1
    else:
        items, row_of_choice = item_of_choice, np.arange(len(choices))
        segment_of_choice = np.ones(len(choices), np.int64)
    context_lengths = np.diff(prepared.context_offsets)[items]
    answer_lengths = prepared.answer_tokens[choices]
    # Pieces in the order of the rows: each row's context, then its choices without their last token.
    row_of_piece = np.concatenate((np.arange(len(items)), row_of_choice))
    order = np.argsort(row_of_piece, kind="stable")
    place_of_piece = np.argsort(order, kind="stable")
    lengths = np.concatenate((context_lengths, answer_lengths - 1))
    starts = _offsets(lengths[order])[:-1][place_of_piece]
    sources = np.concatenate(
        (prepared.context_offsets[items], len(prepared.contexts) + prepared.answer_offsets[choices])
    )
    first_positions = np.concatenate((np.zeros(len(items), np.int64), context_lengths[row_of_choice]))
    segments = np.concatenate((np.zeros(len(items), np.int64), segment_of_choice))
    piece, within = _expand(lengths[order])
    piece = order[piece]
    last_of_context = (starts[: len(items)] + context_lengths - 1)[row_of_choice]
    answer, nth = _expand(answer_lengths)
    answer_starts = starts[len(items) :]
    return Rows(
        offsets=_offsets(np.bincount(row_of_piece, lengths, minlength=len(items)).astype(np.int64)),
        tokens=np.concatenate((prepared.contexts, prepared.answers))[sources[piece] + within],
        positions=first_positions[piece] + within,
        segments=segments[piece],
        queries=np.where(nth == 0, last_of_context[answer], answer_starts[answer] + nth - 1),
        targets=prepared.answers[prepared.answer_offsets[choices][answer] + nth],
        choices=choices[answer],
    )


def _tokenise(items: Sequence[Item], tokenizer: Tokenizer) -> Iterator[_Tokens]:
    """Apply the token rule to each item, without any limit of length."""
    texts = [_texts(item) for item in items]
    encoded = iter(_encode_all(tokenizer, [text for of_item in texts for text in of_item]))
    for of_item in texts:
        alone, *whole = [next(encoded) for _ in of_item] or [[]]
        yield _split(alone, whole) if whole else _Tokens(reason=NOT_TEXT)


def _texts(item: Item) -> list[str]:
    """The context alone and each choice behind it; nothing if that is not text."""
    texts = [item.context, *(f"{item.context}{item.delimiter}{choice}" for choice in item.choices)]
    return texts if all(map(_is_text, texts)) else []


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _split(alone: Sequence[int], whole: Sequence[Sequence[int]]) -> _Tokens:
    """Cut the tokens of each whole text behind what it has in common with the context and the other choices."""
    shared = min(_common_prefix(alone, tokens) for tokens in whole)
    answers = [tokens[shared:] for tokens in whole]
    if not all(answers):
        return _Tokens(reason=NO_TOKENS)
    return _Tokens(context=alone[:shared], answers=answers, spanning=shared < len(alone))


def _fit(tokens: _Tokens, limits: _Limits) -> _Tokens:
    """Put the prefix first and cut the context so that the longest choice fits; the last token is no input."""
    if tokens.reason:
        return tokens
    prefix = limits.prefix or (() if tokens.context else limits.stand_in)
    if not tokens.context and not prefix:
        return _Tokens(reason=NO_CONTEXT)
    if limits.vocabulary is not None and max(map(max, filter(None, (tokens.context, *tokens.answers)))) >= (
        limits.vocabulary
    ):
        return _Tokens(reason=UNKNOWN_TOKEN)
    room = limits.context_tokens - (max(map(len, tokens.answers)) - 1) - len(prefix)
    if room < (0 if prefix else 1):
        return _Tokens(reason=TOO_LONG)
    kept = tokens.context[max(0, len(tokens.context) - room) :]
    return _Tokens(
        context=[*prefix, *kept],
        answers=tokens.answers,
        truncated=len(kept) < len(tokens.context),
        spanning=tokens.spanning,
    )


def _encode(tokenizer: Tokenizer, text: str) -> list[int]:
    return [int(token) for token in tokenizer.encode(text)]


def _encode_all(tokenizer: Tokenizer, texts: Sequence[str]) -> Sequence[Sequence[int]]:
    if isinstance(tokenizer, BatchTokenizer):
        return tokenizer.encode_batch(texts)
    return [_encode(tokenizer, text) for text in texts]


def _answers(item: Item, tokens: _Tokens) -> Sequence[Sequence[int]]:
    return tokens.answers or [()] * len(item.choices)


def _refuse_end_token(tokenizer: Tokenizer) -> None:
    """An end token behind the context would be a token of no choice, and behind a choice it would be scored."""
    ends = [_encode(tokenizer, text)[-1:] for text in ("", "a", "0")]
    if ends[0] and ends[0] == ends[1] == ends[2]:
        raise InputError(
            f"the tokenizer puts token {ends[0][0]} behind every text", remedy="give one that adds no end token"
        )


def _common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    if left == right[: len(left)]:
        return len(left)
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return index
    return min(len(left), len(right))


def _offsets(lengths: Sequence[int] | Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def _flat(sequences: Sequence[Sequence[int]]) -> Ints:
    return np.array([token for tokens in sequences for token in tokens], np.int64)


def _expand(lengths: Ints) -> tuple[Ints, Ints]:
    """For pieces of these lengths one behind the other: the piece of each element, and its place in the piece."""
    piece = np.repeat(np.arange(len(lengths)), lengths)
    return piece, np.arange(len(piece)) - _offsets(lengths)[:-1][piece]
