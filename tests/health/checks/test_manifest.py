"""A recorded node against its manifest; whatever is not there is not fine."""

import json

import pytest

from tests.health.network import recorded, said, saved, verdict
from wholestack.errors import InputError
from wholestack.health.checks.manifest import CHECKS
from wholestack.health.formats.manifest import expectation, looks_like_manifest

PCIE, IB, ETHERNET = CHECKS
TEXT = recorded("manifest", "node.json")
EXPECTED = expectation(TEXT)
DEVICES = json.loads(TEXT)["pci"]
MAC = {"enp1": "02:00:00:00:00:01", "enp2": "02:00:00:00:00:02"}


def files(**changed):
    """Kernel files of a node as the manifest wants it; ``changed`` by end of path, ``None`` leaves one out."""
    found = {}
    for address, own in DEVICES.items():
        base = f"/sys/class/pci_bus/{address[:7]}/device/{address}"
        found[f"{base}/current_link_speed"] = own["link_speed"][-1] + "\n"
        found[f"{base}/current_link_width"] = own["link_width"] + "\n"
    found["/sys/bus/pci/devices/0000:c8:00.0/nvme/nvme0/size"] = "1\n"
    for index, address in enumerate(("0000:18:00.0", "0000:3a:00.0", "0000:5c:00.0")):
        base = f"/sys/bus/pci/devices/{address}"
        port = f"{base}/infiniband/mlx5_{index}"
        found |= {
            f"{port}/fw_ver": "28.41.1000\n",
            f"{port}/node_desc": f"node1 HCA-{index + 1}\n",
            f"{port}/ports/1/state": "4: ACTIVE\n",
            f"{port}/ports/1/phys_state": "5: LinkUp\n",
            f"{port}/ports/1/rate": "400 Gb/sec (4X NDR)\n",
            f"{port}/ports/1/link_layer": "InfiniBand\n",
            f"{base}/net/ib{index}/operstate": "up\n",
        }
    return found


def change(found, **ends):
    """Values of files by the end of their path, with ``__`` for ``/``; of the first adapter if several end so."""
    for end, value in ends.items():
        path = next(path for path in found if path.endswith(end.replace("__", "/")))
        if value is None:
            del found[path]
        else:
            found[path] = value + "\n"
    return found


def ethernet(**changed):
    """Interfaces of a node as the manifest wants it; ``enp1={"mtu": 1500}`` changes one, ``None`` leaves one out."""
    flags = {
        "enp1": ["SLAVE", "UP", "LOWER_UP"],
        "enp2": ["SLAVE", "UP", "LOWER_UP"],
        "bond0": ["MASTER", "UP", "LOWER_UP"],
    }
    speeds = {"enp1": "100000", "enp2": "100000", "bond0": "200000"}
    interfaces = {
        name: {"ifname": name, "flags": flags[name], "mtu": 9000, "operstate": "UP"}
        | ({"master": "bond0"} if name != "bond0" else {})
        for name in flags
    }
    for name, own in changed.items():
        if own is None:
            del interfaces[name], speeds[name]
        else:
            speeds[name] = own.pop("speed", speeds[name])
            interfaces[name] |= own
    return {
        "intf_status": list(interfaces.values()),
        "link_speed": {name: speed for name, speed in speeds.items() if speed is not None},
        "phys_macaddr": MAC,
        "intf_ifcfg": {name: {"HWADDR": mac.upper()} for name, mac in MAC.items()},
    }


def put(check, state):
    return said(saved(check, json.dumps(state), profile=EXPECTED))


def test_a_node_as_its_manifest_wants_it_passes():
    assert put(PCIE, files()) == []
    found = saved(IB, json.dumps(files()), profile=EXPECTED)
    assert said(found) == []
    assert [(trait.name, trait.value) for trait in found.traits] == [("manifest.ib_up", 3)]
    assert put(ETHERNET, ethernet()) == []


