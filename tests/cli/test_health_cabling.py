"""``wholestack health cabling`` from the command line."""

import csv
import io
import json
import random
from pathlib import Path

import pytest

from tests.health.cabling.fabrics import spoil, tree
from wholestack.cli.main import main


def run(*arguments: object) -> int:
    """Exit code of the command."""
    with pytest.raises(SystemExit) as ended:
        main(["health", "cabling", *map(str, arguments)])
    return int(ended.value.code or 0)


def write(folder: Path, faults: int) -> tuple[Path, Path]:
    """Plan and view."""
    made = tree(random.Random(3), units=3, hosts=4, uplinks=8)
    spoil(made, random.Random(4), faults)
    (folder / "plan.csv").write_text(made.plan())
    (folder / "seen.txt").write_text(made.text("iblinkinfo"))
    return folder / "plan.csv", folder / "seen.txt"


def test_the_terminal_has_80_columns_and_the_file_has_all_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, seen = write(tmp_path, 21)
    assert run(plan, "--seen", seen, "--out", tmp_path / "work.csv") == 1
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 130
    assert lines[0].startswith("FAIL: ")
    rows = list(csv.DictReader((tmp_path / "work.csv").open()))
    assert len(rows) > 21
    assert [row["rack"] for row in rows] == sorted(row["rack"] for row in rows)


def test_json_is_one_document_and_as_planned_is_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, seen = write(tmp_path, 0)
    assert run(plan, "--seen", seen, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["status"], document["findings"], document["work_order"]) == ("ok", [], [])
    assert document["right"] == document["planned"]


def test_an_output_of_something_else_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, _ = write(tmp_path, 0)
    (tmp_path / "other.txt").write_text("Kernel panic\n")
    assert run(plan, "--seen", tmp_path / "other.txt") == 3
    assert "cabling.unreadable" in capsys.readouterr().out.replace("\n", " ")


def test_a_wrong_plan_is_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, seen = write(tmp_path, 0)
    (tmp_path / "bad.csv").write_text("a,b\n")
    assert run(tmp_path / "bad.csv", "--seen", seen) == 2
    assert "a_port" in capsys.readouterr().err


def test_standard_input_is_an_output_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, seen = write(tmp_path, 0)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(seen.read_bytes())))
    assert run(plan, "--json") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "ok"
