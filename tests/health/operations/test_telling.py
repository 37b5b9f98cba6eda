"""Stories as a person is told them: what comes next is what the catalogue of fixes can do."""

from dataclasses import replace

import pytest

from tests.health.history.looks import HOUR, host, sight, sweep
from wholestack.health import catalog
from wholestack.health.fixes.catalog import all_fixes, mended
from wholestack.health.history.store import History
from wholestack.health.operations.deeds import Ledger
from wholestack.health.operations.telling import describe_stories, told_stories


@pytest.mark.parametrize(
    ("code", "status", "action"),
    [
        ("swap.on", "warn", "fix"),
        ("mount.missing", "fail", "drain"),  # first no job may start there
        ("bmc.clock", "warn", "hand_over"),  # no fix is known
    ],
)
def test_what_comes_next_is_a_fix_where_there_is_one(tmp_path, code, status, action):
    cause, check = catalog.causes()[code]
    seen = replace(sight(check.name, check.parts[0], status, cause=cause.says), owner=cause.owner)
    with History(tmp_path / "h.sqlite", write=True) as history:
        history.add(sweep(1, host(sights=[seen], judged=(check.name,)), checks=(check.name,)))
        (told,) = told_stories(history, None, now=2 * HOUR)
    assert told.next.action == action
    said = describe_stories([told])
    assert f"next     {action.replace('_', ' ')}: " in said
    assert max(map(len, said.splitlines())) <= 80
    finding = f"{seen.id[:8]} --in s1"
    typed = {"fix": f"fix {finding}", "drain": "drain a", "hand_over": f"ticket {finding}"}[action]
    assert said.splitlines()[-2] == f"         wholestack health {typed}"


def test_of_a_host_that_was_retired_only_who_asks_for_it_hears(tmp_path):
    cause, check = catalog.causes()["mount.missing"]
    seen = replace(sight(check.name, check.parts[0], "fail", cause=cause.says), owner=cause.owner)
    with History(tmp_path / "h.sqlite", write=True) as history:
        broken = host(sights=[seen], judged=(check.name,))
        history.add(sweep(1, broken, host("b"), checks=(check.name,)))
        history.retire(history.machines()[0], by="ann", why="sold", at=HOUR)
        assert told_stories(history, None, now=2 * HOUR) == []
        assert len(told_stories(history, "a", now=2 * HOUR)) == 1
        assert len(told_stories(history, None, now=2 * HOUR, everything=True)) == 1


def test_what_ended_is_told_once_and_what_did_not_is_told_as_begun(tmp_path):
    cause, check = catalog.causes()["mount.missing"]
    seen = replace(sight(check.name, check.parts[0], "fail", cause=cause.says), owner=cause.owner)
    with History(tmp_path / "h.sqlite", write=True) as history:
        history.add(sweep(1, host(sights=[seen], judged=(check.name,)), checks=(check.name,)))
        (told,) = told_stories(history, None, now=2 * HOUR)
        ledger = Ledger(history=history, by="ann", clock=lambda: 2 * HOUR)
        for kind in ("drain_begun", "drain_ended", "fix_begun", "fix_unknown"):
            ledger.note(told.story, kind, says="x", why="y")
        said = describe_stories(told_stories(history, None, now=3 * HOUR))
    deeds = [line.partition(" by ")[0].split(maxsplit=3)[3] for line in said.splitlines() if line.startswith("done")]
    assert deeds == ["drain ended", "fix begun", "fix unknown"]
    assert "nobody knows how it ended" in said


def test_every_cause_of_every_fix_is_among_those_that_are_mended():
    """Under the very words and checks that a Finding has."""
    found = mended()
    for fix in all_fixes():
        for code in fix.about.causes:
            cause, _ = catalog.causes()[code]
            checks = [each.name for each in catalog.CHECKS if cause in each.causes]
            assert checks or code.startswith("telemetry."), code
            assert {(name, cause.says) for name in checks} <= found
    assert not any(says == catalog.causes()["bmc.clock"][0].says for _, says in found)
