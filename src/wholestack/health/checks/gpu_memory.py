"""Memory of GPUs: ECC errors, row remapping (Ampere and later), retired pages (before it).

Source: NVIDIA, "GPU Memory Error Management" and "Dynamic Page Retirement": a pending remap or retirement takes
effect at the next reset of the GPU; a failed one, or more SRAM errors than the board's own threshold, ends its life.
"""

from collections.abc import Iterable, Iterator

from wholestack.health.check import Cause, Check, Counter, Limit, Seen, Symptom, Trait
from wholestack.health.checks.nvidia import NVIDIA_SMI, UNREADABLE, Reader, is_desktop, listed, per_gpu, text_of
from wholestack.health.formats.nvidia_smi import Gpu, Smi, reading
from wholestack.health.growth import Growth, Levels, Memory

_MEMORY_XIDS = ("gpu.xid_memory", "gpu.xid_contained", "gpu.xid_remap", "gpu.xid_application", "gpu.recovery_action")

UNCORRECTED = Cause(
    code="gpu.ecc_uncorrected",
    says="uncorrectable memory errors since the driver was loaded",
    owner="vendor",
    remedy="drain, reset the GPU (nvidia-smi --gpu-reset -i ID) or reboot, run the vendor's diagnostic; "
    "replace it if errors return",
    explains=(*_MEMORY_XIDS, "gpu.ecc_lifetime", "gpu.ecc_rate"),
)
LIFETIME = Cause(
    code="gpu.ecc_lifetime",
    says="many uncorrectable memory errors over the life of the board",
    owner="vendor",
    remedy="run the vendor's diagnostic when the host is idle; ask for a replacement if the number still grows",
    status="warn",
)
SRAM_THRESHOLD = Cause(
    code="gpu.sram_threshold",
    says="more uncorrectable SRAM errors than the board's own threshold",
    owner="vendor",
    remedy="drain the host and have the GPU replaced",
    explains=("gpu.ecc_uncorrected", "gpu.ecc_lifetime", *_MEMORY_XIDS),
)
UNREPAIRABLE = Cause(
    code="gpu.memory_unrepairable",
    says="the GPU reports memory that cannot be repaired",
    owner="vendor",
    remedy="drain the host and have the GPU replaced",
    explains=("gpu.ecc_uncorrected", "gpu.ecc_lifetime", "gpu.row_remap_pending", *_MEMORY_XIDS),
)
REPAIR_PENDING = Cause(
    code="gpu.repair_pending",
    says="a repair of memory channel or TPC waits for a reset",
    owner="cluster team",
    remedy="drain and reset the GPU (nvidia-smi --gpu-reset -i ID) or reboot",
    status="warn",
    explains=("gpu.recovery_action",),
)
ECC_RATE = Cause(
    code="gpu.ecc_rate",
    says="corrected memory errors come fast",
    owner="vendor",
    remedy="watch it; run the vendor's diagnostic when the host is idle",
    status="warn",
    explains=("gpu.xid_wear",),
)
ECC_MODE = Cause(
    code="gpu.ecc_mode",
    says="ECC is off, or its mode changes at the next reset",
    owner="cluster team",
    remedy="nvidia-smi -e 1, then reset the GPU or reboot",
    status="warn",
)
REMAP_PENDING = Cause(
    code="gpu.row_remap_pending",
    says="a faulty memory row is still in use: its remap waits for a reset",
    owner="cluster team",
    remedy="drain, then reset the GPU (nvidia-smi --gpu-reset -i ID) or reboot",
    explains=("gpu.ecc_uncorrected", "gpu.ecc_lifetime", "gpu.ecc_rate", *_MEMORY_XIDS),
)
REMAP_FAILURE = Cause(
    code="gpu.row_remap_failure",
    says="a faulty memory row could not be remapped",
    owner="vendor",
    remedy="drain the host and have the GPU replaced (this qualifies for a return)",
    explains=(
        "gpu.row_remap_pending",
        "gpu.row_remap_used_up",
        "gpu.ecc_uncorrected",
        "gpu.ecc_lifetime",
        *_MEMORY_XIDS,
    ),
)
REMAP_USED_UP = Cause(
    code="gpu.row_remap_used_up",
    says="a memory bank has no spare row left, or all remaps are used",
    owner="vendor",
    remedy="plan a replacement: the next fault there cannot be remapped",
    status="warn",
)
PAGES_PENDING = Cause(
    code="gpu.retired_pages_pending",
    says="a faulty memory page is still in use: its retirement waits for a reset",
    owner="cluster team",
    remedy="drain, then reset the GPU (nvidia-smi --gpu-reset -i ID) or reboot",
    explains=("gpu.ecc_uncorrected", "gpu.ecc_lifetime", *_MEMORY_XIDS),
)
PAGES_USED_UP = Cause(
    code="gpu.retired_pages_used_up",
    says="many memory pages are retired",
    owner="vendor",
    remedy="drain the host and have the GPU replaced: no more than 64 pages can be retired",
)
LIFETIME_ERRORS = Limit(
    name="gpu.ecc_lifetime_errors", default=10, about="uncorrectable errors over the board's life that are a warning"
)
CORRECTED_PER_HOUR = Limit(
    name="gpu.ecc_corrected_per_hour", default=100, about="corrected errors an hour that are a warning"
)
MOST_REMAPS = Limit(name="gpu.row_remaps", default=512, about="remapped rows at which none is left")
MOST_PAGES = Limit(name="gpu.retired_pages", default=60, about="retired pages that are a fail")

