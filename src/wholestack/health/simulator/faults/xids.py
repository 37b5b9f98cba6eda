"""Faults that the driver reports as an Xid.

Texts: NVIDIA, "Xid Errors" (docs.nvidia.com/deploy/xid-errors) for meaning and remedy; the format strings of the open
kernel modules and kernel lines quoted in public issues for the form. A GPU that breaks under a job takes the job with
it: the other GPUs then log Xid 45, which is a consequence and no fault of theirs.
"""

from collections.abc import Callable

from wholestack.health.simulator.ageing import end_job
from wholestack.health.simulator.faults.fault import (
    HOUR_S,
    Draw,
    Fault,
    Owner,
    again,
    gpu_names,
    has_gpus,
    has_nvlinks,
)
from wholestack.health.simulator.hardware import Gpu
from wholestack.health.simulator.machine import Machine

XID_DOCUMENT = "NVIDIA, Xid Errors, docs.nvidia.com/deploy/xid-errors"


def xid_line(gpu: Gpu, code: int, text: str, *, pid: str = "") -> str:
    """The form of all Xid lines."""
    return f"NVRM: Xid (PCI:{gpu.kernel_address}): {code}, {pid}{text}"


def kill_job(machine: Machine, broken: Gpu, *, ago_s: float) -> None:
    """The job on the host ends; the channels of the other GPUs are cleaned up."""
    job = machine.job
    if not job:
        return
    for gpu, pid in zip(machine.seen_gpus(), job.pids, strict=False):
        if gpu is not broken:
            text = xid_line(gpu, 45, "Ch 00000008", pid=f"pid={pid}, name={job.command}, ")
            machine.say(text, level="warn", ago_s=max(0.0, ago_s - 2))
    end_job(machine)


def _report(code: int, text: str, *, again_h: float, kills: bool, with_pid: bool, lines: int = 1) -> Callable[
    [Machine, Draw], tuple[str, ...]
]:  # fmt: skip
    def inject(machine: Machine, draw: Draw) -> tuple[str, ...]:
        gpu, ago_s = draw.one(machine.seen_gpus()), draw.ago_s()
        pid = _pid(machine, draw) if with_pid else ""

        def say(host: Machine, ago_s: float) -> None:
            for line in range(draw.whole(1, lines)):
                filled = text.format(link=draw.rng.randrange(max(1, len(gpu.links))), gpu=gpu.index)
                host.say(xid_line(gpu, code, filled, pid=pid), level="warn", ago_s=max(0.0, ago_s - 0.0002 * line))

        say(machine, ago_s)
        if kills:
            kill_job(machine, gpu, ago_s=ago_s)
        again(machine, again_h * HOUR_S, lambda host, count: say(host, 0.0))
        return gpu_names(gpu)

    return inject


def _row_remapped(machine: Machine, draw: Draw) -> tuple[str, ...]:
    """The driver notes the row in the infoROM and remaps it at the next reset; until then it is pending."""
    names = _REMAP_EVENT(machine, draw)
    gpu = next(gpu for gpu in machine.seen_gpus() if gpu.pci in names)
    gpu.remap_pending = True
    gpu.remapped_uncorrectable += 1
    return names


def _pid(machine: Machine, draw: Draw) -> str:
    if machine.job and draw.rng.random() < 0.7:
        return f"pid={draw.one(machine.job.pids)}, name={machine.job.command}, "
    return "pid='<unknown>', name=<unknown>, "


_REMAP_EVENT = _report(
    63,
    "Row Remapper: New row (0x0000000000f1b5c2) marked for remapping, reset gpu to activate.",
    again_h=3.0,
    kills=False,
    with_pid=True,
)


def _series(low: int, high: int = 10_000) -> Callable[[Machine], bool]:
    def applies(machine: Machine) -> bool:
        return has_gpus(machine) and low <= int(machine.driver.split(".")[0]) < high

    return applies


def _architecture(*names: str) -> Callable[[Machine], bool]:
    return lambda machine: has_gpus(machine) and machine.gpus[0].model.architecture in names


_REMAPS = _architecture("Ampere", "Hopper", "Blackwell", "Ada Lovelace")
_NVLINK5 = _architecture("Blackwell")


def _xid(
    code: int,
    text: str,
    owners: tuple[Owner, ...],
    *,
    name: str = "",
    applies: Callable[[Machine], bool] = has_gpus,
    again_h: float = 3.0,
    kills: bool = True,
    with_pid: bool = True,
    lines: int = 1,
    source: str = XID_DOCUMENT,
) -> Fault:
    return Fault(
        name=f"xid_{code}{name}",
        source=source,
        part="gpu",
        owners=owners,
        applies=applies,
        inject=_report(code, text, again_h=again_h, kills=kills, with_pid=with_pid, lines=lines),
    )


NVLINK5_LINES = "leptonai/gpud, recorded NVLink 5 lines (Xid 144-150) of Blackwell hosts"

