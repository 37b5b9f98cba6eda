"""The reference transformer.

Shapes: B sequences, T positions, W width, H query heads, K key/value heads, D head size, V vocabulary. The family of
the large models of today: RMSNorm before each block (Zhang and Sennrich 2019), SwiGLU (Shazeer 2020), grouped-query
attention (Ainslie et al. 2023), rotary positions (Su et al. 2021), optionally a norm on queries and keys (Dehghani et
al. 2023). No biases, no dropout. Products that share an input are one matrix (query, key and value; gate and up):
at small widths a step is bound by the number of kernels.

Initial weights are normal. Matrices have deviation 1/sqrt(fan-in), so that activations keep their size at every width;
what writes to the residual stream is multiplied by RESIDUAL_GAIN / sqrt(2 L), so that the stream does not grow with
depth and starts as the embedding itself; the head starts at HEAD_GAIN / sqrt(W), near the uniform prediction. The
three gains are measured: docs/decisions/0003-laptop-regime.md.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wholestack.errors import InputError
from wholestack.pretrain.config import ModelConfig
from wholestack.pretrain.kernels import rms_norm

EMBEDDING_DEVIATION = 2.0
"""Of the stream where it starts. Large against what the blocks add: pairs of tokens are learnt at once."""
RESIDUAL_GAIN = 0.3
HEAD_GAIN = 0.3


class Transformer(nn.Module):
    """A decoder-only transformer.

    Args:
        config: Its shape.
        generator: Source of the initial weights; by default one seeded with 0, never the global one.
        dtype: Of weights and rotations.

    Example:
        >>> config = ModelConfig(vocab_size=256, context=64, layers=2, width=64, head_size=32, kv_heads=1)
        >>> Transformer(config)(torch.zeros(3, 10, dtype=torch.long)).shape
        torch.Size([3, 10, 256])
    """

    def __init__(
        self, config: ModelConfig, *, generator: torch.Generator | None = None, dtype: torch.dtype = torch.float32
    ) -> None:
        super().__init__()
        self.config = config
        generator = generator or torch.Generator().manual_seed(0)
        self.embedding, self.head = _embeddings(config, generator)
        self.blocks = nn.ModuleList(Block(config, generator) for _ in range(config.layers))
        self.norm = nn.Parameter(torch.ones(config.width))
        self.to(dtype)
        self.register_buffer("rotations", _rotations(config).to(dtype), persistent=False)

    def forward(self, tokens: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Logits of the next token at every position.

        Args:
            tokens: ``[B, T]`` integers.
            positions: ``[B, T]`` or ``[T]``, each in ``[0, context)``; default 0, 1, 2, ...
            mask: boolean ``[B, T, T]`` or ``[B, 1, T, T]``, true where the row (query) may attend to the column
                (key); every row needs at least one. Default causal. With it, several continuations can share one
                prefix in one row.

        Returns:
            ``[B, T, V]`` in the model's precision.

        Raises:
            InputError: more positions than the context holds.
        """
        return self.unembed(self.hidden(tokens, positions, mask))

    def hidden(self, tokens: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Last hidden states ``[B, T, W]``, final norm included; arguments as for :meth:`forward`."""
        rotations = self._rotations_at(tokens, positions)
        if mask is not None and mask.dim() == 3:
            mask = mask[:, None]
        stream = F.embedding(tokens, self.embedding)
        if self.head is None:
            stream = stream * (EMBEDDING_DEVIATION / _head_deviation(self.config))
        for block in self.blocks:
            stream = block(stream, rotations, mask)
        return rms_norm(stream, self.norm, self.config.norm_epsilon)

    def unembed(self, hidden: Tensor) -> Tensor:
        """Logits ``[..., V]`` of hidden states ``[..., W]``: a scorer asks for them only where it scores."""
        return F.linear(hidden, self.embedding if self.head is None else self.head)

    def _rotations_at(self, tokens: Tensor, positions: Tensor | None) -> Tensor:
        table = self.get_buffer("rotations")
        length = tokens.shape[-1]
        if positions is None:
            if length > self.config.context:
                raise InputError(f"{length} positions, the model's context is {self.config.context}")
            return table[:length, None]
        if positions.numel() and not 0 <= int(positions.min()) <= int(positions.max()) < self.config.context:
            raise InputError(f"positions must lie in [0, {self.config.context}), the model's context")
        return table[positions][..., None, :]


class Block(nn.Module):
    """Attention, then a gated MLP, each added to the stream."""

    def __init__(self, config: ModelConfig, generator: torch.Generator) -> None:
        super().__init__()
        width, hidden = config.width, config.mlp_width
        residual_gain = RESIDUAL_GAIN * (2 * config.layers) ** -0.5
        self.config = config
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.mlp_norm = nn.Parameter(torch.ones(width))
        self.query_key_value = nn.Parameter(_normal(width + 2 * config.kv_width, width, width**-0.5, generator))
        self.attention_out = nn.Parameter(_normal(width, width, residual_gain * width**-0.5, generator))
        self.gate_up = nn.Parameter(_normal(2 * hidden, width, width**-0.5, generator))
        self.down = nn.Parameter(_normal(width, hidden, residual_gain * hidden**-0.5, generator))
        self.query_key_gain = nn.Parameter(torch.ones(config.head_size)) if config.qk_norm else None

    def forward(self, stream: Tensor, rotations: Tensor, mask: Tensor | None) -> Tensor:
        """``[B, T, W]`` to ``[B, T, W]``."""
        epsilon = self.config.norm_epsilon
        stream = stream + self._attend(rms_norm(stream, self.attention_norm, epsilon), rotations, mask)
        gate, up = F.linear(rms_norm(stream, self.mlp_norm, epsilon), self.gate_up).chunk(2, -1)
        return stream + F.linear(F.silu(gate) * up, self.down)

    def _attend(self, stream: Tensor, rotations: Tensor, mask: Tensor | None) -> Tensor:
        config = self.config
        turned = config.heads + config.kv_heads
        heads = F.linear(stream, self.query_key_value).view(*stream.shape[:2], -1, config.head_size)
        query_key, value = torch.split(heads, [turned, config.kv_heads], dim=-2)  # [B, T, H + K, D], [B, T, K, D]
        if self.query_key_gain is not None:
            query_key = rms_norm(query_key, self.query_key_gain, config.norm_epsilon)
        query, key = torch.split(rotate(query_key, rotations), [config.heads, config.kv_heads], dim=-2)
        mixed = F.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            attn_mask=mask,
            is_causal=mask is None,
            enable_gqa=config.kv_heads != config.heads,
        )
        return F.linear(mixed.transpose(1, 2).flatten(-2), self.attention_out)


def rotate(heads: Tensor, rotations: Tensor) -> Tensor:
    """Turn neighbouring pairs ``(x[2i], x[2i+1])`` of every head by the angle of its position.

    Args:
        heads: ``[B, T, heads, D]``.
        rotations: Cosines and sines, ``[..., T, 1, D]`` as pairs.
    """
    pairs, turns = heads.reshape(*heads.shape[:-1], -1, 2), rotations.view(*rotations.shape[:-1], -1, 2)
    if heads.dtype in (torch.float32, torch.float64) and not torch.compiler.is_compiling():
        return torch.view_as_real(torch.view_as_complex(pairs) * torch.view_as_complex(turns)).flatten(-2)
    # torch has no complex bfloat16, and its compiler no complex arithmetic: the same product written out.
    (real, imaginary), (cosine, sine) = pairs.unbind(-1), turns.to(heads.dtype).unbind(-1)
    turned = (real * cosine - imaginary * sine, real * sine + imaginary * cosine)
    return torch.stack(turned, dim=-1).flatten(-2)


def _rotations(config: ModelConfig) -> Tensor:
    """``[context, D]``: cosine and sine of pair i at 2i and 2i + 1, computed in float64."""
    pair = torch.arange(config.head_size // 2, dtype=torch.float64)
    angles = torch.arange(config.context, dtype=torch.float64)[:, None] * config.rope_base ** (
        -2 * pair / config.head_size
    )
    return torch.stack((angles.cos(), angles.sin()), dim=-1).flatten(-2)


def _embeddings(config: ModelConfig, generator: torch.Generator) -> tuple[nn.Parameter, nn.Parameter | None]:
    """Embedding and head. A tied matrix is drawn as a head, and scaled where it is used as an embedding."""
    shape, head_deviation = (config.vocab_size, config.width), _head_deviation(config)
    if config.tied_embeddings:
        return nn.Parameter(_normal(*shape, head_deviation, generator)), None
    embedding = nn.Parameter(_normal(*shape, EMBEDDING_DEVIATION, generator))
    return embedding, nn.Parameter(_normal(*shape, head_deviation, generator))


def _head_deviation(config: ModelConfig) -> float:
    return HEAD_GAIN / math.sqrt(config.width)


def _normal(rows: int, columns: int, deviation: float, generator: torch.Generator) -> Tensor:
    return torch.randn(rows, columns, generator=generator) * deviation
