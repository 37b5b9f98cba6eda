"""InfiniBand and RoCE error counters as rates, full counters, and flaps. Congestion (``port_xmit_wait``) is no fault.

Widths of the counters: Linux ``drivers/infiniband/core/sysfs.c``. Thresholds below are counts per hour. They start from
the defaults of infiniband-diags (10 symbol errors, receive errors, link recoveries) and of NVIDIA UFM's
threshold-crossing events (200 discards or constraint errors, 50 VL15 drops), which count without or over their own
intervals. 1,000 symbol errors an hour at 400 Gb/s is about a bit error rate of 1e-12, the default limit of ibdiagnet.
Those of the RoCE counters are our own: a lossless network shows next to none.
"""

from collections.abc import Iterator, Mapping

from wholestack.health.check import Cause, Check, Counter, Limit, Measure, Seen, Symptom
from wholestack.health.checks.infiniband import ADDRESSES, INFINIBAND, part_of, require_counters, unknown_field
from wholestack.health.formats.infiniband import Port
from wholestack.health.growth import Growth, Levels, Memory, hourly, scaled
from wholestack.health.telemetry import FIELD

ERRORS: Mapping[str, Levels] = {
    "symbol_error": hourly(10, fail=1000),
    "link_error_recovery": hourly(10),
    "port_rcv_errors": hourly(10, fail=1000),
    "port_rcv_remote_physical_errors": hourly(100),
    "port_rcv_switch_relay_errors": hourly(1000),
    "port_xmit_discards": hourly(200),
    "port_xmit_constraint_errors": hourly(200),
    "port_rcv_constraint_errors": hourly(200),
    "local_link_integrity_errors": hourly(10),
    "excessive_buffer_overrun_errors": hourly(100),
    "VL15_dropped": hourly(50),
}
REMOTE = ("port_rcv_remote_physical_errors", "port_rcv_switch_relay_errors", "port_xmit_discards")
MUST_HAVE = ("symbol_error", "port_rcv_errors", "link_downed")
ROCE: Mapping[str, Levels] = {
    "out_of_sequence": hourly(10_000, timeless=1_000_000),
    "packet_seq_err": hourly(2_000, timeless=1_000_000),
    "implied_nak_seq_err": hourly(10_000, timeless=1_000_000),
    "local_ack_timeout_err": hourly(100, fail=10_000, timeless=10_000),
    "rnr_nak_retry_err": hourly(1000, timeless=100_000),
    "rx_icrc_encapsulated": hourly(10, fail=1000, timeless=1000),
    "roce_adp_retrans_to": hourly(100, timeless=10_000),
}
FULL_AT: Mapping[str, int] = {
    "symbol_error": 65535,
    "link_error_recovery": 255,
    "link_downed": 255,
    "port_rcv_errors": 65535,
    "port_rcv_remote_physical_errors": 65535,
    "port_rcv_switch_relay_errors": 65535,
    "port_xmit_discards": 65535,
    "port_xmit_constraint_errors": 255,
    "port_rcv_constraint_errors": 255,
    "VL15_dropped": 65535,
}
"""Where a counter stops. The two of four bits (integrity, overrun) are full after 15 events, on healthy ports too."""
FULL_32_BIT = 4294967295

ERROR_RATE = Cause(
    code="ib.error_rate",
    says="InfiniBand port receives errors at a high rate",
    owner="data centre",
    remedy="clean and reseat the transceiver, then swap the cable; if errors stay with the adapter, call the vendor",
    explains=("ib.counter_full",),
)
REMOTE_RATE = Cause(
    code="ib.remote_error_rate",
    says="packets are lost or marked bad elsewhere in the InfiniBand fabric",
    owner="network",
    remedy="look for the link upstream that makes the errors (ibqueryerrors, UFM); check routing and partitions",
    status="warn",
    explains=("ib.counter_full",),
)
FULL = Cause(
    code="ib.counter_full",
    says="InfiniBand error counter is full: what it counts happened often and goes on unseen",
    owner="network",
    remedy="clear the counters (perfquery -R) and sweep again after an hour: only then is the rate known",
    status="warn",
)
RECOVERING = Cause(
    code="ib.recovering",
    says="InfiniBand link retrains often",
    owner="data centre",
    remedy="clean and reseat the transceiver, then swap the cable: the link is about to be lost",
    status="warn",
    explains=("ib.counter_full",),
)
FLAPPING = Cause(
    code="ib.flapping",
    says="InfiniBand link went down and came back",
    owner="data centre",
    remedy="reseat, then swap cable and transceiver; if it goes on at another switch port, replace the adapter",
    explains=("ib.recovering", "ib.counter_full", "kernel.link_flap"),
)
ROCE_RATE = Cause(
    code="roce.error_rate",
    says="RoCE port loses or repeats packets at a high rate",
    owner="network",
    remedy="check priority flow control and ECN on host and switch, then the link's own errors (ethtool -S)",
    explains=(),
)

