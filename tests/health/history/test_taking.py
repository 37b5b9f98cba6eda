"""From a real sweep of simulated hosts to what a history keeps."""

import asyncio
from dataclasses import replace

import pytest

from wholestack.errors import InputError
from wholestack.health import catalog
from wholestack.health import sweep as sweeps
from wholestack.health.history.looks import is_serial
from wholestack.health.history.store import History
from wholestack.health.history.taking import look_at
from wholestack.health.parts import pci_key
from wholestack.health.simulator.faults.table import fault_named
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.kinds import KINDS
from wholestack.health.simulator.remote import FleetRemote

KIND = next(kind for kind in KINDS if kind.name == "h100-8-ndr")


def swept(fleet, folder, *, rack=None, only=()):
    hosts = [replace(each, rack=rack) for each in fleet.hosts()]
    plan = sweeps.plan_for(hosts, catalog.chosen(only), {}, concurrency=8)
    with sweeps.create(folder, plan, at=fleet.now) as run:
        asyncio.run(sweeps.sweep(run, FleetRemote(fleet), clock=lambda: fleet.now))
    return look_at(folder)


def test_from_simulated_faults_over_real_sweeps_to_a_history(tmp_path):
    """Broken, swept, mended by another board from another host, renamed, installed anew: each is told once."""
    fleet = Fleet(3, seed=3, kinds=[KIND])
    one, two, three = fleet
    slot = f"gpu {pci_key(one.gpus[2].pci)}"
    with History(tmp_path / "h.sqlite", write=True) as history:
        history.add(swept(fleet, tmp_path / "s1", rack="r7"))
        by_name = {each.name: each for each in history.machines()}
        assert by_name["node0000"].serial == one.serial
        truth = fleet.inject("node0000", fault_named("gpu_ecc_dram_uncorrected"), index=2, severity=1.0)
        fleet.advance(600)
        history.add(swept(fleet, tmp_path / "s2", rack="r7"))
        (found,) = [each for each in history.findings(by_name["node0000"].id) if each.status == "fail"]
        assert found.part == slot
        assert found.serial == one.gpus[2].serial
        assert found.serial in truth.names

        one.gpus[2].serial, two.gpus[0].serial = two.gpus[0].serial, one.gpus[2].serial
        two.installations += 1
        three.name = "renamed"
        fleet._machines = {machine.name: machine for machine in (one, two, three)}
        for machine in fleet:
            machine.version += 1
        fleet.advance(600)
        history.add(swept(fleet, tmp_path / "s3", rack="r8"))
        events = [(each.kind, each.says) for each in history.events() if each.kind != "first_seen"]
        assert {kind for kind, _ in events} == {"part_moved", "reinstalled", "renamed"}
        assert sum(kind == "part_moved" for kind, _ in events) == 2
        assert len(history.machines()) == 3
        facts = {(each.name, each.value): each.gone for each in history.facts(by_name["node0000"].id)}
        assert facts["host.rack", "r7"] == fleet.now
        assert facts["host.rack", "r8"] is None
        assert any(name == "gpu.driver" and gone is None for (name, _), gone in facts.items())


def test_a_look_names_versions_and_places_and_parts_by_serial_number(tmp_path):
    fleet = Fleet(2, seed=4, kinds=[KIND])
    look = swept(fleet, tmp_path / "s", rack="r7")
    first, machine = look.hosts[0], next(iter(fleet))
    facts = {each.name: each.value for each in first.facts if not each.part}
    assert facts["host.rack"] == "r7"
    assert facts["gpu.driver"] == machine.driver
    assert facts["kernel.version"] == machine.kernel
    serials = {each.serial for each in first.seats}
    parts = [machine.serial, *(each.serial for each in (*machine.gpus, *machine.drives, *machine.dimms))]
    assert set(parts) <= serials
    assert {each.guid for each in machine.hcas} <= serials
    cables = {each.part: each.serial for each in first.seats if each.part.startswith("cable ")}
    optics = {f"cable {nic.name}": nic.optic.serial for nic in machine.nics if nic.pci and nic.optic}
    assert cables.items() <= optics.items()
    assert cables


def test_the_same_sweep_has_the_same_id_wherever_it_lies(tmp_path):
    fleet = Fleet(1, seed=5, kinds=[KIND])
    here = swept(fleet, tmp_path / "s", only=["cpu"])
    (tmp_path / "s").rename(tmp_path / "moved")
    assert look_at(tmp_path / "moved").id == here.id
    assert here.hosts[0].judged <= set(here.checks)


def test_a_host_that_did_not_answer_was_not_looked_at(tmp_path):
    fleet = Fleet(2, seed=6, kinds=[KIND])
    fleet.inject("node0001", fault_named("host_unreachable"))
    first, second = swept(fleet, tmp_path / "s", only=["cpu"]).hosts
    assert first.judged
    assert not second.judged
    assert [each.status for each in second.sights] == ["unknown"]


def test_a_sweep_that_has_not_ended_is_refused(tmp_path):
    plan = sweeps.plan_for(Fleet(1, seed=7).hosts(), catalog.chosen(["cpu"]), {}, concurrency=1)
    sweeps.create(tmp_path / "s", plan, at=0.0).close()
    with pytest.raises(InputError, match="has not ended"):
        look_at(tmp_path / "s")


NO_SERIALS = ("0", "000000000000", "0123456789", "N/A", "To be filled by O.E.M.", "System Serial Number",
              "Not Specified", "Default string", "", "xx", "FFFFFFFFFFFF", "None")  # fmt: skip


@pytest.mark.parametrize("text", NO_SERIALS)
def test_what_firmware_says_that_nobody_filled_in_is_no_serial_number(text):
    assert not is_serial(text)


@pytest.mark.parametrize("text", ["1652923001234", "MXQ1", "S64ANE0R", "0x946dae0300fa1b2c", "GPU-5a1b"])
def test_serial_numbers_are(text):
    assert is_serial(text)
