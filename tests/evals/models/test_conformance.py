"""Real models behind the one interface: the suite that is shipped."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from wholestack.evals.backend import Opening
from wholestack.evals.models.opening import open_backend
from wholestack.testing.evals_backend import BackendConformance


class FolderConformance(BackendConformance):
    family = "byte"
    opening = Opening()

    @pytest.fixture(autouse=True)
    def _folder(self, folders, tmp_path):
        self.folder, self.changed = folders[self.family], tmp_path / "changed"

    def make_backend(self):
        return open_backend(self.folder, self.opening)

    def make_other(self):
        return open_backend(str(changed_weights(Path(self.folder), self.changed)), self.opening)


class TestBytes(FolderConformance):
    opening = Opening(dtype="float64")
    tolerance_nats = 1e-9


class TestBytePairs(FolderConformance):
    family = "bpe"


class TestSentencePieces(FolderConformance):
    family = "sentencepiece"
    opening = Opening(batch_size=3)


def copied(folder, to):
    shutil.copytree(folder, to)
    return to


def changed_weights(folder, to):
    """One weight of one matrix by the smallest step that float32 has."""
    path = copied(folder, to) / "model.safetensors"
    weights = load_file(path)
    matrix = weights["model.layers.1.mlp.up_proj.weight"]
    matrix[3, 5] = torch.nextafter(matrix[3, 5], torch.tensor(9.0))
    save_file(weights, path, metadata={"format": "pt"})
    return to
