import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wholestack.errors import InputError, RunDirectoryError
from wholestack.evals.items import make_item, seal_items
from wholestack.evals.prepared import NO_CONTEXT, NO_TOKENS, TOO_LONG, PreparedItems, lay_out, prepare_items

from .material import ByteTokenizer

FAMILIES = ["byte", "bpe", "sentencepiece"]


def set_of(*items):
    return seal_items([make_item(*item[:3], delimiter=item[3], source="s") for item in items], kind="items from a file")


class Words:
    """Longest match over a fixed list of words, letters otherwise: 'Ans' + 'wer' is not 'Answer'."""

    def __init__(self, *words, start=(), end=()):
        self.words = [*words, *map(chr, range(32, 127))]
        self.start, self.end = list(start), list(end)

    def encode(self, text):
        tokens = []
        while text:
            word = next(word for word in self.words if text.startswith(word))
            tokens.append(self.words.index(word))
            text = text[len(word) :]
        return self.start + tokens + self.end


def tokens_of(prepared, item):
    context = prepared.contexts[prepared.context_offsets[item] : prepared.context_offsets[item + 1]].tolist()
    choices = range(prepared.choice_offsets[item], prepared.choice_offsets[item + 1])
    answers = [prepared.answers[prepared.answer_offsets[c] : prepared.answer_offsets[c + 1]].tolist() for c in choices]
    return context, answers


@pytest.mark.parametrize("family", FAMILIES)
def test_context_and_choice_together_are_the_tokens_of_the_whole_text(small_set, tokenizers, family):
    tokenizer = tokenizers[family]
    prepared = prepare_items(small_set, tokenizer, context_tokens=512)
    for index, item in enumerate(small_set.items):
        context, answers = tokens_of(prepared, index)
        assert context
        for choice, answer in zip(item.choices, answers, strict=True):
            assert answer
            assert context + answer == list(tokenizer.encode(item.context + item.delimiter + choice))


@pytest.mark.parametrize("family", ["bpe", "sentencepiece"])
def test_the_shared_context_holds_no_text_of_any_choice(small_set, tokenizers, family):
    tokenizer = tokenizers[family]
    prepared = prepare_items(small_set, tokenizer, context_tokens=512)
    for index, item in enumerate(small_set.items):
        context, _ = tokens_of(prepared, index)
        assert item.context.lstrip().startswith(tokenizer.tokenizer.decode(context).lstrip())


def test_a_token_that_spans_the_join_is_scored_with_the_choice_and_counted():
    tokenizer = Words("Answer", "Ans")
    prepared = prepare_items(set_of(("The Ans", ["wer", "xyz"], 0, "")), tokenizer, context_tokens=64)
    context, answers = tokens_of(prepared, 0)
    assert context == tokenizer.encode("The ")
    assert answers == [tokenizer.encode("Answer"), tokenizer.encode("Ansxyz")]
    assert prepared.spanning.tolist() == [True]
    assert prepared.answer_bytes.tolist() == [3, 3]


def test_without_spanning_tokens_nothing_is_counted(small_set):
    assert not prepare_items(small_set, ByteTokenizer(), context_tokens=512).spanning.any()


def test_the_free_bpe_has_items_where_a_token_spans_the_join(item_set, tokenizers):
    assert prepare_items(item_set, tokenizers["bpe"], context_tokens=512).spanning.any()


def test_a_join_that_leaves_no_context_is_unscorable_with_its_reason():
    prepared = prepare_items(set_of(("Ans", ["wer", "xyz"], 0, "")), Words("Answer", "Ans"), context_tokens=64)
    assert prepared.reasons.tolist() == [NO_CONTEXT]
    assert len(prepared.answers) == 0


def test_a_prefix_token_makes_items_without_context_scorable():
    items = set_of(("", ["is", "as"], 0, ""))
    assert prepare_items(items, Words(), context_tokens=8).reasons.tolist() == [NO_CONTEXT]
    prepared = prepare_items(items, Words(), context_tokens=8, prefix_token=99)
    assert prepared.reasons.tolist() == [""]
    assert tokens_of(prepared, 0)[0] == [99]


def test_a_start_token_of_the_tokenizer_is_context():
    prepared = prepare_items(set_of(("", ["is", "as"], 0, "")), Words(start=[7]), context_tokens=8)
    assert tokens_of(prepared, 0)[0] == [7]


def test_a_tokenizer_that_adds_an_end_token_is_refused(small_set):
    with pytest.raises(InputError, match="puts token 5 behind every text"):
        prepare_items(small_set, Words(end=[5]), context_tokens=64)


def test_a_choice_that_the_tokenizer_swallows_is_unscorable_with_its_reason():
    class Deaf(Words):
        def encode(self, text):
            return super().encode(text.replace("?", ""))

    prepared = prepare_items(set_of(("is it", ["?", "so"], 1, "")), Deaf(), context_tokens=64)
    assert prepared.reasons.tolist() == [NO_TOKENS]


def test_a_long_context_is_cut_on_the_left_so_that_the_longest_choice_fits():
    items = set_of(("abcdefgh", ["xyz", "ij"], 1, ""))
    prepared = prepare_items(items, Words(), context_tokens=6)
    context, answers = tokens_of(prepared, 0)
    assert context == Words().encode("efgh")  # 4 + 3 tokens, the last of which is no input
    assert answers == [Words().encode("xyz"), Words().encode("ij")]
    assert prepared.truncated.tolist() == [True]
    assert prepare_items(items, Words(), context_tokens=10).truncated.tolist() == [False]


