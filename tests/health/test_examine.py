"""What becomes of outputs that are there, cut, hung, garbled or absent."""

import pytest

from wholestack.health.catalog import chosen
from wholestack.health.check import Cause, Check, Expectation, Symptom, Trait
from wholestack.health.checks.file_systems import CHECKS
from wholestack.health.diagnosis import diagnose
from wholestack.health.examine import examine
from wholestack.health.parts import pci_key
from wholestack.health.probe import Format, Probe
from wholestack.health.telemetry import EXPECTED
from wholestack.remote.batch import Command, Output

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


# Traits that a profile expects


def state(**given):
    """A host whose two GPU checks read a count and an inventory."""
    plain = {"moment": MOMENT} | given
    made = {name: each if isinstance(each, Output) else Output(name=name, stdout=each) for name, each in plain.items()}
    return examine(made, TRAITS, now=5.0, expectation=Expectation(traits={"x.count": 8, "x.slot.b": "yes"}))


COUNTED = Probe(
    command=Command(name="counted", shell="counter"),
    formats=(Format(name="a number", matches=lambda _: True, read=int),),
)
LISTED = Probe(
    command=Command(name="listed", shell="lister"),
    formats=(Format(name="words", matches=lambda _: True, read=str.split),),
)
DIFFERS = Cause(code="x.differs", says="differs", owner="vendor", remedy="look")
TRAITS = (
    Check(
        name="x.count", about="", probes=(COUNTED, LISTED), parts=("host",), causes=(DIFFERS,),
        judge=lambda seen: [Symptom(cause=DIFFERS, evidence=("none",))] if seen.maybe(COUNTED) == 0 else [],
        traits=lambda seen: [Trait(name="x.count", value=n, differs=DIFFERS) for n in [seen.maybe(COUNTED)] if n],
        trait_names=("x.count",),
    ),
    Check(
        name="x.slots", about="", probes=(LISTED,), parts=("host",), causes=(DIFFERS,),
        traits=lambda seen: [Trait(name=f"x.slot.{n}", value="yes", differs=DIFFERS) for n in seen.of(LISTED)],
        trait_names=("x.slot.*",),
    ),
)  # fmt: skip
GONE = {name: Output(name=name, exit_status=127) for name in ("counted", "listed")}
HUNG = Output(name="counted", exit_status=None, ending="hung")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"counted": b"8", "listed": b"a b"}, []),
        (
            {"counted": b"8", "listed": b"a"},
            [("x.slots", "fail", "x.slot.b expected yes, not there: x.slots saw none")],
        ),
        ({"counted": b"0", "listed": b"b"}, [("x.count", "fail", "none")]),
        ({"counted": HUNG, "listed": b"b"}, [("x.count", "unknown", "x.count expected 8, could not be read: ")]),
        ({"counted": b"8", "listed": b""}, [("telemetry.listed", "unknown", "lister: ")]),
        ({"counted": b"8", "listed": GONE["listed"]}, [("x.slots", "fail", "lister is not installed")]),
        ({"listed": b"b"}, []),  # a saved output: nobody asked for the count
    ],
)
def test_a_trait_that_no_check_showed_is_no_match(given, wanted):
    found = state(**given).symptoms
    assert [(each.check, each.status) for each in found] == [(check, status) for check, status, _ in wanted]
    for each, (_, _, says) in zip(found, wanted, strict=True):
        assert says in each.symptom.evidence[0]


def test_where_none_is_expected_none_is_right_and_checks_not_put_do_not_count():
    given = {"moment": Output(name="moment", stdout=MOMENT)} | GONE
    none = Expectation(traits={"x.count": 0})
    assert examine(given, TRAITS, now=5.0, expectation=none).symptoms == ()
    other = Expectation(traits={"x.count": 8, "y.count": 3})
    assert examine(given, TRAITS[1:], now=5.0, expectation=other).symptoms == ()


def test_gpus_that_a_profile_expects_and_nothing_shows_are_a_fail():
    given = outputs(**{name: Output(name=name, exit_status=127) for name in ("nvidia_smi", "pci", "kernel_log")})
    given["pci"] = Output(name="pci", stdout=b"0000:00:00.0 Host bridge [0600]: Intel Corporation X [8086:1234]\n")
    expected = Expectation(traits={"gpu.count": 8, "gpu.name": "H100"})
    found = diagnose(examine(given, chosen(["gpu"]), now=5.0, expectation=expected).symptoms)
    (only,) = [each for each in found if each.status == "fail"]
    assert only.symptom.cause == EXPECTED
    assert "gpu.count expected 8, not there: nvidia-smi is not installed" in only.symptom.evidence


def test_a_profile_moves_a_limit():
    assert put(outputs(), expectation=Expectation(limits={"filesystem.full_share": 1.0})).symptoms[0].status == "warn"


@pytest.mark.parametrize("spelling", ["00000000:9B:00.0", "PCI:0000:9b:00", "9b:00.0", "0000:9b:00"])
def test_a_pci_address_has_one_spelling(spelling):
    assert pci_key(spelling) == "0000:9b:00"
    assert pci_key("0000:9b:00.1") == "0000:9b:00.1"
