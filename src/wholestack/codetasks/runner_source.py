"""Runs programs inside the sandbox and says what they did; standard library only, it imports nothing of ours.

It is started as the main program of a sandboxed process, which gives it ``ARGUMENT`` (the jobs) and takes what it
writes to ``RESULT``. A job is an object:

    source   the program
    calls    expressions to evaluate, each in a namespace of its own in which the program has just run;
             with none the program is run once
    watches  [line, name, time], any number: the value of a variable just before the line runs for the n-th time
             (0: for the last time); with an empty name, how often the line runs
    steps    how many lines to write down at most, with the values that changed; 0 for none

For each run of a job there is one object with ``printed``, ``value`` (its repr, where there was a call), ``error``
(name of the exception that came out), ``watched`` (for each watch a repr or null), ``lines`` (how many were run) and
``steps``. Values are plain data or are not said at all: an object's repr would hold an address.

Lines are counted by ``sys.settrace``. Comprehensions do not count (they have frames of their own in some versions of
Python only), nor does the same line of the same frame twice in a row, so that the counts are the same in every version
that was compared (see ``interpreters.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

MOST_LINES = 3000
MOST_PRINTED = 2000
LONGEST_VALUE = 80
NAME = "<program>"
HIDDEN = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


class TooLong(BaseException):
    """The program ran or printed more than it may."""


def plain(value: object, depth: int = 0) -> bool:
    """Whether the value is made of numbers, texts, lists, tuples and dicts alone."""
    kind = type(value)
    if kind in (int, str, bool) or value is None:
        return True
    if depth > 3:
        return False
    if isinstance(value, (list, tuple)):
        return all(plain(each, depth + 1) for each in value)
    if isinstance(value, dict):
        return all(plain(key, depth + 1) and plain(each, depth + 1) for key, each in value.items())
    return False


class Watcher:
    """Follows one run line by line."""

    def __init__(self, watches: list[tuple[int, str, int]], steps: int) -> None:
        self.watches: dict[int, list[tuple[int, str, int]]] = {}
        for place, (line, name, time) in enumerate(watches):
            self.watches.setdefault(line, []).append((place, name, time))
        self.visits = dict.fromkeys(self.watches, 0)
        self.watched = [None if name else "0" for _, name, _ in watches]
        self.most = steps
        self.lines = 0
        self.steps: list[tuple[int, str]] = []

    def enter(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        """Of a frame that begins or goes on: a function to follow it by, if it is the program's.

        Most of the time of all runs goes by in that function, so it keeps what it needs in variables of its own.
        """
        code = frame.f_code
        if code.co_filename != NAME or code.co_name in HIDDEN:
            return None
        last = 0
        seen: dict[str, str] = {}
        watches = self.watches

        def follow(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            nonlocal last
            if event == "line":
                line = frame.f_lineno
                if line != last:
                    last = line
                    self.lines += 1
                    if self.lines > MOST_LINES:
                        raise TooLong
                    if line in watches:
                        self.visits[line] += 1
                        self.look(frame, line, self.visits[line])
                    if len(self.steps) < self.most:
                        self.steps.append((line, changed(frame, seen)))
            return follow

        return follow

    def look(self, frame: FrameType, line: int, visit: int) -> None:
        """Whatever is wanted of this visit of a line."""
        for place, name, time in self.watches[line]:
            if not name:
                self.watched[place] = repr(visit)
            elif time in (0, visit):
                value = frame.f_locals.get(name)
                self.watched[place] = repr(value) if value is not None and plain(value) else None


def changed(frame: FrameType, seen: dict[str, str]) -> str:
    """The values that this frame has got since its last line; ``seen`` is what it had, and is brought up to date."""
    new = []
    for name, value in list(frame.f_locals.items()):
        if name[0] != "_" and plain(value):
            text = repr(value)
            if seen.get(name) != text:
                seen[name] = text
                new.append(name + " = " + (text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "..."))
    return ", ".join(new)


def run(code: CodeType, call: str | None, job: dict[str, Any]) -> dict[str, Any]:
    """One run of a compiled program, and of a call in it."""
    printed: list[str] = []

    def show(*values: object, sep: str = " ", end: str = "\n") -> None:
        printed.append(sep.join(map(str, values)) + end)
        if sum(map(len, printed)) > MOST_PRINTED:
            raise TooLong

    namespace: dict[str, Any] = {"__name__": "__main__", "print": show}
    watcher = Watcher(job["watches"], job["steps"])
    value = error = None
    sys.settrace(watcher.enter)
    try:
        exec(code, namespace)
        if call is not None:
            value = eval(call, namespace)
    except TooLong:
        error = "TooLong"
    except Exception as raised:  # noqa: BLE001  whatever comes out of the program is its outcome
        error = type(raised).__name__
    finally:
        sys.settrace(None)
    return {
        "printed": "".join(printed),
        "value": repr(value) if call is not None and error is None and plain(value) else None,
        "error": error,
        "watched": watcher.watched,
        "lines": watcher.lines,
        "steps": watcher.steps,
    }


def run_job(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Every run of one job."""
    code = compile(job["source"], NAME, "exec", dont_inherit=True)
    return [run(code, call, job) for call in job["calls"] or [None]]


if __name__ == "__main__":
    import json

    given = globals()
    given["RESULT"].write(json.dumps([run_job(job) for job in given["ARGUMENT"]]))
