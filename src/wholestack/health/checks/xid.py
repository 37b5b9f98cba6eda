"""Xids and SXids: errors that the drivers of GPUs and NVSwitches log, by number, with class, owner and remedy.

An error of a program (13, 31, 43, 45, ...) is the job owner's, unless one GPU has it with many programs and its
siblings do not. A number that is not known is a warning, never silence. Which number is of which class:
:mod:`~wholestack.health.formats.xids`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wholestack.health.check import Cause, Check, Limit, Seen, Symptom
from wholestack.health.checks.gpu_memory import REMAP_FAILURE
from wholestack.health.checks.gpu_presence import OFF_BUS, gone
from wholestack.health.checks.nvidia import (
    JOB_HOURS,
    KERNEL_LOG,
    NVIDIA_SMI,
    QUIET_HOURS,
    SILENT_TOOLS,
    UNREADABLE,
    listed,
    recent,
    unreliable,
)
from wholestack.health.formats.kernel_log import KernelLog, Line
from wholestack.health.formats.nvidia_smi import Gpu, reading
from wholestack.health.formats.xids import BENIGN_SXIDS, XidClass, meaning
from wholestack.health.parts import Part, pci_key

_BROUGHT_ABOUT = ("gpu.xid_application", "gpu.recovery_action")

MEMORY = Cause(
    code="gpu.xid_memory",
    says="uncorrectable memory error (Xid)",
    owner="vendor",
    remedy="drain, reset the GPU (nvidia-smi --gpu-reset -i ID) or reboot, run the vendor's diagnostic; "
    "replace it if it returns",
    explains=("gpu.xid_contained", "gpu.xid_remap", *_BROUGHT_ABOUT),
)
RESET = Cause(
    code="gpu.xid_reset",
    says="GPU stopped working and needs a reset (Xid)",
    owner="cluster team",
    remedy="drain, then reset the GPU (nvidia-smi --gpu-reset -i ID) or reboot; to the vendor if it returns",
    explains=_BROUGHT_ABOUT,
)
GSP = Cause(
    code="gpu.xid_gsp",
    says="the GPU's system processor does not answer (Xid)",
    owner="cluster team",
    remedy="drain, then reset the GPU or reboot; update driver and firmware; to the vendor if it returns",
    explains=(*_BROUGHT_ABOUT, "gpu.xid_reset", "gpu.unreadable", "gpu.silent", "telemetry.field", *SILENT_TOOLS),
)
HARDWARE = Cause(
    code="gpu.xid_hardware",
    says="hardware error of the GPU (Xid)",
    owner="vendor",
    remedy="drain the host, run the vendor's diagnostic, have the GPU replaced",
    explains=_BROUGHT_ABOUT,
)
POWER_CABLE = Cause(
    code="gpu.xid_power_cable",
    says="auxiliary power is not connected to the GPU (Xid)",
    owner="data centre",
    remedy="connect the power cable of the board",
)
REMAP = Cause(
    code="gpu.xid_remap",
    says="a memory row was marked for remapping (Xid)",
    owner="cluster team",
    remedy="reset the GPU (nvidia-smi --gpu-reset -i ID) when no job runs on it",
    status="warn",
    explains=("gpu.xid_contained", *_BROUGHT_ABOUT),
)
CONTAINED = Cause(
    code="gpu.xid_contained",
    says="contained memory error: one program was ended (Xid)",
    owner="cluster team",
    remedy="restart the job; reset the GPU (nvidia-smi --gpu-reset -i ID) when no job runs on it",
    status="warn",
    explains=_BROUGHT_ABOUT,
)
NVLINK = Cause(
    code="gpu.xid_nvlink",
    says="NVLink error (Xid)",
    owner="vendor",
    remedy="drain, reset the GPUs or reboot; if it returns, have GPU, bridge, cable or baseboard checked",
    explains=(*_BROUGHT_ABOUT, "gpu.xid_nvlink"),
)
WEAR = Cause(
    code="gpu.xid_wear",
    says="the GPU reports wear (Xid)",
    owner="vendor",
    remedy="run the vendor's diagnostic when the host is idle; plan a replacement",
    status="warn",
)
APPLICATION = Cause(
    code="gpu.xid_application",
    says="a program's error on the GPU (Xid)",
    owner="job owner",
    remedy="look for the error in the program (compute-sanitizer, cuda-gdb); run it on another host to compare",
    status="warn",
    explains=("gpu.xid_application",),
)
REPEATED = Cause(
    code="gpu.xid_repeated",
    says="many programs failed on this GPU and not on its siblings (Xid)",
    owner="cluster team",
    remedy="take the GPU out of use and run the vendor's diagnostic",
    status="warn",
    explains=("gpu.xid_application",),
)
UNKNOWN = Cause(
    code="gpu.xid_unknown",
    says="an Xid that we do not know",
    owner="cluster team",
    remedy="look it up in NVIDIA's catalogue of Xids and tell us",
    status="warn",
)
INJECTED = Cause(
    code="gpu.xid_injected",
    says="somebody injected an Xid for a test",
    owner="cluster team",
    remedy="reset the GPU when the test is over",
    status="warn",
)
RECOVERY = Cause(
    code="gpu.recovery_action",
    says="the driver asks for a recovery of the GPU",
    owner="cluster team",
    remedy="drain, then do what it asks for: reset the GPU (nvidia-smi --gpu-reset -i ID) or reboot the host",
    explains=("gpu.xid_application",),
)
SWITCH_FATAL = Cause(
    code="nvswitch.fatal",
    says="fatal error of an NVSwitch",
    owner="vendor",
    remedy="drain, restart the fabric manager after a reset of all GPUs, or reboot; if it returns, have the "
    "baseboard replaced",
    explains=("nvswitch.nonfatal", "nvlink.inactive", "nvlink.all_inactive", "gpu.fabric", "fabric_manager.down"),
)
SWITCH_NONFATAL = Cause(
    code="nvswitch.nonfatal",
    says="non-fatal error of an NVSwitch",
    owner="vendor",
    remedy="watch it: run the vendor's diagnostic when the host is idle, ask for support if it goes on",
    status="warn",
)
LOG_CUT = Cause(
    code="kernel.log_cut",
    says="the kernel log is so long that not all of the last hours is seen",
    owner="cluster team",
    remedy="read it on the host (journalctl -k | grep -E 'Xid|SXid'), and stop what floods it",
    status="unknown",
)
CAUSES: dict[XidClass, Cause] = {
    "off_bus": OFF_BUS, "memory": MEMORY, "remap_event": REMAP, "remap_failure": REMAP_FAILURE, "contained": CONTAINED,
    "reset": RESET, "gsp": GSP, "hardware": HARDWARE, "nvlink": NVLINK, "nvlink5": NVLINK, "power_cable": POWER_CABLE,
    "wear": WEAR, "recovery": RECOVERY, "application": APPLICATION, "unknown": UNKNOWN,
}  # fmt: skip
MANY_PROGRAMS = Limit(
    name="gpu.xid_programs", default=4, about="programs with an error of their own on one GPU that point to the GPU"
)

TOGETHER_S = 600.0
"""Seconds within which the deaths of one job's processes follow on each other."""
CLEAN_UPS = (43, 45)
"""Xids that end a program after an error that another line tells."""

