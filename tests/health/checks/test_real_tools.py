"""The probes' own commands, run for real: smartctl, ipmitool against a simulated BMC, and what this machine has."""

import os
import shutil
import subprocess
import time

import pytest

from tests.health.ipmi_sim import SUPPLY_1, SUPPLY_2, running_bmc
from tests.health.looking import look, moment, said
from wholestack.health.catalog import probes_of
from wholestack.health.checks import (
    arrays,
    bmc,
    bmc_states,
    clock,
    drives,
    file_systems,
    firmware,
    kernel_parameters,
    memory,
    mounts,
    processors,
    services,
)
from wholestack.health.probe import NotThereError, UnreadableError
from wholestack.remote.batch import Output

MODULES = (
    arrays, bmc, clock, drives, file_systems, firmware, kernel_parameters, memory, mounts, processors, services,
)  # fmt: skip
PROBES = probes_of(tuple(check for module in MODULES for check in module.CHECKS))


def run(shell, name):
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(["sh", "-c", shell], capture_output=True, check=False, timeout=60, env=environment)
    return Output(name=name, stdout=done.stdout, stderr=done.stderr[:2000], exit_status=done.returncode)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_every_command_gives_facts_on_this_machine_or_says_that_there_is_nothing(probe):
    output = run(probe.command.shell, probe.name)
    try:
        known = probe.read(output) is not None
    except NotThereError as absent:
        known = bool(absent.detail)
    except UnreadableError as error:
        known = str(error).startswith("needs root")
    assert known


@pytest.mark.skipif(shutil.which("smartctl") is None, reason="smartmontools is not installed")
@pytest.mark.parametrize(("device", "expected"), [("/dev/nvme77", "drive.gone"), ("/dev/null", None)])
def test_smartctl_on_a_drive_that_is_not_there_or_is_none(device, expected):
    output = run(f"smartctl -j -a {device}", "smart")
    found = look(drives.CHECKS, smart=output)
    codes = [code for _, code, _ in said(found)]
    assert codes == ([expected] if expected else [])
    assert expected or {each.reason for each in found.skipped} >= {"not_supported"}


@pytest.fixture(scope="module")
def controller(tmp_path_factory):
    with running_bmc(tmp_path_factory.mktemp("bmc")) as running:
        yield running


def test_a_real_bmc_is_asked_by_the_probes_own_commands(controller):
    sel, sensors, clock_probe = bmc_states.SEL, bmc_states.SENSORS, bmc_states.BMC_TIME
    now = int(time.time())
    empty = controller.output(sel.command.shell, "sel")
    assert look(bmc.CHECKS, sel=empty).passed == ("bmc.sel",)
    unset = controller.output(clock_probe.command.shell, "bmc_time")
    assert said(look(bmc.CHECKS[-1:], bmc_time=unset)) == [("warn", "bmc.clock", "bmc")]

    controller.set_time(now - 40 * 86_400)
    controller.add((0x08, SUPPLY_1, 0x6F, 0xA1))
    controller.set_time(now)
    # Input lost at one supply and given back; lost at the other; an uncorrectable error of memory.
    controller.add((0x08, SUPPLY_1, 0x6F, 0xA3), (0x08, SUPPLY_1, 0xEF, 0xA3), (0x08, SUPPLY_2, 0x6F, 0xA3))
    controller.add((0x0C, 0x53, 0x6F, 0xA1))
    given = {
        "sel": controller.output(sel.command.shell, "sel"),
        "sensors": controller.output(sensors.command.shell, "sensors"),
        "bmc_time": controller.output(clock_probe.command.shell, "bmc_time"),
        "moment": moment(now=now),
    }
    assert sorted(said(look(bmc.CHECKS, **given))) == [
        ("fail", "fan.failed", "fan Fan2A"),
        ("fail", "memory.uncorrected", "dimm Memory #0x53"),
        ("fail", "psu.input_lost", "psu PS2"),
    ]


@pytest.mark.parametrize("layout", ["sdr", "-c sdr", "-c sdr elist", "sensor"])
def test_every_layout_of_real_sensors_says_the_same(controller, layout):
    sensors = controller.output(f"ipmitool {layout}", "sensors")
    assert sorted(said(look([bmc.CHECKS[1]], sensors=sensors))) == [
        ("fail", "fan.failed", "fan Fan2A"),
        ("fail", "psu.input_lost", "psu PS2"),
    ]
