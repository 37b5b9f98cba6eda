"""A check is a plug-in: whatever one raises, or says without having declared it, costs its own verdict and no more."""

import csv
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tests.health import fleets
from tests.health.fleets import Answers, df
from tests.health.looking import look
from wholestack.errors import InputError
from wholestack.health import catalog
from wholestack.health.check import Cause, Check, Counter, Identity, Measure, Symptom, Trait
from wholestack.health.checks.gpu_inventory import CHECKS as GPU_INVENTORY
from wholestack.health.examine import examine
from wholestack.health.judging import judge
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe
from wholestack.health.profile import learn, read_profile
from wholestack.health.result import result_of
from wholestack.remote.batch import Command, Output, Reply
from wholestack.remote.host import Host

PROBE = Probe(command=Command(name="one", shell="one"), formats=(Format(name="one", matches=lambda _: True, read=str),))
OTHER = Probe(
    command=Command(name="other", shell="other"), formats=(Format(name="other", matches=lambda _: True, read=str),)
)
BAD = Cause(code="one.bad", says="it is bad", owner="vendor", remedy="replace it and look at it again")
STRANGE = replace(BAD, code="one.strange")
QUESTIONS = ("judge", "traits", "measures", "counters")
ERRORS = (
    StopIteration("x"), AssertionError(), csv.Error("field larger than field limit (131072)"), re.error("x"),
    ElementTree.ParseError("no element found"), RuntimeError("x"), OSError(5, "x"), MemoryError(), EOFError(),
    KeyError("x"), UnicodeError("x"), NotImplementedError("x"),
)  # fmt: skip


def check(**given):
    plain = {"name": "one.state", "about": "it", "probes": (PROBE,), "parts": ("host",), "causes": (BAD,)}
    return Check(**(plain | given))


SOUND = check(name="other.state", probes=(OTHER,), judge=lambda seen: [seen.of(OTHER)][1:])


def put(wrong):
    """That check and a sound one on the same host."""
    return look((wrong, SOUND), one="text", other="text")


def unknown(found):
    """Evidence of what is unknown."""
    return [line for each in found.symptoms if each.status == "unknown" for line in each.symptom.evidence]


def raising(error):
    def fails(_):
        raise error

    return fails


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("question", QUESTIONS)
def test_whatever_a_check_raises_makes_it_unknown_by_name_and_leaves_the_others(error, question):
    found = put(check(**{question: raising(error)}))
    assert found.passed == ("other.state",)
    assert "one.state: " in unknown(found)[0]
    assert type(error).__name__ in unknown(found)[0]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("function", ["matches", "read", "absent", "failure"])
def test_whatever_a_probe_raises_makes_the_checks_that_read_it_unknown(error, function):
    form = Format(name="one", matches=lambda _: True, read=str)
    failing = {function: raising(error)}
    if function in ("matches", "read"):
        probe = replace(PROBE, formats=(replace(form, **failing),))
    else:
        probe = replace(PROBE, **failing)
    found = put(check(probes=(probe,), judge=lambda seen: [seen.of(probe)][1:]))
    assert found.passed == ("other.state",)
    assert type(error).__name__ in unknown(found)[0]
    assert "not judged: one.state" in unknown(found)[1]


@pytest.mark.parametrize("name", [each.name for each in GPU_INVENTORY])
def test_a_field_longer_than_the_csv_module_takes_is_unknown(name):
    said = "index, driver_version\n0, " + "x" * (csv.field_size_limit() + 1) + "\n"
    found = judge(name, said, now=0.0)
    assert found.status == "unknown"
    assert "csv.Error: field larger than field limit" in found.findings[0].evidence[0]


