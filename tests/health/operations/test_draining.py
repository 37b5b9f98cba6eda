"""Draining: decided first, shown, done on request; people outrank it; a kill loses nothing."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.health.history.looks import HOUR, host, sight, sweep
from wholestack.cli.main import main
from wholestack.errors import HistoryError, InputError
from wholestack.health.history.account import find_machine
from wholestack.health.history.silences import silence
from wholestack.health.history.store import History
from wholestack.health.operations import draining
from wholestack.health.operations.cluster import Node
from wholestack.health.operations.deeds import Ledger, acting_alone
from wholestack.health.operations.draining import host_stories, plan_drain, plan_undrain, told_by_id, wanted_of
from wholestack.health.operations.floor import floor_from, parse_floor
from wholestack.health.operations.kubernetes import Kubernetes
from wholestack.health.operations.rules import read_rule
from wholestack.health.operations.simulated import MemoryCluster
from wholestack.health.operations.story import next_step

NOW = 10 * HOUR
NAMES = ("a", "b", "c", "d")


@pytest.fixture
def history(tmp_path):
    """Four hosts: a and b fail, c warns, d is well."""
    with History(tmp_path / "h.sqlite", write=True) as opened:
        sights = {"a": "fail", "b": "fail", "c": "warn"}
        hosts = [host(name, sights=[sight(status=sights[name], host=name)] if name in sights else ()) for name in NAMES]
        opened.add(sweep(1, *hosts))
        yield opened


def acted(history, cluster, hosts, *, floor="0", now=NOW, finding=""):
    wanted = wanted_of(history, hosts, now=now, finding=finding)
    decisions = plan_drain(wanted, cluster.nodes(), cluster, floor=parse_floor(floor))
    told = {each.story.id: each.story for each in wanted if each.story}
    ledger = Ledger(history=history, by="ann", clock=lambda: now)
    return [each.outcome for each in draining.drain(decisions, told, cluster, ledger)]


def given_back(history, cluster, hosts, *, now=NOW):
    decisions = plan_undrain(history, hosts, cluster.nodes(), cluster, now=now)
    ledger = Ledger(history=history, by="ann", clock=lambda: now)
    return draining.undrain(decisions, told_by_id(history, hosts, now=now), cluster, ledger)


def kinds(history):
    return [each.kind for each in history.events() if each.kind != "first_seen"]


def test_what_fails_is_drained_once_with_who_and_why(history):
    cluster = MemoryCluster(NAMES)
    assert acted(history, cluster, NAMES) == ["done", "done", "refused", "refused"]
    assert cluster.by_name["a"].reason.startswith("wholestack: broken (")
    assert acted(history, cluster, ["a"]) == ["is_so"]
    assert kinds(history) == ["drain_begun", "drain_ended"] * 2
    event = history.events()[-1]
    assert (event.by, event.why, event.at) == ("ann", "broken", NOW)


def test_a_warning_is_drained_for_if_it_is_named(history):
    (span,) = [each for each in history.findings() if each.status == "warn"]
    assert acted(history, MemoryCluster(NAMES), ["c"], finding=span.id[:8]) == ["done"]
    with pytest.raises(InputError, match="no finding"):
        acted(history, MemoryCluster(NAMES), ["d"], finding="f" * 8)


@pytest.mark.parametrize(
    ("floor", "outcomes"),
    [
        ("2", ["done", "done"]),
        ("3", ["done", "refused"]),
        ("51%", ["done", "refused"]),
        ("100%", ["refused", "refused"]),
    ],
)
def test_never_below_the_floor(history, floor, outcomes):
    assert acted(history, MemoryCluster(NAMES), ["a", "b"], floor=floor) == outcomes


def test_hosts_that_are_down_count_against_the_floor(history):
    cluster = MemoryCluster(NAMES)
    cluster.by_name["d"] = replace(cluster.by_name["d"], is_usable=False)
    assert acted(history, cluster, ["a", "b"], floor="2") == ["done", "refused"]
    cluster.by_name["b"] = replace(cluster.by_name["b"], is_usable=False)
    assert acted(history, cluster, ["b"], floor="2") == ["done"]  # takes nobody away


def test_a_person_s_drain_return_and_silence_are_left_alone(history):
    cluster = MemoryCluster(NAMES)
    theirs = Node(name="a", is_usable=False, is_drained=True, reason="ann: new disk", by="ann")
    cluster.by_name["a"] = theirs
    assert acted(history, cluster, ["a"]) == ["left"]
    assert [each.outcome for each in given_back(history, cluster, ["a"])] == ["left"]
    assert cluster.by_name["a"] == theirs
    assert acted(history, cluster, ["b"]) == ["done"]
    ours = cluster.by_name["b"]
    cluster.by_name["b"] = replace(ours, reason=ours.reason + " ann: keep")
    history.add(sweep(5, *[host(name) for name in NAMES]))
    assert [each.outcome for each in given_back(history, cluster, ["b"])] == ["left"]


def test_what_a_person_returned_to_work_stays_there_while_the_fault_lasts(history):
    cluster = MemoryCluster(NAMES)
    assert acted(history, cluster, ["a"]) == ["done"]
    cluster.by_name["a"] = MemoryCluster("a").by_name["a"]
    assert acted(history, cluster, ["a"]) == ["left"]
    assert acted(history, cluster, ["a"]) == ["left"]
    assert kinds(history) == ["drain_begun", "drain_ended", "undrained_by_person"]


def test_what_a_person_returned_to_work_is_not_to_be_given_back_again_and_again(history):
    """Found by hand: undrain said "is at work", and the story said "next: undrain" for ever."""
    cluster = MemoryCluster(NAMES)
    assert acted(history, cluster, ["a"]) == ["done"]
    cluster.by_name["a"] = MemoryCluster("a").by_name["a"]
    history.add(sweep(5, *[host(name) for name in NAMES]))
    machine = find_machine(history, "a").id
    (before,) = host_stories(history, machine, now=NOW)
    assert next_step(before, fixable=False).action == "undrain"
    assert [each.outcome for each in given_back(history, cluster, ["a"])] == ["is_so"]
    (after,) = host_stories(history, machine, now=NOW)
    assert next_step(after, fixable=False).action == "nothing"
    assert kinds(history) == ["drain_begun", "drain_ended", "undrained_by_person"]
    assert [each.outcome for each in given_back(history, cluster, ["a"])] == ["is_so"]
    assert kinds(history) == ["drain_begun", "drain_ended", "undrained_by_person"]


def test_a_silence_is_a_veto_until_it_ends(history):
    machine = history.machines()[0].id
    history.silence(silence(host=machine, reason="mine", by="bob", since=HOUR, until=20 * HOUR))
    cluster = MemoryCluster(NAMES)
    assert acted(history, cluster, ["a"]) == ["left"]
    assert acted(history, cluster, ["a"], now=20 * HOUR) == ["done"]


def test_a_host_is_given_back_when_a_sweep_no_longer_sees_it_and_not_before(history):
    cluster = MemoryCluster(NAMES)
    acted(history, cluster, ["a", "b"])
    assert [each.outcome for each in given_back(history, cluster, ["a"])] == ["refused"]
    history.add(sweep(5, host("a"), host("b", sights=[sight(host="b")]), host("c"), host("d")))
    first, second = given_back(history, cluster, ["a", "b"], now=11 * HOUR)
    assert (first.outcome, second.outcome) == ("done", "refused")
    assert "not proved" in second.why
    assert cluster.by_name["a"].is_usable
    assert [each.outcome for each in given_back(history, cluster, ["a"])] == ["is_so"]
    assert kinds(history)[-2:] == ["undrain_begun", "undrain_ended"]


def test_a_host_is_not_given_back_while_something_else_fails(history):
    cluster = MemoryCluster(NAMES)
    acted(history, cluster, ["a"])
    history.add(sweep(5, host("a", sights=[sight(part="gpu 0000:02:00", cause="other")]), *map(host, "bcd")))
    (decision,) = given_back(history, cluster, ["a"])
    assert (decision.outcome, decision.why) == ("refused", "something else fails: other")


def test_a_rule_does_not_drain_a_host_with_a_job(history):
    cluster = MemoryCluster(NAMES)
    cluster.by_name["a"] = replace(cluster.by_name["a"], jobs=("job 7 of ann",))
    (wanted,) = wanted_of(history, ["a"], now=NOW)
    decide = [plan_drain([each], cluster.nodes(), cluster, floor=parse_floor("0"))[0].outcome
              for each in (wanted, replace(wanted, told_by_name=False))]  # fmt: skip
    assert decide == ["will", "refused"]


def test_a_floor_comes_from_the_option_or_the_file_of_hosts_or_nothing_happens(tmp_path):
    hosts = tmp_path / "hosts.toml"
    hosts.write_text('[kinds.x]\nhosts = ["a"]\n[drain]\nfloor = "90%"\n')
    assert floor_from(None, hosts).of(511) == 460
    assert floor_from("7", hosts).of(511) == 7
    assert parse_floor("10%").of(30) == 3
    for text in ("", "-1", "101%", "1.5", "many"):
        with pytest.raises(InputError):
            parse_floor(text)
    with pytest.raises(InputError, match="no floor"):
        floor_from(None, None)
    from wholestack.remote.inventory import read_inventory

    assert [each.name for each in read_inventory(hosts)] == ["a"]


def test_one_process_at_a_time_acts(tmp_path):
    with (
        acting_alone(tmp_path / "h"),
        pytest.raises(HistoryError, match="another process"),
        acting_alone(tmp_path / "h"),
    ):
        pass
    with acting_alone(tmp_path / "h"):
        pass


SCONTROL = """#!/bin/sh
# A Slurm of one node whose state is a file. Kills the command that called it where it is told to.
if [ "$1" = show ]; then echo "NodeName=a State=$(cat state) x=y$(cat reason 2>/dev/null)"; exit 0; fi
[ "$(cat kill 2>/dev/null)" = before ] && rm kill && kill -9 $PPID && exit 1
case "$3" in
  State=DRAIN) echo IDLE+DRAIN > state; echo " $4 [root@2026-01-01T00:00:00]" > reason;;
  State=RESUME) echo IDLE > state; rm reason;;