def test_the_prefix_token_survives_truncation():
    items = set_of(("abcdefgh", ["xyz", "ij"], 1, ""))
    prepared = prepare_items(items, Words(), context_tokens=6, prefix_token=99)
    assert tokens_of(prepared, 0)[0] == [99, *Words().encode("fgh")]


@pytest.mark.parametrize(("context_tokens", "reason"), [(4, TOO_LONG), (5, "")])
def test_a_choice_longer_than_the_model_is_unscorable_with_its_reason(context_tokens, reason):
    prepared = prepare_items(set_of(("abc", ["vwxyz", "i"], 1, "")), Words(), context_tokens=context_tokens)
    assert prepared.reasons.tolist() == [reason]


def test_bytes_and_characters_count_the_delimiter():
    prepared = prepare_items(set_of(("a", ["é漢", "zz"], 0, " ")), ByteTokenizer(), context_tokens=64)
    assert prepared.answer_bytes.tolist() == [6, 3]
    assert prepared.answer_chars.tolist() == [3, 3]


def test_a_context_length_that_holds_nothing_is_refused(small_set):
    with pytest.raises(InputError, match="context_tokens is 1"):
        prepare_items(small_set, ByteTokenizer(), context_tokens=1)


def test_saved_arrays_load_as_they_were(small_set, tmp_path):
    prepared = prepare_items(small_set, ByteTokenizer(), context_tokens=64)
    prepared.save(tmp_path / "p.npz")
    again = PreparedItems.load(tmp_path / "p.npz")
    for name in PreparedItems.__slots__:
        np.testing.assert_array_equal(getattr(again, name), getattr(prepared, name))
    assert isinstance(again.context_tokens, int)


def test_the_digest_knows_item_set_tokenizer_and_context_length_and_bytes_repeat(small_set, tokenizers, tmp_path):
    prepared = prepare_items(small_set, tokenizers["byte"], context_tokens=64)
    assert prepared.digest == prepare_items(small_set, tokenizers["byte"], context_tokens=64).digest
    others = [
        prepare_items(small_set, tokenizers["bpe"], context_tokens=64),
        prepare_items(small_set, tokenizers["byte"], context_tokens=65),
        prepare_items(seal_items(small_set.items[1:], kind="items from a file"), ByteTokenizer(), context_tokens=64),
    ]
    assert len({prepared.digest, *(other.digest for other in others)}) == 4


def test_a_tokenizer_may_return_an_array(small_set):
    class Arrays(ByteTokenizer):
        def encode(self, text):
            return np.array(super().encode(text), np.uint16)

    found = prepare_items(small_set, Arrays(), context_tokens=512)
    assert found.digest == prepare_items(small_set, ByteTokenizer(), context_tokens=512).digest


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"not a zip file"])
def test_a_damaged_file_is_one_clear_error(small_set, tmp_path, damage):
    path = tmp_path / "p.npz"
    prepare_items(small_set, ByteTokenizer(), context_tokens=64).save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"p\.npz: is damaged or not of this kind"):
        PreparedItems.load(path)


def test_a_missing_file_and_an_unwritable_folder_are_named(small_set, tmp_path):
    with pytest.raises(InputError, match=r"none\.npz: cannot be read"):
        PreparedItems.load(tmp_path / "none.npz")
    with pytest.raises(RunDirectoryError, match=r"p\.npz: cannot be written"):
        prepare_items(small_set, ByteTokenizer(), context_tokens=64).save(tmp_path / "none" / "p.npz")


letters = st.text(alphabet="abc", min_size=1, max_size=6)
any_item = st.tuples(
    st.text(alphabet="abc", max_size=8),
    st.lists(letters, min_size=2, max_size=5, unique=True),
    st.just(0),
    st.sampled_from(["", " "]),
)


def spelled_out(prepared, share):
    """The rows that the module's docstring describes, made one token at a time."""
    rows = []
    for item, reason in enumerate(prepared.reasons):
        if reason:
            continue
        context, answers = tokens_of(prepared, item)
        first = int(prepared.choice_offsets[item])
        groups = [list(enumerate(answers))] if share else [[pair] for pair in enumerate(answers)]
        for group in groups:
            places = [(token, at, 0) for at, token in enumerate(context)]
            scored = []
            for segment, (number, answer) in enumerate(group, start=1):
                before = len(context) - 1
                for nth, token in enumerate(answer):
                    scored.append((before, token, first + number))
                    if nth < len(answer) - 1:
                        before = len(places)
                        places.append((token, len(context) + nth, segment))
            rows.append((places, sorted(scored)))
    return rows


@settings(deadline=None)
@given(st.lists(any_item, min_size=1, max_size=6, unique_by=str), st.booleans(), st.integers(3, 12))
def test_rows_are_laid_out_as_described(items, share, context_tokens):
    try:
        item_set = set_of(*items)
    except InputError:
        return
    prepared = prepare_items(item_set, Words("ab", "bca"), context_tokens=context_tokens)
    rows = lay_out(prepared, share_context=share)
    expected = spelled_out(prepared, share)
    assert len(rows.lengths) == len(expected)
    for number, (places, scored) in enumerate(expected):
        start, end = rows.offsets[number], rows.offsets[number + 1]
        found = zip(rows.tokens[start:end], rows.positions[start:end], rows.segments[start:end], strict=True)
        assert [tuple(map(int, place)) for place in found] == places
        mine = (rows.queries >= start) & (rows.queries < end)
        asked = zip(rows.queries[mine] - start, rows.targets[mine], rows.choices[mine], strict=True)
        assert sorted(tuple(map(int, one)) for one in asked) == scored
        assert max(position for _, position, _ in places) < context_tokens