@pytest.mark.parametrize("check", CHECKS)
def test_nothing_recorded_is_nothing_there_and_never_ok(check):
    found = saved(check, "{}", profile=EXPECTED)
    assert verdict(found) == "fail"
    assert len(said(found)) == 1


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"a": 1}', '"x"', "[" * 10_000])
def test_other_text_is_unknown(check, text):
    assert verdict(saved(check, text, profile=EXPECTED)) == "unknown"


@pytest.mark.parametrize("check", CHECKS)
def test_without_a_manifest_there_is_no_verdict(check):
    assert verdict(saved(check, json.dumps(files()))) == "skipped"


@pytest.mark.parametrize(
    ("end", "value", "expected"),
    [
        ("0000:18:00.0__current_link_speed", "16.0 GT/s PCIe", "fail manifest.pci_degraded pci 0000:18:00"),
        ("0000:18:00.0__current_link_width", "8", "fail manifest.pci_degraded pci 0000:18:00"),
        ("0000:c8:00.0__current_link_speed", "2.5 GT/s", "fail manifest.pci_degraded pci 0000:c8:00"),
        ("0000:c8:00.0__current_link_speed", "32.0 GT/s PCIe", "warn manifest.pci_differs pci 0000:c8:00"),
        ("0000:18:00.0__current_link_speed", "Unknown", "unknown telemetry.field pci 0000:18:00"),
        ("0000:18:00.0__current_link_width", "", "unknown telemetry.field pci 0000:18:00"),
        ("0000:18:00.0__current_link_speed", None, "unknown telemetry.field pci 0000:18:00"),
    ],
)
def test_one_link_that_is_not_as_wanted_is_named(end, value, expected):
    assert put(PCIE, change(files(), **{end: value})) == [expected]


@pytest.mark.parametrize("speed", ["8 GT/s", "8.0 GT/s PCIe", "16 GT/s", "16.0 GT/s PCIe"])
def test_spellings_of_a_speed_are_one(speed):
    assert put(PCIE, change(files(), **{"0000:c8:00.0__current_link_speed": speed})) == []


def test_a_device_that_is_missing_is_named_and_a_critical_one_takes_in_those_that_it_shifts():
    def without(*addresses):
        return {path: value for path, value in files().items() if not any(each in path for each in addresses)}

    assert put(PCIE, without("0000:1b:00.0")) == ["fail manifest.pci_missing pci 0000:1b:00"]
    assert put(PCIE, without("0000:07:00.0", "0000:1b:00.0")) == ["fail manifest.pci_missing pci 0000:07:00"]


def test_a_drive_with_another_name_is_a_warning():
    renamed = {path.replace("nvme0", "nvme3"): value for path, value in files().items()}
    assert put(PCIE, renamed) == ["warn manifest.pci_differs pci 0000:c8:00"]


@pytest.mark.parametrize(
    ("end", "value", "code"),
    [
        ("fw_ver", "28.30.1000", "fail manifest.ib_firmware"),
        ("ports__1__rate", "200 Gb/sec (4X HDR)", "fail ib.slow"),
        ("ports__1__state", "1: DOWN", "fail ib.no_link"),
        ("ports__1__phys_state", "2: Polling", "fail ib.no_link"),
        ("ports__1__state", "2: INIT", "fail ib.no_subnet_manager"),
        ("ports__1__link_layer", "Ethernet", "fail manifest.ib_protocol"),
        ("operstate", "down", "fail manifest.ib_interface_down"),
        ("ports__1__rate", None, "unknown telemetry.field"),
        ("operstate", "", "unknown telemetry.field"),
    ],
)
def test_one_adapter_that_is_not_as_wanted_is_named(end, value, code):
    found = saved(IB, json.dumps(change(files(), **{end: value})), profile=EXPECTED)
    assert said(found) == [f"{code} hca_port mlx5_0/1"]
    up = 3 if "firmware" in code else 2
    assert f"{up} of 3 InfiniBand ports up" in found.symptoms[0].symptom.evidence


def test_what_most_ports_share_is_one_finding_of_the_host():
    old = {path: value.replace("28.41", "28.30") for path, value in files().items()}
    assert put(IB, old) == ["fail manifest.ib_firmware host"]


