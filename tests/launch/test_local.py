"""The local engine: the conformance suite, and what only real processes can show."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import survivors
from wholestack.errors import EngineError, InputError
from wholestack.launch import Job, JobState, Limits
from wholestack.launch.local import LocalEngine
from wholestack.processes import descendants
from wholestack.testing.engines import EngineConformance, collect


class TestConformance(EngineConformance):
    @pytest.fixture(autouse=True)
    def _keep(self, make_engine):
        self._make = make_engine

    def make_engine(self, folder):
        return self._make()


@pytest.fixture
def run(engine: LocalEngine, tmp_path: Path) -> Callable[..., JobState]:
    def run_one(entry, *, limits=None, environment=None, **arguments):
        if isinstance(entry, str):
            entry = f"launch_jobs:{entry}"
        job = Job(
            name="job",
            entry=entry,
            arguments=arguments,
            folder=tmp_path / "job",
            limits=limits or Limits(),
            environment=environment or {},
        )
        engine.start(job)
        (state,) = collect(engine, 1).values()
        return state

    return run_one


def test_a_command_runs_with_its_own_exit_code_and_output(run):
    state = run(("sh", "-c", "echo out; echo oops >&2; exit 3"))
    assert (state.outcome, state.exit_code, state.detail) == ("failed", 3, "exit code 3: oops")
    assert Path(state.stdout).read_text() == "out\n"
    assert Path(state.stderr).read_text() == "oops\n"


def test_a_command_that_is_not_there_fails_and_says_so(run):
    state = run(("no-such-program-here",))
    assert (state.outcome, state.exit_code) == ("failed", 127)
    assert "no-such-program-here" in state.detail


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1"])
def test_a_signal_from_elsewhere_is_killed_not_failed(run, name):
    state = run("kill_own", number=int(signal.Signals[name]))
    assert (state.outcome, state.signal, state.exit_code) == ("killed", name, None)


def test_a_worker_killed_from_outside_is_killed(engine, fifo, tmp_path):
    job_id = engine.start(Job(name="up", entry="launch_jobs:up", arguments={"fifo": fifo.path}, folder=tmp_path / "up"))
    handles = fifo.handles(1)
    os.kill(next(iter(handles)), signal.SIGKILL)
    assert collect(engine, 1)[job_id].outcome == "killed"
    assert survivors(handles, 10.0) == []


def test_a_crash_is_the_jobs_own_failure(run):
    state = run("kill_own", number=int(signal.SIGSEGV))
    assert (state.outcome, state.signal) == ("failed", "SIGSEGV")


def test_a_paused_worker_still_times_out(run):
    state = run("stop_self", limits=Limits(wall_s=0.3, grace_s=0.2))
    assert state.outcome == "timeout"


def test_sigterm_ignored_ends_with_sigkill_after_the_grace(engine, fifo, tmp_path):
    job = Job(
        name="deaf",
        entry="launch_jobs:ignore_sigterm",
        arguments={"fifo": fifo.path},
        folder=tmp_path / "job",
        limits=Limits(grace_s=0.1),
    )
    job_id = engine.start(job)
    handles = fifo.handles(1)
    engine.cancel(job_id)
    state = collect(engine, 1)[job_id]
    assert (state.outcome, state.signal) == ("cancelled", "SIGKILL")
    assert survivors(handles, 10.0) == []


@pytest.mark.parametrize("function", ["daemonise", "spawn"])
def test_what_outlives_a_job_is_ended_with_it_and_counted(engine, fifo, tmp_path, function):
    job = Job(name=function, entry=f"launch_jobs:{function}", arguments={"fifo": fifo.path}, folder=tmp_path / "job")
    job_id = engine.start(job)
    handles = fifo.handles(2)
    engine.cancel(job_id)
    assert collect(engine, 1)[job_id].leftovers >= 1
    assert survivors(handles, 10.0) == []


def test_a_process_that_forks_and_exits_for_ever_does_not_outrun_its_end(run):
    state = run("fork_chain", limits=Limits(wall_s=0.5, grace_s=0.1))
    assert state.outcome in ("done", "timeout")
    assert state.leftovers >= 1


def test_the_kernels_out_of_memory_killer_is_not_mistaken_for_a_stranger(run):
    group = Path("/sys/fs/cgroup/memory") / f"wholestack-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(60 << 20))
    except OSError:
        pytest.skip("no memory cgroup can be made here")
    try:
        hog = "b = [bytearray(b'x' * 2**20) for _ in range(300)]"
        state = run(("sh", "-c", f'echo $$ > {group}/cgroup.procs; exec {sys.executable} -c "{hog}"'))
        assert (state.outcome, state.signal) == ("out_of_memory", "SIGKILL")
        assert "kernel" in state.detail
    finally:
        group.rmdir()


def test_a_job_that_exits_with_0_while_a_child_lives_is_done_and_the_child_ends(engine, fifo, tmp_path):
    arguments = {"fifo": fifo.path, "stay": False}
    job_id = engine.start(Job(name="leaves", entry="launch_jobs:daemonise", arguments=arguments, folder=tmp_path / "j"))
    state = collect(engine, 1)[job_id]
    assert (state.outcome, state.leftovers) == ("done", 1)


def test_a_shells_background_child_that_holds_the_output_does_not_hold_up_the_end(run):
    state = run(("sh", "-c", "sleep 1000 & echo done"))
    assert (state.outcome, state.leftovers) == ("done", 1)
    assert Path(state.stdout).read_text() == "done\n"


def test_memory_of_a_child_counts(run):
    state = run("hog_in_child", limits=Limits(resident_bytes=300 << 20), size_bytes=400 << 20)
    assert state.outcome == "out_of_memory"


def test_memory_shared_by_forked_children_counts_once(run):
    """Resident sizes add up to over 800 MiB, but there are only about 200."""
    limits = Limits(resident_bytes=500 << 20)
    state = run("fork_holding", limits=limits, size_bytes=160 << 20, children=4, seconds=0.6)
    assert state.outcome == "done"
    assert 160 << 20 <= state.peak_resident_bytes <= 500 << 20


def test_a_flood_is_cut_to_its_cap_with_head_tail_and_count(run):
    state = run("flood", limits=Limits(log_bytes=10_000), lines=50_000)
    text = Path(state.stdout).read_text()
    total = sum(len(f"line {number}\n") for number in range(50_000))
    assert state.outcome == "done"
    assert text.startswith("line 0\nline 1\n")
    assert text.endswith("line 49998\nline 49999\n")
    assert state.dropped_log_bytes == total - 10_000
    assert f"[{total - 10_000} bytes left out]" in text


def test_a_worker_may_close_its_output(run):
    state = run("close_stdout_then", code=4)
    assert (state.outcome, state.detail) == ("failed", "exit code 4: still here")


def test_cpu_seconds_include_children_that_were_waited_for(run):
    state = run("burn", seconds=0.3)
    assert state.outcome == "done"
    assert 0.3 <= state.cpu_s <= 10


def test_threads_and_exit_functions_finish_before_the_job_ends(run, tmp_path):
    out = tmp_path / "out"
    assert run("thread_then_file", path=str(out)).outcome == "done"
    assert out.read_text() == "thread atexit"


def test_a_worker_sees_its_threads_environment_and_mark_and_none_of_our_files(run, tmp_path, token):
    out = tmp_path / "world.json"
    state = run("report_world", limits=Limits(threads=3), environment={"EXTRA": "yes"}, path=str(out))
    world = json.loads(out.read_text())
    assert world["threads"] == {"OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "3"}
    assert world["extra"] == "yes"
    assert world["mark"] == f"{token}/{state.id}"
    assert world["is_leader"]
    assert [file for file in world["files"] if "socket" in file or "pipe" in file or "pidfd" in file] == []


def test_a_command_is_not_charged_with_the_supervisors_memory(make_engine, tmp_path):
    engine = make_engine(preload=["numpy", "scipy.optimize"])
    engine.start(Job(name="sleep", entry=("sleep", "0.4"), folder=tmp_path / "job"))
    (state,) = collect(engine, 1).values()
    assert state.peak_resident_bytes < 20 << 20


def test_a_module_that_cannot_be_preloaded_is_named(make_engine, tmp_path):
    engine = make_engine(preload=["no_such_module_here"])
    with pytest.raises(EngineError, match="no_such_module_here"):
        engine.poll(60.0)


def test_a_module_that_starts_a_thread_makes_workers_start_cold_and_says_so(make_engine, tmp_path, monkeypatch):
    (tmp_path / "threaded.py").write_text("import threading\nthreading.Thread(target=threading.Event().wait).start()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    engine = make_engine(preload=["threaded"])
    out = tmp_path / "world.json"
    engine.start(Job(name="j", entry="launch_jobs:report_world", arguments={"path": str(out)}, folder=tmp_path / "job"))
    (state,) = collect(engine, 1).values()
    assert state.outcome == "done", state.last_lines
    assert "1 threads" in engine.notes[0]
    assert json.loads(out.read_text())["torch_threads"] is None


def test_many_states_that_nobody_polls_hold_nothing_up(engine, tmp_path):
    """Far more than the socket takes."""
    ids = [
        engine.start(Job(name="j", entry="json:dumps", arguments={"obj": "x" * 1000}, folder=tmp_path / "job"))
        for _ in range(60)
    ]
    assert set(collect(engine, len(ids))) == set(ids)


def test_nothing_but_the_supervisor_is_left_once_the_jobs_have_ended(engine, run):
    run(("true",))
    assert descendants(engine.supervisor_pid) == []


def test_a_bad_token_is_refused(tmp_path):
    with pytest.raises(InputError, match="a/b"):
        LocalEngine(tmp_path, token="a/b")


def test_where_processes_cannot_be_followed_the_engine_refuses(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(EngineError, match="needs Linux"):
        LocalEngine(tmp_path, token="t")
