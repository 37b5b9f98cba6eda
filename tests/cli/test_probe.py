"""The command: probes this machine's cores for real, writes its run, learns, and says what it cannot do."""

import json
import os
import subprocess
import sys
import time

import pytest

from wholestack.cli.main import main
from wholestack.health.active.records import DEVICES, KIND, DeviceOutcome, Round
from wholestack.health.active.speed import Pace
from wholestack.health.parts import Part
from wholestack.processes import descendants
from wholestack.runs import RunDirectory, RunManifest, RunReader

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


def test_the_time_that_is_given_ends_a_probe_without_a_number_of_rounds(tmp_path):
    arguments = ["--devices", "cpu", "--memory", "1MB", "--even-if-busy", "--seconds", "2s", "--out", tmp_path / "one"]
    done = run(*arguments)
    assert done.returncode in (0, 1, 3), done.stderr
    assert RunReader(tmp_path / "one").manifest.config["seconds"] == 2.0
    assert RunReader(tmp_path / "one").journal(DEVICES, DeviceOutcome)


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


def written(folder, count):
    """A probe of some sound devices and one that is not."""
    with RunDirectory.create(folder, RunManifest(kind=KIND, created_at=0.0, seed=0, config={}, versions={})) as opened:
        for place in range(count + 1):
            pace = Pace(measure="product.bfloat16_8192_flop_s", rates=(1e12 + 1e9 * place,) * 20)
            opened.append(
                DEVICES,
                DeviceOutcome(
                    part=Part(kind="gpu", key=str(place)), kind="card", serial=f"S{place}", busy="", gave_up="",
                    corrections=(), rounds=1, products=1, elements=1, tested_bytes=1, wrong_products=0, wrong_words=0,
                    paces=(pace,), sound=place < count,
                ),
            )  # fmt: skip


def test_a_reference_is_learnt_and_added_to(tmp_path, capsys):
    written(tmp_path / "one", 7)
    written(tmp_path / "two", 3)
    pace = tmp_path / "pace.json"
    for arguments, count in (([tmp_path / "one", tmp_path / "one"], 7), ([tmp_path / "two", "--add", pace], 10)):
        with pytest.raises(SystemExit) as ended:
            main(["health", "probe", "learn", *map(str, arguments), "--out", str(pace), "--json"])
        assert ended.value.code == 0
        levels = json.loads(capsys.readouterr().out)["levels"]
        assert levels == {"card | product.bfloat16_8192_flop_s": count}


def test_a_probe_that_is_killed_leaves_a_readable_folder_and_no_process(tmp_path):
    arguments = ["--devices", "cpu", "--even-if-busy", "--memory", "1MB", "--seconds", "5m", "--out", tmp_path / "one"]
    probe = subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL)
    try:
        rounds = tmp_path / "one" / "rounds.jsonl"
        deadline = time.monotonic() + 120
        while not (rounds.exists() and rounds.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        below = descendants(probe.pid)
        probe.kill()
        probe.wait()
    assert below == []
    reader = RunReader(tmp_path / "one")
    assert reader.journal("rounds.jsonl", Round)[0].products > 0
    assert {path.name for path in tmp_path.iterdir()} == {"one"}


@pytest.mark.parametrize("arguments", [["probe", "--help"], ["probe", "learn", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys\nfrom wholestack.cli.main import main\n"
        f"try: main(['health', *{arguments}])\nexcept SystemExit: pass\n"
        "print([m for m in ('numpy', 'scipy', 'torch') if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip().splitlines()[-1] == "[]"
