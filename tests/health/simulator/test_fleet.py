"""A fleet is the same for the same seed, ages plausibly and breaks as told."""

import pytest

from tests.health.simulator.hosts import ask, one_host, only
from wholestack.errors import InputError
from wholestack.health.simulator.ageing import reboot
from wholestack.health.simulator.faults.table import FAULTS, fault_named
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.kinds import KINDS

DAY_S = 86_400


def replies(fleet: Fleet):
    return [ask(fleet, host.name) for host in fleet.hosts()]


def test_the_same_seed_gives_the_same_fleet_and_the_same_future():
    left, right = Fleet(25, seed=9), Fleet(25, seed=9)
    for fleet in (left, right):
        fleet.inject_mixture(share=0.4)
        fleet.advance(7_200)
    assert replies(left) == replies(right)
    assert left.truths == right.truths


def test_another_seed_gives_another_fleet():
    assert replies(Fleet(3, seed=1)) != replies(Fleet(3, seed=2))


def test_looking_does_not_change_what_happens():
    watched, alone = Fleet(6, seed=3), Fleet(6, seed=3)
    for fleet in (watched, alone):
        fleet.inject_mixture(share=1.0)
    for _ in range(3):
        replies(watched)
        for fleet in (watched, alone):
            fleet.advance(600)
    assert replies(watched) == replies(alone)


def test_a_large_fleet_has_all_kinds_and_a_small_one_few():
    assert {machine.kind for machine in Fleet(400, seed=1)} == {kind.name for kind in KINDS}
    assert len({machine.kind for machine in Fleet(8, seed=1)}) == 1


def test_hosts_differ_in_age_load_and_zone():
    machines = list(Fleet(150, seed=6))
    days = sorted(machine.uptime_s / DAY_S for machine in machines)
    assert days[0] < 0.5
    assert days[-1] > 60
    assert {bool(machine.job) for machine in machines if machine.gpus} == {True, False}
    assert len({machine.utc_offset_h for machine in machines}) > 3


def test_counters_of_a_healthy_host_never_fall_while_it_is_up():
    fleet = one_host("h200-8-roce", seed=3)
    machine = only(fleet)
    last = [dict(hca.port.counters) for hca in machine.hcas]
    units = [drive.units_written for drive in machine.drives]
    boot = machine.boot_id
    for _ in range(20):
        fleet.advance(600)
        now = [dict(hca.port.counters) for hca in machine.hcas]
        assert machine.boot_id == boot
        assert all(after[name] >= before[name] for before, after in zip(last, now, strict=True) for name in before)
        assert all(drive.units_written >= before for drive, before in zip(machine.drives, units, strict=True))
        assert all(after["port_rcv_packets"] > before["port_rcv_packets"]
                   for before, after in zip(last, now, strict=True))  # fmt: skip
        last, units = now, [drive.units_written for drive in machine.drives]
    assert machine.uptime_s == pytest.approx(machine.now - machine.boot_at)


def test_a_reboot_gives_another_boot_id_and_empty_counters():
    fleet = one_host("h100-8-ndr", seed=8)
    machine = only(fleet)
    before, lines = machine.boot_id, len(machine.log.lines)
    reboot(machine, machine.rng)
    assert machine.boot_id != before
    assert machine.uptime_s < 600
    assert len(machine.log.lines) < lines
    assert all(count == 0 for hca in machine.hcas for count in hca.port.counters.values())
    assert machine.job is None


def test_a_month_passes_for_a_host_and_its_log_stays_bounded():
    fleet = one_host("a100-8-hdr", seed=5)
    for _ in range(144):
        fleet.advance(DAY_S * 30 / 144)
    machine = only(fleet)
    assert len(machine.log.lines) <= 6_000
    assert all(line.at_s <= machine.uptime_s + 1 for line in machine.log.lines)
    assert all(system.used_kib <= 0.95 * system.size_kib for system in machine.file_systems if system.size_kib)


def test_what_broke_on_a_healthy_host_is_long_past():
    harmless = {"13", "31", "43", "45"}
    old = 0
    for machine in Fleet(500, seed=21):
        for line in machine.log.lines:
            if ": Xid (" in line.text and line.text.split("): ")[1].split(",")[0] not in harmless:
                assert machine.uptime_s - line.at_s > 7 * DAY_S
                old += 1
    assert old > 0


def test_a_mixture_uses_every_kind_of_fault_about_equally():
    fleet = Fleet(700, seed=12)
    truths = fleet.inject_mixture(share=0.6, severity=(0.2, 0.4))
    assert len(truths) == 420
    counts = [sum(truth.fault == fault.name for truth in truths) for fault in FAULTS]
    assert min(counts) >= 1
    assert max(counts) <= 4
    assert len({truth.host for truth in truths}) == 420
    assert all(0.2 <= truth.severity <= 0.4 for truth in truths)
    assert all(truth.since == fleet.now for truth in truths)


@pytest.mark.parametrize(
    ("host", "fault", "severity", "says"),
    [
        ("node9999", "swap_on", None, "no host 'node9999'"),
        ("node0000", "xid_48", None, "cannot happen"),
        ("node0000", "swap_on", 1.5, "severity is from 0 to 1, got 1.5"),
    ],
)
def test_what_cannot_be_injected_is_refused(host, fault, severity, says):
    with pytest.raises(InputError, match=says):
        one_host("cpu-intel").inject(host, fault_named(fault), severity=severity)


def test_a_fleet_needs_a_host():
    with pytest.raises(InputError, match="at least one host"):
        Fleet(0, seed=1)
