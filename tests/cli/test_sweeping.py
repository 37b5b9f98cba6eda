"""What ``wholestack health sweep`` prints and exits with, over hosts in memory."""

import json
import re
from dataclasses import replace

import pytest

from tests.health import fleets
from tests.health.fleets import Answers, df
from wholestack.cli import sweeping
from wholestack.cli.main import main
from wholestack.cli.output import code_for
from wholestack.cli.sweeping import document
from wholestack.finding import finding
from wholestack.health import catalog
from wholestack.health.grouping import describe_sweep
from wholestack.remote.batch import Output
from wholestack.remote.simulated import SimulatedRemote
from wholestack.runs import RunReader

FULL = {"df": Output(name="df", stdout=df(99))}
HUNG = {"df": Output(name="df", exit_status=None, ending="hung")}
GONE = {name: Output(name=name, exit_status=127) for name in ("df", "df_inodes")}
NAMES = [f"gpu{n:03d}" for n in range(20)]


@pytest.fixture
def swept(tmp_path):
    told = {name: FULL for name in NAMES[:5]} | {"gpu009": HUNG, "gpu011": "auth"}
    return fleets.run(tmp_path / "s", NAMES, Answers(told))


@pytest.fixture
def sweep(monkeypatch, capsys, tmp_path):
    """Calls the command; the way to the hosts is in memory, all else is real."""

    def run(told, *arguments, hosts=("a",)):
        monkeypatch.setattr(sweeping, "over_ssh", lambda *_: SimulatedRemote(Answers(told)))
        with pytest.raises(SystemExit) as ended:
            main(["health", "sweep", *hosts, "--out", str(tmp_path / "s"), *arguments])
        return int(ended.value.code or 0), capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("told", "code", "status"), [({}, 0, "ok"), (FULL, 1, "fail"), (HUNG, 3, "unknown"), (GONE, 3, "unknown")]
)
def test_the_exit_code_says_what_the_json_says_also_where_nothing_applied(sweep, told, code, status):
    found, said = sweep({"a": told}, "--only", "filesystem", "--json")
    assert (found, json.loads(said.out)["status"]) == (code, status)


@pytest.mark.parametrize(
    ("status", "statuses", "code"),
    [
        ("ok", [], 0),
        ("unknown", [], 3),
        ("unknown", ["ok"], 3),
        ("unknown", ["unknown", "warn"], 1),
        ("warn", ["warn"], 1),
        ("fail", ["fail"], 1),
    ],
)
def test_unknown_never_exits_with_0(status, statuses, code):
    assert code_for(status, [finding("h", "c", each, evidence=()) for each in statuses]) == code


def test_json_has_by_host_what_judge_has(swept):
    swept = replace(swept, plan=replace(swept.plan, left_out=()))
    plain = document(swept)
    assert (plain["status"], plain["may_train"], plain["may_not"], plain["unknown"]) == ("fail", 13, 5, 2)
    assert list(plain["hosts"]) == NAMES
    for name, host in plain["hosts"].items():
        assert {"status", "findings", "skipped"} <= set(host)
        assert all(each["status"] != "ok" and each["subject"] == name for each in host["findings"])
    everything = document(swept, everything=True)["hosts"]["gpu010"]["findings"]
    assert [(each["check"], each["status"]) for each in everything] == [
        ("filesystem.bytes", "ok"), ("filesystem.inodes", "ok")]  # fmt: skip


def test_where_checks_were_left_out_neither_text_nor_json_says_who_may_train(swept):
    plain = document(swept)
    assert (plain["in_full"], plain["may_train"], plain["hosts"]["gpu010"]["may_train"]) == (False, None, None)
    text = describe_sweep(swept.verdicts, swept.summary, put=2, left_out=86)
    assert text.startswith("20 hosts: 13 passed what applied, 5 may not, 2 unknown")
    assert "\nchecks   2 of 88 put; nothing is said on who may train\n" in text
    assert "\npassed   filesystem.inodes on 19 hosts, filesystem.bytes on 13 hosts\n" in text


