"""Clock, kernel log, units and processes."""

import re
from datetime import datetime

import pytest

from tests.health.simulator.hosts import ALL_KINDS, ask, one_host, only, said
from wholestack.health.simulator.faults.table import fault_named


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_lines_of_an_iso_log_lie_between_boot_and_now(kind: str):
    fleet = one_host(kind, seed=6)
    machine = only(fleet)
    machine.dmesg_style = "iso"
    stamps = re.findall(r"^kern  :\w+ *: (\S+) ", said(fleet, "kernel_log"), re.MULTILINE)
    times = [datetime.fromisoformat(stamp.replace(",", ".")).timestamp() for stamp in stamps]
    assert len(times) > 50
    assert times == sorted(times)
    assert machine.boot_at - 1 <= times[0]
    assert times[-1] <= machine.now + 1


def test_a_clock_that_jumped_moves_moment_and_log_alike():
    fleet = one_host("h100-8-ndr")
    before = int(re.search(r"now=(\d+)", said(fleet, "moment")).group(1))
    first = said(fleet, "kernel_log").splitlines()[0]
    only(fleet).clock_error_s = 7_200.0
    after = int(re.search(r"now=(\d+)", said(fleet, "moment")).group(1))
    assert after - before == 7_200
    assert said(fleet, "kernel_log").splitlines()[0] != first


def test_uptime_goes_with_the_boot():
    fleet = one_host("a10-4")
    machine = only(fleet)
    assert f"uptime={machine.uptime_s:.2f} " in said(fleet, "moment")
    assert f"boot_id={machine.boot_id}\n" in said(fleet, "moment")


def test_the_state_of_the_fabric_manager_is_five_properties():
    fleet = one_host("h100-8-ndr")
    assert said(fleet, "fabric_manager") == (
        "Result=success\nNRestarts=0\nLoadState=loaded\nActiveState=active\nSubState=running\n"
    )
    assert "LoadState=not-found" in said(one_host("a10-4"), "fabric_manager")


def test_failed_units_are_listed_and_counted():
    fleet = one_host("cpu-intel")
    assert "0 loaded units listed." in said(fleet, "systemd")
    truth = fleet.inject("node0000", fault_named("unit_failed"))
    text = said(fleet, "systemd")
    assert re.search(rf"^{re.escape(truth.names[0])} +loaded failed failed ", text, re.MULTILINE)
    assert "1 loaded units listed." in text


@pytest.mark.parametrize("kind", ["h100-8-ndr", "cpu-intel"])
def test_processes_have_six_columns(kind: str):
    head, *lines = said(one_host(kind), "processes").splitlines()
    assert head.split() == ["PID", "PPID", "STAT", "ELAPSED", "USER", "COMMAND"]
    for line in lines:
        pid, ppid, state, elapsed, *_ = line.split()
        assert pid.isdigit()
        assert ppid.isdigit()
        assert elapsed.isdigit()
        assert state[0] in "SRDIZ"


def test_the_processes_of_a_job_are_those_on_the_gpus():
    fleet = one_host("a100-8-hdr", seed=4)
    machine = only(fleet)
    while machine.job is None:
        fleet.advance(600)
    on_gpus = {process.pid for gpu in machine.gpus for process in gpu.processes}
    shown = {int(line.split()[0]) for line in said(fleet, "processes").splitlines()[1:]}
    assert on_gpus == set(machine.job.pids)
    assert on_gpus <= shown


def test_the_driver_file_names_the_driver_and_is_missing_without_one():
    assert "Kernel Module  570.158.01  " in said(one_host("l40s-8"), "driver_version")
    assert "Open Kernel Module for x86_64  570.158.01  Release Build" in said(one_host("h200-8-roce"), "driver_version")
    assert ask(one_host("cpu-intel")).outputs["driver_version"].exit_status == 1
