import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import processors
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertLMHeadModel,
    BloomConfig,
    BloomForCausalLM,
    ByT5Tokenizer,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
)

from wholestack.errors import InputError
from wholestack.evals.backend import Backend, Opening
from wholestack.evals.items import make_item
from wholestack.evals.models import transformers as ours
from wholestack.evals.models.files import refuse_too_large
from wholestack.evals.models.transformers import open_folder
from wholestack.evals.prepared import NOT_TEXT, TOO_LONG, UNKNOWN_TOKEN
from wholestack.evals.scoring import NOT_FINITE

from .material import as_array, byte_tokenizer, gap_per_token, oracle, save_llama, save_tokenizer, tiny_llama

FAMILIES = ["byte", "bpe", "sentencepiece"]
TOLERANCE_NATS = {"float32": 1e-5, "float64": 1e-9}


def plain(folder, dtype="float32"):
    """The model and the encoding of a folder without anything of ours."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return model, lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("dtype", sorted(TOLERANCE_NATS))
@pytest.mark.parametrize("family", FAMILIES)
def test_batches_order_and_shared_beginnings_change_nothing(folders, items, family, dtype):
    expected = oracle(*plain(folders[family], dtype), items)
    turned = list(range(len(items)))[::-1]
    for batch_size in (1, 3, 32):
        backend = open_folder(folders[family], Opening(dtype=dtype, batch_size=batch_size))
        found = list(backend.score(items))
        assert [score.id for score in found] == [item.id for item in items]
        assert all(score.reason == "" for score in found)
        assert gap_per_token(found, expected) <= TOLERANCE_NATS[dtype]
        other_way = list(backend.score([items[at] for at in turned]))
        assert gap_per_token(other_way, [expected[at] for at in turned]) <= TOLERANCE_NATS[dtype]
        one_at_a_time = [score for item in items for score in backend.score([item])]
        assert gap_per_token(one_at_a_time, expected) <= TOLERANCE_NATS[dtype]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_common_is_read_once(folders, items, family):
    backend = open_folder(folders[family], Opening())
    found = {score.id: score for score in backend.score(items)}
    few = [item for item in items if item.source == "few"]
    _, encode = plain(folders[family])
    alone = sum(len(encode(item.context)) for item in few)
    assert sum(found[item.id].positions for item in few) < alone / 2


def test_the_bpe_has_a_token_that_spans_the_join_and_it_is_counted(folders, items):
    found = list(open_folder(folders["bpe"], Opening()).score(items))
    assert any(score.spanning for score in found)


def test_it_is_a_backend_and_says_what_a_scoring_takes(folders, items):
    backend = open_folder(folders["byte"], Opening())
    assert isinstance(backend, Backend)
    expense = backend.expense(items)
    assert expense.requests == sum(len(item.choices) for item in items)
    contexts = sum(len(item.context.encode()) for item in items)
    answers = sum(len((item.delimiter + choice).encode()) for item in items for choice in item.choices)
    assert expense.prompt_tokens == contexts + answers
    assert expense.seconds is not None
    assert expense.seconds > 0


OTHER_FAMILIES = {
    "gpt2": lambda v: GPT2LMHeadModel(
        GPT2Config(vocab_size=v, n_positions=512, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3)
    ),
    "sliding window": lambda v: MistralForCausalLM(
        MistralConfig(
            vocab_size=v,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=512,
            sliding_window=60,
            initializer_range=0.3,
        )
    ),
    "alibi": lambda v: BloomForCausalLM(
        BloomConfig(vocab_size=v, hidden_size=32, n_layer=2, n_head=4, initializer_range=0.3, seq_length=512)
    ),
    "caps": lambda v: Gemma2ForCausalLM(
        Gemma2Config(
            vocab_size=v,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            max_position_embeddings=512,
            sliding_window=60,
            final_logit_softcapping=2.0,
            initializer_range=0.3,
        )
    ),
}


@pytest.mark.parametrize("kind", sorted(OTHER_FAMILIES))
def test_models_that_break_a_short_cut_are_scored_without_it(kind, items, tmp_path):
    torch.manual_seed(1)
    save_tokenizer(byte_tokenizer(), tmp_path)
    OTHER_FAMILIES[kind](257).save_pretrained(tmp_path)
    found = list(open_folder(str(tmp_path), Opening(batch_size=4)).score(items))
    assert gap_per_token(found, oracle(*plain(tmp_path), items)) <= 1e-5


def test_a_model_that_sees_ahead_is_refused(tmp_path):
    save_tokenizer(byte_tokenizer(), tmp_path)
    config = BertConfig(
        vocab_size=257,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        initializer_range=0.3,
    )
    BertLMHeadModel(config).save_pretrained(tmp_path)
    with pytest.raises(InputError, match="sees tokens ahead"):
        open_folder(str(tmp_path), Opening())


def test_a_start_token_that_the_tokenizer_puts_first_stands_first(tmp_path):
    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens(["<s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 256)])
    folder = save_llama(tmp_path, tokenizer)
    backend = open_folder(folder, Opening())
    assert backend.identity.parts["prefix_token"] == "256"
    model, encode = plain(folder)
    item = make_item("abc", ["de", "f"], 0, source="s")
    bare = make_item("", ["de", "f"], 0, delimiter="", source="s")
    with torch.no_grad():
        log_p = model(torch.tensor([[256, *encode("abc de")]])).logits[0].double().log_softmax(-1)
        first = model(torch.tensor([[256]])).logits[0, 0].double().log_softmax(-1)
    found = list(backend.score([item, bare]))
    expected = -sum(float(log_p[at, token]) for at, token in zip((3, 4, 5), encode(" de"), strict=True))
    assert found[0].nll_nats[0] == pytest.approx(expected, abs=1e-4)
    assert found[1].nll_nats[1] == pytest.approx(-float(first[encode("f")[0]]), abs=1e-4)


def test_an_empty_context_is_stood_for_by_the_end_token(folders):
    backend = open_folder(folders["byte"], Opening())
    model, encode = plain(folders["byte"])
    (found,) = backend.score([make_item("", ["b", "c"], 0, delimiter="", source="s")])
    with torch.no_grad():
        log_p = model(torch.tensor([[256]])).logits[0, 0].double().log_softmax(-1)
    assert found.nll_nats[1] == pytest.approx(-float(log_p[encode("c")[0]]), abs=1e-4)


def test_a_tokenizer_without_a_fast_version_gives_the_same_numbers(tmp_path, items):
    ByT5Tokenizer().save_pretrained(tmp_path)
    tiny_llama(len(ByT5Tokenizer())).save_pretrained(tmp_path)
    backend = open_folder(str(tmp_path), Opening())
    assert backend.tokens.tokenizer.is_fast is False
    found = list(backend.score(items))
    assert gap_per_token(found, oracle(*plain(tmp_path), items)) <= 1e-5


def test_truncation_in_the_file_of_a_tokenizer_is_not_obeyed(tmp_path, items):
    tokenizer = byte_tokenizer()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=8)
    save_llama(tmp_path, byte_tokenizer())
    raw = json.loads((tmp_path / "tokenizer.json").read_text())
    cut = json.loads(tokenizer.to_str())
    (tmp_path / "tokenizer.json").write_text(json.dumps({**raw, **{k: cut[k] for k in ("truncation", "padding")}}))
    found = list(open_folder(str(tmp_path), Opening()).score(items))
    assert found[0].tokens == tuple(len((" " + choice).encode()) for choice in items[0].choices)


def test_a_token_beyond_the_vocabulary_is_a_reason(tmp_path):
    save_tokenizer(byte_tokenizer(), tmp_path)
    tiny_llama(200).save_pretrained(tmp_path)
    with_low, with_high = (make_item("abc", ["d", other], 0, delimiter="", source="s") for other in ("e", "a space"))
    good, bad = open_folder(str(tmp_path), Opening()).score([with_low, with_high])
    assert (good.reason, bad.reason, bad.nll_nats) == ("", UNKNOWN_TOKEN, ())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["model.norm.weight", "model.layers.1.self_attn.q_proj.weight"])
def test_a_weight_that_is_no_number_is_one_clear_line(name, value, tmp_path):
    folder = save_llama(tmp_path, byte_tokenizer())
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    tensors[name].view(-1)[-1] = value
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(InputError, match=f"{name} holds NaN or infinity") as caught:
        open_folder(folder, Opening())
    assert "\n" not in str(caught.value)


def test_numbers_that_overflow_are_a_reason_and_never_a_score(tmp_path, items):
    """Each weight is a number, what is computed with them is none."""
    folder = save_llama(tmp_path, byte_tokenizer())
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    tensors["model.norm.weight"].mul_(1e10)
    tensors["lm_head.weight"].mul_(1e35)
    save_file(tensors, path, metadata={"format": "pt"})
    found = list(open_folder(folder, Opening()).score(items))
    assert {score.reason for score in found} == {NOT_FINITE}
    assert all(score.nll_nats == () for score in found)


def test_a_very_long_context_is_cut_and_counted_in_bounded_memory(folders):
    backend = open_folder(folders["byte"], Opening())
    long = make_item("ab " * 33_400 + "The end is", ["near", "far away"], 0, source="s")
    short = make_item(long.context[-(512 - len(" far away") + 1) :], long.choices, 0, source="s")
    (found,) = backend.score([long])
    (expected,) = backend.score([short])
    assert found.truncated
    assert not expected.truncated
    assert found.positions < 600
    np.testing.assert_allclose(found.nll_nats, expected.nll_nats, atol=1e-4)


def test_a_choice_that_does_not_fit_and_half_a_character_are_reasons(folders):
    good = make_item("ab", ["c", "d"], 0, source="s")
    found = list(
        open_folder(folders["byte"], Opening()).score(
            [replace(good, id="1", choices=("c", "d" * 600)), replace(good, id="2", context="\ud800"), good]
        )
    )
    assert [score.reason for score in found] == [TOO_LONG, NOT_TEXT, ""]


def test_every_change_of_what_reaches_a_number_changes_the_identity(folders, tmp_path):
    def copy(name):
        return Path(shutil.copytree(folders["byte"], tmp_path / name))

    base = open_folder(folders["byte"], Opening()).identity
    assert open_folder(str(copy("same")), Opening(batch_size=3)).identity.digest == base.digest
    changed = {"dtype": open_folder(folders["byte"], Opening(dtype="float64"))}
    weights = copy("weights")
    tensors = load_file(weights / "model.safetensors")
    tensors["model.norm.weight"][3] += 1e-6
    save_file(tensors, weights / "model.safetensors", metadata={"format": "pt"})
    changed["weights"] = open_folder(str(weights), Opening())
    for name, file, key, value in (
        ("config", "config.json", "rms_norm_eps", 1e-5),
        ("context", "config.json", "max_position_embeddings", 256),
        ("tokenizer", "tokenizer_config.json", "note", "another"),
    ):
        folder = copy(name)
        raw = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({**raw, key: value}))
        changed[name] = open_folder(str(folder), Opening())
    digests = {name: backend.identity.digest for name, backend in changed.items()}
    assert len({base.digest, *digests.values()}) == 1 + len(changed), digests
    assert base.parameters == sum(each.numel() for each in tiny_llama(257).parameters())


@pytest.mark.parametrize(
    "name", ["emoji.json", "sentencepiece.bpe.model", "spm.model", "normalizer.json", "bpe.codes.txt", "merges.txt"]
)
def test_every_file_that_may_decide_a_token_reaches_the_identity(folders, tmp_path, name):
    digests = set()
    for content in (None, "{}", '{"a": 1}'):
        folder = tmp_path / str(len(digests))
        shutil.copytree(folders["byte"], folder)
        if content:
            (folder / name).write_text(content)
        digests.add(open_folder(str(folder), Opening()).identity.parts["tokenizer"])
    assert len(digests) == 3


def test_two_scorings_are_equal_to_the_last_bit(folders, items):
    one, other = (as_array(open_folder(folders["bpe"], Opening()).score(items)) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def remove(folder, name):
    (folder / name).unlink()


def lose_a_tensor(folder):
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def as_pickle(folder):
    remove(folder, "model.safetensors")
    (folder / "pytorch_model.bin").write_bytes(b"\x80")


DAMAGES = {
    "holds no tokenizer": lambda f: [remove(f, n) for n in ("tokenizer.json", "tokenizer_config.json")],
    "is damaged": lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:9000]),
    r"model\.safetensors: is damaged": lambda f: (f / "model.safetensors").write_bytes(b"xx"),
    "the weights lack model.layers.1.mlp.up_proj.weight": lose_a_tensor,
    "holds no safetensors file": as_pickle,
    "cannot be loaded": lambda f: (f / "config.json").write_text("{"),
    "is an adapter": lambda f: (f / "adapter_config.json").write_text("{}"),
}


@pytest.mark.parametrize("problem", sorted(DAMAGES))
def test_a_damaged_folder_is_one_clear_line(folders, tmp_path, problem):
    folder = Path(shutil.copytree(folders["byte"], tmp_path / "f"))
    DAMAGES[problem](folder)
    with pytest.raises(InputError, match=problem) as caught:
        open_folder(str(folder), Opening())
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_weights_that_do_not_fit_are_refused_before_they_are_read(folders, monkeypatch):
    with pytest.raises(InputError, match=r"big: 7,000,000,000 weights as float32 take 28\.0 GB, 12\.0 GB are free"):
        refuse_too_large("big", 7_000_000_000, "float32", available_bytes=12_000_000_000)
    refuse_too_large("big", 7_000_000_000, "bfloat16", available_bytes=14_000_000_000)
    counted = ours._count_weights([Path(folders["byte"]) / "model.safetensors"])
    assert counted == sum(each.numel() for each in tiny_llama(257).parameters())


@pytest.mark.parametrize("opening", [Opening(batch_size=0), Opening(threads=0), Opening(device="nowhere")])
def test_what_no_machine_can_do_is_refused(folders, opening):
    with pytest.raises(InputError, match=r"must be at least 1|cannot be put on nowhere"):
        open_folder(folders["byte"], opening)
