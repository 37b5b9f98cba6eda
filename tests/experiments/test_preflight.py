"""Preflight: the checksum is arithmetic's, not this machine's; what cannot be read is unknown, never ok."""

import pytest
import torch

from tests.health.active import golden_by_hand
from wholestack.experiments.preflight import (
    MachineReading,
    Needs,
    ProbeResult,
    judge_checksum,
    judge_machine,
    read_machine,
    versions,
)
from wholestack.experiments.worker import exact_product_checksum
from wholestack.health.active.golden import ONE_DIGEST

NEEDS = Needs(cores=2, memory_bytes=1000, disk_bytes=1000)


def reading(**changes: object) -> MachineReading:
    values = {
        "host": "h", "cores": 2, "memory_bytes": 1000, "disk_bytes": 1000, "clock_s": 1.8e9, "torch_version": "2.13",
    }  # fmt: skip
    return MachineReading(**{**values, **changes})  # type: ignore[arg-type]


def test_the_checksum_is_that_of_integer_arithmetic() -> None:
    rows = golden_by_hand.product("random", "float32", 256, 256, 256, 2026)
    assert golden_by_hand.digest(rows) == ONE_DIGEST
    assert exact_product_checksum() == ONE_DIGEST


def test_one_wrong_element_changes_the_checksum() -> None:
    def faulty(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        product = left @ right
        product[17, 201] += 1
        return product

    checksum = exact_product_checksum(faulty)
    assert checksum != ONE_DIGEST
    probe = ProbeResult(checksum=checksum, expected_checksum=ONE_DIGEST, rates_flops_s={}, seconds=0.1)
    judged = judge_checksum(probe, "h", settles="claim")
    assert (judged.status, judged.settles) == ("fail", "claim")


def test_a_machine_that_holds_the_run_is_ok_throughout() -> None:
    assert {each.status for each in judge_machine(reading(), NEEDS)} == {"ok"}


@pytest.mark.parametrize(
    ("change", "check", "status"),
    [
        ({"cores": 1}, "machine.cores", "fail"),
        ({"cores": None}, "machine.cores", "unknown"),
        ({"memory_bytes": 999}, "machine.memory", "fail"),
        ({"memory_bytes": None}, "machine.memory", "unknown"),
        ({"disk_bytes": 999}, "machine.disk", "fail"),
        ({"clock_s": 0.0}, "machine.clock", "fail"),
        ({"torch_version": None}, "machine.torch", "fail"),
    ],
)
def test_what_is_missing_fails_and_what_cannot_be_read_is_unknown(change: dict, check: str, status: str) -> None:
    judged = {each.check: each for each in judge_machine(reading(**change), NEEDS)}
    assert judged.pop(check).status == status
    assert {each.status for each in judged.values()} == {"ok"}


def test_this_machine_can_be_read(tmp_path) -> None:
    read = read_machine(tmp_path, clock=lambda: 5.0)
    assert read.clock_s == 5.0
    assert read.cores is not None
    assert read.cores >= 1
    assert read.memory_bytes is not None
    assert read.memory_bytes > 1 << 20
    assert read.torch_version == torch.__version__.split("+")[0] or read.torch_version == torch.__version__
    assert "python" in versions()
