"""The engine in memory: the conformance suite, and virtual time."""

from wholestack.launch import Job, Limits
from wholestack.launch.simulated import Behaviour, SimulatedEngine
from wholestack.testing.engines import EngineConformance, behave


class TestConformance(EngineConformance):
    def make_engine(self, folder):
        return SimulatedEngine(behave)


def start(engine, tmp_path, name, **settings):
    return engine.start(Job(name=name, entry="any:thing", folder=tmp_path / name, **settings))


def ended(states):
    return [(state.name, state.outcome) for state in states if state.ended]


def test_time_moves_to_the_next_end_and_no_further_than_asked(tmp_path):
    engine = SimulatedEngine(lambda job: Behaviour(wall_s={"a": 3.0, "b": 5.0}[job.name]))
    start(engine, tmp_path, "a")
    start(engine, tmp_path, "b")
    assert ended(engine.poll(1.0)) == []
    assert engine.now_s == 1.0
    assert ended(engine.poll(100.0)) == [("a", "done")]
    assert engine.now_s == 3.0
    assert ended(engine.poll(100.0)) == [("b", "done")]
    assert engine.now_s == 5.0


def test_with_one_worker_jobs_take_turns(tmp_path):
    engine = SimulatedEngine(lambda job: Behaviour(wall_s=2.0), workers=1)
    for name in "abc":
        start(engine, tmp_path, name)
    order = [ended(engine.poll(10.0)) for _ in range(3)]
    assert order == [[("a", "done")], [("b", "done")], [("c", "done")]]
    assert engine.now_s == 6.0


def test_a_waiting_job_can_be_cancelled(tmp_path):
    engine = SimulatedEngine(workers=1)
    start(engine, tmp_path, "a")
    engine.cancel(start(engine, tmp_path, "b"))
    assert ended(engine.poll(0.0)) == [("b", "cancelled")]


def test_limits_hold_whichever_comes_first(tmp_path):
    engine = SimulatedEngine(lambda job: Behaviour(wall_s=10.0, peak_resident_bytes=200))
    start(engine, tmp_path, "time", limits=Limits(wall_s=4.0, resident_bytes=100))
    start(engine, tmp_path, "memory", limits=Limits(wall_s=6.0, resident_bytes=100))
    assert ended(engine.poll(100.0)) == [("time", "timeout")]
    assert ended(engine.poll(100.0)) == [("memory", "out_of_memory")]


def test_a_killed_and_a_lost_job_are_told_apart_from_failures(tmp_path):
    engine = SimulatedEngine(
        lambda job: Behaviour(exit_code=None, signal="SIGKILL") if job.name == "k" else Behaviour(lost=True)
    )
    start(engine, tmp_path, "k")
    start(engine, tmp_path, "l")
    assert ended(engine.poll(10.0)) == [("k", "killed"), ("l", "lost")]


def test_a_job_that_is_done_has_had_its_effect_and_no_other_has(tmp_path):
    seen = []
    engine = SimulatedEngine(lambda job: Behaviour(exit_code=int(job.name), effect=lambda job: seen.append(job.name)))
    start(engine, tmp_path, "0")
    start(engine, tmp_path, "1")
    engine.poll(10.0)
    assert seen == ["0"]