_ERRORS = "ecc_errors/{span}/"


def _uncorrected(reader: Reader, span: str, *, required: bool) -> float | None:
    """Sum over SRAM and DRAM (R450 and later), or the total (before, and in queries); ``None`` if not supported."""
    base = _ERRORS.format(span=span)
    if reading(reader.gpu, base + "double_bit/total").kind != "missing":
        return reader.number(base + "double_bit/total", required=required)
    names = ["dram_uncorrectable", "sram_uncorrectable"]
    if reading(reader.gpu, base + "sram_uncorrectable_parity").kind != "missing":
        names[1:] = ["sram_uncorrectable_parity", "sram_uncorrectable_secded"]
    counts = [reader.number(base + name, required=required) for name in names]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _corrected(gpu: Gpu) -> int | None:
    found = [
        reading(gpu, f"ecc_errors/volatile/{name}")
        for name in ("single_bit/total", "sram_correctable", "dram_correctable")
    ]
    known = [each.number for each in found if each.kind == "number"]
    return int(sum(known)) if known else None


def _judge_ecc(reader: Reader, seen: Seen) -> Iterator[Symptom]:
    part = reader.gpu.part
    now, ever = (
        _uncorrected(reader, "volatile", required=True),
        _uncorrected(reader, "aggregate", required=reader.whole),
    )
    if now or any(_mig_errors(reader.gpu)):
        yield Symptom(cause=UNCORRECTED, part=part, evidence=(*_errors_of(reader.gpu), *_mig_errors(reader.gpu)))
    if ever is not None and ever >= seen.limit(LIFETIME_ERRORS):
        yield Symptom(cause=LIFETIME, part=part, evidence=_errors_of(reader.gpu))
    yield from _judge_flags(reader)
    yield from _judge_rate(reader.gpu, seen)


def _judge_flags(reader: Reader) -> Iterator[Symptom]:
    for path, cause in (
        ("ecc_errors/aggregate/sram_threshold_exceeded", SRAM_THRESHOLD),
        ("ecc_errors/unrepairable_memory", UNREPAIRABLE),
        ("ecc_errors/channel_repair_pending", REPAIR_PENDING),
        ("ecc_errors/tpc_repair_pending", REPAIR_PENDING),
    ):
        if reader.is_yes(path, required=False):
            yield Symptom(cause=cause, part=reader.gpu.part, evidence=(f"{path}: {reader.word(path)}",))
    current = reader.word("ecc_mode/current_ecc", required=reader.whole)
    pending = reader.word("ecc_mode/pending_ecc", required=reader.whole)
    off = current.lower() == "disabled" and not is_desktop(reader.gpu)
    if off or (current and pending and current != pending):
        evidence = (f"ECC mode: current {current or 'N/A'}, pending {pending or 'N/A'}",)
        yield Symptom(cause=ECC_MODE, part=reader.gpu.part, evidence=evidence)


def _judge_rate(gpu: Gpu, seen: Seen) -> Iterator[Symptom]:
    for growth in _growths(gpu, seen):
        if growth.status != "ok":
            yield Symptom(cause=ECC_RATE, part=gpu.part, evidence=(growth.says,))


def _errors_of(gpu: Gpu) -> tuple[str, ...]:
    return tuple(
        f"{path}: {text}"
        for path, text in gpu.fields.items()
        if path.startswith("ecc_errors/") and ("uncorr" in path or "double" in path) and text not in ("0", "N/A")
    )


