"""Checkpoints are whole or absent, run no code when they are read, and notice damage."""

import pickle

import pytest
import torch

from wholestack.errors import RecordError, RunDirectoryError
from wholestack.pretrain.checkpoint import (
    Checkpoint,
    latest_checkpoint,
    list_checkpoints,
    load_checkpoint,
    load_model,
    save_checkpoint,
    weights_hash,
)
from wholestack.pretrain.model import Transformer
from wholestack.pretrain.optimizer import FlatAdamW


@pytest.fixture
def checkpoint(model_config, optimizer_config):
    model = Transformer(model_config, generator=torch.Generator().manual_seed(5))
    return make(model, optimizer_config, step=7)


def make(model, optimizer_config, *, step):
    optimizer = FlatAdamW(model, optimizer_config)
    return Checkpoint(
        model_config=model.config,
        optimizer_config=optimizer_config,
        seed=3,
        step=step,
        seconds=1.5,
        weights={name: tensor.clone() for name, tensor in model.state_dict().items()},
        optimizer=optimizer.state(),
        rng_state=torch.Generator().manual_seed(9).get_state(),
        losses_nats=(3.5, 3.25, 0.1),
        gradient_norms=(1.0, 2.0, 0.3),
    )


def same(a, b):
    plain = ("model_config", "optimizer_config", "seed", "step", "seconds", "losses_nats", "gradient_norms")
    return (
        all(getattr(a, name) == getattr(b, name) for name in plain)
        and weights_hash(a.weights) == weights_hash(b.weights)
        and torch.equal(a.rng_state, b.rng_state)
        and weights_hash(a.optimizer.first) == weights_hash(b.optimizer.first)
        and weights_hash(a.optimizer.second) == weights_hash(b.optimizer.second)
        and a.optimizer.steps == b.optimizer.steps
    )


def test_what_was_saved_comes_back_whole(tmp_path, checkpoint):
    path = save_checkpoint(tmp_path / "deep" / "folder", checkpoint)
    assert path.name == "step-00000007.pt"
    assert same(load_checkpoint(path), checkpoint)


def test_only_the_newest_are_kept(tmp_path, checkpoint, optimizer_config, model_config):
    model = Transformer(model_config)
    for step in (1, 2, 10, 100):
        save_checkpoint(tmp_path, make(model, optimizer_config, step=step), keep=2)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-00000010.pt", "step-00000100.pt"]
    assert latest_checkpoint(tmp_path).step == 100


@pytest.mark.parametrize("part", [0.0, 0.3, 0.999])
def test_a_truncated_file_is_refused_and_the_one_before_it_taken(tmp_path, checkpoint, optimizer_config, part):
    save_checkpoint(tmp_path, checkpoint)
    newer = save_checkpoint(tmp_path, make(Transformer(checkpoint.model_config), optimizer_config, step=9))
    newer.write_bytes(newer.read_bytes()[: int(part * newer.stat().st_size)])
    with pytest.raises(RecordError, match="step-00000009"):
        load_checkpoint(newer)
    assert latest_checkpoint(tmp_path).step == 7


def test_a_flipped_bit_in_the_weights_is_noticed(tmp_path, checkpoint):
    path = save_checkpoint(tmp_path, checkpoint)
    data = bytearray(path.read_bytes())
    where = data.find(checkpoint.weights["embedding"].numpy().tobytes()[:64])
    assert where > 0
    data[where + 5] ^= 1
    path.write_bytes(data)
    with pytest.raises(RecordError):
        load_checkpoint(path)
    with pytest.raises(RecordError):
        latest_checkpoint(tmp_path)


def test_a_half_written_file_is_never_picked_up_and_is_cleared_away(tmp_path, checkpoint):
    left_over = tmp_path / ".step-00000900.pt.4711.tmp"
    left_over.write_bytes(b"half")
    (tmp_path / "notes.pt").write_bytes(b"not ours")
    assert latest_checkpoint(tmp_path) is None
    save_checkpoint(tmp_path, checkpoint)
    assert not left_over.exists()
    assert (tmp_path / "notes.pt").exists()
    assert latest_checkpoint(tmp_path).step == 7


def test_reading_runs_no_code_from_the_file(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    path = tmp_path / "step-00000001.pt"
    torch.save({"format": "checkpoint/1", "trap": Trap()}, path)
    with pytest.raises(RecordError):
        load_checkpoint(path)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(RecordError):
        load_checkpoint(path)
    assert not (tmp_path / "ran").exists()


def test_a_model_is_loaded_from_a_file_or_a_folder(tmp_path, checkpoint):
    path = save_checkpoint(tmp_path, checkpoint)
    tokens = torch.arange(16)[None]
    original = Transformer(checkpoint.model_config, generator=torch.Generator().manual_seed(5))
    for source in (path, tmp_path):
        model = load_model(source)
        assert not model.training
        assert torch.equal(model(tokens), original(tokens))


def test_what_is_missing_or_cannot_be_written_is_named(tmp_path, checkpoint):
    with pytest.raises(RecordError, match="absent"):
        load_model(tmp_path / "absent.pt")
    with pytest.raises(RecordError, match="holds no checkpoint"):
        load_model(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="file"):
        save_checkpoint(tmp_path / "file", checkpoint)


def test_the_hash_changes_with_any_weight_name_or_shape(checkpoint):
    weights = checkpoint.weights
    first = weights_hash(weights)
    assert weights_hash(dict(reversed(weights.items()))) == first
    changed = {**weights, "norm": weights["norm"].clone()}
    changed["norm"][0] = torch.nextafter(changed["norm"][0], torch.tensor(2.0))
    assert weights_hash(changed) != first
    assert weights_hash({**weights, "embedding": weights["embedding"].T.contiguous()}) != first
    assert weights_hash({f"x{name}": tensor for name, tensor in weights.items()}) != first
