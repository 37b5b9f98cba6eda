"""What a caller gets: output, result, endings, caps, and nothing left."""

import dataclasses
import os
import secrets
import select
import signal
import subprocess
import sys
import time

import pytest

from wholestack.errors import InputError, RecordError, SandboxError
from wholestack.sandbox import Ending, Isolation, Limits, Sandbox


def test_output_result_and_exit_code_come_back(sandbox):
    outcome = sandbox.run(
        "import sys; print('out'); print('err', file=sys.stderr); RESULT.write('[1, 2]'); sys.exit(3)"
    )
    assert (outcome.stdout, outcome.stderr, outcome.value()) == (b"out\n", b"err\n", [1, 2])
    assert (outcome.ending, outcome.exit_code, outcome.ok) == (Ending.EXITED, 3, False)


def test_an_argument_crosses_as_json_whatever_its_size(sandbox):
    argument = {"text": "ü\n" * 50_000, "numbers": list(range(10_000)), "none": None}
    outcome = sandbox.run("import json; RESULT.write(json.dumps(ARGUMENT))", argument=argument)
    assert outcome.value() == argument


def test_the_program_is_main_and_its_files_can_be_imported(sandbox):
    program = "from pack.part import twice; import __main__; print(__name__, twice(4), __main__.twice is twice)"
    outcome = sandbox.run(program, files={"pack/__init__.py": b"", "pack/part.py": b"def twice(n): return 2 * n\n"})
    assert (outcome.stdout, outcome.stderr) == (b"__main__ 8 True\n", b"")


def test_an_error_shows_the_programs_lines_and_not_ours(sandbox):
    outcome = sandbox.run("def f():\n    return 1 / 0\n\nf()\n")
    assert outcome.exit_code == 1
    text = outcome.stderr.decode()
    assert "ZeroDivisionError" in text
    assert "return 1 / 0" in text
    assert text.count("File ") == 2


@pytest.mark.parametrize(
    "program",
    [
        "while True: pass",
        "import signal, time\nfor n in {*range(1, 65)} - {9, 19, 32, 33}: signal.signal(n, signal.SIG_IGN)\n"
        "while True: time.sleep(1)",
        "x = 10 ** 10 ** 9",
        "import re; re.match('(a+)+$', 'a' * 40 + 'b')",
        "import time; time.sleep(1000)",
        "import sys; sys.stdin.read()\nsource = open('/dev/urandom', 'rb')\nwhile source.read(4096): pass",
    ],
)
def test_a_time_out_is_a_result_and_keeps_what_was_printed(sandbox, program):
    limits = Limits(wall_s=2.0 if sandbox.isolation is Isolation.BUBBLEWRAP else 5.0)  # a plain process starts slower
    outcome = sandbox.run(f"print('before', flush=True)\n{program}", limits=limits)
    assert (outcome.ending, outcome.exit_code, outcome.stdout) == (Ending.TIMED_OUT, None, b"before\n")


@pytest.mark.parametrize("stream", ["sys.stdout", "sys.stderr", "RESULT"])
def test_a_flood_of_output_ends_the_run_and_keeps_the_first_bytes(sandbox, stream):
    limits = Limits(wall_s=60.0, output_bytes=10_000)
    outcome = sandbox.run(f"import sys\nwhile True: {stream}.write('x' * 1000)", limits=limits)
    assert outcome.ending is Ending.OUTPUT_EXCEEDED
    kept = {"sys.stdout": outcome.stdout, "sys.stderr": outcome.stderr, "RESULT": outcome.result}[stream]
    assert kept == b"x" * 10_000
    with pytest.raises(RecordError, match="result"):
        outcome.value()


def test_as_much_output_as_allowed_is_no_flood(sandbox):
    outcome = sandbox.run("print('x' * 9_999); RESULT.write('1' * 10_000)", limits=Limits(output_bytes=10_000))
    assert (outcome.ending, len(outcome.stdout), len(outcome.result)) == (Ending.EXITED, 10_000, 10_000)


def test_one_process_over_the_memory_cap_gets_a_memory_error(sandbox):
    outcome = sandbox.run("x = bytearray(1 << 30)", limits=Limits(memory_bytes=128 << 20))
    assert outcome.exit_code == 1
    assert b"MemoryError" in outcome.stderr


def test_several_processes_share_the_memory_cap(sandbox):
    program = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        break
held = bytearray(80 << 20)
for place in range(0, len(held), 4096):
    held[place] = 1
time.sleep(1000)
"""
    outcome = sandbox.run(program, limits=Limits(wall_s=60.0, memory_bytes=256 << 20))
    assert outcome.ending is Ending.MEMORY_EXCEEDED
    assert outcome.peak_bytes > 256 << 20


def test_the_number_of_processes_is_capped_exactly(isolated):
    program = """
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(1000)
        made += 1
except OSError:
    RESULT.write(str(made)); RESULT.flush()
    os.kill(os.getpid(), 9)
