import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library
from tokenizers import models, pre_tokenizers

from wholestack.data.bpe import printable_bytes, train
from wholestack.data.tokenizer import END_OF_DOCUMENT, Tokenizer, check_vocab_size, words
from wholestack.errors import DataError, InputError, RecordError

SAMPLE = (
    "def encode(self, text):\n    return [self.ids[word] for word in text.split()]\n" * 3 + "the words of the text\n"
)
TRAINED = train([SAMPLE], vocab_size=320)
BYTES = train([SAMPLE], vocab_size=256)
TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200)


@given(TEXTS)
def test_words_joined_are_the_text(text):
    assert "".join(words(text)) == text


@given(TEXTS, st.sampled_from([TRAINED, BYTES]))
def test_encoding_loses_nothing(text, tokenizer):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids.tolist()) == text
    assert ids.dtype == np.uint16
    assert int(tokenizer.byte_lengths[ids].sum()) == len(text.encode())


@given(st.text(alphabet=st.sampled_from("ÿ\xff<|endof\x00\ud7ff\ue000\U0010ffff>"), max_size=50))
def test_no_text_spells_the_end_of_a_document(text):
    assert END_OF_DOCUMENT not in TRAINED.encode(text).tolist()


@given(TEXTS)
def test_plain_bytes_are_the_bytes(text):
    assert BYTES.vocab_size == 256
    assert BYTES.encode(text).tolist() == list(text.encode())


def library_of(tokenizer: Tokenizer) -> Library:
    """Oracle: the same merges in the library's own encoder."""
    spelt = ["".join(map(printable_bytes().__getitem__, each)) for each in tokenizer._spelt]
    merges = [(spelt[left], spelt[right]) for left, right in tokenizer.merges]
    library = Library(models.BPE({each: i for i, each in enumerate(spelt)}, merges))
    library.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    return library


LIBRARY = library_of(TRAINED)


@given(st.text(alphabet=st.sampled_from("abcdefilnorstwx \n_.1é()"), max_size=120))
def test_it_encodes_as_the_tokenizers_library_does(text):
    table = dict(enumerate(printable_bytes()))
    mapped = " ".join(word.encode().decode("latin-1").translate(table) for word in words(text))
    assert TRAINED.encode(text).tolist() == LIBRARY.encode(mapped).ids


def test_merges_join_by_rank_and_not_by_place():
    a, b, c = b"abc"
    assert Tokenizer([(b, c), (a, b)]).encode("abc").tolist() == [a, 256]
    assert Tokenizer([(a, b), (b, c)]).encode("abc").tolist() == [256, c]
    assert Tokenizer([(a, a)]).encode("aaa").tolist() == [256, a]


def test_two_merges_that_spell_the_same_share_an_id():
    tokenizer = Tokenizer.from_pairs([(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"a", b"bc"), (b"abc", b"d")])
    assert tokenizer.vocab_size == 256 + 4
    assert tokenizer.decode(tokenizer.encode("abcd").tolist()) == "abcd"
    assert len(tokenizer.encode("abcd")) == 1


def test_merges_do_not_cross_words():
    assert words("if x:\n        return  1") == ["if", " x", ":", "\n       ", " return", " ", " 1"]
    assert max(map(len, words("a" * 1000 + " " * 1000 + "." * 1000 + "é" * 1000))) <= 49


def test_saved_and_loaded_it_is_the_same(tmp_path):
    TRAINED.save(tmp_path / "t.json")
    loaded = Tokenizer.load(tmp_path / "t.json")
    assert loaded.digest == TRAINED.digest
    assert loaded.merges == TRAINED.merges
    assert loaded.digest != BYTES.digest


def test_a_missing_or_broken_file_is_one_clear_error(tmp_path):
    with pytest.raises(DataError, match=r"t\.json"):
        Tokenizer.load(tmp_path / "t.json")
    (tmp_path / "t.json").write_text('{"schema": "tokenizer/1"}')
    with pytest.raises(RecordError, match=r"t\.json"):
        Tokenizer.load(tmp_path / "t.json")
    (tmp_path / "t.json").write_text('{"schema": "tokenizer/1", "cut_rule": "other", "merges": []}')
    with pytest.raises(DataError, match="other"):
        Tokenizer.load(tmp_path / "t.json")


def test_merges_that_name_ids_out_of_order_are_refused():
    with pytest.raises(DataError, match="merge 0"):
        Tokenizer([(97, 300)])


def test_a_lone_surrogate_is_refused():
    with pytest.raises(DataError, match="surrogate"):
        TRAINED.encode("a\ud800")


def test_cut_in_the_middle_of_a_character_decodes_with_a_replacement():
    assert BYTES.decode("é".encode()[:1]) == "\ufffd"


@pytest.mark.parametrize("size", [0, 255, 65_537, -1])
def test_sizes_that_cannot_be_are_refused(size):
    with pytest.raises(InputError, match=str(size)):
        check_vocab_size(size)
