"""Batches on this machine: what is left behind, and shells that are none."""

import asyncio
import os
import shutil
import subprocess

import pytest

from tests.remote.processes import left_of, marked
from wholestack.remote.batch import Command
from wholestack.remote.host import Host
from wholestack.remote.local import LocalRemote

HERE = Host(name="here")
IN_A_SESSION_OF_ITS_OWN = 'while [ "$(cut -d " " -f 6 /proc/$!/stat)" != $! ]; do :; done; '
HOLDS = f"setsid sleep 1000 & {IN_A_SESSION_OF_ITS_OWN}"
ESCAPES = "setsid sh -c 'trap \"\" TERM; while :; do sleep 1000; done' >/dev/null 2>&1 & " + IN_A_SESSION_OF_ITS_OWN


@pytest.fixture
def mark():
    return f"TEST_MARK={os.urandom(8).hex()}"


def run(commands, deadline_s=60.0, **kwargs):
    return asyncio.run(LocalRemote(**kwargs).run(HERE, commands, deadline_s=deadline_s))


def test_nothing_is_left_behind_even_of_what_detaches_itself(mark):
    commands = [
        Command(name="daemon", shell=f"export {mark}; {ESCAPES} echo up"),
        Command(name="child", shell=f"export {mark}; sleep 1000 & echo up"),
        Command(name="stuck", shell=f"export {mark}; trap '' TERM; while :; do sleep 1000; done", limit_s=0.3),
    ]
    reply = run(commands)
    assert {name: output.ending for name, output in reply.outputs.items()} == {
        "daemon": "ended",
        "child": "ended",
        "stuck": "timed_out",
    }
    assert left_of(mark) == []


def test_what_holds_its_pipe_from_afar_is_ended_at_the_end_of_all_and_its_output_kept(mark):
    commands = [Command(name="holder", shell=f"export {mark}; {HOLDS} echo up", limit_s=1.0)]
    reply = run(commands)
    assert reply.outputs["holder"].stdout == b"up\n"
    assert reply.outputs["holder"].ending == "ended"
    assert left_of(mark) == []


def test_after_the_deadline_nothing_is_left(mark):
    commands = [
        Command(name="long", shell=f"export {mark}; {ESCAPES} trap '' TERM; sleep 1000; sleep 1000", limit_s=900.0)
    ]
    reply = run(commands, deadline_s=1.0)
    assert reply.trouble == "timed_out"
    assert left_of(mark) == []


def test_after_cancelling_nothing_is_left(mark):
    async def cancelled():
        commands = [Command(name="long", shell=f"export {mark}; {ESCAPES} sleep 1000", limit_s=900.0)]
        task = asyncio.create_task(LocalRemote().run(HERE, commands, deadline_s=900.0))
        while not marked(mark):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert left_of(mark) == []


@pytest.mark.parametrize(
    ("shell", "trouble", "says"),
    [
        (("/no/such/shell",), "refused", "No such file"),
        (("sh", "-c", "echo no thanks"), "protocol", "no thanks"),
        (("sh", "-c", "exec yes"), "protocol", "without end"),
        (("sh", "-c", "exec sleep 1000"), "timed_out", "did not start"),
        (("sh", "-c", "read line; kill -9 $$"), "protocol", "did not run"),
    ],
)
def test_a_shell_that_is_none_is_told(shell, trouble, says):
    reply = run([Command(name="a", shell="echo a")], deadline_s=1.5 if trouble == "timed_out" else 60.0, shell=shell)
    assert reply.trouble == trouble
    assert says in reply.detail
    assert reply.outputs["a"].ending == "not_run"


def test_noise_of_a_profile_does_not_matter():
    shell = ("sh", "-c", "echo Welcome; printf 'no newline'; exec sh -s")
    reply = run([Command(name="a", shell="echo a")], shell=shell)
    assert (reply.trouble, reply.outputs["a"].stdout) == (None, b"a\n")


@pytest.mark.root
def test_another_user_than_root_starts_nothing_that_needs_root_and_leaves_nothing(mark):
    shell = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-s")
    if os.getuid() != 0 or shutil.which(shell[0]) is None:
        pytest.skip("needs root and setpriv to become somebody else")
    commands = [
        Command(name="rooted", shell="echo ran", needs_root=True),
        Command(name="who", shell="id -u"),
        Command(name="daemon", shell=f"export {mark}; {ESCAPES} echo up"),
        Command(name="stuck", shell=f"export {mark}; trap '' TERM; while :; do sleep 1000; done", limit_s=0.3),
    ]
    outputs = run(commands, shell=shell).outputs
    assert (outputs["rooted"].ending, outputs["who"].stdout) == ("needs_root", b"65534\n")
    assert outputs["stuck"].ending == "timed_out"
    assert left_of(mark) == []


READ_ONLY = "for at in /tmp /var/tmp /dev/shm /run; do mount -t tmpfs -o ro none $at || exit; done; exec sh -s"


@pytest.mark.root
def test_no_room_anywhere_does_not_matter():
    shell = ("unshare", "--mount", "sh", "-c", READ_ONLY)
    tried = subprocess.run([*shell[:-1], READ_ONLY.replace("exec sh -s", ":")], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    commands = [
        Command(name="a", shell="head -c 100000 /dev/zero"),
        Command(name="tmp", shell="touch /tmp/x /dev/shm/x"),
    ]
    outputs = run(commands, shell=shell).outputs
    assert len(outputs["a"].stdout) == 100_000
    assert b"Read-only" in outputs["tmp"].stderr


def test_a_limit_of_no_bytes_on_files_does_not_matter():
    shell = ("sh", "-c", "ulimit -f 0; exec sh -s")
    reply = run([Command(name="a", shell="head -c 100000 /dev/zero")], shell=shell)
    assert len(reply.outputs["a"].stdout) == 100_000
