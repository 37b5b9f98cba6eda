"""Memory: the module is named."""

import pytest

from tests.health.looking import before, judged_file, look, moment, recorded, said
from tests.health.shared_data import shared
from wholestack.health.check import Counter, Expectation
from wholestack.health.checks.memory import CHECKS, nominal_gib
from wholestack.remote.batch import Output

EDAC = CHECKS[0]
LABEL = "dimm CPU_SrcID#0_MC#0_Chan#0_DIMM#0"


def test_uncorrected_and_many_corrected_errors_name_their_module_and_its_place():
    found = look([EDAC], edac=recorded("edac", "errors.txt"))
    assert said(found) == [
        ("warn", "memory.corrected", LABEL),
        ("fail", "memory.uncorrected", "dimm CPU_SrcID#0_MC#1_Chan#0_DIMM#0"),
    ]
    assert found.symptoms[0].symptom.part.label == "mc0/dimm0 channel 0 slot 0"


def test_a_few_corrected_errors_pass():
    assert look([EDAC], edac=recorded("edac", "healthy.txt")).passed == ("memory.edac",)


def test_corrected_errors_are_judged_by_their_rate():
    text = (
        recorded("edac", "errors.txt").replace("mc1/ue_count:1", "mc1/ue_count:0").replace("ue_count:1", "ue_count:0")
    )
    quiet = before(Counter(name="memory.corrected", value=52_010, part=LABEL))
    loud = before(Counter(name="memory.corrected", value=51_000, part=LABEL))
    assert said(look([EDAC], edac=text, before=quiet)) == []
    assert said(look([EDAC], edac=text, before=loud)) == [("warn", "memory.corrected", LABEL)]
    assert said(look([EDAC], edac=text, moment=moment(uptime_s=3600 * 100_000))) == []


def test_the_mean_since_boot_has_a_lower_limit_than_the_rate_since_the_last_look():
    text = recorded("edac", "healthy.txt").replace("ce_count:3", "ce_count:30")
    assert said(look([EDAC], edac=text, moment=moment(uptime_s=36_000))) == [("warn", "memory.corrected", LABEL)]
    last = before(Counter(name="memory.corrected", value=5, part=LABEL), hours=5)
    assert said(look([EDAC], edac=text, moment=moment(uptime_s=36_000), before=last)) == []


def test_a_controller_without_modules_is_told_by_row():
    assert said(look([EDAC], edac=recorded("edac", "rows_only.txt"))) == [
        ("fail", "memory.uncorrected", "dimm mc0/csrow1")
    ]


def test_errors_that_no_module_counted_blame_the_controller():
    text = recorded("edac", "healthy.txt").replace("mc0/ue_count:0", "mc0/ue_count:2")
    assert said(look([EDAC], edac=text)) == [("fail", "memory.uncorrected", "dimm mc0")]


@pytest.mark.parametrize("value", ["foo", "-1", ""])
def test_a_count_that_is_no_number_is_unknown(value):
    text = recorded("edac", "healthy.txt").replace("dimm_ue_count:0", f"dimm_ue_count:{value}", 1)
    assert said(look([EDAC], edac=text))[0][0] == "unknown"


def test_modules_with_one_label_stay_apart():
    text = recorded("edac", "errors.txt").replace("MC#1", "MC#0")
    assert len(said(look([EDAC], edac=text))) == 2


def test_a_kernel_without_counters_is_skipped():
    nothing = Output(name="edac", exit_status=2, stderr=b"sh: 1: cd: can't cd to /sys/devices/system/edac/mc\n")
    assert look([EDAC], edac=nothing).skipped[0].check == "memory.edac"


MEMINFO, DMI = recorded("memory", "meminfo.txt"), recorded("memory", "dmidecode.txt")


def test_size_is_rounded_so_that_kernels_agree_and_modules_do_not():
    for plugged in (24, 192, 512, 1024, 2048):
        for kept in (1 / 64, 1 / 55, 1 / 70):
            assert nominal_gib(int(plugged * (1 - kept) * 2**20)) == plugged
        smaller = int(plugged * (31 / 32) * (63 / 64) * 2**20)
        assert nominal_gib(smaller) < plugged or plugged == 24


