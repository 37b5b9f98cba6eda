"""PCI as ``lspci`` and sysfs show it."""

import re

import pytest

from tests.health.simulator.hosts import ALL_KINDS, one_host, only, said
from wholestack.health.simulator.faults.table import fault_named

LINE = re.compile(r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] .+ \[[0-9a-f]{4}\]: .+ \[[0-9a-f]{4}:[0-9a-f]{4}\]")


def link_files(fleet):
    return dict(line.split(":", 3)[-1] and _split(line) for line in said(fleet, "pci_links").splitlines())


def _split(line: str):
    match = re.match(r"(\S+/\w+):(.*)", line)
    return match.group(1), match.group(2)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_device_has_its_own_address_and_a_line(kind: str):
    lines = said(one_host(kind), "pci").splitlines()
    assert all(LINE.match(line) for line in lines)
    addresses = [line.split()[0] for line in lines]
    assert addresses == sorted(set(addresses))


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_no_width_of_a_healthy_host_is_below_its_maximum(kind: str):
    files = link_files(one_host(kind))
    widths = {path: value for path, value in files.items() if path.endswith("current_link_width")}
    assert all(value == files[path.replace("current", "max")] for path, value in widths.items())


def test_gpus_that_clock_down_when_idle_show_a_low_speed():
    fleet = one_host("l40s-8")
    only(fleet).job = None
    files = link_files(fleet)
    assert files["0000:01:00.0/current_link_speed"] == "2.5 GT/s PCIe"
    assert files["0000:01:00.0/max_link_speed"] == "16.0 GT/s PCIe"


def test_a_gpu_off_the_bus_reads_as_all_ones():
    fleet = one_host("h100-8-ndr")
    fleet.inject("node0000", fault_named("gpu_off_bus_no_xid"), index=0)
    files = link_files(fleet)
    assert files["0000:1b:00.0/current_link_width"] == "63"
    assert files["0000:1b:00.0/current_link_speed"] == "Unknown"
    assert files["0000:1b:00.0/vendor"] == "0x10de"
    assert re.search(r"^0000:1b:00.0 .*\(rev ff\)$", said(fleet, "pci"), re.MULTILINE)
