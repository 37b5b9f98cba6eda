"""Memory: errors by module (EDAC), size and modules."""

from collections.abc import Iterator

from wholestack.health import telemetry
from wholestack.health.check import Cause, Check, Counter, Limit, Seen, Symptom
from wholestack.health.formats.edac import Module, looks_like_edac, read_edac
from wholestack.health.formats.sysfs import nothing_printed, trusted
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
    absent=nothing_printed("the kernel counts no memory errors (no EDAC driver)"),
    failure=trusted,
)

UNCORRECTED = Cause(
    code="memory.uncorrected",
    says="uncorrectable memory error",
    owner="vendor",
    remedy="drain and reboot the host (post-package repair runs at boot); if it returns, replace this DIMM",
    explains=("memory.corrected", "kernel.machine_check", "kernel.edac", "bmc.memory"),
)
CORRECTED = Cause(
    code="memory.corrected",
    says="many corrected memory errors",
    owner="vendor",
    remedy="plan to replace this DIMM; until then watch for uncorrectable errors",
    status="warn",
    explains=("kernel.machine_check", "kernel.edac"),
)

CE_RATE = Limit(
    name="memory.corrected_per_hour", default=10, about="corrected errors an hour since the last look, a warning"
)
CE_BOOT_RATE = Limit(
    name="memory.corrected_per_hour_since_boot", default=1, about="the same, at first sight and so since boot"
)
CE_LEAST = Limit(name="memory.corrected_least", default=20, about="fewer corrected errors than this are never judged")


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
    if module.corrected is None or module.corrected < seen.limit(CE_LEAST):
        return
    rate = seen.rate(Counter(name="memory.corrected", value=module.corrected, part=part.identity))
    if rate is None:
        evidence = f"{module.corrected} corrected errors, since when is not known"
        yield Symptom(cause=CORRECTED, part=part, evidence=(evidence, *module.lines))
        return
    limit = seen.limit(CE_RATE if rate.since == "last look" else CE_BOOT_RATE)
    if rate.delta >= seen.limit(CE_LEAST) and rate.per_hour >= limit:
        evidence = f"{rate.delta} corrected errors in {rate.hours:.1f} h (since {rate.since})"
        yield Symptom(cause=CORRECTED, part=part, evidence=(evidence, *module.lines))


def _counters(seen: Seen) -> Iterator[Counter]:
    for module in seen.of(EDAC):
        part = dimm_part(module).identity
        if module.corrected is not None:
            yield Counter(name="memory.corrected", value=module.corrected, part=part)
        if module.uncorrected is not None:
            yield Counter(name="memory.uncorrected", value=module.uncorrected, part=part)


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
)
