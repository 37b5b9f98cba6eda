"""Parameters and FLOPs of a model, by formula.

Notation: L layers, W width, K kv width, M MLP width, V vocabulary, T context. One multiply-add is 2 FLOPs. Per
token, forward::

    L * (2 W (W + 2 K)      queries, keys, values
       + 2 W W              attention output
       + 6 W M              gate, up, down
       + 4 T W)             scores and their sum over values, full T by T
    + 2 W V                 output head

and training is three times that (the backward pass multiplies twice for each product). As is usual (Kaplan et al.
2020, appendix B of the PaLM paper, torch's FlopCounter) the causal half of attention is not discounted, and
norms, activations, the embedding look-up and the optimizer are left out.
"""

from dataclasses import dataclass

from wholestack.pretrain.config import ModelConfig
from wholestack.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCount(Record):
    """Parameters by kind."""

    embedding: int
    """Embedding matrix, and the output head where it is a matrix of its own."""
    matrices: int
    """Matrices of the blocks."""
    gains: int
    """Gains of the norms."""

    @property
    def total(self) -> int:
        """All parameters."""
        return self.embedding + self.matrices + self.gains

    @property
    def without_embeddings(self) -> int:
        """Parameters of the blocks and the last norm: the N of most scaling laws."""
        return self.matrices + self.gains


def parameter_count(config: ModelConfig) -> ParameterCount:
    """Count the parameters of a model without building it."""
    gains_of_heads = config.head_size if config.qk_norm else 0
    return ParameterCount(
        embedding=config.vocab_size * config.width * (1 if config.tied_embeddings else 2),
        matrices=config.layers * _block_matrix_size(config),
        gains=config.layers * (2 * config.width + gains_of_heads) + config.width,
    )


def forward_flops_per_token(config: ModelConfig, *, sequence_tokens: int | None = None) -> int:
    """FLOPs of one forward pass over one token of a sequence of ``sequence_tokens`` (default: the context)."""
    attention = 4 * (sequence_tokens or config.context) * config.width
    head = 2 * config.width * config.vocab_size
    return config.layers * (2 * _block_matrix_size(config) + attention) + head


def training_flops(config: ModelConfig, tokens: float) -> float:
    """FLOPs of training on ``tokens`` tokens in full-length sequences.

    Example:
        >>> config = ModelConfig(vocab_size=256, context=64, layers=1, width=64, head_size=32, kv_heads=2)
        >>> training_flops(config, 1)
        442368.0
    """
    return 3.0 * forward_flops_per_token(config) * tokens


def _block_matrix_size(config: ModelConfig) -> int:
    attention = config.width * (2 * config.width + 2 * config.kv_width)
    return attention + 3 * config.width * config.mlp_width
