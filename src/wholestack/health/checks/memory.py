"""Memory: errors by module (EDAC), size and modules."""

import re
from collections import Counter as Tally
from collections.abc import Iterator, Sequence

from wholestack.health import telemetry
from wholestack.health.check import Cause, Check, Counter, Identity, Limit, Seen, Symptom, Trait
from wholestack.health.formats.dmidecode import Slot, looks_like_dmidecode, no_tables, read_slots
from wholestack.health.formats.edac import Module, looks_like_edac, read_edac
from wholestack.health.formats.proc import looks_like_meminfo, read_meminfo
from wholestack.health.formats.sysfs import grep_failure, no_files
from wholestack.health.growth import Growth, Levels, Memory
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe
from wholestack.remote.batch import Command

EDAC = Probe(
    command=Command(
        name="edac",
        shell=(
            "cd /sys/devices/system/edac/mc && grep -s . mc*/mc_name mc*/ce_count mc*/ue_count "
            "mc*/dimm*/dimm_label mc*/dimm*/dimm_location mc*/dimm*/dimm_ce_count mc*/dimm*/dimm_ue_count "
            "mc*/rank*/dimm_label mc*/rank*/dimm_location mc*/rank*/dimm_ce_count mc*/rank*/dimm_ue_count "
            "mc*/csrow*/ce_count mc*/csrow*/ue_count"
        ),
        limit_s=5,
        max_bytes=500_000,
    ),
    formats=(Format(name="EDAC in /sys", matches=looks_like_edac, read=read_edac),),
    absent=no_files("the kernel counts no memory errors (no EDAC driver)", "/sys/devices/system/edac/mc"),
    failure=grep_failure,
)

MEMINFO = Probe(
    command=Command(name="meminfo", shell="cat /proc/meminfo", limit_s=5, max_bytes=20_000),
    formats=(Format(name="/proc/meminfo", matches=looks_like_meminfo, read=read_meminfo),),
)
DMI_MEMORY = Probe(
    command=Command(name="dmi_memory", shell="dmidecode -t memory", limit_s=10, max_bytes=1_000_000, needs_root=True),
    formats=(Format(name="dmidecode", matches=looks_like_dmidecode, read=read_slots),),
    absent=no_tables,
)

UNCORRECTED = Cause(
    code="memory.uncorrected",
    says="uncorrectable memory error",
    owner="vendor",
    remedy="drain and reboot the host (post-package repair runs at boot); if it returns, replace this DIMM",
    explains=(
        "memory.corrected",
        "memory.slow",
        "kernel.machine_check",
        "kernel.machine_check_corrected",
        "kernel.tainted",
    ),
)
CORRECTED = Cause(
    code="memory.corrected",
    says="many corrected memory errors",
    owner="vendor",
    remedy="plan to replace this DIMM; until then watch for uncorrectable errors",
    status="warn",
    explains=("kernel.machine_check_corrected",),
)

LESS = Cause(
    code="memory.less",
    says="less memory than there should be",
    owner="data centre",
    remedy="dmidecode -t memory shows which slot is empty or disabled; reseat that DIMM, else have it replaced",
    explains=("numa.unbalanced", "numa.no_memory"),
)
DIMM_MISSING = Cause(
    code="memory.dimm_missing",
    says="a slot holds another DIMM than on hosts of this kind, or none",
    owner="data centre",
    remedy="reseat the DIMM in this slot; if the firmware still does not see it, have the vendor replace it",
    explains=("memory.less", "numa.unbalanced", "numa.no_memory"),
)
SLOW = Cause(
    code="memory.slow",
    says="memory runs below its speed",
    owner="cluster team",
    remedy="look for a DIMM of another kind or a changed memory setting in the firmware; correct it, reboot",
    status="warn",
)
MIXED = Cause(
    code="memory.mixed",
    says="DIMMs of several sizes",
    owner="vendor",
    remedy="replace those that are not as the others; mixed sizes cost bandwidth",
    status="warn",
)

