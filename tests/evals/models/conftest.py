import pytest

from .material import byte_tokenizer, ragged_items, save_llama


@pytest.fixture(scope="session")
def items():
    return ragged_items()


@pytest.fixture(scope="session")
def families(tokenizers):
    return {
        "byte": byte_tokenizer(),
        "bpe": tokenizers["bpe"].tokenizer,
        "sentencepiece": tokenizers["sentencepiece"].tokenizer,
    }


@pytest.fixture(scope="session")
def folders(families, tmp_path_factory):
    """One folder a family of tokenizers."""
    return {name: save_llama(tmp_path_factory.mktemp(name), each) for name, each in families.items()}
