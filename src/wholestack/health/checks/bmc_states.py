"""Probes of the BMC, and what the words of its events and states mean: cause, kind of part.

Words are those that ipmitool prints for the sensor-specific offsets of the IPMI 2.0 specification (table 42-3). Log and
sensors name one part alike, so that one broken power supply is one Finding.
"""

import re
from dataclasses import dataclass

from wholestack.finding import Status
from wholestack.health.check import Cause, Seen
from wholestack.health.checks.memory import CORRECTED, EDAC, UNCORRECTED
from wholestack.health.formats.ipmi import (
    Sensor,
    looks_like_sel,
    looks_like_sel_time,
    looks_like_sensors,
    read_sel,
    read_sel_time,
    read_sensors,
)
from wholestack.health.formats.redfish import looks_like_log, read_log
from wholestack.health.parts import HOST, Part, PartKind, pci_key
from wholestack.health.probe import Format, Probe
from wholestack.remote.batch import Command, Output

_NO_DEVICE = re.compile(r"Could not open device at /dev/ipmi[^\n]{0,200}: No such (?:file|device)")


def _no_bmc(output: Output) -> str:
    """The device is missing; one that may not be opened says nothing of the BMC."""
    said = (output.stdout + output.stderr).decode(errors="replace")
    return "no BMC answers (no /dev/ipmi0)" if _NO_DEVICE.search(said) else ""


SEL = Probe(
    command=Command(name="sel", shell="ipmitool sel elist 2>&1", limit_s=30, max_bytes=2_000_000, needs_root=True),
    formats=(
        Format(name="ipmitool sel elist", matches=looks_like_sel, read=read_sel),
        Format(name="Redfish LogEntryCollection", matches=looks_like_log, read=read_log),
    ),
    absent=_no_bmc,
)
SENSORS = Probe(
    command=Command(name="sensors", shell="ipmitool sdr elist", limit_s=30, max_bytes=500_000, needs_root=True),
    formats=(Format(name="ipmitool sdr elist", matches=looks_like_sensors, read=read_sensors),),
    absent=_no_bmc,
)
BMC_TIME = Probe(
    command=Command(name="bmc_time", shell="ipmitool sel time get 2>&1", limit_s=20, max_bytes=10_000, needs_root=True),
    formats=(Format(name="ipmitool sel time get", matches=looks_like_sel_time, read=read_sel_time),),
    absent=_no_bmc,
)

