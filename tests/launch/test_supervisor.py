"""Whatever is killed, nothing stays behind."""

import contextlib
import json
import os
import signal
from pathlib import Path

import pytest

from conftest import survivors
from wholestack.launch import Job, Limits
from wholestack.processes import descendants, end_leftovers, marked_processes
from wholestack.testing.engines import collect

# Function, and how many processes it brings up.
NASTY = {"up": 1, "ignore_sigterm": 1, "daemonise": 2, "spawn": 2}
ALL = sum(NASTY.values())


def named(pids, name):
    found = []
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                found.append(pid)
        except OSError:
            continue
    return found


def job(function, fifo, tmp_path):
    return Job(
        name=function, entry=f"launch_jobs:{function}", arguments={"fifo": fifo.path}, folder=tmp_path / function
    )


def test_when_the_owner_is_killed_workers_daemons_and_executed_grandchildren_end(own, fifo, token):
    owner = own(*NASTY)
    handles = fifo.handles(ALL)
    owner.kill()
    assert survivors(handles, 10.0) == []
    owner.wait()
    supervisors = {}
    for pid in marked_processes(token):
        with contextlib.suppress(ProcessLookupError):  # it has ended since it was listed
            supervisors[pid] = os.pidfd_open(pid)
    assert survivors(supervisors, 10.0) == []


def test_when_the_supervisor_is_killed_its_keepers_end_everything_and_the_jobs_are_lost(engine, fifo, tmp_path):
    ids = {engine.start(job(name, fifo, tmp_path)) for name in NASTY}
    handles = fifo.handles(ALL)
    os.kill(engine.supervisor_pid, signal.SIGKILL)
    assert survivors(handles, 10.0) == []
    ended = collect(engine, len(ids))
    assert {key: state.outcome for key, state in ended.items()} == dict.fromkeys(ids, "lost")


def test_after_a_killed_supervisor_the_next_job_gets_a_new_one(engine, fifo, tmp_path):
    engine.start(job("up", fifo, tmp_path))
    fifo.handles(1)
    os.kill(engine.supervisor_pid, signal.SIGKILL)
    assert [state.outcome for state in collect(engine, 1).values()] == ["lost"]
    again = engine.start(Job(name="again", entry=("true",), folder=tmp_path / "again"))
    assert collect(engine, 1)[again].outcome == "done"


def test_when_a_keeper_is_killed_its_job_is_lost_and_the_others_go_on(engine, fifo, tmp_path):
    lost = engine.start(job("daemonise", fifo, tmp_path))
    handles = fifo.handles(2)
    (keeper,) = named(descendants(engine.supervisor_pid), "ws-keeper")
    other = engine.start(Job(name="other", entry=("sh", "-c", "read line"), folder=tmp_path / "other"))
    os.kill(keeper, signal.SIGKILL)
    assert survivors(handles, 10.0) == []
    ended = collect(engine, 2)
    assert (ended[lost].outcome, ended[other].outcome) == ("lost", "failed")


def test_leftovers_of_an_engine_that_was_killed_whole_are_found_and_ended(own, fifo, token):
    owner = own("up", "ignore_sigterm", "daemonise")
    handles = fifo.handles(4)
    watchers = [owner.pid, *(pid for pid in marked_processes(token) if pid not in handles)]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in watchers:
            os.kill(pid, number)
    found = end_leftovers(token)
    assert found >= 1
    assert survivors(handles, 10.0) == []
    assert marked_processes(token) == []
    assert end_leftovers(token) == 0


def test_a_token_does_not_reach_the_processes_of_a_longer_one(own, fifo, token):
    own("up")
    fifo.handles(1)
    assert end_leftovers(token[:-1]) == 0
    assert marked_processes(token)


def test_ctrl_c_in_the_terminal_leaves_the_workers_to_their_owner(own, fifo, token):
    owner = own("up", "ignore_sigterm")
    handles = fifo.handles(2)
    os.killpg(owner.pid, signal.SIGINT)
    output, _ = owner.communicate(timeout=60)
    ended = [state for state in map(json.loads, output.splitlines()) if state["outcome"] != "running"]
    assert {state["name"]: state["outcome"] for state in ended} == dict.fromkeys(["up", "ignore_sigterm"], "cancelled")
    assert owner.returncode == 0
    assert survivors(handles, 10.0) == []
    assert marked_processes(token) == []


@pytest.mark.heavy
def test_a_preloaded_torch_is_forked_without_threads_and_computes_with_several(make_engine, tmp_path):
    engine = make_engine(preload=["numpy", "torch"])
    out = tmp_path / "product"
    engine.start(
        Job(
            name="torch",
            entry="launch_jobs:multiply",
            arguments={"size": 256, "path": str(out)},
            folder=tmp_path / "job",
            limits=Limits(threads=2),
        )
    )
    (state,) = collect(engine, 1).values()
    assert state.outcome == "done", state.last_lines
    assert out.read_text() == f"{256**3} 2"
    assert engine.notes == []
