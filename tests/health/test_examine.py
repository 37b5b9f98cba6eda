"""What becomes of outputs that are there, cut, hung, garbled or absent."""

import pytest

from wholestack.health.check import Expectation
from wholestack.health.checks.file_systems import CHECKS
from wholestack.health.examine import examine
from wholestack.health.parts import pci_key
from wholestack.remote.batch import Output

DF = (
    b"Filesystem 1024-blocks Used Available Capacity Mounted on\n"
    b"/dev/sda1 100 50 50 50% /\n/dev/sdb1 100 99 1 99% /data disk\n"
)
MOMENT = b"now=1000\nboot_id=b\nuptime=7200.0 1.0\nkernel=6.1\nhostname=h\nuid=0\n"


def outputs(**changed):
    plain = {"df": DF, "df_inodes": DF.replace(b"99%", b"9%"), "moment": MOMENT}
    return {name: Output(name=name, stdout=text) for name, text in plain.items()} | changed


def put(given, **kwargs):
    return examine(given, CHECKS, now=5.0, **kwargs)


def test_a_full_file_system_is_named_with_its_line_and_the_other_check_passes():
    found = put(outputs())
    (only,) = found.symptoms
    assert only.symptom.part.key == "/data disk"
    assert "99%" in only.symptom.evidence[0]
    assert found.passed == ("filesystem.inodes",)
    assert found.at == 1000


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ending": "timed_out", "exit_status": None}, "did not answer"),
        ({"ending": "needs_root", "exit_status": None}, "needs root"),
        ({"truncated": True}, "not understood"),
        ({"stdout": b""}, "not understood"),
        ({"stdout": b"\xff\xfe\x00garbage"}, "not understood"),
        ({"exit_status": 1}, "not understood"),
    ],
)
def test_what_could_not_be_read_is_unknown_once_and_named_and_costs_only_its_own_checks(changes, words):
    broken = Output(**({"name": "df", "stdout": DF} | changes))
    found = put(outputs(df=broken))
    (only,) = found.symptoms
    assert only.status == "unknown"
    assert words in only.symptom.cause.says
    assert only.symptom.part.key == "df"
    assert "filesystem.bytes" in only.symptom.evidence[1]
    assert found.passed == ("filesystem.inodes",)


def test_a_missing_tool_is_skipped_unless_the_profile_expects_it():
    absent = outputs(df=Output(name="df", exit_status=127))
    assert [each.check for each in put(absent).skipped] == ["filesystem.bytes"]
    found = put(absent, expectation=Expectation(checks=("filesystem.bytes",)))
    assert [(each.check, each.status) for each in found.symptoms] == [("filesystem.bytes", "fail")]


def test_a_profile_moves_a_limit():
    assert put(outputs(), expectation=Expectation(limits={"filesystem.full_share": 1.0})).symptoms[0].status == "warn"


@pytest.mark.parametrize("spelling", ["00000000:9B:00.0", "PCI:0000:9b:00", "9b:00.0", "0000:9b:00"])
def test_a_pci_address_has_one_spelling(spelling):
    assert pci_key(spelling) == "0000:9b:00"
    assert pci_key("0000:9b:00.1") == "0000:9b:00.1"
