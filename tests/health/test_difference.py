"""What became of everything between two sweeps."""

import pytest

from tests.health import fleets
from tests.health.fleets import Answers, df, moment
from wholestack.health.difference import compare_sweeps, describe_difference
from wholestack.remote.batch import Output

FULL = {"df": Output(name="df", stdout=df(99))}
NEARLY = {"df": Output(name="df", stdout=df(92))}
HUNG = {"df": Output(name="df", exit_status=None, ending="hung")}


@pytest.fixture
def compared(tmp_path):
    def compare(before, after):
        hosts = sorted({"a", "b", *before, *after})
        fleets.run(tmp_path / "old", hosts, Answers(before))
        fleets.run(tmp_path / "new", hosts, Answers(after))
        return compare_sweeps(tmp_path / "old", tmp_path / "new")

    return compare


def subjects(findings):
    return [each.subject for each in findings]


def test_what_is_new_healed_and_still_so_is_told_apart(compared):
    found = compared({"a": FULL, "b": FULL}, {"b": FULL, "c": FULL})
    assert (subjects(found.new), subjects(found.healed), subjects(found.still)) == (["c"], ["a"], ["b"])
    assert found.worse
    assert not compared_again(found)


def compared_again(found):
    return found.unclear or found.changed


@pytest.mark.parametrize("after", ["unreachable", "host_key", "name", HUNG])
def test_a_host_or_probe_that_went_silent_has_not_healed(compared, after):
    found = compared({"a": FULL}, {"a": after})
    assert (subjects(found.healed), subjects(found.unclear)) == ([], ["a"])


def test_healing_alone_is_not_worse(compared):
    assert not compared({"a": FULL}, {}).worse


def test_another_boot_is_named(compared):
    found = compared({}, {"b": {"moment": Output(name="moment", stdout=moment(boot_id="other"))}})
    assert found.altered == ("b",)
    assert "b" in describe_difference(found)


def test_the_text_counts_and_shows_the_evidence_of_what_is_new(compared):
    text = describe_difference(compared({"a": FULL}, {"b": FULL}))
    assert text.startswith("1 new, 1 healed, 0 changed, 0 still so, 0 could not")
    assert "/dev/sda1 100 99" in text
    assert max(map(len, text.splitlines())) <= 80


def test_json_has_the_same(compared):
    document = compared({"a": FULL}, {"b": FULL}).document()
    assert {name: len(value) for name, value in document.items()} == {
        "new": 1, "healed": 1, "changed": 0, "still": 0, "unclear": 0, "altered": 0}  # fmt: skip