def test_the_command_says_how_many_checks_were_put(sweep):
    _, said = sweep({}, "--only", "filesystem")
    assert said.out.startswith("1 host: 1 passed what applied, 0 may not, 0 unknown; ")
    assert f"\nchecks   2 of {len(catalog.chosen())} put; " in said.out
    assert "\npassed   filesystem.bytes on 1 host, filesystem.inodes on 1 host\n" in said.out


def test_a_check_that_was_skipped_is_told_apart_from_one_that_passed_with_its_reason(sweep):
    no_df = {"df": Output(name="df", exit_status=127)}
    code, said = sweep({"a": no_df, "b": no_df}, "--only", "filesystem", hosts=("a", "b"))
    assert code == 0
    assert "\npassed   filesystem.inodes on 2 hosts\n" in said.out
    assert "\nskipped  filesystem.bytes on 2 hosts: not installed (df is not installed)\n" in said.out


def test_a_host_to_which_nothing_applied_is_unknown_with_the_reason_and_a_remedy_that_helps(sweep, tmp_path):
    code, said = sweep({"a": {"zpool": Output(name="zpool", exit_status=127)}}, "--only", "zpool.state")
    assert code == 3
    assert "\npassed   none\n" in said.out
    assert "\nUNKNOWN  none of the checks that were put applies: 1 host\n" in said.out
    assert "zpool is not installed" in said.out
    (shown,) = re.findall(r"- a  \[host\.part ([0-9a-f]{8})\]", said.out)
    (settling,) = RunReader(tmp_path / "s").findings()
    assert (settling.status, settling.cause) == ("unknown", "none of the checks that were put applies")
    assert settling.id.startswith(shown)
    assert "--only" in settling.remedy


def test_ready_is_no_go_after_a_sweep_of_few_checks(sweep, capsys, tmp_path):
    sweep({}, "--only", "filesystem")
    with pytest.raises(SystemExit) as ended:
        main(["ready", str(tmp_path / "s")])
    assert ended.value.code == 3
    assert "nothing is said on training" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("config", "marker", "says"), [("Port notanumber", "", "ssh configuration"), ("", "@bogus", "bogus")]
)
def test_a_wrong_file_of_the_users_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, config, marker, says):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(f"Host *\n  {config}\n")
    known = tmp_path / "known"
    known.write_text(f"{marker} 127.0.0.1 ssh-ed25519 AAAA\n" if marker else "")
    asked = ["127.0.0.1", "--only", "clock", "--known-hosts", str(known), "--out", str(tmp_path / "s")]
    with pytest.raises(SystemExit) as ended:
        main(["health", "sweep", *asked])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert says in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "given",
    [
        ["--only", "clock"], ["--skip", "clock"], ["--user", "u"], ["--port", "22"], ["--jump", "j"],
        ["--identity", "k"], ["--profile", "p.toml"], ["--since", "old"], ["--concurrency", "64"], ["--retries", "2"],
        ["--sudo"], ["--out", "x"], ["host"],
    ],
)  # fmt: skip
def test_a_resumed_sweep_keeps_what_it_was_asked_and_refuses_anything_else(swept, capsys, given):
    with pytest.raises(SystemExit) as ended:
        main(["health", "sweep", "--resume", str(swept.folder), *given])
    assert ended.value.code == 2
    assert (
        f"{given[0] if given[0].startswith('-') else 'hosts'} cannot be given with --resume" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--retries", "-1"], "retries is -1, must be at least 0"),
        (["--port", "0"], "port is 0, must be 1 to 65535"),
        (["--port", "70000"], "port is 70000"),
        (["--concurrency", "-3"], "concurrency is -3"),
    ],
)
def test_numbers_out_of_range_are_refused_before_anything_is_written(sweep, tmp_path, given, says):
    code, said = sweep({}, *given)
    assert code == 2
    assert says in said.err
    assert not (tmp_path / "s").exists()
