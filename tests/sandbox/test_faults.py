"""What goes wrong on our side of the wall: interrupted, killed while starting, short of descriptors, a bad folder."""

import contextlib
import os
import secrets
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wholestack.errors import SandboxError
from wholestack.sandbox import Ending, Isolation, Limits, Sandbox
from wholestack.sandbox.image import image_of_this_interpreter

SLEEPER = "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(1000)', ARGUMENT])"
PATH = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.fixture
def word() -> str:
    """Marks processes of one test."""
    return f"word-{secrets.token_hex(8)}"


def seed() -> int:
    """A hash seed drawn at random stands in the container's command line and marks it too."""
    return 1_000_000_000 + secrets.randbelow(3_000_000_000)


def test_a_run_that_is_ended_while_it_starts_leaves_nothing(isolated, processes_named, word):
    mark = seed()
    for milliseconds in (*range(1, 30), 35, 40, 50, 60):
        outcome = isolated.run(SLEEPER, argument=word, hash_seed=mark, limits=Limits(wall_s=milliseconds / 1000))
        assert outcome.ending is Ending.TIMED_OUT
    assert processes_named(str(mark)) == processes_named(word) == []


STARTER = """
import os, sys
from wholestack.sandbox import Limits, Sandbox

sandbox = Sandbox.open()
print("opened", flush=True)
program, word = os.environ["PROGRAM"], os.environ["WORD"]
sandbox.run(program, argument=word, hash_seed=int(sys.argv[1]), limits=Limits(wall_s=1000.0))
"""


def test_an_owner_that_is_killed_while_a_run_starts_leaves_nothing(processes_named, word):
    mark = seed()
    environment = {**os.environ, **PATH, "WORD": word, "PROGRAM": SLEEPER}
    for milliseconds in (0, 2, 4, 6, 9, 12, 16, 25, 50):
        with subprocess.Popen(
            [sys.executable, "-c", STARTER, str(mark)], env=environment, stdout=subprocess.PIPE
        ) as owner:
            assert owner.stdout is not None
            assert owner.stdout.readline() == b"opened\n"
            time.sleep(milliseconds / 1000)
            owner.kill()
        assert all(map(ends, {*processes_named(str(mark)), *processes_named(word)}))
    assert processes_named(str(mark)) == processes_named(word) == []


FORKING = """
import os, sys, threading, time
from wholestack.sandbox import Limits, Sandbox
from wholestack.sandbox.image import default_folder, image_of_this_interpreter
from wholestack.sandbox.plain import PlainProcess

image = image_of_this_interpreter(default_folder())
sandbox = Sandbox.open() if sys.argv[1] == "isolated" else Sandbox(PlainProcess(image))
program, word = os.environ["PROGRAM"], os.environ["WORD"]
run = lambda: sandbox.run(program, argument=word, hash_seed=int(sys.argv[2]), limits=Limits(wall_s=1000.0))
threading.Thread(target=run, daemon=True).start()
sys.stdin.readline()
child = os.fork()
if child == 0:
    time.sleep(1000)
print(child, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("kind", ["isolated", "plain"])
def test_a_forked_child_does_not_keep_a_run_alive_whose_owner_was_killed(processes_named, word, kind):
    mark = seed()
    environment = {**os.environ, **PATH, "WORD": word, "PROGRAM": SLEEPER}
    with subprocess.Popen(
        [sys.executable, "-c", FORKING, kind, str(mark)],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as owner:  # fmt: skip
        assert owner.stdin is not None
        assert owner.stdout is not None
        while not processes_named(word):
            assert owner.poll() is None
            time.sleep(0.01)
        owner.stdin.write(b"\n")
        owner.stdin.flush()
        child = int(owner.stdout.readline())
        owner.kill()
        try:
            ours = {*processes_named(str(mark)), *processes_named(word)} - {owner.pid, child}
            assert all(map(ends, ours))
        finally:
            os.kill(child, signal.SIGKILL)


CLOSED = """
import os, sys
from wholestack.sandbox import Limits, Sandbox

sandbox = Sandbox.open()
answer = os.dup(1)
for descriptor in map(int, sys.argv[1].split(",")):
    os.close(descriptor)
outcome = sandbox.run("print(8); RESULT.write('9')", limits=Limits(wall_s=20.0))
os.write(answer, repr((outcome.stdout, outcome.stderr, outcome.result)).encode())
"""


@pytest.mark.parametrize("closed", ["0", "1", "0,1", "1,2", "0,2", "0,1,2"])
def test_an_owner_without_standard_streams_can_run_programs(closed):
    done = subprocess.run(
        [sys.executable, "-c", CLOSED, closed], env={**os.environ, **PATH}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout == b"(b'8\\n', b'', b'9')"


HALF_STARTED = """
import sys
from pathlib import Path
from wholestack.sandbox import Limits
from wholestack.sandbox.bubblewrap import Bubblewrap
from wholestack.sandbox.watching import Watch

