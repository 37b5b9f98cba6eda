"""Hosts of one kind share what a site rolls out and differ in what it does not."""

import pytest

from tests.health.simulator.hosts import ALL_KINDS
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.kinds import KINDS, kind_named


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_is_rolled_out_alike(kind):
    fleet = list(Fleet(6, seed=1, kinds=[kind]))
    alike = {
        (machine.driver, machine.kernel, machine.bios_version, len(machine.gpus), len(machine.hcas))
        for machine in fleet
    }
    assert len(alike) == 1
    assert len({machine.serial for machine in fleet}) == 6
    assert len({machine.boot_id for machine in fleet}) == 6
    serials = [gpu.serial for machine in fleet for gpu in machine.gpus]
    assert len(serials) == len(set(serials))


def test_kinds_cover_what_sites_have():
    kinds = list(KINDS)
    assert any(kind.gpu is None for kind in kinds)
    assert any(kind.mig for kind in kinds)
    assert {kind.link_layer for kind in kinds if kind.hcas} == {"InfiniBand", "Ethernet"}
    assert any(kind.gpu and not kind.hcas for kind in kinds)
    assert {kind.time_daemon for kind in kinds} == {"chrony", "timesyncd", "ntpd"}
    assert {kind.board.cpu.split("_")[0] for kind in kinds} == {"XEON", "EPYC"}


def test_kinds_are_found_by_name():
    assert [kind_named(name).name for name in ALL_KINDS] == ALL_KINDS
    assert kind_named("none") is None
