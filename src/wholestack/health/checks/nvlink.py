"""NVLink: links that should be up, their speed, and their errors as rates.

How many links should be up depends on the board, not on how many it lists: a PCIe card with bridges has 12 of 18 by
design (Azure/azurehpc-health-checks#162). A profile's ``nvlink.count`` decides; without one, the module forms
(SXM and the like) must have all that they list, and others as many as their best sibling.
"""

import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping

from wholestack.health.check import Cause, Check, Counter, Limit, Seen, Symptom, Trait
from wholestack.health.checks.gpu_presence import lost_keys
from wholestack.health.checks.nvidia import NVIDIA_SMI, raise_if_hung
from wholestack.health.checks.pci import INVENTORY as PCI
from wholestack.health.formats.nvidia_smi import Gpu
from wholestack.health.formats.nvlink import (
    GpuLinks,
    LinkErrors,
    looks_like_errors,
    looks_like_states,
    read_errors,
    read_states,
)
from wholestack.health.growth import Growth, Levels, Memory
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe
from wholestack.health.telemetry import FIELD
from wholestack.remote.batch import Command

STATUS: Probe[tuple[GpuLinks, ...]] = Probe(
    command=Command(name="nvlink_status", shell="nvidia-smi nvlink -s", limit_s=20, max_bytes=200_000),
    with_stderr=True,
    formats=(Format(name="nvidia-smi nvlink -s", matches=looks_like_states, read=read_states),),
)
ERRORS: Probe[tuple[LinkErrors, ...]] = Probe(
    command=Command(name="nvlink_errors", shell="nvidia-smi nvlink -e", limit_s=20, max_bytes=400_000),
    formats=(Format(name="nvidia-smi nvlink -e", matches=looks_like_errors, read=read_errors),),
)
INACTIVE = Cause(
    code="nvlink.inactive",
    says="NVLink is down",
    owner="vendor",
    remedy="drain, reset the GPUs or reboot; if a link stays down, have the GPU, bridge or baseboard checked",
    explains=(
        "nvlink.errors",
        "nvlink.slow",
        "gpu.xid_nvlink",
        "nvlink.count",
        "gpu.xid_application",
        "gpu.fabric",
    ),
)
ALL_INACTIVE = Cause(
    code="nvlink.all_inactive",
    says="no NVLink of the host is up",
    owner="cluster team",
    remedy="check the fabric manager (version, log) and reboot; then see nvidia-smi topo -m",
    explains=("nvlink.inactive", "nvlink.count", "gpu.fabric"),
)
SLOW = Cause(
    code="nvlink.slow",
    says="NVLink is slower than the others",
    owner="vendor",
    remedy="drain and reboot; if the link stays slow, have the GPU or baseboard checked",
    status="warn",
)
COUNT = Cause(
    code="nvlink.count",
    says="another number of NVLinks up than expected",
    owner="vendor",
    remedy="drain, reset the GPUs or reboot; compare with a host of the same kind",
)
UNLISTED = Cause(
    code="nvlink.unlisted",
    says="nvidia-smi nvlink leaves out a GPU that nvidia-smi lists",
    owner="vendor",
    remedy="run nvidia-smi nvlink -s by hand; reset the GPU or reboot",
    status="warn",
)
ERROR_RATE = Cause(
    code="nvlink.errors",
    says="NVLink makes errors",
    owner="vendor",
    remedy="watch it; under load, run the vendor's diagnostic; have the GPU, bridge or baseboard checked",
    status="warn",
    explains=("gpu.xid_nvlink",),
)
ERROR_STORM = Cause(
    code="nvlink.error_storm",
    says="NVLink makes errors all the time",
    owner="vendor",
    remedy="drain the host; have the GPU, bridge or baseboard replaced",
    explains=("nvlink.errors", "gpu.xid_nvlink", "nvlink.slow"),
)
SATURATED = Cause(
    code="nvlink.saturated",
    says="an error counter of an NVLink is at its end: nobody knows how many there were",
    owner="cluster team",
    remedy="reset the counters (reset the GPU or reboot) and look again",
    status="warn",
)
PER_HOUR = Limit(name="nvlink.errors_per_hour", default=5, about="errors an hour on one link that are a warning")
STORM = Limit(name="nvlink.storm_per_hour", default=1000, about="errors an hour on one link that are a fail")
FEWEST = 5
"""Fewer errors than this are no rate."""
MARKER = "nvlink.asked"
"""Kept of every GPU whose links told their errors."""
_ENDS = (0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
_MODULES = re.compile(r"SXM|HGX|GB\d00|\bB[23]00\b|\bGH200\b|\bH20\b|H100 80GB HBM3|\bH200$|NVIDIA H200\s*$")


def _parts(seen: Seen) -> Mapping[int, Gpu]:
    """GPUs by the index that both outputs share."""
    smi = seen.maybe(NVIDIA_SMI)
    return {gpu.index: gpu for gpu in smi.gpus} if smi is not None else {}


def _gpu_part(index: int, uuid: str, known: Mapping[int, Gpu]) -> Part:
    by_uuid = next((gpu for gpu in known.values() if uuid and gpu.fields.get("uuid") == uuid), None)
    gpu = by_uuid or known.get(index)
    return gpu.part if gpu is not None else Part(kind="gpu", key=f"index {index}", label=uuid)


def _link_part(gpu: Part, link: int, *others: str) -> Part:
    return Part(kind="nvlink", key=f"{gpu.key}/{link}", label=gpu.label, within=(gpu.identity, *others))


def _judge_state(seen: Seen) -> Iterator[Symptom]:
    raise_if_hung(seen)
    gpus, known = seen.of(STATUS), _parts(seen)
    expected = {gpu.index: _expected(gpu, gpus, seen) for gpu in gpus}
    if len(gpus) > 1 and not any(gpu.active for gpu in gpus) and any(expected.values()):
        evidence = tuple(f"GPU {gpu.index}: 0 of {expected[gpu.index]} links" for gpu in gpus)
        yield Symptom(cause=ALL_INACTIVE, evidence=evidence)
        return
    through_switch = any(device.is_nvswitch for device in seen.maybe(PCI) or ())
    short = [gpu for gpu in gpus if gpu.active < expected[gpu.index]]
    lost = () if through_switch or not short else tuple(f"gpu {key}" for key in lost_keys(seen))
    for gpu in short:
        yield from _judge_gpu(gpu, expected[gpu.index], _gpu_part(gpu.index, gpu.uuid, known), lost)
    yield from _judge_speed(gpus, known)
    yield from _judge_unlisted(gpus, known)


def _expected(gpu: GpuLinks, gpus: Iterable[GpuLinks], seen: Seen) -> int:
    """How many links of a GPU should be up; one alone (a slice of a host, a lone GH200) has nobody to talk to."""
    wanted = seen.expectation.traits.get("nvlink.count")
    if isinstance(wanted, int):
        return wanted
    siblings = [other for other in gpus if other.name == gpu.name]
    if len(siblings) == 1:
        return gpu.active
    if _MODULES.search(gpu.name):
        return max(1, *(len(other.links) for other in siblings))
    return max(other.active for other in siblings)


def _judge_gpu(gpu: GpuLinks, expected: int, part: Part, lost: tuple[str, ...]) -> Iterator[Symptom]:
    missing = expected - gpu.active
    down = [link for link in gpu.links if link.gb_per_s is None]
    evidence = (f"GPU {gpu.index}: {gpu.active} of {expected} links up", *(link.line for link in down[:8]))
    if missing == 1 and len(down) == 1:
        yield Symptom(cause=INACTIVE, part=_link_part(part, down[0].link, *lost), evidence=evidence)
    else:
        whole = Part(kind="gpu", key=part.key, label=part.label, within=lost)
        yield Symptom(cause=INACTIVE, part=whole, evidence=evidence)


def _judge_speed(gpus: Iterable[GpuLinks], known: Mapping[int, Gpu]) -> Iterator[Symptom]:
    """Links of one product are equally fast."""
    by_name: dict[str, Tally[float]] = {}
    for gpu in gpus:
        by_name.setdefault(gpu.name, Tally()).update(link.gb_per_s for link in gpu.links if link.gb_per_s is not None)
    for gpu in gpus:
        usual = max(by_name[gpu.name].most_common(1), default=(0.0, 0))[0]
        for link in gpu.links:
            if link.gb_per_s is not None and link.gb_per_s < usual * 0.99:
                part = _link_part(_gpu_part(gpu.index, gpu.uuid, known), link.link)
                yield Symptom(cause=SLOW, part=part, evidence=(f"GPU {gpu.index}: {link.line}, others {usual:g} GB/s",))


def _judge_unlisted(gpus: Iterable[GpuLinks], known: Mapping[int, Gpu]) -> Iterator[Symptom]:
    """By UUID: both outputs number the GPUs that they list, and may list others."""
    named = {gpu.uuid or f"index {gpu.index}" for gpu in gpus}
    for index, gpu in known.items():
        uuid = gpu.fields.get("uuid", "")
        if uuid and uuid not in named and f"index {index}" not in named:
            evidence = (f"{uuid} is not among the {len(named)} GPUs of nvidia-smi nvlink -s",)
            yield Symptom(cause=UNLISTED, part=gpu.part, evidence=evidence)


def _state_traits(seen: Seen) -> Iterator[Trait]:
    """Not of a GPU with a link down: that is said already, of the link."""
    gpus, known = seen.of(STATUS), _parts(seen)
    for gpu in gpus:
        if gpu.active >= _expected(gpu, gpus, seen):
            part = _gpu_part(gpu.index, gpu.uuid, known)
            yield Trait(name="nvlink.count", value=gpu.active, differs=COUNT, part=part)


def _judge_errors(seen: Seen) -> Iterator[Symptom]:
    raise_if_hung(seen)
    for each, gpu in _links(seen):
        ends = [f"{name}: {count}" for name, count in each.counts.items() if count in _ENDS]
        part = _link_part(gpu, each.link)
        if ends:
            yield Symptom(cause=SATURATED, part=part, evidence=tuple(ends))
        if each.unread:
            yield Symptom(cause=FIELD, part=part, evidence=each.unread)
        growth = None if ends else _growth(_total(each), part, seen)
        if growth is None or growth.status == "ok":
            continue
        cause = ERROR_STORM if growth.status == "fail" else ERROR_RATE
        shown = ", ".join(f"{name} {count}" for name, count in each.counts.items() if count and _is_error(name))
        yield Symptom(cause=cause, part=part, evidence=(f"{growth.says}: {shown or 'cleared since'}",))


def _links(seen: Seen) -> Iterator[tuple[LinkErrors, Part]]:
    """Every link that told its errors, with its GPU, which is looked up once for all its links."""
    known = _parts(seen)
    gpus: dict[tuple[int, str], Part] = {}
    for each in seen.of(ERRORS):
        key = (each.index, each.uuid)
        if key not in gpus:
            gpus[key] = _gpu_part(each.index, each.uuid, known)
        yield each, gpus[key]


def _is_error(name: str) -> bool:
    return name.endswith(("error", "errors")) and not name.startswith(("effective", "symbol"))


def _total(each: LinkErrors) -> int:
    return sum(count for name, count in each.counts.items() if count and _is_error(name))


def _growth(total: int, part: Part, seen: Seen) -> Growth | None:
    """Of the errors of a link. One that never had any is not kept, only that its GPU was asked."""
    counter, memory = Counter(name="nvlink.errors", value=total, part=part.identity), Memory(seen)
    if not (total or memory.knows(counter)):
        return None
    levels = Levels(warn=seen.limit(PER_HOUR), fail=seen.limit(STORM), least=FEWEST)
    return memory.growth(counter, levels, marker=(MARKER, part.within[0]))


def _error_counters(seen: Seen) -> Iterator[Counter]:
    asked: dict[str, None] = {}
    for each, gpu in _links(seen):
        asked[gpu.identity] = None
        full = any(count in _ENDS for count in each.counts.values())
        growth = None if full else _growth(_total(each), _link_part(gpu, each.link), seen)
        yield from growth.keep if growth is not None else ()
    yield from (Counter(name=MARKER, value=1, part=gpu) for gpu in asked)


CHECKS = (
    Check(
        name="nvlink.state",
        about="NVLinks that should be up and are not, or are slower than the others",
        probes=(STATUS, NVIDIA_SMI, PCI),
        parts=("nvlink", "gpu", "host"),
        causes=(INACTIVE, ALL_INACTIVE, SLOW, COUNT, UNLISTED),
        judge=_judge_state,
        traits=_state_traits,
        trait_names=("nvlink.count",),
    ),
    Check(
        name="nvlink.errors",
        about="replay, recovery and CRC errors of NVLinks as rates",
        probes=(ERRORS, NVIDIA_SMI),
        parts=("nvlink",),
        causes=(ERROR_RATE, ERROR_STORM, SATURATED),
        limits=(PER_HOUR, STORM),
        judge=_judge_errors,
        counters=_error_counters,
    ),
)
