"""The command: probes this machine's cores for real, writes its run, learns, and says what it cannot do."""

import json
import os
import subprocess
import sys

import pytest

from wholestack.health.active.records import KIND
from wholestack.runs import RunReader

COMMAND = [sys.executable, "-m", "wholestack", "health", "probe"]
FEW = ["--devices", "cpu", "--memory", "1MB", "--rounds", "1", "--seconds", "60s"]


def run(*arguments):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300)


def test_a_probe_of_this_machine_is_written_learnt_and_compared(tmp_path):
    first = run(*FEW, "--even-if-busy", "--out", tmp_path / "one", "--json", "--all", "--seed", "3")
    document = json.loads(first.stdout)
    exact = [each for each in document["findings"] if each["check"] == "device.exact"]
    assert len(exact) == len(os.sched_getaffinity(0))
    assert {each["status"] for each in exact} == {"ok"}
    assert first.returncode == {"ok": 0, "unknown": 3}.get(document["status"], 1)
    reader = RunReader(tmp_path / "one")
    assert (reader.manifest.kind, reader.manifest.seed) == (KIND, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one"]
    again = run(*FEW, "--even-if-busy", "--out", tmp_path / "one")
    assert again.returncode == 2
    assert "is not empty" in again.stderr


def test_what_is_shown_fits_80_columns(tmp_path):
    shown = run(*FEW, "--even-if-busy", "--out", tmp_path / "one", "--all")
    assert all(len(line) <= 80 for line in shown.stdout.splitlines() if "results in" not in line)
    assert "device.exact" in shown.stdout


def test_learning_from_no_probe_and_a_foreign_reference_are_refused(tmp_path):
    assert "no probes to learn from" in run("learn", "--out", tmp_path / "pace.json").stderr
    foreign = tmp_path / "foreign.json"
    foreign.write_text('{"schema": "plan/1"}')
    refused = run(*FEW, "--reference", foreign, "--out", tmp_path / "one")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "schema is 'plan/1'" in refused.stderr
    assert not (tmp_path / "one").exists()
    assert "--rounds is 0" in run("--rounds", "0", "--out", tmp_path / "one").stderr


@pytest.mark.parametrize("arguments", [["probe", "--help"], ["probe", "learn", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys\nfrom wholestack.cli.main import main\n"
        f"try: main(['health', *{arguments}])\nexcept SystemExit: pass\n"
        "print([m for m in ('numpy', 'scipy', 'torch') if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"
