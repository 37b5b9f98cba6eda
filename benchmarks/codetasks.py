"""Figures of the code questions.

    python benchmarks/codetasks.py speed --count 10000          # items a minute of CPU, everything included
    python benchmarks/codetasks.py gold --count 100000          # answers against an oracle of another make
    python benchmarks/codetasks.py guess --count 10000 --difficulty 1,5,10
    python benchmarks/codetasks.py dial --seed 1 --cpu-minutes 15

* ``speed``: CPU seconds of this process and of all that run programs. These are plain processes here, for the kernel
  does not count what runs within bubblewrap as ours; the wall seconds are those with bubblewrap, one process at a time.
* ``gold``: plain ``exec`` of every program in a process that shares nothing with the generator.
* ``guess``: so many items of each kind at each of the levels; the guesser that sees the choices, and the one that also
  sees the wording.
* ``dial``: one model, trained on questions of other seeds for so many CPU minutes on one thread; the mean of
  ``choice_nll_raw`` on 500 questions a level.
"""

import argparse
import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from scipy.stats import spearmanr
from tests.codetasks.oracle import wrong_answers

from wholestack.codetasks.generating import cells_of, make_items
from wholestack.codetasks.guessing import guess_by_cell
from wholestack.codetasks.item import CodeItem
from wholestack.codetasks.kinds.catalog import KINDS
from wholestack.data import bpe
from wholestack.evals.items import make_item
from wholestack.evals.prepared import PreparedItems, prepare_items
from wholestack.evals.scores import item_values
from wholestack.evals.scoring import score_items
from wholestack.experiments.phases.data import Encoder
from wholestack.pretrain import ModelConfig, OptimizerConfig, parameter_count
from wholestack.pretrain.loop import TrainOutcome, train
from wholestack.pretrain.stability import StepRecord
from wholestack.sandbox import Sandbox
from wholestack.sandbox.image import default_folder, image_of_this_interpreter
from wholestack.sandbox.plain import PlainProcess

CONTEXT, VOCABULARY = 256, 768
METRIC = "choice_nll_raw"