CE_RATE = Limit(name="memory.corrected_per_hour", default=10, about="corrected errors within an hour, a warning")
CE_BOOT_RATE = Limit(
    name="memory.corrected_per_hour_since_boot", default=1, about="the same, in the mean since boot at the first look"
)
CE_LEAST = Limit(name="memory.corrected_least", default=20, about="fewer corrected errors than this are never judged")

USABLE = Limit(name="memory.usable_share", default=0.9, about="share of what is plugged in below which is a fail")
SPEED = Limit(
    name="memory.speed_share",
    default=0.75,
    about="share of the rated speed below which is a warning (two modules a channel run at 0.78 by design)",
)


def dimm_part(module: Module) -> Part:
    """The module as findings name it; a controller without modules is the memory as a whole."""
    return Part(kind="dimm", key=module.key, label=module.location)


def judge_edac(seen: Seen) -> Iterator[Symptom]:
    """Uncorrected errors of this boot; corrected ones by their rate."""
    for module in seen.of(EDAC):
        part = dimm_part(module)
        for count, lines in ((module.uncorrected, "uncorrected"), (module.corrected, "corrected")):
            if count is None or count < 0:
                evidence = (f"{module.key}: the count of {lines} errors is no number", *module.lines)
                yield Symptom(cause=telemetry.FIELD, part=part, evidence=evidence)
        if module.uncorrected:
            yield Symptom(cause=UNCORRECTED, part=part, evidence=module.lines)
        yield from _corrected(module, part, seen)


def _corrected(module: Module, part: Part, seen: Seen) -> Iterator[Symptom]:
    growth = _growth(module, seen)
    if growth is not None and growth.status != "ok":
        yield Symptom(cause=CORRECTED, part=part, evidence=(growth.says, *module.lines))


def _growth(module: Module, seen: Seen) -> Growth | None:
    """Of the corrected errors; the uncorrectable ones are a fail until the reboot that repairs them clears them."""
    if module.corrected is None or module.corrected < 0:
        return None
    least = seen.limit(CE_LEAST)
    levels = Levels(warn=seen.limit(CE_RATE), boot_warn=seen.limit(CE_BOOT_RATE), least=least, timeless=least)
    counter = Counter(name="memory.corrected", value=module.corrected, part=dimm_part(module).identity)
    return Memory(seen).growth(counter, levels)


def _counters(seen: Seen) -> Iterator[Counter]:
    for module in seen.of(EDAC):
        growth = _growth(module, seen)
        yield from growth.keep if growth is not None else ()


def judge_size(seen: Seen) -> Iterator[Symptom]:
    """What the kernel has, against what the firmware says is plugged in."""
    total = seen.of(MEMINFO) / 2**20
    sizes = [slot.size_gib for slot in seen.maybe(DMI_MEMORY) or ()]
    plugged = sum(size for size in sizes if size is not None) if None not in sizes else 0.0
    if total < seen.limit(USABLE) * plugged:
        evidence = f"the kernel has {total:.0f} GiB of the {plugged:.0f} GiB that are plugged in"
        yield Symptom(cause=LESS, part=_all_memory(seen), evidence=(evidence,))


def _all_memory(seen: Seen) -> Part:
    """The memory as a whole; a fault of one of its modules explains what is seen of the whole."""
    return Part(kind="memory", within=tuple(f"dimm {slot.key}" for slot in seen.maybe(DMI_MEMORY) or ()))


def nominal_gib(total_kib: int) -> int:
    """What is probably plugged in: the kernel keeps 1/64 for itself (a page's descriptor of 64 bytes) and some more.

    Rounded to a step that is small against a module and large against what kernels differ by.
    """
    estimate = total_kib / 2**20 * 64 / 63
    step = min(max(1 << int(estimate / 32).bit_length() >> 1, 1), 16)
    return round(estimate / step) * step


