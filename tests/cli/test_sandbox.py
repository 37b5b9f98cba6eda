"""``wholestack sandbox``, as a user types it."""

import json
import signal
import subprocess
import sys
import time

import pytest

from wholestack.cli.main import main
from wholestack.cli.output import parse_size
from wholestack.errors import InputError
from wholestack.processes import descendants


def _run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(["sandbox", *map(str, arguments)])
    said = capsys.readouterr()
    return end.value.code, said.out, said.err


@pytest.fixture
def program(tmp_path):
    def write(text):
        path = tmp_path / "program.py"
        path.write_text(text)
        return path

    return write


def test_a_program_prints_and_its_ending_is_said(program, capsys):
    code, out, err = _run(capsys, "run", program("import sys; print('out'); print('err', file=sys.stderr)"))
    assert (code, out) == (0, "out\n")
    assert err.startswith("err\n")
    assert "exit code 0" in err
    assert "isolated by bubblewrap" in err


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("raise SystemExit(7)", "exit code 7, after"),
        ("raise SystemExit(200)", "exit code 200, after"),
        ("import os; os.kill(os.getpid(), 9)", "exit code 137, as by signal 9, after"),
        ("while True: pass", "timed out"),
        ("print('x' * 5000)", "output exceeded"),
    ],
)
def test_a_program_that_fails_or_is_ended_is_one_and_says_how(program, capsys, text, ending):
    code, _, err = _run(capsys, "run", program(text), "--wall", "2s", "--output", "4KB")
    assert code == 1
    assert ending in err


@pytest.mark.parametrize(
    ("text", "options", "note"),
    [
        ("bytearray(1 << 30)", ["--memory", "100MiB"],
         "MemoryError: the limit of 104,857,600 bytes of address space of each process may have been met; --memory"),
        ("import mmap; mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)", ["--memory", "100MiB"],
         "OSError: [Errno 12] Cannot allocate memory: the limit of 104,857,600 bytes of address space"),
        ("import os; os.pwrite(os.open('f', os.O_CREAT | os.O_WRONLY), b'x', 2 << 20)", ["--disk", "1MiB"],
         "OSError: [Errno 27] File too large: the limit of 1,048,576 bytes of one file may have been met; --disk"),
        ("for n in range(4): open(str(n), 'wb').write(bytes(1 << 19))", ["--disk", "1MiB"],
         "OSError: [Errno 28] No space left on device: the limit of 1,048,576 bytes of all files may have been met"),
        ("import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(99)", ["--processes", "3"],
         "BlockingIOError: [Errno 11] Resource temporarily unavailable: the limit of 3 processes and threads"),
        ("import subprocess, sys\nheld = [subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)']) "
         "for _ in range(9)]", ["--processes", "3"],
         "BlockingIOError: [Errno 11] Resource temporarily unavailable: the limit of 3 processes and threads"),
        ("raise ExceptionGroup('several', [ValueError(), MemoryError()])", ["--memory", "100MiB"],
         "MemoryError: the limit of 104,857,600 bytes of address space of each process may have been met; --memory"),
        ("held = [open('/dev/null') for _ in range(99)]", [],
         "OSError: [Errno 24] Too many open files: the limit of 64 open files of each process may have been met"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGXCPU)", [], "SIGXCPU: the limit of 12 s of processor time"),
        ("import os, signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); os.truncate('main.py', 2 << 20)",
         ["--disk", "1MiB"], "SIGXFSZ: the limit of 1,048,576 bytes of one file may have been met; --disk raises it"),
    ],
)  # fmt: skip
def test_a_limit_that_a_program_met_is_named(program, capsys, text, options, note):
    code, _, err = _run(capsys, "run", program(text), *options)
    assert code == 1
    (said,) = [line for line in err.splitlines() if line.startswith("note: ")]
    assert said.startswith(f"note: {note}")
    code, out, err = _run(capsys, "run", program(text), *options, "--json")
    assert (code, err.count("\n")) == (1, 1)
    assert said in err
    assert json.loads(out)["ending"] == "exited"


def test_where_two_limits_give_the_same_error_both_are_named(program, capsys):
    text = "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,), daemon=True).start()"
    for limits in (["--processes", "3", "--memory", "1GiB"], ["--processes", "1000", "--memory", "512MiB"]):
        _, _, err = _run(capsys, "run", program(text), *limits)
        notes = [line for line in err.splitlines() if line.startswith("note: RuntimeError: can't start new thread: ")]
        assert len(notes) == 2
        assert "--processes raises it" in notes[0]
        assert "--memory raises it" in notes[1]


