"""A healthy host is healthy by its data sheets, however old and busy it is."""

import pytest

from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.tools.smi_query import power_w, temperature_c

DAY_S = 86_400


@pytest.fixture(scope="module")
def machines() -> list[Machine]:
    fleet = Fleet(250, seed=31)
    for _ in range(6):
        fleet.advance(2 * DAY_S / 6)
    return list(fleet)


def test_gpus_are_cool_whole_and_at_full_width(machines: list[Machine]):
    for machine in machines:
        for gpu in machine.gpus:
            assert temperature_c(machine, gpu) < gpu.model.slow_c - 10
            assert temperature_c(machine, gpu) + 13 < 95
            assert power_w(machine, gpu) <= gpu.model.power_w
            assert (gpu.pcie_width, gpu.throttle, gpu.recovery_action) == (16, set(), "None")
            assert [gpu.remap_pending, gpu.remap_failure, gpu.retired_pending] == [False] * 3
            assert gpu.volatile["dram_u"] == gpu.volatile["sram_parity"] == gpu.volatile["sram_secded"] == 0
            assert all(link.active and link.crc == link.recovery == 0 for link in gpu.links)


def test_ports_are_up_and_nearly_without_errors(machines: list[Machine]):
    for machine in machines:
        days = machine.uptime_s / DAY_S
        for hca in machine.hcas:
            assert (hca.port.state, hca.port.phys_state) == ("4: ACTIVE", "5: LinkUp")
            assert hca.port.counters["link_downed"] <= 3
            assert hca.port.counters["symbol_error"] <= 6 + days / 5
            assert hca.port.counters["port_rcv_errors"] == 0
        for nic in machine.nics:
            assert nic.statistics["rx_crc_errors"] == nic.statistics["tx_errors"] == 0
            if nic.optic:
                assert min(nic.optic.rx_mw) > 0.5


def test_drives_memory_and_file_systems_have_room(machines: list[Machine]):
    for machine in machines:
        for drive in machine.drives:
            assert drive.passed
            assert drive.used_percent <= 45
            assert drive.spare > drive.spare_threshold
            assert drive.temperature_c < 60
        assert sum(dimm.corrected for dimm in machine.dimms) <= 5 + machine.uptime_s / DAY_S / 10
        assert all(dimm.uncorrected == 0 for dimm in machine.dimms)
        assert all(system.used_kib <= 0.85 * system.size_kib for system in machine.file_systems if system.size_kib)


def test_marks_of_age_are_there_all_the_same(machines: list[Machine]):
    texts = [line.text for machine in machines for line in machine.log.lines]
    assert any("): 31, pid=" in text for text in texts)
    assert any("oom-killer" in text for text in texts)
    assert any("not responding, still trying" in text for text in texts)
    assert any(dimm.corrected for machine in machines for dimm in machine.dimms)
    assert any(gpu.volatile["dram_c"] for machine in machines for gpu in machine.gpus)
    assert any(hca.port.counters["symbol_error"] for machine in machines for hca in machine.hcas)
    assert any(nic.statistics["rx_dropped"] > 1_000 for machine in machines for nic in machine.nics)
    assert any(drive.used_percent > 20 for machine in machines for drive in machine.drives)
    assert any(len(machine.sel) > 2 for machine in machines)


def test_a_host_up_for_minutes_has_counted_little(machines: list[Machine]):
    fresh = min(Fleet(400, seed=32), key=lambda machine: machine.uptime_s)
    assert fresh.uptime_s < 7_200
    assert sum(dimm.corrected for dimm in fresh.dimms) <= 1
    assert all(line.at_s <= fresh.uptime_s for line in fresh.log.lines)
