"""Reference pretraining: a decoder-only transformer of the family of large ones, its optimizer, loop and checkpoints.

Configurations, FLOPs and the learning-rate schedule are plain Python and come from here. What needs torch is
imported by name: ``wholestack.pretrain.model``, ``.loop``, ``.checkpoint``.
"""

from wholestack.pretrain.config import ModelConfig, OptimizerConfig, Precision
from wholestack.pretrain.flops import parameter_count, training_flops
from wholestack.pretrain.stability import Stability, StepRecord, summarize

__all__ = [
    "ModelConfig",
    "OptimizerConfig",
    "Precision",
    "Stability",
    "StepRecord",
    "parameter_count",
    "summarize",
    "training_flops",
]
