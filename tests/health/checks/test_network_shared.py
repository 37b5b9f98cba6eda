"""The recorded outputs of real networks beside the project, judged as their README says."""

import pytest

from tests.health.network import said, saved, verdict
from tests.health.shared_data import shared
from wholestack.health.catalog import named
from wholestack.health.checks.benchmarks import GPU_BURN, NCCL, NVBANDWIDTH, PERFTEST, PORT_GUIDS
from wholestack.health.checks.fabric import GRAPH
from wholestack.health.formats.manifest import expectation

IB = (
    "ib.state",
    "ib.rate",
    "ib.width",
    "ib.count",
    "ib.errors",
    "ib.saturated",
    "ib.flaps",
    "ib.roce",
    "ib.firmware",
    "ib.numa",
)
COUNTED = ("ib.errors", "ib.saturated", "ib.flaps")


def text(*parts):
    path = shared(*parts)
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    return path.read_bytes().decode(errors="replace").replace("\r\n", "\n")


def worst(checks, given, **kwargs):
    found = {verdict(saved(named(name), given, **kwargs)) for name in checks}
    return next(status for status in ("fail", "unknown", "warn", "ok", "skipped") if status in found)


@pytest.mark.parametrize(
    ("device", "status"), [("0", "ok"), ("1", "warn"), ("5", "ok"), ("6", "ok"), ("8", "ok"), ("9", "ok")]
)
def test_ports_of_an_h100_node(device, status):
    given = text("ib_sysfs", f"mlx5_{device}.tsv")
    assert worst(IB, given) == status
    if status == "warn":
        assert said(saved(named("ib.flaps"), given)) == ["warn ib.flapping hca_port hca/1"]


@pytest.mark.parametrize(
    ("guid", "status"),
    [
        ("0x506b4b03005c2740", "warn"),
        ("0x506b4b0300cc02a6", "unknown"),
        ("0x7cfe9003003b4b96", "ok"),
        ("0x7cfe9003003b4bde", "ok"),
        ("0x7cfe9003009ce5b0", "ok"),
    ],
)
def test_perfquery(guid, status):
    given = text("ib", "perfquery", f"{guid}.out")
    assert worst(COUNTED, given) == status
    if status == "warn":
        assert said(saved(named("ib.flaps"), given)) == ["warn ib.flapping hca_port lid 2052/1"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("test1.out", ["fail switch.fan fan 0x1c34da0300010540/fans"]),
        ("test2.out", []),
        ("test-err1.out", ["unknown telemetry.field psu 0x1c34da0300010540/PSU0"]),
        ("test-err3.out", ["unknown telemetry.field fan 0x1c34da0300010540/fan#1"]),
    ],
)
def test_ibswinfo(name, expected):
    assert said(saved(named("switch.health"), text("ib", "ibswinfo", name))) == expected


@pytest.mark.parametrize(
    ("parts", "switches", "adapters", "links"),
    [
        (("ib", "ibnetdiscover", "test.out"), 3, 3, 4),
        (("ib", "ibnetdiscover", "test2.out"), 4, 2, 3),
        (("bench", "ib_traffic_topo_aware_ibnetdiscover.txt"), 8, 10, 18),
    ],
)
def test_ibnetdiscover(parts, switches, adapters, links):
    given = text(*parts)
    assert verdict(saved(named("fabric.graph"), given)) == "ok"
    fabric = GRAPH.read_text(given)
    assert len({node.guid for node in fabric.nodes if node.kind == "SW"}) == switches
    assert (len(fabric.adapters), len(fabric.links)) == (adapters, links)


def test_the_devices_of_an_a100_node():
    found = saved(named("pci.inventory"), text("lspci", "lspci_nn_a100.txt"))
    assert verdict(found) == "ok"
    counts = {trait.name: trait.value for trait in found.traits}
    assert (counts["pci.gpus"], counts["pci.nvswitches"], counts["pci.ib_adapters"]) == (8, 6, 8)


def test_links_and_access_control_of_a_verbose_list():
    given = text("lspci", "lspci_vvv_first.txt")
    found = saved(named("pci.links"), given)
    assert said(found) == ["warn pci.degraded pci 0000:01:00"]
    assert "Width x2" in found.symptoms[0].symptom.evidence[0]
    assert said(saved(named("pci.acs"), given)) == ["warn pci.acs host"]


def test_optics_without_an_alarm():
    assert verdict(saved(named("nic.optics"), text("jc", "generic_ethtool--module-info.out"))) == "ok"


