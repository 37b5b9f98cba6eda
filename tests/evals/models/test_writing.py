import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from wholestack.evals.backend import Opening, Writing
from wholestack.evals.models.transformers import open_folder
from wholestack.evals.models.writing import CLOSE, NOT_TEXT, TOO_LONG, write

from .material import save_llama, texts_of

PROMPTS = [
    "The cat",
    "One, two, three, four and then a good deal more than that:",
    "x",
    "\u00e9t\u00e9 ",
    "a b c d e f g",
]


@pytest.fixture(scope="module")
def backend(folders):
    return open_folder(folders["bpe"], Opening())


def test_the_likeliest_tokens_are_those_that_transformers_writes(folders, backend):
    model = AutoModelForCausalLM.from_pretrained(folders["bpe"], dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folders["bpe"])
    for prompt, found in zip(PROMPTS, backend.generate(PROMPTS, Writing(max_tokens=20)), strict=True):
        ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            whole = model.generate(ids, max_new_tokens=20, do_sample=False, pad_token_id=0, eos_token_id=600)
        assert found.text == tokenizer.decode(whole[0])[len(tokenizer.decode(ids[0])) :]
        assert (found.tokens, found.finish) == (20, "length")


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.5])
@pytest.mark.parametrize("family", ["byte", "bpe", "sentencepiece"])
def test_neither_batch_nor_order_changes_what_is_written(folders, family, temperature):
    writing = Writing(max_tokens=24, temperature=temperature, seed=4)
    first = texts_of(open_folder(folders[family], Opening(batch_size=1)).generate(PROMPTS, writing))
    for batch_size in (2, 5):
        backend = open_folder(folders[family], Opening(batch_size=batch_size))
        assert texts_of(backend.generate(PROMPTS, writing)) == first
        assert texts_of(backend.generate(PROMPTS[::-1], writing)) == first[::-1]
    assert len(set(first)) == len(first)


def test_another_seed_writes_another_text_and_the_same_seed_the_same(backend):
    texts = [
        tuple(texts_of(backend.generate(PROMPTS, Writing(max_tokens=8, temperature=1.0, seed=seed))))
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_draws_follow_the_softmax_at_the_temperature(backend):
    tokens = np.bincount(
        [
            backend.tokens.encode(text)[0]
            for seed in range(400)
            if (text := texts_of(backend.generate(["The cat"], Writing(max_tokens=1, temperature=2.0, seed=seed)))[0])
        ],
        minlength=backend.vocabulary,
    )
    logits = backend.next_tokens([backend.tokens.encode("The cat")], 0).logits[0] / 2.0
    p = np.exp(logits - logits.max())
    p /= p.sum()
    likely = int(p.argmax())
    expected, deviation = 400 * p[likely], np.sqrt(400 * p[likely] * (1 - p[likely]))
    assert abs(tokens[likely] - expected) < 5 * deviation + 0.1 * expected


def test_the_text_ends_in_front_of_the_first_stop(backend):
    (whole,) = backend.generate(["The cat"], Writing(max_tokens=30))
    stop = whole.text[5:8]
    (cut,) = backend.generate(["The cat"], Writing(max_tokens=30, stop=("never there", stop)))
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert (cut.finish, cut.tokens < 30) == ("stop", True)


def test_an_end_token_ends_the_text_and_is_no_part_of_it(folders, backend):
    (whole,) = backend.generate(["The cat"], Writing(max_tokens=6))
    written = backend.tokens.encode(whole.text)
    ending = type(backend.tokens)(
        **{
            **vars(backend.tokens),
            "end_tokens": (int(backend.next_tokens([backend.tokens.encode("The cat")], 0).logits[0].argmax()),),
        }
    )
    (found,) = write(
        ["The cat"],
        Writing(max_tokens=6),
        tokens=ending,
        next_tokens=backend.next_tokens,
        context_tokens=512,
        vocabulary=backend.vocabulary,
    )
    assert written
    assert (found.text, found.tokens, found.finish) == ("", 0, "stop")


def test_prompts_that_cannot_be_written_behind_have_a_reason(backend):
    found = list(backend.generate(["w " * 600, "fine", "\ud800"], Writing(max_tokens=4)))
    assert [each.reason for each in found] == [TOO_LONG, "", NOT_TEXT]
    assert [each.finish for each in found] == ["none", "length", "none"]


def test_an_empty_prompt_is_written_behind_the_end_token(backend):
    (found,) = backend.generate([""], Writing(max_tokens=4))
    assert (found.finish, found.tokens) == ("length", 4)


class _Rows:
    """A model whose two best tokens are a rounding apart, which falls otherwise in a batch."""

    def __init__(self):
        self.alone = 0

    def __call__(self, rows, room):
        self.alone += len(rows) == 1
        better = 1 if len(rows) == 1 else 2
        logits = np.zeros((len(rows), 4))
        logits[:, 1:3] = 1.0
        logits[:, better] += CLOSE / 1000
        return type("Reading", (), {"logits": logits, "add": lambda self, tokens: None})()


def test_a_tie_is_decided_by_the_model_reading_one_text_alone(backend):
    model = _Rows()
    found = list(
        write(
            ["a", "b"],
            Writing(max_tokens=1),
            tokens=backend.tokens,
            next_tokens=model,
            context_tokens=512,
            vocabulary=backend.vocabulary,
        )
    )
    assert texts_of(found) == [backend.tokens.decode([1])] * 2
    assert model.alone == 2


def test_a_window_that_the_text_outgrows_is_not_cut_by_the_cache(tmp_path, families):
    from transformers import MistralConfig, MistralForCausalLM

    save_llama(tmp_path, families["bpe"])
    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=601,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        sliding_window=6,
        initializer_range=0.3,
        eos_token_id=None,
        bos_token_id=None,
    )
    model = MistralForCausalLM(config).eval()
    model.save_pretrained(tmp_path)
    backend = open_folder(str(tmp_path), Opening())
    (found,) = backend.generate(["One, two"], Writing(max_tokens=12))
    ids = backend.tokens.encode("One, two")
    for _ in range(12):
        with torch.no_grad():
            ids.append(int(model(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    assert found.text == backend.tokens.decode(ids)[len("One, two") :]
