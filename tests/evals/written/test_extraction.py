"""An answer is taken out by the named rule, is one, and is never guessed; where there is none, the reason is said."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.evals.patterns import MOST_SLOW, TOO_SLOW
from wholestack.evals.written.extraction import BEYOND, EMPTY, MOST_CHARACTERS, SEVERAL, extraction_named
from wholestack.evals.written.numbers import find_numbers, parse_number

NAMES = ["text", "last_number", "letter", "letter:ABC", "marker:####", "marker:Answer:", "boxed", "json:answer"]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("text", "  Paris \n", "Paris"),
        ("last_number", "3 and 4 make $1,007.50.", "2015/2"),
        ("last_number", "so 5 - 8 = -3", "-3"),
        ("letter", "B", "B"),
        ("letter", " (C). ", "C"),
        ("letter", "The answer is (B) Paris.", "B"),
        ("letter", "The answer is B: Paris.", "B"),
        ("letter", "The answer is B because of Paris", "B"),
        ("letter", "B) because Paris is larger", "B"),
        ("letter", "A is wrong, so the answer is (D).", "D"),
        ("letter", "Thinking of A and B.\n**Answer:** C", "C"),
        ("marker:####", "18 - 3 is 15\n#### 15", "15"),
        ("marker:####", "####15", "15"),
        ("marker:####", "#### 15\n#### 15", "15"),
        ("marker:Answer:", "Answer: Paris, I think\nBye", "Paris, I think"),
        ("boxed", r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        ("json:answer", 'Sure:\n```json\n{"answer": 42, "why": {"a": 1}}\n```', "42"),
        ("json:answer", '{"answer": "Zürich"}', "Zürich"),
        (r"regex:x = (\d+)", "x = 7; y = 8", "7"),
    ],
)
def test_the_answer_is_taken_out(name, text, value):
    found = extraction_named(name)(text)
    assert (found.value, found.reason) == (value, "")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("marker:####", "the answer is 15", "holds no '####'"),
        ("marker:####", "#### ", "has nothing behind '####'"),
        ("marker:####", "#### 15\n#### 16", SEVERAL),
        ("letter", "A) red\nB) blue\nC) green", SEVERAL),
        ("letter", "A B C D", "says no letter"),
        ("letter", "The answer is A and B", "says no letter"),
        ("letter", "I don't know", "says no letter"),
        ("letter", "A good question", "says no letter"),
        ("letter", "The answer is A good question", "says no letter"),
        ("letter", "The answer is I don't know", "says no letter"),
        ("letter", "The answer: I'm not sure", "says no letter"),
        ("letter", "Apples are best", "says no letter"),
        ("letter", "the answer is A; no, the answer is B", SEVERAL),
        ("letter:AB", "The answer is C", "says no letter"),
        ("last_number", "none at all", "holds no number"),
        ("boxed", "15", "holds no \\boxed{...}"),
        ("boxed", r"\boxed{1} \boxed{2}", SEVERAL),
        ("boxed", r"\boxed{1", "holds no \\boxed{...}"),
        ("json:answer", '{"answer": 1} {"answer": 2}', "holds 2 JSON objects"),
        ("json:answer", '{"answer": 1', "holds no JSON object"),
        ("json:answer", '{"result": 1}', "its JSON has no key 'answer'"),
        ("regex:x = (.)", "y = 8", "does not match"),
        ("text", "x" * (MOST_CHARACTERS + 1), f"longer than {MOST_CHARACTERS:,} characters"),
    ],
)
def test_a_text_without_one_answer_says_why(name, text, reason):
    found = extraction_named(name)(text)
    assert (found.value, found.reason) == ("", reason)


@pytest.mark.parametrize(
    ("name", "text", "choices", "value", "reason"),
    [
        ("letter", "The answer is D.", 4, "D", ""),
        ("letter", "The answer is E.", 4, "", BEYOND),
        ("letter", "(J)", 4, "", BEYOND),
        ("letter", "C) because", 2, "", BEYOND),
        ("letter", "The answer is E. No, the answer is B.", 4, "", SEVERAL),
        ("letter", "The answer is J.", 0, "J", ""),
        ("letter", "The answer is K.", 0, "", "says no letter"),
        ("letter", "The answer is K.", 4, "", "says no letter"),
        ("letter", "The answer is L.", 12, "L", ""),
        ("letter", "The answer is M.", 12, "", "says no letter"),
        ("letter:ABCD", "The answer is D.", 3, "", BEYOND),
        ("letter:12345", "The answer is 3.", 3, "3", ""),
        ("letter:12345", "The answer is 4.", 3, "", BEYOND),
        ("letter:AB", "The answer is C.", 3, "", "says no letter"),
        ("marker:####", "#### E", 4, "E", ""),
    ],
)
def test_a_letter_is_one_of_the_choices_that_the_question_has(name, text, choices, value, reason):
    found = extraction_named(name)(text, choices)
    assert (found.value, found.reason) == (value, reason)


@pytest.mark.parametrize("name", [*NAMES, "regex:(.)"])
def test_nothing_written_is_no_answer(name):
    assert extraction_named(name)(" \n\t").reason == EMPTY


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_reads_what_it_puts(name):
    rule = extraction_named(name)
    for value in ("B", "A") if "letter" in name else ("7", "-12", "300"):
        assert rule(rule.put(value)).value == value


@given(text=st.text(max_size=200))
@pytest.mark.parametrize("name", [*NAMES, r"regex:(\w+)"])
def test_any_text_gives_a_value_or_a_reason_and_never_both(name, text):
    found = extraction_named(name)(text)
    assert bool(found.value) != bool(found.reason)


@pytest.mark.parametrize(
    "name",
    [
        "none",
        "",
        "marker:",
        "json:",
        "regex:",
        "regex:(",
        "regex:(a)(b)",
        "regex:(a{999}){999}",
        "letter:A",
        "letter:AA",
        "boxed:x",
    ],
)
def test_a_rule_that_is_not_there_is_one_clear_line(name):
    with pytest.raises(InputError):
        extraction_named(name)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("$1,234.50", [Fraction("1234.5")]),
        ("−5 and - 3", [Fraction(-5), Fraction(3)]),
        ("3-5", [Fraction(3), Fraction(5)]),
        ("3/4", [Fraction(3, 4)]),
        ("1/0", []),
        ("50%", [Fraction(50)]),
        (".5", [Fraction(1, 2)]),
        ("5.", [Fraction(5)]),
        ("1e3", [Fraction(1000)]),
        ("1,5", [Fraction(1), Fraction(5)]),
        ("12,34", [Fraction(12), Fraction(34)]),
        ("x2 v1.2.3", []),
        ("1e9999999", []),
        ("１２", [Fraction(12)]),
        ("-$4", [Fraction(-4)]),
        ("9" * 500, []),
    ],
)
def test_numbers_are_read_as_people_write_them(text, numbers):
    assert find_numbers(text) == numbers


@given(value=st.fractions(min_value=-(10**12), max_value=10**12, max_denominator=1000))
def test_a_fraction_is_read_back(value):
    assert parse_number(f"it is {value} apples") == value


@given(value=st.integers(-(10**15), 10**15))
def test_thousands_are_read_back(value):
    assert parse_number(f"{value:,}") == value


@pytest.mark.parametrize("name", ["boxed", "regex:(a|aa)+$", "json:a", "last_number", "letter", "marker:####"])
@pytest.mark.parametrize(
    "text",
    [
        "a" * 40 + "!",
        "\\boxed{" * 60_000,
        "\\boxed{" * 60_000 + "}" * 60_000,
        "{" * 100_000,
        '{"a":' * 20_000,
        "1," * 40_000,
        "answer " * 20_000 + "(" * 20_000,
        "####" * 20_000,
    ],
    ids=["as", "boxes", "boxes in boxes", "braces", "objects", "numbers", "answers", "markers"],
)
def test_every_rule_ends_on_every_text(name, text):
    found = extraction_named(name)(text)
    assert bool(found.value) != bool(found.reason)


def test_a_pattern_that_backtracks_without_end_leaves_the_text_unknown_and_is_given_up_in_the_end(monkeypatch):
    monkeypatch.setattr("wholestack.evals.patterns.MOST_SECONDS", 0.05)
    rule = extraction_named("regex:((?:a|aa)+)$")
    assert rule("a" * 60 + "!").reason == TOO_SLOW
    assert rule("aaa").value == "aaa"
    with pytest.raises(InputError, match="repetition"):
        [rule("a" * 60 + "!") for _ in range(MOST_SLOW)]
