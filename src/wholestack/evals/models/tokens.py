"""Tokenizers of real models, as the scorer and the writer use them.

Texts are encoded without the tokenizer's own special tokens. What it would put first becomes the explicit prefix
token; what it would put last is left out, since an end token behind a context or a choice is no part of it. Without a
prefix token, an empty context is stood for by the start token, or else by the end token.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

PREFIX_RULE = (
    "prefix/1: the token that the tokenizer puts before every text, if it does, stands before every text here; else an"
    " empty context is stood for by the start token, or else by the end token; no other special token is added"
)
_TEXTS_AT_ONCE = 64
"""What the library makes of a text is a hundred bytes a token, of which only the number is kept."""


class TextTokens(Protocol):
    """Text to tokens and back, with the special tokens of a model."""

    @property
    def prefix_token(self) -> int | None:
        """Put before every text."""

    @property
    def empty_context_token(self) -> int | None:
        """Stands for a context without tokens where there is no prefix token."""

    @property
    def end_tokens(self) -> tuple[int, ...]:
        """Each ends what is written."""

    @property
    def digest(self) -> str:
        """Identity: tokenizers with the same digest encode alike."""

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, none added."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of tokens; special ones are left out."""


@dataclass(frozen=True, kw_only=True)
class HubTokens:
    """A tokenizer of transformers, with or without a fast version."""

    tokenizer: Any
    digest: str
    prefix_token: int | None
    empty_context_token: int | None
    end_tokens: tuple[int, ...]

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, none added."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokens of each text."""
        if not texts:
            return []
        if self.tokenizer.is_fast:
            encode = self.tokenizer.backend_tokenizer.encode_batch_fast
            pieces = (list(texts[at : at + _TEXTS_AT_ONCE]) for at in range(0, len(texts), _TEXTS_AT_ONCE))
            return [each.ids for piece in pieces for each in encode(piece, add_special_tokens=False)]
        found = self.tokenizer(list(texts), add_special_tokens=False, truncation=False, padding=False)
        return [list(map(int, tokens)) for tokens in found["input_ids"]]

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of tokens; special ones are left out."""
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


def hub_tokens(tokenizer: Any, *, digest: str, end_tokens: Sequence[int] = ()) -> HubTokens:
    """Find out what a tokenizer of transformers puts around a text, and switch off its truncation and padding.

    Args:
        tokenizer: The tokenizer.
        digest: Hash of its files.
        end_tokens: End tokens that the model's configuration names besides the tokenizer's own.
    """
    if tokenizer.is_fast:
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    start, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    stand_in = end if start is None else start
    return HubTokens(
        tokenizer=tokenizer,
        digest=digest,
        prefix_token=_prefix(tokenizer),
        empty_context_token=stand_in,
        end_tokens=tuple(sorted({*end_tokens, *([] if end is None else [end])})),
    )


def _prefix(tokenizer: Any) -> int | None:
    """The token that comes first with special tokens and does not without."""
    bare, dressed = (
        [int(token) for token in tokenizer("a", add_special_tokens=each)["input_ids"]] for each in (False, True)
    )
    return dressed[0] if dressed[:1] != bare[:1] and dressed[1 : 1 + len(bare)] == bare else None
