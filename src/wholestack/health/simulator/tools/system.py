"""Clock, kernel log, modules, parameters, units and swap: the small files of ``/proc`` and systemd.

Sources: ``proc(5)``, ``systemctl(1)``, ``dmesg(1)``; ``systemctl show`` prints the properties of the service before
those of the unit, whatever the order of ``-p``.
"""

import hashlib
import time

from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.tools.answer import Answer, grep

_SIZES = {"nvidia": 62_468_096, "nvidia_uvm": 1_540_096, "mlx5_core": 2_326_528, "zfs": 3_956_736}


def moment(machine: Machine) -> Answer:
    """Clock, boot id, uptime, kernel, name and user id."""
    uptime, idle = machine.uptime_s, machine.uptime_s * machine.cpu.count * (1 - 0.6 * machine.load)
    return Answer(
        stdout=f"now={int(machine.clock)}\nboot_id={machine.boot_id}\nuptime={uptime:.2f} {idle:.2f}\n"
        f"kernel={machine.kernel}\nhostname={machine.name}\nuid={0 if machine.root else 1000}\n"
    )


def kernel_log(machine: Machine) -> Answer:
    """The last 1,500,000 bytes of the ring buffer."""
    if not machine.root:
        return Answer(stderr="dmesg: read kernel buffer failed: Operation not permitted\n", exit_status=1)
    text = machine.log.render(
        machine.dmesg_style, booted_clock_s=machine.clock - machine.uptime_s, utc_offset_h=machine.utc_offset_h
    )
    return Answer(stdout=text[-1_500_000:], seconds=0.05)


def modules(machine: Machine) -> Answer:
    """``/proc/modules``."""
    foreign = {"nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia", "nvidia_peermem"}
    mark = " (OE)" if machine.open_module else " (POE)"
    return Answer(
        stdout="".join(
            f"{name} {_SIZES.get(name, 16_384 * (1 + len(name) % 9))} {len(name) % 3} - Live 0x0000000000000000"
            f"{mark if name in foreign else ''}\n"
            for name in machine.modules
        )
    )


def driver_version(machine: Machine) -> Answer:
    """``/proc/driver/nvidia/version``."""
    if not machine.driver:
        return _no_file("/proc/driver/nvidia/version")
    flavour = (
        f"NVIDIA UNIX Open Kernel Module for x86_64  {machine.driver}  Release Build  (dvs-builder@U22-I3-AE18-23-3)  "
        "Thu May 22 19:42:37 UTC 2025"
        if machine.open_module
        else f"NVIDIA UNIX x86_64 Kernel Module  {machine.driver}  Wed Feb  1 23:18:49 UTC 2023"
    )
    return Answer(stdout=f"NVRM version: {flavour}\nGCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04) \n")


def _no_file(path: str) -> Answer:
    return Answer(stderr=f"cat: {path}: No such file or directory\n", exit_status=1)


def fabric_manager(machine: Machine) -> Answer:
    """``systemctl show nvidia-fabricmanager``."""
    state = machine.fabric
    if state is None:
        return Answer(stdout="Result=success\nNRestarts=0\nLoadState=not-found\nActiveState=inactive\nSubState=dead\n")
    return Answer(
        stdout=f"Result={state['Result']}\nNRestarts={state['NRestarts']}\nLoadState=loaded\n"
        f"ActiveState={state['ActiveState']}\nSubState={state['SubState']}\n"
    )


def failed_units(machine: Machine) -> Answer:
    """``systemctl --failed --plain --no-pager``."""
    units = machine.failed_units
    if not units:
        return Answer(stdout="UNIT LOAD ACTIVE SUB DESCRIPTION\n0 loaded units listed.\n")
    width = max(len(unit) for unit, _ in units)
    lines = "".join(f"{unit:<{width}} loaded failed failed {description}\n" for unit, description in units)
    return Answer(
        stdout=f"{'UNIT':<{width}} LOAD   ACTIVE SUB    DESCRIPTION\n{lines}\n"
        "LOAD   = Reflects whether the unit definition was properly loaded.\n"
        "ACTIVE = The high-level unit activation state, i.e. generalization of SUB.\n"
        "SUB    = The low-level unit activation state, values depend on unit type.\n\n"
        f"{len(units)} loaded units listed.\n"
    )


def os_release(machine: Machine) -> Answer:
    """``/etc/os-release``."""
    return Answer(stdout="".join(f"{key}={value}\n" for key, value in machine.os_release.items()))


def machine_id(machine: Machine) -> Answer:
    """``/etc/machine-id``: drawn anew by every installation."""
    made = hashlib.sha256(f"{machine.system_uuid}/{machine.installations}".encode()).hexdigest()
    return Answer(stdout=f"{made[:32]}\n")


def kernel_parameters(machine: Machine) -> Answer:
    """The settings that matter to training."""
    return grep(list(machine.parameters.items()))


def swap(machine: Machine) -> Answer:
    """``/proc/swaps``."""
    head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    return Answer(
        stdout=head
        + "".join(
            f"{name:<39} {kind}\t{size}\t\t{used}\t\t{-2 - index}\n"
            for index, (name, kind, size, used) in enumerate(machine.swaps)
        )
    )


def processes(machine: Machine) -> Answer:
    """``ps -eo pid,ppid,stat,etimes,user:32,comm``."""
    rows = "".join(
        f"{each.pid:7d} {each.ppid:7d} {each.state:<4} {max(0, int(machine.uptime_s - each.started_s)):7d} "
        f"{each.user:<32} {each.command[:15]}{' <defunct>' if each.state.startswith('Z') else ''}\n"
        for each in machine.processes
    )
    return Answer(stdout=f"    PID    PPID STAT ELAPSED {'USER':<32} COMMAND\n{rows}", seconds=0.1)


def fabric_log(machine: Machine) -> Answer:
    """The end of ``/var/log/fabricmanager.log``."""
    if machine.fabric is None:
        path = "/var/log/fabricmanager.log"
        return Answer(
            stderr=f"tail: cannot open '{path}' for reading: No such file or directory\n",
            exit_status=1,
        )
    shift = machine.clock_error_s + machine.utc_offset_h * 3600
    text = "".join(
        f"[{_fabric_time(at_s + shift)}] [{level}] [tid {1500 + len(text) % 300}] {text}\n"
        for at_s, level, text in machine.fabric_log
    )
    return Answer(stdout=text[-300_000:])


def _fabric_time(clock_s: float) -> str:
    return time.strftime("%b %d %Y %H:%M:%S", time.gmtime(clock_s))
