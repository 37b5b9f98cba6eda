"""Find the regime in which runs of seconds follow a law: held-out bits per byte against training FLOPs.

    python benchmarks/laptop_regime.py --vary lr=0.004,0.008,0.016 vocab=512,2048       one key at a time
    python benchmarks/laptop_regime.py --set width=48 --near 24                         random, round a centre
    python benchmarks/laptop_regime.py --each flops=2e11,width=48 flops=5e11,width=64   one run for each group
    python benchmarks/laptop_regime.py --law                                  the best shape found at each cost

Text: the standard library's source and ``pydoc_data.topics``. Held out: whole files, chosen by the hash of their
names. Bits per byte: nats of all predicted held-out tokens / ln 2 / bytes of these tokens, in windows of the context
that do not overlap; the first token of a window is context only. Results are appended to ``--out`` as JSON lines.
"""

import argparse
import hashlib
import json
import math
import os
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from pydoc_data import topics
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from wholestack.pretrain import ModelConfig, OptimizerConfig, parameter_count, training_flops
from wholestack.pretrain.loop import train
from wholestack.pretrain.model import Transformer

Tokens = NDArray[np.uint16]
SKIPPED = (
    "test",
    "tests",
    "idlelib",
    "lib2to3",
    "site-packages",
    "dist-packages",
    "ensurepip",
    "turtledemo",
    "config-",
)
HELD_OUT_PART = 0.06
HELD_OUT_TOKENS_BYTES = 160_000
TOKENIZER_SAMPLE_BYTES = 3_000_000
LAW = (
    "flops=1e10,layers=1,width=32,batch=2",
    "flops=2.5e10",
    "flops=5e10",
    "flops=5e10,seed=1",
    "flops=5e10,seed=2",
    "flops=1e11",
    "flops=2e11,width=48,batch=8",
    "flops=5e11,width=64,batch=8",
    "flops=1e12,layers=3,width=80,batch=8",
    "flops=2e12,layers=3,width=96,batch=8",
    "flops=6e12,layers=4,width=128,batch=16",
)


@dataclass(frozen=True, kw_only=True)
class Point:
    """One run: every choice that is searched or fixed."""

    vocab: int = 1024
    context: int = 64
    layers: int = 2
    width: int = 32
    head_size: int = 16
    kv_heads: int = 1
    mlp_ratio: float = 8 / 3
    tied: bool = False
    qk_norm: bool = True
    flops: float = 5e10
    batch: int = 4
    lr: float = 0.008
    weight_decay: float = 0.1
    warmup: float = 0.02
    decay: str = "linear"
    final: float = 0.0
    beta2: float = 0.95
    embedding_lr: float = 1.0
    clip: float = 1.0
    seed: int = 0
    threads: int = 1


def documents() -> Iterator[tuple[str, bytes]]:
    """Names and bytes of all documents, in a fixed order."""
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        name = str(path.relative_to(root))
        if not any(part in SKIPPED or part.startswith("config-") for part in path.relative_to(root).parts):
            yield name, path.read_bytes()
    for name, text in sorted(topics.topics.items()):
        yield f"topic:{name}", text.encode()


def is_held_out(name: str) -> bool:
    """A fixed part of the documents, by name."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) / 2**32 < HELD_OUT_PART


@cache
def corpus(vocab: int, folder: Path) -> tuple[Tokens, Tokens, Tokens]:
    """Training tokens, held-out tokens, and the bytes of every token; kept in ``folder``, they take seconds to make."""
    path = folder / f"tokens-{vocab}.npz"
    if not path.exists():
        kept, held, lengths = _tokens(vocab)
        np.savez(path, kept=kept, held=held, lengths=lengths)
    stored = np.load(path)
    return stored["kept"], stored["held"], stored["lengths"]


def _tokens(vocab: int) -> tuple[Tokens, Tokens, Tokens]:
    kept = [text for name, text in documents() if not is_held_out(name)]
    held = [text for name, text in documents() if is_held_out(name)]
    np.random.default_rng(0).shuffle(kept)
    np.random.default_rng(0).shuffle(held)
    kept_text, held_text = b"\n\n".join(kept), b"\n\n".join(held)[:HELD_OUT_TOKENS_BYTES]
    if vocab > 256:
        return _byte_pairs(vocab, kept_text, held_text)
    kept_bytes, held_bytes = (np.frombuffer(text, np.uint8).astype(np.uint16) for text in (kept_text, held_text))
    return kept_bytes, held_bytes, np.ones(256, dtype=np.uint16)


def _byte_pairs(vocab: int, kept: bytes, held: bytes) -> tuple[Tokens, Tokens, Tokens]:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(_pieces(kept[:TOKENIZER_SAMPLE_BYTES]), trainer)
    # In the byte-level alphabet every character of a token stands for one byte.
    lengths = np.array([len(str(tokenizer.id_to_token(i))) for i in range(vocab)], dtype=np.uint16)

    def encode(text: bytes) -> Tokens:
        return np.concatenate(
            [np.array(part.ids, dtype=np.uint16) for part in tokenizer.encode_batch(list(_pieces(text)))]
        )

    return encode(kept), encode(held), lengths


def _pieces(text: bytes, size: int = 20_000) -> Iterator[str]:
    decoded = text.decode("utf-8", errors="ignore")
    for start in range(0, len(decoded), size):
        yield decoded[start : start + size]


def configs(point: Point) -> tuple[ModelConfig, OptimizerConfig]:
    """The library's own settings of a point; steps follow from its FLOPs."""
    model = ModelConfig(
        vocab_size=point.vocab,
        context=point.context,
        layers=point.layers,
        width=point.width,
        head_size=point.head_size,
        kv_heads=point.kv_heads,
        mlp_ratio=point.mlp_ratio,
        tied_embeddings=point.tied,
        qk_norm=point.qk_norm,
    )
    per_step = training_flops(model, point.batch * point.context)
    optimizer = OptimizerConfig(
        lr=point.lr,
        batch_size=point.batch,
        steps=max(4, round(point.flops / per_step)),
        weight_decay=point.weight_decay,
        warmup_fraction=point.warmup,
        decay=point.decay,  # type: ignore[arg-type]
        final_lr_fraction=point.final,
        beta2=point.beta2,
        clip_norm=point.clip,
        embedding_lr_ratio=point.embedding_lr,
    )
    return model, optimizer


