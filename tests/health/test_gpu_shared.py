"""The recorded outputs of real machines, judged as the README beside them says."""

import pytest

from tests.health.shared_data import shared
from wholestack.health.check import Expectation
from wholestack.health.checks.nvidia import KERNEL_LOG, NVIDIA_SMI
from wholestack.health.checks.xid import read_sxid, read_xid
from wholestack.health.judging import judge

OF_SMI = (
    "gpu.off_bus",
    "gpu.driver",
    "gpu.board",
    "gpu.vbios",
    "gpu.inforom",
    "gpu.mig",
    "gpu.persistence",
    "gpu.row_remap",
    "gpu.retired_pages",
    "gpu.ecc",
    "gpu.throttle",
    "gpu.temperature",
    "gpu.power",
    "gpu.pcie",
    "gpu.telemetry",
    "gpu.processes",
    "gpu.fabric",
    "gpu.recovery_action",
)
OF_LOG = (
    "gpu.xid",
    "gpu.sxid",
    "gpu.off_bus",
    "kernel.oom",
    "kernel.machine_check",
    "kernel.io_errors",
    "kernel.readonly_remount",
    "kernel.nfs_hang",
    "kernel.hung_task",
    "kernel.panic_oops",
    "kernel.link_flaps",
    "kernel.pcie",
    "kernel.thermal",
)


def bad(names, *parts, expectation=None):
    """Findings that are not ok, of all checks that applied; at least one must have applied."""
    text = shared(*parts).read_text(errors="replace")
    found = [judge(name, text, now=0.0, expectation=expectation) for name in names]
    assert any(each.findings for each in found)
    return [finding for each in found for finding in each.findings if finding.status != "ok"]


@pytest.mark.parametrize("name", ["a100-sxm4-v12.xml", "rtx-3090-v12.xml", "quadro-p400.xml"])
def test_healthy_cards_of_every_dtd_are_ok(name):
    assert bad(OF_SMI, "nvidia-smi-xml", name) == []


def test_the_card_with_half_its_lanes_is_a_warning_of_its_width_only():
    (finding,) = bad(OF_SMI, "nvidia-smi-xml", "a10g.xml")
    assert (finding.status, finding.check) == ("warn", "gpu.pcie")
    assert "8x of 16x" in finding.evidence[0]


def test_counts_are_compared_with_what_is_described():
    assert [each.status for each in bad(["gpu.count"], "nvidia-smi-xml", "a100-sxm4-v12.xml")] == ["unknown"]
    for name in ("rtx-3090-v12.xml", "quadro-p400.xml", "a10g.xml"):
        assert bad(["gpu.count"], "nvidia-smi-xml", name) == []


def test_healthy_baselines_of_h100_and_h200_are_ok_and_read():
    for path in sorted(shared("gpu_metrics").iterdir()):
        assert bad((*OF_SMI, "gpu.count"), "gpu_metrics", path.name) == []
        (gpu,) = NVIDIA_SMI.read_text(path.read_text()).gpus
        assert (
            gpu.fields["temperature/gpu_temp"] in ("41", "52", "33", "34", "40")
            or int(gpu.fields["temperature/gpu_temp"]) > 20
        )
        assert gpu.key.startswith("0000:")


def test_repeated_xid_119_is_a_failure_of_that_gpu_alone():
    (finding,) = bad(OF_LOG, "dmesg", "xid119_gsp_timeout.log")
    assert (finding.status, finding.part) == ("fail", "gpu 0000:9b:00")
    assert "5 times" in finding.evidence[0]
    assert "reset" in finding.remedy
    assert "vendor" in finding.remedy


def test_killed_processes_are_a_warning_of_the_job_owner_and_no_hardware_fault():
    found = bad(OF_LOG, "dmesg", "oom_iso.log")
    assert {(each.status, each.owner) for each in found} == {("warn", "job owner")}
    assert "kernel.oom" in {each.check for each in found}


def test_raw_kmsg_is_ok():
    assert bad(OF_LOG, "kmsg", "kmsg1.log") == []
    assert KERNEL_LOG.read_text(shared("kmsg", "kmsg1.log").read_text()).newest["uptime"] == pytest.approx(57631.398464)


def test_the_fabric_managers_log_is_a_warning_with_code_and_port():
    (finding,) = bad(["fabric_manager.log"], "fabricmanager", "fabricmanager.log")
    assert finding.status == "warn"
    assert "12028" in finding.evidence[0]
    assert "port 61" in finding.evidence[0]


def test_eight_a100_with_twelve_links_are_ok():
    wanted = Expectation(traits={"nvlink.count": 12})
    assert bad(["nvlink.state"], "nvidia-smi", "nvlink_status_a100x8.txt", expectation=wanted) == []


def test_eight_gpus_are_counted_on_the_bus():
    assert bad(["gpu.count"], "lspci", "lspci_nn_a100.txt", expectation=Expectation(traits={"gpu.count": 8})) == []
    (finding,) = bad(["gpu.count"], "lspci", "lspci_nn_a100.txt", expectation=Expectation(traits={"gpu.count": 9}))
    assert finding.status == "fail"


def test_the_gpu_of_lspci_vvv_has_its_full_link():
    assert bad(["gpu.pcie"], "lspci", "lspci_vvv_first.txt") == []


def test_every_xid_and_sxid_line_gives_code_address_severity_and_link():
    lines = shared("dmesg", "xid_sxid_lines.txt").read_text().splitlines()
    xids = [found for line in lines if (found := read_xid(line)) is not None]
    sxids = [found for line in lines if (found := read_sxid(line)) is not None]
    without = [line for line in lines if read_xid(line) is None and read_sxid(line) is None]
    assert len(lines) == 76
    assert without == ["NVRM: Xid (invalid): some error", "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): xyz, Fatal error"]
    told = {(each.code, each.key, each.fatal, each.link) for each in xids}
    assert {
        (79, "0000:01:00", None, None),
        (31, "0000:03:00", None, None),
        (14, "0000:03:00", None, None),
        (149, "0000:04:00", True, 8),
        (149, "0008:01:00", True, None),
        (145, "0008:01:00", False, 12),
        (144, "0000:01:00", False, 0),
        (154, "0009:01:00", None, None),
        (99999, "0000:05:00", None, None),
        (69, "0000:04:00", None, None),
        (149, "0009:01:00", True, 1),
        (149, "0008:01:00", True, 14),
    } <= told
    assert {(each.code, each.key, each.fatal, each.link) for each in sxids} == {
        (12028, "0000:05:00", False, 32),
        (12028, "0000:05:00", False, None),
        (20034, "0000:00:00", True, 30),
        (11111, "0000:a9:00", None, None),
        (22013, "0000:0a:00", False, 57),
        (20123, "0000:05:00", None, None),
        (99999, "0000:05:00", None, None),
    }