_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<address>[0-9a-fA-F:.]{7,20})\): (?P<code>\d{1,6})(?P<rest>,[^\n]{0,1500}|)\s*$"
)
_PID = re.compile(r"\bpid='?(\d{1,10})")
_NAME = re.compile(r"\bname=([^,\n]{1,60})")
_LINK = re.compile(r"\bLink (-?\d{1,3})\b", re.IGNORECASE)
_SEVERITY = re.compile(r"\b(Non-?fatal|Fatal)\b", re.IGNORECASE)
_ACTION = re.compile(r"to 0x[0-9a-fA-F]{1,4} \(([^)\n]{1,60})\)")
_SXID = re.compile(
    r"SXid \((?:PCI:)?(?P<address>[0-9a-fA-F:.]{7,20})\): "
    r"(?P<code>\d{1,6})(?P<rest>,[^\n]{0,1500}|)\s*$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """One Xid line."""

    code: int
    key: str
    """PCI address of the GPU."""
    text: str
    """What follows the code."""
    pid: int | None = None
    name: str = ""
    link: int | None = None
    """NVLink that it names."""
    fatal: bool | None = None
    """``None`` where the line does not say."""
    action: str = ""
    """Recovery action that it asks for (154)."""

    @property
    def injected(self) -> bool:
        """Whether the line says that it is a test."""
        return re.search(r"\binject(?:ed|ion)?\b", self.text, re.IGNORECASE) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SXid:
    """One SXid line."""

    code: int
    key: str
    """PCI address of the NVSwitch."""
    text: str
    link: int | None = None
    fatal: bool | None = None


def read_xid(message: str) -> Xid | None:
    """The Xid of one line; ``None`` if it has none, or none with a number."""
    found = _XID.search(message)
    if found is None:
        return None
    key = _key(found["address"])
    text = found["rest"].lstrip(", ").strip()
    pid, name, action = _PID.search(text), _NAME.search(text), _ACTION.search(text)
    return Xid(
        code=int(found["code"]),
        key=key,
        text=text,
        pid=int(pid[1]) if pid else None,
        name=name[1].strip() if name and not name[1].startswith("<") else "",
        link=_link(text),
        fatal=_fatal(text),
        action=action[1] if action else "",
    )


def read_sxid(message: str) -> SXid | None:
    """The SXid of one line; ``None`` if it has none, or none with a number."""
    found = _SXID.search(message)
    if found is None:
        return None
    text = found["rest"].lstrip(", ").strip()
    return SXid(code=int(found["code"]), key=_key(found["address"]), text=text, link=_link(text), fatal=_fatal(text))


def _key(address: str) -> str:
    try:
        return pci_key(address)
    except ValueError:
        return address


def _link(text: str) -> int | None:
    found = _LINK.search(text)
    return int(found[1]) if found and int(found[1]) >= 0 else None


def _fatal(text: str) -> bool | None:
    found = _SEVERITY.search(text)
    return None if found is None else found[1].lower() == "fatal"


def _judge_xid(seen: Seen) -> Iterator[Symptom]:
    dated = recent(seen, seen.limit(QUIET_HOURS), "NVRM")
    lines = [(xid, line) for line in dated if (xid := read_xid(line.message)) is not None]
    young = {line.place for line in recent(seen, seen.limit(JOB_HOURS), "NVRM")}
    smi = seen.maybe(NVIDIA_SMI)
    known = {gpu.key: gpu for gpu in smi.gpus} if smi is not None else {}
    groups: dict[tuple[Part, int, bool], list[tuple[Xid, Line]]] = {}
    for xid, line in lines:
        if line.place in young or not _is_of_program(xid):
            groups.setdefault((_part(xid, known), xid.code, xid.injected), []).append((xid, line))
    lost = [(line.at, f"gpu {key}") for line, key, _ in gone(dated)]
    holders = _holders([each for group in groups.values() for each in group], known, lost)
    log = seen.of(KERNEL_LOG)
    least = "at least " if "NVRM" in log.flooded else ""
    symptoms = [
        symptom
        for (part, code, _), found in groups.items()
        for symptom in _of_group(_held(part, code, holders), [xid for xid, _ in found], found[-1][1], known, least)
    ]
    # Equals are merged and keep the status of the first, so the mild ones come last.
    yield from _by_first_link(sorted(symptoms, key=lambda symptom: symptom.status == "warn"))
    yield from _repeated(lines, known, seen)
    yield from _not_seen(log, seen)


def _not_seen(log: KernelLog, seen: Seen) -> Iterator[Symptom]:
    """Where the log was cut so short that it does not reach back through the quiet hours."""
    now = seen.now if seen.uptime_s is not None else None
    if log.cut is not None:
        reaches_h = log.age_hours(log.cut, now=now, uptime_s=seen.uptime_s)
        if reaches_h < seen.limit(QUIET_HOURS):
            words = f"the log was cut: events older than {reaches_h:.1f} hours are not seen; it begins:"
            yield Symptom(cause=LOG_CUT, part=Part(kind="kernel"), evidence=(words, log.cut.text))


def _by_first_link(symptoms: Iterable[Symptom]) -> Iterator[Symptom]:
    """Errors on several links of one GPU are one Finding, of the link that is named first."""
    first: dict[str, str] = {}
    for symptom in symptoms:
        part = symptom.part
        if symptom.cause is NVLINK and part.kind == "nvlink":
            leader = first.setdefault(part.within[0], part.identity)
            if leader != part.identity:
                part = replace(part, within=(*part.within, leader))
        yield replace(symptom, part=part)


def _is_of_program(xid: Xid) -> bool:
    return meaning(xid.code)[0] == "application"


def _held(part: Part, code: int, holders: Mapping[str, tuple[str, ...]]) -> Part:
    """The part of a program's error, held by what brought it about."""
    return replace(part, within=holders.get(part.identity, ())) if meaning(code)[0] == "application" else part


def _holders(
    lines: Sequence[tuple[Xid, Line]], known: dict[str, Gpu], lost: Sequence[tuple[float, str]]
) -> dict[str, tuple[str, ...]]:
    """What brought about the programs' errors of each GPU, by identities of parts.

    A job on several GPUs dies on all of them when one breaks, or when it makes an error of its own: within minutes,
    most with an Xid 45 or 43. That is one Finding, of the GPU that broke or, of a job, that erred first.
    """
    faults = [*lost, *((line.at, _part(xid, known).identity) for xid, line in lines if not _is_of_program(xid))]
    errors: dict[str, list[tuple[Xid, Line]]] = {}
    for xid, line in lines:
        if _is_of_program(xid):
            errors.setdefault(_part(xid, known).identity, []).append((xid, line))
    held = {gpu: _near(found, faults) for gpu, found in errors.items()}
    for together in _clusters({gpu: found for gpu, found in errors.items() if not held[gpu]}):
        first = next((gpu for gpu in together if not _only_cleans_up(errors[gpu])), together[0])
        held.update({gpu: (first,) for gpu in together if gpu != first})
    return held


def _clusters(errors: Mapping[str, Sequence[tuple[Xid, Line]]]) -> Iterator[list[str]]:
    """GPUs whose first errors lie close together, in the order of time."""
    together: list[str] = []
    begin = 0.0
    for gpu, found in sorted(errors.items(), key=lambda item: (item[1][0][1].at, item[1][0][1].place)):
        if together and found[0][1].at - begin > TOGETHER_S:
            yield together
            together = []
        begin = begin if together else found[0][1].at
        together.append(gpu)
    if together:
        yield together


def _only_cleans_up(found: Sequence[tuple[Xid, Line]]) -> bool:
    return all(xid.code in CLEAN_UPS for xid, _ in found)


def _near(found: Sequence[tuple[Xid, Line]], faults: Sequence[tuple[float, str]]) -> tuple[str, ...]:
    """Identities of faulty parts, if each of these errors came soon after one of the faults."""
    near = [{part for at, part in faults if -60 <= line.at - at <= TOGETHER_S} for _, line in found]
    return tuple(sorted(set().union(*near))) if near and all(near) else ()


def _part(xid: Xid, known: dict[str, Gpu]) -> Part:
    gpu = known[xid.key].part if xid.key in known else Part(kind="gpu", key=xid.key)
    if meaning(xid.code)[0] in ("nvlink", "nvlink5") and xid.link is not None:
        return Part(kind="nvlink", key=f"{xid.key}/{xid.link}", label=gpu.label, within=(gpu.identity,))
    return gpu


def _of_group(part: Part, xids: Sequence[Xid], newest: Line, known: dict[str, Gpu], least: str) -> Iterator[Symptom]:
    """All lines of one code at one part: the newest stands for them, with their number."""
    last = xids[-1]
    kind, words = meaning(last.code)
    often = f"{least}{len(xids)} times; the last one" if least or len(xids) > 1 else "once"
    evidence = (f"Xid {last.code} ({words}), {often}:", newest.text)
    if last.injected:
        yield Symptom(cause=INJECTED, part=part, evidence=evidence)
    elif kind == "recovery":
        if last.action.lower() != "none":
            yield Symptom(cause=RECOVERY, part=part, evidence=evidence)
    elif kind == "nvlink5":
        mild = not any(xid.fatal for xid in xids)
        yield Symptom(cause=NVLINK, part=part, evidence=evidence, status="warn" if mild else None)
    elif kind != "ignore" and not (kind == "remap_event" and _remap_is_done(known.get(last.key))):
        yield Symptom(cause=CAUSES[kind], part=part, evidence=evidence)


def _remap_is_done(gpu: Gpu | None) -> bool:
    """Whether the GPU says by now that no remap waits and that rows are remapped."""
    if gpu is None or reading(gpu, "remapped_rows/remapped_row_pending").text.lower() != "no":
        return False
    return any(reading(gpu, f"remapped_rows/remapped_row_{kind}").number > 0 for kind in ("corr", "unc"))


def _repeated(lines: list[tuple[Xid, Line]], known: dict[str, Gpu], seen: Seen) -> Iterator[Symptom]:
    programs: dict[str, dict[int, str]] = {}
    for xid, line in lines:
        if meaning(xid.code)[0] == "application" and xid.pid is not None and not xid.injected:
            programs.setdefault(xid.key, {})[xid.pid] = line.text
    for key, of_gpu in programs.items():
        siblings = [len(other) for name, other in programs.items() if name != key]
        if len(of_gpu) >= seen.limit(MANY_PROGRAMS) and 2 * max(siblings, default=0) < len(of_gpu):
            part = known[key].part if key in known else Part(kind="gpu", key=key)
            evidence = (f"{len(of_gpu)} programs failed on this GPU, at most {max(siblings, default=0)} on another",)
            yield Symptom(cause=REPEATED, part=part, evidence=(*evidence, *list(of_gpu.values())[-4:]))


def _judge_sxid(seen: Seen) -> Iterator[Symptom]:
    groups: dict[tuple[str, int], list[tuple[SXid, Line]]] = {}
    for line in recent(seen, seen.limit(QUIET_HOURS), "SXid"):
        if (sxid := read_sxid(line.message)) is not None:
            groups.setdefault((sxid.key, sxid.code), []).append((sxid, line))
    for (key, code), found in groups.items():
        fatal = any(sxid.fatal for sxid, _ in found)
        if not fatal and code in BENIGN_SXIDS:
            continue
        telling = [line for sxid, line in found if sxid.fatal is not None] or [line for _, line in found]
        often = f"{len(found)} lines; the last one" if len(found) > 1 else "once"
        evidence = (f"SXid {code}, {often}:", telling[-1].text)
        part = Part(kind="nvswitch", key=key)
        yield Symptom(cause=SWITCH_FATAL if fatal else SWITCH_NONFATAL, part=part, evidence=evidence)


def _judge_recovery(seen: Seen) -> Iterator[Symptom]:
    """R555 and later: ``gpu_recovery_action``; R530 and later: ``gpu_reset_status``."""
    smi = listed(seen)
    yield from unreliable(smi)
    for gpu in smi.gpus:
        action = reading(gpu, "gpu_recovery_action")
        if action.kind in ("word", "number") and action.text.lower() != "none":
            yield Symptom(cause=RECOVERY, part=gpu.part, evidence=(f"gpu_recovery_action: {action.text}",))
        for path in ("gpu_reset_status/reset_required", "gpu_reset_status/drain_and_reset_recommended"):
            if reading(gpu, path).text.lower() == "yes":
                yield Symptom(cause=RECOVERY, part=gpu.part, evidence=(f"{path}: Yes",))


CHECKS = (
    Check(
        name="gpu.xid",
        about="Xids of the running kernel by class: hardware, reset, memory, NVLink, program",
        probes=(KERNEL_LOG, NVIDIA_SMI),
        parts=("gpu", "nvlink", "kernel"),
        causes=tuple(dict.fromkeys((*CAUSES.values(), REPEATED, INJECTED, LOG_CUT))),
        limits=(QUIET_HOURS, JOB_HOURS, MANY_PROGRAMS),
        judge=_judge_xid,
    ),
    Check(
        name="gpu.sxid",
        about="SXids (errors of NVSwitches) of the running kernel, fatal or not",
        probes=(KERNEL_LOG,),
        parts=("nvswitch",),
        causes=(SWITCH_FATAL, SWITCH_NONFATAL),
        limits=(QUIET_HOURS,),
        judge=_judge_sxid,
    ),
    Check(
        name="gpu.recovery_action",
        about="GPUs for which the driver asks for a reset, a drain or a reboot",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(RECOVERY, UNREADABLE),
        judge=_judge_recovery,
    ),
)
