"""One fault is one Finding."""

import sys
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from wholestack.health.check import Cause, Symptom
from wholestack.health.diagnosis import (
    LONGEST_LINE,
    MOST_EVIDENCE,
    MOST_SYMPTOMS,
    CheckSymptom,
    bounded,
    diagnose,
    not_too_many,
)
from wholestack.health.judging import judge
from wholestack.health.parts import HOST, LONGEST_KEY, Part

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


def test_the_evidence_of_a_symptom_that_stays_alone_is_bounded():
    (only,) = diagnose([seen("xid", evidence=tuple(f"{n}" + "x" * 10_000 for n in range(50)))])
    assert len(only.symptom.evidence) == MOST_EVIDENCE + 1
    assert only.symptom.evidence[-1] == "and 38 more lines"
    assert max(map(len, only.symptom.evidence)) == LONGEST_LINE
    assert bounded(only) is only


def test_lines_left_out_are_counted_through_every_merging():
    parts = [seen("xid", part=GPU, evidence=tuple(f"{n} {m}" for m in range(20))) for n in range(5)]
    (only,) = diagnose([seen("lost", "xid", part=GPU, evidence=("a",)), *parts])
    assert only.symptom.evidence[-1] == f"and {101 - MOST_EVIDENCE} more lines"


def test_long_names_are_cut_alike_wherever_they_stand_and_stay_apart():
    parts = [Part(kind="gpu", key="k" * 5000 + end, label="l" * 5000) for end in "ab"]
    link = Part(kind="nvlink", key="n" * 5000, within=(parts[0].identity,))
    found = diagnose([seen("lost", "link", part=parts[0]), seen("lost", part=parts[1]), seen("link", part=link)])
    assert codes(found) == ["lost", "lost"]
    for each in found:
        assert max(len(each.symptom.part.key), len(each.symptom.part.label)) <= LONGEST_KEY


def test_of_too_many_symptoms_the_worst_are_kept_in_order_and_the_others_counted_once():
    mild = replace(cause("mild"), status="warn")
    many = [
        CheckSymptom(check="x", symptom=Symptom(cause=mild, part=Part(kind="gpu", key=f"{n}"), evidence=("a",)))
        for n in range(MOST_SYMPTOMS + 7)
    ]
    kept = not_too_many([*many, seen("lost")])
    assert codes(kept[-3:]) == ["mild", "lost", "telemetry.field"]
    again = not_too_many([*kept, seen("other")])
    assert codes(again[-3:]) == ["lost", "other", "telemetry.field"]
    assert again[-1].symptom.evidence == ("9 more symptoms on this host are not kept",)


def dimm(n, label):
    """A module with uncorrected errors, as the kernel counts them."""
    return f"mc0/dimm{n}/dimm_ue_count:5\nmc0/dimm{n}/dimm_ce_count:0\nmc0/dimm{n}/dimm_label:{label}\n"


def test_a_saved_output_of_thousands_of_broken_parts_gives_a_bounded_judgement():
    found = judge("memory.edac", "".join(dimm(n, f"x{n}") for n in range(3000)), now=0)
    assert found.status == "fail"
    assert len(found.findings) == MOST_SYMPTOMS + 1
    one = judge("memory.edac", dimm(0, "x" * 400_000), now=0)
    assert one.status == "fail"
    assert len(repr(one)) < 10_000


def calls_of(symptoms):
    """Functions entered, Python's and C's, while these are merged."""
    count = 0

    def counting(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        diagnose(symptoms)
    finally:
        sys.setprofile(None)
    return count


def test_the_work_grows_with_the_number_of_symptoms_and_not_with_its_square():
    def host(n):
        parts = [Part(kind="dimm", key=f"{index}") for index in range(n)]
        return [
            *(seen("bad", "mild", "host.slow", part=part) for part in parts),
            *(seen("mild", part=part) for part in parts),
            *(seen("alone", "nothing", part=part) for part in parts),
            *(seen("gone", part=parts[0], evidence=(f"{index}",)) for index in range(n)),
            seen("host.slow"),
        ]

    small, large = calls_of(host(100)), calls_of(host(800))
    assert large < 12 * small


@given(data=st.data())
def test_no_evidence_is_lost_however_causes_explain_each_other(data):
    codes_, parts = "abcd", [HOST, GPU, OTHER, LINK, Part(kind="probe", key="p")]
    names = st.lists(st.sampled_from([*codes_, "a p", f"b {GPU.key}"]), max_size=3)
    causes = {code: cause(code, *data.draw(names)) for code in codes_}
    drawn = data.draw(st.lists(st.tuples(st.sampled_from(codes_), st.sampled_from(parts)), min_size=1, max_size=7))
    symptoms = [
        CheckSymptom(check="x", symptom=Symptom(cause=causes[code], part=part, evidence=(str(n),)))
        for n, (code, part) in enumerate(drawn)
    ]
    told = [line for each in diagnose(symptoms) for line in each.symptom.evidence]
    assert sorted(told) == sorted(str(n) for n in range(len(symptoms)))
