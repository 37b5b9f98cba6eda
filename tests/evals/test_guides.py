"""The guide to adding a task is run: its code, its task and its rows."""

import json
import re
from pathlib import Path

import pytest

from wholestack.evals.items import read_items
from wholestack.evals.tasks import open_task, pose

from .layouts.rows import ROWS

GUIDE = (Path(__file__).parents[2] / "docs/adding/task.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_code_of_the_guide_runs():
    there = {}
    for code in blocks("python"):
        exec(code, there)
    assert there["result"].complete


def test_the_rows_of_the_guide_are_items():
    (rows,) = blocks("json")
    Path("mine.jsonl").write_text(rows)
    assert [item.answer for item in read_items(Path("mine.jsonl")).items] == ["metal", "solid"]


def test_the_task_of_the_guide_puts_questions():
    (task,) = blocks("toml")
    Path("terse.toml").write_text(task)
    found = open_task("terse.toml")
    assert (found.layout, found.delimiter, found.shots.count) == ("boolq", "\n", 2)
    rows = [{**ROWS["boolq"][0], "passage": f"Passage {n}.", "id": f"b{n}"} for n in range(4)]
    for name, some in (("boolq.jsonl", rows[:1]), ("train.jsonl", rows[1:])):
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in some))
    (item,) = pose(Path("boolq.jsonl"), found, shots_from=Path("train.jsonl")).items
    assert item.context.count("is tin a metal?\nyes") == 2
    assert item.context.endswith("Passage 0.\nis tin a metal?")
