"""Every kind of fault shows, on its host alone, under a name that its truth knows."""

from functools import cache

import pytest

from tests.health.simulator.hosts import ALL_KINDS, ask, one_host, only
from wholestack.health.simulator.faults.fault import Fault
from wholestack.health.simulator.faults.table import FAULTS, fault_named
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.kinds import KINDS
from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.truth import SAID, WORDS

EACH = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


@cache
def healthy(kind: str) -> Machine:
    return only(one_host(kind))


def kinds_of(fault: Fault) -> list[str]:
    return [kind for kind in ALL_KINDS if fault.applies(healthy(kind))]


def able(fault: Fault, kind: str, *, hosts: int = 1) -> Fleet:
    """A fleet in whose host in the middle that can happen; some need a host that has been up for long."""
    found = [each for each in KINDS if each.name == kind]
    fleets = (Fleet(hosts, seed=seed, kinds=found) for seed in range(5, 50))
    return next(fleet for fleet in fleets if fault.applies(fleet[f"node{hosts // 2:04d}"]))


def test_there_are_more_than_sixty_kinds_with_different_names():
    names = [fault.name for fault in FAULTS]
    assert len(names) == len(set(names)) >= 160


def test_a_fault_is_found_by_its_name():
    assert fault_named("xid_48") is next(fault for fault in FAULTS if fault.name == "xid_48")
    assert fault_named("none such") is None


@EACH
def test_a_fault_cites_a_source_and_names_an_owner(fault: Fault):
    assert len(fault.source) > 4
    assert fault.owners
    assert set(fault.owners) <= {"vendor", "data centre", "network", "cluster team", "job owner"}
    assert fault.part in WORDS


@EACH
def test_a_fault_without_names_has_words_by_which_it_is_known(fault: Fault):
    fleet = able(fault, kinds_of(fault)[0])
    truth = fleet.inject("node0000", fault, severity=0.7)
    assert truth.names or truth.fault in SAID or truth.tool


def test_only_faults_without_names_have_words_of_their_own():
    assert set(SAID) <= {fault.name for fault in FAULTS}


@EACH
def test_a_fault_changes_what_its_host_says(fault: Fault):
    kinds = kinds_of(fault)
    assert kinds, "no kind of host can have it"
    for kind, severity in ((kinds[0], 0.0), (kinds[-1], 1.0)):
        fleet = able(fault, kind)
        before = ask(fleet)
        truth = fleet.inject("node0000", fault, severity=severity)
        after = ask(fleet)
        assert after != before
        if truth.names and not after.trouble:
            text = "".join(output.text for output in after.outputs.values()).lower()
            wholes = [name.lower() for name in truth.names]
            parts = [name.rsplit("/", 1)[0].lower() for name in truth.names]  # port 1 of mlx5_0 is mlx5_0/1
            assert any(name in text for name in wholes + parts), truth.names


@EACH
def test_a_fault_leaves_the_other_hosts_alone(fault: Fault):
    fleet = able(fault, kinds_of(fault)[0], hosts=3)
    before = {name: ask(fleet, name) for name in ("node0000", "node0002")}
    fleet.inject("node0001", fault, severity=0.7)
    assert {name: ask(fleet, name) for name in before} == before


@pytest.mark.parametrize("fault", [each for each in FAULTS if each.by_rate], ids=lambda fault: fault.name)
def test_a_fault_that_is_a_rate_goes_on(fault: Fault):
    fleet = one_host(kinds_of(fault)[0], seed=3)
    fleet.inject("node0000", fault, severity=0.0)
    first = ask(fleet).outputs
    fleet.advance(1_800)
    second = ask(fleet).outputs
    whole = one_host(kinds_of(fault)[0], seed=3)
    whole.advance(1_800)
    untouched = ask(whole).outputs
    grown = {name for name in first if first[name].stdout != second[name].stdout}
    assert any(untouched[name].stdout != second[name].stdout for name in grown)


def test_the_part_can_be_chosen():
    fleet = one_host("h100-8-ndr")
    truth = fleet.inject("node0000", fault_named("xid_48"), index=3)
    assert only(fleet).gpus[3].pci in truth.names
    lines = [line.text for line in only(fleet).log.lines if ": 48," in line.text]
    assert lines
    assert all("PCI:0000:5f:00" in line for line in lines)


def test_a_gpu_that_breaks_takes_the_job_with_it():
    fleet = Fleet(30, seed=4, kinds=[kind for kind in KINDS if kind.name == "a100-8-hdr"])
    machine = next(machine for machine in fleet if machine.job)
    fleet.inject(machine.name, fault_named("gpu_off_bus_xid"), index=0)
    assert machine.job is None
    assert sum(": 45," in line.text for line in machine.log.lines) == 7
    assert not any(gpu.processes for gpu in machine.gpus)
