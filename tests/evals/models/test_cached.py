"""Short cuts of the scorer against the same model without them, and what they may take of memory."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch

from wholestack.evals.backend import Opening
from wholestack.evals.items import make_item
from wholestack.evals.models.cached import wrap
from wholestack.evals.models.transformers import open_folder
from wholestack.evals.staged import score_choices

from .material import byte_tokenizer, gap_per_token, save_llama, tiny_llama

TOLERANCE_NATS = {"float32": 1e-5, "float64": 1e-9}


@pytest.mark.parametrize("dtype", sorted(TOLERANCE_NATS))
@pytest.mark.parametrize("family", ["byte", "bpe", "sentencepiece"])
def test_leaving_the_model_at_its_last_keys_changes_no_score(folders, items, family, dtype):
    backend = open_folder(folders[family], Opening(dtype=dtype, batch_size=3))
    cached = backend.scorer.args[0]
    assert cached.last_kept == 1
    whole = replace(backend, scorer=partial(score_choices, replace(cached, last_kept=None)))
    expected = [score.nll_nats for score in whole.score(items)]
    assert gap_per_token(list(backend.score(items)), expected) <= TOLERANCE_NATS[dtype]


def test_the_last_layer_reads_no_context_to_its_end(folders, items):
    backend = open_folder(folders["byte"], Opening(batch_size=1))
    long = next(item for item in items if item.context.startswith("A longer one"))
    read = []
    last = backend.scorer.args[0].model.model.layers[-1].mlp
    last.register_forward_hook(lambda _module, given, _found: read.append(given[0].shape[1]))
    (found,) = backend.score([long])
    assert found.positions > len(long.context)
    assert sum(read) == found.positions - len(long.context) + 1


def test_what_choices_begin_with_is_read_once(folders):
    backend = open_folder(folders["byte"], Opening(dtype="float64", batch_size=2))
    choices = ("red cat", "blue", "red car", "red", "red cabs")
    together = make_item(context="Its colour:", choices=choices, gold=0, id="all", source="made")
    pairs = [make_item(context="Its colour:", choices=(each, "zz"), gold=0, id=each, source="made") for each in choices]
    # Another row beside it, so that it is padded too.
    longer = make_item(
        context="A longer one, of other words:", choices=("green", "grey and white"), gold=0, id="long", source="made"
    )
    found, _ = backend.score([together, longer])
    expected = [score.nll_nats[0] for score in backend.score(pairs)]
    assert found.nll_nats == pytest.approx(expected, abs=1e-9 * len("red cabs"))
    (alone,) = backend.score([together])
    beginnings = {f" {each}"[:end] for each in choices for end in range(1, len(each) + 1)}
    assert alone.positions == len(together.context) + len(beginnings)


def test_a_remembered_text_is_what_a_whole_reading_keeps():
    model = wrap(tiny_llama(64), name="tiny", context_tokens=512)
    tokens = torch.arange(40)[None]
    with torch.inference_mode():
        kept, whole = model.remember(tokens), model.read(tokens, keep=True)[1]
    assert len(kept.layers) == len(whole.layers) == 2
    for one, other in zip(kept.layers, whole.layers, strict=True):
        torch.testing.assert_close(one.keys, other.keys, rtol=0, atol=0)
        torch.testing.assert_close(one.values, other.values, rtol=0, atol=0)


MEASURE = """
import sys
from pathlib import Path
from wholestack.evals.backend import Opening
from wholestack.evals.items import make_item
from wholestack.evals.models.opening import open_backend

def kilobytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))

backend = open_backend(sys.argv[1], Opening(threads=1))
list(backend.score([make_item("ab " * 90, ["near", "far away"], 0, source="s")]))
before = kilobytes("VmRSS")
(found,) = backend.score([make_item("ab " * 33_400 + "The end is", ["near", "far away"], 0, source="s")])
assert found.truncated and not found.reason and found.positions > 8000, found
print((kilobytes("VmHWM") - before) // 1024)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_context_of_100000_tokens_takes_no_memory_that_grows_with_its_square(tmp_path):
    """A mask of 8,192 x 8,192 in single precision alone would be 268 MB. With it 396 MB are taken."""
    folder = save_llama(tmp_path, byte_tokenizer(), max_position_embeddings=8192)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, folder], capture_output=True, text=True, check=True, env=environment
    )
    assert int(done.stdout.split()[-1]) < 200, done.stdout
