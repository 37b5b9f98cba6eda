"""A real transformer with a real tokenizer has behind HTTP the numbers that it has here, whatever its tokens."""

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from wholestack.evals.backend import Opening, Writing
from wholestack.evals.models.echoed import NOT_THE_TEXT
from wholestack.evals.models.endpoint import open_endpoint
from wholestack.evals.models.transformers import open_folder
from wholestack.testing.endpoint import Dialect, loopback_endpoint

from .material import gap_per_token, oracle


def byte_of_letter() -> dict[str, int]:
    """The letters that stand for bytes in byte-level vocabularies: printable ones as they are, others from U+0100."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [value for value in range(256) if value not in kept]
    return {chr(value): value for value in kept} | {chr(256 + place): value for place, value in enumerate(moved)}


class Served:
    """A folder of transformers, in float64, as the server wants it."""

    def __init__(self, folder, *, byte_level):
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.letters = byte_of_letter() if byte_level else None

    def encode(self, text):
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def name(self, token):
        name = self.tokenizer.convert_ids_to_tokens(token)
        return name.encode() if self.letters is None else bytes(self.letters[letter] for letter in name)

    @torch.no_grad()
    def logprobs(self, tokens):
        log_p = self.model(torch.tensor([list(tokens)])).logits[0].log_softmax(-1)
        return [None, *(float(log_p[place - 1, token]) for place, token in enumerate(tokens) if place)]

    @torch.no_grad()
    def write(self, tokens, count):
        written = list(tokens)
        for _ in range(count):
            written.append(int(self.model(torch.tensor([written])).logits[0, -1].argmax()))
        return written[len(tokens) :]


@pytest.mark.parametrize(
    ("family", "dialect"),
    [
        ("byte", Dialect(names="replaced")),
        ("byte", Dialect(names="late", usage=False)),
        ("bpe", Dialect(names="replaced", zero_tokens=False)),
        ("bpe", Dialect(names="bytes", strict=True)),
        ("bpe", Dialect(names="late", ids=True, echo=False, prompt_logprobs=True)),
        ("sentencepiece", Dialect()),
    ],
)
def test_scores_are_those_of_the_plain_model_and_of_the_local_backend(folders, items, family, dialect):
    served = Served(folders[family], byte_level=family != "sentencepiece")
    lossy = {item.id for item in items if family == "sentencepiece" and not "".join(item.choices).isascii()}
    lossy |= {item.id for item in items if family == "sentencepiece" and not item.context.isascii()}
    with loopback_endpoint(served, dialect=dialect) as server:
        found = list(open_endpoint(server.url, Opening()).score(items))
    # This unigram model has no tokens for other letters: <unk> spells nothing, and nothing is guessed.
    assert {score.id for score in found if score.reason} == lossy
    assert {score.reason for score in found} <= {"", NOT_THE_TEXT}
    scorable = [item for item in items if item.id not in lossy]
    found = [score for score in found if not score.reason]
    assert len(found) >= 9
    assert gap_per_token(found, oracle(served.model, served.encode, scorable)) <= 1e-9
    here = list(open_folder(folders[family], Opening(dtype="float64")).score(scorable))
    assert [(score.tokens, score.spanning) for score in found] == [(score.tokens, score.spanning) for score in here]
    assert gap_per_token(found, [score.nll_nats for score in here]) <= 1e-9


def test_it_writes_what_the_local_backend_writes(folders):
    served = Served(folders["bpe"], byte_level=True)
    prompts, writing = ["The cat", "Zwei und"], Writing(max_tokens=6)
    here = list(open_folder(folders["bpe"], Opening(dtype="float64")).generate(prompts, writing))
    with loopback_endpoint(served) as server:
        there = list(open_endpoint(server.url, Opening()).generate(prompts, writing))
    assert [each.text for each in there] == [each.text for each in here]
