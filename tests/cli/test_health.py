"""``wholestack health`` as a user calls it: text of 80 columns, JSON as documented, exit codes for scripts."""

import io
import json
import re
import subprocess
import sys

import pytest

from tests.health import fleets
from tests.health.fleets import Answers, df
from wholestack.cli.main import main
from wholestack.cli.sweep_progress import SweepWatcher
from wholestack.health.parts import HOST
from wholestack.health.result import HostResult, SeenSymptom
from wholestack.remote.batch import Output

FULL = {"df": Output(name="df", stdout=df(99))}
HUNG = {"df": Output(name="df", exit_status=None, ending="hung")}


@pytest.fixture
def call(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["health", *map(str, arguments)])
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


@pytest.fixture
def saved(tmp_path):
    def save(content):
        path = tmp_path / "saved.txt"
        path.write_bytes(content)
        return path

    return save


@pytest.mark.parametrize(
    ("content", "code", "status"), [(df(9), 0, "ok"), (df(99), 1, "fail"), (df(92), 1, "warn"), (b"", 3, "unknown")]
)
def test_judge_exits_with_what_it_found(call, saved, content, code, status):
    path = saved(content)
    assert call("judge", "filesystem.bytes", path)[0] == code
    found, out, _ = call("judge", "filesystem.bytes", path, "--json")
    document = json.loads(out)
    assert (found, document["status"], set(document)) == (code, status, {"status", "findings", "skipped"})
    assert all(each["status"] != "ok" for each in document["findings"])
    _, out, _ = call("judge", "filesystem.bytes", path, "--json", "--all")
    assert document["findings"] or status == "ok"
    assert json.loads(out)["findings"]


def test_judge_reads_standard_input(call, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(df(99))))
    code, out, _ = call("judge", "filesystem.bytes", "-")
    assert code == 1
    assert "file system full" in out
    assert max(map(len, out.splitlines())) <= 80


