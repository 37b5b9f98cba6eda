"""Figures of the code questions.

    python benchmarks/codetasks.py speed --count 10000          # items a minute of CPU, everything included
    python benchmarks/codetasks.py gold --count 100000          # answers against an oracle of another make
    python benchmarks/codetasks.py guess --count 10000 --difficulty 1,5,10
    wholestack codetasks generate --count 50000 --seed 1001 --out PRACTICE; ... --count 5000 --seed 77 --out ASKED
    python benchmarks/codetasks.py dial --practice PRACTICE --asked ASKED --seed 1 --cpu-minutes 10
    python benchmarks/codetasks.py signal --practice PRACTICE --asked ASKED --cpu-minutes 3

* ``speed``: CPU seconds of this process and of all that run programs. These are plain processes here, for the kernel
  does not count what runs within bubblewrap as ours; the wall seconds are those with bubblewrap, one process at a time.
* ``gold``: plain ``exec`` of every program in a process that shares nothing with the generator.
* ``guess``: so many items of each kind at each of the levels; the guesser that sees the choices, and the one that also
  sees the wording.
* ``dial``: one model, trained on questions of another seed for so many CPU minutes on one thread; the mean of
  ``choice_nll_raw`` on 500 questions a level.
* ``signal``: models of several widths, each of three seeds and so many CPU minutes: how far widths are apart against
  how far seeds are, by ``choice_nll_raw`` and by accuracy.
"""

import argparse
import gc
import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from tests.codetasks.oracle import wrong_answers

from wholestack.codetasks.generating import cells_of, make_items
from wholestack.codetasks.guessing import guess_by_cell
from wholestack.codetasks.item import CodeItem, read_items
from wholestack.codetasks.kinds.catalog import KINDS
from wholestack.data import bpe
from wholestack.errors import InputError
from wholestack.evals.items import make_item
from wholestack.evals.prepared import PreparedItems, prepare_items
from wholestack.evals.scores import item_values
from wholestack.evals.scoring import score_items
from wholestack.evals.signal import signal_to_noise
from wholestack.experiments.phases.data import Encoder
from wholestack.pretrain import ModelConfig, OptimizerConfig, parameter_count
from wholestack.pretrain.loop import TrainOutcome, train
from wholestack.pretrain.stability import StepRecord
from wholestack.record import to_builtins
from wholestack.sandbox import Sandbox
from wholestack.sandbox.image import default_folder, image_of_this_interpreter
from wholestack.sandbox.plain import PlainProcess

CONTEXT, VOCABULARY, HEAD = 256, 768, 16
METRIC = "choice_nll_raw"
METRICS = (METRIC, "accuracy_raw")
Values = dict[str, "np.ndarray[Any, np.dtype[np.float64]]"]


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
    gc.collect()
    gc.freeze()  # torch's objects, which the command that generates does not have
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


def as_many_as_there_are(items: Iterator[CodeItem]) -> list[CodeItem]:
    """Low levels have fewer than 10,000 different questions of some kinds."""
    found: list[CodeItem] = []
    try:
        found.extend(items)
    except InputError as error:
        print(error, file=sys.stderr)
    return found


