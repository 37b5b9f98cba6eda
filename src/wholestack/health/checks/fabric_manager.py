"""The fabric manager, which trains the NVLinks through NVSwitches: its service, its log, and what GPUs say of it.

Without it, GPUs behind NVSwitches look healthy and cannot talk to each other: a manager that was dead for 20 days
went unnoticed (NVIDIA/NVSentinel#891).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from wholestack.health.check import Cause, Check, Seen, Symptom
from wholestack.health.checks.nvidia import NVIDIA_SMI, QUIET_HOURS, UNREADABLE, Reader, per_gpu
from wholestack.health.checks.pci import INVENTORY as PCI
from wholestack.health.checks.xid import SWITCH_FATAL, SWITCH_NONFATAL
from wholestack.health.formats.kernel_log import ZONE_SLACK_HOURS
from wholestack.health.formats.nvidia_smi import reading
from wholestack.health.formats.sysfs import no_such_path
from wholestack.health.formats.xids import BENIGN_SXIDS
from wholestack.health.parts import Part, pci_key
from wholestack.health.probe import Format, NotThereError, Probe, UnreadableError
from wholestack.remote.batch import Command

DOWN = Cause(
    code="fabric_manager.down",
    says="the fabric manager does not run",
    owner="cluster team",
    remedy="systemctl restart nvidia-fabricmanager and read its log; its version must be that of the driver",
    explains=(
        "nvlink.inactive",
        "nvlink.all_inactive",
        "nvlink.count",
        "gpu.fabric",
        "fabric_manager.error",
        "service.failed",
    ),
)
MISSING = Cause(
    code="fabric_manager.missing",
    says="the host has NVSwitches, but no fabric manager",
    owner="cluster team",
    remedy="install nvidia-fabricmanager in the driver's version, enable and start it",
    explains=("nvlink.inactive", "nvlink.all_inactive", "nvlink.count", "gpu.fabric"),
)
RESTARTS = Cause(
    code="fabric_manager.restarts",
    says="the fabric manager restarts again and again",
    owner="cluster team",
    remedy="read /var/log/fabricmanager.log; compare its version with the driver's",
    status="warn",
)
LOG_ERROR = Cause(
    code="fabric_manager.error",
    says="the fabric manager reports that it cannot do its work",
    owner="cluster team",
    remedy="read /var/log/fabricmanager.log; reset all GPUs or reboot; to the vendor if it returns",
)
NOT_JOINED = Cause(
    code="gpu.fabric",
    says="GPU has not joined the NVLink fabric",
    owner="cluster team",
    remedy="check the fabric manager (on NVL72: of the rack), then reset the GPU or reboot",
)
UNWELL = Cause(
    code="gpu.fabric_health",
    says="GPU's connection to the NVLink fabric is degraded",
    owner="vendor",
    remedy="drain, reset the GPUs; if it stays, have cartridge, switch tray or baseboard checked",
)
_UNIT = "nvidia-fabricmanager.service"
_KEYS = ("LoadState", "ActiveState", "SubState", "Result", "NRestarts")
_STAMP = re.compile(r"\[([A-Z][a-z]{2} \d{1,2} \d{4} \d\d:\d\d:\d\d)\] ")
_SWITCH = re.compile(
    r"detected NVSwitch (?P<severity>non-fatal|fatal) error (?P<code>\d{1,6})[^\n]{0,80}?"
    r"NVSwitch pci bus id (?P<address>[0-9a-fA-F:.]{7,20})(?:[^\n]{0,60}?\bport (?P<port>\d{1,4}))?"
)
_WORK = re.compile(
    r"\[(?:ERROR|FATAL|CRITICAL)\][^\n]{0,200}?(?:aborting fabric manager|don't match with any supported|"
    r"failed to (?:initialize|train|configure|start)|NVLink (?:fatal|training) (?:error|failure)|not all GPUs)",
    re.IGNORECASE,
)


def _read_unit(text: str) -> dict[str, str]:
    found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if not {"LoadState", "ActiveState"} <= found.keys():
        raise UnreadableError("systemctl does not tell LoadState and ActiveState")
    return found


STATE: Probe[dict[str, str]] = Probe(
    command=Command(
        name="fabric_manager",
        shell="systemctl show nvidia-fabricmanager " + " ".join(f"-p {key}" for key in _KEYS),
        limit_s=10,
        max_bytes=4_000,
    ),
    formats=(Format(name="systemctl show", matches=lambda text: "State=" in text[:400], read=_read_unit),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line that tells of an error."""

    at: float
    """Seconds since the epoch if the host's clock runs on UTC: the log has no zone."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What matters of a fabric manager's log."""

    lines: tuple[LogLine, ...]
    newest: float


def _read_log(text: str) -> Log:
    stamps = _STAMP.findall(text[-200_000:])
    if not stamps:
        raise UnreadableError("no line is dated as the fabric manager does it")
    lines = []
    for line in text.splitlines():
        if "NVSwitch" in line or "[ERROR]" in line or "[FATAL]" in line or "[CRITICAL]" in line:
            stamp = _STAMP.match(line)
            if stamp is not None and (_SWITCH.search(line) or _WORK.search(line)):
                lines.append(LogLine(at=_seconds(stamp[1]), text=line.strip()))
    return Log(lines=tuple(lines), newest=_seconds(stamps[-1]))


