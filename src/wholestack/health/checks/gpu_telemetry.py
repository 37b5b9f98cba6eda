"""Thinning telemetry: readings of one GPU that its siblings have and it has not.

A GPU about to fall off the bus gives almost no numeric warning; the sign is that its telemetry itself fails (GWDG,
arXiv 2603.28781). So that is a Finding of its own, neither healthy nor broken.
"""

from collections.abc import Iterator, Sequence

from wholestack.health.check import Cause, Check, Limit, Seen, Symptom
from wholestack.health.checks.nvidia import NVIDIA_SMI, UNREADABLE, listed, unreliable
from wholestack.health.formats.nvidia_smi import Gpu, reading

SILENT = Cause(
    code="gpu.silent",
    says="readings of the GPU are missing that its siblings have",
    owner="vendor",
    remedy="run nvidia-smi -q -i ID again; drain the host if they stay away: the GPU may be about to fall off the bus",
    status="unknown",
    explains=("telemetry.field", "gpu.inforom_corrupted", "gpu.temperature_outlier", "gpu.power_outlier"),
)
FEWEST = Limit(name="gpu.silent_readings", default=1, about="missing readings that make a Finding")

READINGS: tuple[tuple[str, ...], ...] = (
    ("temperature/gpu_temp",),
    ("temperature/memory_temp",),
    ("gpu_power_readings/power_draw", "power_readings/power_draw"),
    ("gpu_power_readings/instant_power_draw",),
    ("gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit"),
    ("fb_memory_usage/total",),
    ("fb_memory_usage/used",),
    ("utilization/gpu_util",),
    ("utilization/memory_util",),
    ("clocks/sm_clock",),
    ("clocks/mem_clock",),
    ("performance_state",),
    ("pci/pci_gpu_link_info/link_widths/current_link_width",),
    ("pci/pci_gpu_link_info/pcie_gen/current_link_gen",),
    ("pci/replay_counter",),
    ("ecc_mode/current_ecc",),
    ("ecc_errors/volatile/dram_uncorrectable", "ecc_errors/volatile/double_bit/total"),
    ("ecc_errors/volatile/sram_uncorrectable", "ecc_errors/volatile/sram_uncorrectable_parity"),
    ("ecc_errors/aggregate/dram_uncorrectable", "ecc_errors/aggregate/double_bit/total"),
    ("remapped_rows/remapped_row_pending",),
    ("remapped_rows/remapped_row_failure",),
    (
        "clocks_event_reasons/clocks_event_reason_hw_slowdown",
        "clocks_throttle_reasons/clocks_throttle_reason_hw_slowdown",
    ),
    ("vbios_version",),
    ("inforom_version/img_version",),
)
"""What every GPU of a product tells or does not tell alike. Under MIG some become N/A: only GPUs in the same MIG mode
are compared."""


def _judge(seen: Seen) -> Iterator[Symptom]:
    smi = listed(seen)
    alike: dict[tuple[str, str], list[Gpu]] = {}
    for gpu in smi.gpus:
        mode = gpu.fields.get("mig_mode/current_mig", "")
        alike.setdefault((gpu.fields.get("product_name", ""), mode), []).append(gpu)
    for siblings in alike.values():
        for gpu in siblings:
            said = [*_broken(gpu), *_missing(gpu, [other for other in siblings if other is not gpu])]
            if len(said) >= max(1, seen.limit(FEWEST)):
                yield Symptom(cause=SILENT, part=gpu.part, evidence=tuple(dict.fromkeys(said)))
    yield from unreliable(smi)


def _broken(gpu: Gpu) -> Iterator[str]:
    for paths in READINGS:
        found = reading(gpu, *paths)
        if found.kind in ("broken", "lost"):
            yield f"{paths[0]}: {found.text[:80] or 'empty'}"


def _missing(gpu: Gpu, others: Sequence[Gpu]) -> Iterator[str]:
    """Readings that most of the others have; with ECC off there are no errors to count."""
    off = reading(gpu, "ecc_mode/current_ecc").text.lower() == "disabled"
    for paths in READINGS:
        if off and paths[0].startswith("ecc_errors/"):
            continue
        found = reading(gpu, *paths)
        if found.kind in ("missing", "unsupported"):
            having = sum(reading(other, *paths).kind in ("number", "word") for other in others)
            if others and 2 * having > len(others):
                yield f"{paths[0]}: {found.text or 'missing'}; {having} of {len(others)} siblings have it"


CHECKS = (
    Check(
        name="gpu.telemetry",
        about="readings of a GPU that are errors, or missing while its siblings have them",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(SILENT, UNREADABLE),
        limits=(FEWEST,),
        judge=_judge,
    ),
)
