"""The text format: whatever a host calls itself, the text is one that Prometheus takes."""

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.health.export.fleet import parsed
from wholestack.health.export.exposition import MOST_CHARACTERS, Metric, clean, render

METRIC = Metric(name="x_seconds", help="A \\ help\nof two lines.", labels=("host", "cause"))
HOSTILE = [
    'a"} 1\nx_seconds{host="b',
    "back\\slash",
    "\x1b[2J",
    "\ud800",
    "\u202egnp",
    "n" * 5000,
    "",
    "ü",
    "a~12345678",
]


def test_the_text_of_a_metric():
    text = render({METRIC: {("a", 'say "no"'): 1.5, ("b\\", "x"): 2}})
    assert text == (
        b"# HELP x_seconds A \\\\ help\\nof two lines.\n# TYPE x_seconds gauge\n"
        b'x_seconds{host="a",cause="say \\"no\\""} 1.5\nx_seconds{host="b\\\\",cause="x"} 2\n'
    )


def test_a_metric_without_samples_is_not_there_and_one_without_labels_has_no_braces():
    other = Metric(name="y", help="h")
    assert render({METRIC: {}, other: {(): 1793578200.25}}) == b"# HELP y h\n# TYPE y gauge\ny 1793578200.25\n"


@settings(max_examples=300)
@given(st.lists(st.one_of(st.text(), st.sampled_from(HOSTILE)), unique=True, max_size=12))
def test_any_texts_stay_as_many_series_of_printable_labels(names):
    cleaned = [clean(name) for name in names]
    assert len(set(cleaned)) == len(names)
    assert all(len(each) <= MOST_CHARACTERS for each in cleaned)
    assert len(parsed(render({METRIC: {(each, "c"): 1.0 for each in cleaned}}))) == len(names)


def test_an_ordinary_name_is_left_as_it_is():
    assert [clean(name) for name in ("gpu001", "fe80::1", "a cause (of 3)", "ü")] == [
        "gpu001", "fe80::1", "a cause (of 3)", "ü",
    ]  # fmt: skip


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_promtool_takes_hostile_names():
    samples = {(clean(name), clean(name)): place for place, name in enumerate(HOSTILE)}
    run = subprocess.run(["promtool", "check", "metrics"], input=render({METRIC: samples}), capture_output=True,
                         timeout=60, check=False)  # fmt: skip
    assert (run.returncode, run.stderr) == (0, b"")
