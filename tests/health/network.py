"""Texts of synthetic hosts' networks, in the formats of the kernel's files, and how checks are put to them."""

from pathlib import Path

from wholestack.health.check import Before, Check, Expectation, Seen
from wholestack.health.diagnosis import diagnose
from wholestack.health.examine import Examination, examine
from wholestack.health.probe import NotThereError, UnreadableError
from wholestack.remote.batch import Output

NOW = 1_795_996_800
RECORDED = Path(__file__).parent / "recorded"
COUNTERS = (
    "VL15_dropped", "excessive_buffer_overrun_errors", "link_downed", "link_error_recovery",
    "local_link_integrity_errors", "port_rcv_constraint_errors", "port_rcv_errors", "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors", "port_xmit_constraint_errors", "port_xmit_discards", "port_xmit_wait",
    "symbol_error",
)  # fmt: skip


def recorded(*parts):
    """Text of a recorded output, written for these tests."""
    return RECORDED.joinpath(*parts).read_text()


def port(device, *, number=1, counters=None, hw=None, traffic=10**12, **fields):
    """Lines of one port below /sys/class/infiniband; a field that is None is left out."""
    known = {
        "state": "4: ACTIVE",
        "phys_state": "5: LinkUp",
        "rate": "400 Gb/sec (4X NDR)",
        "link_layer": "InfiniBand",
    } | fields
    numbers = dict.fromkeys(COUNTERS, 0) | {"port_rcv_data": traffic, "port_xmit_data": traffic} | (counters or {})
    known |= {f"counters/{name}": value for name, value in numbers.items()}
    known |= {f"hw_counters/{name}": value for name, value in (hw or {"out_of_sequence": 0, "lifespan": 12}).items()}
    return [f"{device}/ports/{number}/{name}:{value}" for name, value in known.items() if value is not None]


def adapter(device, *ports, firmware="28.41.1000", board="MT_0000000838", numa=0):
    """Lines of one adapter and its ports."""
    own = {"fw_ver": firmware, "board_id": board, "hca_type": "MT4129", "device/numa_node": numa}
    lines = [f"{device}/{name}:{value}" for name, value in own.items() if value is not None]
    return lines + [line for each in ports or (port(device),) for line in each]


def host(changed=None, *, count=8):
    """Text of a host with so many adapters; ``changed`` gives other lines for some, ``None`` leaves one out."""
    adapters = {f"mlx5_{index}": adapter(f"mlx5_{index}") for index in range(count)} | (changed or {})
    return "\n".join(line for lines in adapters.values() if lines is not None for line in lines) + "\n"


def addresses(count=8):
    """``ls -l /sys/class/infiniband`` of that host: mlx5_3 is at 0000:13:00.0."""
    return "total 0\n" + "\n".join(
        f"lrwxrwxrwx 1 root root 0 Nov  1 10:00 mlx5_{i} -> "
        f"../../devices/pci0000:00/0000:00:01.0/0000:1{i}:00.0/infiniband/mlx5_{i}"
        for i in range(count)
    )


def nic(name, **fields):
    """Lines of one Ethernet port below /sys/class/net."""
    known = {
        "operstate": "up", "speed": 100_000, "duplex": "full", "mtu": 9000, "carrier_changes": 2, "type": 1,
        "device/vendor": "0x15b3", "statistics/rx_errors": 0, "statistics/tx_errors": 0, "statistics/rx_crc_errors": 0,
        "statistics/rx_dropped": 1234, "statistics/tx_dropped": 0,
    } | fields  # fmt: skip
    return [f"{name}/{file}:{value}" for file, value in known.items() if value is not None]


def nics(*changed):
    """A host with two 100G ports in a bond, eight 400G ports, a spare port and what software makes."""
    virtual = {"device/vendor": None}
    blocks = [
        nic("lo", type=772, operstate="unknown", speed=None, mtu=65536, **virtual),
        nic("docker0", operstate="down", speed=-1, mtu=1500, carrier_changes=7, **virtual),
        nic("veth12ab", operstate="up", speed=10_000, mtu=1500, carrier_changes=9, **virtual),
        nic("ib0", type=32, operstate="down", speed=None, mtu=2044),
        nic("bond0", speed=200_000, **virtual, **{"bonding/slaves": "eth0 eth1", "bonding/mii_status": "up"}),
        nic("eth0"),
        nic("eth1"),
        nic("eth9", operstate="down", speed=None, duplex=None, carrier_changes=1, **{"device/vendor": "0x8086"}),
        *(nic(f"rail{index}", speed=400_000, mtu=9000) for index in range(8)),
        *changed,
    ]
    by_name = {lines[0].partition("/")[0]: lines for lines in blocks}
    return "\n".join(line for lines in by_name.values() for line in lines) + "\n"


def moment(*, now=NOW, boot_id="b", uptime_s=720_000.0):
    """What the probe of that name prints."""
    return f"now={now}\nboot_id={boot_id}\nuptime={uptime_s} 1.0\nkernel=6.8.0\nhostname=h\nuid=0\n"


def look(checks, *, profile: Expectation | None = None, before: Before | None = None, **texts) -> Examination:
    """Examine a host whose probes gave these texts (or outputs), 200 hours after boot unless a moment is given."""
    given = {"moment": moment()} | texts
    outputs = {
        name: text if isinstance(text, Output) else Output(name=name, stdout=text.encode())
        for name, text in given.items()
    }
    return examine(outputs, tuple(checks), expectation=profile, before=before, now=NOW)


def said(examination: Examination):
    """``status code part`` of every Finding, merged, in order."""
    found = diagnose(examination.symptoms)
    return [f"{each.status} {each.symptom.cause.code} {each.symptom.part.identity}" for each in found]


def saved(check: Check, text: str, *, profile: Expectation | None = None) -> Examination:
    """A saved output, as ``health judge`` puts it: without a moment."""
    name = check.probes[0].name
    return examine({name: Output(name=name, stdout=text.encode())}, (check,), expectation=profile, now=NOW)


def verdict(examination: Examination) -> str:
    """The worst status; ``skipped`` where nothing was judged."""
    statuses = {each.status for each in diagnose(examination.symptoms)}
    for status in ("fail", "unknown", "warn"):
        if status in statuses:
            return status
    return "ok" if examination.passed else "skipped"


def never_crashes(check: Check, text: str, *, profile: Expectation | None = None) -> None:
    """Any text gives symptoms, or one of the two errors that say why not."""
    outputs = {probe.name: Output(name=probe.name, stdout=text.encode(errors="replace")) for probe in check.probes}
    seen = Seen(outputs, expectation=profile, now=NOW, boot_id="b", uptime_s=3600.0)
    for question in (check.judge, check.traits, check.measures, check.counters):
        try:
            list(question(seen))
        except (NotThereError, UnreadableError):
            continue
