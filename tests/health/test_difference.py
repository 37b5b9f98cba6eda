"""What became of everything between two sweeps."""

import pytest

from tests.health import fleets
from tests.health.fleets import Answers, df, moment
from wholestack.health import catalog
from wholestack.health.difference import Altered, altered_hosts, compare_sweeps, describe_difference
from wholestack.health.parts import Part
from wholestack.health.result import HostResult, SeenTrait
from wholestack.remote.batch import Output

FULL = {"df": Output(name="df", stdout=df(99))}
NEARLY = {"df": Output(name="df", stdout=df(92))}
GPUS = tuple(Part(kind="gpu", key=str(n)) for n in range(2))
GONE = {"df": Output(name="df", exit_status=127)}
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
    assert found.altered == (Altered(host="b", changes=("boot id changed",)),)
    assert "b: claim no longer valid: boot id changed" in describe_difference(found)


def test_what_is_another_is_named_with_both_values_and_what_is_silent_is_not_compared():
    def result(driver, boot_id="x"):
        traits = () if driver is None else (SeenTrait(name="gpu.driver", value=driver, cause="c", parts=(0, 1)),)
        plain = {"host": "a", "kind": "k", "at": 1.0, "seconds": 1.0, "attempts": 1}
        return {"a": HostResult(**plain, boot_id=boot_id, traits=traits, parts=GPUS)}

    (only,) = altered_hosts(result("550"), result("560", "y"))
    assert only.changes == ("boot id changed", "gpu.driver 550 -> 560")
    assert altered_hosts(result("550"), result(None, "")) == altered_hosts(result("550"), result("550")) == []


@pytest.mark.parametrize("after", [GONE, HUNG, "unreachable"])
def test_where_nobody_could_look_it_has_not_healed_and_the_exit_code_says_so(compared, after):
    found = compared({"a": FULL}, {"a": after})
    assert (subjects(found.healed), subjects(found.unclear)) == ([], ["a"])
    assert found.exit_code == (3 if after is GONE else 1)


def test_a_check_that_was_not_put_again_heals_nothing(tmp_path):
    fleets.run(tmp_path / "old", ["a", "b"], Answers({"a": FULL, "b": HUNG}))
    fleets.run(tmp_path / "new", ["a", "b"], checks=catalog.chosen(["filesystem.inodes"]))
    found = compare_sweeps(tmp_path / "old", tmp_path / "new")
    assert (subjects(found.healed), subjects(found.unclear), found.exit_code) == ([], ["a", "b"], 3)
    again = compare_sweeps(tmp_path / "old", tmp_path / "old")
    assert (again.exit_code, again.unclear) == (0, ())


def test_a_probe_that_answers_again_has_healed(compared):
    found = compared({"a": HUNG}, {})
    assert (subjects(found.healed), found.exit_code) == (["a"], 0)


def test_the_text_counts_and_shows_the_evidence_of_what_is_new(compared):
    text = describe_difference(compared({"a": FULL}, {"b": FULL}))
    assert text.startswith("1 new, 1 healed, 0 changed, 0 still so, 0 could not")
    assert "/dev/sda1 100 99" in text
    assert max(map(len, text.splitlines())) <= 80


def test_json_has_the_same(compared):
    document = compared({"a": FULL}, {"b": FULL}).document()
    assert {name: len(value) for name, value in document.items()} == {
        "new": 1, "healed": 1, "changed": 0, "still": 0, "unclear": 0, "altered": 0,
        "claims_no_longer_valid": 0}  # fmt: skip


def test_a_host_that_is_silent_for_another_reason_has_not_healed(compared):
    found = compared({"a": "unreachable"}, {"a": "host_key"})
    assert (subjects(found.healed), subjects(found.unclear), subjects(found.new)) == ([], ["a"], ["a"])