FLAPS = Limit(
    name="ib.flaps_per_day", default=3.0, about="losses of the link in a day that are a fail; one is a warning"
)
SCALE = Limit(name="ib.error_scale", default=1.0, about="factor on the limits of error counters, per hour")
ROCE_SCALE = Limit(name="roce.error_scale", default=1.0, about="factor on the limits of RoCE counters, per hour")
MARKER = "ib.link_downed"
ERRORS_MARKER = "ib.port_seen"
ROCE_MARKER = "roce.port_seen"


def _growths(port: Port, seen: Seen, memory: Memory) -> Iterator[tuple[str, Growth]]:
    scale = seen.limit(SCALE)
    for name, levels in ERRORS.items():
        value = port.counters.get(name, 0)
        counter = Counter(name=f"ib.{name}", value=value, part=f"hca_port {port.key}")
        if value != FULL_AT.get(name) and name in port.counters and (value or memory.knows(counter)):
            yield name, memory.growth(counter, scaled(levels, scale), marker=(ERRORS_MARKER, counter.part))


def _flaps(port: Port, seen: Seen, memory: Memory) -> Growth:
    counter = Counter(name=MARKER, value=port.counters.get("link_downed", 0), part=f"hca_port {port.key}")
    levels = Levels(
        warn=1, fail=seen.limit(FLAPS), window_h=24, quiet_h=24, boot_least=5, boot_total=10, timeless=1
    )  # fmt: skip
    return memory.growth(counter, levels)


def _counted(seen: Seen) -> Iterator[Port]:
    return (port for port in seen.of(INFINIBAND).ports if port.is_infiniband and port.counters)


def _judge_errors(seen: Seen) -> Iterator[Symptom]:
    facts, memory = seen.of(INFINIBAND), Memory(seen)
    require_counters(facts)
    for port in facts.ports:
        if not port.is_infiniband:
            continue
        for name in MUST_HAVE:
            if name not in port.counters:
                yield unknown_field(port, name, port.garbled.get(name, ""), seen)
        for name in ERRORS:
            if name in port.garbled and name not in MUST_HAVE:
                yield unknown_field(port, name, port.garbled[name], seen)
        for name, growth in _growths(port, seen, memory):
            if growth.status != "ok":
                cause = REMOTE_RATE if name in REMOTE else RECOVERING if name == "link_error_recovery" else ERROR_RATE
                evidence = (f"{port.key}: {growth.says}",)
                yield Symptom(cause=cause, part=part_of(port, seen), evidence=evidence, status=growth.status)


def _judge_full(seen: Seen) -> Iterator[Symptom]:
    facts = seen.of(INFINIBAND)
    require_counters(facts)
    for port in _counted(seen):
        full = [
            f"{port.key}: {name} {value} is the highest that it can show"
            for name, value in port.counters.items()
            if value == FULL_AT.get(name) or (value == FULL_32_BIT and name in FULL_AT)
        ]
        if full:
            yield Symptom(cause=FULL, part=part_of(port, seen), evidence=tuple(full))


def _judge_flaps(seen: Seen) -> Iterator[Symptom]:
    facts, memory = seen.of(INFINIBAND), Memory(seen)
    require_counters(facts)
    for port in facts.ports:
        if not port.is_infiniband:
            continue
        if "link_downed" not in port.counters:
            yield unknown_field(port, "link_downed", port.garbled.get("link_downed", ""), seen)
            continue
        growth = _flaps(port, seen, memory)
        if port.counters["link_downed"] == FULL_AT["link_downed"]:
            evidence = (f"{port.key}: link_downed 255: its 8-bit counter is full",)
            yield Symptom(cause=FLAPPING, part=part_of(port, seen), evidence=evidence, status="warn")
        elif growth.status != "ok":
            evidence = (f"{port.key}: {growth.says}",)
            yield Symptom(cause=FLAPPING, part=part_of(port, seen), evidence=evidence, status=growth.status)


def _error_counters(seen: Seen) -> Iterator[Counter]:
    memory = Memory(seen)
    for port in _counted(seen):
        yield Counter(name=ERRORS_MARKER, value=1, part=f"hca_port {port.key}")
        for _, growth in _growths(port, seen, memory):
            yield from growth.keep