container = Bubblewrap(Path("/"))
Watch(container, b"", limits=Limits(wall_s=1000.0), hash_seed=int(sys.argv[1]), folder=None).follow()
"""


@pytest.mark.parametrize("killed", ["the owner", "the container"])
def test_a_first_process_that_was_not_yet_let_go_on_is_not_left_behind(open_folder, processes_named, word, killed):
    bwrap = open_folder / "bwrap"
    # At this point the real one is for some microseconds.
    bwrap.write_text(f"#!/bin/sh\nsh -c 'sleep 1000; :' {word} &\nsleep 1000\n")
    bwrap.chmod(0o755)
    environment = {**os.environ, **PATH, "PATH": f"{open_folder}:{os.environ['PATH']}"}
    with subprocess.Popen([sys.executable, "-c", HALF_STARTED, str(seed())], env=environment) as owner:
        while not (first := processes_named(word)):
            assert owner.poll() is None
            time.sleep(0.01)
        if killed == "the owner":
            owner.kill()
        else:
            os.kill(parent_of(first[0]), signal.SIGKILL)
    assert all(map(ends, first))


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def ends(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            return bool(select.select([handle], [], [], 30.0)[0])
        finally:
            os.close(handle)
    return True


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_a_run_that_is_interrupted_is_ended_at_once(sandbox, processes_named, word, error):
    main = threading.main_thread().ident

    def interrupt() -> None:
        while not processes_named(word):
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGUSR1)

    def fail(*_: object) -> None:
        raise error

    before = signal.signal(signal.SIGUSR1, fail)
    waiter = threading.Thread(target=interrupt)
    waiter.start()
    try:
        # What the program would need to end by itself is more than this test may take.
        with pytest.raises(error):
            sandbox.run(SLEEPER, argument=word, limits=Limits(wall_s=1000.0))
    finally:
        signal.signal(signal.SIGUSR1, before)
        waiter.join()
    assert processes_named(word) == []


SHORT_OF_DESCRIPTORS = """
import os, resource
from wholestack.errors import SandboxError
from wholestack.sandbox import Sandbox

sandbox = Sandbox.open()
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (60, hard))
refused, ran = [], 0
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
before = len(held)
for free in range(16):
    for _ in range(free):
        os.close(held.pop())
    try:
        ran += sandbox.run("print(1)").ok
    except SandboxError as error:
        refused.append(error.message)
    for _ in range(free):
        held.append(os.open("/dev/null", os.O_RDONLY))
print(ran > 0, len(held) == before, {"Too many open files" in text for text in refused})
"""


def test_a_process_without_free_descriptors_is_told_so_and_loses_none():
    done = subprocess.run(
        [sys.executable, "-c", SHORT_OF_DESCRIPTORS],
        check=False,
        env={**os.environ, **PATH},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("True True {True}\n", "")


def test_many_open_files_of_ours_are_not_seen_inside(isolated):
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        program = """
import os
seen = []
for number in range(4000):
    try:
        os.fstat(number)
        seen.append(number)
    except OSError:
        pass