@pytest.mark.parametrize(
    ("check", "state", "manifest", "status", "codes"),
    [
        ("pcie", "cache_milan_good", "cache_milan", "ok", ()),
        ("pcie", "cache_milan_good", "Altus_XE1211_Cache_Milan", "ok", ()),
        ("pcie", "cache_rome_good", "cache_rome", "ok", ()),
        ("pcie", "cache_rome_good", "Altus_XE1211_Cache_Rome", "ok", ()),
        ("pcie", "compute_samsung980pro", "DGX_A100", "ok", ()),
        ("pcie", "compute_samsung980pro-downgraded", "DGX_A100", "fail", ("manifest.pci_degraded pci 0000:8d:00",)),
        ("pcie", "learn_good", "DGX_A100", "ok", ()),
        ("pcie", "empty", "DGX_A100", "fail", ("manifest.pci_missing host",)),
        ("ib", "learn_good", "DGX_A100", "ok", ()),
        ("ib", "empty", "DGX_A100", "fail", ("manifest.ib_missing host",)),
        ("ib", "learn_ib_intf_bad_version", "DGX_A100", "fail", ("manifest.ib_firmware host", "ib.slow host")),
        ("ib", "learn_ib_intf_operstate_down", "DGX_A100", "fail", ("manifest.ib_interface_down hca_port mlx5_6/1",)),
        ("ib", "learn_ib_misbound_if", "DGX_A100", "fail", ("manifest.ib_misbound hca_port mlx5_12/1",)),
        ("ethernet", "eth_learn_good", "DGX_A100", "ok", ()),
        ("ethernet", "eth_learn_degraded_intf", "DGX_A100", "warn", ("manifest.nic_slow nic front0",)),
        ("ethernet", "eth_learn_down_intf", "DGX_A100", "fail", ("manifest.nic_down nic enp225s0f0",)),
        ("ethernet", "eth_learn_missing_intf", "DGX_A100", "fail", ("manifest.nic_missing nic enp225s0f0",)),
        ("ethernet", "empty", "DGX_A100", "fail", ("manifest.nic_missing host",)),
    ],
)
def test_nodes_against_their_manifests(check, state, manifest, status, codes):
    expected = expectation(text("manifest", f"{manifest}.json"))
    found = saved(named(f"manifest.{check}"), text("manifest", f"{state}.json"), profile=expected)
    assert verdict(found) == status
    assert {f"{status} {code}" for code in codes} <= set(said(found))


@pytest.mark.parametrize(
    ("state", "up"),
    [("learn_good", 8), ("empty", 0), ("learn_ib_intf_bad_version", 0), ("learn_ib_intf_operstate_down", 7)],
)
def test_ports_that_are_up_are_counted(state, up):
    expected = expectation(text("manifest", "DGX_A100.json"))
    found = saved(named("manifest.ib"), text("manifest", f"{state}.json"), profile=expected)
    assert [trait.value for trait in found.traits] == [up]


@pytest.mark.parametrize(
    ("check", "name"),
    [
        ("bench.nccl", "nccl_allreduce.log"),
        ("bench.ib_write_bw", "ib_loopback_all_sizes.log"),
        ("bench.nvbandwidth", "nvbandwidth_results.log"),
        ("bench.gpu_burn", "gpu_burn.log"),
        ("bench.ibstat", "ib_traffic_topo_aware_ibstat.txt"),
    ],
)
def test_logs_of_benchmarks(check, name):
    assert verdict(saved(named(check), text("bench", name))) == "ok"


def test_values_of_benchmarks():
    nccl = NCCL.read_text(text("bench", "nccl_allreduce.log"))
    assert (len(nccl.rows), nccl.rows[-1].busbw_gbs, nccl.average_gbs) == (34, (235.26, 235.03), 68.4048)
    write = PERFTEST.read_text(text("bench", "ib_loopback_all_sizes.log"))
    assert write.sizes[-1].average_gbs == pytest.approx(23240.68 * 8 * 2**20 / 1e9)
    matrices = {
        matrix.name: matrix for matrix in NVBANDWIDTH.read_text(text("bench", "nvbandwidth_results.log")).matrices
    }
    assert matrices["host_to_device_memcpy_ce"].cells[1, 2] == 312.11
    assert matrices["host_device_latency_sm"].unit == "ns"
    burnt = GPU_BURN.read_text(text("bench", "gpu_burn.log"))
    assert [(gpu.verdict, gpu.errors) for gpu in burnt.gpus] == [("OK", 0)] * 8
    hosts = PORT_GUIDS.read_text(text("bench", "ib_traffic_topo_aware_ibstat.txt"))
    assert hosts["vma414bbc00005R"] == ["43f720300e61112"]
