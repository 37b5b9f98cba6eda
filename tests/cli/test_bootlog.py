"""``wholestack health bootlog`` from the command line."""

import json
import re
import subprocess
import sys

import pytest

from tests.health.bootlog.written import STYLES, dressed, written
from wholestack.cli.main import main


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["health", "bootlog", *map(str, arguments)])
    printed = capsys.readouterr()
    return ended.value.code, printed.out, printed.err


@pytest.fixture
def good(tmp_path):
    """A folder of good boots: of each host a folder, in every format."""
    for seed in range(20):
        folder = tmp_path / "good" / f"node{seed % 5}"
        folder.mkdir(parents=True, exist_ok=True)
        style = STYLES[seed % len(STYLES)]
        (folder / f"boot-{seed}.log").write_text(dressed(written(seed), style, host=f"node{seed % 5}"))
    return tmp_path / "good"


@pytest.fixture
def model(good, tmp_path, capsys):
    assert run(capsys, "learn", good, "--model", tmp_path / "model.json")[0] == 0
    return tmp_path / "model.json"


def test_learning_says_what_was_learnt_and_from_what(good, tmp_path, capsys):
    (good / "node1" / "picture.png").write_bytes(b"\x89PNG\x00\x00")
    (good / "node1" / "again.log").write_text(dressed(written(0), "short-iso"))
    (good / "node1" / "old.log.1.gz").write_bytes(b"\x1f\x8b\x08aaaa")
    code, out, _ = run(capsys, "learn", good, "--model", tmp_path / "model.json")
    assert code == 0
    assert "20 boots learnt" in out
    assert "20 in all of 5 hosts" in out
    assert "5.15.0-91-generic" in out
    assert "1 boots that the model had already" in out
    assert "picture.png: holds NUL bytes" in " ".join(out.split())
    assert "is compressed: unpack it first" in " ".join(out.split())
    assert max(map(len, out.splitlines()[1:])) <= 80


