"""Commands that change a simulated host, as their manual pages say, and nothing more."""

import pytest

from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.hardware import GpuProcess
from wholestack.health.simulator.reactions import react


@pytest.fixture
def machine():
    return next(each for each in Fleet(30, seed=3) if each.gpus)


def test_only_a_gpu_that_nobody_uses_is_reset(machine):
    first, second = machine.gpus[:2]
    first.remap_pending = second.remap_pending = True
    first.processes = [GpuProcess(pid=1, name="x", used_mib=1)]
    second.processes = []
    version = machine.version
    assert react(machine, f"nvidia-smi --gpu-reset -i {first.kernel_address}.0").exit_status == 19
    assert react(machine, f"nvidia-smi --gpu-reset -i {second.kernel_address}.0").exit_status == 0
    assert (first.remap_pending, second.remap_pending) == (True, False)
    assert machine.version > version
    assert react(machine, "nvidia-smi --gpu-reset -i 0000:ff:00.0").exit_status == 6


def test_what_is_no_command_that_changes_a_host_is_left_to_the_tools(machine):
    for shell in ("nvidia-smi -q -x", "cat /proc/mounts", "systemctl --failed --plain", "mountpoint /x", "dmesg"):
        assert react(machine, shell) is None


def test_a_mount_needs_its_line_and_is_not_mounted_twice(machine):
    system = next(each for each in machine.file_systems if each.in_fstab)
    assert react(machine, f"mount {system.mount}").exit_status == 32
    system.mounted = False
    assert react(machine, f"mount {system.mount}").exit_status == 0
    assert system.mounted
    assert react(machine, "mount /nowhere").exit_status == 1
