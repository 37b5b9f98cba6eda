"""A regular expression reads as in Python, and ends in bounded time and memory, in whatever thread it is matched."""

import re
import threading
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.evals import patterns
from wholestack.evals.patterns import LARGEST_PATTERN, LONGEST_PATTERN, MOST_SLOW, Bounded, TooSlowError, compiled

ENDLESS = "(a|aa)+$"
TEXT = "a" * 60 + "!"


def in_main_thread(act):
    act()


def in_worker_thread(act):
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


THREADS = pytest.mark.parametrize("run", [in_main_thread, in_worker_thread])


@THREADS
def test_a_match_without_end_is_broken_off_after_its_time_in_any_thread(run, monkeypatch):
    monkeypatch.setattr(patterns, "MOST_SECONDS", 0.05)
    came = []

    def act():
        before = time.process_time()
        try:
            Bounded("x")(lambda left: compiled(ENDLESS).search(TEXT, timeout=left()))
        except TooSlowError as error:
            came.append((error, time.process_time() - before))

    run(act)
    ((error, seconds),) = came
    assert isinstance(error, TooSlowError)
    assert seconds < 5  # it would be longer than anybody lives


@THREADS
def test_a_pattern_that_is_always_too_slow_is_given_up_in_one_line(run, monkeypatch):
    monkeypatch.setattr(patterns, "MOST_SECONDS", 0.01)
    came = []

    def act():
        bounded = Bounded("regex:slow")
        for _ in range(MOST_SLOW):
            try:
                bounded(lambda left: compiled(ENDLESS).search(TEXT, timeout=left()))
            except (TooSlowError, InputError) as error:
                came.append(error)

    run(act)
    assert [type(each) for each in came] == [TooSlowError] * (MOST_SLOW - 1) + [InputError]
    assert str(came[-1]).startswith("regex:slow: takes more than 0.01 s on each of 20 texts")
    assert "\n" not in str(came[-1])


def test_many_matches_of_one_text_share_its_time(monkeypatch):
    monkeypatch.setattr(patterns, "MOST_SECONDS", 0.2)
    costly = compiled("(a|aa)+$")
    done = []

    def many(left):
        while len(done) < 100_000:
            done.append(costly.search("a" * 18 + "!", timeout=left()))

    with pytest.raises(TooSlowError):
        Bounded("x")(many)
    assert 1 < len(done) < 100_000


READ_ALIKE = [
    r"x = (\d+)", r"^(.*)-seed", r"(?i)answer:\s*(\w+)", r"20\d\d", r"\$?(-?\d+(?:\.\d+)?)", "[^a-z]+", "a*?b|c$",
    r"\bis\b", "(?P<n>a)(?P=n)", "(?=a)a", "(?<!x)y", "(?x) a  # a comment\n b", "(?s).+", "(?m)^a$", r"\W*",
    "a{2,3}", "x{,2}", "a{b}", "é|ß",
]  # fmt: skip


@given(text=st.text(alphabet="abxyzX 0123-=.$:\néßA_", max_size=30))
@pytest.mark.parametrize("pattern", READ_ALIKE)
def test_an_ordinary_pattern_finds_what_pythons_own_finds(pattern, text):
    ours, python = compiled(pattern), re.compile(pattern)
    assert ours.groups == python.groups
    assert [(each.span(), each.groups()) for each in ours.finditer(text)] == [
        (each.span(), each.groups()) for each in python.finditer(text)
    ]
    assert (ours.fullmatch(text) is None) == (python.fullmatch(text) is None)


@pytest.mark.parametrize(
    "pattern", ["(", "[", "*", "a**", "(?P<1>a)", "a{99999999999}", "(" * 3000 + ")" * 3000, r"\L<x>"]
)
def test_what_is_no_pattern_is_one_line(pattern):
    with pytest.raises(InputError, match=r"is (no|too large a) regular expression") as caught:
        compiled(pattern)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{1000}){1000}){1000}",
        "(a{1000}){00000000001000}",
        "a{100000}",
        "(?:[ab]{1000,}){1000,}",
        "((b{1000,1001}){1000,1001}){1000}",
        "(?x)(a{1000}) {1000}",
        "(?x)(a{1000}) # more\n{1000}",
        "(?x)(a{#,}\n10#\n00}){ 1 0 0 0 }",
        "(?:(?:a{1000}){e<=1}{1000})",
        "(a{1000})(?#again){1000}",
        "a" * (LONGEST_PATTERN + 1),
    ],
)
def test_a_pattern_that_would_take_much_memory_is_refused_before_it_does(pattern):
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="too large a regular expression"):
            compiled(pattern)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "pattern", [r"(\d{1,3}\.){3}\d{1,3}", r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", "(x{0,40000}){2}"]
)
def test_a_pattern_with_ordinary_counts_is_not(pattern):
    assert compiled(pattern)


def test_no_written_out_pattern_is_larger_than_is_said():
    assert compiled("a" * LONGEST_PATTERN)
    assert compiled("a{" + str(LARGEST_PATTERN - 100) + "}").search("a" * LARGEST_PATTERN)
