"""Driver, VBIOS, infoROM, MIG, persistence."""

import pytest

from tests.health.gpu_host import MODULE_VERSION, block, document, key, look, outputs, smi, told
from wholestack.health.check import Expectation
from wholestack.remote.batch import Output

GPU = f"gpu {key(3)}"
DRIVER = "driver nvidia"


def died(text, status):
    return Output(name="nvidia_smi", stdout=text.encode(), exit_status=status)


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        (
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.105\n",
            18,
            "driver.mismatch",
        ),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
            "NVIDIA driver is installed and running.\n",
            9,
            "driver.not_loaded",
        ),
        ("Failed to initialize NVML: Unknown Error\n", 255, "driver.nvml"),
    ],
)
def test_a_driver_that_does_not_run_is_one_finding(text, status, code):
    dead = "Failed to initialize NVML: " + text
    found = told(
        outputs(nvidia_smi=died(text, status), nvlink_status=died(dead, status), nvlink_errors=died(dead, status)),
        expectation=Expectation(traits={"gpu.count": 8}),
    )
    assert found == [(code, DRIVER, "fail")]


@pytest.mark.parametrize(
    "text", ["Failed to initialize NVML: Unknown Error\n", "NVIDIA-SMI has failed because of it\n"]
)
def test_no_check_of_gpus_passes_when_the_tool_says_nothing_of_them(text):
    passed = look(nvidia_smi=died(text, 255)).passed
    assert [
        name for name in passed if name.startswith("gpu.") and name not in ("gpu.xid", "gpu.sxid", "gpu.peer_memory")
    ] == []


def test_a_module_of_another_version_than_the_libraries_is_a_mismatch():
    assert told(driver_version=MODULE_VERSION.replace("580.105.08", "570.158.01")) == [
        ("driver.mismatch", DRIVER, "fail")
    ]


def test_an_inforom_warning_is_a_warning_although_the_tool_ends_with_1():
    text = smi() + "WARNING: infoROM is corrupted at gpu 0000:5D:00.0\n"
    for status in (1, 14, 0):
        assert told(nvidia_smi=died(text, status)) == [("gpu.inforom_corrupted", GPU, "warn")]


@pytest.mark.parametrize(
    ("changes", "code", "status"),
    [
        ([("vbios_version", "96.00.30.00.01")], "gpu.vbios", "warn"),
        ([("img_version", "G520.0200.00.01")], "gpu.inforom_image", "warn"),
        ([("pending_mig", "Enabled")], "gpu.mig_pending", "warn"),
        ([("persistence_mode", "Disabled")], "gpu.persistence", "warn"),
        ([("total", "40960 MiB")], "gpu.memory_size", "fail"),
    ],
)
def test_a_gpu_that_is_unlike_its_siblings_is_named(changes, code, status):
    assert told(nvidia_smi=smi({3: changes})) == [(code, GPU, status)]


def test_persistence_off_everywhere_is_left_to_the_fleet_and_the_profile():
    off = smi({index: [("persistence_mode", "Disabled")] for index in range(8)})
    assert told(nvidia_smi=off) == []
    wanted = Expectation(traits={"gpu.persistence": "Enabled"})
    assert {code for code, _, _ in told(nvidia_smi=off, expectation=wanted)} == {"gpu.persistence"}


def test_what_should_be_alike_in_the_fleet_is_told_as_traits():
    traits = {trait.name: trait.value for trait in look().traits}
    assert traits["gpu.driver"] == "580.105.08"
    assert traits["gpu.cuda"] == "13.0"
    assert traits["gpu.memory_mib"] == 81559
    assert {
        "gpu.name",
        "gpu.vbios",
        "gpu.inforom_image",
        "gpu.mig_mode",
        "gpu.persistence",
        "gpu.count",
    } <= traits.keys()


def test_every_trait_is_announced():
    from tests.health.gpu_host import OURS

    announced = {name for check in OURS for name in check.trait_names}
    assert {trait.name for trait in look().traits} <= announced


def test_mig_gpus_are_healthy():
    on = [
        ("current_mig", "Enabled"),
        ("pending_mig", "Enabled"),
        (
            r"<utilization>.*</utilization>",
            "<utilization><gpu_util>N/A</gpu_util><memory_util>N/A</memory_util></utilization>",
        ),
        (r"<remapped_rows>.*</remapped_rows>", "<remapped_rows>N/A</remapped_rows>"),
    ]
    assert told(nvidia_smi=smi({0: on, 1: on})) == []


def test_two_kinds_of_boards_in_one_host_are_not_compared():
    other = [("product_name", "NVIDIA L4"), ("vbios_version", "95.04.29.00.06"), ("total", "23034 MiB")]
    boards = [block(index, *(other if index > 5 else ())) for index in range(8)]
    assert told(nvidia_smi=document(boards)) == []