def _size_trait(seen: Seen) -> Iterator[Trait]:
    size = nominal_gib(seen.of(MEMINFO))
    yield Trait(name="memory.size_gib", value=size, differs=LESS, part=_all_memory(seen))


def judge_dimms(seen: Seen) -> Iterator[Symptom]:
    """Modules that run slow, or are not alike."""
    modules = [slot for slot in seen.of(DMI_MEMORY) if slot.size_gib != 0]
    fastest = max((slot.configured_mts or 0 for slot in modules), default=0)
    for slot in modules:
        part = Part(kind="dimm", key=slot.key, label=slot.label)
        if slot.size_gib is None:
            yield Symptom(cause=telemetry.FIELD, part=part, evidence=(slot.line,))
        elif slot.configured_mts and slot.configured_mts < max(fastest, (slot.rated_mts or 0) * seen.limit(SPEED)):
            yield Symptom(cause=SLOW, part=part, evidence=(slot.line,))
    yield from _unlike(modules)


def _unlike(modules: Sequence[Slot]) -> Iterator[Symptom]:
    """Sizes other than the most frequent one, kind by kind (persistent memory stands beside DRAM)."""
    for kind in dict.fromkeys(slot.kind for slot in modules):
        alike = [slot for slot in modules if slot.kind == kind and slot.size_gib]
        counts = Tally(slot.size_gib for slot in alike)
        if len(counts) > 1:
            usual = counts.most_common(1)[0][0]
            odd = [slot.line for slot in alike if slot.size_gib != usual]
            evidence = (f"{counts[usual]} modules have {usual:g} GiB, these have not:", *odd[:6])
            yield Symptom(cause=MIXED, part=Part(kind="memory"), evidence=evidence)


def _dimm_traits(seen: Seen) -> Iterator[Trait]:
    found = seen.of(DMI_MEMORY)
    modules = [slot for slot in found if slot.size_gib]
    yield Trait(name="memory.modules", value=len(modules), differs=LESS, part=_all_memory(seen))
    for slot in found:
        part = Part(kind="dimm", key=slot.key, label=slot.label)
        size = "empty" if slot.size_gib == 0 else "unknown" if slot.size_gib is None else f"{slot.size_gib:g} GiB"
        yield Trait(name=f"memory.slot.{_slug(slot.key)}", value=size, differs=DIMM_MISSING, part=part)
    speeds = {slot.configured_mts for slot in modules if slot.configured_mts}
    if speeds:
        yield Trait(name="memory.speed_mts", value=min(speeds), differs=SLOW, part=Part(kind="memory"))


def _dimm_identities(seen: Seen) -> Iterator[Identity]:
    for slot in seen.of(DMI_MEMORY):
        part = Part(kind="dimm", key=slot.key, label=slot.label)
        yield Identity(part=part, serial=slot.serial, model=slot.part_number)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


CHECKS = (
    Check(
        name="memory.edac",
        about="memory modules with uncorrectable errors, or many corrected ones",
        probes=(EDAC,),
        parts=("dimm",),
        causes=(UNCORRECTED, CORRECTED),
        limits=(CE_RATE, CE_BOOT_RATE, CE_LEAST),
        judge=judge_edac,
        counters=_counters,
    ),
    Check(
        name="memory.size",
        about="whether the kernel has all memory that is plugged in, and as much as its kind of host",
        probes=(MEMINFO, DMI_MEMORY),
        parts=("memory",),
        causes=(LESS,),
        limits=(USABLE,),
        judge=judge_size,
        traits=_size_trait,
        trait_names=("memory.size_gib",),
    ),
    Check(
        name="memory.dimms",
        about="memory modules: missing, slow, unlike each other",
        probes=(DMI_MEMORY,),
        parts=("dimm", "memory"),
        causes=(DIMM_MISSING, LESS, SLOW, MIXED),
        limits=(SPEED,),
        judge=judge_dimms,
        traits=_dimm_traits,
        identities=_dimm_identities,
        trait_names=("memory.modules", "memory.slot.*", "memory.speed_mts"),
    ),
)