def test_memory_that_is_plugged_in_and_not_usable_is_found():
    assert look(CHECKS, meminfo=MEMINFO, dmi_memory=DMI).passed == ("memory.size", "memory.dimms")
    half = MEMINFO.replace("198180864", "131180864")
    assert said(look(CHECKS, meminfo=half, dmi_memory=DMI)) == [("fail", "memory.less", "memory")]
    assert look(CHECKS[1:2], meminfo=half, dmi_memory=Output(name="dmi_memory", exit_status=127)).passed == (
        "memory.size",
    )


def test_each_slot_is_compared_so_that_a_missing_module_is_named_and_told_once():
    full = look(CHECKS, meminfo=MEMINFO, dmi_memory=DMI)
    expected = {trait.name: trait.value for trait in full.traits}
    assert expected["memory.modules"] == 3
    assert expected["memory.slot.b2"] == "empty"
    profile = Expectation(traits=expected)
    before_a2, a2, after = DMI.partition("Locator: A2")
    gone = "No Module Installed".join(before_a2.rsplit("64 GB", 1)) + a2 + after
    less = MEMINFO.replace("198180864", str(198180864 * 2 // 3))
    found = look(CHECKS, meminfo=less, dmi_memory=gone, profile=profile)
    assert said(found) == [("fail", "memory.dimm_missing", "dimm A2")]


def test_without_root_the_size_alone_is_compared():
    profile = Expectation(traits={"memory.size_gib": 192})
    assert look(CHECKS[1:2], meminfo=MEMINFO, profile=profile).passed == ("memory.size",)
    assert said(look(CHECKS[1:2], meminfo=MEMINFO.replace("19818", "13218"), profile=profile)) == [
        ("fail", "memory.less", "memory")
    ]


def test_one_slow_module_and_one_of_another_size_are_named():
    slow = DMI.replace("Configured Memory Speed: 4400", "Configured Memory Speed: 3200", 1)
    assert said(look([CHECKS[2]], dmi_memory=slow)) == [("warn", "memory.slow", "dimm A1")]
    all_slow = DMI.replace("Configured Memory Speed: 4400", "Configured Memory Speed: 2000")
    assert len(said(look([CHECKS[2]], dmi_memory=all_slow))) == 3
    mixed = look([CHECKS[2]], dmi_memory=DMI.replace("Size: 64 GB", "Size: 32 GB", 1))
    assert said(mixed) == [("warn", "memory.mixed", "memory")]
    assert any("A1: 32 GB" in line for line in mixed.symptoms[0].symptom.evidence)


def test_a_module_whose_size_the_firmware_does_not_know_is_unknown():
    found = look([CHECKS[2]], dmi_memory=DMI.replace("Size: 64 GB", "Size: Unknown", 1))
    assert said(found) == [("unknown", "telemetry.field", "dimm A1")]
    assert {trait.name: trait.value for trait in found.traits}["memory.slot.a1"] == "unknown"


def test_a_cut_table_is_unknown_and_a_machine_without_tables_is_skipped():
    assert said(look([CHECKS[2]], dmi_memory=DMI[: DMI.rindex("Locator: B2")]))[0][0] == "unknown"
    none = Output(
        name="dmi_memory", exit_status=1, stdout=b"# dmidecode 3.4\n", stderr=b"/dev/mem: No such file or directory\n"
    )
    assert look([CHECKS[2]], dmi_memory=none).skipped


def test_the_shared_table_of_a_virtual_machine_is_an_inventory():
    found = judged_file(CHECKS[2], shared("jc", "ubuntu-18.04_dmidecode.out").read_text())
    assert found.passed == ("memory.dimms",)
    traits = {trait.name: trait.value for trait in found.traits}
    assert traits["memory.modules"] == 1
    assert traits["memory.slot.ram_slot_0"] == "2 GiB"


def test_memtotal_must_be_a_number():
    assert said(look([CHECKS[1]], meminfo=MEMINFO.replace("198180864", "ERR")))[0][0] == "unknown"
