"""One fault is one Finding."""

from dataclasses import replace

from wholestack.health.check import Cause, Symptom
from wholestack.health.diagnosis import MOST_EVIDENCE, CheckSymptom, diagnose
from wholestack.health.parts import HOST, Part

GPU = Part(kind="gpu", key="0000:9b:00")
OTHER = Part(kind="gpu", key="0000:1b:00")
LINK = Part(kind="nvlink", key="0000:9b:00/3", within=(GPU.identity,))


def cause(code, *explains):
    return Cause(code=code, says=code, owner="vendor", remedy="replace it", explains=explains)


def seen(code, *explains, part=HOST, evidence=("line",)):
    return CheckSymptom(check="x", symptom=Symptom(cause=cause(code, *explains), part=part, evidence=evidence))


def codes(found):
    return [each.symptom.cause.code for each in found]


def test_a_symptom_on_the_same_part_on_a_part_within_or_on_the_host_is_taken_in_with_its_evidence():
    lost = seen("lost", "xid", "link", "count", part=GPU, evidence=("lost",))
    rest = [
        seen("xid", part=GPU, evidence=("xid",)),
        seen("link", part=LINK, evidence=("link",)),
        seen("count", evidence=("count",)),
    ]
    for order in ([lost, *rest], [*rest, lost]):
        found = diagnose(order)
        assert codes(found) == ["lost"]
        assert found[0].symptom.evidence[0] == "lost"
        assert set(found[0].symptom.evidence) == {"lost", "xid", "link", "count"}


def test_the_same_cause_on_another_part_stays():
    found = diagnose([seen("lost", "xid", part=GPU), seen("xid", part=OTHER)])
    assert codes(found) == ["lost", "xid"]


def test_a_chain_ends_at_its_head_and_a_circle_ends_at_all():
    assert codes(diagnose([seen("a"), seen("b", "a"), seen("c", "b")])) == ["c"]
    assert codes(diagnose([seen("c"), seen("a", "b", "c"), seen("b", "a")])) == ["a"]


def test_equal_symptoms_of_two_checks_are_one_and_evidence_is_bounded():
    many = [seen("xid", part=GPU, evidence=(f"line {index}" + "x" * 1000,)) for index in range(100)]
    found = diagnose(many)
    assert len(found) == 1
    assert len(found[0].symptom.evidence) == MOST_EVIDENCE + 1
    assert max(map(len, found[0].symptom.evidence)) <= 400


def test_equal_symptoms_take_the_worse_status():
    mild = seen("xid", part=GPU)
    mild = replace(mild, symptom=replace(mild.symptom, status="warn"))
    for order in ([mild, seen("xid", part=GPU)], [seen("xid", part=GPU), mild]):
        assert [each.status for each in diagnose(order)] == ["fail"]


def test_the_label_of_a_part_is_not_its_identity():
    found = diagnose([seen("xid", part=GPU), seen("xid", part=replace(GPU, label="slot 3"))])
    assert len(found) == 1


def test_a_code_with_a_key_means_that_part_only():
    probe = Part(kind="probe", key="nvidia_smi")
    other = Part(kind="probe", key="df")
    found = diagnose([seen("lost", "hung nvidia_smi", part=GPU), seen("hung", part=probe), seen("hung", part=other)])
    assert [(each.symptom.cause.code, each.symptom.part.key) for each in found] == [("lost", GPU.key), ("hung", "df")]


def test_what_explains_may_be_milder_than_what_it_explains():
    off = CheckSymptom(check="x", symptom=Symptom(cause=replace(cause("smt_off", "fewer"), status="warn"), evidence=()))
    (only,) = diagnose([off, seen("fewer")])
    assert (only.symptom.cause.code, only.status) == ("smt_off", "warn")
