"""Memory: the module is named."""

import pytest

from tests.health.looking import before, look, moment, recorded, said
from wholestack.health.check import Counter
from wholestack.health.checks.memory import CHECKS
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
