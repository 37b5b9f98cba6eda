"""Small models and data that many tests share."""

import numpy as np
import pytest
import torch

from wholestack.pretrain import ModelConfig, OptimizerConfig


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def model_config():
    return ModelConfig(vocab_size=37, context=16, layers=2, width=32, head_size=8, kv_heads=2)


@pytest.fixture
def optimizer_config():
    return OptimizerConfig(lr=0.01, batch_size=4, steps=24, warmup_fraction=0.1)


@pytest.fixture
def batches():
    """Sequences that count upwards modulo the vocabulary from a random start: learnt within a few steps."""

    def batch(step):
        starts = np.random.default_rng((7, step)).integers(0, 37, (4, 1))
        return ((starts + np.arange(17)) % 37).astype(np.uint16)

    return batch
