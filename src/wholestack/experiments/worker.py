"""What runs inside a worker process: the probes of the preflight, and one training run with its evaluation.

A worker reads ``spec.json`` from its folder and leaves ``result.json`` there by atomic rename; nothing else of it is
believed. This is the module that imports torch; the supervisor loads it once and forks.
"""

import itertools
import math
import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch

from wholestack.data.corpus import Corpus
from wholestack.data.loader import Loader, Stretch
from wholestack.evals.prepared import PreparedItems
from wholestack.evals.scores import Scores, summarise
from wholestack.evals.scoring import score_items
from wholestack.experiments.held_out import HeldOutLosses, piece_losses, pieces_of
from wholestack.experiments.preflight import ProbeResult
from wholestack.experiments.recipe import Device, Precision
from wholestack.experiments.records import CURVE, HELD_OUT, ITEM_SCORES, RESULT, SPEC, CurvePoint
from wholestack.experiments.specs import HeldOutProbe, TrainingResult, TrainingSpec
from wholestack.health.active.golden import ONE_DIGEST, ONE_PRODUCT, digest_of
from wholestack.health.active.operands import left_operand, right_operand
from wholestack.journal import JournalWriter, read_journal, write_atomic
from wholestack.pretrain.checkpoint import load_model
from wholestack.pretrain.config import ModelConfig, OptimizerConfig
from wholestack.pretrain.flops import training_flops
from wholestack.pretrain.loop import TrainOutcome, train
from wholestack.pretrain.model import Transformer
from wholestack.pretrain.stability import StepRecord
from wholestack.record import from_json, to_json

CURVE_POINTS = 120
CHECKPOINT_EVERY_S = 15.0
CURVE_EVERY_S = CHECKPOINT_EVERY_S
"""Longest time between two points of a curve: what a checkpoint keeps of a killed run, its budget must count."""
LN2 = math.log(2)


def train_and_score(folder: str) -> None:
    """Train one model as ``spec.json`` in ``folder`` says, score it, write ``result.json``."""
    place = Path(folder)
    spec = from_json(TrainingSpec, (place / SPEC).read_bytes(), where=str(place / SPEC))
    torch.set_flush_denormal(True)
    corpus = Corpus.open(Path(spec.corpus))
    loader = Loader(
        corpus,
        [Stretch(first_sequence=each.first_sequence, weights=each.weights) for each in spec.schedule] or spec.mixture,
        batch_size=spec.optimizer.batch_size,
        context=spec.model.context,
        seed=spec.seed,
    )
    start = load_model(Path(spec.initial)) if spec.initial else None
    if not spec.checkpoints:
        (place / CURVE).unlink(missing_ok=True)
    known = read_journal(place / CURVE, CurvePoint)
    queued_s = _queued_seconds()
    with JournalWriter(place / CURVE, CurvePoint) as curve:
        outcome = train(
            spec.model,
            spec.optimizer,
            loader.batch,
            seed=spec.seed,
            threads=spec.threads,
            initial=None if start is None else start.state_dict(),
            checkpoint_folder=place / "checkpoints" if spec.checkpoints else None,
            checkpoint_every_s=CHECKPOINT_EVERY_S if spec.checkpoints else None,
            on_step=curve_recorder(spec, known[-1] if known else None, curve.append),
            device=spec.device,
            precision=spec.precision,
        )
    queued_s = _queued_seconds() - queued_s
    if spec.held_out is not None and not outcome.diverged:
        _look_at_held_out(spec, spec.held_out, corpus, start, outcome.model).save(place / HELD_OUT)
    write_atomic(place / RESULT, to_json(_result(spec, outcome, queued_s, place), indent=2))


