"""Real models behind the one interface: the suite that is shipped, and what must change a key in a model's folder."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from wholestack.evals.backend import Opening
from wholestack.evals.items import seal_items
from wholestack.evals.models.opening import open_backend
from wholestack.evals.results import score_into
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


def changed_json(name, change):
    def mutate(folder, to):
        path = copied(folder, to) / name
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))
        return to

    return mutate


def swap_two_tokens(content):
    vocabulary = content["model"]["vocab"]
    left, right = list(vocabulary)[40:42]
    vocabulary[left], vocabulary[right] = vocabulary[right], vocabulary[left]


FOLDERS = {
    "a weight": changed_weights,
    "two tokens swapped": changed_json("tokenizer.json", swap_two_tokens),
    "one merge fewer": changed_json("tokenizer.json", lambda content: content["model"]["merges"].pop()),
    "another normaliser": changed_json(
        "tokenizer.json", lambda content: content.update(normalizer={"type": "Lowercase"})
    ),
    "the context length": changed_json("config.json", lambda content: content.update(max_position_embeddings=511)),
    "the rotation of positions": changed_json(
        "config.json", lambda content: content["rope_parameters"].update(rope_theta=5000.0)
    ),
    "the constant of the norm": changed_json("config.json", lambda content: content.update(rms_norm_eps=1e-5)),
}
OPENINGS = {"float64": Opening(dtype="float64"), "bfloat16": Opening(dtype="bfloat16")}


@pytest.fixture
def item_set(items):
    return seal_items([replace(item, id=f"i{at}") for at, item in enumerate(items[:3])], kind="items from a file")


@pytest.mark.parametrize("name", [*FOLDERS, *OPENINGS])
def test_a_mutation_of_a_real_model_finds_no_old_result(name, folders, item_set, tmp_path):
    before = score_into(open_backend(folders["bpe"], Opening()), item_set, tmp_path)
    folder = FOLDERS[name](Path(folders["bpe"]), tmp_path / "changed") if name in FOLDERS else Path(folders["bpe"])
    backend = open_backend(str(folder), OPENINGS.get(name, Opening()))
    seen = []
    after = score_into(backend, item_set, tmp_path, watch=lambda done, total: seen.append(done))
    assert after.plan.key != before.plan.key
    assert seen[0] == 0, "an old result was taken"
    assert [each.nll_nats for each in after.by_item] == [each.nll_nats for each in backend.score(item_set.items)]


@pytest.mark.parametrize("opening", [Opening(), Opening(batch_size=1), Opening(threads=1)])
def test_the_same_model_elsewhere_finds_its_result(opening, folders, item_set, tmp_path):
    """A copy of the folder is the same model; how many rows are computed at a time is no part of it."""
    before = score_into(open_backend(folders["byte"], Opening()), item_set, tmp_path)
    same = copied(folders["byte"], tmp_path / Path(folders["byte"]).name)
    seen = []
    after = score_into(
        open_backend(str(same), opening), item_set, tmp_path, watch=lambda done, total: seen.append(done)
    )
    assert seen == [len(item_set.items)]
    assert after.by_item == before.by_item
