"""Readers of nvidia-smi: real layouts are read, cut, garbled and hostile ones are not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.health.gpu_host import OURS, block, document, key, outputs, smi
from wholestack.health.checks.nvidia import NVIDIA_SMI
from wholestack.health.diagnosis import diagnose
from wholestack.health.examine import examine
from wholestack.health.formats.nvidia_query import read_csv
from wholestack.health.formats.nvidia_smi import kind_of, read_message, read_xml, reading
from wholestack.health.probe import UnreadableError

CSV = (
    "index, name, pci.bus_id, temperature.gpu, power.draw [W], ecc.errors.uncorrected.volatile.total, "
    "pcie.link.width.current, pcie.link.width.max, clocks_throttle_reasons.active, driver_version\n"
    "0, NVIDIA H100 80GB HBM3, 00000000:19:00.0, 29, 68.57 W, 0, 16, 16, 0x0000000000000001, 580.105.08\n"
    "1, NVIDIA H100 80GB HBM3, 00000000:3B:00.0, 31, 70.00 W, 2, 8, 16, 0x0000000000000040, 580.105.08\n"
)


def test_a_document_is_read_with_its_gpus_driver_and_labels():
    found = read_xml(smi())
    assert [gpu.key for gpu in found.gpus] == [key(index) for index in range(8)]
    assert (found.attached, found.driver, found.cuda, found.miscount) == (8, "580.105.08", "13.0", "")
    assert str(found.gpus[3].part) == f"gpu {key(3)} (index 3, module 3, serial 165000000003)"
    assert not any("supported_graphics_clock" in path for path in found.gpus[0].fields)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("N/A", "unsupported"),
        ("[N/A]", "unsupported"),
        ("[Not Supported]", "unsupported"),
        ("Requested functionality has been deprecated", "unsupported"),
        ("GPU is lost", "lost"),
        ("[GPU is lost]", "lost"),
        ("ERR!", "broken"),
        ("[Unknown Error]", "broken"),
        ("Unknown Error", "broken"),
        ("", "broken"),
        ("[]", "broken"),
        ("29 C", "number"),
        ("-3 C", "number"),
        ("16x", "number"),
        ("2560 bank(s)", "number"),
        ("68.57 W", "number"),
        ("0", "number"),
        ("578 KB/s", "number"),
        ("Yes", "word"),
        ("Not Active", "word"),
        ("1" * 40, "word"),
        ("Insufficient Permissions", "broken"),
    ],
)
def test_every_text_has_a_kind(text, kind):
    assert kind_of(text) == kind


def test_a_parent_that_holds_one_text_speaks_for_all_below():
    gpu = read_xml(smi({0: [(r"<remapped_rows>.*</remapped_rows>", "<remapped_rows>N/A</remapped_rows>")]})).gpus[0]
    assert reading(gpu, "remapped_rows/row_remapper_histogram/row_remapper_histogram_none").kind == "unsupported"


@pytest.mark.parametrize(
    "text",
    [
        smi()[: len(smi()) // 2],
        smi()[:-20],
        smi().replace("<ecc_mode>", "<ecc_mode", 1),
        smi().replace("nvidia_smi_log SYSTEM", 'nvidia_smi_log [<!ENTITY a "b">] SYSTEM'),
        '<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + smi(),
        smi().replace("<product_brand>NVIDIA", "<product_brand>&lol;", 1),
        smi().replace("00000000:19:00.0", "nowhere"),
    ],
)
def test_a_document_that_is_cut_not_well_formed_or_declares_entities_is_refused(text):
    with pytest.raises(UnreadableError):
        NVIDIA_SMI.read_text(text)


def test_a_document_joined_from_two_halves_is_not_ok():
    halves = document([block(0)[:2000] + block(1)[2000:], block(2)], attached=3)
    try:
        found = read_xml(halves)
    except UnreadableError:
        return
    assert found.miscount or found.contradictions


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("Unable to determine the device handle for GPU0000:B3:00.0: Unknown Error", "0000:b3:00"),
        ("Unable to determine the device handle for GPU 0000:5F:00.0: GPU is lost.  Reboot the system", "0000:5f:00"),
        ("Unable to determine the device handle for GPU3: 0000:5F:00.0: Unknown Error", "0000:5f:00"),
        ("Unable to determine the device handle for GPU2: Unknown Error", "index 2"),
        ("Unable to determine the device handle for gpu 0000:01:00.0: Not Found", "0000:01:00"),
    ],
)
def test_the_handle_that_could_not_be_had_names_its_gpu(text, lost):
    assert [each.key for each in read_message(text).lost] == [lost]


def test_a_query_is_read_with_units_and_bit_masks():
    found = read_csv(CSV)
    assert [gpu.key for gpu in found.gpus] == [key(0), key(1)]
    assert reading(found.gpus[1], "clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown").text == "Active"
    assert reading(found.gpus[0], "clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown").text == "Not Active"
    assert found.driver == "580.105.08"


def judged(text):
    examination = examine(outputs(nvidia_smi=text, nvlink_status="", nvlink_errors="", pci=""), OURS, now=0.0)
    return examination, [(each.symptom.cause.code, each.symptom.part.key) for each in diagnose(examination.symptoms)]


def test_a_query_is_judged_as_far_as_it_tells():
    examination, found = judged(CSV)
    assert ("gpu.ecc_uncorrected", key(1)) in found
    assert ("gpu.throttle_thermal", key(1)) in found
    assert ("gpu.pcie_width", key(1)) in found
    assert not any(part == key(0) for _, part in found)
    assert "gpu.row_remap" not in examination.passed


@pytest.mark.parametrize("text", ["[GPU is lost]", "[Unknown Error]"])
def test_a_query_with_a_lost_or_silent_gpu_is_not_ok(text):
    _, found = judged(
        CSV.replace(
            "1, NVIDIA H100 80GB HBM3, 00000000:3B:00.0, 31", f"1, NVIDIA H100 80GB HBM3, 00000000:3B:00.0, {text}"
        )
    )
    assert found
    assert ("gpu.off_bus" in {code for code, part in found if part == key(1)}) == ("lost" in text)


def test_a_row_of_another_length_is_refused():
    with pytest.raises(UnreadableError):
        read_csv(CSV + "2, NVIDIA\n")


METRICS = """# HELP nvidia_smi_temperature_gpu temperature.gpu
# TYPE nvidia_smi_temperature_gpu gauge
nvidia_smi_command_exit_code 0
nvidia_smi_last_collect_success 1
nvidia_smi_gpu_info{uuid="u0",name="NVIDIA H100 80GB HBM3",pci_bus_id="00000000:19:00.0",serial="1"} 1
nvidia_smi_temperature_gpu{uuid="u0"} 41
nvidia_smi_temperature_gpu_tlimit{uuid="u0"} 46
nvidia_smi_remapped_rows_pending{uuid="u0"} 1
nvidia_smi_remapped_rows_failure{uuid="u0"} 0
nvidia_smi_ecc_errors_uncorrected_volatile_total{uuid="u0"} 0
nvidia_smi_ecc_mode_current{uuid="u0"} 1
nvidia_smi_memory_used_bytes{uuid="u0"} 1.048576e+06
nvidia_smi_utilization_gpu_ratio{uuid="u0"} 0.5
"""


def test_metrics_are_brought_to_the_same_paths():
    _, found = judged(METRICS)
    assert ("gpu.row_remap_pending", key(0)) in found
    gpu = NVIDIA_SMI.read_text(METRICS).gpus[0]
    assert reading(gpu, "fb_memory_usage/used").text == "1 MiB"
    assert reading(gpu, "utilization/gpu_util").text == "50 %"


@pytest.mark.parametrize("line", ["nvidia_smi_command_exit_code 9", "nvidia_smi_last_collect_success 0"])
def test_metrics_of_a_failed_collection_are_refused(line):
    name = line.split()[0]
    text = "\n".join(line if each.startswith(name + " ") else each for each in METRICS.splitlines())
    with pytest.raises(UnreadableError):
        NVIDIA_SMI.read_text(text)


@settings(max_examples=150)
@given(st.data())
def test_no_mutation_of_a_document_crashes_or_passes_for_more_gpus(data):
    text = document([block(0), block(1)])
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 400)))
    changed = text[:begin] + data.draw(st.text(max_size=20)) + text[end:]
    examination, _ = judged(changed)
    assert len(examination.passed) + len(examination.skipped) + len(examination.symptoms) > 0


@settings(max_examples=100)
@given(st.text(max_size=300))
def test_any_text_is_unknown_or_not_there(text):
    examination, _ = judged(text)
    assert not {name for name in examination.passed if name.startswith("gpu.")} - {
        "gpu.xid",
        "gpu.sxid",
        "gpu.peer_memory",
    }
