"""What every model in this process does alike."""

from dataclasses import replace

import pytest

from wholestack.evals.backend import Opening, Writing
from wholestack.evals.items import make_item
from wholestack.evals.models.opening import open_backend

MOST_AT_ONCE = 512


class Counting:
    """A tokenizer that remembers the most texts that it was handed at once."""

    def __init__(self, inner):
        self.inner, self.most = inner, 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def encode(self, text):
        return self.inner.encode(text)

    def encode_batch(self, texts):
        self.most = max(self.most, len(texts))
        return self.inner.encode_batch(texts)


@pytest.fixture
def counted(folders):
    backend = open_backend(folders["byte"], Opening())
    return replace(backend, tokens=Counting(backend.tokens))


def test_the_expense_of_many_items_is_counted_in_pieces_of_bounded_size(counted):
    items = [make_item(f"{number} and one make", ["more", "less"], 0, source="s") for number in range(1500)]
    found = counted.expense(items)
    assert counted.tokens.most == 3 * MOST_AT_ONCE, "a context and two choices an item"
    assert found.requests == 3000
    texts = (item.context + "".join(f" {choice}" for choice in item.choices) for item in items)
    assert found.prompt_tokens == sum(len(text) for text in texts)


def test_the_expense_of_many_prompts_is_counted_in_pieces_of_bounded_size(counted):
    prompts = [f"{number} and one make" for number in range(1500)]
    found = counted.expense([], prompts, Writing(max_tokens=2))
    assert counted.tokens.most == MOST_AT_ONCE
    assert found.prompt_tokens == sum(map(len, prompts))