esac
echo "$3" >> done
[ "$(cat kill 2>/dev/null)" = after ] && rm kill && kill -9 $PPID
exit 0
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_between_written_down_and_done_it_goes_on_where_it_was(tmp_path, when):
    with History(tmp_path / "h.sqlite", write=True) as opened:
        opened.add(sweep(1, host("a", sights=[sight()])))
    (tmp_path / "state").write_text("IDLE\n")
    for name, text in (("scontrol", SCONTROL), ("squeue", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def run(*words):
        command = [sys.executable, "-m", "wholestack", "health", *words, "--history", "h.sqlite", "--apply", "--json"]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    def events():
        with History(tmp_path / "h.sqlite") as opened:
            return kinds(opened)

    (tmp_path / "kill").write_text(when)
    assert run("drain", "a", "--floor", "0").returncode == -signal.SIGKILL
    assert events() == ["drain_begun"]
    again = run("drain", "a", "--floor", "0")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)[0]["outcome"] == ("done" if when == "before" else "is_so")
    assert events()[-1] == "drain_ended"
    assert (tmp_path / "done").read_text().count("State=DRAIN") == 1
    with History(tmp_path / "h.sqlite", write=True) as opened:
        opened.add(sweep(2, host("a")))
    (tmp_path / "kill").write_text(when)
    assert run("undrain", "a").returncode == -signal.SIGKILL
    assert events()[-1] == "undrain_begun"
    assert run("undrain", "a").returncode == 0
    assert events()[-1] == "undrain_ended"
    assert (tmp_path / "state").read_text() == "IDLE\n"


def test_the_command_shows_and_does_nothing_without_apply(history, tmp_path, monkeypatch, capsys):
    cluster = MemoryCluster(NAMES)
    monkeypatch.setattr("wholestack.cli.health_operations.Scheduler.open", lambda _: cluster)
    path = str(history.path)

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["health", *words, "--history", path])
        return ended.value.code, capsys.readouterr()

    code, shown = run("drain", "a", "--floor", "50%")
    assert (code, cluster.by_name["a"].is_drained) == (0, False)
    assert "would" in shown.out
    assert "--apply does it" in shown.out
    assert kinds(history) == []
    code, shown = run("drain", "a", "--floor", "50%", "--apply", "--json")
    assert (code, json.loads(shown.out)[0]["outcome"]) == (0, "done")
    code, shown = run("drain", "d", "--floor", "50%")
    assert code == 1
    code, shown = run("undrain", "a")
    assert (code, "not proved" in shown.out) == (1, True)
    code, shown = run("stories", "a")
    assert (code, "drain ended" in shown.out, "next" in shown.out) == (1, True, True)
    assert run("drain", "a")[0] == 2
    assert run("drain", "--floor", "1")[0] == 2
    assert run("drain", "nobody", "--floor", "1")[0] == 2


def test_a_rule_a_floor_and_a_token_are_read_no_further_than_they_go():
    """Found by hand: each of them read a device until the machine's memory was gone."""
    endless = Path("/dev/zero")
    with pytest.raises(InputError, match="is larger than"):
        floor_from(None, endless)
    with pytest.raises(InputError, match="is larger than"):
        read_rule(endless)
    with pytest.raises(InputError, match="is no bearer token"):
        Kubernetes("http://127.0.0.1:1", token=endless).nodes()
