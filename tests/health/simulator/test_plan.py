"""A plan of faults is read strictly and carried out in time."""

import pytest

from tests.health.simulator.hosts import one_host, only
from wholestack.errors import InputError
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.kinds import KINDS
from wholestack.health.simulator.plan import PlannedFault, Schedule, draw_plan, read_plan

GOOD = """
[[fault]]
host = "node0000"
kind = "xid_48"
at = 2.0
part = 1
severity = 0.4

[[fault]]
host = "node0000"
kind = "swap_on"
"""


def test_faults_come_when_they_are_due(tmp_path):
    path = tmp_path / "faults.toml"
    path.write_text(GOOD)
    fleet = one_host("h100-8-ndr")
    schedule = Schedule(read_plan(path), start_s=fleet.now)
    assert [truth.fault for truth in schedule.inject_due(fleet)] == ["swap_on"]
    fleet.advance(3_600)
    assert schedule.inject_due(fleet) == []
    fleet.advance(3_600)
    (late,) = schedule.inject_due(fleet)
    assert (late.fault, late.severity) == ("xid_48", 0.4)
    assert only(fleet).gpus[1].pci in late.names
    assert schedule.inject_due(fleet) == []


def test_a_drawn_plan_breaks_each_host_once_within_its_time():
    fleet = Fleet(60, seed=2)
    plan = draw_plan(fleet, count=25, hours=100, seed=5, severity=(0.5, 0.6))
    assert plan == draw_plan(fleet, count=25, hours=100, seed=5, severity=(0.5, 0.6))
    assert len(plan) == len({each.host for each in plan}) == 25
    assert [each.at for each in plan] == sorted(each.at for each in plan)
    assert all(0 <= each.at <= 100 and 0.5 <= each.severity <= 0.6 for each in plan)
    schedule, done = Schedule(plan, start_s=fleet.now), 0
    for _ in range(10):
        fleet.advance(36_000)
        done += len(schedule.inject_due(fleet))
    assert done == 25
    assert len(fleet.truths) == 25


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[fault]]\nhost='a'\nkind='nope'", "fault 1: no kind of fault is called 'nope'"),
        ("[[fault]]\nhost='a'\nkind='swap'", "no kind of fault is called 'swap'"),
        ("[[fault]]\nhost='a'\nkind='swap_on'\nwhen=1", "fault 1: unknown key 'when'"),
        ("[[fault]]\nhost='a'\nkind='swap_on'\nseverity=2.0", "severity is from 0 to 1, got 2.0"),
        ("[[fault]]\nhost='a'\nkind='swap_on'\nat=-1.0", "got -1.0"),
        ("[[fault]]\nkind='swap_on'", "host"),
        ("[fault]\nhost='a'", "expected"),
        ("fault=1", "expected"),
        ("x=1", "expected"),
        ("[[fault", "TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, says):
    path = tmp_path / "faults.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=says) as error:
        read_plan(path)
    assert "faults.toml" in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml"):
        read_plan(tmp_path / "none.toml")


def test_a_misspelt_kind_is_answered_with_the_nearest_and_where_all_are(tmp_path):
    path = tmp_path / "faults.toml"
    path.write_text(GOOD.replace("swap_on", "swap_onn"))
    with pytest.raises(InputError) as refused:
        read_plan(path)
    assert "swap_on" in str(refused.value.remedy)
    assert "docs/health-faults.md" in str(refused.value.remedy)


def test_of_an_empty_file_there_is_no_fault(tmp_path):
    path = tmp_path / "faults.toml"
    path.write_text("# a good day\n")
    assert read_plan(path) == ()


@pytest.mark.parametrize("idle", [False, True])
def test_on_a_host_that_is_idle_no_job_runs_from_then_on(idle):
    fleet = Fleet(1, seed=1, kinds=(KINDS[0],))
    name = next(iter(fleet)).name
    Schedule([PlannedFault(host=name, kind="swap_on", idle=idle)], start_s=fleet.now).inject_due(fleet)
    seen = 0
    for _ in range(60):
        fleet.advance(600)
        seen += fleet[name].job is not None or any(gpu.processes for gpu in fleet[name].gpus)
    assert (seen == 0) == idle


def test_jobs_begin_by_the_time_that_passes_not_by_how_often_it_is_asked():
    """In ten minutes a third of the idle hosts get one, also if they pass second by second."""
    begun = []
    for step in (600.0, 10.0):
        fleet = Fleet(60, seed=1, kinds=(KINDS[0],))
        idle = [machine for machine in fleet if not machine.job]
        for _ in range(int(600 / step)):
            fleet.advance(step)
        begun.append(sum(machine.job is not None for machine in idle) / len(idle))
    assert begun == pytest.approx([0.35, 0.35], abs=0.25)