def _look_at_held_out(
    spec: TrainingSpec, probe: HeldOutProbe, corpus: Corpus, start: Transformer | None, end: Transformer
) -> HeldOutLosses:
    torch.set_num_threads(spec.threads)
    loader = Loader(corpus, probe.mixture, batch_size=1, context=spec.model.context, seed=probe.seed, split="held_out")
    bits = _bits_per_byte_of_a_nat(spec.bytes_per_token, probe.mixture)
    pieces = pieces_of(corpus, loader, probe.windows)
    before = None if start is None else piece_losses(start.to(spec.device), loader, pieces, probe.windows)
    return HeldOutLosses(
        before_bpb=None if before is None else bits * before,
        after_bpb=bits * piece_losses(end, loader, pieces, probe.windows),
        tokens=pieces.tokens,
        documents=pieces.documents,
    )


def curve_recorder(
    spec: TrainingSpec,
    known: CurvePoint | None,
    append: Callable[[CurvePoint], None],
    *,
    clock: Callable[[], float] = time.time,
) -> Callable[[StepRecord], None]:
    """Collect steps into about ``CURVE_POINTS`` points, and more in a long run: the budget's clock reads them.

    Args:
        spec: Length, batch and mixture of the run.
        known: The last point that is on the disk already; steps up to it come a second time after a kill.
        append: Puts a point on the disk.
        clock: Seconds since the epoch.
    """
    every = max(1, spec.optimizer.steps // CURVE_POINTS)
    bits = _bits_per_byte_of_a_nat(spec.bytes_per_token, spec.mixture)
    flops_per_token = training_flops(spec.model, 1)
    losses: list[float] = []
    norms: list[float] = []
    last_s = known.seconds if known else 0.0

    def on_step(step: StepRecord) -> None:
        nonlocal last_s
        if step.loss_nats is not None and step.gradient_norm is not None:
            losses.append(step.loss_nats)
            norms.append(step.gradient_norm)
        due = step.step % every == 0 or step.step == spec.optimizer.steps
        if not losses or not (due or step.seconds - last_s >= CURVE_EVERY_S):
            return
        last_s = step.seconds
        if known is None or step.step > known.step:
            append(
                CurvePoint(
                    step=step.step,
                    tokens=step.tokens,
                    cost_flops=flops_per_token * step.tokens,
                    train_bpb=bits * sum(losses) / len(losses),
                    gradient_norm=max(norms),
                    lr=step.lr,
                    seconds=step.seconds,
                    cpu_seconds=_cpu_seconds(),
                    queued_seconds=_queued_seconds(),
                    at=clock(),
                )
            )
        losses.clear()
        norms.clear()

    return on_step


def _result(spec: TrainingSpec, outcome: TrainOutcome, queued_s: float, place: Path) -> TrainingResult:
    summary = outcome.summary
    started = time.monotonic()
    scores = None if outcome.diverged else _score(spec, outcome, place)
    stability = summary.stability
    readings = {
        "loss_spikes": float(stability.spikes),
        "largest_spike_nats": stability.largest_spike_nats,
        "clipped_fraction": stability.clipped_fraction,
        "max_gradient_norm": stability.largest_gradient_norm,
        "final_train_bpb": summary.final_loss_nats
        and summary.final_loss_nats * _bits_per_byte_of_a_nat(spec.bytes_per_token, spec.mixture),
    }
    return TrainingResult(
        diverged=outcome.diverged,
        detail=f"diverged at step {summary.steps}" if outcome.diverged else "",
        metrics={metric.name: metric.value for metric in scores.metrics} if scores else {},
        errors=_standard_errors(scores) if scores else {},
        stability={name: value for name, value in readings.items() if value is not None},
        train_seconds=summary.seconds,
        score_seconds=time.monotonic() - started,
        cpu_seconds=_cpu_seconds(),
        queued_seconds=queued_s,
        weights_sha256=summary.weights_sha256,
    )


def _score(spec: TrainingSpec, outcome: TrainOutcome, place: Path) -> Scores:
    torch.set_num_threads(spec.threads)
    scores = score_items(outcome.model, PreparedItems.load(Path(spec.items)), device=spec.device)
    if spec.keep_items:
        scores.save(place / ITEM_SCORES)
    return summarise(scores)


def _standard_errors(scores: Scores) -> dict[str, float]:
    return {each.name: each.standard_error for each in scores.metrics if each.standard_error is not None}


def _bits_per_byte_of_a_nat(bytes_per_token: Mapping[str, float], mixture: Mapping[str, float]) -> float:
    """Bits per byte of one nat per token, for a mixture: every source weighs by its share of the tokens."""
    mean = sum(weight * bytes_per_token[source] for source, weight in mixture.items()) / sum(mixture.values())
    return 1 / (LN2 * mean)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _queued_seconds() -> float:
    """Seconds that this thread was ready to run and did not: the kernel's run delay (sched-stats.rst); 0 without it."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def probe(
    folder: str,
    shapes: dict[str, dict[str, int]],
    seconds_each: float,
    device: Device = "cpu",
    precision: Precision = "float32",
) -> None:
    """Multiply integers, then train each shape for a moment; writes ``result.json``.

    Without the device the integers are multiplied by the CPU and nothing is trained: the result says so.

    Args:
        folder: Where to write.
        shapes: By name: ``layers, width, head_size, vocab_size, context, batch_size, threads``.
        seconds_each: About how long to train each.
        device: What multiplies and trains.
        precision: Arithmetic of the training.
    """
    started, queued_s = time.monotonic(), _queued_seconds()
    found = device_name(device)
    trained = {} if found is None else shapes
    checksum = exact_product_checksum() if found is None else exact_product_checksum(_product_on(device))
    rates = {name: _training_rate(shape, seconds_each, device, precision) for name, shape in trained.items()}
    seconds = time.monotonic() - started
    result = ProbeResult(
        checksum=checksum,
        expected_checksum=ONE_DIGEST,
        rates_flops_s=rates,
        seconds=seconds,
        queued_share=(_queued_seconds() - queued_s) / seconds,
        device=found,
    )
    write_atomic(Path(folder) / RESULT, to_json(result, indent=2))


def device_name(device: Device) -> str | None:
    """The device as its driver names it; ``None`` if it is not there."""
    if device == "cpu":
        return "cpu"
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _product_on(device: Device) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda left, right: (left.to(device) @ right.to(device)).cpu()


def exact_product_checksum(multiply: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = torch.matmul) -> str:
    """Digest of one product of integers, multiplied in float32."""
    left, right = (torch.from_numpy(each(ONE_PRODUCT)).to(torch.float32) for each in (left_operand, right_operand))
    return digest_of(multiply(left, right).numpy())


def _training_rate(shape: dict[str, int], seconds: float, device: Device, precision: Precision) -> float:
    """Training FLOP/s of a shape: the best half of the steps, so that one hiccup does not shrink the plan."""
    model = ModelConfig(
        vocab_size=shape["vocab_size"],
        context=shape["context"],
        layers=shape["layers"],
        width=shape["width"],
        head_size=shape["head_size"],
        kv_heads=shape["width"] // shape["head_size"],
    )
    stamps: list[float] = []
    tokens = np.random.default_rng(0).integers(
        0, shape["vocab_size"], (shape["batch_size"], shape["context"] + 1), dtype=np.int64
    )

    def run(steps: int) -> None:
        train(
            model,
            OptimizerConfig(lr=1e-3, batch_size=shape["batch_size"], steps=steps),
            lambda _: tokens,
            seed=0,
            threads=shape["threads"],
            on_step=lambda record: stamps.append(record.seconds),
            device=device,
            precision=precision,
        )

    run(1)  # memory is touched, and on CUDA everything compiled, before the time counts
    stamps.clear()
    deadline = time.monotonic() + seconds
    steps = 4
    while not stamps or (time.monotonic() < deadline and len(stamps) < 400):
        run(steps)
        steps *= 2
    gaps = [after - before for before, after in itertools.pairwise(stamps) if after > before]
    best_half = sorted(gaps)[: max(1, len(gaps) // 2)]
    step_s = sum(best_half) / len(best_half)
    return training_flops(model, shape["batch_size"] * shape["context"]) / step_s
