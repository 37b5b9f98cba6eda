"""What the tests of evals share: documents, tokenizers of three families, a small real transformer."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn

STANDARD_LIBRARY = Path(random.__file__).parent


@dataclass(frozen=True)
class HeldOut:
    id: str
    source: str
    path: str
    text: str


def standard_library_documents() -> list[HeldOut]:
    """Modules as code and the help topics as prose, no text twice."""
    from pydoc_data.topics import topics

    code = [
        HeldOut(path.name, "code", path.name, path.read_text(encoding="utf-8"))
        for path in sorted(STANDARD_LIBRARY.glob("*.py"))[:110]
    ]
    prose = [HeldOut(name, "prose", name, text) for name, text in sorted(topics.items())]
    return list({document.text: document for document in code + prose}.values())


class ByteTokenizer:
    vocabulary = 256

    def encode(self, text: str) -> Sequence[int]:
        return list(text.encode())


class HubTokenizer:
    """A trained tokenizer of the tokenizers library."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.vocabulary = tokenizer.get_vocab_size()

    def encode(self, text: str) -> Sequence[int]:
        return self.tokenizer.encode(text).ids


def train_bpe(texts: Sequence[str]) -> HubTokenizer:
    """Byte-level, but free to merge across words and line ends, so that tokens span joins."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return HubTokenizer(tokenizer)


def train_sentencepiece_like(texts: Sequence[str]) -> HubTokenizer:
    """Unigram with a mark for spaces and one put before every text."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(vocab_size=600, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return HubTokenizer(tokenizer)


class SmallTransformer(nn.Module):
    """Pre-norm decoder, one block, learned positions; weights large enough that context matters much."""

    def __init__(self, vocabulary: int, *, context: int = 512, width: int = 16, heads: int = 2, dtype=torch.float32):
        super().__init__()
        self.heads = heads
        generator = torch.Generator().manual_seed(0)

        def weights(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype))

        self.embedding, self.place = weights(vocabulary, width), weights(context, width)
        self.qkv, self.out = weights(3 * width, width), weights(width, width)
        self.up, self.down = weights(2 * width, width), weights(width, 2 * width)
        self.head = weights(vocabulary, width)
        self.dropout = nn.Dropout(0.5)

    def hidden_states(self, tokens: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        rows, length = tokens.shape
        if positions is None:
            positions = torch.arange(length).expand(rows, length)
        if mask is None:
            mask = torch.ones(length, length, dtype=torch.bool).tril().expand(rows, length, length)
        stream = self.embedding[tokens] + self.place[positions]
        normed = nn.functional.layer_norm(stream, stream.shape[-1:])
        q, k, v = (normed @ self.qkv.T).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attention = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~mask[:, None], -math.inf).softmax(-1)
        stream = stream + (attention @ v).transpose(1, 2).flatten(2) @ self.out.T / 4
        normed = self.dropout(nn.functional.layer_norm(stream, stream.shape[-1:]))
        return stream + (normed @ self.up.T).relu() @ self.down.T / 8

    def forward(self, tokens: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        return self.hidden_states(tokens, positions, mask) @ self.head.T / 4


class TokensOnly(nn.Module):
    """The same model for callers that know tokens only."""

    def __init__(self, inner: SmallTransformer) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, tokens: Tensor) -> Tensor:
        return self.inner(tokens)


class InTwoSteps(nn.Module):
    """The same model, head apart; remembers how many places went through the head."""

    def __init__(self, inner: SmallTransformer) -> None:
        super().__init__()
        self.inner = inner
        self.unembedded = 0

    def hidden(self, tokens: Tensor, *, positions: Tensor, mask: Tensor) -> Tensor:
        return self.inner.hidden_states(tokens, positions, mask)

    def unembed(self, hidden: Tensor) -> Tensor:
        self.unembedded += hidden[..., 0].numel()
        return hidden @ self.inner.head.T / 4

    def forward(self, tokens: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        raise AssertionError("the whole model was called")
