"""Stories as a person is told them: what comes next is what the catalogue of fixes can do."""

from dataclasses import replace

import pytest

from tests.health.history.looks import HOUR, host, sight, sweep
from wholestack.health import catalog
from wholestack.health.fixes.catalog import all_fixes, mended
from wholestack.health.history.store import History
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
    assert f"next     {action.replace('_', ' ')}: " in describe_stories([told])


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
