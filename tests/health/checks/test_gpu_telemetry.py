"""Readings that go missing on one GPU are a Finding of their own."""

import pytest

from tests.health.gpu_host import key, smi, told

GPU = f"gpu {key(5)}"


@pytest.mark.parametrize(
    "changes",
    [
        [("instant_power_draw", "N/A"), ("average_power_draw", "N/A")],
        [("memory_temp", "N/A")],
        [("gpu_util", "Unknown Error"), ("memory_util", "Unknown Error")],
        [("sm_clock", "ERR!")],
        [(r"<temperature>.*</temperature>", "")],
        [(r"<ecc_errors>.*</ecc_errors>", "")],
        [(r"<pci_gpu_link_info>.*</pci_gpu_link_info>", "")],
        [("img_version", "")],
    ],
)
def test_a_gpu_that_tells_less_than_its_siblings_is_one_finding_neither_ok_nor_broken(changes):
    found = told(nvidia_smi=smi({5: changes}))
    assert ("gpu.silent", GPU, "unknown") in found
    assert {code for code, _, _ in found} <= {"gpu.silent", "gpu.inforom_corrupted"}


def test_what_no_sibling_tells_is_no_finding():
    assert told(nvidia_smi=smi({index: [("memory_temp", "N/A")] for index in range(8)})) == []


def test_a_lost_gpu_takes_its_silence_in():
    lost = [
        ("gpu_util", "GPU is lost"),
        ("memory_util", "GPU is lost"),
        ("gpu_temp", "[GPU is lost]"),
        ("sm_clock", "GPU is lost"),
    ]
    assert told(nvidia_smi=smi({5: lost})) == [("gpu.off_bus", GPU, "fail")]
