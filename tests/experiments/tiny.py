"""A rehearsal small enough for tests: two folders of made-up text, models of a few thousand parameters."""

import random
from pathlib import Path

from wholestack.experiments.preflight import ProbeResult
from wholestack.experiments.recipe import DimensionSpec, Recipe, SourceSpec
from wholestack.health.active.golden import ONE_DIGEST

LETTERS = "etaoinshrdlu"


def write_text(folder: Path, *, kind: str, documents: int = 80, words: int = 300, seed: int = 0) -> Path:
    """A folder of documents over a small vocabulary with a grammar that a tiny model can learn."""
    rng = random.Random(f"{kind}/{seed}")
    vocabulary = ["".join(rng.choices(LETTERS, k=rng.randint(2, 7))) for _ in range(120)]
    followers = {word: rng.choices(vocabulary, k=4) for word in vocabulary}
    folder.mkdir(parents=True)
    for number in range(documents):
        word = rng.choice(vocabulary)
        text = []
        for _ in range(words):
            text.append(word)
            word = rng.choice(followers[word]) if rng.random() < 0.85 else rng.choice(vocabulary)
        lines = [" ".join(text[start : start + 9]) for start in range(0, len(text), 9)]
        (folder / f"{kind}-{number:02d}.txt").write_text("\n".join(lines) + "\n")
    return folder


def tiny_recipe(folder: Path, **changes: object) -> Recipe:
    """A recipe over two folders below ``folder``, which are made if they are missing."""
    for kind in ("notes", "tales"):
        if not (folder / kind).exists():
            write_text(folder / kind, kind=kind)
    values: dict[str, object] = {
        "name": "tiny",
        "sources": tuple(
            SourceSpec(kind="folder", name=kind, path=str(folder / kind), licence="CC0-1.0")
            for kind in ("notes", "tales")
        ),
        "prose_source": "tales",
        "vocab_size": 256,
        "context": 64,
        "item_count": 24,
        "large_threads": 1,
        "held_out_fraction": 0.12,
        "max_trial_cost_flops": 2e9,
        "max_trials": 14,
        "dimensions": (
            DimensionSpec(name="layers", kind="log", centre=1, scale=0.2, low=1, high=4, rounding=1),
            DimensionSpec(name="width", kind="log", centre=32, scale=0.2, low=16, high=128, rounding=16),
            DimensionSpec(name="head_size", kind="categorical", centre=16, choices=(8, 16)),
            DimensionSpec(name="tokens", kind="log", centre=3000, scale=0.4, low=500),
            DimensionSpec(name="batch_size", kind="log", centre=4, scale=0.2, low=1, high=32, rounding=1),
            DimensionSpec(name="lr", kind="log", centre=1e-2, scale=0.3, low=1e-4, high=0.2),
            DimensionSpec(name="weight_decay", kind="log", centre=0.1, scale=0.5, low=1e-3, high=1.0),
            DimensionSpec(name="warmup_fraction", kind="logit", centre=0.1, scale=0.5, low=0.01, high=0.5),
            DimensionSpec(name="prose_weight", kind="logit", centre=0.5, scale=0.5, low=0.05, high=0.95),
        ),
    }
    return Recipe(**{**values, **changes})  # type: ignore[arg-type]


def probed(rates_flops_s: dict[str, float], *, queued_share: float = 0.0) -> ProbeResult:
    """What a preflight's probe says on a machine that multiplies right."""
    return ProbeResult(
        checksum=ONE_DIGEST,
        expected_checksum=ONE_DIGEST,
        rates_flops_s=rates_flops_s,
        seconds=2.0,
        queued_share=queued_share,
    )
