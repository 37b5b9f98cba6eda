"""The real small model: SmolLM2-135M-Instruct from its wheel, on real questions and on statements that we wrote."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from wholestack.evals.backend import Opening, Writing
from wholestack.evals.items import make_item
from wholestack.evals.models.opening import open_backend

pytestmark = pytest.mark.heavy

ROUNDING_NATS = 5e-5
"""A token, in single precision through 30 layers: measured 2.6e-5; in double precision it is below 1e-9."""

FACTS = [
    ("The capital of France is", "Paris", "Rome"),
    ("The capital of Italy is", "Rome", "Paris"),
    ("Monday, Tuesday, Wednesday,", "Thursday", "Sunday"),
    ("one, two, three, four,", "five", "nine"),
    ("January, February, March,", "April", "August"),
    ("The opposite of hot is", "cold", "warm"),
    ("The sun rises in the", "east", "west"),
    ("The capital of Japan is", "Tokyo", "Berlin"),
    ("The capital of Germany is", "Berlin", "Tokyo"),
]
"""Beginning, next word, and one that stands as near and is wrong."""

PAIRS = [
    ("The dog wagged its", "tail", "Tuesday"),
    ("She opened the door with a", "key", "soup"),
    ("He drank a glass of", "water", "bricks"),
    ("Birds can", "fly", "spell"),
    ("Ice is frozen", "water", "music"),
    ("We read books in the", "library", "volcano"),
    ("The baby began to", "cry", "legislate"),
    ("A triangle has three", "sides", "uncles"),
    ("The teacher wrote on the", "board", "breath"),
    ("Fish live in the", "sea", "oven"),
    ("He was so tired that he fell", "asleep", "electric"),
    ("The doctor works at the", "hospital", "comma"),
    ("In winter it often", "snows", "spoons"),
    ("She played a song on the", "piano", "onion"),
    ("They crossed the river by", "boat", "grammar"),
    ("The car ran out of", "gas", "adjectives"),
    ("Bees make", "honey", "laptops"),
    ("The opposite of up is", "down", "cheese"),
    ("You can see stars at", "night", "mustard"),
    ("He cut the bread with a", "knife", "cloud"),
    ("The chef cooked a delicious", "meal", "theorem"),
    ("Plants need sunlight and", "water", "opinions"),
    ("The cat chased the", "mouse", "integral"),
    ("She wore a warm coat because it was", "cold", "seven"),
    ("The train arrived at the", "station", "sneeze"),
]


@pytest.fixture(scope="module")
def smollm2():
    return open_backend("smollm2", Opening(threads=1))


def hundred_items():
    """Each pair with four settings: the sense of the whole stays, the tokens differ."""
    settings = ("", "As everybody knows, it is simple. ", "Here is a true sentence. ", "My friend told me this: ")
    return [
        make_item(setting + context, [good, bad], 0, source=f"setting {number}")
        for number, setting in enumerate(settings)
        for context, good, bad in PAIRS
    ]


def mmlu_items(count):
    for above in Path(__file__).resolve().parents:
        path = above / "shared" / "data" / "evals" / "mmlu_redux.jsonl"
        if path.is_file():
            rows = [json.loads(line) for line in path.read_text().split("\n") if line]
            rows = [row for row in rows if row["error_type"] == "ok" and len(set(row["choices"])) == 4]
            return [
                make_item(f"Question: {row['question']}\nAnswer:", row["choices"], int(row["gold"]), source="mmlu")
                for row in rows[:: len(rows) // count][:count]
            ]
    pytest.skip("the shared evaluation data is not beside the project")


def straight(backend, item, choice):
    """Plain log-softmax over one whole text, straight with transformers; also the number of tokens scored."""
    loaded = backend.scorer.args[0].model
    tokenizer = backend.tokens.tokenizer

    def encode(text):
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    whole = [encode(item.context + item.delimiter + each) for each in item.choices]
    alone = encode(item.context)
    shared = next(n for n in range(len(alone), -1, -1) if all(tokens[:n] == alone[:n] for tokens in whole))
    tokens = whole[choice]
    with torch.no_grad():
        log_p = loaded(torch.tensor([tokens])).logits[0].double().log_softmax(-1)
    return -math.fsum(float(log_p[at - 1, tokens[at]]) for at in range(shared, len(tokens))), len(tokens) - shared


def test_it_knows_what_comes_next(smollm2):
    (first,) = smollm2.generate(["The capital of France is"], Writing(max_tokens=1))
    assert first.text == " Paris"
    items = [make_item(beginning, [good, bad], 0, source="facts") for beginning, good, bad in FACTS]
    found = list(smollm2.score(items))
    assert sum(score.nll_nats[0] < score.nll_nats[1] for score in found) >= len(items) - 1
    assert np.median([score.nll_nats[0] for score in found]) < 2.5  # of 49,152 tokens, 10.8 nats by a guess


def test_a_hundred_sentences_end_sensibly(smollm2):
    items = hundred_items()
    found = list(smollm2.score(items))
    assert len(found) == 100
    assert [score.reason for score in found] == [""] * 100
    right = sum(score.nll_nats[0] < score.nll_nats[1] for score in found)
    assert right >= 97
    for score in found:
        assert 0 < min(score.nll_nats) < 25


def test_a_choice_costs_what_a_plain_log_softmax_says(smollm2):
    items = [*hundred_items()[::17], make_item("The Ans", ["wer is", "elm was"], 0, delimiter="", source="s")]
    for item, score in zip(items, smollm2.score(items), strict=True):
        for choice in range(2):
            nll_nats, tokens = straight(smollm2, item, choice)
            assert score.tokens[choice] == tokens
            assert score.nll_nats[choice] == pytest.approx(nll_nats, abs=ROUNDING_NATS * tokens)


def test_in_double_precision_the_short_cuts_are_exact():
    double = open_backend("smollm2", Opening(threads=1, dtype="float64"))
    items = hundred_items()[3::40]
    for item, score in zip(items, double.score(items), strict=True):
        nll_nats, tokens = straight(double, item, 0)
        assert score.nll_nats[0] == pytest.approx(nll_nats, abs=1e-9 * tokens)


def test_real_questions_are_read_and_scored(smollm2):
    items = mmlu_items(100)
    found = list(smollm2.score(items))
    assert [score.id for score in found] == [item.id for item in items]
    assert all(score.reason == "" for score in found)
    nll = np.array([score.nll_nats[item.gold] for item, score in zip(items, found, strict=True)])
    bytes_of = np.array([len((item.delimiter + item.answer).encode()) for item in items])
    bits_per_byte = float(nll.sum() / math.log(2) / bytes_of.sum())
    assert 0.5 < bits_per_byte < 2.5  # a uniform guess over its tokens takes about 4
    for at in (3, 50):
        nll_nats, tokens = straight(smollm2, items[at], items[at].gold)
        assert found[at].nll_nats[items[at].gold] == pytest.approx(nll_nats, abs=ROUNDING_NATS * tokens)
    for text in ("caf\u00e9 2019, 12 + 30", "def f(x):\n\treturn x"):
        assert smollm2.tokens.decode(smollm2.tokens.encode(text)) == text


def test_texts_do_not_depend_on_the_batch(smollm2):
    prompts = ["The capital of France is", "Once upon a time", "def add(a, b):\n", "x"]
    for writing in (Writing(max_tokens=10), Writing(max_tokens=10, temperature=0.8, seed=1, stop=("\n",))):
        together = [each.text for each in smollm2.generate(prompts, writing)]
        assert [next(smollm2.generate([prompt], writing)).text for prompt in prompts] == together


def test_its_identity_is_that_of_the_file(smollm2):
    assert smollm2.identity.kind == "gguf"
    assert smollm2.identity.parameters == 134_515_008
    assert smollm2.identity.parts["context_tokens"] == "8192"
