"""How many items a decision between two recipes takes, by answer loss and by accuracy.

    python benchmarks/evals_decisions.py train DIR      # about 10 CPU minutes; goes on where it stopped
    python benchmarks/evals_decisions.py analyse DIR    # prints the table

Fifteen recipes and twenty pairs of them are fixed below, with metrics, seeds and level, before anything is scored;
small gaps are among them. Every recipe is trained with three seeds, the base with five, by the worker of a rehearsal.
All models score the same 2,000 continuation choices of documents that no training read, and 1,500 windows of the same
documents.

A pair is decided by the sign of the paired difference on n items. The items that a metric needs are the fewest n on
which draws of n items (whole documents, with replacement) decide as all items do in 95 % of cases. With z the
difference on all N items over its cluster-robust standard error, that is n = N (1.645 / z)^2; a pair whose n is above
N cannot be decided by that metric on these items, and counts with its n. Draws check the formula.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from wholestack.data.build import prepare
from wholestack.data.corpus import Corpus
from wholestack.evals.continuation import build_continuation_items
from wholestack.evals.prepared import prepare_items
from wholestack.evals.scores import ItemScores, item_values, paired_difference, summarise
from wholestack.evals.statistics import Floats
from wholestack.experiments.held_out import HeldOutLosses
from wholestack.experiments.phases.data import DATA_SEED, Encoder
from wholestack.experiments.records import HELD_OUT, ITEM_SCORES, RESULT, SPEC, Params
from wholestack.experiments.rehearsal import bytes_per_token
from wholestack.experiments.settings import training_plan
from wholestack.experiments.sources import sources_of
from wholestack.experiments.specs import HeldOutProbe, TrainingSpec
from wholestack.experiments.worker import train_and_score
from wholestack.journal import write_atomic
from wholestack.recipes.laptop import laptop
from wholestack.record import to_json

ITEMS, PER_DOCUMENT, WINDOWS = 2000, 40, 1500
HELD_OUT_FRACTION = 0.15
SEEDS, BASE_SEEDS = 3, 5
LEVEL = 0.95
Z_OF_LEVEL = 1.6448536
DRAWS = 2000
LOSS, ACCURACY = "answer_bpb", "accuracy_per_byte"
METRICS = (LOSS, "choice_nll_per_byte", "choice_nll_raw", ACCURACY, "accuracy_raw")
HIGHER_IS_BETTER = frozenset({ACCURACY, "accuracy_raw"})

TOKENS = 200_000
BASE: Params = {
    "layers": 2,
    "width": 48,
    "head_size": 16,
    "tokens": TOKENS,
    "batch_size": 8,
    "lr": 1e-2,
    "weight_decay": 0.1,
    "warmup_fraction": 0.02,
    "prose_weight": 0.4,
}
CHANGES: dict[str, Params] = {
    "base": {},
    "tokens x1.05": {"tokens": 1.05 * TOKENS},
    "tokens x1.1": {"tokens": 1.1 * TOKENS},
    "tokens x1.25": {"tokens": 1.25 * TOKENS},
    "tokens x1.5": {"tokens": 1.5 * TOKENS},
    "width 32": {"width": 32},
    "width 64": {"width": 64},
    "1 layer": {"layers": 1},
    "3 layers": {"layers": 3},
    "lr x0.5": {"lr": 5e-3},
    "lr x2": {"lr": 2e-2},
    "prose 0.25": {"prose_weight": 0.25},
    "prose 0.55": {"prose_weight": 0.55},
    "batch 16": {"batch_size": 16},
    "decay x5": {"weight_decay": 0.5},
}
PAIRS: tuple[tuple[str, str], ...] = (
    *(("base", name) for name in CHANGES if name != "base"),
    ("tokens x1.05", "tokens x1.1"),
    ("tokens x1.1", "tokens x1.25"),
    ("lr x0.5", "lr x2"),
    ("prose 0.25", "prose 0.55"),
    ("3 layers", "width 64"),
    ("tokens x1.5", "width 64"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One trained model: what it gave to every item, and its loss on every window."""

    items: ItemScores
    windows_bpb: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What one metric says on one pair of models."""

    difference: float
    """Second minus first, on all items."""
    z: float
    """Over its standard error."""
    items: float
    """Items needed, by the formula."""
    drawn: float
    """Share of draws of so many items (at most all) that decide as all items do."""

    @property
    def decides(self) -> bool:
        return abs(self.z) >= Z_OF_LEVEL


def seeds_of(name: str) -> range:
    return range(BASE_SEEDS if name == "base" else SEEDS)


def folder_of(root: Path, name: str, seed: int) -> Path:
    return root / "jobs" / f"{name.replace(' ', '-')}-{seed}"


def train(root: Path) -> None:
    """Train and score what is not there yet."""
    recipe = laptop()
    corpus = prepare(
        sources_of(recipe),
        root / "data",
        vocab_size=recipe.vocab_size,
        seed=DATA_SEED,
        held_out_fraction=HELD_OUT_FRACTION,
    )
    items = build_continuation_items(
        corpus.documents("held_out"), count=ITEMS, seed=DATA_SEED, per_document=PER_DOCUMENT
    )
    items.save(root / "items")
    prepare_items(items, Encoder(corpus.tokenizer), context_tokens=recipe.context).save(root / "items/prepared.npz")
    per_token = bytes_per_token(corpus)
    begun = time.process_time()
    for name, changes in CHANGES.items():
        for seed in seeds_of(name):
            folder = folder_of(root, name, seed)
            if (folder / RESULT).exists():
                continue
            folder.mkdir(parents=True, exist_ok=True)
            plan = training_plan(recipe, {**BASE, **changes})
            spec = TrainingSpec(
                name=folder.name,
                corpus=str(root / "data"),
                items=str(root / "items/prepared.npz"),
                model=plan.model,
                optimizer=plan.optimizer,
                mixture=plan.mixture,
                seed=seed,
                threads=1,
                checkpoints=False,
                bytes_per_token=per_token,
                keep_items=True,
                held_out=HeldOutProbe(mixture=_even(corpus), windows=WINDOWS, seed=DATA_SEED),
            )
            write_atomic(folder / SPEC, to_json(spec, indent=2))
            train_and_score(str(folder))
            print(f"{time.process_time() - begun:6.0f} CPU s  {folder.name}", file=sys.stderr, flush=True)


def _even(corpus: Corpus) -> dict[str, float]:
    return {name: 1 / len(corpus.sources) for name in corpus.sources}


def load(root: Path, name: str, seed: int) -> Run:
    folder = folder_of(root, name, seed)
    return Run(items=ItemScores.load(folder / ITEM_SCORES), windows_bpb=HeldOutLosses.load(folder / HELD_OUT).after_bpb)


def needed(first: ItemScores, second: ItemScores, metric: str, rng: np.random.Generator) -> Needed:
    """Items that a metric needs to decide between two models as all items do."""
    paired = paired_difference(first, second, metric=metric)
    error = paired.standard_error or 0.0
    z = paired.difference / error if error else 0.0
    count = paired.items * (Z_OF_LEVEL / z) ** 2 if z else math.inf
    share = agreement(first, second, metric, count=min(count, paired.items), sign=np.sign(paired.difference), rng=rng)
    return Needed(difference=paired.difference, z=z, items=count, drawn=share)


def agreement(
    first: ItemScores, second: ItemScores, metric: str, *, count: float, sign: float, rng: np.random.Generator
) -> float:
    """Share of draws of about ``count`` items, whole documents with replacement, whose difference has this sign."""
    one, weight = item_values(first, metric)
    other, _ = item_values(second, metric)
    keep = first.is_scored & second.is_scored
    _, group = np.unique(first.clusters[keep], return_inverse=True)
    tops, bottoms = np.bincount(group, (other - one)[keep]), np.bincount(group, weight[keep])
    drawn = max(1, round(count / keep.sum() * len(tops)))
    times = rng.multinomial(drawn, np.full(len(tops), 1 / len(tops)), size=DRAWS)
    signs = np.sign((times @ tops) / np.maximum(times @ bottoms, 1e-300))
    return float((signs == sign).mean() + 0.5 * (signs == 0).mean())


def median_interval(values: Sequence[float], rng: np.random.Generator) -> tuple[float, float]:
    """Percentile interval of a median, pairs drawn with replacement."""
    draws = rng.choice(np.array(values), size=(10_000, len(values)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975], method="nearest")
    return float(low), float(high)


def analyse(root: Path) -> None:
    runs = {(name, seed): load(root, name, seed) for name in CHANGES for seed in seeds_of(name)}
    _repeatability(runs)
    rng = np.random.default_rng(0)
    found = {
        (pair, seed, metric): needed(runs[pair[0], seed].items, runs[pair[1], seed].items, metric, rng)
        for pair in PAIRS
        for seed in range(SEEDS)
        for metric in METRICS
    }
    _pair_table(runs, found)
    for loss in METRICS[:3]:
        for accuracy in METRICS[3:]:
            _ratios(found, loss, accuracy, rng)
    _decisions(runs, found)


Found = dict[tuple[tuple[str, str], int, str], Needed]
Runs = dict[tuple[str, int], Run]


def _repeatability(runs: Runs) -> None:
    print("| metric | mean of the base | SD over 5 seeds | standard error over the items of one seed |")
    print("|---|---|---|---|")
    for metric in METRICS:
        found = [summarise(runs["base", seed].items).metric(metric) for seed in range(BASE_SEEDS)]
        values = [each.value for each in found]
        error = found[0].standard_error or math.nan
        print(f"| {metric} | {np.mean(values):.4f} | {np.std(values, ddof=1):.4f} | {error:.4f} |")
    held_out = [float(runs["base", seed].windows_bpb.mean()) for seed in range(BASE_SEEDS)]
    print(f"| held-out text | {np.mean(held_out):.4f} | {np.std(held_out, ddof=1):.4f} | |")
    print()


def held_out_difference(runs: Runs, pair: tuple[str, str], seeds: Sequence[int]) -> float:
    """Second minus first in held-out loss, mean over seeds; bits per byte."""
    first, second = pair
    differences = [runs[second, seed].windows_bpb - runs[first, seed].windows_bpb for seed in seeds]
    return float(np.mean(differences))


def _pair_table(runs: Runs, found: Found) -> None:
    print(f"| pair | held-out, 3 seeds | {LOSS} | z | items | {ACCURACY} | z | items | items, loss over accuracy |")
    print("|---|---|---|---|---|---|---|---|---|")
    for pair in PAIRS:
        loss, accuracy = found[pair, 0, LOSS], found[pair, 0, ACCURACY]
        truth = held_out_difference(runs, pair, range(SEEDS))
        print(
            f"| {pair[0]}, {pair[1]} | {truth:+.4f} | {loss.difference:+.4f} | {loss.z:+.1f} | {_count(loss)} |"
            f" {accuracy.difference:+.4f} | {accuracy.z:+.1f} | {_count(accuracy)} |"
            f" {loss.items / accuracy.items if accuracy.items < math.inf else 0:.3f} |"
        )
    print()


def _count(needed: Needed) -> str:
    if math.isinf(needed.items):
        return "no number"
    return f"{needed.items:,.0f}" if needed.decides else f"({needed.items:,.0f})"


def _ratios(found: Found, loss: str, accuracy: str, rng: np.random.Generator) -> None:
    """Median ratio of items over the pairs, for each seed."""
    for seed in range(SEEDS):
        both = [(found[pair, seed, loss], found[pair, seed, accuracy]) for pair in PAIRS]
        ratios = [one.items / other.items if other.items < math.inf else 0.0 for one, other in both]
        low, high = median_interval(ratios, rng)
        neither = sum(not one.decides and not other.decides for one, other in both)
        only_loss = sum(one.decides and not other.decides for one, other in both)
        only_accuracy = sum(other.decides and not one.decides for one, other in both)
        both_decide = len(ratios) - neither - only_loss - only_accuracy
        at_most_quarter = sum(ratio <= 0.25 for ratio in ratios)
        print(
            f"{loss} over {accuracy}, seed {seed}: median {median(ratios):.3f} ({low:.3f} to {high:.3f});"
            f" at most 1/4 in {at_most_quarter} of {len(ratios)}; both decide {both_decide},"
            f" only loss {only_loss}, only accuracy {only_accuracy}, neither {neither}"
        )
    both = [
        (one, other)
        for pair in PAIRS
        for seed in range(SEEDS)
        if (one := found[pair, seed, loss]).decides and (other := found[pair, seed, accuracy]).decides
    ]
    ratios = sorted(one.items / other.items for one, other in both)
    opposite = sum(np.sign(one.difference) == np.sign(other.difference) for one, other in both)
    print(
        f"  where both decide, {len(both)} of {len(PAIRS) * SEEDS} over all seeds: ratio median {median(ratios):.3f},"
        f" from {ratios[0]:.3f} to {ratios[-1]:.3f}; they decide for different sides in {opposite}"
    )
    deciding = [each.drawn for (_, _, metric), each in found.items() if metric in (loss, accuracy) and each.decides]
    print(f"  draws agree with the formula's {LEVEL:.0%}: mean {np.mean(deciding):.3f}, least {min(deciding):.3f}")


def _decisions(runs: Runs, found: Found) -> None:
    """How often one seed's items decide as the held-out loss of the same weights, and of the recipes over seeds."""
    print()
    print("| metric | items | as the held-out loss of the same weights | as the recipes' held-out loss over 3 seeds |")
    print("|---|---|---|---|")
    rng = np.random.default_rng(1)
    for metric in METRICS:
        for count in (100, 400, ITEMS):
            same, recipes = [], []
            for pair in PAIRS:
                over_seeds = _wanted(metric, held_out_difference(runs, pair, range(SEEDS)))
                for seed in range(SEEDS):
                    first, second = runs[pair[0], seed].items, runs[pair[1], seed].items
                    wanted = _wanted(metric, held_out_difference(runs, pair, [seed]))
                    if count == ITEMS:
                        sign = np.sign(found[pair, seed, metric].difference)
                        same.append(0.5 * (1 + sign * wanted))
                        recipes.append(0.5 * (1 + sign * over_seeds))
                    else:
                        share = agreement(first, second, metric, count=count, sign=wanted, rng=rng)
                        same.append(share)
                        recipes.append(share if wanted == over_seeds else 1 - share)
            print(f"| {metric} | {count:,} | {np.mean(same):.3f} | {np.mean(recipes):.3f} |")


def _wanted(metric: str, held_out: float) -> float:
    """Sign that the metric's difference has if it follows the held-out loss."""
    return float(np.sign(-held_out if metric in HIGHER_IS_BETTER else held_out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("train", "analyse"))
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    (train if asked.step == "train" else analyse)(asked.folder.resolve())


if __name__ == "__main__":
    main()
