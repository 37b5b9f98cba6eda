"""Faults of NVLink, NVSwitch and fabric manager.

SXid codes and texts: NVIDIA, Fabric Manager User Guide, appendix on SXid errors (fatal and non-fatal); form of the
lines: kernel lines recorded by leptonai/gpud.
"""

from collections.abc import Callable

from wholestack.health.simulator.ageing import end_job
from wholestack.health.simulator.faults.fault import (
    HOUR_S,
    Draw,
    Fault,
    again,
    fault,
    gpu_names,
    has_nvlinks,
)
from wholestack.health.simulator.hardware import Gpu
from wholestack.health.simulator.machine import Machine

GUIDE = "NVIDIA, Fabric Manager User Guide, SXid errors"
NVLINK_MANUAL = "nvidia-smi(1), nvlink; public notes on nvlink -s and -e of H100 hosts"


def _link_names(gpu: Gpu, link: int) -> tuple[str, ...]:
    return tuple(f"{name}/{link}" for name in gpu_names(gpu))


def _inactive(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    link = draw.rng.randrange(len(gpu.links))
    gpu.links[link].active = False
    return _link_names(gpu, link)


def _all_inactive(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    for link in gpu.links:
        link.active = False
    if machine.fabric:
        gpu.fabric_state = "In Progress"
        gpu.fabric_status = "N/A"
    return gpu_names(gpu)


def _errors(counter: str, low: float, high: float) -> Callable[[Machine, Draw], tuple[str, ...]]:
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        gpu = draw.one(machine.seen_gpus())
        index = draw.rng.randrange(len(gpu.links))
        link, per_hour = gpu.links[index], draw.between(low, high)

        def add(host: Machine, count: int) -> None:
            setattr(link, counter, getattr(link, counter) + count)

        add(machine, int(per_hour * min(4.0, machine.uptime_s / HOUR_S)))
        again(machine, HOUR_S / per_hour, add)
        return _link_names(gpu, index)

    return inject


def _sxid(code: int, severity: str, text: str) -> Callable[[Machine, Draw], tuple[str, ...]]:
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        switch, link, ago_s = draw.one(machine.nvswitches), draw.rng.randrange(36), draw.ago_s()
        head = f"nvidia-nvswitch{switch.index}: SXid (PCI:{switch.pci}): {code:05d}"

        def say(host: Machine, ago_s: float) -> None:
            host.say(f"{head}, {severity}, Link {link:02d} {text}", level="err", ago_s=ago_s)
            host.say(f"{head}, Severity {1 if severity == 'Fatal' else 0} Engine instance {link:02d} Sub-engine "
                     "instance 00", level="err", ago_s=max(0.0, ago_s - 0.00001))  # fmt: skip
            host.say(f"{head}, Data {{0x{draw.rng.getrandbits(32):08x}, 0x10100030, 0x00000000, 0x00000000}}",
                     level="err", ago_s=max(0.0, ago_s - 0.00002))  # fmt: skip

        say(machine, ago_s)
        if severity == "Fatal":
            end_job(machine)
        again(machine, 4 * HOUR_S, lambda host, count: say(host, 0.0))
        return (switch.pci, switch.pci.rsplit(".", 1)[0], f"nvswitch{switch.index}")

    return inject


def _switch_off_bus(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """One NVSwitch no longer answers; it went quietly."""
    switch = draw.one(machine.nvswitches)
    switch.on_bus = False
    return (switch.pci, switch.pci.rsplit(".", 1)[0])


def _switch_missing(machine: Machine, draw: Draw) -> tuple[str, ...]:
    machine.nvswitches.remove(draw.one(machine.nvswitches))
    return ()


def _manager_dead(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """It stopped; what runs goes on, new jobs fail with "system not yet initialized"."""
    machine.fabric = {"Result": "exit-code", "NRestarts": "0", "ActiveState": "failed", "SubState": "failed"}
    machine.failed_units.append(("nvidia-fabricmanager.service", "NVIDIA fabric manager service"))
    machine.processes = [each for each in machine.processes if each.command != "nv-fabricmanage"]
    return ()


def _manager_inactive(machine: Machine, draw: Draw) -> tuple[str, ...]:
    machine.fabric = {"Result": "success", "NRestarts": "0", "ActiveState": "inactive", "SubState": "dead"}
    machine.processes = [each for each in machine.processes if each.command != "nv-fabricmanage"]
    return ()


def _manager_restarts(machine: Machine, draw: Draw) -> tuple[str, ...]:
    assert_fabric = machine.fabric or {}
    machine.fabric = assert_fabric | {"NRestarts": str(draw.whole(6, 90)), "SubState": "auto-restart",
                                      "ActiveState": "activating", "Result": "exit-code"}  # fmt: skip
    return ()


def _manager_log_fatal(machine: Machine, draw: Draw) -> tuple[str, ...]:
    at_s, switch = machine.now - draw.ago_s(), draw.rng.randrange(max(1, len(machine.nvswitches)))
    port = draw.rng.randrange(36)
    machine.fabric_log += [
        (at_s, "ERROR", f"detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id "
         f"{_switch_bus(machine, switch)} physical id {switch} port {port}"),
        (at_s + 0.1, "ERROR", "This is a fatal error and the GPUs in the partition need to be reset"),
    ]  # fmt: skip
    end_job(machine)
    return (_switch_bus(machine, switch).lower()[4:], _switch_bus(machine, switch).lower(), f"nvswitch{switch}")


def _manager_log_nonfatal(machine: Machine, draw: Draw) -> tuple[str, ...]:
    switch, port = draw.rng.randrange(len(machine.nvswitches)), draw.rng.randrange(64)
    bus = _switch_bus(machine, switch)

    def say(host: Machine, count: int) -> None:
        host.fabric_log.append(
            (
                host.now - 1,
                "ERROR",
                f"detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id {bus} "
                f"physical id {switch} port {port}",
            )
        )

    say(machine, 1)
    again(machine, 5 * HOUR_S, say)
    return (bus.lower()[4:], bus.lower(), f"nvswitch{switch}")


def _switch_bus(machine: Machine, index: int) -> str:
    return f"0000{machine.nvswitches[index].pci}".upper()


def _fabric_failed(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """One GPU did not register with the fabric."""
    gpu = draw.one(machine.seen_gpus())
    gpu.fabric_state, gpu.fabric_status = "Completed", "Insufficient Resources"
    if draw.rng.random() < 0.5:
        gpu.fabric_state, gpu.fabric_status = "In Progress", "N/A"
    return gpu_names(gpu)


def _switched(machine: Machine) -> bool:
    return has_nvlinks(machine) and bool(machine.nvswitches)


def _managed(machine: Machine) -> bool:
    return machine.fabric is not None


FAULTS: tuple[Fault, ...] = (
    fault("nvlink_inactive", "nvlink", NVLINK_MANUAL, _inactive, "vendor", applies=has_nvlinks),
    fault("nvlink_all_inactive", "gpu", "NVIDIA/open-gpu-kernel-modules#1150", _all_inactive, "vendor",
          "cluster team", applies=has_nvlinks),
    fault("nvlink_replay_errors", "nvlink", NVLINK_MANUAL, _errors("replay", 40, 2_000), "vendor", applies=has_nvlinks,
          by_rate=True),
    fault("nvlink_recovery_errors", "nvlink", NVLINK_MANUAL, _errors("recovery", 30, 300), "vendor",
          applies=has_nvlinks, by_rate=True),
    fault("nvlink_crc_errors", "nvlink", NVLINK_MANUAL, _errors("crc", 60, 5_000), "vendor", applies=has_nvlinks,
          by_rate=True),
    fault("sxid_fatal_ltssm", "nvswitch", GUIDE, _sxid(20034, "Fatal", "LTSSM Fault Up"), "vendor", applies=_switched),
    fault("sxid_fatal_ecc", "nvswitch", GUIDE, _sxid(12020, "Fatal", "egress sequence ID error"), "vendor",
          applies=_switched),
    fault("sxid_nonfatal_egress", "nvswitch", GUIDE, _sxid(12028, "Non-fatal", "egress non-posted PRIV error"),
          "vendor", applies=_switched),
    fault("nvswitch_off_bus", "nvswitch", "lspci(8), pci-sysfs.c: a device that reads as all ones", _switch_off_bus,
          "vendor", applies=_switched),
    fault("nvswitch_missing", "nvswitch", "leptonai/gpud, recorded lspci of an HGX host", _switch_missing, "vendor",
          applies=_switched),
    fault("fabric_manager_dead", "service", "systemctl(1); NVIDIA/NVSentinel#891", _manager_dead, "cluster team",
          applies=_managed),
    fault("fabric_manager_inactive", "service", "systemctl(1); NVIDIA/NVSentinel#891", _manager_inactive,
          "cluster team", applies=_managed),
    fault("fabric_manager_restarting", "service", "systemd.service(5), NRestarts", _manager_restarts, "cluster team",
          applies=_managed),
    fault("fabric_manager_log_fatal", "nvswitch", "leptonai/gpud, recorded fabricmanager.log", _manager_log_fatal,
          "vendor", applies=_switched),
    fault("fabric_manager_log_nonfatal", "nvswitch", "leptonai/gpud, recorded fabricmanager.log", _manager_log_nonfatal,
          "vendor", applies=_switched),
    fault("gpu_fabric_not_registered", "gpu", "nvidia-smi(1), fabric state and status", _fabric_failed, "cluster team",
          "vendor", applies=_managed),
)  # fmt: skip
