"""Answers by an oracle that shares nothing with the generator: plain ``exec`` in a process of its own."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence

from wholestack.codetasks.item import CodeItem

ORACLE = """
import contextlib, io, json, sys

def printed(source):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(source, {"__name__": "__main__"})
        except Exception as error:
            return type(error).__name__
    return out.getvalue().rstrip("\\n")

def with_line(source, line, text):
    lines = source.split("\\n")
    indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
    return "\\n".join([*lines[: line - 1], indent + text, *lines[line - 1 :]])

def watched(source, line, name):
    seen = []
    names = {"__name__": "__main__", "_seen": seen.append, "print": lambda *a: None}
    exec(with_line(source, line, f"_seen(repr({name}))"), names)
    return seen

def called(source, name, argument, line=None):
    names = {"__name__": "__main__", "_seen": []}
    exec(with_line(source, line, "_seen.append(1)") if line else source, names)
    value = eval(f"{name}({argument})", names)
    return len(names["_seen"]) if line else repr(value)

answers = []
for task, *arguments in json.load(sys.stdin):
    answers.append(globals()[task](*arguments))
json.dump(answers, sys.stdout)
"""
TIMES = {"first": 0, "second": 1, "third": 2, "last": -1}
CLOZE = r"Which argument makes (\w+)\(\.\.\.\) return (-?\d+)\?"
BRANCH = r"(\w+)\((.*?)\) runs line (\d+) \(.*?\)\. Which argument makes line (\d+) \(.*\) run\?"

Task = tuple[object, ...]


def wrong_answers(items: Sequence[CodeItem]) -> list[CodeItem]:
    """Items whose gold choice is not the only right one."""
    asked = [_tasks(item) for item in items]
    answers = iter(_run([task for tasks in asked for task in tasks]))
    return [
        item for item, tasks in zip(items, asked, strict=True) if not _is_right(item, [next(answers) for _ in tasks])
    ]


def _run(tasks: list[Task]) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", ORACLE], input=json.dumps(tasks), capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout))


def _tasks(item: CodeItem) -> list[Task]:
    if item.kind in ("eval", "outcome"):
        return [("printed", item.program)]
    if item.kind == "trace":
        variable = re.match(r"What is the value of (\w+) just", item.question)
        return [("watched", item.program, int(_group(r"line (\d+) ", item)), variable[1] if variable else "0")]
    if item.kind == "cloze":
        return [("called", item.program, _group(CLOZE, item), choice) for choice in item.choices]
    name, given, taken, wanted = _groups(BRANCH, item)
    tasks: list[Task] = [("called", item.program, name, choice, int(wanted)) for choice in item.choices]
    return tasks + [("called", item.program, name, given, int(line)) for line in (taken, wanted)]


def _is_right(item: CodeItem, answers: list[object]) -> bool:
    gold = item.choices[item.gold]
    if item.kind in ("eval", "outcome"):
        return answers == [gold]
    if item.kind == "trace":
        (seen,) = answers
        assert isinstance(seen, list)
        visit = re.search(r"for the (\w+) time", item.question)
        if visit:
            return bool(seen[TIMES[visit[1]]] == gold)
        return bool((str(len(seen)) if item.question.startswith("How often") else seen[0]) == gold)
    if item.kind == "cloze":
        return [each == _groups(CLOZE, item)[1] for each in answers] == [at == item.gold for at in range(4)]
    return answers == [*(int(at == item.gold) for at in range(4)), 1, 0]


def _groups(pattern: str, item: CodeItem) -> tuple[str, ...]:
    found = re.search(pattern, item.question)
    assert found, item.question
    return found.groups()


def _group(pattern: str, item: CodeItem) -> str:
    return _groups(pattern, item)[0]
