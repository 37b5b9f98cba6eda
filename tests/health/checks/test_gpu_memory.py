"""Memory faults of GPUs: each has its own cause, and one fault is one Finding."""

import pytest

from tests.health.gpu_host import LOG, NOW, key, line, look, outputs, smi, told
from wholestack.health.check import Before, Counter, Expectation

GPU = f"gpu {key(2)}"
XID_48 = line(1, "NVRM: Xid (PCI:0000:4c:00): 48, pid=1, name=python, DBE (double bit error)")
XID_63 = line(
    1, "NVRM: Xid (PCI:0000:4c:00): 63, Row Remapper: New row (0x1) marked for remapping, reset gpu to activate."
)
XID_94 = line(1, "NVRM: Xid (PCI:0000:4c:00): 94, pid=1, name=python, Contained: SM (0x1).")


@pytest.mark.parametrize(
    ("changes", "code", "status"),
    [
        ([("dram_uncorrectable", "1")], "gpu.ecc_uncorrected", "fail"),
        ([("sram_uncorrectable_secded", "2")], "gpu.ecc_uncorrected", "fail"),
        ([("sram_threshold_exceeded", "Yes")], "gpu.sram_threshold", "fail"),
        ([("channel_repair_pending", "Yes")], "gpu.repair_pending", "warn"),
        ([(r"(<aggregate>.*?<dram_uncorrectable>)0", r"\g<1>12")], "gpu.ecc_lifetime", "warn"),
        ([("pending_ecc", "Disabled")], "gpu.ecc_mode", "warn"),
        ([("current_ecc", "Disabled"), ("pending_ecc", "Disabled")], "gpu.ecc_mode", "warn"),
        ([("remapped_row_pending", "Yes"), ("remapped_row_unc", "1")], "gpu.row_remap_pending", "fail"),
        ([("remapped_row_failure", "Yes")], "gpu.row_remap_failure", "fail"),
        ([("row_remapper_histogram_none", "1 bank(s)")], "gpu.row_remap_used_up", "warn"),
        ([("remapped_row_corr", "512")], "gpu.row_remap_used_up", "warn"),
        ([("pending_retirement", "Yes")], "gpu.retired_pages_pending", "fail"),
        ([(r"<retired_count>N/A", "<retired_count>63")], "gpu.retired_pages_used_up", "fail"),
    ],
)
def test_each_fault_is_named_at_its_gpu(changes, code, status):
    assert told(nvidia_smi=smi({2: changes})) == [(code, GPU, status)]


def test_a_few_errors_long_ago_are_no_fault():
    changes = [(r"(<aggregate>.*?<dram_uncorrectable>)0", r"\g<1>2"), ("remapped_row_unc", "2")]
    assert told(nvidia_smi=smi({2: changes})) == []


@pytest.mark.parametrize("path", ["dram_uncorrectable", "remapped_row_pending", "current_ecc"])
@pytest.mark.parametrize("text", ["ERR!", "Unknown Error", "[Unknown Error]", "", "0x", "1 2"])
def test_a_reading_that_is_none_is_unknown_at_that_gpu(path, text):
    found = told(nvidia_smi=smi({2: [(path, text)]}))
    assert ("unknown" in {status for _, part, status in found if part == GPU}) or text in ("0x", "1 2")
    assert "ok" not in {status for _, _, status in found}


def test_a_gpu_that_lacks_the_section_that_its_siblings_have_is_not_ok():
    bare = smi({2: [(r"<ecc_errors>.*</ecc_errors>", "")]})
    assert told(nvidia_smi=bare) == [("gpu.silent", GPU, "unknown")]
    assert "gpu.ecc" not in look(nvidia_smi=bare).passed


@pytest.mark.parametrize("text", ["N/A", "[N/A]", "Not Supported", "[Not Supported]"])
def test_what_all_gpus_do_not_support_is_no_fault(text):
    gone = [
        (r"<volatile>.*</volatile>", f"<volatile>{text}</volatile>"),
        (r"<aggregate>.*</aggregate>", f"<aggregate>{text}</aggregate>"),
        ("current_ecc", text),
        ("pending_ecc", text),
        ("channel_repair_pending", text),
        ("tpc_repair_pending", text),
    ]
    found = look(nvidia_smi=smi(dict.fromkeys(range(8), gone)))
    assert "gpu.ecc" in {each.check for each in found.skipped}
    assert found.symptoms == ()


def test_a_pending_remap_takes_in_the_errors_and_xids_that_led_to_it():
    changes = [("remapped_row_pending", "Yes"), ("remapped_row_unc", "1"), ("dram_uncorrectable", "1")]
    log = LOG + XID_48 + XID_63 + XID_94
    assert told(nvidia_smi=smi({2: changes}), kernel_log=log) == [("gpu.row_remap_pending", GPU, "fail")]


def test_an_xid_63_is_settled_once_the_gpu_says_that_no_remap_waits():
    assert told(kernel_log=LOG + XID_63, nvidia_smi=smi({2: [("remapped_row_unc", "1")]})) == []


def test_a_failed_remap_is_one_finding_whether_log_or_gpu_tells():
    log = LOG + line(1, "NVRM: Xid (PCI:0000:4c:00): 64, Row Remapper: failed")
    expected = [("gpu.row_remap_failure", GPU, "fail")]
    assert told(kernel_log=log) == expected
    assert told(kernel_log=log, nvidia_smi=smi({2: [("remapped_row_failure", "Yes")]})) == expected


def test_corrected_errors_count_by_their_rate_since_the_last_look():
    many = smi({2: [("dram_correctable", "500")]})
    counter = Counter(name="gpu.ecc_corrected", value=490, part=GPU)

    def with_before(hours, value):
        from dataclasses import replace

        return Before(at=NOW - 3600 * hours, boot_id="b1", counters=(replace(counter, value=value),))

    assert told(nvidia_smi=many) == []
    assert told(nvidia_smi=many, before=with_before(1, 490)) == []
    assert told(nvidia_smi=many, before=with_before(1, 100)) == [("gpu.ecc_rate", GPU, "warn")]
    limit = Expectation(limits={"gpu.ecc_corrected_per_hour": 1000.0})
    assert told(nvidia_smi=many, before=with_before(1, 100), expectation=limit) == []


def test_an_error_in_a_mig_device_is_its_gpus():
    device = (
        "<mig_devices><mig_device><index>0</index><ecc_error_count><volatile_count><sram_uncorrectable>1"
        "</sram_uncorrectable></volatile_count></ecc_error_count></mig_device></mig_devices>"
    )
    changed = smi({2: [(r"<mig_devices>.*</mig_devices>", device)]})
    assert told(outputs(nvidia_smi=changed)) == [("gpu.ecc_uncorrected", GPU, "fail")]


def test_a_gpu_with_ecc_off_counts_no_errors_and_is_not_silent():
    off = [
        ("current_ecc", "Disabled"),
        ("pending_ecc", "Disabled"),
        (r"<volatile>.*</volatile>", "<volatile>N/A</volatile>"),
        (r"<aggregate>.*</aggregate>", "<aggregate>N/A</aggregate>"),
    ]
    assert told(nvidia_smi=smi({2: off})) == [("gpu.ecc_mode", GPU, "warn")]