def guess(count: int, seed: int, kinds: Sequence[str], levels: Sequence[int]) -> Iterator[dict[str, object]]:
    for kind in kinds or KINDS:
        for level in levels:
            items = as_many_as_there_are(drawn(count, seed, kinds=(kind,), levels=(level,)))
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
    batch: int = 4,
) -> TrainOutcome:
    """As many steps as fit into the CPU minutes, by the pace of the first twenty.

    Few sequences a step: how soon a model looks into the program at all is a matter of steps. On the three lowest
    levels, 2 million tokens each, it did at 4 sequences a step and did not at 16.
    """
    model = ModelConfig(
        vocab_size=vocab_size, context=CONTEXT, layers=layers, width=width, head_size=HEAD, kv_heads=width // HEAD
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """Questions to learn from, questions to be asked, and how they are written for a model."""

    practice: "np.ndarray[tuple[int, int], np.dtype[np.int64]]"
    asked: Sequence[CodeItem]
    prepared: PreparedItems
    vocab_size: int


def read_exam(practice: Path, asked: Path) -> Exam:
    learnt = list(read_items(practice))
    tokenizer = Encoder(bpe.train([item.context for item in learnt[:4000]], vocab_size=VOCABULARY))
    questions = list(read_items(asked))
    return Exam(
        practice=sequences(learnt, tokenizer),
        asked=questions,
        prepared=prepared(questions, tokenizer),
        vocab_size=tokenizer.tokenizer.vocab_size,
    )


def sat(exam: Exam, *, seed: int, cpu_minutes: float, shape: tuple[int, int], lr: float) -> tuple[TrainOutcome, Values]:
    """A model trained on the practice, and the two metrics of every question that fits into its context."""
    outcome = trained(
        exam.practice, exam.vocab_size, layers=shape[0], width=shape[1], seed=seed, cpu_minutes=cpu_minutes, lr=lr
    )
    scores = score_items(outcome.model, exam.prepared)
    if any(scores.reasons):
        raise SystemExit(f"{sum(reason != '' for reason in scores.reasons)} questions cannot be scored")
    return outcome, {metric: item_values(scores, metric)[0] for metric in METRICS}


def signal(exam: Exam, *, widths: Sequence[int], seeds: int, cpu_minutes: float, lr: float) -> Iterator[object]:
    found: dict[str, list[list[np.ndarray[Any, Any]]]] = {metric: [] for metric in METRICS}
    for width in widths:
        repeats = [
            sat(exam, seed=seed, cpu_minutes=cpu_minutes, shape=(2, width), lr=lr)[1] for seed in range(1, seeds + 1)
        ]
        for metric in METRICS:
            found[metric].append([each[metric] for each in repeats])
            yield {"width": width, "metric": metric, "means": [float(each[metric].mean()) for each in repeats]}
    for metric, values in found.items():
        stacked = np.array(values)
        yield {"metric": metric} | to_builtins(signal_to_noise(stacked, np.ones(stacked.shape[2])))


def dial(exam: Exam, *, seed: int, cpu_minutes: float, shape: tuple[int, int], lr: float) -> dict[str, object]:
    began = time.process_time()
    outcome, values = sat(exam, seed=seed, cpu_minutes=cpu_minutes, shape=shape, lr=lr)
    training = time.process_time() - began
    by_level, by_kind, accuracy = defaultdict(list), defaultdict(list), defaultdict(list)
    for item, value, is_right in zip(exam.asked, values[METRIC], values["accuracy_raw"], strict=True):
        by_level[item.difficulty].append(value)
        by_kind[item.kind, item.difficulty].append(value)
        accuracy[item.difficulty].append(is_right)
    levels = sorted(by_level)
    means = [float(np.mean(by_level[level])) for level in levels]
    return {
        "seed": seed,
        "parameters": parameter_count(outcome.model.config).total,
        "training_and_scoring_cpu_s": training,
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
    parser.add_argument("what", choices=["speed", "gold", "guess", "dial", "signal"])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", default="")
    parser.add_argument("--difficulty", default="1,4,7,10")
    parser.add_argument("--cpu-minutes", type=float, default=10.0)
    parser.add_argument("--practice", type=Path, help="questions to train on, for dial and signal")
    parser.add_argument("--asked", type=Path, help="questions to score, for dial and signal")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--widths", default="32,64,96", help="for signal")
    parser.add_argument("--lr", type=float, default=4e-3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for line in lines(given):
        print(json.dumps(line), flush=True)


def lines(given: argparse.Namespace) -> Iterator[object]:
    if given.what == "speed":
        yield speed(given.count, given.seed)
    elif given.what == "gold":
        yield gold(given.count, given.seed)
    elif given.what == "guess":
        kinds = given.kind.split(",") if given.kind else ()
        yield from guess(given.count, given.seed, kinds, [int(each) for each in given.difficulty.split(",")])
    else:
        if not (given.practice and given.asked):
            raise SystemExit(f"{given.what} needs --practice and --asked: files of different seeds")
        exam, shared = read_exam(given.practice, given.asked), {"cpu_minutes": given.cpu_minutes, "lr": given.lr}
        if given.what == "dial":
            yield dial(exam, seed=given.seed, shape=(given.layers, given.width), **shared)
        else:
            yield from signal(exam, widths=[int(each) for each in given.widths.split(",")], seeds=3, **shared)


if __name__ == "__main__":
    main()