def _seconds(stamp: str) -> float:
    return datetime.strptime(stamp, "%b %d %Y %H:%M:%S").replace(tzinfo=UTC).timestamp()


LOG: Probe[Log] = Probe(
    command=Command(
        name="fabric_manager_log", shell="tail -c 300000 /var/log/fabricmanager.log", limit_s=10, max_bytes=400_000
    ),
    formats=(Format(name="fabricmanager.log", matches=lambda text: _STAMP.search(text) is not None, read=_read_log),),
    absent=no_such_path("there is no fabric manager's log", "/var/log/fabricmanager.log"),
)


def _judge_state(seen: Seen) -> Iterator[Symptom]:
    """Needed where the bus shows NVSwitches; where the bus is not known, a service that is installed is needed."""
    devices = seen.maybe(PCI)
    switches = [device for device in devices or () if device.is_nvswitch]
    try:
        unit = seen.of(STATE)
    except UnreadableError:
        if switches or (devices is None and _has_nvidia(seen)):
            raise
        raise NotThereError("not_expected", "no NVSwitch that needs a fabric manager") from None
    part = Part(kind="service", key=_UNIT)
    shown = (", ".join(f"{key}={unit[key]}" for key in _KEYS if key in unit),)
    if unit["LoadState"] in ("not-found", "masked"):
        if not switches:
            raise NotThereError("not_installed", "no fabric manager, and no NVSwitch that needs one")
        yield Symptom(cause=MISSING, part=part, evidence=(*shown, f"{len(switches)} NVSwitches on the bus"))
        return
    if devices is not None and not switches and unit["ActiveState"] != "failed":
        raise NotThereError("not_expected", "no NVSwitch on the PCI bus")
    if unit["ActiveState"] != "active" or unit.get("SubState") not in (None, "running"):
        yield Symptom(cause=DOWN, part=part, evidence=shown)
    elif unit.get("NRestarts", "0").isdigit() and int(unit.get("NRestarts", "0")[:9]) >= 3:
        yield Symptom(cause=RESTARTS, part=part, evidence=shown)


def _has_nvidia(seen: Seen) -> bool:
    """Also where it cannot be told."""
    try:
        seen.of(NVIDIA_SMI)
    except UnreadableError:
        return True
    except NotThereError:
        return False
    return True


def _judge_log(seen: Seen) -> Iterator[Symptom]:
    log = seen.of(LOG)
    now = log.newest if seen.uptime_s is None else seen.now - ZONE_SLACK_HOURS * 3600
    for line in log.lines:
        if (now - line.at) / 3600 > seen.limit(QUIET_HOURS):
            continue
        found = _SWITCH.search(line.text)
        if found is None:
            yield Symptom(cause=LOG_ERROR, part=Part(kind="service", key=_UNIT), evidence=(line.text,))
        elif found["severity"] == "fatal" or int(found["code"]) not in BENIGN_SXIDS:
            cause = SWITCH_FATAL if found["severity"] == "fatal" else SWITCH_NONFATAL
            label = found["address"] + (f", port {found['port']}" if found["port"] else "")
            part = Part(kind="nvswitch", key=pci_key(found["address"]), label=label)
            yield Symptom(cause=cause, part=part, evidence=(line.text,))


def _judge_fabric(reader: Reader, _: Seen) -> Iterator[Symptom]:
    """R535 and later, on GPUs behind NVSwitches; others say N/A."""
    state, status = (reader.word(f"fabric/{name}", required=False) for name in ("state", "status"))
    if state and (state.lower() != "completed" or (status and status.lower() not in ("success", "0"))):
        evidence = (f"fabric state: {state}, status: {status or 'N/A'}",)
        yield Symptom(cause=NOT_JOINED, part=reader.gpu.part, evidence=evidence)
    ill = [
        f"fabric {name}: {text}"
        for name, good in (
            ("summary", "healthy"),
            ("bandwidth", "full"),
            ("route_unhealthy", "false"),
            ("route_recovery_in_progress", "false"),
            ("access_timeout_recovery", "false"),
        )
        if (found := reading(reader.gpu, f"fabric/health/{name}")).kind == "word"
        and (text := found.text).lower() not in (good, "no", "none")
    ]
    if ill:
        yield Symptom(cause=UNWELL, part=reader.gpu.part, evidence=tuple(ill))


CHECKS = (
    Check(
        name="fabric_manager.state",
        about="the fabric manager runs where there are NVSwitches",
        probes=(STATE, PCI, NVIDIA_SMI),
        parts=("service",),
        causes=(DOWN, MISSING, RESTARTS),
        judge=_judge_state,
    ),
    Check(
        name="fabric_manager.log",
        about="fatal and non-fatal errors of NVSwitches, and failures of the manager itself",
        probes=(LOG,),
        parts=("nvswitch", "service"),
        causes=(SWITCH_FATAL, SWITCH_NONFATAL, LOG_ERROR),
        limits=(QUIET_HOURS,),
        judge=_judge_log,
    ),
    Check(
        name="gpu.fabric",
        about="GPUs behind NVSwitches have joined the fabric and are well connected",
        probes=(NVIDIA_SMI,),
        parts=("gpu",),
        causes=(NOT_JOINED, UNWELL, UNREADABLE),
        judge=per_gpu(_judge_fabric),
    ),
)
