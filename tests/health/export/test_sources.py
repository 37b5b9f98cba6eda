"""Sources: a real simulated sweep and a history; what changes is read again, what is lost is not remembered."""

import asyncio
import os
import shutil

import pytest

from tests.health.export.fleet import exporter, parsed, states, value, write_history
from tests.health.history.looks import HOUR, host, sweep
from wholestack.health.export.told import newest_sweep
from wholestack.health.history.store import History
from wholestack.health.simulation import simulate
from wholestack.health.verdicts import read_sweep


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulated")
    asyncio.run(simulate(12, seed=5, folder=folder))
    return folder


@pytest.fixture
def sweeps(simulated, tmp_path):
    return shutil.copytree(simulated, tmp_path / "sweeps")


def test_the_newest_of_a_folder_of_sweeps_says_what_its_verdicts_say(sweeps):
    found = read_sweep(sweeps / "after")
    samples = parsed(exporter(sweeps=sweeps, now=found.summary.at + 60).text())
    named = {None: "unknown", True: "may_train", False: "may_not"}
    assert states(samples) == {each.host: named[each.may_train] for each in found.verdicts}
    assert value(samples, "sweep_hosts_asked") == 12
    silent = [each for each in found.verdicts if "did not answer" in " ".join(f.cause for f in each.findings)]
    assert silent
    assert value(samples, "sweep_hosts_answered") == 12 - len(silent)
    assert value(samples, "sweep_duration_seconds") == found.summary.seconds
    assert value(samples, "sweep_end_timestamp_seconds", source="sweep") == found.summary.at
    statuses = [f.status for each in found.verdicts for f in each.findings]
    for status in ("fail", "warn", "unknown"):
        counted = sum(
            count for (name, labels), count in samples.items()
            if name == "findings" and dict(labels)["status"] == status
        )  # fmt: skip
        assert counted == statuses.count(status)
    assert newest_sweep(sweeps) == sweeps / "after"


def test_a_sweep_of_yesterday_is_stale(sweeps):
    at = read_sweep(sweeps / "after").summary.at
    samples = parsed(exporter(sweeps=sweeps / "after", now=at + 24 * HOUR + 1).text())
    assert set(states(samples).values()) == {"stale"}
    assert value(samples, "source_stale", source="sweep") == 1
    assert value(samples, "sweep_hosts_answered") is None
    assert value(samples, "sweep_end_timestamp_seconds", source="sweep") == at


def test_a_sweep_that_is_damaged_while_it_is_exported_is_no_longer_believed(sweeps):
    said = []
    one = exporter(sweeps=sweeps, now=read_sweep(sweeps / "after").summary.at, log=said.append)
    assert len(states(parsed(one.text()))) == 12
    findings = sweeps / "after" / "findings.jsonl"
    whole = findings.read_bytes()
    findings.write_bytes(whole.splitlines(keepends=True)[-1])
    for _ in range(3):
        samples = parsed(one.text())
        assert value(samples, "source_up", source="sweep") == 0
        assert [name for name, _ in samples] == ["export_timestamp_seconds", "source_up"]
    assert len(said) == 1
    assert "is damaged" in said[0]
    assert one.problems["sweep"] in said[0]
    findings.write_bytes(whole)
    assert len(states(parsed(one.text()))) == 12
    assert said[1] == "sweep: can be read again"


def test_an_older_sweep_is_not_taken_for_the_newest_that_cannot_be_read(sweeps):
    (sweeps / "after" / "plan.json").unlink()
    os.utime(sweeps / "after" / "summary.json")
    samples = parsed(exporter(sweeps=sweeps, now=0.0).text())
    assert value(samples, "source_up", source="sweep") == 0
    assert states(samples) == {}


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_no_sweep_at_all_is_a_source_that_is_down(tmp_path, name):
    said = []
    samples = parsed(exporter(sweeps=tmp_path / name, log=said.append).text())
    assert value(samples, "source_up", source="sweep") == 0
    assert "no sweep that has ended" in said[0]


def test_a_history_is_read_again_when_a_sweep_is_added(tmp_path):
    path, now = tmp_path / "h.sqlite", [5 * HOUR]
    write_history(path)
    one = exporter(history=path, now=lambda: now[0])
    assert states(parsed(one.text()))["b"] == "may_not"
    with History(path, write=True) as opened:
        opened.add(sweep(6, *(host(name) for name in "abc")))
        now[0] = 6 * HOUR
        assert states(parsed(one.text()))["b"] == "may_train"  # not yet moved from the log into the file


def test_a_history_of_sweeps_in_part_says_of_no_host_that_it_may_train(tmp_path):
    """Nor does one whose look in full is too old, though nothing is written anew."""
    path, now = tmp_path / "h.sqlite", [1.5 * HOUR]
    with History(path, write=True) as opened:
        opened.add(sweep(1, host("a"), in_full=False))
    one = exporter(history=path, now=lambda: now[0])
    assert states(parsed(one.text())) == {"a": "unknown"}
    with History(path, write=True) as opened:
        for at in range(2, 7):
            opened.add(sweep(at, host("a"), in_full=at in (2, 3)))
    now[0] = 6.5 * HOUR
    assert states(parsed(one.text())) == {"a": "may_train"}
    now[0] = 7.5 * HOUR
    assert states(parsed(one.text())) == {"a": "unknown"}


def test_a_retired_host_is_exported_no_more(tmp_path):
    path = tmp_path / "h.sqlite"
    with History(path, write=True) as opened:
        opened.add(sweep(1, host("a"), host("b")))
        opened.retire(opened.machines()[0], by="ada", why="sold", at=HOUR)
    assert states(parsed(exporter(history=path, now=1.5 * HOUR).text())) == {"b": "may_train"}


def test_a_history_that_is_lost_or_spoilt_takes_its_hosts_with_it(tmp_path):
    path, said = tmp_path / "h.sqlite", []
    write_history(path)
    one = exporter(history=path, log=said.append)
    assert len(states(parsed(one.text()))) == 3
    path.rename(tmp_path / "away")
    assert states(parsed(one.text())) == {}
    assert "no history yet" in said[0]
    path.write_bytes(b"no history at all, but long enough for a head")
    samples = parsed(one.text())
    assert value(samples, "source_up", source="history") == 0
    assert "is no history" in said[1]


def test_one_source_that_cannot_be_read_leaves_the_other(tmp_path):
    path = tmp_path / "h.sqlite"
    write_history(path)
    samples = parsed(exporter(history=path, sweeps=tmp_path / "nowhere").text())
    assert value(samples, "source_up", source="sweep") == 0
    assert value(samples, "source_up", source="history") == 1
    assert len(states(samples)) == 3
