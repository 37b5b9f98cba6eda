"""Xids and SXids: read from every dress of line, with class, owner and part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.health.gpu_host import LOG, key, line, look, smi, told
from wholestack.health.checks.xid import read_sxid, read_xid
from wholestack.health.formats.xids import MEANINGS, meaning
from wholestack.health.judging import judge

GPU = f"gpu {key(0)}"


def xid(code, text="", address="PCI:0000:19:00", hours=1.0):
    return line(hours, f"NVRM: Xid ({address}): {code}{', ' + text if text else ''}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            (79, "0000:05:00", None, "", None, None),
        ),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", (14, "0000:03:00", None, "", None, None)),
        ("NVRM: Xid (PCI:0000:04:00): 69", (69, "0000:04:00", None, "", None, None)),
        (
            "NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting",
            (119, "0000:9b:00", 2024380, "nvidia-smi", None, None),
        ),
        (
            "NVRM: Xid (PCI:0018:01:00): 145, pid=8, name=ray::Worker, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x1 0x8)",
            (145, "0018:01:00", 8, "ray::Worker", 13, False),
        ),
        (
            "NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6)",
            (149, "0000:04:00", None, "", 8, True),
        ),
        (
            "NVRM: Xid (PCI:0008:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406)",
            (149, "0008:01:00", None, "", None, True),
        ),
        ("NVRM: Xid (PCI:00000000:3B:00.0): 31, pid=5", (31, "0000:3b:00", 5, "", None, None)),
    ],
)
def test_code_address_pid_name_link_and_severity_are_read(text, expected):
    found = read_xid(text)
    assert (found.code, found.key, found.pid, found.name, found.link, found.fatal) == expected


@pytest.mark.parametrize(
    "text", ["NVRM: Xid (invalid): some error", "NVRM: Xid (PCI:0000:05:00): abc", "NVRM: loading", ""]
)
def test_a_line_without_a_number_is_no_event(text):
    assert read_xid(text) is None
    assert read_sxid(text.replace("NVRM: Xid", "nvidia-nvswitch0: SXid")) is None


@pytest.mark.parametrize(
    ("code", "text", "cause", "status", "owner"),
    [
        (13, "pid=1, name=python, Graphics SM Warp Exception", "gpu.xid_application", "warn", "job owner"),
        (31, "pid=1, name=python, Ch 00000008", "gpu.xid_application", "warn", "job owner"),
        (43, "pid=1, name=python, Ch 00000008", "gpu.xid_application", "warn", "job owner"),
        (45, "pid=1, name=python, Ch 00000008", "gpu.xid_application", "warn", "job owner"),
        (48, "pid=1, name=python, DBE", "gpu.xid_memory", "fail", "vendor"),
        (54, "aux power", "gpu.xid_power_cable", "fail", "data centre"),
        (62, "PMU halt", "gpu.xid_reset", "fail", "cluster team"),
        (64, "Row remapping failure", "gpu.row_remap_failure", "fail", "vendor"),
        (74, "NVLink: fatal error detected on link 6(0x10000, 0x0)", "gpu.xid_nvlink", "fail", "vendor"),
        (79, "GPU has fallen off the bus.", "gpu.off_bus", "fail", "vendor"),
        (92, "High single-bit ECC error rate", "gpu.xid_wear", "warn", "vendor"),
        (94, "Contained: SM", "gpu.xid_contained", "warn", "cluster team"),
        (95, "Uncontained: LTC TAG", "gpu.xid_memory", "fail", "vendor"),
        (119, "Timeout after 6s", "gpu.xid_gsp", "fail", "cluster team"),
        (120, "GSP task exception", "gpu.xid_gsp", "fail", "cluster team"),
        (140, "ECC unrecovered", "gpu.xid_memory", "fail", "vendor"),
        (143, "GPU init error", "gpu.xid_reset", "fail", "cluster team"),
        (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x0)", "gpu.xid_nvlink", "fail", "vendor"),
        (145, "RLW_REMAP Nonfatal XC0 i0 Link 08 (0x0)", "gpu.xid_nvlink", "warn", "vendor"),
        (
            154,
            "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
            "gpu.recovery_action",
            "fail",
            "cluster team",
        ),
        (99999, "unknown error", "gpu.xid_unknown", "warn", "cluster team"),
        (13, "pid=1, name=python, error injected by a test", "gpu.xid_injected", "warn", "cluster team"),
    ],
)
def test_each_class_has_its_cause_status_and_owner(code, text, cause, status, owner):
    (found,) = look(kernel_log=LOG + xid(code, text)).symptoms[:1]
    assert (found.symptom.cause.code, found.status, found.symptom.cause.owner) == (cause, status, owner)
    part = found.symptom.part
    assert part.identity == GPU or (part.kind == "nvlink" and GPU in part.within)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"),
        (106, "SMBPBI Test"),
        (107, "x"),
    ],
)
def test_what_is_no_fault_is_silent(code, text):
    assert told(kernel_log=LOG + xid(code, text)) == []


@given(st.integers(1, 999_999))
def test_no_number_is_passed_over_in_silence(code):
    if meaning(code)[0] != "ignore" and code != 154:
        assert judge("gpu.xid", LOG + xid(code, "text"), now=0).status in ("warn", "fail")


def test_what_was_seen_once_is_said_so():
    (found,) = look(kernel_log=LOG + xid(31, "pid=7, name=python, Ch 00000008", hours=2)).symptoms
    assert found.symptom.evidence[0].endswith("), once:")


def test_a_flood_of_one_code_is_one_finding_with_its_number():
    log = LOG + "".join(xid(31, f"pid=7, name=python, Ch {number:08x}", hours=2) for number in range(5000))
    (found,) = look(kernel_log=log).symptoms
    assert "at least 502 times" in found.symptom.evidence[0]


def test_a_fatal_line_is_not_hidden_by_a_milder_one_of_the_same_link():
    mild = xid(145, "RLW_SRC_TRACK Nonfatal XC1 i0 Link 03 (0x0)")
    fatal = xid(149, "NETIR_LINK_EVT Fatal XC0 i0 Link 03 (0x0)")
    for log in (mild + fatal, fatal + mild):
        assert told(kernel_log=LOG + log) == [("gpu.xid_nvlink", f"nvlink {key(0)}/3", "fail")]


def test_hardware_takes_in_what_programs_suffered_from_it():
    log = (
        LOG
        + xid(48, "DBE")
        + xid(45, "pid=3, name=python, Ch 1")
        + xid(154, "changed from 0x0 (None) to 0x1 (GPU Reset Required)")
    )
    assert told(kernel_log=log) == [("gpu.xid_memory", GPU, "fail")]


def test_many_programs_on_one_gpu_and_not_on_its_siblings_point_to_the_gpu():
    log = LOG + "".join(xid(13, f"pid={pid}, name=python, x") for pid in range(100, 106))
    assert told(kernel_log=log) == [("gpu.xid_repeated", GPU, "warn")]
    everywhere = log + "".join(
        xid(13, f"pid={pid}, name=python, x", address=f"PCI:{key(1)}") for pid in range(200, 206)
    )
    assert {code for code, _, _ in told(kernel_log=everywhere)} == {"gpu.xid_application"}


def test_old_lines_heal_after_the_quiet_hours():
    assert told(kernel_log=LOG + xid(119, "Timeout", hours=23)) != []
    assert told(kernel_log=LOG + xid(119, "Timeout", hours=25)) == []


def test_the_driver_and_the_log_ask_for_one_recovery():
    log = LOG + xid(154, "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)")
    changed = smi({0: [("gpu_recovery_action", "Drain and Reset")]})
    assert told(kernel_log=log, nvidia_smi=changed) == [("gpu.recovery_action", GPU, "fail")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20034, Fatal, Link 30 LTSSM Fault Up", [("nvswitch.fatal", "nvswitch 0000:06:00", "fail")]),
        (
            "12028, Non-fatal, Link 32 egress non-posted PRIV error",
            [("nvswitch.nonfatal", "nvswitch 0000:06:00", "warn")],
        ),
        ("22013, Non-fatal, Link 57 Minion Link DLREQ interrupt", []),
        ("22013, Fatal, Link 57 Minion Link DLREQ interrupt", [("nvswitch.fatal", "nvswitch 0000:06:00", "fail")]),
        ("99999, Some error", [("nvswitch.nonfatal", "nvswitch 0000:06:00", "warn")]),
        ("xyz, Fatal error", []),
    ],
)
def test_sxids_by_severity(text, expected):
    assert told(kernel_log=LOG + line(1, f"nvidia-nvswitch1: SXid (PCI:0000:06:00.0): {text}")) == expected


def test_data_lines_of_an_sxid_are_not_events_of_their_own():
    head = "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, "
    log = LOG + line(1, head + "Fatal, Link 30 LTSSM Fault Up") + line(1, head + "Data {0x50610002, 0x10100030}")
    (found,) = [each.symptom for each in look(kernel_log=log).symptoms]
    assert "LTSSM" in found.evidence[-1]


def test_every_code_of_the_table_has_words():
    assert all(0 < code < 1000 and words for code, (_, words) in MEANINGS.items())


def test_the_death_of_a_job_on_all_gpus_is_taken_in_by_the_gpu_that_broke():
    log = LOG + xid(48, "DBE", hours=1.0)
    log += "".join(
        xid(45, f"pid={pid}, name=python, Ch 1", address=f"PCI:{key(pid)}", hours=0.99) for pid in range(1, 8)
    )
    assert told(kernel_log=log) == [("gpu.xid_memory", GPU, "fail")]
    late = log + xid(31, "pid=99, name=other, x", address=f"PCI:{key(5)}", hours=0.2)
    assert ("gpu.xid_application", f"gpu {key(5)}", "warn") in told(kernel_log=late)


def test_the_death_of_a_job_by_its_own_error_is_one_finding_of_the_gpu_that_erred():
    log = LOG + xid(45, "pid=3, name=python, Ch 1", address=f"PCI:{key(1)}", hours=1.001)
    log += xid(31, "pid=2, name=python, Ch 1", address=f"PCI:{key(2)}", hours=1.0)
    log += xid(45, "pid=4, name=python, Ch 1", address=f"PCI:{key(3)}", hours=0.999)
    assert told(kernel_log=log) == [("gpu.xid_application", f"gpu {key(2)}", "warn")]


def test_a_programs_error_is_of_no_interest_after_some_hours():
    assert told(kernel_log=LOG + xid(31, "pid=2, name=python, Ch 1", hours=5)) != []
    assert told(kernel_log=LOG + xid(31, "pid=2, name=python, Ch 1", hours=7)) == []


def test_an_xid_63_of_a_gpu_without_remapped_rows_is_a_warning():
    log = LOG + xid(63, "Row Remapper: New row (0x1) marked for remapping, reset gpu to activate.")
    assert told(kernel_log=log) == [("gpu.xid_remap", GPU, "warn")]


def test_a_fall_without_an_xid_takes_in_the_death_of_the_job_too():
    log = LOG + line(1, "NVRM: GPU 0000:19:00.0: GPU has fallen off the bus.")
    log += "".join(
        xid(45, f"pid={pid}, name=python, Ch 1", address=f"PCI:{key(pid)}", hours=0.99) for pid in range(1, 8)
    )
    assert told(kernel_log=log) == [("gpu.off_bus", GPU, "fail")]


def test_errors_on_several_links_of_one_gpu_are_one_finding():
    log = LOG + "".join(xid(149, f"NETIR_LINK_EVT Fatal XC0 i0 Link {link:02d} (0x0)") for link in (13, 14, 2))
    assert told(kernel_log=log) == [("gpu.xid_nvlink", f"nvlink {key(0)}/13", "fail")]
