"""Items in training text: what is found, by which rule, and what is not said of clean text."""

import json
import random

import pytest

from wholestack.data.training_text import Text
from wholestack.errors import InputError
from wholestack.evals.contamination.index import Index, Wanted
from wholestack.evals.contamination.matching import MOST_SHOWN, match_document, match_documents
from wholestack.evals.contamination.searching import search, wanted_of
from wholestack.evals.layouts.catalog import read_questions

WORDS = [
    f"{one}{two}" for one in ("mo", "ka", "ti", "su", "re", "ly", "ne", "po") for two in ("ran", "del", "vix", "tho")
]
TEMPLATE = "Which of the following is most likely true of"


def made(number, *, words=14, seed=0):
    rng = random.Random(f"{seed}/{number}")
    text = f"{TEMPLATE} {' '.join(rng.choice(WORDS) for _ in range(words))}?"
    choices = tuple(f"{rng.choice(WORDS)} {rng.choice(WORDS)} {letter}x" for letter in "abcd")
    return Wanted(id=f"q{number}", text=text, choices=choices, answer=choices[number % 4])


ITEMS = [made(number) for number in range(40)]
INDEX = Index(ITEMS)
PAGE = "A page that has nothing to do with it. " * 30


def found(text, index=INDEX):
    return {flag.item: flag for flag in match_document(index, Text("place", text))}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda text: text, "exact"),
        (lambda text: text.replace(" ", "\n   "), "exact"),
        (lambda text: text.upper(), "normalised"),
        (lambda text: text.replace(" ", ", "), "normalised"),
        (lambda text: "* " + text.replace("?", " ..."), "exact"),
        (lambda text: " ".join(word for place, word in enumerate(text.split()) if place != 16), "near"),
        (lambda text: " ".join(text.split()[15:] + ["and"] + text.split()[:15]), "near"),
    ],
)
def test_a_question_is_found_by_the_strictest_rule_that_holds(change, rule):
    item = ITEMS[7]
    flags = found(f"{PAGE}{change(item.text)}\nAnswer: {item.answer}. {PAGE}")
    assert list(flags) == [item.id]
    assert flags[item.id].rule == rule
    assert flags[item.id].has_answer
    assert (flags[item.id].share == 1.0) == (rule != "near")


def test_the_matched_text_and_the_place_are_said():
    item = ITEMS[3]
    flag = found(f"{PAGE}\n{item.text}\n{PAGE}")[item.id]
    assert flag.document == "place"
    assert " ".join(item.text.split()).rstrip("?") in flag.match
    assert not flag.has_answer
    long = made(99, words=400)
    assert len(found(long.text, Index([*ITEMS, long]))[long.id].match) == MOST_SHOWN


def test_words_that_questions_share_say_nothing():
    assert found(f"{PAGE} {TEMPLATE} something else altogether? {PAGE}" * 20) == {}


def test_words_of_a_question_that_are_spread_over_a_book_are_no_question():
    item = ITEMS[5]
    words = item.text.split()
    pieces = [" ".join(words[place : place + 6]) for place in range(0, len(words) - 5, 2)]
    assert found((PAGE * 3).join(pieces)) == {}
    assert list(found(" and then ".join(pieces))) == [item.id]


def test_half_of_the_words_is_enough_and_less_is_not():
    item = ITEMS[9]
    own = item.text.split()[len(TEMPLATE.split()) :]
    assert list(found(" ".join(item.text.split()[:-4]))) == [item.id]
    assert found(" ".join(own[:7])) == {}


@pytest.mark.parametrize("marks", [("", "", "", ""), ("(A)", "(B)", "(C)", "(D)"), ("a.", "b.", "c.", "d."), "1234"])
def test_a_short_question_is_looked_for_with_its_choices(marks):
    short = Wanted(id="short", text="Who was it?", choices=ITEMS[0].choices, answer=ITEMS[0].choices[2])
    index = Index([*ITEMS[1:], short])
    assert index.too_short == ()
    listed = "\n".join(f"{mark} {choice}" for mark, choice in zip(marks, short.choices, strict=True))
    flags = found(f"{PAGE}Who was it?\n{listed}\n{PAGE}", index)
    assert flags["short"].rule in ("exact", "normalised")
    assert flags["short"].has_answer
    assert found(f"{PAGE}Who was it?\n{PAGE}", index) == {}


def test_what_cannot_be_told_from_chance_is_counted_and_not_looked_for():
    index = Index([*ITEMS, Wanted(id="tiny", text="Is it so?", choices=("yes", "no"), answer="yes")])
    assert index.too_short == ("tiny",)
    assert found("Is it so? yes no", index) == {}
    with pytest.raises(InputError, match="no item"):
        Index([])


def test_documents_together_give_what_each_alone_gives():
    texts = [
        Text(f"d{number}", f"{PAGE[: number * 7]}{ITEMS[number].text if number % 3 else PAGE}") for number in range(30)
    ]
    together = match_documents(INDEX, texts)
    alone = [flag for text in texts for flag in match_document(INDEX, text)]
    assert together == alone
    assert len(alone) == 20
    # A question that ends one document and begins the next is in neither.
    words = ITEMS[4].text.split()
    assert match_documents(INDEX, [Text("a", " ".join(words[:14])), Text("b", " ".join(words[14:]))]) == []


def test_many_files_are_searched_by_several_processes_as_by_one(tmp_path):
    for number in range(6):
        lines = [json.dumps({"text": f"{PAGE}{ITEMS[number * 3 + each].text}"}) for each in range(3)]
        (tmp_path / f"shard{number}.jsonl").write_text("\n".join(lines))
    (tmp_path / "broken.jsonl").write_text("{\n")
    one, several = (search(ITEMS, tmp_path, processes=processes) for processes in (1, 3))
    assert one == several
    assert one.flagged == {"exact": 18, "normalised": 0, "near": 0}
    assert (one.documents, one.unread, one.exit_code) == (18, 1, 1)
    assert one.first_unread[0].startswith(f"{tmp_path / 'broken.jsonl'}:1: not JSON")
    assert [each.subject for each in one.findings if each.status == "fail"] == sorted(
        (f"q{number}" for number in range(18)), key=str
    )


def test_clean_text_with_something_unread_is_unknown_and_never_ok(tmp_path):
    (tmp_path / "a.txt").write_text(PAGE)
    assert search(ITEMS, tmp_path).exit_code == 0
    (tmp_path / "b.bin").write_bytes(b"\0\1\2")
    assert search(ITEMS, tmp_path).exit_code == 3


def test_only_the_questions_own_words_are_looked_for(tmp_path):
    path = tmp_path / "items.jsonl"
    rows = [{"question": each.text, "choices": list(each.choices), "answer": 0} for each in ITEMS[:3]]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"question": "x", "choices": ["a", "b"]}]))
    wanted, refused = wanted_of(read_questions(path))
    assert [each.text for each in wanted] == [each.text for each in ITEMS[:3]]
    assert len(refused) == 1


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_random_text_of_the_same_words_is_hardly_ever_taken_for_a_question(share):
    rng = random.Random(3)
    for _ in range(300):
        text = " ".join(rng.choice(WORDS) if rng.random() > share else "of" for _ in range(300))
        assert found(text) == {}
