"""Engines that prove, when a test ends, that they left no process behind; and pids told through a fifo."""

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wholestack.launch.local import LocalEngine
from wholestack.processes import marked_processes

HERE = Path(__file__).parent


@pytest.fixture
def make_engine(tmp_path: Path, token: str) -> Iterator[Callable[..., LocalEngine]]:
    made = []

    def make(**settings) -> LocalEngine:
        made.append(LocalEngine(tmp_path / "engine", token=token, **settings))
        return made[-1]

    yield make
    for engine in made:
        engine.close()
    assert marked_processes(token) == []


@pytest.fixture
def engine(make_engine: Callable[..., LocalEngine]) -> LocalEngine:
    return make_engine()


class Fifo:
    """Pids of processes that are up, as handles that show their end."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = str(path)
        self._file = os.open(path, os.O_RDWR)
        self._rest = b""

    def handles(self, count: int) -> dict[int, int]:
        """Wait until so many processes are up; pid to pidfd."""
        pids: list[int] = []
        while len(pids) < count:
            assert select.select([self._file], [], [], 60.0)[0], f"only {len(pids)} of {count} processes came up"
            *lines, self._rest = (self._rest + os.read(self._file, 4096)).split(b"\n")
            pids += map(int, lines)
        return {pid: os.pidfd_open(pid) for pid in pids}

    def close(self) -> None:
        os.close(self._file)


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Fifo]:
    made = Fifo(tmp_path / "fifo")
    yield made
    made.close()


def survivors(handles: dict[int, int], within_s: float) -> list[int]:
    """Pids that are still alive after so long; returns as soon as none is."""
    left = dict(handles)
    poller = select.poll()
    for handle in left.values():
        poller.register(handle, select.POLLIN)
    while left:
        ready = {handle for handle, _ in poller.poll(within_s * 1000)}
        if not ready:
            break
        for handle in ready:
            poller.unregister(handle)
        left = {pid: handle for pid, handle in left.items() if handle not in ready}
    for handle in handles.values():
        os.close(handle)
    return list(left)


@pytest.fixture
def own(tmp_path: Path, token: str, fifo: Fifo) -> Iterator[Callable[..., subprocess.Popen]]:
    """Start a process that owns an engine with such jobs, in a process group of its own."""
    owners = []

    def start(*functions: str) -> subprocess.Popen:
        command = [sys.executable, str(HERE / "launch_owner.py"), str(tmp_path / "owner"), token, fifo.path, *functions]
        owners.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True))
        return owners[-1]

    yield start
    for owner in owners:
        owner.kill()
        owner.communicate()
