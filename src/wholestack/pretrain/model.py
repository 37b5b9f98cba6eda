"""The reference transformer.

Shapes: B sequences, T positions, W width, H query heads, K key/value heads, D head size, V vocabulary. The family of
the large models of today: RMSNorm before each block (Zhang and Sennrich 2019), SwiGLU (Shazeer 2020), grouped-query
attention (Ainslie et al. 2023), rotary positions (Su et al. 2021), optionally a norm on queries and keys (Dehghani et
al. 2023). No biases, no dropout. Products that share an input are one matrix (query, key and value; gate and up):
at small widths a step is bound by the number of kernels.

Initial weights: normal with deviation 1/sqrt(fan-in), so that activations keep their size at every width; what is
written to the residual stream is divided by sqrt(2 L), so that the stream's variance does not grow with depth. The
head starts at zero: the first prediction is the uniform one at every size.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wholestack.errors import InputError
from wholestack.pretrain.config import ModelConfig


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
        self.embedding = nn.Parameter(_normal(config.vocab_size, config.width, 1.0, generator))
        self.blocks = nn.ModuleList(Block(config, generator) for _ in range(config.layers))
        self.norm = nn.Parameter(torch.ones(config.width))
        self.head = None if config.tied_embeddings else nn.Parameter(torch.zeros(config.vocab_size, config.width))
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
        rotations = self._rotations_at(tokens, positions)
        if mask is not None and mask.dim() == 3:
            mask = mask[:, None]
        stream = F.embedding(tokens, self.embedding)
        for block in self.blocks:
            stream = block(stream, rotations, mask)
        stream = F.rms_norm(stream, self.norm.shape, self.norm, self.config.norm_epsilon)
        if self.head is not None:
            return F.linear(stream, self.head)
        # A tied matrix has entries of size one; without this the first logits would grow with sqrt(width).
        return F.linear(stream * self.config.width**-1.0, self.embedding)

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
        residual_gain = (2 * config.layers) ** -0.5
        self.config = config
        self.attention_norm = nn.Parameter(torch.ones(width))
        self.mlp_norm = nn.Parameter(torch.ones(width))
        self.query_key_value = nn.Parameter(_normal(width + 2 * config.kv_width, width, width**-0.5, generator))
        self.attention_out = nn.Parameter(_normal(width, width, residual_gain * width**-0.5, generator))
        self.gate_up = nn.Parameter(_normal(2 * hidden, width, width**-0.5, generator))
        self.down = nn.Parameter(_normal(width, hidden, residual_gain * hidden**-0.5, generator))
        self.query_gain = nn.Parameter(torch.ones(config.head_size)) if config.qk_norm else None
        self.key_gain = nn.Parameter(torch.ones(config.head_size)) if config.qk_norm else None

    def forward(self, stream: Tensor, rotations: Tensor, mask: Tensor | None) -> Tensor:
        """``[B, T, W]`` to ``[B, T, W]``."""
        epsilon = self.config.norm_epsilon
        stream = stream + self._attend(
            F.rms_norm(stream, self.attention_norm.shape, self.attention_norm, epsilon), rotations, mask
        )
        gate, up = F.linear(F.rms_norm(stream, self.mlp_norm.shape, self.mlp_norm, epsilon), self.gate_up).chunk(2, -1)
        return stream + F.linear(F.silu(gate) * up, self.down)

    def _attend(self, stream: Tensor, rotations: Tensor, mask: Tensor | None) -> Tensor:
        config = self.config
        heads = F.linear(stream, self.query_key_value).unflatten(-1, (-1, config.head_size))  # [B, T, H + 2K, D]
        query, key, value = heads.split((config.heads, config.kv_heads, config.kv_heads), dim=-2)
        if self.query_gain is not None and self.key_gain is not None:
            query = F.rms_norm(query, self.query_gain.shape, self.query_gain, config.norm_epsilon)
            key = F.rms_norm(key, self.key_gain.shape, self.key_gain, config.norm_epsilon)
        query, key = rotate(query, rotations), rotate(key, rotations)
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
    pairs, turns = heads.unflatten(-1, (-1, 2)), rotations.unflatten(-1, (-1, 2))
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


def _normal(rows: int, columns: int, deviation: float, generator: torch.Generator) -> Tensor:
    return torch.randn(rows, columns, generator=generator) * deviation
