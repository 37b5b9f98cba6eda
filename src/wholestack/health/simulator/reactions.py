"""What commands that change a host do to a simulated one, written from their manual pages.

A machine whose fault has the state that the command resets gets well; one whose part is broken does not.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from wholestack.health.simulator.hardware import Gpu
from wholestack.health.simulator.machine import FileSystem, Machine
from wholestack.health.simulator.tools.answer import Answer
from wholestack.health.simulator.tools.smi_query import smi_failure

_TIME_UNITS = {
    "chrony": ("chrony", "chronyd"),
    "timesyncd": ("systemd-timesyncd",),
    "ntpd": ("ntp", "ntpd", "ntpsec"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """One command."""

    pattern: re.Pattern[str]
    """All of it."""
    act: Callable[[Machine, re.Match[str]], Answer]


def react(machine: Machine, shell: str) -> Answer | None:
    """What a command that changes hosts does and says; ``None`` where it is none that is known."""
    for reaction in REACTIONS:
        found = reaction.pattern.fullmatch(shell)
        if found is not None:
            machine.version += 1
            return reaction.act(machine, found)
    return None


def _gpu(machine: Machine, address: str) -> Gpu | None:
    wanted = address.lower()[-10:]
    return next((gpu for gpu in machine.seen_gpus() if gpu.kernel_address.lower()[-10:] == wanted), None)


def _persistence(machine: Machine, found: re.Match[str]) -> Answer:
    if (refused := smi_failure(machine)) is not None:
        return refused
    for gpu in machine.seen_gpus():
        gpu.persistence = True
    lines = [f"Enabled persistence mode for GPU {gpu.smi_address}.\n" for gpu in machine.seen_gpus()]
    return Answer(stdout="".join(lines) + "All done.\n")


def _reset(machine: Machine, found: re.Match[str]) -> Answer:
    if (refused := smi_failure(machine)) is not None:
        return refused
    gpu = _gpu(machine, found[1])
    if gpu is None or not gpu.on_bus:
        return Answer(stdout="No devices were found\n", exit_status=6)
    if gpu.processes:
        said = f"GPU {gpu.smi_address} is currently in use by one or more other processes.\n"
        return Answer(stdout=said, exit_status=19)
    gpu.volatile = dict.fromkeys(gpu.volatile, 0)
    gpu.remap_pending = gpu.retired_pending = False
    gpu.mig_current, gpu.ecc_current = gpu.mig_pending, gpu.ecc_pending
    gpu.recovery_action = "None"
    return Answer(stdout=f"GPU {gpu.smi_address} was successfully reset.\nAll done.\n", seconds=4.0)


def _ecc(machine: Machine, found: re.Match[str]) -> Answer:
    if (refused := smi_failure(machine)) is not None:
        return refused
    gpu = _gpu(machine, found[1])
    if gpu is None:
        return Answer(stdout="No devices were found\n", exit_status=6)
    gpu.ecc_pending = found[2] == "1"
    return Answer(stdout=f"Enabled ECC support for GPU {gpu.smi_address}.\nAll done.\nReboot required.\n")


def _restart(machine: Machine, found: re.Match[str]) -> Answer:
    return _restarted(machine, shlex.split(found[1])[0])


def _restart_time(machine: Machine, found: re.Match[str]) -> Answer:
    """The first of the listed units that the host has."""
    own = _TIME_UNITS[machine.time.daemon]
    unit = next((each for each in found[1].split() if each in own), None)
    return _restarted(machine, unit) if unit else Answer(stderr="none of them is enabled\n", exit_status=5)


def _restarted(machine: Machine, unit: str) -> Answer:
    name = unit.removesuffix(".service")
    if name == "nvidia-fabricmanager":
        if machine.fabric is None:
            return Answer(stderr=f"Failed to restart {name}.service: Unit {name}.service not found.\n", exit_status=5)
        machine.fabric = {"Result": "success", "NRestarts": "0", "ActiveState": "active", "SubState": "running"}
    elif name == "docker":
        machine.containers.docker_running = True
    elif name == "containerd":
        machine.containers.containerd_running = True
    elif name in _TIME_UNITS[machine.time.daemon]:
        if machine.time.running:
            return Answer(seconds=1.5)  # it ran: its servers do not answer, whatever is restarted here
        machine.time.running = machine.time.synchronised = True
        machine.time.offset_s = machine.clock_error_s = 0.0
    aliases = _TIME_UNITS[machine.time.daemon] if name in _TIME_UNITS[machine.time.daemon] else (name,)
    machine.failed_units = [each for each in machine.failed_units if each[0].removesuffix(".service") not in aliases]
    return Answer(seconds=1.5)


def _system(machine: Machine, place: str) -> FileSystem | None:
    return next((each for each in machine.file_systems if each.mount == place and each.in_fstab), None)


def _mount(machine: Machine, found: re.Match[str]) -> Answer:
    place = shlex.split(found[1])[0]
    system = _system(machine, place)
    if system is None:
        return Answer(stderr=f"mount: {place}: can't find in /etc/fstab.\n", exit_status=1)
    if system.mounted:
        return Answer(stderr=f"mount: {place}: {system.source} already mounted on {place}.\n", exit_status=32)
    system.mounted = True
    return Answer(seconds=0.4)


def _unmount(machine: Machine, found: re.Match[str]) -> Answer:
    place = shlex.split(found[1])[0]
    system = _system(machine, place)
    if system is None or not system.mounted:
        return Answer(stderr=f"umount: {place}: not mounted.\n", exit_status=32)
    system.mounted = system.hung = False
    return Answer()


def _swapoff(machine: Machine, found: re.Match[str]) -> Answer:
    machine.swaps = []
    return Answer(seconds=0.8)


def _sysctl(machine: Machine, found: re.Match[str]) -> Answer:
    path = f"/proc/sys/{found[1].replace('.', '/')}"
    if path not in machine.parameters:
        return Answer(stderr=f"sysctl: cannot stat {path}: No such file or directory\n", exit_status=255)
    machine.parameters[path] = found[2]
    return Answer(stdout=f"{found[1]} = {found[2]}\n")


def _modprobe(machine: Machine, found: re.Match[str]) -> Answer:
    name = found[1].replace("-", "_")
    if name.startswith("nvidia") and not machine.driver:
        return Answer(stderr=f"modprobe: FATAL: Module {found[1]} not found\n", exit_status=1)
    if name not in machine.modules:
        machine.modules.insert(0, name)
    return Answer()


_ID = r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})\.0"
REACTIONS: tuple[Reaction, ...] = tuple(
    Reaction(pattern=re.compile(pattern, re.DOTALL), act=act)
    for pattern, act in (
        (r"nvidia-smi -pm 1", _persistence),
        (rf"nvidia-smi --gpu-reset -i {_ID}", _reset),
        (rf"nvidia-smi -i {_ID} -e ([01])", _ecc),
        (r"for unit in ([a-z -]+); do .*systemctl restart.*", _restart_time),
        (r"systemctl restart (\S+)", _restart),
        (r"mount ([^-].*)", _mount),
        (r"umount -f -l (.+)", _unmount),
        (r"swapoff -a", _swapoff),
        (r"sysctl -w ([a-z_.]+)=(\S+)", _sysctl),
        (r"modprobe (\S+)", _modprobe),
    )
)