@pytest.mark.parametrize(
    "text",
    [
        "import os\nr, w = os.pipe()\nos.set_blocking(r, False)\nos.read(r, 1)",
        "def fork():\n    import os\n    r, w = os.pipe()\n    os.set_blocking(r, False)\n    os.read(r, 1)\nfork()",
        "raise SystemExit('MemoryError budget used up')",
        "raise SystemExit(7)",
        "raise ValueError('MemoryError')",
        "import sys; print('MemoryError', file=sys.stderr)",
        "try:\n    bytearray(1 << 40)\nexcept MemoryError:\n    raise SystemExit(3)",
        "open('/none')",
        "import os; os.kill(os.getpid(), 9)",
        "while True: pass",
    ],
)
def test_where_no_limit_may_have_been_met_none_is_named(program, capsys, text):
    _, _, err = _run(capsys, "run", program(text), "--wall", "3s" if "while" in text else "60s")
    assert "note:" not in err


def test_json_has_texts_and_the_value(program, capsys):
    text = "print('ü'); RESULT.write(str(ARGUMENT[0] + 1))"
    code, out, _ = _run(capsys, "run", program(text), "--argument", "[41]", "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["stdout"], document["value"], document["ending"]) == ("ü\n", 42, "exited")


def test_json_says_why_a_result_is_no_value(program, capsys):
    _, out, _ = _run(capsys, "run", program("RESULT.write('[1')"), "--json")
    document = json.loads(out)
    assert "value" not in document
    assert "not one JSON value" in document["value_error"]


def test_what_steers_a_terminal_is_not_passed_on(program, capsysbinary):
    with pytest.raises(SystemExit):
        main(["sandbox", "run", str(program("print('\\x1b]0;title\\x07 \\x1b[2J'); print('\\udc9b')"))])
    said = capsysbinary.readouterr()
    assert b"\x1b" not in said.out
    assert b"\x1b" not in said.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--argument", "[1"], "not JSON"),
        (["--wall", "soon"], "no duration"),
        (["--memory", "much"], "no size"),
        (["--memory", "1MiB"], "memory_bytes"),
        (["--processes", "0"], "processes"),
        (["--hash-seed", "-1"], "hash_seed"),
    ],
)
def test_options_that_cannot_be_kept_are_one_line(program, capsys, options, reason):
    code, out, err = _run(capsys, "run", program("pass"), *options)
    assert (code, out) == (2, "")
    assert reason in err
    assert err.count("\n") == 1


def test_an_interrupted_run_says_so(program):
    path = program("import time; time.sleep(60)")
    call = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from wholestack.cli.main import main; main(sys.argv[1:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", call, "sandbox", "run", path, "--wall", "60s"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not descendants(process.pid) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == (b"", b"wholestack: interrupted\n")
    assert process.returncode == 130


def test_a_program_that_is_not_there_is_one_line(tmp_path, capsys):
    code, _, err = _run(capsys, "run", tmp_path / "none.py")
    assert code == 2
    assert "none.py" in err


def test_probe_says_what_stands_between(capsys, monkeypatch):
    code, out, _ = _run(capsys, "probe")
    assert (code, "bubblewrap" in out) == (0, True)
    monkeypatch.setattr("shutil.which", lambda name: None)
    code, out, _ = _run(capsys, "probe", "--json")
    assert code == 3
    assert json.loads(out)["isolated"] is False
    assert "bwrap is not installed" in json.loads(out)["reason"]


def test_without_isolation_a_program_runs_only_when_told_and_says_so(program, capsys, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    path = program("print('ran')")
    code, out, err = _run(capsys, "run", path)
    assert (code, out) == (2, "")
    assert "cannot be isolated" in err
    code, out, err = _run(capsys, "run", path, "--without-isolation")
    assert (code, out) == (0, "ran\n")
    assert "not isolated" in err


def test_with_isolation_the_switch_changes_nothing(program, capsys):
    _, _, err = _run(capsys, "run", program("pass"), "--without-isolation")
    assert "isolated by bubblewrap" in err
    assert "not isolated" not in err


@pytest.mark.parametrize(
    ("text", "size"),
    [("1000", 1000), ("2kB", 2000), ("1.5 MB", 1_500_000), ("3MiB", 3 << 20), ("1g", 10**9), ("1GiB", 1 << 30)],
)
def test_sizes_are_read_as_people_write_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1MB", "1TB", "MB", "1ib", "1e9", "nan"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(InputError, match=r"no size|no room"):
        parse_size(text)