def cpu_s() -> float:
    """Of this process and of its children that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def drawn(
    count: int, seed: int, *, kinds: Sequence[str] = (), levels: Sequence[int] = (), sandbox: Sandbox | None = None
) -> Iterator[CodeItem]:
    return make_items(cells_of(kinds, levels), count=count, seed=seed, run=(sandbox or Sandbox.open()).run)


def speed(count: int, seed: int) -> dict[str, object]:
    cpu = cpu_s()
    made = sum(
        1 for _ in drawn(count, seed, sandbox=Sandbox(PlainProcess(image_of_this_interpreter(default_folder()))))
    )
    used = cpu_s() - cpu
    began = time.monotonic()
    assert sum(1 for _ in drawn(count, seed)) == made
    return {
        "items": made,
        "cpu_s": used,
        "wall_s": time.monotonic() - began,
        "ms_an_item": used / made * 1e3,
        "items_a_minute": made / used * 60,
    }


def gold(count: int, seed: int) -> dict[str, object]:
    part: list[CodeItem] = []
    wrong: list[CodeItem] = []
    for item in drawn(count, seed):
        part.append(item)
        if len(part) == 5000:
            wrong += wrong_answers(part)
            part = []
    wrong += wrong_answers(part) if part else []
    return {"items": count, "seed": seed, "wrong": len(wrong), "first": [item.context for item in wrong[:3]]}


def guess(count: int, seed: int, kinds: Sequence[str], levels: Sequence[int]) -> Iterator[dict[str, object]]:
    for kind in kinds or KINDS:
        for level in levels:
            items = list(drawn(count, seed, kinds=(kind,), levels=(level,)))
            for row in guess_by_cell(items, seed=seed).rows:
                yield {
                    "kind": kind,
                    "difficulty": level,
                    "features": row.features,
                    "items": row.items,
                    "accuracy": row.accuracy,
                    "low": row.low,
                    "high": row.high,
                    "verdict": row.verdict,
                }


def sequences(items: Sequence[CodeItem], tokenizer: Encoder) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    """Whole questions with their answers behind each other, ``[sequences, CONTEXT + 1]``; the last one is cut."""
    rows: list[list[int]] = []
    row: list[int] = []
    for item in items:
        tokens = tokenizer.encode(f"{item.context} {item.choices[item.gold]}\n\n")
        if row and len(row) + len(tokens) > CONTEXT + 1:
            rows.append((row + [0] * (CONTEXT + 1))[: CONTEXT + 1])
            row = []
        row += tokens
    return np.array(rows, dtype=np.int64)


def trained(
    data: "np.ndarray[tuple[int, int], np.dtype[np.int64]]",
    vocab_size: int,
    *,
    layers: int,
    width: int,
    seed: int,
    cpu_minutes: float,
    lr: float,
    batch: int = 16,
) -> TrainOutcome:
    """As many steps as fit into the CPU minutes, by the pace of the first twenty."""
    model = ModelConfig(
        vocab_size=vocab_size, context=CONTEXT, layers=layers, width=width, head_size=32, kv_heads=width // 32
    )

    def batches(step: int) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
        places = np.arange(step * batch, (step + 1) * batch)
        order = np.random.default_rng((seed, int(places[0]) // len(data))).permutation(len(data))
        return data[order[places % len(data)]]

    began = time.process_time()
    train(model, OptimizerConfig(lr=lr, batch_size=batch, steps=20), batches, seed=seed, threads=1)
    each = (time.process_time() - began) / 20
    steps = int(cpu_minutes * 60 / each)

    def tell(record: StepRecord) -> None:
        if record.step % max(1, steps // 10) == 0:
            print(f"step {record.step} of {steps}: {record.loss_nats:.3f} nats", file=sys.stderr, flush=True)

    settings = OptimizerConfig(lr=lr, batch_size=batch, steps=steps, warmup_fraction=0.05)
    return train(model, settings, batches, seed=seed, threads=1, on_step=tell)


def prepared(items: Sequence[CodeItem], tokenizer: Encoder) -> PreparedItems:
    return prepare_items(
        [
            make_item(context=each.context, choices=each.choices, gold=each.gold, id=each.id, source=each.kind)
            for each in items
        ],
        tokenizer,
        context_tokens=CONTEXT,
    )


def dial(seed: int, cpu_minutes: float, count: int, shape: tuple[int, int], lr: float) -> dict[str, object]:
    practice = list(drawn(count, 1000 + seed))
    asked = list(drawn(5000, 77))
    tokenizer = Encoder(bpe.train([item.context for item in practice[:4000]], vocab_size=VOCABULARY))
    began = time.process_time()
    outcome = trained(
        sequences(practice, tokenizer),
        tokenizer.tokenizer.vocab_size,
        layers=shape[0],
        width=shape[1],
        seed=seed,
        cpu_minutes=cpu_minutes,
        lr=lr,
    )
    training = time.process_time() - began
    values = item_values(score_items(outcome.model, prepared(asked, tokenizer)), METRIC)
    right = item_values(score_items(outcome.model, prepared(asked, tokenizer)), "accuracy_raw")
    by_level, by_kind, accuracy = defaultdict(list), defaultdict(list), defaultdict(list)
    for item, value, is_right in zip(asked, values, right, strict=True):
        by_level[item.difficulty].append(value)
        by_kind[item.kind, item.difficulty].append(value)
        accuracy[item.difficulty].append(is_right)
    levels = sorted(by_level)
    means = [float(np.mean(by_level[level])) for level in levels]
    return {
        "seed": seed,
        "parameters": parameter_count(outcome.model.config).total,
        "training_cpu_s": training,
        "steps": outcome.summary.steps,
        "means": means,
        "standard_errors": [float(np.std(by_level[level]) / len(by_level[level]) ** 0.5) for level in levels],
        "accuracy": [float(np.mean(accuracy[level])) for level in levels],
        "spearman": float(spearmanr(levels, means)[0]),
        "spearman_by_kind": {
            kind: float(spearmanr(levels, [np.mean(by_kind[kind, level]) for level in levels])[0]) for kind in KINDS
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "gold", "guess", "dial"])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", default="")
    parser.add_argument("--difficulty", default="1,4,7,10")
    parser.add_argument("--cpu-minutes", type=float, default=15.0)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--lr", type=float, default=8e-3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for line in lines(given):
        print(json.dumps(line), flush=True)


def lines(given: argparse.Namespace) -> Iterator[dict[str, object]]:
    if given.what == "speed":
        yield speed(given.count, given.seed)
    elif given.what == "gold":
        yield gold(given.count, given.seed)
    elif given.what == "guess":
        kinds = given.kind.split(",") if given.kind else ()
        yield from guess(given.count, given.seed, kinds, [int(each) for each in given.difficulty.split(",")])
    else:
        yield dial(given.seed, given.cpu_minutes, given.count, (given.layers, given.width), given.lr)


if __name__ == "__main__":
    main()
