"""Every attack succeeds as an ordinary process; in the sandbox none gets out, none stays, and the next run is clean."""

import contextlib
import ctypes
import fcntl
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.attacks import escapes, network, processes, reading, resources, results, writing
from tests.sandbox.attacks.attack import LIMITS, PRELUDE, Attack, marked, stays
from tests.sandbox.attacks.scene import Scene
from wholestack.errors import RecordError

KINDS = (escapes, network, reading, writing, processes, resources, results)
ATTACKS = [
    pytest.param(attack, id=f"{kind.__name__.rpartition('.')[2]}-{attack.name}")
    for kind in KINDS
    for attack in kind.ATTACKS
]
PATIENCE_S, SHORT_S = 10.0, 1.2
"""How long an ordinary process gets before it is asked to end, if it does not succeed before, and to settle."""
CLEAN = "import builtins, colorsys, os, sys\nprint('clean', os.listdir(), hasattr(sys, 'changed'))"

AS_ORDINARY = """
import json, os, sys
def _start():
    kept = json.load(open(ARGUMENTS[1]))
    return kept, os.fdopen(int(ARGUMENTS[2]), "w")
ARGUMENTS = sys.argv
ARGUMENT, RESULT = _start()
"""


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One at a time on this machine, whose memory some effects are measured by."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    with (shared / "attacks.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with Scene() as scene:
            yield scene
            for process in marked(scene):
                os.kill(int(process.name), signal.SIGKILL)
            Path("/dev/shm", scene.mark).unlink(missing_ok=True)
            remove_kernel_objects(int(scene.mark[1:8], 16))


def remove_kernel_objects(key: int) -> None:
    libc = ctypes.CDLL(None)
    for table, remove in (("shm", libc.shmctl), ("msg", libc.msgctl)):
        for words in map(str.split, Path("/proc/sysvipc", table).read_text().splitlines()[1:]):
            if int(words[0]) == key:
                remove(int(words[1]), 0, None)
    for words in map(str.split, Path("/proc/sysvipc/sem").read_text().splitlines()[1:]):
        if int(words[0]) == key:
            libc.semctl(int(words[1]), 0, 0)


@contextlib.contextmanager
def observed(attack: Attack, scene: Scene) -> Iterator[threading.Event]:
    """Looks for the effect all the time; what it gives is set once the effect was there."""
    seen, done = threading.Event(), threading.Event()

    def look() -> None:
        while not (done.wait(0.02) or seen.is_set()):
            if is_there(attack, scene):
                seen.set()

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield seen
    finally:
        done.set()
        looking.join()


def is_there(attack: Attack, scene: Scene) -> bool:
    """Whether the effect is; a process or file that is not there, or has just gone, has none."""
    try:
        return attack.effect(scene)
    except OSError:
        return False


@pytest.mark.parametrize("attack", ATTACKS)
def test_without_the_sandbox_it_succeeds(attack: Attack, scene: Scene):
    if attack.root and os.geteuid() != 0:
        pytest.skip("succeeds as root only")
    if attack.x86_64 and platform.machine() != "x86_64":
        pytest.skip("written for x86_64")
    with observed(attack, scene) as seen:
        late = run_as_ordinary(attack, scene, seen)
        assert late or seen.is_set()


def run_as_ordinary(attack: Attack, scene: Scene, seen: threading.Event) -> bool:
    """As somebody without a sandbox would: a process, a time limit, a polite end; whatever its children do.

    Returns:
        Whether the effect is there when the run is over.
    """
    (scene.folder / "argument").write_text(json.dumps(scene.argument(inside=False)))
    (scene.folder / "argument").chmod(0o644)
    with contextlib.ExitStack() as opened:
        files = {name: opened.enter_context((scene.folder / name).open("w+b")) for name in ("output", "result")}
        status_source, status = os.pipe()
        opened.callback(os.close, status_source)
        os.set_blocking(status_source, False)
        process = start_as_ordinary(AS_ORDINARY + PRELUDE + attack.program, scene, files, [status])
        os.close(status)
        wait_for(process, PATIENCE_S if attack.effect is not stays else SHORT_S, seen)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.3)
        for name, file in files.items():
            file.seek(0)
            setattr(scene, name, file.read())
        with contextlib.suppress(BlockingIOError):
            scene.seen["status"] = os.read(status_source, 100)
        if attack.reader is not None:
            scene.seen["value"] = read(attack.reader, scene.result)
        if attack.after:
            start_as_ordinary(attack.after, scene, files, []).wait()
            files["output"].seek(0)
            scene.seen["after"] = files["output"].read()
        scene.over = True
        late = is_there(attack, scene)
        process.kill()
        process.wait()
        return late


def wait_for(process: "subprocess.Popen[bytes]", patience_s: float, seen: threading.Event) -> None:
    deadline = time.monotonic() + patience_s
    while process.poll() is None and not seen.wait(0.02) and time.monotonic() < deadline:
        pass


def start_as_ordinary(
    program: str, scene: Scene, files: dict[str, Any], inherited: list[int]
) -> "subprocess.Popen[bytes]":
    interpreter = Path(sys.executable).resolve()  # in an environment of its own it would not look into the home
    arguments = [str(scene.folder / "argument"), str(files["result"].fileno()), scene.secret]
    return subprocess.Popen(
        [interpreter, "-c", program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=files["output"],
        stderr=files["output"],
        cwd=scene.folder / "inner",
        pass_fds=[files["result"].fileno(), scene.inherited, *inherited],
        start_new_session=True,
        env={
            "PYTHONPATH": os.pathsep.join(["", str(scene.folder / "library"), *filter(None, sys.path)]),
            "HOME": str(scene.folder / "home"),
            "SECRET": scene.secret,
        },
    )


def read(reader: Callable[[bytes], Any], result: bytes) -> Any:
    """What it gives, or the kind of error."""
    try:
        return reader(result)
    except RecursionError:
        return RecursionError


@pytest.mark.parametrize("attack", ATTACKS)
def test_in_the_sandbox_it_does_not(attack: Attack, scene: Scene, isolated, monkeypatch):
    monkeypatch.setenv("SECRET", scene.secret)
    monkeypatch.syspath_prepend(scene.folder / "library")
    with observed(attack, scene) as seen:
        outcome = isolated.run(PRELUDE + attack.program, argument=scene.argument(inside=True), limits=LIMITS)
        scene.output, scene.result = outcome.stdout + outcome.stderr, outcome.result
        with contextlib.suppress(RecordError):
            scene.seen["value"] = outcome.value()
        after = isolated.run(attack.after or CLEAN, limits=LIMITS)
        scene.seen["after"] = after.stdout
        scene.over = True
        assert not is_there(attack, scene)
    assert not seen.is_set()
    assert outcome.seconds < LIMITS.wall_s + 10
    assert list(marked(scene)) == []
    assert scene.victim.poll() is None
    if not attack.after:
        assert after.stdout == b"clean ['main.py'] False\n"
