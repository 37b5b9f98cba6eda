"""Whatever a host prints: a verdict, or a reason why there is none; never a crash, never slow."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.health.looking import NOW, RECORDED, healthy, is_told, never_crashes
from wholestack.health import catalog
from wholestack.health.examine import examine
from wholestack.remote.batch import Output

TEXTS = [(path, path.read_text()) for path in sorted(RECORDED.glob("*/*.*")) if path.suffix != ".md"]
PIECES = (
    "", "0", "-1", "nan", "1e400", "9" * 50, "9" * 5000, "N/A", "ERR!", "\x00", "\u0666", "|", ",", ":", "\n\n",
    " " * 50, "[[[", "{}", "null", "true",
)  # fmt: skip
MONOTONY = (
    " ",
    "\n",
    "\t",
    "a ",
    "1 ",
    "- ",
    "[",
    "{",
    "a:",
    "|",
    ",",
    "a\n",
    " \n",
    "0 /",
    "\n 1",
    "ab.c",
    "\n a",
    "=",
)


def checks_of(text):
    """Those of the catalogue that read a text which looks like this one."""
    return [check for check in catalog.CHECKS if any(probe.knows(text) for probe in check.probes)]


def one_a_reader(checks):
    """Checks that read the same probes take the same time."""
    return {tuple(probe.name for probe in check.probes): check for check in checks}.values()


def mutated(text, rng):
    """One to four cuts, repeats or replacements."""
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(text) + 1), rng.choice((0, 1, 3, 20, 200))
        piece = rng.choice((*PIECES, text[at : at + length] * 3))
        text = text[:at] + piece + text[at + length :]
    return text


@pytest.mark.parametrize(("path", "text"), TEXTS, ids=lambda each: getattr(each, "stem", ""))
def test_every_recorded_output_mutated_gives_a_verdict_or_a_reason(path, text):
    rng = random.Random(path.name)
    for check in checks_of(text):
        for _ in range(40):
            never_crashes(check, mutated(text, rng))


@pytest.mark.parametrize("check", catalog.chosen(), ids=lambda check: check.name)
def test_every_probe_of_every_check_mutated_on_an_otherwise_healthy_host_is_told(check):
    rng = random.Random(check.name)
    for probe in check.probes:
        given_text = healthy()[probe.name].text if probe.name in healthy() else "GPU 0: x\n"
        for _ in range(6):
            output = Output(name=probe.name, stdout=mutated(given_text, rng).encode(errors="replace"))
            is_told(check, examine({**healthy(), probe.name: output}, (check,), now=NOW))


@given(text=st.text(max_size=300))
def test_any_text_gives_a_verdict_or_a_reason(text):
    for check in one_a_reader(catalog.CHECKS):
        never_crashes(check, text)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("piece", MONOTONY)
def test_long_monotonous_texts_take_linear_time(piece):
    """In the middle of every recorded output, so that it is taken for what it begins like; quadratic time is hours."""
    for _, text in TEXTS:
        hostile = text[: len(text) // 2] + piece * (100_000 // len(piece)) + text[-40:]
        for check in one_a_reader(checks_of(text)):
            never_crashes(check, hostile)