POWER_LOST = Cause(
    code="psu.input_lost",
    says="power supply has no input",
    owner="data centre",
    remedy="check its cord, the outlet and the breaker of that feed; if power is there, have the vendor replace it",
    explains=("bmc.redundancy",),
)
POWER_FAILED = Cause(
    code="psu.failed",
    says="power supply failed",
    owner="vendor",
    remedy="replace this power supply; the host runs on the others until then",
    explains=("bmc.redundancy", "psu.count"),
)
POWER_GONE = Cause(
    code="psu.missing",
    says="power supply is missing",
    owner="data centre",
    remedy="push it in until it latches; if it is still not seen, have the vendor replace it",
    explains=("bmc.redundancy", "psu.count"),
)
SUPPLIES = Cause(
    code="psu.count",
    says="number of power supplies differs",
    owner="data centre",
    remedy="look which bay is empty or whose supply is not seen; push it in until it latches, else have it replaced",
)
FAN = Cause(
    code="fan.failed",
    says="fan failed or too slow",
    owner="vendor",
    remedy="replace this fan; watch temperatures until then",
    explains=("bmc.redundancy", "bmc.hot", "fan.outlier"),
)
HOT = Cause(
    code="bmc.hot",
    says="temperature beyond its limit",
    owner="data centre",
    remedy="check inlet temperature, airflow, blanking panels and fans of this host",
)
VOLTAGE = Cause(
    code="bmc.voltage",
    says="voltage or current beyond its limit",
    owner="vendor",
    remedy="have the vendor look at the board and its power supplies; send the event log",
)
THERMAL_TRIP = Cause(
    code="cpu.thermal_trip",
    says="a processor shut down by heat",
    owner="data centre",
    remedy="check airflow, fans and inlet temperature; if they are right, the vendor renews heat sink and paste",
    explains=("bmc.hot", "cpu.throttled"),
)
PROCESSOR = Cause(
    code="cpu.internal_error",
    says="a processor reported an internal error",
    owner="vendor",
    remedy="send the event log and the crash dump to the vendor; replace the CPU if it returns",
    explains=("kernel.machine_check", "bmc.watchdog"),
)
MACHINE_CHECK = Cause(
    code="bmc.machine_check",
    says="the BMC logged a machine check",
    owner="vendor",
    remedy="decode it (rasdaemon, mcelog); replace the part it names",
    explains=("kernel.machine_check",),
)
PCIE_FATAL = Cause(
    code="bmc.pcie_fatal",
    says="fatal error on a PCI Express bus",
    owner="vendor",
    remedy="find the device (lspci -s BUS); reseat its card or riser; replace it if the error returns",
    explains=("kernel.pcie_error",),
)
DRIVE_FAULT = Cause(
    code="bmc.drive",
    says="the BMC reports a drive fault",
    owner="vendor",
    remedy="find the bay (its amber light) and the drive behind it (smartctl); replace the drive",
)
CRITICAL = Cause(
    code="bmc.critical_event",
    says="the BMC logged an event that it calls critical",
    owner="vendor",
    remedy="read the line; if it names a part, have that one looked at, and send the event log",
    status="warn",
)
WATCHDOG = Cause(
    code="bmc.watchdog",
    says="the watchdog reset the host",
    owner="cluster team",
    remedy="the host hung before: read the kernel log of that boot (journalctl -b -1) and the console",
    status="warn",
)
REDUNDANCY = Cause(
    code="bmc.redundancy",
    says="redundancy of power or fans is lost",
    owner="data centre",
    remedy="look which power supply or fan is out (ipmitool sdr elist); restore power, reseat or replace it",
    status="warn",
)
BATTERY = Cause(
    code="bmc.battery",
    says="battery low or failed",
    owner="vendor",
    remedy="replace the board's battery (or the controller's) in the next maintenance",
    status="warn",
    explains=("clock.jump",),
)
MEMORY_SETUP = Cause(
    code="bmc.memory_disabled",
    says="a DIMM was disabled or not accepted",
    owner="vendor",
    remedy="reseat this DIMM; replace it if the firmware still does not accept it",
    explains=("memory.less", "memory.dimm_missing"),
)
LOG_FULL = Cause(
    code="bmc.log_full",
    says="the BMC's event log is full, or nearly",
    owner="cluster team",
    remedy="save it (ipmitool sel save FILE), then ipmitool sel clear: new events are lost",
    status="warn",
)
CLOCK = Cause(
    code="bmc.clock",
    says="the BMC's clock is wrong",
    owner="cluster team",
    remedy="give the BMC a time server, or ipmitool sel time set now: its log cannot be dated otherwise",
    status="warn",
)
LIMIT = Cause(
    code="bmc.sensor",
    says="a sensor is beyond its limit",
    owner="data centre",
    remedy="look what it measures; compare with a good host of this kind",
    status="warn",
)
SILENT = Cause(
    code="bmc.silent",
    says="a sensor does not answer although those beside it do",
    owner="vendor",
    remedy="reset the BMC (ipmitool mc reset cold); if it stays silent, the part that it measures is gone or failing",
    status="warn",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What words of an event or of a discrete state mean."""

    words: re.Pattern[str]
    """Of the state."""
    cause: Cause
    sensor: re.Pattern[str] = re.compile("")
    """Of the sensor's type or name, where the words alone do not say."""
    kind: PartKind = "sensor"
    when: bool = True
    """Whether it is the coming or the going of the state that is bad."""
    status: Status | None = None


def _rule(
    words: str, cause: Cause, kind: PartKind, *, sensor: str = "", when: bool = True, status: Status | None = None
) -> Rule:
    flags = re.IGNORECASE
    return Rule(
        words=re.compile(words, flags),
        cause=cause,
        sensor=re.compile(sensor, flags),
        kind=kind,
        when=when,
        status=status,
    )


_SUPPLY = r"power supply|\bPSU?[ _#]?\d|PSU"
_BEYOND = r"(?<!non-)critical going|non-recoverable going|transition to (?:critical|non-recoverable)"
_NEAR = r"non-critical going|transition to non-critical"
RULES = (
    _rule(r"AC lost|input lost|input out-of-range", POWER_LOST, "psu"),
    _rule(r"failure detected|power supply inactive", POWER_FAILED, "psu", sensor=_SUPPLY),
    _rule(r"predictive failure", POWER_FAILED, "psu", sensor=_SUPPLY, status="warn"),
    _rule(r"config error", POWER_FAILED, "psu", sensor=_SUPPLY, status="warn"),
    _rule(r"presence detected", POWER_GONE, "psu", sensor=_SUPPLY, when=False),
    _rule(r"redundancy (?:lost|degraded)|non-redundant", REDUNDANCY, "host"),
    _rule(r"uncorrectable ECC|memory parity", UNCORRECTED, "dimm"),
    _rule(r"correctable ECC logging limit", CORRECTED, "dimm"),
    _rule(r"configuration error|memory device disabled", MEMORY_SETUP, "dimm", sensor="memory|dimm"),
    _rule(r"thermal trip", THERMAL_TRIP, "cpu"),
    _rule(r"\bIERR\b|FRB\d|startup/initialization", PROCESSOR, "cpu", sensor="processor|cpu|proc"),
    _rule(r"machine check exception", MACHINE_CHECK, "cpu"),
    _rule(r"bus fatal|bus uncorrectable|PCI [PS]ERR|fatal NMI", PCIE_FATAL, "pci"),
    _rule(r"drive fault|in failed array", DRIVE_FAULT, "drive"),
    _rule(r"predictive failure", DRIVE_FAULT, "drive", sensor="drive|disk", status="warn"),
    _rule(r"hard reset|power down|power cycle|timer expired", WATCHDOG, "host", sensor="watchdog"),
    _rule(r"^low\b|^failed", BATTERY, "sensor", sensor="battery"),
    _rule(r"log (?:almost )?full", LOG_FULL, "bmc"),
    _rule(r"lower (?:critical|non-recoverable) going low|failure|predictive", FAN, "fan", sensor="fan"),
    _rule(r"transition to (?:critical|non-recoverable)", FAN, "fan", sensor="fan"),
    _rule(r"lower non-critical going low", FAN, "fan", sensor="fan", status="warn"),
    _rule(_BEYOND, HOT, "sensor", sensor="temp"),
    _rule(_NEAR, HOT, "sensor", sensor="temp", status="warn"),
    _rule(_BEYOND, VOLTAGE, "sensor", sensor="volt|current"),
)
LASTING = frozenset(
    cause.code
    for cause in (POWER_LOST, POWER_FAILED, POWER_GONE, FAN, HOT, VOLTAGE, REDUNDANCY, DRIVE_FAULT, BATTERY, LOG_FULL)
)
"""States with an end; the others are events that only time heals."""


def meaning(sensor: str, words: str, *, asserted: bool = True) -> Rule | None:
    """The first rule that holds."""
    if not words:
        return None
    for rule in RULES:
        if rule.when == asserted and rule.words.search(words) and rule.sensor.search(sensor):
            return rule
    return None


_BUS = re.compile(r"bus:? ?(?:0x)?([0-9a-f]{2})\b.{0,12}?dev(?:ice)?:? ?(?:0x)?([0-9a-f]{1,2})\b", re.IGNORECASE)


def event_part(kind: PartKind, sensor: str, words: str, seen: Seen) -> Part:
    """The part of an event; the log puts the type of a sensor before its name or number."""
    return part_of(kind, sensor if _NUMBER.search(sensor) else _TYPES.sub("", sensor), words, seen)


def part_of(kind: PartKind, sensor: str, words: str, seen: Seen) -> Part:
    """The part that a sensor stands for, named alike by log and sensors."""
    if kind == "host":
        return HOST
    if kind == "dimm":
        return _dimm(f"{sensor} {words}", sensor, seen)
    if kind == "pci" and (bus := _BUS.search(words)):
        return Part(kind="pci", key=pci_key(f"{bus[1]}:{bus[2]}"), label=sensor)
    named = _numbered(sensor, seen)
    if kind == "psu" and named is not None and (entity := re.fullmatch(r"10\.(\d{1,2})", named.entity)):
        return _supply(named.name, entity[1])
    name = named.name if named is not None else sensor
    if kind == "psu" and (number := re.search(r"(?:PSU?|power supply)[ _#]?(\d{1,2})\b", name, re.IGNORECASE)):
        return _supply(name, number[1])
    key = re.sub(r"[ _]*(?:RPM|Status|Tach\w*|Speed)$", "", name, flags=re.IGNORECASE)
    return Part(kind=kind, key=key, label=name if name != key else "")


_TYPES = re.compile(
    r"^(?:Power Supply|Temperature|Fan|Voltage|Current|Processor|Memory|Drive Slot / Bay|Drive Slot|Critical Interrupt|"
    r"Battery|Watchdog ?2?|Event Logging Disabled|Power Unit|System Event|Physical Security|Unknown) (?=\S)"
)


_NUMBER = re.compile(r"#0x([0-9a-f]{2})$")


def _supply(name: str, number: str) -> Part:
    """Its name may hold a number itself; then that is the one printed on the machine."""
    printed = re.search(r"(?:PSU?|power supply)[ _#]?(\d{1,2})\b", name, re.IGNORECASE)
    return Part(kind="psu", key=f"PS{printed[1] if printed else number}", label=name)


def _numbered(sensor: str, seen: Seen) -> Sensor | None:
    """The sensor whose number stands in an event instead of its name."""
    number = _NUMBER.search(sensor)
    if number is None:
        return None
    return next((known for known in seen.maybe(SENSORS) or () if known.number == number[1]), None)


_DIMM_NAME = re.compile(
    r"\b(?:CPU ?\d[_ ]?)?(?:P\d[_-])?DIMM[ _#]?[A-Z]{0,2}\d{0,2}\b(?:\(CPU\d\))?|\b([A-P]\d{1,2}|CPU\d_[A-P]\d)\)"
)


def _dimm(text: str, sensor: str, seen: Seen) -> Part:
    """The module that the event names; EDAC's name for it where that is the same, or the only one with errors."""
    found = _DIMM_NAME.search(text)
    name = (found[1] or found[0]).strip() if found else ""
    modules = seen.maybe(EDAC) or []
    bad = [module for module in modules if module.uncorrected]
    match = [module for module in modules if name and _plain(module.key).endswith(_plain(name))]
    chosen = match if len(match) == 1 else bad if len(bad) == 1 else []
    if chosen:
        return Part(kind="dimm", key=chosen[0].key, label=chosen[0].location)
    known = _numbered(sensor, seen)
    return Part(kind="dimm", key=name or (known.name if known else sensor))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
