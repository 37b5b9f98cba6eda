"""``wholestack health export``: the text, the file, the server as a process, the packaged files."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.health.export.fleet import parsed, states, value, write_history
from tests.health.history.looks import HOUR
from wholestack.cli.health_export import PORT
from wholestack.cli.main import main
from wholestack.health.export.files import packaged


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("time.time", lambda: 5.5 * HOUR)

    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["health", "export", *map(str, arguments)])
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return command


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "state" / "wholestack" / "health.sqlite"
    path.parent.mkdir(parents=True)
    write_history(path)
    return path


def test_without_options_it_prints_the_usual_history(run, history):
    code, out, _ = run()
    assert code == 0
    assert states(parsed(out.encode())) == {"a": "may_train", "b": "may_not", "c": "may_train"}
    assert run("--history", history)[1] == out


def test_a_file_is_written_for_others_to_read_and_the_summary_is_json(run, history, tmp_path):
    out = tmp_path / "wholestack.prom"
    code, said, _ = run("--out", out, "--json")
    summary = json.loads(said)
    assert code == 0
    assert summary["hosts"] == {"may_not": 1, "may_train": 2}
    assert summary["bytes"] == out.stat().st_size
    assert summary["sources"] == {"history": {"up": True, "stale": False, "problem": ""}}
    assert out.stat().st_mode & 0o777 == 0o644
    assert run("--out", out)[1] == ""
    assert states(parsed(out.read_bytes()))["b"] == "may_not"


def test_a_lost_source_replaces_the_old_values_in_the_file(run, history, tmp_path):
    out = tmp_path / "wholestack.prom"
    run("--out", out)
    history.unlink()
    code, said, err = run("--out", out)
    assert (code, said) == (3, "")
    assert err.startswith("wholestack: history: ")
    assert "no history yet" in err
    samples = parsed(out.read_bytes())
    assert states(samples) == {}
    assert value(samples, "source_up", source="history") == 0


def test_a_stale_source_is_exit_code_3(run, history):
    code, out, _ = run("--stale-after", "10m", "--json")
    assert code == 3
    assert json.loads(out)["hosts"] == {"stale": 3}
    assert json.loads(out)["sources"]["history"]["stale"] is True


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--stale-after", "soon"), "is no duration"),
        (("--out", "/nowhere/x.prom"), "/nowhere"),
        (("serve", "--port", "99999999"), "cannot listen"),
        (("serve", "--address", "192.0.2.1"), "cannot listen"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, history, arguments, says):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1


def test_the_packaged_files_are_printed_as_they_are(run):
    assert run("rules")[:2] == (0, packaged("alerts.yml"))
    assert run("rules", "--tests")[:2] == (0, packaged("alerts_test.yml"))
    assert run("dashboard")[:2] == (0, packaged("dashboard.json"))
    code, out, _ = run("metrics")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    listed = json.loads(run("metrics", "--json")[1])
    assert all(each["name"] in out for each in listed)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_the_server_answers_on_loopback_and_ends_when_told(history, tmp_path, ending):
    server = subprocess.Popen(
        [sys.executable, "-m", "wholestack", "health", "export", "serve", "--history", str(history), "--port", "0"],
        stderr=subprocess.PIPE, text=True, env=os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")},
    )  # fmt: skip
    try:
        url = server.stderr.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url, timeout=60) as answer:
            samples = parsed(answer.read())
        assert set(states(samples).values()) == {"stale"}  # of 1970
        assert value(samples, "source_up", source="history") == 1
        server.send_signal(ending)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.wait()


def test_the_commands_of_the_page_do_what_it_says(run, history, tmp_path):
    page = Path(__file__).parents[2] / "docs" / "health-metrics.md"
    block = page.read_text().split("```console\n")[1].split("```")[0]
    lines = [line.partition(" > ")[0].split() for line in block.splitlines()]
    assert [line[:3] for line in lines] == [["wholestack", "health", "export"]] * 5
    for _, _, _, *arguments in lines[:-1]:
        code, out, _ = run(*[tmp_path / each if each.endswith(".prom") else each for each in arguments])
        assert code == 0
        assert out or (tmp_path / "wholestack.prom").exists()
    assert lines[-1][3:] == ["serve", "--port", str(PORT)]
