"""Mutations of real models: files, settings and rules that reach a number; every one is scored anew, none finds an
old result. Those of items, prompts and examples are in ``tests/evals/test_keys.py``."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.evals.keys import Watched, scored_anew
from wholestack.evals import items as items_module
from wholestack.evals import prepared
from wholestack.evals.backend import Opening
from wholestack.evals.items import seal_items
from wholestack.evals.models import local
from wholestack.evals.models.opening import open_backend
from wholestack.evals.results import score_into

from .material import save_gguf

UP = "model.layers.1.mlp.up_proj.weight"


def copied(folder, to):
    return Path(shutil.copytree(folder, to))


def weights(change):
    """The folder with its weights changed."""

    def mutate(folder, to):
        path = copied(folder, to) / "model.safetensors"
        tensors = load_file(path)
        change(tensors)
        save_file(tensors, path, metadata={"format": "pt"})
        return to

    return mutate


def in_json(**changes):
    """The folder with some of its JSON files changed; ``tokenizer_config`` is ``tokenizer_config.json``."""

    def mutate(folder, to):
        copied(folder, to)
        for name, change in changes.items():
            path = to / f"{name}.json"
            content = json.loads(path.read_text())
            change(content)
            path.write_text(json.dumps(content))
        return to

    return mutate


def smallest_step(tensors):
    matrix = tensors[UP]
    matrix[3, 5] = torch.nextafter(matrix[3, 5], torch.tensor(9.0))


def merged_adapter(tensors):
    rng = torch.Generator().manual_seed(1)
    rows, columns = tensors[UP].shape
    tensors[UP] += 0.1 * torch.randn(rows, 2, generator=rng) @ torch.randn(2, columns, generator=rng)


def swap_layers(tensors):
    for name in [each for each in tensors if ".layers.0." in each]:
        other = name.replace(".layers.0.", ".layers.1.")
        tensors[name], tensors[other] = tensors[other].clone(), tensors[name].clone()


def eight_bits(tensors):
    for name, tensor in tensors.items():
        scale = tensor.abs().max() / 127
        tensors[name] = (tensor / scale).round() * scale


def swap_two_tokens(content):
    vocabulary = content["model"]["vocab"]
    vocabulary["e"], vocabulary["a"] = vocabulary["a"], vocabulary["e"]


def token_first(token):
    """A start token in front of every text, as many tokenizers have it."""

    def change(content):
        number = content["model"]["vocab"][token]
        content["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}},
        }

    return change


def added_token(content):
    """What is one token now were several."""
    content["added_tokens"].append(
        {
            "id": content["model"]["vocab"]["z"], "content": "the", "special": False,
            "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
        }
    )  # fmt: skip


BLANKS = {"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated", "invert": False}
FOLDERS = {
    "a weight by its smallest step": weights(smallest_step),
    "a weight of the head": weights(lambda tensors: tensors["lm_head.weight"][5].add_(0.01)),
    "an embedding": weights(lambda tensors: tensors["model.embed_tokens.weight"][66].mul_(1.01)),
    "two layers swapped": weights(swap_layers),
    "an adapter merged in": weights(merged_adapter),
    "weights rounded to eight bits": weights(eight_bits),
    "two tokens swapped": in_json(tokenizer=swap_two_tokens),
    "one merge fewer": in_json(tokenizer=lambda content: content["model"]["merges"].remove(["e", "\u0120"])),
    "another normaliser": in_json(tokenizer=lambda content: content.update(normalizer={"type": "Lowercase"})),
    "text split at every blank": in_json(
        tokenizer=lambda content: content.update(
            pre_tokenizer={"type": "Sequence", "pretokenizers": [BLANKS, content["pre_tokenizer"]]}
        )
    ),
    "a start token": in_json(tokenizer=token_first("b")),
    "another start token": in_json(tokenizer=token_first("c")),
    "one token more": in_json(tokenizer=added_token),
    "the token for an empty context": in_json(tokenizer_config=lambda content: content.update(eos_token="b")),
    "the context length": in_json(config=lambda content: content.update(max_position_embeddings=40)),
    "the rotation of positions": in_json(config=lambda content: content["rope_parameters"].update(rope_theta=5000.0)),
    "the constant of the norm": in_json(config=lambda content: content.update(rms_norm_eps=1e-3)),
    "the activation": in_json(config=lambda content: content.update(hidden_act="gelu")),
    "a layer fewer": in_json(config=lambda content: content.update(num_hidden_layers=1)),
    "heads of another width": in_json(
        config=lambda content: content.update(num_attention_heads=8, num_key_value_heads=4, head_dim=4)
    ),
}
OPENINGS = {"float64": Opening(dtype="float64"), "bfloat16": Opening(dtype="bfloat16")}
GGUF = {
    "the weights of a GGUF file": {"seed": 1},
    "the quantisation of a GGUF file": {"kind": "Q8_0"},
    "a finer quantisation of a GGUF file": {"kind": "F16"},
    "the rotation of positions in a GGUF file": {"freq_base": 5000.0},
}


@pytest.fixture
def item_set(items):
    """With an empty context, whose stand-in is a token of the tokenizer, and a long one."""
    chosen = [*items[:6], replace(items[0], context="", choices=("the cat", "7 of 10"), gold=0)]
    return seal_items([replace(item, id=f"i{at}") for at, item in enumerate(chosen)], kind="items from a file")


@pytest.fixture
def before(folders, item_set, tmp_path):
    return score_into(open_backend(folders["bpe"], Opening()), item_set, tmp_path / "out")


@pytest.mark.parametrize("name", [*FOLDERS, *OPENINGS])
def test_a_mutation_of_a_folder_is_scored_anew(name, folders, before, item_set, tmp_path):
    folder = FOLDERS[name](Path(folders["bpe"]), tmp_path / "changed") if name in FOLDERS else Path(folders["bpe"])
    backend = open_backend(str(folder), OPENINGS.get(name, Opening()))
    after = scored_anew(backend, item_set, tmp_path / "out", before)
    assert numbers(after) != numbers(before), "the mutation does not reach the model: it proves nothing"


def test_no_two_mutations_are_one(folders, tmp_path):
    opened = [
        open_backend(str(mutate(Path(folders["bpe"]), tmp_path / str(number))), Opening())
        for number, mutate in enumerate(FOLDERS.values())
    ]
    assert len({each.identity.digest for each in opened}) == len(FOLDERS)


@pytest.mark.parametrize("name", GGUF)
def test_a_mutation_of_a_gguf_file_is_scored_anew(name, families, item_set, tmp_path):
    path = tmp_path / "m.gguf"
    before = score_into(open_backend(save_gguf(path, families["bpe"]), Opening()), item_set, tmp_path / "out")
    after = scored_anew(
        open_backend(save_gguf(path, families["bpe"], **GGUF[name]), Opening()), item_set, tmp_path / "out", before
    )
    assert numbers(after) != numbers(before), "the mutation does not reach the model: it proves nothing"


def test_another_rule_at_the_join_is_scored_anew(folders, before, item_set, tmp_path, monkeypatch):
    """The rule that most scorers have: context and choice tokenised apart."""

    def apart(alone, whole):
        encode = open_backend(folders["bpe"], Opening()).tokens.encode
        return prepared._Tokens(context=alone, answers=[encode(text) for text in next(coming)])

    coming = iter([[item.delimiter + choice for choice in item.choices] for item in item_set.items])
    monkeypatch.setattr(prepared, "_split", apart)
    for module in (items_module, local):
        monkeypatch.setattr(
            module, "TOKEN_RULE", "apart/1: context and delimiter + choice are tokenised each by itself"
        )
    backend = Watched(open_backend(folders["bpe"], Opening()))
    sealed = seal_items(item_set.items, kind="items from a file")
    after = score_into(backend, sealed, tmp_path / "out")
    assert backend.asked == [item.id for item in sealed.items]
    assert backend.inner.identity.digest != before.identity.digest
    assert sealed.digest != item_set.digest
    assert numbers(after) != numbers(before), "the mutation does not reach the model: it proves nothing"


@pytest.mark.parametrize("opening", [Opening(), Opening(batch_size=1), Opening(threads=1)])
def test_the_same_model_elsewhere_finds_its_result(opening, folders, before, item_set, tmp_path):
    """A copy of the folder is the same model; how many rows are computed at a time is no part of it."""
    same = Watched(open_backend(str(copied(folders["bpe"], tmp_path / Path(folders["bpe"]).name)), opening))
    assert score_into(same, item_set, tmp_path / "out").by_item == before.by_item
    assert same.asked == []


def numbers(result):
    return [each.nll_nats for each in result.by_item]
