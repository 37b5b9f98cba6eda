"""An oracle that shares nothing with the generator: plain ``exec`` in a process of the test."""

import json
import re
import subprocess
import sys

import pytest

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


def oracle(tasks: list[tuple[object, ...]]) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", ORACLE], input=json.dumps(tasks), capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout))


def of_kind(items: list[CodeItem], *kinds: str) -> list[CodeItem]:
    found = [item for item in items if item.kind in kinds]
    assert len(found) == 200 * len(kinds)
    return found


def test_what_is_printed_or_raised_is_the_gold_choice(items: list[CodeItem]) -> None:
    asked = of_kind(items, "eval", "outcome")
    assert oracle([("printed", item.program) for item in asked]) == [item.choices[item.gold] for item in asked]


def test_the_value_before_a_line_and_its_visits_are_the_gold_choice(items: list[CodeItem]) -> None:
    asked = of_kind(items, "trace")
    tasks = []
    for item in asked:
        name = re.match(r"What is the value of (\w+) just", item.question)
        tasks.append(
            ("watched", item.program, int(re.search(r"line (\d+) ", item.question)[1]), name[1] if name else "0")
        )
    for item, seen in zip(asked, oracle(tasks), strict=True):
        time = re.search(r"for the (\w+) time", item.question)
        answer = seen[TIMES[time[1]]] if time else str(len(seen)) if item.question.startswith("How often") else seen[0]
        assert answer == item.choices[item.gold], item.context


def test_one_argument_alone_gives_the_stated_result(items: list[CodeItem]) -> None:
    asked = of_kind(items, "cloze")
    parts = [re.fullmatch(r"Which argument makes (\w+)\(\.\.\.\) return (-?\d+)\?", item.question) for item in asked]
    tasks = [
        ("called", item.program, part[1], choice)
        for item, part in zip(asked, parts, strict=True)
        for choice in item.choices
    ]
    results = oracle(tasks)
    for place, (item, part) in enumerate(zip(asked, parts, strict=True)):
        assert [each == part[2] for each in results[4 * place : 4 * place + 4]] == [at == item.gold for at in range(4)]


def test_one_argument_alone_makes_the_line_run_and_the_given_call_runs_its_own(items: list[CodeItem]) -> None:
    asked = of_kind(items, "branch")
    pattern = r"(\w+)\((.*?)\) runs line (\d+) \(.*?\)\. Which argument makes line (\d+) \(.*\) run\?"
    parts = [re.fullmatch(pattern, item.question) for item in asked]
    tasks = []
    for item, part in zip(asked, parts, strict=True):
        tasks += [("called", item.program, part[1], choice, int(part[4])) for choice in item.choices]
        tasks += [("called", item.program, part[1], part[2], int(part[at])) for at in (3, 4)]
    results = oracle(tasks)
    for place, item in enumerate(asked):
        expected = [int(at == item.gold) for at in range(4)]
        assert results[6 * place : 6 * place + 6] == [*expected, 1, 0], item.context


@pytest.mark.parametrize("kind", ["eval", "trace", "outcome"])
def test_the_misreadings_of_the_other_choices_are_named(items: list[CodeItem], kind: str) -> None:
    for item in (each for each in items if each.kind == kind):
        assert item.misreadings[item.gold] is None
        assert all(each for at, each in enumerate(item.misreadings) if at != item.gold)
