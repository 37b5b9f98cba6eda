"""What every engine promises, as tests: subclass :class:`EngineConformance`, say how to make your engine, run pytest.

The jobs are real (an engine that runs jobs runs these functions); a simulated engine is told by :func:`behave` what
they would do. Example::

    class TestMyEngine(EngineConformance):
        def make_engine(self, folder):
            return MyEngine(folder)
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from wholestack.errors import EngineError
from wholestack.launch.failures import blames_job, is_retryable
from wholestack.launch.job import Engine, Job, JobState, Limits, Outcome
from wholestack.launch.simulated import Behaviour
from wholestack.record import from_json, to_json

HERE = "wholestack.testing.engines"
HOG_BYTES = 400 << 20
_PATIENCE_S = 120.0


def print_and_return(text: str) -> None:
    """A job that is done."""
    sys.stdout.write(text + "\n")


def raise_value_error(text: str) -> None:
    """A job that fails with a traceback."""
    raise ValueError(text)


def raise_memory_error() -> None:
    """A job that asks for more than there is, and says so as Python does."""
    raise MemoryError


def leave(code: int) -> None:
    """A job that ends with an exit code of its own."""
    raise SystemExit(code)


def wait_forever() -> None:
    """A job that ends only when it is ended."""
    threading.Event().wait()


def hog(size_bytes: int) -> None:
    """A job that fills memory, page by page, and stays."""
    pages = [bytearray(b"x" * (1 << 20)) for _ in range(size_bytes >> 20)]
    threading.Event().wait()
    del pages


def behave(job: Job) -> Behaviour:
    """What the jobs of this suite do, for a simulated engine."""
    if not isinstance(job.entry, str):
        return Behaviour(wall_s=1.0)
    text = str(job.arguments.get("text", ""))
    failed = Behaviour(wall_s=0.1, exit_code=1)
    return {
        "print_and_return": Behaviour(wall_s=0.1, stdout=f"{text}\n"),
        "raise_value_error": Behaviour(
            wall_s=0.1, exit_code=1, stderr=f"Traceback (most recent call last):\nValueError: {text}\n"
        ),
        "raise_memory_error": Behaviour(wall_s=0.1, exit_code=1, stderr="MemoryError\n"),
        "leave": Behaviour(wall_s=0.1, exit_code=int(str(job.arguments.get("code", 0)))),
        "wait_forever": Behaviour(wall_s=1e9),
        "hog": Behaviour(wall_s=1.0, peak_resident_bytes=HOG_BYTES),
    }.get(job.entry.partition(":")[2], failed)


def collect(engine: Engine, count: int, *, patience_s: float = _PATIENCE_S) -> dict[str, JobState]:
    """Poll until ``count`` jobs have ended; their last states by id.

    Raises:
        TimeoutError: they have not ended in time.
    """
    ended: dict[str, JobState] = {}
    deadline = time.monotonic() + patience_s
    while len(ended) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(ended)} of {count} jobs have ended: {sorted(ended)}")
        for state in engine.poll(1.0):
            if state.ended:
                assert state.id not in ended, f"{state.id} ended twice"
                ended[state.id] = state
    return ended


class EngineConformance:
    """The suite. Override :meth:`make_engine`."""

    def make_engine(self, folder: Path) -> AbstractContextManager[Engine]:
        """A fresh engine; it may use the folder."""
        raise NotImplementedError

    @pytest.fixture
    def engine(self, tmp_path: Path) -> Iterator[Engine]:
        """The engine under test."""
        with self.make_engine(tmp_path / "engine") as engine:
            yield engine

    def run_one(
        self, engine: Engine, folder: Path, function: str, limits: Limits | None = None, **arguments: object
    ) -> JobState:
        """One job from start to end."""
        job = Job(name="one", entry=f"{HERE}:{function}", arguments=arguments, folder=folder, limits=limits or Limits())
        job_id = engine.start(job)
        return collect(engine, 1)[job_id]

    def test_a_job_that_returns_is_done_and_its_output_is_kept(self, engine: Engine, tmp_path: Path) -> None:
        """Done, with exit code 0, logs and usage."""
        state = self.run_one(engine, tmp_path / "job", "print_and_return", text="hello")
        assert (state.outcome, state.exit_code, state.signal, state.detail) == ("done", 0, "", "")
        assert Path(state.stdout).read_text() == "hello\n"
        assert Path(state.stdout).is_relative_to(tmp_path / "job")
        assert state.wall_s is not None
        assert state.wall_s > 0
        assert state.cpu_s is not None
        assert state.peak_resident_bytes is not None

    def test_an_exception_fails_the_job_and_leaves_its_traceback(self, engine: Engine, tmp_path: Path) -> None:
        """Failed, with the last line as detail and the traceback in the file."""
        state = self.run_one(engine, tmp_path / "job", "raise_value_error", text="no such thing")
        assert (state.outcome, state.exit_code) == ("failed", 1)
        assert state.detail.endswith("ValueError: no such thing")
        assert state.last_lines[-1] == "ValueError: no such thing"
        assert "Traceback" in Path(state.stderr).read_text()

    @pytest.mark.parametrize("code", [1, 3, 255])
    def test_an_exit_code_other_than_zero_is_a_failure(self, engine: Engine, tmp_path: Path, code: int) -> None:
        """Failed, with that code."""
        state = self.run_one(engine, tmp_path / "job", "leave", code=code)
        assert (state.outcome, state.exit_code) == ("failed", code)

    def test_an_entry_that_does_not_exist_fails(self, engine: Engine, tmp_path: Path) -> None:
        """A value, not an exception."""
        state = self.run_one(engine, tmp_path / "job", "no_such_function")
        assert state.outcome == "failed"

    def test_a_memory_error_is_out_of_memory(self, engine: Engine, tmp_path: Path) -> None:
        """Not just any failure."""
        assert self.run_one(engine, tmp_path / "job", "raise_memory_error").outcome == "out_of_memory"

    def test_the_limit_on_memory_ends_a_job(self, engine: Engine, tmp_path: Path) -> None:
        """And the detail names it."""
        limits = Limits(resident_bytes=HOG_BYTES * 3 // 4)
        state = self.run_one(engine, tmp_path / "job", "hog", limits, size_bytes=HOG_BYTES)
        assert state.outcome == "out_of_memory"
        assert "300 MiB" in state.detail

    def test_the_limit_on_time_ends_a_job(self, engine: Engine, tmp_path: Path) -> None:
        """And the detail names it."""
        state = self.run_one(engine, tmp_path / "job", "wait_forever", Limits(wall_s=0.5, grace_s=0.2))
        assert state.outcome == "timeout"
        assert "0.5 s" in state.detail
        assert state.wall_s is not None
        assert state.wall_s >= 0.5

    def test_a_cancelled_job_is_cancelled_and_a_second_time_is_harmless(self, engine: Engine, tmp_path: Path) -> None:
        """Also when it has ended."""
        job_id = engine.start(Job(name="one", entry=f"{HERE}:wait_forever", folder=tmp_path / "job"))
        engine.cancel(job_id)
        engine.cancel(job_id)
        assert collect(engine, 1)[job_id].outcome == "cancelled"
        engine.cancel(job_id)
        assert engine.poll(0.0) == []

    def test_jobs_side_by_side_each_end_once_with_their_own_outcome(self, engine: Engine, tmp_path: Path) -> None:
        """Nothing is mixed up."""
        expected: dict[str, tuple[Outcome, int]] = {}
        for code in range(6):
            job = Job(name=f"job-{code}", entry=f"{HERE}:leave", arguments={"code": code}, folder=tmp_path / str(code))
            expected[engine.start(job)] = ("failed" if code else "done", code)
        ended = collect(engine, len(expected))
        assert {key: (state.outcome, state.exit_code) for key, state in ended.items()} == expected
        assert engine.poll(0.0) == []

    def test_a_job_shows_up_running_before_it_ends(self, engine: Engine, tmp_path: Path) -> None:
        """Once, with its id."""
        job_id = engine.start(
            Job(name="one", entry=f"{HERE}:print_and_return", arguments={"text": ""}, folder=tmp_path / "job")
        )
        states: list[JobState] = []
        deadline = time.monotonic() + _PATIENCE_S
        while not any(state.ended for state in states) and time.monotonic() < deadline:
            states += engine.poll(1.0)
        assert [(state.id, state.outcome) for state in states] == [(job_id, "running"), (job_id, "done")]

    def test_close_ends_what_runs_and_hands_it_out(self, engine: Engine, tmp_path: Path) -> None:
        """Twice is harmless, and a closed engine starts nothing."""
        job = Job(name="one", entry=f"{HERE}:wait_forever", folder=tmp_path / "job")
        job_id = engine.start(job)
        engine.close()
        engine.close()
        left = [state for state in engine.poll(0.0) if state.ended]
        assert [(state.id, state.outcome) for state in left] == [(job_id, "cancelled")]
        with pytest.raises(EngineError, match="closed"):
            engine.start(job)

    def test_an_unknown_id_is_refused(self, engine: Engine) -> None:
        """It would be a mistake of the caller."""
        with pytest.raises(EngineError, match="nobody"):
            engine.cancel("nobody")

    def test_a_folder_that_cannot_be_made_is_refused(self, engine: Engine, tmp_path: Path) -> None:
        """At the start, where it can be told."""
        (tmp_path / "file").write_text("")
        with pytest.raises(EngineError, match="file"):
            engine.start(Job(name="one", entry=f"{HERE}:wait_forever", folder=tmp_path / "file" / "job"))

    def test_polling_without_jobs_gives_nothing(self, engine: Engine) -> None:
        """And comes back."""
        assert engine.poll(0.0) == []
        assert engine.poll(0.01) == []

    def test_a_state_survives_the_journal(self, engine: Engine, tmp_path: Path) -> None:
        """JSON and back."""
        state = self.run_one(engine, tmp_path / "job", "leave", code=7)
        assert from_json(JobState, to_json(state)) == state

    def test_every_end_is_good_blamed_retried_or_asked_for(self, engine: Engine, tmp_path: Path) -> None:
        """No outcome falls between."""
        state = self.run_one(engine, tmp_path / "job", "leave", code=9)
        answers = (blames_job(state.outcome), is_retryable(state.outcome), state.outcome in ("done", "cancelled"))
        assert sum(answers) == 1