def bits_per_byte(model: Transformer, held: Tokens, lengths: Tokens) -> float:
    """Held-out bits per byte; see the module."""
    context = model.config.context
    windows = len(held) // (context + 1)
    tokens = torch.from_numpy(held[: windows * (context + 1)].reshape(windows, context + 1).astype(np.int64))
    nats = 0.0
    with torch.no_grad():
        for part in torch.split(tokens, 64):
            logits = model(part[:, :-1])
            nats += float(F.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten(), reduction="sum"))
    return nats / math.log(2) / float(lengths[tokens[:, 1:].numpy()].sum())


def run(point: Point, folder: Path) -> dict[str, Any]:
    """Train and measure one point."""
    kept, held, lengths = corpus(point.vocab, folder)
    model, optimizer = configs(point)
    offsets = np.arange(model.context + 1)

    def batches(step: int) -> NDArray[np.int64]:
        rng = np.random.default_rng((point.seed, step))
        starts = rng.integers(0, len(kept) - model.context - 1, optimizer.batch_size)
        batch: NDArray[np.int64] = kept[starts[:, None] + offsets].astype(np.int64)
        return batch

    started = time.process_time()
    outcome = train(model, optimizer, batches, seed=point.seed, threads=point.threads)
    cpu_s = time.process_time() - started
    summary = outcome.summary
    return {
        **asdict(point),
        "parameters": parameter_count(model).total,
        "tokens": summary.tokens,
        "steps": summary.steps,
        "actual_flops": summary.flops,
        "bits_per_byte": None if outcome.diverged else round(bits_per_byte(outcome.model, held, lengths), 4),
        "gradient_norm": summary.stability.largest_gradient_norm,
        "spikes": summary.stability.spikes,
        "cpu_s": round(cpu_s, 2),
        "flops_per_s": summary.flops / summary.seconds,
    }


def record(point: Point, out: Path, label: str = "") -> dict[str, Any]:
    """Run a point, append it to the results and print a line."""
    result = {"label": label, **run(point, out.parent)}
    with out.open("a") as file:
        file.write(json.dumps(result) + "\n")
    keys = ("vocab", "context", "layers", "width", "head_size", "batch", "lr", "tokens", "steps", "bits_per_byte")
    print(label, " ".join(f"{key}={result[key]}" for key in keys), f"{result['flops_per_s']:.2e} FLOP/s", flush=True)
    return result


def near(centre: Point, rng: np.random.Generator) -> Point:
    """A random point round a centre: what the search of a rehearsal would try."""
    width = centre.head_size * max(1, round(centre.width * math.exp(rng.normal(0, 0.4)) / centre.head_size))
    return replace(
        centre,
        layers=max(1, centre.layers + int(rng.integers(-1, 2))),
        width=width,
        batch=max(1, int(2 ** np.round(np.log2(centre.batch) + rng.normal(0, 1)))),
        lr=centre.lr * math.exp(rng.normal(0, 0.5)),
        warmup=min(0.5, centre.warmup * math.exp(rng.normal(0, 0.7))),
        weight_decay=centre.weight_decay * math.exp(rng.normal(0, 1)),
        seed=int(rng.integers(1_000_000)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/laptop_regime.jsonl"))
    parser.add_argument("--set", nargs="*", default=[], help="key=value over the defaults of a point")
    parser.add_argument("--vary", nargs="*", default=[], help="key=v1,v2,...: one run a value, one key at a time")
    parser.add_argument("--near", type=int, default=0, help="this many random points round the one of --set")
    parser.add_argument("--each", nargs="*", default=[], help="key=value,key=value,...: one run for each group")
    parser.add_argument("--law", action="store_true", help="the table of docs/decisions/0003-laptop-regime.md")
    arguments = parser.parse_args()
    if arguments.law:
        arguments.each = list(LAW)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    base = replace(Point(), **dict(map(_parse, arguments.set)))
    for label, point in _points(base, arguments.vary, arguments.each, arguments.near):
        record(point, arguments.out, label)


def _points(base: Point, vary: list[str], each: list[str], near_count: int) -> Iterator[tuple[str, Point]]:
    rng = np.random.default_rng(base.seed)
    for axis in vary:
        key, values = axis.split("=")
        for value in values.split(","):
            yield axis, replace(base, **dict([_parse(f"{key}={value}")]))
    for group in each:
        yield group, replace(base, **dict(map(_parse, group.split(","))))
    for _ in range(near_count):
        yield "near", near(base, rng)
    if not (vary or each or near_count):
        yield "", base


def _parse(pair: str) -> tuple[str, Any]:
    key, value = pair.split("=")
    kind = type(getattr(Point(), key))
    return key, value == "True" if kind is bool else kind(float(value)) if kind is int else kind(value)


if __name__ == "__main__":
    main()
