"""Logs of benchmarks: wrong values, broken runs, slow parts; a log without an end is not a pass."""

import pytest

from tests.health.network import RECORDED, said, saved, verdict
from wholestack.health.check import Expectation
from wholestack.health.checks.benchmarks import CHECKS, GPU_BURN, NCCL, NVBANDWIDTH, PERFTEST

BY_NAME = {check.name: check for check in CHECKS}
FILES = {
    "bench.nccl": "nccl.txt",
    "bench.ib_write_bw": "ib_write_bw.txt",
    "bench.nvbandwidth": "nvbandwidth.txt",
    "bench.gpu_burn": "gpu_burn.txt",
    "bench.ibstat": "port_guids.txt",
}
UUID = "GPU-00000000-0000-0000-0000-000000000001"


def text(name):
    # read_text would make line breaks of the carriage returns.
    return (RECORDED / "benchmarks" / FILES[name]).read_bytes().decode()


def put(name, *changes, **limits):
    given = text(name)
    for old, new in changes:
        assert old in given
        given = given.replace(old, new)
    profile = Expectation(limits={f"bench.{key}": value for key, value in limits.items()})
    return said(saved(BY_NAME[name], given, profile=profile))


@pytest.mark.parametrize("name", FILES)
def test_a_good_run_passes(name):
    assert verdict(saved(BY_NAME[name], text(name))) == "ok"
    assert not BY_NAME[name].passive


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("given", ["", "hello\n", "\x00" * 100])
def test_other_text_is_unknown(name, given):
    assert verdict(saved(BY_NAME[name], given)) == "unknown"


def test_the_values_are_read():
    nccl = NCCL.read_text(text("bench.nccl"))
    assert [(row.size_bytes, row.busbw_gbs) for row in nccl.rows][-1] == (1073741824, (457.98, 458.29))
    assert nccl.average_gbs == 240.556
    assert PERFTEST.read_text(text("bench.ib_write_bw")).sizes[-1].average_gbs == 396.40
    matrix = NVBANDWIDTH.read_text(text("bench.nvbandwidth")).matrices[1]
    assert len(matrix.cells) == 12
    assert matrix.cells[2, 3] == 390.90
    burnt = GPU_BURN.read_text(text("bench.gpu_burn"))
    assert [(gpu.index, gpu.verdict, gpu.errors, gpu.gflops) for gpu in burnt.gpus][1] == (1, "OK", 0, 50210)


def test_megabytes_of_perftest_are_mebibytes():
    given = text("bench.ib_write_bw").replace("[Gb/sec]", "[MB/sec]")
    assert PERFTEST.read_text(given).sizes[-1].average_gbs == pytest.approx(396.40 * 1048576 * 8 / 1e9)


def test_wrong_values_of_a_collective_fail():
    assert put("bench.nccl", ("388.10      0 ", "388.10     12 ")) == ["fail bench.wrong host"]
    assert put("bench.nccl", ("values : 0 OK", "values : 3 FAILED")) == ["fail bench.wrong host"]
    assert put("bench.nccl", ("388.10      0 ", "388.10    N/A ")) == []


@pytest.mark.parametrize("end", ["# Out of bounds", "# Avg bus", "  1073741824", "457.98"])
def test_a_table_without_its_end_is_unknown(end):
    given = text("bench.nccl")
    assert verdict(saved(BY_NAME["bench.nccl"], given[: given.index(end)])) == "unknown"


def test_a_collective_that_broke_off_fails():
    given = text("bench.nccl")
    cut = given[: given.index("  1073741824")] + "host1: Test NCCL failure common.cu:958 'unhandled system error'\n"
    assert said(saved(BY_NAME["bench.nccl"], cut)) == ["fail bench.broke_off host"]


def test_a_bandwidth_below_the_profile_fails():
    assert put("bench.nccl", nccl_busbw_gbs=450) == []
    assert put("bench.nccl", nccl_busbw_gbs=470) == ["fail bench.slow host"]
    assert put("bench.ib_write_bw", ib_write_bw_gbs=390) == []
    assert put("bench.ib_write_bw", ib_write_bw_gbs=399) == ["fail bench.slow hca mlx5_0"]


@pytest.mark.parametrize("end", ["396.41", "8388608", "the closing line"])
def test_a_cut_bandwidth_test_is_unknown(end):
    given = text("bench.ib_write_bw")
    cut = given[: given.index(end)] if end in given else given[: given.rindex("\n-----")] + "\n"
    assert verdict(saved(BY_NAME["bench.ib_write_bw"], cut)) == "unknown"


