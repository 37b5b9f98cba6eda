"""PCIe links of GPUs."""

import pytest

from tests.health.gpu_host import NOW, OURS, key, look, outputs, smi, told
from wholestack.health.check import Before, Counter
from wholestack.health.judging import judge

GPU = f"gpu {key(1)}"


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ([("current_link_width", "8x")], ["gpu.pcie_width"]),
        ([("current_link_gen", "3")], ["gpu.pcie_speed"]),
        ([("current_link_gen", "1")], []),
        ([("current_link_gen", "3"), ("performance_state", "P8")], []),
        ([("current_link_gen", "1"), ("gpu_util", "95 %")], ["gpu.pcie_speed"]),
        ([("max_device_link_gen", "6")], []),
    ],
)
def test_width_always_counts_and_speed_only_where_the_gpu_is_not_at_rest(changes, codes):
    found = told(nvidia_smi=smi({1: changes}))
    assert [code for code, _, _ in found] == codes
    assert {part for _, part, _ in found} <= {GPU}


def test_what_sysfs_says_of_the_width_joins_and_stands_alone():
    files = "".join(
        f"0000:3b:00.0/{name}:{value}\n"
        for name, value in (
            ("vendor", "0x10de"),
            ("device", "0x2330"),
            ("class", "0x030200"),
            ("current_link_speed", "2.5 GT/s PCIe"),
            ("current_link_width", "8"),
            ("max_link_speed", "32.0 GT/s PCIe"),
            ("max_link_width", "16"),
        )
    )
    assert told(outputs(pci_links=files)) == [("gpu.pcie_width", GPU, "warn")]
    assert told(outputs(pci_links=files, nvidia_smi=smi({1: [("current_link_width", "8x")]}))) == [
        ("gpu.pcie_width", GPU, "warn")
    ]
    assert judge("gpu.pcie", files, now=0).status == "warn"
    assert judge("gpu.pcie", files.replace("width:8", "width:16"), now=0).status == "ok"


def test_slots_are_traits():
    names = {trait.name for trait in look(checks=OURS).traits}
    assert {"gpu.pcie_width_max", "gpu.pcie_generation_max"} <= names


def test_lspci_vvv_of_a_narrow_gpu_is_judged():
    text = (
        "3b:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n\tCapabilities: [60] "
        "Express (v2) Endpoint, MSI 00\n"
        "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <4us\n"
        "\t\tLnkSta:\tSpeed 32GT/s (ok), Width x8 (downgraded)\n\n"
    )
    (finding,) = judge("gpu.pcie", text, now=0).findings
    assert (finding.status, finding.part) == ("warn", f"gpu {key(1)}")


def test_replays_count_by_their_rate():
    before = Before(at=NOW - 3600, boot_id="b1", counters=(Counter(name="gpu.pcie_replays", value=10, part=GPU),))
    assert told(nvidia_smi=smi({1: [("replay_counter", "150")]}), before=before) == []
    assert told(nvidia_smi=smi({1: [("replay_counter", "1500")]}), before=before) == [("gpu.pcie_replays", GPU, "warn")]
