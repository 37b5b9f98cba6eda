"""Devices: cores of this machine and torch's own give exact products; what the kernel says of a core is read."""

import os

import numpy as np
import pytest

from wholestack.health.active.cores import Core, cores_here
from wholestack.health.active.exactness import compare
from wholestack.health.active.golden import GOLDEN, digest_of, golden_cases
from wholestack.health.active.operands import Case, left_operand, noise, right_operand


def test_every_core_gives_the_golden_products_and_the_process_is_let_go_again():
    before = os.sched_getaffinity(0)
    with cores_here() as cores:
        assert {core.number for core in cores} == before
        for precision in cores[0].precisions:
            for key, case in golden_cases(precision).items():
                held = (cores[0].put(operand, precision) for operand in (left_operand(case), right_operand(case)))
                assert digest_of(cores[0].fetch(cores[0].multiply(*held, precision))) == GOLDEN[key]
        assert cores[0].number not in os.sched_getaffinity(0) or len(before) == 1
    assert os.sched_getaffinity(0) == before


def test_a_core_works_pinned_also_within_timed_work():
    with cores_here() as cores:
        seen = []
        core = cores[-1]
        words = noise(1, 10)

        def work():
            core.write(words)
            seen.append(os.sched_getaffinity(0))

        assert core.timed(work) >= 0
        assert seen == [{core.number}]


def proc(tmp_path, idle):
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Some  CPU\n")
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   2048 kB\n")
    stat = tmp_path / "stat"
    stat.write_text("cpu 1 1\ncpu0 100 0 0 1000 0 0 0 0 0 0\n")
    # While it waits, 100 ticks go by.
    return lambda _: stat.write_text(f"cpu 1 1\ncpu0 {100 + 100 - idle} 0 0 {1000 + idle} 0 0 0 0 0 0\n")


@pytest.mark.parametrize(("idle", "says"), [(95, ""), (40, "other work takes 60% of it")])
def test_a_core_with_other_work_says_so(tmp_path, idle, says):
    core = Core(0, frozenset({0, 1}), proc=tmp_path, cgroup=tmp_path, wait=proc(tmp_path, idle))
    assert core.in_use() == says
    assert core.kind == "Some CPU, 1 core"
    assert core.free_bytes() == 1024 * 1024


def test_corrected_errors_of_the_memory_are_told(tmp_path):
    for number, count in (("mc0", "0"), ("mc1", "17")):
        (tmp_path / number).mkdir()
        (tmp_path / number / "ce_count").write_text(f"{count}\n")
    assert Core(0, frozenset({0}), edac=tmp_path).corrections() == ("mc1: 17 corrected errors since boot",)


def test_a_kernel_that_does_not_say_has_no_memory_free_and_a_limit_of_the_group_counts(tmp_path):
    core = Core(0, frozenset({0, 1}), proc=tmp_path, cgroup=tmp_path)
    assert core.free_bytes() == 0
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert core.free_bytes() == 2000


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16"])
def test_torch_gives_exact_products_in_every_precision(precision):
    torch = pytest.importorskip("torch")
    from wholestack.health.active.torch_device import TorchDevice

    device = TorchDevice(torch.device("cpu"), query=lambda *_: [])
    for key, case in golden_cases(precision).items():
        left, right = left_operand(case), right_operand(case)
        product = device.multiply(device.put(left, precision), device.put(right, precision), precision)
        assert digest_of(device.fetch(product)) == GOLDEN[key]
    case = Case(pattern="random", precision=precision, rows=33, inner=700, columns=65, seed=9)
    left, right = left_operand(case), right_operand(case)
    result = device.fetch(device.multiply(device.put(left, precision), device.put(right, precision), precision))
    assert compare(left, right, result, precision=precision, seed=1).wrong_rows == 0
    words = noise(3, 100)
    assert np.array_equal(device.fetch(device.copy(device.write(words))), words)


def test_what_the_driver_says_of_a_gpu_is_read():
    torch = pytest.importorskip("torch")
    from wholestack.health.active.torch_device import TorchDevice

    answers = {
        "--query-compute-apps=pid,process_name": [["4711", "python"]],
        "--query-remapped-rows=remapped_rows.correctable,remapped_rows.uncorrectable,remapped_rows.pending": [
            ["0", "2", "No"]
        ],
        "--query-gpu=ecc.errors.corrected.aggregate.total": [["[N/A]"]],
    }
    device = TorchDevice(torch.device("cpu"), query=lambda query, _: answers[query])
    assert device.in_use() == "process 4711 python computes on it"
    assert device.corrections() == ("remapped_rows.uncorrectable 2",)
    answers["--query-compute-apps=pid,process_name"] = [[str(os.getpid()), "python"]]
    assert device.in_use() == "", "a probe is not the user of its own device"
    idle = TorchDevice(torch.device("cpu"), query=lambda *_: [])
    assert (idle.in_use(), idle.corrections()) == ("", ())


@pytest.mark.parametrize("answer", [None, [["[Insufficient Permissions]", "[N/A]"]]], ids=["failed", "not allowed"])
def test_a_driver_that_does_not_say_who_uses_a_gpu_is_not_taken_for_idle(answer):
    torch = pytest.importorskip("torch")
    from wholestack.health.active.torch_device import TorchDevice

    assert TorchDevice(torch.device("cpu"), query=lambda *_: answer).in_use() is None


@pytest.mark.parametrize("script", [None, "exit 9", "exec sleep 60"], ids=["missing", "failing", "silent"])
def test_nvidia_smi_that_is_missing_fails_or_is_silent_says_nothing(tmp_path, monkeypatch, script):
    pytest.importorskip("torch")
    from wholestack.health.active import torch_device

    if script is not None:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin" if script else str(tmp_path))
    monkeypatch.setattr(torch_device, "SMI_LIMIT_S", 0.3 if script == "exec sleep 60" else 20.0)
    assert torch_device.smi("--query-compute-apps=pid", "00000000:9b:00.0") is None


def test_nvidia_smi_without_a_row_is_an_answer_and_a_gpu_without_an_address_is_not_asked(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from wholestack.health.active import torch_device

    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexit 0\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert torch_device.smi("--query-compute-apps=pid", "00000000:9b:00.0") == []
    assert torch_device.smi("--query-compute-apps=pid", "") is None