def test_learning_onto_a_model_adds_boots(model, tmp_path, capsys):
    more = tmp_path / "more"
    more.mkdir()
    (more / "node9.dmesg").write_text(dressed(written(40)))
    code, out, _ = run(capsys, "learn", more, "--model", model, "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["boots"], document["all_boots"], document["hosts"]) == (1, 21, 6)


def test_while_one_process_learns_another_is_refused_and_nothing_is_lost(model, tmp_path, capsys):
    more = tmp_path / "node8.dmesg"
    more.write_text(dressed(written(41)))
    decision = ["--why", "new card", "--by", "ada", "--until", "30d"]
    with subprocess.Popen(
        [sys.executable, "-c", SLOWLY, more, model], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as learning:
        assert learning.stdout.readline() == b"reading\n"
        code, _, err = run(capsys, "accept", model, "nvidia: a new line", *decision)
        assert (code, "another process changes it" in err, str(model) in err) == (2, True, True)
        assert "another process changes it" in run(capsys, "learn", more, "--model", model)[2]
        learning.communicate(b"go on\n", timeout=120)
    assert learning.returncode == 0
    assert run(capsys, "accept", model, "nvidia: a new line", *decision)[0] == 0
    document = json.loads(model.read_text())
    assert len(document["boots"]) == 21
    assert [each["line"] for each in document["accepted"]] == ["nvidia: a new line"]


SLOWLY = """
import sys
from wholestack.cli import bootlog
read = bootlog.learn_files
def slowly(*arguments):
    print("reading", flush=True)
    sys.stdin.readline()
    return read(*arguments)
bootlog.learn_files = slowly
bootlog.app(["learn", sys.argv[1], "--model", sys.argv[2], "--json"])
"""
"""Learns, and waits for a line when it has read the model."""


def test_a_good_boot_is_ok_and_a_bad_one_is_not(model, tmp_path, capsys):
    file = tmp_path / "node7.dmesg"
    file.write_text(dressed(written(60)))
    code, out, _ = run(capsys, "judge", model, file)
    assert (code, out.split(":")[0]) == (0, "ok")
    file.write_text(dressed([line for line in written(60, cpus=63) if "0000:ca:00.0" not in line]))
    code, out, _ = run(capsys, "judge", model, file)
    assert code == 1
    assert "nvidia 0000:ca:00.0: enabling device" in out
    assert "63 CPUs" in out
    assert "20 of 20 boots on 5 hosts" in out
    assert max(map(len, out.splitlines())) <= 80
    code, out, _ = run(capsys, "judge", model, file, "--json")
    document = json.loads(out)
    assert document["status"] == "fail"
    assert {each["check"] for each in document["findings"]} == {"bootlog.missing", "bootlog.value"}


def test_the_last_boot_of_a_file_is_judged_or_the_one_that_is_named(model, tmp_path, capsys):
    file = tmp_path / "kern.log"
    bad = [line for line in written(61) if line != "x2apic enabled"]
    file.write_text(dressed(bad, "short") + dressed(written(62), "short", start=1_738_900_000.0))
    code, out, _ = run(capsys, "judge", model, file)
    assert code == 0
    assert "boot 2 of 2 in the file" in out
    assert run(capsys, "judge", model, file, "--boot", 1)[0] == 1
    code, _, err = run(capsys, "judge", model, file, "--boot", 3)
    assert code == 2
    assert "has no boot 3, only 2" in err


def test_what_cannot_be_told_is_not_ok(model, tmp_path, capsys):
    file = tmp_path / "cut.log"
    file.write_text(dressed(written(63))[:-300])
    assert run(capsys, "judge", model, file)[0] == 3


@pytest.mark.parametrize("by_finding", [False, True])
def test_a_decision_makes_the_line_quiet(model, tmp_path, capsys, by_finding):
    file = tmp_path / "node7.dmesg"
    line = "power_meter ACPI000D:00: ignoring unsafe software power cap"
    file.write_text(dressed([*written(64), line]))
    code, out, _ = run(capsys, "judge", model, file)
    assert code == 1
    found = re.search(r"\[bootlog\.unknown\s+([0-9a-f]{8})\]", out)
    what = [found[1], "--log", file] if by_finding else [f"[   12.345678] {line}"]
    said = ["--why", "known bug of this BIOS", "--by", "ana", "--until", "30d"]
    code, out, _ = run(capsys, "accept", model, *what, *said)
    assert code == 0
    assert "by ana: power_meter" in out
    code, out, _ = run(capsys, "judge", model, file)
    assert code == 0
    assert "1 accepted" in out
    assert "known bug of this BIOS, ana, until" in " ".join(out.split())


def test_a_decision_survives_learning(model, good, tmp_path, capsys):
    line = "dell_smbios: unable to run"
    assert run(capsys, "accept", model, line, "--why", "known", "--by", "ana", "--until", "30d")[0] == 0
    file = tmp_path / "node9.dmesg"
    file.write_text(dressed(written(65)))
    assert run(capsys, "learn", file, "--model", model)[0] == 0
    file.write_text(dressed([*written(66), line]))
    assert run(capsys, "judge", model, file)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("learn", "{empty}", "--model", "{new}"), "is an empty folder"),
        (("learn", "{none}", "--model", "{new}"), "there is no such file or folder"),
        (("learn", "{text}", "--model", "{new}"), "no line of a kernel log"),
        (("learn", "--model", "{new}"), "no logs to learn from"),
        (("learn", "{good}", "--model", "{model}", "--window", "5m"), "keeps its window"),
        (("judge", "{none}", "{text}"), "cannot be read"),
        (("judge", "{text}", "{text}"), "not JSON"),
        (("judge", "{model}", "{none}"), "cannot be read"),
        (("judge", "{model}", "{prose}"), "no line of a kernel log"),
        (("judge", "{model}", "{other}"), "no line of a kernel log"),
        (("judge", "{model}", "{text}"), "no line of a kernel log"),
        (("accept", "{model}", "x: y", "--why", "a", "--by", "b", "--until", "soon"), "is no date"),
        (("accept", "{model}", "x: y", "--why", "a", "--by", "b", "--until", "2001-01-01"), "ended already"),
        (("accept", "{none}", "x: y", "--why", "a", "--by", "b", "--until", "1d"), "cannot be read"),
        (
            ("accept", "{model}", "0000", "--log", "{bad}", "--why", "a", "--by", "b", "--until", "1d"),
            "begins 0 findings",
        ),
    ],
)
def test_a_wrong_input_is_one_line(model, good, tmp_path, capsys, arguments, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_bytes(b"\n\n")
    (tmp_path / "bad").write_text(dressed([*written(3), "dell_smbios: unable to run"]))
    (tmp_path / "prose").write_text("# Notes\n\nThese hosts are good.\n")
    (tmp_path / "other").write_text("Jan 27 17:46:40 node7 sshd[812]: Accepted publickey\n")
    mine = ("empty", "none", "text", "bad", "new", "prose", "other")
    names = {name: tmp_path / name for name in mine} | {"good": good, "model": model}
    code, out, err = run(capsys, *(each.format(**names) for each in arguments))
    assert code == 2
    assert out == ""
    assert said in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "none.lock").exists()
