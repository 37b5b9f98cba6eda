"""Training speed at tiny size: our loop against a plain PyTorch loop with the same shapes, batches and arithmetic.

    python benchmarks/tiny_training.py [--rounds 5] [--steps 30]

The plain loop is what one writes first: separate query, key, value, gate and up layers, ``nn.RMSNorm``, rotation by
halves, ``scaled_dot_product_attention``, ``F.cross_entropy``, ``clip_grad_norm_``, ``torch.optim.AdamW`` with its
defaults, one ``item()`` a step. Runs alternate; a figure is tokens per CPU second of the process, one thread, and
the ratio is the median over the rounds.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wholestack.pretrain import ModelConfig, OptimizerConfig, parameter_count, training_flops
from wholestack.pretrain.loop import train

SHAPES = [
    # layers, width, head size, key/value heads, vocabulary, context, batch
    (1, 48, 16, 1, 1024, 64, 4),
    (2, 64, 32, 1, 512, 64, 8),
    (3, 96, 16, 2, 1024, 64, 8),
    (4, 128, 32, 4, 1024, 64, 8),
    (6, 256, 64, 2, 1024, 128, 8),
]


class PlainAttention(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.query = nn.Linear(config.width, config.width, bias=False)
        self.key = nn.Linear(config.width, config.kv_width, bias=False)
        self.value = nn.Linear(config.width, config.kv_width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.query_norm = nn.RMSNorm(config.head_size)
        self.key_norm = nn.RMSNorm(config.head_size)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        config = self.config
        batch, length, _ = x.shape
        query = self.query(x).view(batch, length, config.heads, config.head_size).transpose(1, 2)
        key = self.key(x).view(batch, length, config.kv_heads, config.head_size).transpose(1, 2)
        value = self.value(x).view(batch, length, config.kv_heads, config.head_size).transpose(1, 2)
        query, key = (_plain_rotate(part, cosine, sine) for part in (self.query_norm(query), self.key_norm(key)))
        mixed = F.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=config.kv_heads != config.heads
        )
        out: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, length, config.width))
        return out


class PlainBlock(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.RMSNorm(config.width), nn.RMSNorm(config.width)
        self.attention = PlainAttention(config)
        self.gate = nn.Linear(config.width, config.mlp_width, bias=False)
        self.up = nn.Linear(config.width, config.mlp_width, bias=False)
        self.down = nn.Linear(config.mlp_width, config.width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cosine, sine)
        h = self.mlp_norm(x)
        mixed: Tensor = x + self.down(F.silu(self.gate(h)) * self.up(h))
        return mixed


class PlainTransformer(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.width)
        self.blocks = nn.ModuleList(PlainBlock(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        frequencies = config.rope_base ** (-torch.arange(0, config.head_size, 2) / config.head_size)
        angles = torch.outer(torch.arange(config.context), frequencies).repeat(1, 2)
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        logits: Tensor = self.head(self.norm(x))
        return logits


def _plain_rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


def plain_train(config: ModelConfig, optimizer_config: OptimizerConfig, batches: Callable[[int], Tensor]) -> float:
    """The last loss."""
    model = PlainTransformer(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=optimizer_config.lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / optimizer_config.steps)
    loss_nats = 0.0
    for step in range(optimizer_config.steps):
        tokens = batches(step)
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, config.vocab_size), tokens[:, 1:].reshape(-1))
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        loss_nats = loss.item()
    return loss_nats


def compare(shape: tuple[int, ...], *, rounds: int, steps: int) -> str:
    """One line of the table."""
    layers, width, head_size, kv_heads, vocab, context, batch = shape
    config = ModelConfig(
        vocab_size=vocab, context=context, layers=layers, width=width, head_size=head_size, kv_heads=kv_heads
    )
    settings = OptimizerConfig(lr=0.003, batch_size=batch, steps=steps)
    tokens = np.random.default_rng(0).integers(0, vocab, (batch, context + 1))

    def ours() -> object:
        return train(config, settings, lambda step: tokens, seed=0, threads=1)

    def plain() -> object:
        return plain_train(config, settings, lambda step: torch.from_numpy(tokens))

    ours(), plain()
    pairs = [(_rate(ours, config, settings), _rate(plain, config, settings)) for _ in range(rounds)]
    best_ours, best_plain = (max(column) for column in zip(*pairs, strict=True))
    ratio = median(a / b for a, b in pairs)
    flops = training_flops(config, best_ours)
    parameters = parameter_count(config).total
    return (
        f"| {layers} x {width} | {head_size} | {vocab} | {batch} x {context} | {parameters:,} | {best_ours:,.0f} "
        f"| {best_plain:,.0f} | {ratio:.2f} | {flops:.1e} |"
    )


def _rate(run: Callable[[], object], config: ModelConfig, settings: OptimizerConfig) -> float:
    started = time.process_time()
    run()
    return settings.steps * settings.batch_size * config.context / (time.process_time() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| layers x width | head | vocab | batch | parameters | ours, tokens/CPU s | plain | ratio | FLOP/CPU s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for shape in SHAPES:
        print(compare(shape, rounds=arguments.rounds, steps=arguments.steps), flush=True)


if __name__ == "__main__":
    main()
