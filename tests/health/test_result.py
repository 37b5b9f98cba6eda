"""What is kept of a host is small, clean and enough to go on with."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import RecordError
from wholestack.finding import Skipped
from wholestack.health import connection
from wholestack.health.check import Before, Cause, Counter, Identity, Measure, Symptom, Trait
from wholestack.health.diagnosis import MOST_SYMPTOMS, CheckSymptom
from wholestack.health.examine import Examination
from wholestack.health.parts import HOST, Part
from wholestack.health.result import HostResult, result_of, silent_result, symptoms_of
from wholestack.health.telemetry import FIELD, LOST
from wholestack.record import from_json, to_json
from wholestack.remote.batch import Output, Reply
from wholestack.remote.host import Host

GPU = Part(kind="gpu", key="0000:9b:00", label="slot 3", within=("pci 0000:9a:00",))
BROKEN = Cause(code="gpu.broken", says="broken", owner="vendor", remedy="replace it")
CAUSES = {each.code: each for each in (BROKEN, LOST, FIELD, *connection.CAUSES)}
REPLY = Reply(host=Host(name="gpu1", kind="h100"), outputs={"df": Output(name="df")}, seconds=1.5)


def examined(**parts):
    plain = {"symptoms": (), "traits": (), "measures": (), "passed": ("a",), "skipped": (), "after": None, "at": 7.0}
    return Examination(**(plain | parts))


def kept(reply=REPLY, **parts):
    return result_of(reply, examined(**parts), ["a", "b"], now=5.0)


def test_a_symptom_comes_back_with_part_cause_and_evidence():
    seen = CheckSymptom(check="gpu.state", symptom=Symptom(cause=BROKEN, part=GPU, evidence=("Xid 79",), status="warn"))
    result = from_json(HostResult, to_json(kept(symptoms=(seen,))))
    assert symptoms_of(result, CAUSES) == [seen]


def test_a_check_that_said_nothing_at_all_is_unjudged():
    assert kept().unjudged == ("b",)


def test_a_cause_that_this_version_does_not_know_is_left_out():
    seen = CheckSymptom(check="gpu.state", symptom=Symptom(cause=BROKEN, evidence=()))
    assert symptoms_of(kept(symptoms=(seen,)), {}) == []


def test_equal_traits_are_kept_once_with_all_their_parts_and_true_is_not_one():
    traits = [Trait(name="gpu.x", value=value, differs=BROKEN, part=part) for value, part in
              [(1, GPU), (1, HOST), (True, HOST), ("1", HOST)]]  # fmt: skip
    result = kept(traits=tuple(traits))
    assert [(trait.value, type(trait.value), len(trait.parts)) for trait in result.traits] == [
        (1, int, 2), (True, bool, 1), ("1", str, 1)]  # fmt: skip
    assert [result.parts[number] for number in result.traits[0].parts] == [GPU, HOST]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_a_reading_that_is_no_number_is_unknown_and_stays_out_of_arithmetic(value):
    result = kept(measures=(Measure(name="gpu.temperature_c", value=value, outlies=BROKEN, part=GPU),))
    assert result.measures == ()
    (seen,) = symptoms_of(result, CAUSES)
    assert (seen.status, seen.symptom.part.key) == ("unknown", GPU.key)


def test_measures_are_kept_in_columns():
    result = kept(measures=tuple(Measure(name="t", value=v, outlies=BROKEN, part=GPU, bad="high") for v in (1.0, 2.0)))
    (measure,) = result.measures
    assert (measure.values, measure.parts, measure.bad) == ((1.0, 2.0), (0, 0), "high")


def test_a_connection_that_broke_is_one_symptom_with_what_it_took_along():
    outputs = {name: Output(name=name) for name in ("df", "smart", "pci")}
    reply = Reply(host=REPLY.host, outputs=outputs, trouble="lost", detail="reset", attempts=2)
    gone = [CheckSymptom(check=f"telemetry.{name}", symptom=Symptom(cause=LOST, part=Part(kind="probe", key=name),
            evidence=())) for name in ("smart", "pci")]  # fmt: skip
    (seen,) = symptoms_of(kept(reply, symptoms=tuple(gone)), CAUSES)
    said = " ".join(seen.symptom.evidence)
    assert seen.symptom.part == HOST
    for word in ("lost", "reset", "2 attempts", "1 of 3", "smart", "pci"):
        assert word in said


@pytest.mark.parametrize("trouble", ["unreachable", "refused", "host_key", "auth", "timed_out"])
def test_a_host_that_never_answered_is_unknown_and_says_how(trouble):
    result = silent_result(Reply(host=REPLY.host, trouble=trouble, detail="no route", attempts=3), ["a"], now=9.0)
    (seen,) = symptoms_of(result, CAUSES)
    assert (seen.status, result.trouble, result.at) == ("unknown", trouble, 9.0)
    assert "no route" in seen.symptom.evidence[0]


def test_a_host_may_not_claim_more_than_can_be_held():
    many = tuple(
        CheckSymptom(check="c", symptom=Symptom(cause=BROKEN, part=Part(kind="gpu", key=str(n)), evidence=("x",)))
        for n in range(MOST_SYMPTOMS + 5)
    )
    found = symptoms_of(kept(symptoms=many), CAUSES)
    assert len(found) == MOST_SYMPTOMS + 1
    assert "5 more" in found[-1].symptom.evidence[0]


@given(st.text(max_size=400), st.one_of(st.text(), st.floats(), st.integers()), st.floats())
def test_whatever_a_host_says_fits_into_a_journal_and_steers_no_terminal(text, value, number):
    part = Part(kind="gpu", key=text, label=text, within=(text,))
    result = kept(
        symptoms=(CheckSymptom(check="c", symptom=Symptom(cause=BROKEN, part=part, evidence=(text,))),),
        traits=(Trait(name="t", value=value, differs=BROKEN, part=part),),
        measures=(Measure(name="m", value=number, outlies=BROKEN, part=part),),
        identities=(Identity(part=part, serial=text, model=text, lot=text),),
        skipped=(Skipped(check="c", reason="not_installed", detail=text),),
        after=Before(at=number, boot_id=text, counters=(Counter(name="n", value=3, part=text),)),
        at=number,
    )
    line = to_json(result)
    assert from_json(HostResult, line) == result
    said = [text for each in result.symptoms for text in each.evidence] + [part.key for part in result.parts]
    assert all(char.isprintable() or not char.isascii() for text in said for char in text)


def test_parts_are_kept_by_serial_number_and_those_without_one_are_not():
    gpus = [Identity(part=GPU, serial=" 1652 ", model="H100", lot="2026-07")]
    result = kept(identities=(*gpus, Identity(part=Part(kind="gpu", key="0000:ab:00"), serial=" ")))
    (only,) = from_json(HostResult, to_json(result)).identities
    assert (result.parts[only.part], only.serial, only.model, only.lot) == (GPU, "1652", "H100", "2026-07")


def test_a_lone_surrogate_is_kept_out():
    assert b"\\ud800" not in to_json(kept(traits=(Trait(name="t", value="a\ud800", differs=BROKEN),)))


def test_of_a_silent_host_what_was_known_stays_known_with_what_was_older():
    old = Before(at=1.0, boot_id="a", counters=(Counter(name="x", value=5, part="p"),))
    known = Before(at=2.0, boot_id="b", counters=(Counter(name="y", value=6),), older=(old,))
    result = from_json(HostResult, to_json(silent_result(REPLY, ["a"], before=known, now=9.0)))
    assert (result.after, result.boot_id) == (known, "")


@pytest.mark.parametrize(
    ("damaged", "says"),
    [
        ({"symptoms": [{"check": "a", "cause": "c", "part": 7, "evidence": []}]}, "part 7 of host 'gpu1'"),
        ({"traits": [{"name": "t", "value": 1, "cause": "c", "parts": [0, -1]}]}, "part -1 of host 'gpu1'"),
        ({"measures": [{"name": "m", "cause": "c", "parts": [0], "values": []}]}, "'m' has 0 values for 1 parts"),
    ],
)
def test_a_line_that_does_not_fit_together_is_refused_by_its_place(damaged, says):
    line = json.loads(to_json(kept(traits=(Trait(name="gpu.x", value=1, differs=BROKEN, part=GPU),)))) | damaged
    with pytest.raises(RecordError, match=says) as refused:
        from_json(HostResult, json.dumps(line).encode(), where="results.jsonl:3")
    assert "results.jsonl:3" in str(refused.value)
