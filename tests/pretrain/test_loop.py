"""Training learns, repeats to the last bit, goes on after any kill, and ends early when it diverges."""

import itertools
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from wholestack.errors import InputError, RunDirectoryError
from wholestack.pretrain import ModelConfig, OptimizerConfig, training_flops
from wholestack.pretrain.checkpoint import latest_checkpoint, list_checkpoints, load_model, weights_hash
from wholestack.pretrain.loop import TrainSummary, train
from wholestack.record import from_json, to_json


class Interrupted(Exception):
    """Raised by a test in the middle of a run."""


def run(model_config, optimizer_config, batches, **options):
    records = []
    outcome = train(
        model_config, optimizer_config, batches, **{"seed": 1, "threads": 1, "on_step": records.append, **options}
    )
    return outcome, records


def test_a_predictable_sequence_is_learnt(model_config, optimizer_config, batches):
    longer = OptimizerConfig(lr=0.01, batch_size=4, steps=120)
    outcome, records = run(model_config, longer, batches)
    assert outcome.summary.status == "completed"
    assert records[0].loss_nats == pytest.approx(np.log(37), abs=0.3)
    assert outcome.summary.final_loss_nats < 0.1
    tokens = torch.arange(16)[None]
    assert outcome.model(tokens).argmax(-1).tolist() == (tokens + 1).tolist()


def test_records_and_summary_say_what_happened(model_config, optimizer_config, batches):
    ticks = itertools.count()
    outcome, records = run(model_config, optimizer_config, batches, clock=lambda: float(next(ticks)))
    assert [record.step for record in records] == list(range(1, 25))
    assert [record.tokens for record in records] == [64 * step for step in range(1, 25)]
    assert max(record.lr for record in records) == pytest.approx(0.01, rel=0.1)
    assert all(b.seconds > a.seconds for a, b in itertools.pairwise(records))
    summary = outcome.summary
    assert (summary.steps, summary.tokens) == (24, 24 * 64)
    assert summary.flops == training_flops(model_config, 24 * 64)
    assert summary.final_loss_nats == pytest.approx(np.mean([r.loss_nats for r in records[-2:]]))
    assert summary.stability.largest_gradient_norm == max(r.gradient_norm for r in records)
    assert summary.weights_sha256 == weights_hash(dict(outcome.model.state_dict()))
    assert from_json(TrainSummary, to_json(summary)) == summary


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(model_config, optimizer_config, batches, precision):
    first, again, other = (
        run(model_config, optimizer_config, batches, seed=seed, precision=precision)[0].summary for seed in (1, 1, 2)
    )
    assert first.weights_sha256 == again.weights_sha256
    assert first.final_loss_nats == again.final_loss_nats
    assert first.weights_sha256 != other.weights_sha256


def test_precisions_agree_as_far_as_they_can(model_config, optimizer_config, batches):
    curves = {}
    for precision in ("float64", "float32", "bfloat16"):
        _, records = run(model_config, optimizer_config, batches, precision=precision)
        curves[precision] = np.array([record.loss_nats for record in records])
    assert abs(curves["float32"] - curves["float64"]).max() < 1e-3
    assert 0 < abs(curves["bfloat16"] - curves["float64"])[:5].max() < 0.05


