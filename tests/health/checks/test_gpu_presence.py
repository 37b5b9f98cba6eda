"""A GPU that is gone is one Finding, whatever number of places show it."""

import pytest

from tests.health.gpu_host import LOG, MOMENT, block, document, key, line, look, lspci, nvlink, outputs, smi, told
from wholestack.health.check import Expectation
from wholestack.remote.batch import Output

FELL = "NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
FELL_TOO = "NVRM: GPU 0000:9b:00.0: GPU has fallen off the bus."
OFF = [("gpu.off_bus", f"gpu {key(4)}", "fail")]
EIGHT = Expectation(traits={"gpu.count": 8})


def test_a_healthy_host_passes_every_check_of_gpus():
    assert told() == []
    assert {"gpu.off_bus", "gpu.count"} <= set(look().passed)


@pytest.mark.parametrize(
    "changed",
    [
        {"kernel_log": LOG + line(1, FELL) + line(1, FELL_TOO), "nvidia_smi": smi(without=[4])},
        {"kernel_log": LOG + line(1, FELL), "nvidia_smi": Output(name="nvidia_smi", exit_status=None, ending="hung")},
        {"kernel_log": LOG + line(1, FELL_TOO), "nvidia_smi": smi(without=[4]), "pci": lspci(without=[4])},
        {"pci": lspci(gone=[4]), "nvidia_smi": smi(without=[4])},
        {"nvidia_smi": "Unable to determine the device handle for GPU0000:9B:00.0: Unknown Error\n" + smi(without=[4])},
        {"nvidia_smi": "Unable to determine the device handle for GPU4: 0000:9B:00.0: Unknown Error\n"},
        {
            "nvidia_smi": smi(without=[4]) + "Unable to determine the device handle for GPU4: Unknown Error\n",
            "nvlink_status": nvlink(without=[4]),
        },
        {"nvidia_smi": smi({4: [("gpu_temp", "GPU is lost"), ("dram_uncorrectable", "GPU is lost")]})},
        {
            "nvidia_smi": smi(
                {4: [(r"<remapped_rows>.*</remapped_rows>", "<remapped_rows>GPU is lost</remapped_rows>")]}
            )
        },
        {"nvidia_smi": smi(), "pci": lspci(without=[4])},
    ],
)
def test_a_gpu_off_the_bus_is_one_finding_of_that_gpu_by_every_sign(changed):
    assert told(outputs(**changed), expectation=EIGHT) == OFF


def test_the_text_over_several_lines_of_new_drivers_counts_without_an_xid_in_all_dresses_of_the_log():
    spread = (
        "NVRM: The NVIDIA GPU 0000:9b:00.0\n               NVRM: (PCI ID: 10de:2330) installed in this system has\n"
        "               NVRM: fallen off the bus and is not responding to commands."
    )
    assert told(kernel_log=LOG + line(1, spread)) == OFF
    prefixed = "".join(line(1, part.strip()) for part in spread.splitlines())
    assert told(kernel_log=LOG + prefixed) == OFF


def test_text_and_xid_of_one_fall_are_one_finding_with_both_as_evidence_and_the_serial_in_its_label():
    (found,) = [each.symptom for each in look(kernel_log=LOG + line(2, FELL) + line(1, FELL_TOO)).symptoms[:1]]
    assert "serial 165000000004" in found.part.label


def test_an_old_fall_does_not_condemn_for_ever_and_a_profile_moves_the_quiet_hours():
    log = LOG + line(100, FELL)
    assert told(kernel_log=log) == []
    assert (
        told(kernel_log=log, expectation=Expectation(limits={"gpu.off_bus_hours": 200.0, "kernel.quiet_hours": 200.0}))
        == OFF
    )


def test_a_line_of_an_earlier_boot_does_not_count():
    before = line(2, FELL) + line(1, "Linux version 5.15.0-112-generic (buildd@host)") + line(0.9, "nvidia: loading")
    assert told(kernel_log=before) == []


def test_a_gpu_on_the_bus_that_is_not_listed_is_named():
    assert told(nvidia_smi=smi(without=[4]), expectation=EIGHT) == [("gpu.not_listed", f"gpu {key(4)}", "fail")]


