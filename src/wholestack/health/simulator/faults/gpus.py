"""Faults of GPUs that show in ``nvidia-smi``, in PCIe and in the kernel log."""

from collections.abc import Callable

from wholestack.health.simulator.faults.fault import (
    HOUR_S,
    Draw,
    Fault,
    Owner,
    again,
    fault,
    gpu_names,
    has_gpus,
    repeat_line,
)
from wholestack.health.simulator.faults.xids import XID_DOCUMENT, kill_job, xid_line
from wholestack.health.simulator.hardware import Gpu, GpuProcess
from wholestack.health.simulator.machine import Machine, Process

SMI_MANUAL = "nvidia-smi(1), section GPU Attributes"
OFF_BUS_ISSUES = "NVIDIA/NVSentinel#155, leptonai/gpud#1209"


def _gone(gpu: Gpu) -> None:
    gpu.on_bus = False
    gpu.processes.clear()


def _off_bus_with_xid(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu, ago_s = draw.one(machine.seen_gpus()), draw.ago_s()
    _gone(gpu)
    gpu.lost_as = draw.rng.choice(("GPU is lost", "Unknown Error"))
    pid = "pid='<unknown>', name=<unknown>, "
    machine.say(xid_line(gpu, 79, "GPU has fallen off the bus.", pid=pid), level="warn", ago_s=ago_s)
    machine.say(f"NVRM: GPU {gpu.pci}: GPU has fallen off the bus.", level="warn", ago_s=ago_s - 0.001)
    machine.say(f"NVRM: GPU {gpu.pci}: GPU serial number is {gpu.serial}.", level="warn", ago_s=ago_s - 0.002)
    kill_job(machine, gpu, ago_s=ago_s)
    return gpu_names(gpu)


def _off_bus_without_xid(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """New drivers say it over several lines and without a number."""
    gpu, ago_s = draw.one(machine.seen_gpus()), draw.ago_s()
    _gone(gpu)
    gpu.listed = False
    machine.say(
        f"NVRM: The NVIDIA GPU {gpu.pci}\nNVRM: (PCI ID: 10de:{gpu.model.device_id:04x}) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.",
        level="err",
        ago_s=ago_s,
    )
    machine.say("NVRM: The NVIDIA probe routine failed for 1 device(s).", level="warn", ago_s=ago_s - 0.2)
    kill_job(machine, gpu, ago_s=ago_s)
    return gpu_names(gpu)


def _all_smi_refused(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """Older drivers give up on the whole query because of one GPU."""
    gpu, ago_s = draw.one(machine.seen_gpus()), draw.ago_s()
    _gone(gpu)
    machine.driver_answers = (
        f"Unable to determine the device handle for GPU {gpu.pci.upper()}: GPU is lost.  Reboot the system to recover "
        "this GPU\n|15"
    )
    machine.say(xid_line(gpu, 79, "GPU has fallen off the bus.", pid="pid=0, name=, "), level="warn", ago_s=ago_s)
    kill_job(machine, gpu, ago_s=ago_s)
    return gpu_names(gpu)


def _not_listed(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """It is on PCIe and the driver does not have it."""
    gpu = draw.one(machine.seen_gpus())
    gpu.listed = False
    gpu.processes.clear()
    machine.say(
        f"NVRM: GPU {gpu.pci}: RmInitAdapter failed! (0x62:0x0:2142)", level="warn", ago_s=machine.uptime_s - 30
    )
    machine.say(
        f"NVRM: GPU {gpu.pci}: rm_init_adapter failed, device minor number {gpu.index}",
        level="warn",
        ago_s=machine.uptime_s - 30.1,
    )
    return gpu_names(gpu)


def _not_enumerated(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """It did not train its link at boot: neither PCIe nor the driver know of it; no line says so."""
    gpu = draw.one(machine.seen_gpus())
    gpu.enumerated = gpu.listed = gpu.on_bus = False
    gpu.processes.clear()
    return ()


def _thinning(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """The driver answers, but one GPU gives fewer and fewer values: what often precedes a fall off the bus."""
    gpu = draw.one(machine.seen_gpus())
    tags = ["power_draw", "average_power_draw", "instant_power_draw", "gpu_temp", "memory_temp", "gpu_util",
            "sm_clock", "graphics_clock", "mem_clock", "used", "tx_util"]  # fmt: skip
    text = draw.rng.choice(("Unknown Error", "ERR!", ""))
    keep = draw.whole(3, len(tags))
    gpu.thin = dict.fromkeys(tags[:keep], text)
    machine.slow["nvidia_smi"] = draw.between(1, 5)
    return gpu_names(gpu)


def _ecc(
    *, name: str, count: Callable[[Draw], int], pending: bool = False
) -> Callable[[Machine, Draw], tuple[str, ...]]:
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        gpu, errors = draw.one(machine.seen_gpus()), count(draw)
        gpu.volatile[name] += errors
        gpu.aggregate[name] += errors
        if pending:
            gpu.remap_pending = True
            gpu.remapped_uncorrectable += 1
        return gpu_names(gpu)

    return inject


def _remap_pending(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    gpu.remap_pending = True
    gpu.remapped_correctable += 1
    return gpu_names(gpu)


def _remap_failure(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    gpu.remap_failure = True
    gpu.remapped_uncorrectable += draw.whole(2, 8)
    gpu.aggregate["dram_u"] += gpu.remapped_uncorrectable
    return gpu_names(gpu)


def _retired_pending(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    gpu.retired_pending = True
    gpu.retired_double += 1
    return gpu_names(gpu)


def _many_retired(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    gpu.retired_single, gpu.retired_double = draw.whole(58, 62), 2
    return gpu_names(gpu)


def _sram_threshold(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    gpu.sram_threshold_exceeded = True
    gpu.aggregate["sram_parity"] += draw.whole(4, 30)
    return gpu_names(gpu)


def _corrected_storm(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    per_hour = draw.between(600, 6_000)

    def add(host: Machine, count: int) -> None:
        gpu.volatile["dram_c"] += count
        gpu.aggregate["dram_c"] += count

    add(machine, int(per_hour * min(6.0, machine.uptime_s / HOUR_S)))
    again(machine, HOUR_S / per_hour, add)
    return gpu_names(gpu)


def _throttle(*reasons: str, heat: tuple[float, float] = (0, 0)) -> Callable[[Machine, Draw], tuple[str, ...]]:
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        gpu = draw.one(machine.seen_gpus())
        gpu.throttle |= set(reasons)
        gpu.heat_c = draw.between(*heat)
        return gpu_names(gpu)

    return inject


def _hot(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """At or above the slowdown temperature: a cold plate or a heat sink with no contact."""
    gpu = draw.one(machine.seen_gpus())
    usual = machine.inlet_c + 9 + gpu.slot_c + 27 * machine.load
    gpu.heat_c = gpu.model.slow_c - usual + draw.between(0.5, 4)
    gpu.throttle |= {"hw_slowdown", "hw_thermal_slowdown"}
    return gpu_names(gpu)


def _warmer(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """Well above its neighbours, below every limit."""
    gpu = draw.one(machine.seen_gpus())
    room = gpu.model.slow_c - 6 - (machine.inlet_c + 9 + gpu.slot_c + 27)
    gpu.heat_c = max(8.0, min(room, draw.between(16, 26)))
    return gpu_names(gpu)


def _hot_memory(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    usual = machine.inlet_c + 9 + gpu.slot_c + 36 * machine.load + 4
    gpu.memory_heat_c = 95 - usual + draw.between(1, 6)
    return gpu_names(gpu)


def _power_cap(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    gpu.power_limit_w = max(gpu.model.min_power_w, round(gpu.model.power_w * draw.between(0.85, 0.45)))
    return gpu_names(gpu)


def _narrow(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    gpu.pcie_width = draw.rng.choice((8, 8, 4, 1)) if draw.severity > 0.5 else 8
    return gpu_names(gpu)


def _slow_link(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    gpu.pcie_gen_cap = max(1, gpu.model.pcie_gen - draw.whole(1, 3))
    return gpu_names(gpu)


def _replays(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    per_hour = draw.between(300, 5_000)

    def add(host: Machine, count: int) -> None:
        gpu.pcie_replays += count

    add(machine, int(per_hour * min(6.0, machine.uptime_s / HOUR_S)))
    again(machine, HOUR_S / per_hour, add)
    return gpu_names(gpu)


def _vbios(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    first, rest = gpu.vbios.split(".", 1)
    gpu.vbios = f"{first}.{rest[:2]}.{draw.rng.choice(('5D', '60', '61'))}.{rest[6:]}"
    return gpu_names(gpu)


def _inforom(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    gpu.inforom_corrupt = True
    return gpu_names(gpu)


def _mig_pending(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    gpu.mig_pending = not gpu.mig_current
    return gpu_names(gpu)


def _ecc_off(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    gpu.ecc_current = gpu.ecc_pending = False
    return gpu_names(gpu)


def _ecc_pending_off(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu = draw.one(machine.seen_gpus())
    gpu.ecc_pending = False
    return gpu_names(gpu)


def _no_persistence(machine: Machine, draw: Draw) -> tuple[str, ...]:
    for gpu in machine.gpus:
        gpu.persistence = False
    machine.processes = [each for each in machine.processes if not each.command.startswith("nvidia-persiste")]
    return ()


def _stale_process(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """Memory held by a process of a job that began days ago, or when the host was young, and lost its parent."""
    gpu, pid = draw.one(machine.seen_gpus()), machine.pid()
    gpu.processes.append(GpuProcess(pid=pid, name="/usr/bin/python3", used_mib=draw.whole(900, 20_000)))
    started_s = max(600.0, machine.uptime_s - draw.between(3, 12) * 24 * HOUR_S)
    machine.processes.append(Process(pid=pid, ppid=1, state="Sl", started_s=started_s, user="ivan", command="python3"))
    return (str(pid), *gpu_names(gpu))


def _driver_mismatch(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """Libraries were updated under a loaded module: no client can talk to it."""
    newer = machine.driver.rsplit(".", 1)[0] + ".99"
    machine.driver_answers = (
        "Failed to initialize NVML: Driver/library version mismatch\n"
        f"NVML library version: {newer.rsplit('.', 1)[0]}\n|18"
    )
    text = (
        f"NVRM: API mismatch: the client has the version {newer}, but\nNVRM: this kernel module has the version "
        f"{machine.driver}.  Please\nNVRM: make sure that this kernel module and all NVIDIA driver\n"
        "NVRM: components have the same version."
    )
    repeat_line(machine, text, level="err", ago_s=draw.ago_s(), every_s=1_200)
    return ()


def _driver_not_loaded(machine: Machine, draw: Draw) -> tuple[str, ...]:
    machine.driver_answers = (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
        "NVIDIA driver is installed and running.\n\n|9"
    )
    machine.modules = [name for name in machine.modules if not name.startswith("nvidia")]
    return ()


def _driver_drift(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """One host was left on another driver than the rest of its kind."""
    series = int(machine.driver.split(".")[0])
    machine.driver = {535: "535.129.03", 550: "550.90.07", 570: "570.133.20", 580: "580.65.06",
                                        525: "525.85.12", 515: "515.65.01"}[series]  # fmt: skip
    return ()


def _remaps(machine: Machine) -> bool:
    return has_gpus(machine) and machine.gpus[0].model.remap_banks > 0 and not machine.gpus[0].mig_current


def _retires(machine: Machine) -> bool:
    return has_gpus(machine) and not machine.gpus[0].model.remap_banks


def _splits_sram(machine: Machine) -> bool:
    return _remaps(machine) and int(machine.driver.split(".")[0]) >= 550


def _steady_link(machine: Machine) -> bool:
    return has_gpus(machine) and machine.gpus[0].model.idle_pcie_gen == machine.gpus[0].model.pcie_gen


def _hbm(machine: Machine) -> bool:
    return has_gpus(machine) and machine.gpus[0].model.hbm


def _old_driver(machine: Machine) -> bool:
    return has_gpus(machine) and int(machine.driver.split(".")[0]) < 545


def _gpu(
    name: str,
    source: str,
    inject: Callable[[Machine, Draw], tuple[str, ...]],
    *owners: Owner,
    applies: Callable[[Machine], bool] = has_gpus,
    by_rate: bool = False,
    tool: bool = False,
) -> Fault:
    return fault(name, "gpu", source, inject, *owners, applies=applies, by_rate=by_rate, tool=tool)


FAULTS: tuple[Fault, ...] = (
    _gpu("gpu_off_bus_xid", XID_DOCUMENT, _off_bus_with_xid, "vendor"),
    _gpu("gpu_off_bus_no_xid", OFF_BUS_ISSUES, _off_bus_without_xid, "vendor"),
    _gpu("gpu_lost_query_refused", "AlexeyAB/darknet#86, JosephKJ/OWOD#81", _all_smi_refused, "vendor",
         applies=_old_driver),
    _gpu("gpu_not_listed", "NVIDIA/open-gpu-kernel-modules, RmInitAdapter failed lines; nvidia-smi(1)", _not_listed,
         "vendor"),
    _gpu("gpu_not_enumerated", "lspci(8); gpud#1055 (count below what is expected)", _not_enumerated, "vendor",
         "data centre"),
    _gpu("gpu_telemetry_thinning", "GWDG, arXiv 2603.28781; gpustack/runtime#26 (ERR!)", _thinning, "vendor",
         "cluster team", tool=True),
    _gpu("gpu_ecc_sram_uncorrected", SMI_MANUAL, _ecc(name="sram_parity", count=lambda draw: draw.whole(1, 4)),
         "vendor", "cluster team", applies=_remaps),
    _gpu("gpu_ecc_dram_uncorrected", SMI_MANUAL, _ecc(name="dram_u", count=lambda draw: draw.whole(1, 6)), "vendor",
         "cluster team"),
    _gpu("gpu_ecc_dram_uncorrected_remap_pending", "NVIDIA, GPU Memory Error Management (row remapping)",
         _ecc(name="dram_u", count=lambda draw: draw.whole(1, 3), pending=True), "vendor", "cluster team",
         applies=_remaps),
    _gpu("gpu_ecc_corrected_storm", SMI_MANUAL, _corrected_storm, "vendor", by_rate=True),
    _gpu("gpu_ecc_disabled", SMI_MANUAL, _ecc_off, "cluster team"),
    _gpu("gpu_ecc_pending_off", SMI_MANUAL, _ecc_pending_off, "cluster team"),
    _gpu("gpu_sram_threshold_exceeded", "NVIDIA, GPU Memory Error Management; nvidia-smi -q of driver 555",
         _sram_threshold, "vendor", applies=_splits_sram),
    _gpu("gpu_remap_pending", "NVIDIA, GPU Memory Error Management (row remapping)", _remap_pending, "cluster team",
         applies=_remaps),
    _gpu("gpu_remap_failure", "NVIDIA, GPU Memory Error Management (row remapping)", _remap_failure, "vendor",
         applies=_remaps),
    _gpu("gpu_retired_page_pending", "NVIDIA, Dynamic Page Retirement", _retired_pending, "cluster team",
         applies=_retires),
    _gpu("gpu_retired_pages_many", "NVIDIA, Dynamic Page Retirement (RMA from 60 pages)", _many_retired, "vendor",
         applies=_retires),
    _gpu("gpu_hw_slowdown", SMI_MANUAL, _throttle("hw_slowdown"), "vendor", "data centre"),
    _gpu("gpu_thermal_slowdown", SMI_MANUAL, _hot, "data centre", "vendor"),
    _gpu("gpu_sw_thermal_slowdown", SMI_MANUAL, _throttle("sw_thermal_slowdown", heat=(4, 14)), "data centre",
         "vendor"),
    _gpu("gpu_power_brake", SMI_MANUAL, _throttle("hw_slowdown", "hw_power_brake_slowdown"), "data centre"),
    _gpu("gpu_warmer_than_its_like", SMI_MANUAL, _warmer, "data centre", "vendor"),
    _gpu("gpu_memory_hot", SMI_MANUAL, _hot_memory, "data centre", "vendor", applies=_hbm),
    _gpu("gpu_power_limit_low", SMI_MANUAL, _power_cap, "cluster team", "data centre"),
    _gpu("gpu_pcie_narrow", SMI_MANUAL, _narrow, "vendor", "data centre"),
    _gpu("gpu_pcie_slow", SMI_MANUAL, _slow_link, "vendor", "data centre", applies=_steady_link),
    _gpu("gpu_pcie_replays", SMI_MANUAL, _replays, "vendor", "data centre", by_rate=True),
    _gpu("gpu_vbios_drift", SMI_MANUAL, _vbios, "cluster team", "vendor"),
    _gpu("gpu_inforom_corrupt", "nvidia-smi(1), return code 14; Datura-ai/lium-io#707", _inforom, "vendor"),
    _gpu("gpu_mig_pending", "NVIDIA, Multi-Instance GPU User Guide (pending mode)", _mig_pending, "cluster team",
         applies=lambda machine: has_gpus(machine) and machine.gpus[0].model.mig),
    _gpu("gpu_stale_process", "nvidia-smi(1), ps(1)", _stale_process, "cluster team", "job owner",
         applies=lambda machine: has_gpus(machine) and machine.uptime_s > 24 * HOUR_S),
    fault("gpu_persistence_off", "service", SMI_MANUAL, _no_persistence, "cluster team", applies=has_gpus),
    fault("driver_library_mismatch", "service", "NVIDIA driver README; forum threads on API mismatch", _driver_mismatch,
          "cluster team", applies=has_gpus),
    fault("driver_not_loaded", "service", "nvidia-smi(1), return code 9", _driver_not_loaded, "cluster team",
          applies=has_gpus),
    fault("driver_version_drift", "service", "proc file /proc/driver/nvidia/version", _driver_drift, "cluster team",
          applies=has_gpus),
)  # fmt: skip