def test_a_bandwidth_test_that_could_not_connect_or_lost_its_peer_fails():
    no_peer = " RDMA_Write BW Test\n Couldn't connect to host2:18515\nUnable to open file descriptor\n"
    assert said(saved(BY_NAME["bench.ib_write_bw"], no_peer)) == ["fail bench.broke_off host"]
    lost = (
        "8388608    5000             396.41             396.40             0.005907",
        " Completion with error at client",
    )
    assert put("bench.ib_write_bw", lost) == ["fail bench.broke_off hca mlx5_0"]


def test_numbers_that_are_none_are_unknown():
    assert put("bench.ib_write_bw", ("396.40 ", "nan    ")) == ["unknown telemetry.garbled probe ib_write_bw"]


def test_a_slow_copy_is_named_with_its_gpu():
    slow = ("55.33     55.41", "12.01     55.41")
    assert put("bench.nvbandwidth", slow) == ["warn bench.uneven gpu 0000:3d:00"]
    assert put("bench.nvbandwidth", slow, host_to_device_gbs=50) == ["fail bench.slow gpu 0000:3d:00"]
    assert put("bench.nvbandwidth", device_to_host_gbs=1000) == []
    assert len(put("bench.nvbandwidth", device_to_device_gbs=1000)) == 4


def test_a_long_latency_is_named_and_a_short_one_is_not():
    assert put("bench.nvbandwidth", ("775.10", "1975.10")) == ["warn bench.uneven gpu 0000:3d:00"]
    assert put("bench.nvbandwidth", ("775.10", "175.10")) == []


def test_a_matrix_without_its_sum_is_unknown_and_a_cut_row_too():
    given = text("bench.nvbandwidth")
    cut = given[: given.index("SUM host_device")]
    assert said(saved(BY_NAME["bench.nvbandwidth"], cut)) == ["unknown bench.cut host"]
    assert put("bench.nvbandwidth", ("390.70    390.11       N/A    390.90", "390.70    390.11")) == [
        "unknown telemetry.garbled probe nvbandwidth"
    ]


def test_an_error_of_nvbandwidth_fails():
    assert put("bench.nvbandwidth", ("NOTE:", "ERROR: CUDA_ERROR_ECC_UNCORRECTABLE\nNOTE:")) == [
        "fail bench.broke_off host"
    ]


@pytest.mark.parametrize(
    "change",
    [
        ("GPU 1: OK", "GPU 1: FAULTY"),
        ("errors: 0 - 0 - 0 - 0   temps: 58", "errors: 0 - 12 (WARNING!) - 0 - 0   temps: 58"),
        ("errors: 0 - 0 - 0 - 0   temps: 68", "errors: 0 - -1 (DIED!) - 0 - 0   temps: 68"),
    ],
)
def test_a_faulty_gpu_is_named_by_its_uuid(change):
    assert put("bench.gpu_burn", change) == [f"fail bench.gpu_faulty gpu {UUID}"]


def test_a_slow_gpu_is_a_warning():
    assert put("bench.gpu_burn", ("50210", "40210")) == [f"warn bench.uneven gpu {UUID}"]
    assert put("bench.gpu_burn", ("50210", "49210")) == []


@pytest.mark.parametrize("end", ["Tested 4", "\tGPU 3: OK", "\r100.0%"])
def test_a_burn_without_all_verdicts_is_unknown(end):
    given = text("bench.gpu_burn")
    assert said(saved(BY_NAME["bench.gpu_burn"], given[: given.index(end)])) == ["unknown bench.cut host"]


def test_a_burn_without_clients_fails():
    given = "GPU 0: X (UUID: GPU-0)\nCouldn't init a GPU test: Error in load module\nNo clients are alive!  Aborting\n"
    assert said(saved(BY_NAME["bench.gpu_burn"], given)) == ["fail bench.broke_off host"]


def test_ports_of_several_hosts_are_compared():
    assert put("bench.ibstat", ("0200000000000032\n", "")) == ["fail bench.port_count host host3"]
    assert put("bench.ibstat", ("0200000000000032", "0200000000000011")) == [
        "fail bench.duplicate_guid hca_port 200000000000011"
    ]
    assert put("bench.ibstat", ("0200000000000032", "mlx5_1: no such device")) == [
        "unknown telemetry.garbled probe port_guids"
    ]


def test_every_check_has_a_recorded_run():
    assert set(FILES) == set(BY_NAME)
