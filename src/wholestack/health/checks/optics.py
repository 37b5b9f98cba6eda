"""Pluggable modules of Ethernet ports: alarm flags, temperature and light (``ethtool -m``).

No module, a copper cable or an adapter that does not tell are no faults. A port without a link is not judged here: a
spare port with an open transceiver has no light.
"""

from collections.abc import Iterator

from wholestack.health.check import Cause, Check, Identity, Measure, Seen, Symptom
from wholestack.health.checks.ethernet import ETHERNET_PORTS
from wholestack.health.formats.optics import Module, looks_like_ethtool, read_ethtool
from wholestack.health.formats.sysfs import trusted
from wholestack.health.parts import Part
from wholestack.health.probe import Format, NotThereError, Probe
from wholestack.health.telemetry import FIELD
from wholestack.remote.batch import Command, Output

NO_PORT = "no network port with a device"


def _absent(output: Output) -> str:
    if b"ethtool: not found" in output.stdout or b"ethtool: command not found" in output.stdout:
        return "ethtool is not installed"
    return NO_PORT if output.text.strip() == NO_PORT else ""


OPTICS = Probe(
    command=Command(
        name="optics",
        shell=(
            'found=; for n in /sys/class/net/*; do [ -e "$n/device" ] || continue; '
            'found=1; echo "== ${n##*/}"; ethtool -m "${n##*/}"; done 2>&1; '
            f'[ "$found" ] || echo "{NO_PORT}"'
        ),
        max_bytes=400_000,
        needs_root=True,
    ),
    formats=(Format(name="ethtool -m", matches=looks_like_ethtool, read=read_ethtool),),
    absent=_absent,
    # The loop ends as its last port does, and many ports have no module.
    failure=trusted,
)

ALARM = Cause(
    code="optic.alarm",
    says="transceiver raises an alarm",
    owner="data centre",
    remedy="clean fibre and transceiver, look at the air flow, then replace it; with low received light the peer's too",
    status="warn",
)
WARNING = Cause(
    code="optic.warning",
    says="transceiver is near its limits",
    owner="data centre",
    remedy="clean fibre and transceiver at the next maintenance; watch it",
    status="warn",
)
SILENT = Cause(
    code="optic.unreadable",
    says="transceiver of a port with a link cannot be read",
    owner="data centre",
    remedy="reseat it; if it stays unreadable, replace it",
    status="unknown",
)


def _in_use(seen: Seen) -> Iterator[tuple[Module, Part]]:
    modules = seen.of(OPTICS)
    if not modules:
        raise NotThereError("not_supported", "no port has a module that can be read")
    ports = seen.maybe(ETHERNET_PORTS) or {}
    for module in modules:
        port = ports.get(module.port)
        if port is None or port.is_up:
            yield module, Part(kind="nic", key=module.port, label=f"{module.vendor} {module.part_number}".strip())


def _judge(seen: Seen) -> Iterator[Symptom]:
    for module, part in _in_use(seen):
        where = module.port or "module"
        if module.trouble:
            yield Symptom(cause=SILENT, part=part, evidence=(f"{where}: {module.trouble}",))
        if module.alarms:
            yield Symptom(cause=ALARM, part=part, evidence=tuple(f"{where}: {line}" for line in module.alarms))
        elif module.warnings:
            yield Symptom(cause=WARNING, part=part, evidence=tuple(f"{where}: {line}" for line in module.warnings))
        if module.garbled:
            yield Symptom(cause=FIELD, part=part, evidence=tuple(f"{where}: {line}" for line in module.garbled))


def _measures(seen: Seen) -> Iterator[Measure]:
    for module, part in _in_use(seen):
        if module.temperature_c is not None:
            value = module.temperature_c
            yield Measure(name="optic.temperature_c", value=value, outlies=WARNING, part=part, bad="high", least=10)
        if module.rx_dbm:
            value = min(module.rx_dbm)
            yield Measure(name="optic.rx_power_dbm", value=value, outlies=WARNING, part=part, bad="low", least=3)


def _identities(seen: Seen) -> Iterator[Identity]:
    """Of the module or cable in the port, which the port's own adapter outlives."""
    for module, port in _in_use(seen):
        part = Part(kind="cable", key=port.key)
        yield Identity(part=part, serial=module.serial, model=module.part_number, lot=module.made)


CHECKS = (
    Check(
        name="nic.optics",
        about="transceivers of Ethernet ports: alarms, temperature, light",
        probes=(OPTICS, ETHERNET_PORTS),
        parts=("nic", "cable"),
        causes=(ALARM, WARNING, SILENT, FIELD),
        judge=_judge,
        measures=_measures,
        identities=_identities,
    ),
)