def test_swapped_adapters_are_both_misbound():
    swap = {"mlx5_0": "mlx5_1", "mlx5_1": "mlx5_0"}
    swapped = {}
    for path, value in files().items():
        name = next((name for name in swap if f"/{name}/" in path), "")
        swapped[path.replace(name, swap[name]) if name else path] = value
    assert put(IB, swapped) == [
        "fail manifest.ib_misbound hca_port mlx5_1/1",
        "fail manifest.ib_misbound hca_port mlx5_0/1",
    ]


def test_a_missing_adapter_is_named():
    gone = {path: value for path, value in files().items() if "devices/0000:3a:00.0/" not in path}
    assert put(IB, gone) == ["fail manifest.ib_missing pci 0000:3a:00"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"enp1": {"operstate": "DOWN", "flags": ["UP"], "mtu": 1500}}, ["fail manifest.nic_down nic enp1"]),
        ({"enp1": {"flags": ["UP", "LOWER_UP"]}}, ["fail manifest.nic_down nic enp1"]),
        ({"enp1": {"mtu": 1500}}, ["warn manifest.nic_mtu nic enp1"]),
        ({"enp1": None}, ["fail manifest.nic_missing nic enp1"]),
        ({"enp1": {"speed": "25000"}, "bond0": {"speed": "125000"}}, ["warn manifest.nic_slow nic enp1"]),
        (
            {"enp1": {"speed": "25000"}, "enp2": {"speed": "25000"}, "bond0": {"speed": "50000"}},
            ["warn manifest.nic_slow nic bond0"],
        ),
        ({"enp1": {"operstate": "DOWN"}, "bond0": {"speed": "100000"}}, ["fail manifest.nic_down nic enp1"]),
        ({"bond0": {"speed": None}}, ["unknown telemetry.field nic bond0"]),
        ({"bond0": {"speed": "Unknown!"}}, ["unknown telemetry.field nic bond0"]),
        ({"enp1": {"operstate": None}}, ["unknown telemetry.field nic enp1"]),
    ],
)
def test_an_interface_that_is_not_as_wanted_is_named_once(changed, expected):
    assert put(ETHERNET, ethernet(**changed)) == expected


def test_a_configuration_of_another_card_fails_and_one_without_address_is_unknown():
    state = ethernet()
    state["intf_ifcfg"]["enp1"]["HWADDR"] = "02:00:00:00:00:99"
    assert put(ETHERNET, state) == ["fail manifest.nic_configuration nic enp1"]
    state["intf_ifcfg"]["enp1"]["HWADDR"] = "hidden"
    assert put(ETHERNET, state) == ["unknown telemetry.field nic enp1"]
    del state["intf_ifcfg"]["enp1"]
    assert put(ETHERNET, state) == ["fail manifest.nic_missing nic enp1"]


def test_a_manifest_becomes_an_expectation_that_a_sweep_can_use_too():
    assert EXPECTED.traits == {"pci.gpus": 1, "pci.nvswitches": 1, "pci.nvme": 1}
    assert looks_like_manifest(TEXT)
    assert not looks_like_manifest(json.dumps(files()))
    assert not looks_like_manifest("not json")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{}", "pci, eth, ib"),
        ("nonsense", "JSON"),
        ('{"pci": {"zz": {"link_speed": [], "link_width": "4"}}}', "zz"),
        ('{"pci": {"0000:01:00.0": {"link_speed": ["fast"], "link_width": "4"}}}', "link_speed"),
        ('{"pci": {"0000:01:00.0": 3}}', "pci.0000:01:00.0"),
        ('{"eth": {"front": {"netdev": "eth0", "speed": "100000"}}}', "eth.front.speed"),
        ('{"ib": {"firmware_version": [1]}}', "ib.firmware_version"),
    ],
)
def test_a_wrong_manifest_is_refused_with_the_key(text, names):
    with pytest.raises(InputError, match=names):
        expectation(text)
