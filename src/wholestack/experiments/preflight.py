"""Preflight: can this machine hold the run? Readings at the edge, judged by pure functions, as Findings.

The arithmetic probe multiplies one product of integers that float32 holds exactly in whatever order a library adds
(:data:`~wholestack.health.active.golden.ONE_PRODUCT`): the checksum is the same on every correct machine, and one wrong
bit changes it. ``wholestack health probe`` has the many. The speed probe trains for a moment; its rate is what the plan
is made from.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from wholestack.experiments.recipe import Device
from wholestack.finding import Finding, Skipped, Status, finding
from wholestack.machine import available_memory_bytes
from wholestack.record import Record

NO_DEVICE = "no CUDA device"
NO_DEVICE_REMEDY = "take a recipe for the CPU, or a machine with a CUDA device and a CUDA build of torch"

EARLIEST_BELIEVABLE_S = 1_767_225_600.0
"""2026-01-01: a clock before this was never set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineReading(Record):
    """What the machine said about itself; ``None`` where it could not be read."""

    SCHEMA: ClassVar[str] = "machine/1"

    host: str
    cores: int | None
    """Cores that this process may use."""
    memory_bytes: int | None
    """Memory that is available now, in bytes."""
    disk_bytes: int | None
    """Free space where the run directory is, in bytes."""
    clock_s: float
    """Seconds since the epoch."""
    torch_version: str | None
    """``None`` if torch is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult(Record):
    """What the probes measured."""

    SCHEMA: ClassVar[str] = "probe/1"

    checksum: str
    """Digest of the integer product."""
    expected_checksum: str
    rates_flops_s: dict[str, float]
    """Training FLOP/s by probe, for instance ``small, 1 thread``."""
    seconds: float
    """Wall seconds of all probes."""
    queued_share: float = 0.0
    """Share of it that was spent ready to run while other work had the processor; 0 where nobody counts it."""
    device: str | None = "cpu"
    """What was probed, as its driver names it; ``None`` if it is not there, and then nothing was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs(Record):
    """What the run asks of the machine."""

    cores: int
    memory_bytes: int
    disk_bytes: int


def read_machine(folder: Path, *, clock: Callable[[], float] = time.time) -> MachineReading:
    """Ask this machine; needs no torch in this process."""
    return MachineReading(
        host=os.uname().nodename,
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        memory_bytes=available_memory_bytes(),
        disk_bytes=shutil.disk_usage(folder).free,
        clock_s=clock(),
        torch_version=_installed_version("torch"),
    )


def judge_machine(reading: MachineReading, needs: Needs) -> list[Finding]:
    """One Finding a reading: ok, fail where the run cannot be held, unknown where it could not be read."""
    return [
        _enough(reading, "machine.cores", (reading.cores, needs.cores), "cores", remedy="use fewer --workers"),
        _enough(
            reading,
            "machine.memory",
            (reading.memory_bytes, needs.memory_bytes),
            "bytes available",
            remedy="end other programs, or use fewer --workers",
        ),
        _enough(
            reading, "machine.disk", (reading.disk_bytes, needs.disk_bytes), "bytes free", remedy="choose another --out"
        ),
        _judge_clock(reading),
        _judge_torch(reading),
    ]


def judge_device(probe: ProbeResult, host: str, *, at: float | None = None) -> Finding:
    """Whether the CUDA device that a recipe asks for is there."""
    present = probe.device is not None
    return finding(
        host,
        "machine.device",
        "ok" if present else "fail",
        evidence=[f"CUDA device {probe.device}" if present else "torch sees no CUDA device"],
        cause="" if present else NO_DEVICE,
        owner="" if present else "job owner",
        remedy="" if present else NO_DEVICE_REMEDY,
        at=at,
    )


def skipped_checks(device: Device) -> list[Skipped]:
    """Checks that do not apply to a recipe."""
    if device == "cuda":
        return []
    detail = "the recipe trains on the CPU: no CUDA device is asked for"
    return [Skipped(check="machine.device", reason="not_expected", detail=detail)]


def judge_checksum(probe: ProbeResult, host: str, *, settles: str = "", at: float | None = None) -> Finding:
    """Whether the machine multiplied right."""
    right = probe.checksum == probe.expected_checksum
    return finding(
        host,
        "machine.exact",
        "ok" if right else "fail",
        evidence=[f"checksum {probe.checksum}, expected {probe.expected_checksum}"],
        cause="" if right else "an integer product came out wrong",
        owner="" if right else "vendor",
        remedy="" if right else "do not train on this machine; repeat the probe on each core and memory module",
        settles=settles,
        at=at,
    )


def _enough(
    reading: MachineReading, check: str, have_need: tuple[int | None, int], unit: str, *, remedy: str
) -> Finding:
    have, need = have_need
    status: Status = "unknown" if have is None else "ok" if have >= need else "fail"
    cause = {"unknown": "could not be read", "fail": f"fewer than {need:,} {unit}"}.get(status, "")
    shown = "not readable" if have is None else f"{have:,} {unit}"
    return finding(
        reading.host,
        check,
        status,
        evidence=[f"{shown}, {need:,} needed"],
        cause=cause,
        owner="" if status == "ok" else "job owner",
        remedy=remedy if status == "fail" else "",
        at=reading.clock_s,
    )


def _judge_clock(reading: MachineReading) -> Finding:
    right = reading.clock_s >= EARLIEST_BELIEVABLE_S
    return finding(
        reading.host,
        "machine.clock",
        "ok" if right else "fail",
        evidence=[f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(reading.clock_s))} UTC"],
        cause="" if right else "the clock was never set",
        owner="" if right else "cluster team",
        remedy="" if right else "start time synchronisation: claims carry the time at which they were sealed",
        at=reading.clock_s,
    )


def _judge_torch(reading: MachineReading) -> Finding:
    present = reading.torch_version is not None
    return finding(
        reading.host,
        "machine.torch",
        "ok" if present else "fail",
        evidence=[f"torch {reading.torch_version}" if present else "torch is not installed"],
        cause="" if present else "torch is missing",
        owner="" if present else "job owner",
        remedy="" if present else "run `make venv`, or pip install 'wholestack[train]'",
        at=reading.clock_s,
    )


def _installed_version(distribution: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that make the numbers, and of this toolkit."""
    names = ("wholestack", "torch", "numpy", "scipy", "tokenizers", "msgspec", "matplotlib")
    found = {name: _installed_version(name) for name in names}
    return {"python": sys.version.split()[0], **{name: version for name, version in found.items() if version}}