def test_a_gpu_that_is_nowhere_is_missed_by_the_profile():
    changed = {"nvidia_smi": smi(without=[4]), "pci": lspci(without=[4]), "nvlink_status": nvlink(without=[4])}
    assert told(outputs(**changed), expectation=EIGHT) == [("gpu.count", "host", "fail")]


def test_a_gpu_that_did_not_come_up_is_named():
    log = LOG + line(1, "NVRM: GPU 0000:9b:00.0: RmInitAdapter failed! (0x22:0x56:751)")
    assert told(kernel_log=log, nvidia_smi=smi(without=[4])) == [("gpu.init_failed", f"gpu {key(4)}", "fail")]


def test_no_gpu_listed_of_eight_is_one_finding_of_the_host():
    found = told(nvidia_smi=Output(name="nvidia_smi", stdout=b"No devices were found\n", exit_status=6))
    assert ("gpu.none_listed", "host", "fail") in found
    assert all(code in ("gpu.none_listed", "nvlink.unlisted") for code, _, _ in found)


def test_a_document_that_describes_fewer_gpus_than_it_counts_is_never_ok():
    seven = document([block(index) for index in range(7)], attached=8)
    found = look(nvidia_smi=seven, pci=lspci(without=[7]))
    assert "gpu.count" not in found.passed
    assert any(each.status == "unknown" for each in found.symptoms)


def test_a_host_without_gpus_is_skipped_and_one_without_the_driver_fails():
    absent = Output(name="nvidia_smi", exit_status=127)
    bare = look(outputs(nvidia_smi=absent, pci="00:00.0 Host bridge [0600]: Intel Corporation [8086:09a2]\n"))
    assert {"gpu.off_bus", "gpu.count"} <= {each.check for each in bare.skipped}
    assert ("driver.missing", "host", "fail") in told(nvidia_smi=absent)


def test_a_saved_lspci_or_log_is_judged_by_itself():
    from wholestack.health.judging import judge

    assert judge("gpu.count", lspci(), now=0).status == "ok"
    assert judge("gpu.off_bus", LOG, now=0).status == "ok"
    assert judge("gpu.off_bus", LOG + line(300, FELL), now=0).status == "fail"
    assert judge("gpu.off_bus", lspci(gone=[2]), now=0).status == "fail"


def test_a_hung_tool_is_one_finding_although_three_calls_hang_and_hides_no_other_hung_tool():
    hung = {
        name: Output(name=name, exit_status=None, ending="timed_out")
        for name in ("nvidia_smi", "nvlink_status", "nvlink_errors")
    }
    assert told(outputs(**hung)) == [("telemetry.hung", "probe nvidia_smi", "unknown")]
    fell = LOG + line(1, FELL)
    assert told(outputs(**hung, kernel_log=fell)) == OFF
    stuck = Output(name="modules", exit_status=None, ending="timed_out")
    assert told(outputs(**hung, kernel_log=fell, modules=stuck)) == [
        *OFF,
        ("telemetry.hung", "probe modules", "unknown"),
    ]


def test_a_log_that_may_not_be_read_needs_root():
    denied = Output(name="kernel_log", stderr=b"dmesg: read kernel buffer failed: Operation not permitted\n")
    assert told(kernel_log=denied) == [("telemetry.needs_root", "probe kernel_log", "unknown")]


def test_what_the_tool_says_on_standard_error_counts():
    said = b"Unable to determine the device handle for GPU0000:9B:00.0: Unknown Error\n"
    split = Output(name="nvidia_smi", stdout=smi(without=[4]).encode(), stderr=said, exit_status=15)
    assert told(nvidia_smi=split, expectation=EIGHT, nvlink_status=nvlink(without=[4])) == OFF


def test_a_line_from_before_the_host_came_up_does_not_count():
    moment = MOMENT.replace("uptime=2592000.00", "uptime=3600.00")
    assert told(kernel_log=line(3, FELL), moment=moment) == []
    assert told(kernel_log=line(0.5, FELL), moment=moment) == OFF


def test_two_gpus_with_one_address_are_a_document_that_nothing_can_rely_on():
    twice = document([block(0), block(0), *(block(index) for index in range(2, 8))])
    found = look(nvidia_smi=twice)
    assert ("gpu.unreadable", "unknown") in {(each.symptom.cause.code, each.status) for each in found.symptoms}
    assert not {"gpu.ecc", "gpu.row_remap", "gpu.count"} & set(found.passed)
