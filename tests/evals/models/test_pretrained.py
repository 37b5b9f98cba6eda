import shutil
from importlib.metadata import version

import numpy as np
import pytest
import torch

from wholestack.data.bpe import train
from wholestack.errors import InputError
from wholestack.evals.backend import Backend, Opening, Writing
from wholestack.evals.models.opening import open_backend
from wholestack.evals.models.pretrained import open_checkpoint
from wholestack.evals.prepared import prepare_items
from wholestack.evals.scoring import score_items
from wholestack.pretrain.checkpoint import Checkpoint, load_checkpoint, load_model, save_checkpoint
from wholestack.pretrain.config import ModelConfig, OptimizerConfig
from wholestack.pretrain.model import Transformer
from wholestack.pretrain.optimizer import FlatAdamW

from .material import as_array, texts_of


@pytest.fixture(scope="module")
def tokenizer(documents):
    return train([document.text[:4000] for document in documents[:20]], vocab_size=400)


def save(folder, tokenizer, *, seed=0, vocabulary=None):
    config = ModelConfig(
        vocab_size=vocabulary or tokenizer.vocab_size, context=384, layers=2, width=32, head_size=16, kv_heads=1
    )
    model = Transformer(config, generator=torch.Generator().manual_seed(seed))
    optimizer_config = OptimizerConfig(lr=0.01, batch_size=4, steps=4)
    checkpoint = Checkpoint(
        model_config=config,
        optimizer_config=optimizer_config,
        seed=seed,
        step=4,
        seconds=1.0,
        weights={name: tensor.clone() for name, tensor in model.state_dict().items()},
        optimizer=FlatAdamW(model, optimizer_config).state(),
        rng_state=torch.Generator().get_state(),
        losses_nats=(3.0,),
        gradient_norms=(1.0,),
    )
    return save_checkpoint(folder, checkpoint)


@pytest.fixture(scope="module")
def run(tokenizer, tmp_path_factory):
    """A run directory as a rehearsal leaves it, with a rung and a large run."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "data").mkdir()
    tokenizer.save(folder / "data" / "tokenizer.json")
    save(folder / "jobs" / "rung-0000" / "checkpoints", tokenizer, seed=1)
    save(folder / "jobs" / "large-0000" / "checkpoints", tokenizer, seed=2)
    return folder


@pytest.mark.parametrize("batch_size", [1, 5, 32])
def test_it_scores_as_the_scorer_of_rehearsals_does(run, tokenizer, small_set, batch_size):
    backend = open_backend(str(run), Opening(batch_size=batch_size))
    assert isinstance(backend, Backend)
    found = list(backend.score(small_set.items))
    model = load_model(run / "jobs" / "large-0000" / "checkpoints")
    prepared = prepare_items(small_set, tokenizer, context_tokens=384)
    expected = score_items(model, prepared, batch_size=1, context_use="per choice")
    assert [each.reason for each in found] == expected.reasons.tolist()
    per_token = np.abs(as_array(found) - expected.nll_nats) / expected.answer_tokens
    assert per_token.max() <= 1e-5


def test_of_a_run_the_large_one_is_taken_and_others_can_be_named(run):
    large, rung = (run / "jobs" / name for name in ("large-0000", "rung-0000"))
    weights = [
        open_backend(str(path), Opening()).identity.parts["weights"]
        for path in (run, large, large / "checkpoints", large / "checkpoints" / "step-00000004.pt", rung)
    ]
    assert len(set(weights[:4])) == 1
    assert weights[4] != weights[0]


def test_several_runs_without_a_large_one_are_a_question(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.json")
    for name in ("a", "b"):
        save(tmp_path / "jobs" / name / "checkpoints", tokenizer)
    with pytest.raises(InputError, match=r"holds 2 runs with checkpoints \(name one of .*jobs/a, .*jobs/b"):
        open_checkpoint(str(tmp_path), Opening())


def test_double_precision_gives_the_same_numbers_more_exactly(run, small_set):
    single, double = (
        as_array(open_backend(str(run), Opening(dtype=dtype)).score(small_set.items))
        for dtype in ("float32", "float64")
    )
    assert 0 < np.abs(single - double).max() < 1e-2


def test_what_is_written_depends_on_no_batch(run):
    prompts = ["def f(x):", "import", "The next thing is", ""]
    for temperature in (0.0, 1.0):
        writing = Writing(max_tokens=12, temperature=temperature)
        one, many = (texts_of(open_backend(str(run), Opening(batch_size=n)).generate(prompts, writing)) for n in (1, 4))
        assert one == many
        assert all(one)


def test_the_identity_names_weights_tokenizer_and_versions(run, tokenizer):
    parts = open_backend(str(run), Opening()).identity.parts
    assert parts["tokenizer"] == tokenizer.digest
    assert parts["version torch"] == version("torch")
    assert parts["context_tokens"] == "384"


def test_what_does_not_belong_together_or_is_damaged_is_one_line(run, tokenizer, tmp_path):
    path = save(tmp_path / "other", tokenizer, vocabulary=300)
    with pytest.raises(InputError, match=r"no tokenizer\.json beside or above it"):
        open_checkpoint(str(path), Opening())
    tokenizer.save(tmp_path / "tokenizer.json")
    with pytest.raises(InputError, match="the model has 300 tokens, its tokenizer 400"):
        open_checkpoint(str(path), Opening())
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        open_checkpoint(str(path), Opening())
    copy = shutil.copy(run / "jobs" / "rung-0000" / "checkpoints" / "step-00000004.pt", tmp_path / "step-00000005.pt")
    copy.write_bytes(copy.read_bytes()[:-2000])
    with pytest.raises(InputError, match=r"step-00000005\.pt: "):
        open_checkpoint(str(copy), Opening())


def test_a_weight_that_is_no_number_is_one_line(run, tmp_path):
    path = run / "jobs" / "rung-0000" / "checkpoints" / "step-00000004.pt"
    checkpoint = load_checkpoint(path)
    checkpoint.weights["embedding"][3, 1] = float("inf")
    broken = save_checkpoint(tmp_path, checkpoint)
    shutil.copy(run / "data" / "tokenizer.json", tmp_path)
    with pytest.raises(InputError, match="embedding holds NaN or infinity"):
        open_checkpoint(str(broken), Opening())
