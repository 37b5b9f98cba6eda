"""What a worker puts on the disk: the curve while it trains, and what the preflight's probe measured."""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from wholestack.experiments import worker
from wholestack.experiments.planning import probe_shapes
from wholestack.experiments.preflight import ProbeResult
from wholestack.experiments.records import RESULT, CurvePoint
from wholestack.experiments.specs import TrainingSpec
from wholestack.experiments.worker import CURVE_EVERY_S, CURVE_POINTS, curve_recorder, probe
from wholestack.health.active.golden import ONE_DIGEST
from wholestack.pretrain.config import ModelConfig, OptimizerConfig
from wholestack.pretrain.stability import StepRecord
from wholestack.recipes.gpu import gpu
from wholestack.record import from_json

MODEL = ModelConfig(vocab_size=256, context=16, layers=1, width=16, head_size=8, kv_heads=1)


def spec(steps: int) -> TrainingSpec:
    return TrainingSpec(
        name="large-0000",
        corpus="",
        items="",
        model=MODEL,
        optimizer=OptimizerConfig(lr=0.01, batch_size=1, steps=steps),
        mixture={"notes": 1.0},
        seed=0,
        threads=1,
        checkpoints=True,
        bytes_per_token={"notes": 1.0},
    )


def record(step: int, seconds: float) -> StepRecord:
    return StepRecord(step=step, tokens=16 * step, loss_nats=2.0, gradient_norm=1.0, lr=0.01, seconds=seconds)


def recorded(steps: int, step_s: float, known: CurvePoint | None = None) -> list[CurvePoint]:
    points: list[CurvePoint] = []
    clock = iter(range(1_000_000))
    on_step = curve_recorder(spec(steps), known, points.append, clock=lambda: float(next(clock)))
    for step in range(1, steps + 1):
        on_step(record(step, step * step_s))
    return points


def test_a_short_run_has_a_bounded_number_of_points_and_its_last_step_is_one() -> None:
    points = recorded(CURVE_POINTS * 10 + 7, step_s=1e-3)
    assert len(points) == CURVE_POINTS + 1
    assert points[-1].step == CURVE_POINTS * 10 + 7


def test_in_a_long_run_no_two_points_are_further_apart_than_a_checkpoint() -> None:
    points = recorded(1200, step_s=4.0)
    gaps = {after.seconds - before.seconds for before, after in itertools.pairwise(points)}
    assert max(gaps) < CURVE_EVERY_S + 4.0


def test_every_point_tells_when_it_was_written() -> None:
    points = recorded(CURVE_POINTS, step_s=1e-3)
    assert [point.at for point in points] == [float(number) for number in range(CURVE_POINTS)]


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="this kernel counts no run delay")
def test_waiting_for_a_processor_that_other_work_has_is_counted_and_sleeping_is_not() -> None:
    with pinned_to_one_processor(), ThreadPoolExecutor(1) as other:
        before = recorded(1, step_s=1.0)[0]
        time.sleep(0.3)
        slept = recorded(1, step_s=1.0)[0]
        busy = other.submit(subprocess.run, [sys.executable, "-c", SPIN], check=True)
        while not busy.done():
            sum(range(10_000))
        waited = recorded(1, step_s=1.0)[0]
    assert slept.queued_seconds - before.queued_seconds < 0.2
    assert waited.queued_seconds - slept.queued_seconds > 0.25


SPIN = "import time\nwhile time.process_time() < 0.6: pass"


@contextmanager
def pinned_to_one_processor() -> Iterator[None]:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def test_steps_that_come_a_second_time_are_not_written_again() -> None:
    first = recorded(CURVE_POINTS, step_s=1e-3)
    again = recorded(CURVE_POINTS, step_s=1e-3, known=first[49])
    assert [point.step for point in again] == [point.step for point in first[50:]]


SHAPES = probe_shapes(gpu(), threads=1)
NO_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")


@NO_CUDA
def test_a_probe_without_its_device_trains_nothing_and_says_that_it_is_not_there(tmp_path: Path) -> None:
    probe(str(tmp_path), SHAPES, 0.0, "cuda", "bfloat16")
    result = from_json(ProbeResult, (tmp_path / RESULT).read_bytes())
    assert (result.device, result.rates_flops_s) == (None, {})
    assert result.checksum == ONE_DIGEST


@pytest.mark.parametrize(("device", "precision"), [("cpu", "float32"), ("cuda", "bfloat16")])
def test_a_probe_trains_every_shape_on_the_device_and_in_the_precision_that_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, precision: str
) -> None:
    """No device is at hand here, so what would run on it is written down instead of run."""
    asked = []

    def train(model, optimizer, batches, *, on_step, device, precision, **_) -> None:
        asked.append((model.width, device, precision))
        for step in range(1, optimizer.steps + 1):
            on_step(record(step, 0.01 * step))

    monkeypatch.setattr(worker, "train", train)
    monkeypatch.setattr(worker, "device_name", lambda device: f"a {device}")
    monkeypatch.setattr(worker, "exact_product_checksum", lambda multiply: ONE_DIGEST)
    probe(str(tmp_path), SHAPES, 0.0, device, precision)
    result = from_json(ProbeResult, (tmp_path / RESULT).read_bytes())
    assert result.device == f"a {device}"
    assert set(result.rates_flops_s) == set(SHAPES)
    assert set(asked) == {(shape["width"], device, precision) for shape in SHAPES.values()}


def test_the_device_multiplies_the_integers(tmp_path: Path) -> None:
    probe(str(tmp_path), {}, 0.0, "cpu")
    assert from_json(ProbeResult, (tmp_path / RESULT).read_bytes()).checksum == ONE_DIGEST