def test_a_sweep_with_a_host_whose_output_trips_a_reader_has_a_result_for_every_host(tmp_path, monkeypatch):
    reader = catalog.named("filesystem.bytes").probes[0].formats[0]

    def trips(text):
        if "99%" in text:
            raise csv.Error("field larger than field limit (131072)")
        return reader.read(text)

    probe = replace(catalog.named("filesystem.bytes").probes[0], formats=(replace(reader, read=trips),))
    wrong = check(name="wrong.state", probes=(probe,), judge=lambda seen: [seen.of(probe)][1:])
    monkeypatch.setattr(catalog, "CHECKS", (wrong, *catalog.CHECKS))
    names = [f"gpu00{n}" for n in range(6)]
    told = {"gpu003": {"df": Output(name="df", stdout=df(99))}}
    swept = fleets.run(tmp_path / "s", names, Answers(told), checks=(wrong, catalog.named("filesystem.inodes")))
    statuses = {each.host: each.status for each in swept.verdicts}
    assert statuses == {name: "unknown" if name == "gpu003" else "ok" for name in names}
    assert "csv.Error" in swept.verdicts[3].findings[0].evidence[0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"judge": lambda _: [Symptom(cause=STRANGE, evidence=("line",))]}, "cause 'one.strange'"),
        ({"judge": lambda _: [Symptom(cause=BAD, part=Part(kind="gpu"), evidence=("line",))]}, "part 'gpu'"),
        ({"traits": lambda _: [Trait(name="one.count", value=8, differs=BAD)]}, "trait 'one.count'"),
        (
            {"trait_names": ("one.*",), "traits": lambda _: [Trait(name="one.count", value=8, differs=STRANGE)]},
            "cause 'one.strange'",
        ),
        (
            {"trait_names": ("one.*",), "traits": lambda _: [Trait(name="one.count", value=(8,), differs=BAD)]},
            "must be a text or number",
        ),
        ({"measures": lambda _: [Measure(name="one.heat_c", value=8, outlies=STRANGE)]}, "cause 'one.strange'"),
        ({"measures": lambda _: [Measure(name="one.heat_c", value="8", outlies=BAD)]}, "must be a number"),
        ({"counters": lambda _: [Counter(name="one.errors", value=1.5)]}, "must be a whole number"),
        ({"judge": lambda _: ["line"]}, "must give symptoms"),
        ({"judge": lambda _: None}, "TypeError"),
        ({"judge": lambda _: [Symptom(cause=BAD, evidence="line")]}, "must be a tuple of texts"),
        ({"judge": lambda _: [Symptom(cause=BAD, evidence=(8,))]}, "must be a tuple of texts"),
    ],
)
def test_what_a_check_says_and_has_not_declared_is_refused_by_name(given, says):
    found = put(check(**given))
    assert found.passed == ("other.state",)
    assert any(line.count("one.state: ") and says in line for line in unknown(found)), unknown(found)
    assert found.traits == found.measures == ()


def test_a_failing_part_that_is_not_declared_still_fails():
    found = put(check(judge=lambda _: [Symptom(cause=BAD, part=Part(kind="gpu"), evidence=("line",))]))
    assert {each.status for each in found.symptoms} == {"fail", "unknown"}


def test_a_profile_that_was_learnt_is_one_that_a_sweep_takes():
    traits = [Trait(name="one.count", value=8, differs=BAD), Trait(name="one.other", value=8, differs=BAD)]
    wrong = check(trait_names=("one.count",), traits=lambda _: traits)
    reply = Reply(host=Host(name="a"), outputs={})
    text = learn([result_of(reply, put(wrong), ("one.state", "other.state"), now=0.0)])
    profile = read_profile(text, checks=(wrong, SOUND))
    assert next(iter(profile.kinds.values())).traits == {"one.count": 8}
    with pytest.raises(InputError, match=r"one\.other"):
        read_profile(text.replace("one.count", "one.other"), checks=(wrong, SOUND))


def test_an_identity_that_is_not_as_declared_is_left_out_and_told():
    def identities(_):
        yield Identity(part=Part(kind="gpu", key="1"), serial="16")
        yield Identity(part=Part(kind="gpu", key="2"), serial=17)
        yield Identity(part=Part(kind="psu", key="3"), serial="18")

    check = Check(
        name="one.check", about="a check", probes=(PROBE,), parts=("gpu",), causes=(BAD,), identities=identities
    )
    found = examine({"one": Output(name="one", stdout=b"x")}, (check,), now=0.0)
    assert [each.serial for each in found.identities] == ["16"]
    (told,) = found.symptoms
    assert told.symptom.evidence == (
        "one.check: identity's serial is 17, must be a text",
        "one.check: part 'psu' is not among its parts",
    )