def _flap_counters(seen: Seen) -> Iterator[Counter]:
    memory = Memory(seen)
    for port in _counted(seen):
        yield from _flaps(port, seen, memory).keep


def _error_measures(seen: Seen) -> Iterator[Measure]:
    memory = Memory(seen)
    if seen.uptime_s is None:
        return
    for port in _counted(seen):
        local = [growth for name, growth in _growths(port, seen, memory) if name not in REMOTE]
        rate = sum((growth.delta or 0) / max(growth.hours, 1.0) for growth in local)
        part = part_of(port, seen)
        yield Measure(name="ib.errors_per_hour", value=rate, outlies=ERROR_RATE, part=part, bad="high", least=10)


def _roce_growths(port: Port, seen: Seen, memory: Memory) -> Iterator[Growth]:
    scale = seen.limit(ROCE_SCALE)
    for name, levels in ROCE.items():
        value = port.hw_counters.get(name, 0)
        counter = Counter(name=f"roce.{name}", value=value, part=f"hca_port {port.key}")
        if name in port.hw_counters and (value or memory.knows(counter)):
            yield memory.growth(counter, scaled(levels, scale), marker=(ROCE_MARKER, counter.part))


def _roce_ports(seen: Seen) -> list[Port]:
    return [port for port in seen.of(INFINIBAND).ports if port.link_layer == "Ethernet"]


def _judge_roce(seen: Seen) -> Iterator[Symptom]:
    memory = Memory(seen)
    for port in _roce_ports(seen):
        for name in ROCE:
            if name in port.garbled:
                yield unknown_field(port, name, port.garbled[name], seen)
        for growth in _roce_growths(port, seen, memory):
            if growth.status != "ok":
                evidence = (f"{port.key}: {growth.says}",)
                yield Symptom(cause=ROCE_RATE, part=part_of(port, seen), evidence=evidence, status=growth.status)


def _roce_counters(seen: Seen) -> Iterator[Counter]:
    memory = Memory(seen)
    for port in _roce_ports(seen):
        yield Counter(name=ROCE_MARKER, value=1, part=f"hca_port {port.key}")
        for growth in _roce_growths(port, seen, memory):
            yield from growth.keep


def _congestion(seen: Seen) -> Iterator[Measure]:
    """Notifications of congestion an hour: no fault, but a port that sends far more than the rest is worth a look."""
    if not seen.uptime_s:
        return
    for port in _roce_ports(seen):
        sent = port.hw_counters.get("np_cnp_sent")
        if sent is not None:
            rate = sent / max(seen.uptime_s / 3600, 1.0)
            part = part_of(port, seen)
            yield Measure(name="roce.cnp_per_hour", value=rate, outlies=CONGESTED, part=part, bad="high", least=1e6)


CONGESTED = Cause(
    code="roce.congested",
    says="RoCE port is congested far more than its likes",
    owner="network",
    remedy="look at the load balancing of its switch and at the jobs on this host",
    status="warn",
)

CHECKS = (
    Check(
        name="ib.errors",
        about="error counters of InfiniBand ports, as counts in an hour",
        probes=(INFINIBAND, ADDRESSES),
        parts=("hca_port",),
        causes=(ERROR_RATE, REMOTE_RATE, RECOVERING, FIELD),
        judge=_judge_errors,
        counters=_error_counters,
        measures=_error_measures,
        limits=(SCALE,),
    ),
    Check(
        name="ib.saturated",
        about="error counters of InfiniBand ports that are full, so that no rate can be told",
        probes=(INFINIBAND, ADDRESSES),
        parts=("hca_port",),
        causes=(FULL,),
        judge=_judge_full,
    ),
    Check(
        name="ib.flaps",
        about="InfiniBand links that were lost and came back within a day",
        probes=(INFINIBAND, ADDRESSES),
        parts=("hca_port",),
        causes=(FLAPPING, FIELD),
        judge=_judge_flaps,
        counters=_flap_counters,
        limits=(FLAPS,),
    ),
    Check(
        name="ib.roce",
        about="RoCE ports that lose or repeat packets, as counts in an hour",
        probes=(INFINIBAND, ADDRESSES),
        parts=("hca_port",),
        causes=(ROCE_RATE, CONGESTED, FIELD),
        judge=_judge_roce,
        counters=_roce_counters,
        measures=_congestion,
        limits=(ROCE_SCALE,),
    ),
)