print(seen)
"""
        assert isolated.run(program).stdout == b"[0, 1, 2, 3]\n"
    finally:
        for descriptor in held:
            os.close(descriptor)


@pytest.mark.heavy
def test_many_runs_leave_nothing(sandbox, own_temporary_folder):
    def held() -> tuple[int, int, int]:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return len(os.listdir("/proc/self/fd")), len(children), len(list(own_temporary_folder.iterdir()))

    sandbox.run("")
    before = held()
    for _ in range(5 if sandbox.isolation is Isolation.PROCESS else 40):
        assert sandbox.run("print(1)").stdout == b"1\n"
    assert held() == before


@pytest.mark.heavy
def test_runs_beside_each_other_do_not_mix(isolated):
    def run(number: int) -> bool:
        outcome = isolated.run("import time; print(ARGUMENT); time.sleep(0.05); RESULT.write('1')", argument=number)
        return outcome.stdout == b"%d\n" % number and outcome.value() == 1

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(40)))


def test_of_what_is_in_the_sandbox_the_kernel_ends_first_when_memory_is_short(isolated, processes_named, word):
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(isolated.run, SLEEPER, argument=word, limits=Limits(wall_s=2.0))
        while not (pids := processes_named(word)):
            assert not run.done()
            time.sleep(0.01)
        assert Path(f"/proc/{pids[0]}/oom_score_adj").read_text() == "1000\n"
        assert run.result().ending is Ending.TIMED_OUT


@pytest.fixture
def making(tmp_path) -> Path:
    """A folder under one that other users can pass, with a umask that lets nobody else in."""
    os.chmod(tmp_path, 0o755)
    before = os.umask(0o077)
    yield tmp_path / "cache" / "images"
    os.umask(before)


def test_the_image_can_be_read_whatever_the_umask_is(making):
    image = image_of_this_interpreter(making)
    for place in (making.parent, making, image, image / "python/bin/python3", image / "dev/null"):
        assert stat.S_IMODE(place.stat().st_mode) & 0o044 == 0o044


def test_made_twice_at_the_same_time_there_is_one_image(making):
    with ThreadPoolExecutor(2) as pool:
        images = list(pool.map(image_of_this_interpreter, [making, making]))
    assert images[0] == images[1]
    assert list(making.iterdir()) == [images[0]]


@pytest.mark.parametrize("trick", ["link", "owner", "mode", "folder's owner", "folder's mode", "file"])
def test_an_image_that_others_can_change_is_not_trusted(making, image, trick):
    if "owner" in trick and os.geteuid() != 0:
        pytest.skip("giving a folder away needs root")
    making.mkdir(parents=True)
    target = making / image.name
    if trick == "link":
        target.symlink_to("/")
    elif trick == "file":
        target.touch()
    else:
        target.mkdir()
        place = making if trick.startswith("folder") else target
        if trick.endswith("owner"):
            os.chown(place, 12345, 12345)
        else:
            place.chmod(0o777)
    with pytest.raises(SandboxError, match="not trusted"):
        Sandbox.open(folder=making)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SandboxError, match="cannot be made"):
        Sandbox.open(folder=tmp_path / "file" / "images")


AS_USER = """
import json, os, sys
from pathlib import Path
from wholestack.sandbox import Limits, Sandbox

sandbox = Sandbox.open(folder=Path(sys.argv[1]))
limits = Limits(wall_s=30.0, memory_bytes=128 << 20, processes=5)
programs = json.load(sys.stdin)
print(json.dumps([sandbox.isolation, os.getuid(), *[
    [outcome.ending, outcome.stdout.decode()] for outcome in (sandbox.run(each, limits=limits) for each in programs)
]]))
"""
PROGRAMS = [
    "import os; print(os.getuid(), os.path.exists('/etc'))",
    "n = 0\nwhile True:\n    open(str(n), 'w').close(); n += 1",
    "import ctypes, os, time\nctypes.CDLL(None).prctl(4, 0)\nfor _ in range(3):\n    if os.fork() == 0: break\n"
    "held = bytearray(60 << 20)\nfor place in range(0, len(held), 4096): held[place] = 1\ntime.sleep(1000)",
    "import os, time\nmade = 0\ntry:\n    while True:\n        if os.fork() == 0: time.sleep(1000)\n"
    "        made += 1\nexcept OSError: print(made, flush=True)\nos._exit(0)",
]


@pytest.mark.root
def test_an_ordinary_user_gets_the_same_caps(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root; the other tests ran as an ordinary one")
    interpreter = readable_interpreter()
    if interpreter is None:
        pytest.skip("no interpreter of this version that another user can run")
    import msgspec

    import wholestack

    tree = Path("/tmp") / f"wholestack-test-{secrets.token_hex(8)}"
    try:
        for package in (wholestack, msgspec):
            subprocess.run(["mkdir", "-p", tree], check=True)
            subprocess.run(["cp", "-r", Path(package.__file__).parent, tree], check=True)
        home = tree / "home"
        home.mkdir()
        os.chown(home, 54321, 54321)
        subprocess.run(["chmod", "-R", "a+rX", tree], check=True)
        done = subprocess.run(
            [interpreter, "-c", AS_USER, str(home / "images")],
            check=False,
            input=msgspec.json.encode(PROGRAMS),
            capture_output=True,
            env={"PYTHONPATH": str(tree), "PATH": os.environ["PATH"]},
            user=54321,
            group=54321,
            extra_groups=[],
        )
        assert done.stderr == b""
        assert msgspec.json.decode(done.stdout) == [
            Isolation.BUBBLEWRAP,
            54321,
            [Ending.EXITED, "65534 False\n"],
            [Ending.FILES_EXCEEDED, ""],
            [Ending.MEMORY_EXCEEDED, ""],
            [Ending.EXITED, "4\n"],
        ]
    finally:
        subprocess.run(["rm", "-rf", tree], check=True)


def readable_interpreter() -> str | None:
    version = "import sys; print(sys.version_info[:2])"
    for candidate in (Path(sys.executable).resolve(), Path("/usr/bin/python3")):
        with contextlib.suppress(OSError):
            done = subprocess.run(
                [candidate, "-c", version],
                check=False,
                capture_output=True,
                text=True,
                user=54321,
                group=54321,
                extra_groups=[],
            )
            if done.stdout.strip() == str(sys.version_info[:2]):
                return str(candidate)
    return None
