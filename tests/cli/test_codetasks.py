import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wholestack.cli.main import main


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["codetasks", "generate", *arguments])
    return int(ended.value.code or 0)


def test_a_file_of_the_kinds_and_levels_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "q.jsonl"
    asked = ("--count", "8", "--seed", "4", "--difficulty", "2-3", "--kind", "cloze", "--kind", "eval")
    assert run("--out", str(out), *asked, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    rows = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert document["items"] == len(rows) == 8
    assert [(row["kind"], row["difficulty"]) for row in rows[:4]] == [
        ("cloze", 2),
        ("eval", 2),
        ("cloze", 3),
        ("eval", 3),
    ]
    assert document["drafts"] == 8 + sum(document["refused"].values())


def test_kinds_are_given_one_by_one_or_with_commas(tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    asked = ("--count", "4", "--difficulty", "1")
    assert run("--out", str(one), *asked, "--kind", "eval", "--kind", "trace") == 0
    assert run("--out", str(other), *asked, "--kind", "eval, trace") == 0
    assert one.read_bytes() == other.read_bytes()
    assert [json.loads(line)["kind"] for line in one.read_bytes().splitlines()] == ["eval", "trace"] * 2


def test_the_help_has_no_option_that_empties_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    said = capsys.readouterr().out
    assert "--kind" in said
    assert "--empty-kind" not in said


def test_why_drafts_gave_no_question_is_said_in_plain_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--out", str(tmp_path / "q.jsonl"), "--count", "60", "--difficulty", "6") == 0
    first, usual, *reasons = capsys.readouterr().out.splitlines()
    assert first.endswith("drafts")
    assert usual.startswith("Drafts that gave no question")
    assert reasons
    for line in reasons:
        assert re.fullmatch(r" +\d+ refused: [^:]+: .{30,}", line)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--difficulty", "11"), "difficulty is 11: 1 to 10 is allowed"),
        (("--difficulty", "5-2"), "neither a level nor a range"),
        (("--difficulty", "hard"), "neither a level nor a range"),
        (("--kind", "essay"), "there is no kind 'essay' (choose among eval, trace, outcome, cloze, branch"),
        (("--count", "0"), "count is 0: 1 to 1000000 is allowed"),
        (("--seed", "-3"), "seed is -3"),
    ],
)
def test_what_cannot_be_asked_for_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert run("--out", str(tmp_path / "q.jsonl"), *arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_exists_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "q.jsonl"
    out.write_text("mine")
    assert run("--out", str(out), "--count", "1") == 2
    assert "q.jsonl: exists" in capsys.readouterr().err
    assert out.read_text() == "mine"


@pytest.mark.parametrize(
    ("asked", "dropped"), [(("--seed", "5", "--count", "4"), 4), (("--count", "3"), 1), (("--count", "4"), 0)]
)
def test_lines_of_another_command_are_dropped_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: tuple[str, ...], dropped: int
) -> None:
    made, out = tmp_path / "made.jsonl", tmp_path / "q.jsonl"
    common = ("--difficulty", "1", "--kind", "eval")
    assert run("--out", str(made), "--count", "4", *common) == 0
    made.rename(tmp_path / ".q.jsonl.tmp")
    capsys.readouterr()
    assert run("--out", str(out), *common, *asked) == 0
    said = f"q.jsonl: lines that another command left there, dropped: {dropped}\n"
    assert (said in capsys.readouterr().err) == (dropped > 0)


def _start(out: Path) -> subprocess.Popen[str]:
    """A generation of some batches of questions, in a process of its own."""
    # A shell without job control starts what runs in the background with interrupts ignored.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from wholestack.cli.main import main; main(sys.argv[1:])"
    )
    asked = ("codetasks", "generate", "--count", "2200", "--seed", "8", "--difficulty", "1", "--out", str(out))
    return subprocess.Popen(
        [sys.executable, "-c", program, *asked], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.heavy
def test_a_killed_generation_goes_on_and_gives_the_same_bytes(tmp_path: Path) -> None:
    undisturbed = tmp_path / "undisturbed.jsonl"
    process = _start(undisturbed)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    out, left = tmp_path / "q.jsonl", tmp_path / ".q.jsonl.tmp"
    for end in (signal.SIGKILL, signal.SIGINT):
        process = _start(out)
        before = left.stat().st_size if left.exists() else 0
        while process.poll() is None and (not left.exists() or left.stat().st_size <= before):
            time.sleep(0.01)
        process.send_signal(end)
        _, said = process.communicate(timeout=60)
        assert process.returncode == (-signal.SIGKILL if end is signal.SIGKILL else 130), said
        assert not out.exists()
        assert left.stat().st_size > before
        if end is signal.SIGINT:
            assert "items are there from before" in said
            assert "the same command goes on with the rest" in said
    process = _start(out)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert "of 2,200 items are there from before" in said
    assert out.read_bytes() == undisturbed.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["q.jsonl", "undisturbed.jsonl"]
