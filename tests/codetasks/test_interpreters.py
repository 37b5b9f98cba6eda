"""Which Python runs the programs: those that were compared give the same file, of others nothing is claimed."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.codetasks.test_generating import PINNED
from wholestack.codetasks.checking import check_file
from wholestack.codetasks.generating import cells_of, generate, make_items
from wholestack.codetasks.interpreters import NEWEST, OLDEST, Interpreter, interpreter_of
from wholestack.codetasks.item import CodeItem, item_line
from wholestack.errors import InputError, SandboxError
from wholestack.sandbox import Ending, Isolation, Limits, Outcome, Sandbox

DRIVER = """
import json, sys
given = json.load(sys.stdin)
exec(compile(given[0], "main.py", "exec"), {"__name__": "__main__", "ARGUMENT": given[1], "RESULT": sys.stdout})
"""


class Other:
    """Runs programs of the generator's own with another Python, as a plain process."""

    def __init__(self, python: str) -> None:
        self.python = python

    def __call__(
        self, program: str, *, argument: Any = None, limits: Limits | None = None, hash_seed: int | None = None
    ) -> Outcome:
        done = subprocess.run(
            [self.python, "-I", "-c", DRIVER], input=json.dumps([program, argument]).encode(),
            capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        return Outcome(
            isolation=Isolation.PROCESS, ending=Ending.EXITED, exit_code=done.returncode, stdout=b"",
            stderr=done.stderr, result=done.stdout, seconds=0.0, peak_bytes=0,
        )  # fmt: skip


def _candidates() -> Iterator[str]:
    for minor in range(8, 20):
        if found := shutil.which(f"python3.{minor}"):
            yield found
    home = Path.home()
    for folder in (home / ".pyenv" / "versions", home / ".local" / "share" / "uv" / "python"):
        yield from map(str, sorted(folder.glob("*3.*/bin/python3")))


def _pythons() -> dict[tuple[int, int], str]:
    """Those that start on this machine, of each version one; a name on PATH may be a shim of nothing."""
    ask = [
        "-I",
        "-c",
        "import sys; print(sys.version_info[0], sys.version_info[1], sys.implementation.name == 'cpython')",
    ]
    found: dict[tuple[int, int], str] = {}
    for python in _candidates():
        said = subprocess.run([python, *ask], capture_output=True, text=True, check=False).stdout.split()
        if len(said) == 3 and said[2] == "True" and int(said[1]) >= 8:
            found.setdefault((int(said[0]), int(said[1])), python)
    return found


PYTHONS = _pythons()
KNOWN = [python for version, python in PYTHONS.items() if OLDEST <= version <= NEWEST]
DOUBTED = [python for version, python in PYTHONS.items() if not OLDEST <= version <= NEWEST]


@pytest.mark.parametrize(
    ("implementation", "version", "is_known"),
    [
        ("cpython", (3, 10, 13), False),
        ("cpython", (3, 11, 0), True),
        ("cpython", (3, 13, 99), True),
        ("cpython", (3, 14, 0), False),
        ("pypy", (3, 11, 0), False),
    ],
)
def test_a_version_outside_of_those_that_were_compared_is_doubted(
    implementation: str, version: tuple[int, int, int], is_known: bool
) -> None:
    doubt = Interpreter(implementation, version).doubt
    assert (doubt == "") is is_known
    if not is_known:
        assert doubt.startswith(f"{'Python' if implementation == 'cpython' else 'pypy'} {'.'.join(map(str, version))} ")
        assert "CPython 3.11 to 3.13 only" in doubt
        assert "traces, answers and hashes differ" in doubt


def test_the_python_inside_the_sandbox_is_asked(sandbox: Sandbox) -> None:
    assert interpreter_of(sandbox.run).doubt == ""


def test_a_python_that_does_not_start_is_an_error() -> None:
    with pytest.raises(SandboxError, match="does not start"):
        interpreter_of(Other(shutil.which("false") or "/bin/false"))


@pytest.mark.skipif(not KNOWN, reason="no Python of a known version on this machine")
@pytest.mark.parametrize("python", KNOWN)
def test_every_known_version_gives_the_same_lines(python: str) -> None:
    assert interpreter_of(Other(python)).doubt == ""
    made = make_items(cells_of(), count=50, seed=1, run=Other(python))
    assert sha256(b"".join(map(item_line, made))).hexdigest() == PINNED


@pytest.mark.skipif(not DOUBTED, reason="no Python of another version on this machine")
@pytest.mark.parametrize("python", DOUBTED)
def test_another_version_generates_nothing_and_says_what_may_differ(python: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        generate(tmp_path / "q.jsonl", cells_of(["eval"], [1]), count=1, seed=0, run=Other(python))
    assert "runs the programs" in str(refused.value)
    assert "uv venv" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not DOUBTED, reason="no Python of another version on this machine")
@pytest.mark.parametrize("python", DOUBTED)
def test_a_check_by_another_version_is_unknown_though_all_lines_are_the_same(
    python: str, tmp_path: Path, items: list[CodeItem]
) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"".join(map(item_line, items[:20])))
    found = check_file(path, Other(python))
    assert (found.items, found.proved, found.refused) == (20, 20, 0)
    assert [(each.status, each.cause) for each in found.findings] == [("unknown", "python")]


class Later(Other):
    """A Python of a version to come, which counts one line more than those that were compared."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def __call__(
        self, program: str, *, argument: Any = None, limits: Limits | None = None, hash_seed: int | None = None
    ) -> Outcome:
        program = program.replace("sys.version_info[:3]", "(3, 99, 0)")
        program = program.replace("self.lines = 0", "self.lines = 1")
        return self._sandbox.run(program, argument=argument, limits=limits, hash_seed=hash_seed)


def test_what_differs_in_another_version_is_unknown_and_named(
    tmp_path: Path, sandbox: Sandbox, items: list[CodeItem]
) -> None:
    item = next(each for each in items if each.kind == "eval")
    path = tmp_path / "items.jsonl"
    path.write_bytes(item_line(item) + item_line(item).replace(b'"gold":', b'"gold": ', 1)[:-9] + b"\n")
    found = check_file(path, Later(sandbox))
    assert (found.proved, found.refused, found.unknown) == (0, 1, 1)
    whole, line, changed = found.findings
    assert whole.evidence[0].startswith("Python 3.99.0 runs the programs")
    assert (line.status, line.cause, line.part) == ("unknown", "python", "line 1")
    assert "the same question has other trace here (Python 3.99.0)" in line.evidence[0]
    assert (changed.status, changed.cause) == ("fail", "changed")
