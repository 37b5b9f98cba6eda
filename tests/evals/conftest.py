import itertools

import pytest
import torch

from wholestack.evals.continuation import build_continuation_items

from .material import ByteTokenizer, standard_library_documents, train_bpe, train_sentencepiece_like


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def documents():
    return standard_library_documents()


@pytest.fixture(scope="session")
def item_set(documents):
    return build_continuation_items(documents, count=400, seed=3)


@pytest.fixture(scope="session")
def small_set(documents):
    return build_continuation_items(
        documents, count=24, seed=5, context_bytes=(20, 60), answer_bytes=(8, 24), per_document=1
    )


@pytest.fixture(scope="session")
def tokenizers(documents):
    lines = [line for document in documents[::4] for line in document.text[:1500].splitlines(keepends=True)]
    texts = ["".join(pair) for pair in itertools.pairwise(lines)]
    return {"byte": ByteTokenizer(), "bpe": train_bpe(texts), "sentencepiece": train_sentencepiece_like(texts)}
