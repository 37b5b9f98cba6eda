"""Throttling from outside."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wholestack.errors import InputError
from wholestack.testing.throttle import duty_cycle, throttled

SLEEPER = [sys.executable, "-c", "input()"]


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_process_runs_for_its_share_of_the_time():
    times = {signal.SIGCONT: 0.0, signal.SIGSTOP: 0.0}
    last = [signal.SIGCONT]
    left = [50]

    def send(pid, number):
        assert pid == 2**22 + 1  # no such process, so no descendants
        last[0] = number

    def wait(seconds):
        times[last[0]] += seconds
        left[0] -= 1
        return left[0] == 0

    duty_cycle(2**22 + 1, share=0.25, period_s=0.1, wait=wait, send=send)
    assert times[signal.SIGCONT] / sum(times.values()) == pytest.approx(0.25)
    assert last[0] == signal.SIGCONT


def test_a_real_process_is_stopped_on_the_way_and_runs_on_after_it():
    with subprocess.Popen(SLEEPER, stdin=subprocess.PIPE) as child:
        with throttled(child.pid, share=0.2, period_s=0.02):
            assert os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT).si_pid == child.pid
        assert state_of(child.pid) in "SRD"
        child.communicate(b"\n")
        assert child.returncode == 0


def test_a_process_that_ends_meanwhile_is_no_error():
    with subprocess.Popen(SLEEPER, stdin=subprocess.PIPE) as child, throttled(child.pid):
        child.communicate(b"\n")
    assert child.returncode == 0


@pytest.mark.parametrize("share", [0, -1, 1.5])
def test_a_share_that_means_nothing_is_refused(share):
    with pytest.raises(InputError, match="share"), throttled(os.getpid(), share=share):
        pass


def test_the_command_refuses_a_bad_share_with_exit_code_2():
    done = subprocess.run(
        [sys.executable, "-m", "wholestack.testing.throttle", str(os.getpid()), "--share", "2"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"share" in done.stderr