FAULTS: tuple[Fault, ...] = (
    _xid(
        48,
        "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at partition 6, "
        "subpartition 0.",
        ("vendor", "cluster team"),
    ),
    _xid(32, "Channel ID 00000010 intr 00040000", ("vendor", "cluster team", "job owner")),
    _xid(61, "0ca6(3098) 00000000 00000000", ("vendor", "cluster team")),
    _xid(62, "2bbf(30f4) 00000000 00000000", ("vendor", "cluster team")),
    Fault(
        name="xid_63",
        source="NVIDIA, GPU Memory Error Management (row remapping); Xid Errors",
        part="gpu",
        owners=("cluster team",),
        applies=_REMAPS,
        inject=_row_remapped,
    ),
    _xid(
        64,
        "Row Remapper Error: (0x00000002eebc4100) - All reserved rows for bank are remapped",
        ("vendor",),
        applies=_REMAPS,
        kills=False,
    ),
    _xid(
        74,
        "NVLink: fatal error detected on link {link}(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
        ("vendor",),
        applies=has_nvlinks,
    ),
    _xid(92, "High single-bit ECC error rate", ("vendor",), applies=_architecture("Volta"), kills=False),
    _xid(
        94,
        "Contained: SM (0x1). RST: No, D-RST: No",
        ("vendor", "cluster team"),
        applies=_architecture("Ampere", "Hopper", "Blackwell"),
    ),
    _xid(
        95,
        "Uncontained: FBHUB. RST: Yes, D-RST: No",
        ("vendor", "cluster team"),
        applies=_architecture("Ampere", "Hopper", "Blackwell"),
    ),
    _xid(
        110, "Security fault, reset required", ("vendor", "cluster team"), applies=_architecture("Hopper", "Blackwell")
    ),
    _xid(
        119,
        "Timeout after 6s of waiting for RPC response from GPU{gpu} GSP! Expected function 76 (GSP_RM_CONTROL) "
        "(0x20802a02 0x8).",
        ("vendor", "cluster team"),
        applies=_series(515),
        lines=6,
        source="leptonai/gpud, recorded Xid 119 lines; NVIDIA, Xid Errors",
    ),
    _xid(
        120,
        "GSP Error: Task 1 raised error code 0x5 for reason 0x0 at 0x63b2cc4 (0 more errors skipped)",
        ("vendor", "cluster team"),
        applies=_series(515),
    ),
    _xid(
        140,
        "An uncorrectable ECC error detected (possible firmware handling failure) DRAM:2, LTC:0, MMU:0, PCIE:0",
        ("vendor", "cluster team"),
        applies=_architecture("Hopper", "Blackwell"),
    ),
    _xid(
        143,
        "Error status 0x62 while polling for FSP boot complete, 0x0, 0x0, 0x0, 0x0, 0x0",
        ("vendor", "cluster team"),
        applies=_architecture("Hopper", "Blackwell"),
        with_pid=False,
    ),
    _xid(
        144,
        "SAW_MVB Fatal XC0 i0 Link {link:02d} (0x00000001 0x00000002 0x00000000 0x00000000 0x00000000 0x00000000)",
        ("vendor",),
        applies=_NVLINK5,
        with_pid=False,
        source=NVLINK5_LINES,
    ),
    _xid(
        145,
        "RLW_SRC_TRACK Fatal XC1 i0 Link {link:02d} (0x040988e2 0x00000008 0x00000000 0x00000000 0x00000000 "
        "0x00000000)",
        ("vendor",),
        applies=_NVLINK5,
        with_pid=False,
        source=NVLINK5_LINES,
    ),
    _xid(
        146,
        "TLW_RX/TLW_RX_PIPE0 Fatal XC0 i0 Link {link:02d} (0x0000000a 0x00000004 0x00000000 0x00000000 0x00000000 "
        "0x00000000)",
        ("vendor",),
        applies=_NVLINK5,
        with_pid=False,
        source=NVLINK5_LINES,
    ),
    _xid(
        147,
        "TREX Fatal XC0 i0 Link {link:02d} (0x0000000e 0x00000001 0x00000000 0x00000000 0x00000000 0x00000000)",
        ("vendor",),
        applies=_NVLINK5,
        with_pid=False,
        source=NVLINK5_LINES,
    ),
    _xid(
        148,
        "NVLPW_CTRL/NVLPW Fatal XC0 i0 Link {link:02d} (0x0000000f 0x80000000 0x00000000 0x00000000 0x00000000 "
        "0x00000000)",
        ("vendor",),
        applies=_NVLINK5,
        with_pid=False,
        source=NVLINK5_LINES,
    ),
    _xid(
        149,
        "NETIR_LINK_EVT Fatal XC0 i0 Link {link:02d} (0x004505c6 0x00000000 0x00000000 0x00000000 0x00000000 "
        "0x00000000)",
        ("vendor",),
        applies=_NVLINK5,
        with_pid=False,
        lines=2,
        source=f"{NVLINK5_LINES}; NVIDIA/open-gpu-kernel-modules#1150",
    ),
    _xid(
        150,
        "MSE_WATCHDOG Fatal XC0 i0 Link {link:02d} (0x00000000 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)",
        ("vendor",),
        applies=_NVLINK5,
        with_pid=False,
        source=NVLINK5_LINES,
    ),
)


def _recovery_action(machine: Machine, draw: Draw) -> tuple[str, ...]:
    gpu, ago_s = draw.one(machine.seen_gpus()), draw.ago_s()
    gpu.recovery_action = "GPU Reset Required"
    text = xid_line(gpu, 154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")
    machine.say(text, level="warn", ago_s=ago_s)
    kill_job(machine, gpu, ago_s=ago_s)
    return gpu_names(gpu)


FAULTS += (
    Fault(
        name="xid_154_reset_required",
        source="leptonai/gpud, recorded Xid 154 lines; nvidia-smi -q of driver 575 (gpu_recovery_action)",
        part="gpu",
        owners=("cluster team",),
        applies=_series(560),
        inject=_recovery_action,
    ),
)
