"""Decisions of a person."""

import pytest

from tests.health.bootlog.written import dressed, learnt, read, written
from wholestack.errors import InputError
from wholestack.health.bootlog.acceptance import accept
from wholestack.health.bootlog.expecting import Expectations
from wholestack.health.bootlog.judging import judge_boot

DAY_S = 86_400.0
MODEL = learnt()
NEW = "power_meter ACPI000D:00: ignoring unsafe software power cap"


def judged(model, messages, now=0.0):
    (boot,) = read(dressed(messages))
    return judge_boot(boot, Expectations(model), subject="node9", now=now)


def accepting(*lines, days=30.0, model=MODEL):
    return accept(model, lines, why="known firmware bug", by="ana", now=0.0, until=days * DAY_S)


def test_an_accepted_line_is_quiet_and_not_ok():
    found = judged(accepting(("", NEW)), [*written(50), NEW])
    assert found.status == "ok"
    assert "bootlog.unknown" not in {each.check for each in found.findings}
    (accepted,) = found.accepted
    assert (accepted.line, accepted.why, accepted.by) == (NEW, "known firmware bug", "ana")


def test_numbers_of_an_unknown_line_may_differ():
    found = judged(accepting(("", NEW)), [*written(50), NEW.replace("0D:00", "0D:01")])
    assert found.accepted


def test_another_unknown_line_still_speaks():
    found = judged(accepting(("", NEW)), [*written(50), NEW, "dell_smbios: unable to run"])
    (wrong,) = [each for each in found.findings if each.status != "ok"]
    assert NEW not in wrong.evidence
    assert "dell_smbios: unable to run" in wrong.evidence


def test_after_its_end_the_line_speaks_again_and_says_so():
    model = accepting(("", NEW), days=30)
    found = judged(model, [*written(50), NEW], now=31 * DAY_S)
    assert not found.accepted
    (wrong,) = [each for each in found.findings if each.status != "ok"]
    assert "accepted by ana (known firmware bug): that has ended" in wrong.evidence


def test_another_value_is_accepted_with_that_value_alone():
    model = accepting(
        ("value", "smp: Brought up 2 nodes, 63 CPUs"),
        ("value", next(line for line in written(50, cpus=63) if line.startswith("smpboot: Total"))),
    )
    assert judged(model, written(50, cpus=63)).status == "ok"
    assert judged(model, written(50, cpus=62)).status == "warn"


def test_a_missing_line_and_a_moved_one_can_be_accepted():
    lines = [each for each in written(50) if not each.startswith("RAMDISK")]
    assert judged(accepting(("missing", "RAMDISK: [mem <#>-<#>]")), lines).status == "ok"
    assert judged(accepting(("", written(50)[7])), lines).status == "ok"
    moved = written(50)
    moved.insert(22, moved.pop(4))
    assert judged(accepting(("order", written(50)[4])), moved).status == "ok"


def test_a_decision_about_one_kind_is_not_about_another():
    lines = [each for each in written(50) if each != "x2apic enabled"]
    assert judged(accepting(("order", "x2apic enabled")), lines).status == "fail"


def test_a_later_decision_takes_the_place_of_an_earlier_one():
    model = accepting(("", NEW), days=60, model=accepting(("", NEW), days=30))
    assert len(model.accepted) == 1
    assert judged(model, [*written(50), NEW], now=45 * DAY_S).accepted


@pytest.mark.parametrize(
    ("why", "by", "days"), [(" ", "ana", 1), ("known", "", 1), ("known", "ana", 0), ("known", "ana", 1e6)]
)
def test_a_decision_needs_reason_person_and_end(why, by, days):
    with pytest.raises(InputError):
        accept(MODEL, [("", NEW)], why=why, by=by, now=0.0, until=days * DAY_S)