def _mig_errors(gpu: Gpu) -> Iterator[str]:
    for device in gpu.mig_devices:
        for path, text in device.items():
            if path.startswith("ecc_error_count/") and "uncorr" in path and text.isdigit() and text.strip("0"):
                yield f"MIG device {device.get('index', '?')}: {path}: {text[:20]}"


def _growths(gpu: Gpu, seen: Seen) -> Iterator[Growth]:
    corrected = _corrected(gpu)
    if corrected is not None:
        counter = Counter(name="gpu.ecc_corrected", value=corrected, part=gpu.part.identity)
        yield Memory(seen).growth(counter, Levels(warn=seen.limit(CORRECTED_PER_HOUR)))


def _judge_remap(reader: Reader, seen: Seen) -> Iterator[Symptom]:
    """A driver before R450 does not know of remapping and leaves the element out."""
    base, required = "remapped_rows/", not _before_450(seen.of(NVIDIA_SMI))
    part = reader.gpu.part
    if reader.is_yes(base + "remapped_row_failure", required=required):
        yield Symptom(cause=REMAP_FAILURE, part=part, evidence=_remaps_of(reader.gpu))
    if reader.is_yes(base + "remapped_row_pending", required=required):
        yield Symptom(cause=REMAP_PENDING, part=part, evidence=_remaps_of(reader.gpu))
    required = required and reader.whole
    counts = [reader.number(base + f"remapped_row_{kind}", required=required) for kind in ("corr", "unc")]
    empty = reader.number(base + "row_remapper_histogram/row_remapper_histogram_none", required=False)
    if (empty or 0) > 0 or sum(count or 0 for count in counts) >= seen.limit(MOST_REMAPS):
        yield Symptom(cause=REMAP_USED_UP, part=part, evidence=_remaps_of(reader.gpu))


def _remaps_of(gpu: Gpu) -> tuple[str, ...]:
    return tuple(
        f"{path}: {text}"
        for path, text in gpu.fields.items()
        if path.startswith("remapped_rows/") and "max" not in path
    )


def _before_450(smi: Smi) -> bool:
    major = smi.driver.split(".")[0]
    return major.isdigit() and int(major[:6]) < 450


def _judge_pages(reader: Reader, seen: Seen) -> Iterator[Symptom]:
    base = "retired_pages/"
    counts = [
        reader.number(f"{base}{kind}_retirement/retired_count", required=reader.whole)
        for kind in ("multiple_single_bit", "double_bit")
    ]
    shown = (f"retired pages: {counts[0]} after corrected, {counts[1]} after uncorrectable errors",)
    if sum(count or 0 for count in counts) >= seen.limit(MOST_PAGES):
        yield Symptom(cause=PAGES_USED_UP, part=reader.gpu.part, evidence=shown)
    for path in (base + "pending_retirement", base + "pending_blacklist"):
        if reader.is_yes(path, required=False):
            yield Symptom(cause=PAGES_PENDING, part=reader.gpu.part, evidence=(f"{path}: Yes", *shown))


def _ecc_traits(seen: Seen) -> Iterator[Trait]:
    for gpu in listed(seen).gpus:
        if mode := text_of(gpu, "ecc_mode/current_ecc"):
            yield Trait(name="gpu.ecc_mode", value=mode, differs=ECC_MODE, part=gpu.part)


def _ecc_counters(seen: Seen) -> Iterable[Counter]:
    return [counter for gpu in listed(seen).gpus for growth in _growths(gpu, seen) for counter in growth.keep]


CHECKS = (
    Check(
        name="gpu.row_remap",
        about="memory rows that wait for a remap, could not be remapped, or have no spare left",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(REMAP_FAILURE, REMAP_PENDING, REMAP_USED_UP, UNREADABLE),
        limits=(MOST_REMAPS,),
        judge=per_gpu(_judge_remap),
    ),
    Check(
        name="gpu.retired_pages",
        about="memory pages that are retired or wait for it (before Ampere)",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(PAGES_PENDING, PAGES_USED_UP, UNREADABLE),
        limits=(MOST_PAGES,),
        judge=per_gpu(_judge_pages),
    ),
    Check(
        name="gpu.ecc",
        about="uncorrectable and frequent memory errors, repairs that wait, ECC switched off",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(UNCORRECTED, SRAM_THRESHOLD, UNREPAIRABLE, LIFETIME, REPAIR_PENDING, ECC_RATE, ECC_MODE, UNREADABLE),
        limits=(LIFETIME_ERRORS, CORRECTED_PER_HOUR),
        judge=per_gpu(_judge_ecc),
        traits=_ecc_traits,
        counters=_ecc_counters,
        trait_names=("gpu.ecc_mode",),
    ),
)
