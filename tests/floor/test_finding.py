"""Findings: identity, order and exit codes; unknown never counts as ok."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.finding import WORST_FIRST, Finding, exit_code, finding, worst, worst_first

statuses = st.sampled_from(WORST_FIRST)


def made(status: str, **more: object) -> Finding:
    return finding("host1", "gpu.count", status, evidence=["8 of 8"], **more)  # type: ignore[arg-type]


def test_the_id_depends_on_subject_check_part_and_cause_alone() -> None:
    base = made("fail", part="GPU 3", cause="off the bus")
    assert base.id == made("ok", part="GPU 3", cause="off the bus", at=5.0, step=3, owner="vendor").id
    others = [
        made("fail", part="GPU 4", cause="off the bus"),
        made("fail", part="GPU 3", cause="slow"),
        finding("host2", "gpu.count", "fail", evidence=[], part="GPU 3", cause="off the bus"),
        finding("host1", "gpu.ecc", "fail", evidence=[], part="GPU 3", cause="off the bus"),
    ]
    assert len({base.id, *(each.id for each in others)}) == 5


@given(st.lists(statuses))
def test_worst_comes_first_and_equals_keep_their_order(given_statuses: list[str]) -> None:
    findings = [made(status, part=str(index)) for index, status in enumerate(given_statuses)]
    ordered = worst_first(findings)
    assert [each.status for each in ordered] == sorted(given_statuses, key=WORST_FIRST.index)
    for _, group in itertools.groupby(ordered, key=lambda each: each.status):
        parts = [int(each.part) for each in group]
        assert parts == sorted(parts)


def test_of_no_finding_the_worst_is_unknown() -> None:
    assert worst([]) == "unknown"


@pytest.mark.parametrize(
    ("given_statuses", "code"),
    [([], 0), (["ok"], 0), (["ok", "unknown"], 3), (["warn", "unknown"], 1), (["fail"], 1), (["unknown"], 3)],
)
def test_exit_codes(given_statuses: list[str], code: int) -> None:
    assert exit_code(made(status) for status in given_statuses) == code
