"""Processes: memory of a tree, and marks."""

import os
import socket
import subprocess
import sys

from wholestack import processes
from wholestack.processes import MARK, MemoryGauge, descendants, marked_processes, resident_bytes


def test_a_process_knows_its_own_size_and_a_gone_one_has_none():
    assert resident_bytes(os.getpid()) > 1 << 20
    assert resident_bytes(2**22 + 1) == 0


def test_proportional_size_is_at_most_the_resident_size():
    assert 0 < processes.proportional_bytes(os.getpid()) <= resident_bytes(os.getpid()) * 1.1


def test_a_tree_counts_shared_pages_once_and_never_less_than_its_largest(monkeypatch):
    monkeypatch.setattr(processes, "resident_bytes", {1: 100, 2: 90}.get)
    monkeypatch.setattr(processes, "proportional_bytes", {1: 55, 2: 50}.get)
    gauge = MemoryGauge(clock=lambda: 0.0)
    assert gauge.measure([1]) == 100
    assert gauge.measure([1, 2]) == 105
    assert gauge.peak_bytes == 105


def test_the_costly_measurement_is_taken_a_tenth_of_the_time(monkeypatch):
    calls = []
    ticks = iter(range(1000))
    monkeypatch.setattr(processes, "resident_bytes", {1: 100, 2: 90}.get)
    monkeypatch.setattr(processes, "proportional_bytes", lambda pid: calls.append(pid) or 10)
    gauge = MemoryGauge(clock=lambda: next(ticks))
    for _ in range(100):
        gauge.measure([1, 2])
    assert 2 * 5 <= len(calls) <= 2 * 20


def test_the_kernels_log_tells_who_was_killed_for_memory_and_when():
    lines = [
        b"6,1,5000000,-;usb 1-1: new device\n",
        b"3,2,6000000,-;Memory cgroup out of memory: Killed process 41 (python3) total-vm:71932kB, anon-rss:61128kB\n",
        b"3,3,7000000,-,caller=T1;Out of memory: Killed process 42 (a (b) c) total-vm:1kB\n",
        b"6,4,8000000,-;somebody said: Killed process 43 (x)\n",
    ]
    assert list(read_records(lines, 0.0)) == [41, 42]
    assert list(read_records(lines, 6.5)) == [42]


def read_records(lines, since_s):
    """A socket of packets hands out one record a read, as the kernel does."""
    writer, reader = socket.socketpair(type=socket.SOCK_SEQPACKET)
    with writer, reader:
        for line in lines:
            writer.send(line)
        reader.setblocking(False)
        yield from processes._killed_for_memory(reader.fileno(), since_s)


def test_descendants_and_marks_are_found(token):
    code = "import subprocess, sys; subprocess.Popen(['sleep', '1000']); print('up', flush=True); sys.stdin.read()"
    environment = {**os.environ, MARK: f"{token}/job"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdout.readline() == b"up\n"
        (sleeper,) = descendants(child.pid)
        assert {child.pid, sleeper} <= set(descendants(os.getpid()))
        assert set(marked_processes(token)) == {child.pid, sleeper}
        assert processes.end_leftovers(token) >= 1
        assert child.wait() == -9


def test_the_caller_is_spared_though_it_carries_the_token(token):
    code = f"from wholestack.processes import end_leftovers; print(end_leftovers({token!r}))"
    environment = {**os.environ, MARK: token}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout == b"0\n"