@pytest.mark.parametrize("stop_after", [1, 5, 10, 23])
def test_a_run_that_was_interrupted_ends_like_an_unbroken_one(
    tmp_path, model_config, optimizer_config, batches, stop_after
):
    unbroken, expected = run(model_config, optimizer_config, batches)
    seen = {}

    def stop(record):
        seen[record.step] = record.loss_nats
        if record.step == stop_after:
            raise Interrupted

    with pytest.raises(Interrupted):
        run(model_config, optimizer_config, batches, checkpoint_folder=tmp_path, checkpoint_every_steps=3, on_step=stop)
    resumed, later = run(model_config, optimizer_config, batches, checkpoint_folder=tmp_path, checkpoint_every_steps=3)
    # The interrupted step itself came after its record and before its checkpoint.
    assert later[0].step == 3 * ((stop_after - 1) // 3) + 1
    seen |= {record.step: record.loss_nats for record in later}
    assert [seen[step] for step in range(1, 25)] == [record.loss_nats for record in expected]
    assert resumed.summary.weights_sha256 == unbroken.summary.weights_sha256
    assert resumed.summary.stability == unbroken.summary.stability


def test_a_finished_run_is_handed_back_without_training(tmp_path, model_config, optimizer_config, batches):
    first, _ = run(model_config, optimizer_config, batches, checkpoint_folder=tmp_path)
    second, records = run(model_config, optimizer_config, batches, checkpoint_folder=tmp_path)
    assert records == []
    assert second.summary.weights_sha256 == first.summary.weights_sha256
    assert weights_hash(dict(load_model(tmp_path).state_dict())) == first.summary.weights_sha256


def test_checkpoints_follow_the_clock_too(tmp_path, model_config, optimizer_config, batches):
    now = [0.0]

    def tick(record):
        now[0] += 1.0
        found.append([int(path.stem[5:]) for path in list_checkpoints(tmp_path)])

    found = []
    run(
        model_config,
        optimizer_config,
        batches,
        checkpoint_folder=tmp_path,
        checkpoint_every_s=10.0,
        on_step=tick,
        clock=lambda: now[0],
    )
    assert [steps[-1:] for steps in found] == [[]] * 10 + [[10]] * 10 + [[20]] * 4
    assert latest_checkpoint(tmp_path).step == 24


def test_given_weights_are_where_training_begins(model_config, optimizer_config, batches):
    first, _ = run(model_config, optimizer_config, batches)
    tokens = torch.from_numpy(batches(24).astype(np.int64))
    logits = first.model(tokens[:, :-1])
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    begun, records = run(model_config, optimizer_config, lambda _: batches(24), initial=first.model.state_dict())
    assert records[0].loss_nats == pytest.approx(float(expected.detach()), rel=1e-5)
    assert begun.summary.weights_sha256 != first.summary.weights_sha256


def test_given_weights_are_not_changed_and_a_broken_run_from_them_ends_like_an_unbroken_one(
    tmp_path, model_config, optimizer_config, batches
):
    given = run(model_config, optimizer_config, batches)[0].model.state_dict()
    before = weights_hash(given)
    unbroken, _ = run(model_config, optimizer_config, batches, initial=given)

    def interrupt(record):
        if record.step == 10:
            raise Interrupted

    options = {"checkpoint_folder": tmp_path, "checkpoint_every_steps": 4, "initial": given}
    with pytest.raises(Interrupted):
        run(model_config, optimizer_config, batches, on_step=interrupt, **options)
    again, _ = run(model_config, optimizer_config, batches, **options)
    assert again.summary.weights_sha256 == unbroken.summary.weights_sha256
    assert weights_hash(given) == before


def test_given_weights_of_another_shape_are_refused(model_config, optimizer_config, batches):
    wider = replace(model_config, width=64)
    given = run(wider, optimizer_config, batches)[0].model.state_dict()
    with pytest.raises(InputError, match=r"of another shape: .*blocks"):
        run(model_config, optimizer_config, batches, initial=given)


def test_a_folder_of_another_run_is_refused(tmp_path, model_config, optimizer_config, batches):
    run(model_config, optimizer_config, batches, checkpoint_folder=tmp_path)
    with pytest.raises(RunDirectoryError, match="other settings"):
        run(model_config, optimizer_config, batches, checkpoint_folder=tmp_path, seed=2)


def test_a_rate_far_too_high_is_an_outcome_and_ends_early(tmp_path, model_config, batches):
    config = OptimizerConfig(lr=30.0, batch_size=4, steps=200, clip_norm=1e9)
    outcome, records = run(
        model_config, config, batches, checkpoint_folder=tmp_path, checkpoint_every_steps=1, keep_checkpoints=1
    )
    assert outcome.diverged
    assert outcome.summary.stability.diverged
    assert len(records) == outcome.summary.steps < 200
    assert to_json(outcome.summary)
    assert latest_checkpoint(tmp_path).step == outcome.summary.steps - 1


def test_a_model_that_overflows_is_an_outcome_with_a_record(model_config, optimizer_config, batches):
    config = OptimizerConfig(lr=1e38, batch_size=4, steps=20, warmup_fraction=0.0)
    outcome, records = run(model_config, config, batches)
    assert outcome.diverged
    assert records[-1].loss_nats is None
    assert outcome.summary.final_loss_nats is None
    assert to_json(records[-1])


@pytest.mark.parametrize(
    ("batch", "word"),
    [
        (np.zeros((4, 16), dtype=np.uint16), r"step 0 has shape \(4, 16\), expected \(4, 17\)"),
        (np.full((4, 17), 37, dtype=np.uint16), "tokens 37 to 37, the vocabulary has 37"),
        (np.full((4, 17), -1), "tokens -1"),
        (np.zeros((4, 17)), "float64"),
    ],
)
def test_a_wrong_batch_is_refused_with_its_step(model_config, optimizer_config, batch, word):
    with pytest.raises(InputError, match=word):
        run(model_config, optimizer_config, lambda step: batch)


@pytest.mark.parametrize("option", ["threads", "checkpoint_every_steps"])
def test_a_count_below_one_is_refused(model_config, optimizer_config, batches, option):
    with pytest.raises(InputError, match=f"{option} is 0"):
        run(model_config, optimizer_config, batches, **{option: 0})


def test_torch_is_left_as_it_was_found(model_config, optimizer_config, batches):
    torch.set_num_threads(2)
    state = torch.get_rng_state()
    run(model_config, optimizer_config, batches)
    assert torch.get_num_threads() == 2
    assert torch.equal(torch.get_rng_state(), state)
    assert float(torch.tensor([1e-40]) * 1.0) > 0  # denormal numbers are kept again


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from wholestack.pretrain import ModelConfig, OptimizerConfig
from wholestack.pretrain.loop import train
def batches(step):
    starts = np.random.default_rng((7, step)).integers(0, 37, (4, 1))
    return ((starts + np.arange(17)) % 37).astype(np.uint16)
model = ModelConfig(vocab_size=37, context=16, layers=2, width=32, head_size=8, kv_heads=2)
config = OptimizerConfig(lr=0.01, batch_size=4, steps=24, warmup_fraction=0.1)
def die(record):
    if record.step == 17:
        os.kill(os.getpid(), signal.SIGKILL)
train(model, config, batches, seed=1, threads=1, checkpoint_folder=Path(sys.argv[1]), checkpoint_every_steps=1,
      on_step=die)
"""


@pytest.mark.heavy
def test_after_sigkill_the_run_goes_on_to_the_same_weights(tmp_path, model_config, optimizer_config, batches):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert latest_checkpoint(Path(tmp_path)).step == 16
    resumed, records = run(model_config, optimizer_config, batches, checkpoint_folder=tmp_path)
    unbroken, _ = run(model_config, optimizer_config, batches)
    assert [record.step for record in records] == list(range(17, 25))
    assert resumed.summary.weights_sha256 == unbroken.summary.weights_sha256


def test_the_package_itself_does_not_import_torch():
    code = "import sys, wholestack.pretrain; sys.exit('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_a_model_of_one_position_and_one_head_trains():
    model = ModelConfig(vocab_size=2, context=1, layers=1, width=2, head_size=2, kv_heads=1)
    config = OptimizerConfig(lr=0.01, batch_size=1, steps=1)
    outcome, _ = run(model, config, lambda step: np.array([[0, 1]]))
    assert outcome.summary.tokens == 1
