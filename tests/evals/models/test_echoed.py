"""Tokens of a text as servers say them, and which are scored: no number is guessed, none is zero for lack of one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.evals.items import make_item, seal_items
from wholestack.evals.models import echoed
from wholestack.evals.models.echoed import UnusableAnswerError, read_echo, score_echoed
from wholestack.evals.prepared import NO_CONTEXT, prepare_items
from wholestack.testing.endpoint import NgramModel

PAIRS = NgramModel.of_byte_pairs("the cat sat on the mat, the hat; 東京の東京 Straße ééé naïve " * 4, merges=60)
BYTES = NgramModel.of_bytes()


def answer(tokens, logprobs=None, **more):
    numbers = logprobs if logprobs is not None else [None, *[-1.5] * (len(tokens) - 1)]
    return {"choices": [{"text": "", "logprobs": {"tokens": tokens, "token_logprobs": numbers}, **more}]}


def reason_for(raw, text, *, written=0):
    with pytest.raises(UnusableAnswerError) as caught:
        read_echo(raw, text, written=written)
    return str(caught.value)


def test_tokens_that_spell_the_text_are_taken_with_their_places():
    echo = read_echo(answer(["a", "bc", "é"]), "abcé", written=0)
    assert [sorted(ends) for ends in echo.ends] == [[1], [3], [5]]
    assert echo.logprobs == (None, -1.5, -1.5)


def test_offsets_of_the_server_are_not_believed():
    raw = answer(["é", "b"])
    raw["choices"][0]["logprobs"]["text_offset"] = [0, 17]
    assert [sorted(ends) for ends in read_echo(raw, "éb", written=0).ends] == [[2], [3]]


@pytest.mark.parametrize("names", [["\ufffd", "\ufffd", "b"], ["bytes:\\xc3", "bytes:\\xa9", "b"], ["", "é", "b"]])
def test_halves_of_a_character_are_read_however_they_are_named(names):
    echo = read_echo(answer(names), "éb", written=0)
    assert sorted(echo.ends[1]) == [2]
    assert sorted(echo.ends[2]) == [3]


def test_decoders_replace_so_that_most_halves_are_known():
    echo = read_echo(answer(["\ufffd", "\ufffd", "b"]), "東b", written=0)
    assert [sorted(ends) for ends in echo.ends] == [[2], [3], [4]]


def test_where_a_half_ends_may_stay_open():
    """Five parts of two characters: either may be the one that is in three parts."""
    echo = read_echo(answer(["\ufffd"] * 5), "東京", written=0)
    assert [sorted(ends) for ends in echo.ends] == [[1, 2], [2, 3], [3, 4], [5], [6]]


def test_bytes_of_a_long_text_are_read_and_a_hopeless_one_is_given_up():
    text = "東京é" * 5000
    exact = read_echo(answer(["\ufffd"] * len(text.encode())), text, written=0)
    assert {len(ends) for ends in exact.ends} == {1}
    assert reason_for(answer(["\ufffd"] * 20_000), "東京" * 4000) == echoed.UNSURE_JOIN


def test_a_text_may_hold_the_replacement_character_itself():
    assert sorted(read_echo(answer(["a", "\ufffd", "b"]), "a\ufffdb", written=0).ends[1]) == [4]


def test_a_start_token_is_in_front_of_the_text_even_where_the_text_begins_like_it():
    assert [sorted(e) for e in read_echo(answer(["<s>", "<s>", "a"]), "<s>a", written=0).ends] == [[0], [3], [4]]
    assert read_echo(answer(["<s>", "a"]), "a", written=0).starts == 1


def test_a_space_that_sentencepiece_puts_first_is_not_text():
    assert sorted(read_echo(answer(["▁the", "▁cat"]), "the cat", written=0).ends[0]) == [3]


def test_what_was_written_behind_the_text_is_left_out():
    assert read_echo(answer(["a", "b", "c"]), "ab", written=1).tokens == ("a", "b")
    counted = {**answer(["a", "b"]), "usage": {"prompt_tokens": 2}}
    assert read_echo(counted, "ab", written=1).tokens == ("a", "b")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (None, echoed.UNREADABLE),
        ([], echoed.UNREADABLE),
        ({"choices": []}, echoed.UNREADABLE),
        ({"choices": [{"text": "ab", "logprobs": None}]}, echoed.NO_LOGPROBS),
        ({"choices": [{"text": "ab"}]}, echoed.NO_LOGPROBS),
        ({"choices": [{"logprobs": {"content": [{"token": "a", "logprob": -1}]}}]}, echoed.NO_LOGPROBS),
        (answer(["a", "b"], [None, None]), echoed.NO_LOGPROBS),
        (answer(["a", "b"], [0.0, 0.0]), echoed.NO_LOGPROBS),
        (answer(["a", "b"], [None]), echoed.WRONG_LENGTHS),
        (answer(["a"], [None]), echoed.NOT_THE_TEXT),
        (answer(["a", "c"]), echoed.NOT_THE_TEXT),
        (answer(["b"], [-1.0]), echoed.NOT_THE_TEXT),
        (answer(["a", "b", "c"]), echoed.NOT_THE_TEXT),
        (answer(["a", "b"], [None, 0.5]), echoed.NOT_A_LOGPROB),
        (answer(["a", "b"], [None, float("nan")]), echoed.NOT_A_LOGPROB),
        (answer(["a", "b"], [None, -9999.0]), echoed.NOT_A_LOGPROB),
        (answer(["a", "b"], [None, "-1"]), echoed.NOT_A_LOGPROB),
        (answer(["a", 7]), echoed.UNREADABLE),
    ],
)
def test_an_answer_without_the_numbers_has_a_reason(raw, reason):
    assert reason_for(raw, "ab") == reason


def test_a_logprob_that_is_missing_among_scored_tokens_is_no_zero():
    item = make_item("a", ["b", "c"], 0, delimiter="", source="s")
    alone = read_echo(answer(["a"]), "a", written=0)
    wholes = [read_echo(answer(["a", "b"]), "ab", written=0), read_echo(answer(["a", "c"]), "ac", written=0)]
    hole = read_echo(answer(["a", "c", "d"], [None, None, -1.0]), "acd", written=0)
    assert score_echoed(item, alone, wholes).nll_nats == (1.5, 1.5)
    assert score_echoed(item, alone, [wholes[0], hole]).reason == echoed.MISSING_LOGPROB


def test_without_context_the_first_token_has_nothing_before_it():
    item = make_item("", ["b", "c"], 0, delimiter="", source="s")
    wholes = [read_echo(answer([name, "d"]), name + "d", written=0) for name in "bc"]
    assert score_echoed(item, None, wholes).reason == NO_CONTEXT
    started = [read_echo(answer(["<s>", name]), name, written=0) for name in "bc"]
    assert score_echoed(item, None, started).nll_nats == (1.5, 1.5)


def test_an_exact_zero_with_nothing_before_it_is_missing_and_no_certainty():
    item = make_item("", ["a cat", "b"], 0, delimiter="", source="s")
    wholes = [
        read_echo(answer(["a", " cat"], [0.0, -2.0]), "a cat", written=0),
        read_echo(answer(["b"], [-1.0]), "b", written=0),
    ]
    assert score_echoed(item, None, wholes).reason == NO_CONTEXT


def test_equal_names_of_unequal_halves_are_told_apart_or_given_up():
    item = make_item("東京", ["x", "y"], 0, delimiter="", source="s")
    halves = ["\ufffd"] * 5
    alone = read_echo(answer(halves, [None, *[-2.0] * 4]), "東京", written=0)
    same = [read_echo(answer([*halves, c], [None, *[-2.0] * 4, -1.0]), "東京" + c, written=0) for c in "xy"]
    other = read_echo(answer([*halves, "y"], [None, -7.0, *[-2.0] * 3, -1.0]), "東京y", written=0)
    assert score_echoed(item, alone, same).tokens == (1, 1)
    with pytest.raises(UnusableAnswerError, match="half characters"):
        score_echoed(item, alone, [same[0], other])


TEXTS = st.text(alphabet="the catsonmh,東京のéß \u2009", max_size=12)


@given(context=TEXTS, choices=st.lists(TEXTS.filter(str.strip), min_size=2, max_size=4, unique=True), delimiter=TEXTS)
@pytest.mark.parametrize("model", [BYTES, PAIRS], ids=["bytes", "byte pairs"])
@pytest.mark.parametrize("names", ["replaced", "bytes"])
def test_the_scored_tokens_are_those_of_the_local_rule(model, names, context, choices, delimiter):
    item = make_item(context, choices, 0, delimiter=delimiter, source="s")
    prepared = prepare_items(seal_items([item], kind="items from a file"), model, context_tokens=1000)
    given_up = ""
    try:
        alone = echo_of(model, context, names) if context else None
        found = score_echoed(item, alone, [echo_of(model, context + delimiter + c, names) for c in choices])
    except UnusableAnswerError as error:
        given_up = str(error)
    if given_up:
        assert given_up == echoed.UNSURE_JOIN
        assert names == "replaced"
        return
    assert found.reason == prepared.reasons[0]
    if found.reason:
        return
    assert found.tokens == tuple(prepared.answer_tokens)
    assert found.spanning == prepared.spanning[0]
    start = len(prepared.contexts)
    for place, nll in enumerate(found.nll_nats):
        answers = prepared.answers[prepared.answer_offsets[place] : prepared.answer_offsets[place + 1]]
        direct = model.logprobs([*prepared.contexts, *answers])[start:]
        assert nll == pytest.approx(-math.fsum(direct), rel=1e-12)


def echo_of(model, text, names):
    tokens = model.encode(text)
    raw = [model.name(token) for token in tokens]
    if names == "replaced":
        shown = [name.decode(errors="replace") for name in raw]
    else:
        shown = ["bytes:" + "".join(f"\\x{v:02x}" for v in name) for name in raw]
    return read_echo(answer(shown, model.logprobs(tokens)), text, written=0)
