import shutil

import numpy as np
import pytest
import torch

from wholestack.data.bpe import train
from wholestack.errors import InputError
from wholestack.evals.backend import Opening, Writing
from wholestack.evals.models.opening import open_backend
from wholestack.pretrain.checkpoint import Checkpoint, save_checkpoint
from wholestack.pretrain.config import ModelConfig, OptimizerConfig
from wholestack.pretrain.model import Transformer
from wholestack.pretrain.optimizer import Optimizer

from .material import as_array, ragged_items