def test_judge_takes_an_expectation(call, saved, tmp_path):
    profile = tmp_path / "p.toml"
    profile.write_text('[kinds.x.limits]\n"filesystem.full_share" = 1.0\n')
    assert (
        json.loads(call("judge", "filesystem.bytes", saved(df(99)), "--expect", profile, "--json")[1])["status"]
        == "warn"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["judge", "filesystem.byte", __file__], "did you mean filesystem.bytes"),
        (["judge", "filesystem.bytes", "/nowhere"], "/nowhere: cannot be read"),
        (["judge", "filesystem.bytes", "x", "--expect", "/nowhere"], "/nowhere: cannot be read"),
        (["check", "--only", "filesystm"], "no check 'filesystm'"),
        (["sweep"], "no host"),
        (["sweep", "--resume", "/nowhere"], "not a run directory"),
        (["sweep", "a", "--resume", "/nowhere"], "cannot be given with --resume"),
        (["sweep", "a", "--since", "/nowhere"], "not a run directory"),
        (["sweep", "a", "--profile", "/nowhere"], "/nowhere: cannot be read"),
        (["sweep", "a", "--concurrency", "0"], "concurrency is 0"),
        (["explain", "nonsense"], "no finding, cause or check"),
        (["explain", "abcd", "--in", "/nowhere"], "not a run directory"),
        (["diff", "/nowhere", "/nowhere"], "not a run directory"),
        (["profile", "learn", "/nowhere"], "not a run directory"),
        (["simulate", "--hosts", "0"], "at least one host"),
        (["simulate", "--faults", "/nowhere"], "/nowhere: cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(call, arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.strip().splitlines()) == 1


def test_checks_lists_the_catalogue(call):
    code, out, _ = call("checks", "--json")
    rows = json.loads(out)
    assert code == 0
    assert len(rows) >= 45
    assert all({"name", "command", "kinds of part", "severity", "formats"} <= set(row) for row in rows)
    text = call("checks")[1]
    assert max(map(len, text.splitlines())) <= 80
    assert f"{len(rows)} checks" in text


def test_check_looks_at_this_very_machine(call):
    code, out, _ = call("check", "--only", "filesystem", "--json", "--all")
    document = json.loads(out)
    assert set(document) == {"status", "findings", "skipped"}
    assert {each["check"] for each in document["findings"]} >= {"filesystem.bytes", "filesystem.inodes"}
    assert code == {"ok": 0, "warn": 1, "fail": 1, "unknown": 3}[document["status"]]


@pytest.fixture
def two(tmp_path):
    old = fleets.run(tmp_path / "old", ["a", "b", "c"], Answers({"a": FULL}))
    new = fleets.run(tmp_path / "new", ["a", "b", "c"], Answers({"b": FULL, "c": HUNG}))
    return old, new


def test_diff_explain_and_learn_read_sweeps(call, two, tmp_path):
    old, new = two
    code, out, _ = call("diff", old.folder, new.folder, "--json")
    document = json.loads(out)
    assert code == 1
    assert [each["subject"] for each in document["new"]] == ["b", "c"]
    assert [each["subject"] for each in document["healed"]] == ["a"]
    assert call("diff", new.folder, new.folder)[0] == 0
    finding = document["new"][0]["id"]
    code, out, _ = call("explain", finding[:6], "--in", new.folder)
    assert code == 0
    assert "file system full, on b" in out
    assert json.loads(call("explain", finding, "--in", new.folder, "--json")[1])["finding"]["id"] == finding
    profile = tmp_path / "p.toml"
    code, out, err = call("profile", "learn", old.folder, "--hosts", "b", "c", "--out", profile)
    assert (code, out) == (0, "")
    assert "learnt from 2 hosts called good: b,c" in profile.read_text()
    assert str(profile) in err
    code, out, _ = call("profile", "learn", old.folder, "--hosts", "b", "c", "--json")
    assert json.loads(out)["kinds"]["default"]["checks"] == ["filesystem.bytes", "filesystem.inodes"]
    assert json.loads(out)["out"] is None


def test_ready_settle_and_why_read_a_sweep(two, capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([*map(str, arguments)])
        return int(ended.value.code or 0), capsys.readouterr().out

    folder = two[1].folder
    code, out = run("ready", folder)
    assert code == 1
    assert "3 of 3 claims are not held" in out  # the clock of these hosts stands in 1970: what held has lapsed
    assert run("settle", folder)[0] == 1
    code, out = run("why", folder, "b")
    assert code == 1
    assert "file system full" in out


def test_simulate_counts_what_is_found(call, tmp_path):
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\nhost = "node0001"\nkind = "file_system_full"\n')
    code, out, _ = call("simulate", "--hosts", 3, "--seed", 1, "--json", "--faults", faults)
    document = json.loads(out)
    assert set(document) == {
        "hosts", "injected", "found", "right_part", "right_owner", "false_alarms", "host_checks", "unknown", "seconds",
        "peak_bytes", "faults"}  # fmt: skip
    (fault,) = document["faults"]
    assert (fault["host"], fault["fault"], fault["found_by"]) == ("node0001", "file_system_full", "filesystem.bytes")
    assert fault["right_part"]
    assert fault["right_owner"]
    assert (document["hosts"], document["injected"], document["found"], document["right_part"]) == (3, 1, 1, 1)
    assert code == (1 if document["false_alarms"] else 0)


def test_where_there_is_no_terminal_progress_is_plain_lines():
    stream = io.StringIO()
    with SweepWatcher(2, stream) as watcher:
        symptom = SeenSymptom(check="x", cause="filesystem.full", part=0, evidence=())
        watcher._last_plain -= 100
        watcher(HostResult(host="a", kind="k", at=1.0, seconds=1.0, attempts=1, parts=(HOST,), symptoms=(symptom,)))
    assert "1 of 2 hosts" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_on_a_terminal_the_table_names_what_was_found_in_80_columns(monkeypatch):
    from rich.console import Console

    stream = io.StringIO()
    watcher = SweepWatcher(40, stream)
    symptom = SeenSymptom(check="x", cause="filesystem.full", part=0, evidence=())
    for number in range(3):
        watcher(
            HostResult(
                host=f"gpu{number}", kind="k", at=1.0, seconds=1.0, attempts=1, parts=(HOST,), symptoms=(symptom,)
            )
        )
    Console(file=stream, width=80, force_terminal=True, color_system=None).print(watcher._picture())
    text = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert "3 of 40 hosts" in text
    assert re.search(r"FAIL\s+3 file system full \(gpu0", text)
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.heavy
def test_a_sweep_over_real_ssh_from_a_served_fleet_to_a_verdict(tmp_path):
    """The whole way: simulated hosts behind an SSH server, the command, its folder, and an interrupted one resumed."""
    served = tmp_path / "served"
    command = [sys.executable, "-m", "wholestack", "health"]
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\nhost = "node0001"\nkind = "file_system_full"\n')
    server = subprocess.Popen(
        [*command, "simulate", "--serve", "--hosts", "3", "--port", "0", "--out", served, "--faults", faults],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stderr is not None
        assert "3 hosts on port" in server.stderr.readline()
        out = tmp_path / "sweep"
        asked = [served / "hosts.toml", "--known-hosts", served / "known_hosts", "--only", "filesystem"]
        done = subprocess.run(
            [*command, "sweep", *asked, "--out", out, "--json"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1, done.stderr
        hosts = json.loads(done.stdout)["hosts"]
        assert {name: host["status"] for name, host in hosts.items()} == {
            "node0000": "ok", "node0001": "fail", "node0002": "ok"}  # fmt: skip
        (out / "summary.json").unlink()
        results = out / "results.jsonl"
        results.write_bytes(results.read_bytes()[:-5])
        again = subprocess.run(
            [*command, "sweep", "--resume", out, "--known-hosts", served / "known_hosts", "--json"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert {name: host["status"] for name, host in json.loads(again.stdout)["hosts"].items()} == {
            name: host["status"] for name, host in hosts.items()}  # fmt: skip
    finally:
        server.terminate()
        server.communicate(timeout=60)


def test_help_names_every_verb_and_imports_nothing_heavy():
    code = (
        "import sys\nfrom wholestack.cli.main import main\n"
        "try: main(['health', '--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('numpy', 'scipy', 'asyncssh', 'torch') if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"
    for verb in ("check", "sweep", "judge", "checks", "explain", "diff", "profile", "simulate"):
        assert re.search(rf"│ {verb} ", done.stdout)