"""
    assert isolated.run(program, limits=Limits(processes=5)).value() == 4


def test_files_are_capped_in_size_sum_and_number(isolated):
    limits = Limits(file_bytes=1 << 20, disk_bytes=2 << 20, files=100, wall_s=60.0)
    large = isolated.run("open('f', 'wb').write(bytes(2 << 20))", limits=limits)
    assert b"File too large" in large.stderr
    many = isolated.run("for n in range(4): open(str(n), 'wb').write(bytes(1 << 20))", limits=limits)
    assert b"No space left" in many.stderr
    nodes = isolated.run("n = 0\nwhile True:\n    open(str(n), 'w').close(); n += 1", limits=limits)
    assert nodes.ending is Ending.FILES_EXCEEDED


def test_a_plain_process_is_ended_for_too_many_or_too_large_files(plain):
    limits = Limits(file_bytes=1 << 20, disk_bytes=2 << 20, files=100, wall_s=60.0)
    for program in ("open(str(n), 'w').close()", "open(str(n), 'wb').write(bytes(1 << 20))"):
        outcome = plain.run(f"import time\nn = 0\nwhile True:\n    {program}; n += 1; time.sleep(0.001)", limits=limits)
        assert outcome.ending is Ending.FILES_EXCEEDED


@pytest.mark.parametrize(
    "hide",
    [
        "os.setsid(); os.fork() and os._exit(0)",
        "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15, 13)]; os.setpgid(0, 0)",
        "os.closerange(0, 64)",
    ],
)
def test_nothing_is_left_of_a_daemon(sandbox, hide, processes_named):
    word = f"daemon-{secrets.token_hex(8)}"
    program = f"""
import os, signal, sys, time
if os.fork() == 0:
    {hide}
    os.execv(sys.executable, [sys.executable, "-S", "-c", "import time; time.sleep(1000)", "{word}"])
time.sleep(0.5)
"""
    outcome = sandbox.run(program, limits=Limits(wall_s=60.0))
    assert outcome.ok
    assert outcome.seconds < 60
    assert processes_named(word) == []


def test_files_of_the_run_are_gone(plain, isolated, own_temporary_folder):
    for sandbox in (plain, isolated):
        assert sandbox.run("import os; os.mkdir('d', 0); open('f', 'w').write('x')").ok
    assert list(own_temporary_folder.iterdir()) == []


def test_the_hash_seed_is_the_one_asked_for(sandbox):
    program = "print(hash('word'))"
    first, again, other = (sandbox.run(program, hash_seed=seed).stdout for seed in (1, 1, 2))
    assert first == again != other
    assert sandbox.run(program).stdout != sandbox.run(program).stdout


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("", "gave no result"),
        ("[1", "not one JSON value"),
        ("1 2", "not one JSON value"),
        ("NaN", "not one JSON value"),
        ("[" * 100_000, "not one JSON value"),
        ("\\udcff", "gave no result"),
    ],
)
def test_a_result_that_is_not_one_json_value_is_refused(isolated, result, reason):
    outcome = isolated.run(f"RESULT.write('{result}')" if len(result) < 99 else f"RESULT.write('[' * {len(result)})")
    with pytest.raises(RecordError, match=reason):
        outcome.value()


def test_a_result_of_another_type_than_asked_for_is_refused(sandbox):
    outcome = sandbox.run("RESULT.write('[1, \"2\"]')")
    assert outcome.value(tuple[int, str]) == (1, "2")
    with pytest.raises(RecordError, match=r"not what was asked for: .*int"):
        outcome.value(list[int])


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", "", "a\0b", "main.py"])
def test_a_file_outside_the_folder_is_refused(isolated, name):
    with pytest.raises(InputError, match="relative path"):
        isolated.run("", files={name: b""})


def test_what_does_not_fit_is_refused_before_the_start(isolated):
    with pytest.raises(InputError, match="limits"):
        isolated.run("#" * 2000, limits=Limits(file_bytes=1000))
    with pytest.raises(InputError, match="not JSON"):
        isolated.run("", argument={1, 2})
    with pytest.raises(InputError, match="not JSON"):
        isolated.run("", argument=float("nan"))
    with pytest.raises(InputError, match="UTF-8"):
        isolated.run("'\udc80'")
    with pytest.raises(InputError, match="hash_seed"):
        isolated.run("", hash_seed=-1)


@pytest.mark.parametrize("limit", [each.name for each in dataclasses.fields(Limits)])
def test_limits_that_cannot_be_kept_are_refused(limit):
    with pytest.raises(InputError, match=limit):
        Limits(**{limit: 0})


def test_without_bubblewrap_isolation_is_refused_and_a_plain_process_said(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(SandboxError, match="bwrap is not installed"):
        Sandbox.open()
    assert Sandbox.open(require_isolation=False).isolation is Isolation.PROCESS


def test_with_bubblewrap_isolation_is_used_whether_required_or_not():
    assert Sandbox.open().isolation is Isolation.BUBBLEWRAP
    assert Sandbox.open(require_isolation=False).isolation is Isolation.BUBBLEWRAP


def test_a_bubblewrap_that_cannot_make_namespaces_is_told_with_its_reason(open_folder, monkeypatch):
    fake = open_folder / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(fake))
    with pytest.raises(SandboxError, match="No permissions to create new namespace"):
        Sandbox.open()


OWNED = """
import os, sys
from wholestack.sandbox import Limits, Sandbox
from wholestack.sandbox.image import default_folder, image_of_this_interpreter
from wholestack.sandbox.plain import PlainProcess

sandbox = Sandbox.open() if sys.argv[1] == "bubblewrap" else Sandbox(
    PlainProcess(image_of_this_interpreter(default_folder()))
)
program = "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(1000)', ARGUMENT])"
sandbox.run(program, argument=os.environ["WORD"], limits=Limits(wall_s=1000.0))
"""


@pytest.mark.parametrize("isolation", ["bubblewrap", "process"])
def test_when_its_owner_is_killed_the_sandbox_ends_too(isolation, processes_named):
    word = f"owned-{secrets.token_hex(8)}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "WORD": word}
    owner = subprocess.Popen([sys.executable, "-c", OWNED, isolation], env=environment)
    while not (inner := processes_named(word)):
        assert owner.poll() is None
        time.sleep(0.05)
    handles = [os.pidfd_open(pid) for pid in inner]
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    for handle in handles:
        assert select.select([handle], [], [], 30.0)[0]
        os.close(handle)
