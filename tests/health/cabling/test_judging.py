"""Every planted fault is one Finding with its cause and cables, nothing else is; the work order mends the fabric."""

import io
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.health.cabling.fabrics import STYLES, Style, spoil, tree
from tests.health.cabling.judged import EXPECTED, judged, mend, wrong_plugs
from wholestack.health.cabling.files import judge_files


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), count=st.integers(0, 14), style=st.sampled_from(STYLES))
def test_every_planted_fault_is_one_finding_and_there_is_no_other(
    seed: int, count: int, style: Style, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    made = tree(rng, units=2, hosts=3, uplinks=5)
    spoil(made, rng, count)
    found = judged(made, tmp_path, style)
    wrong = [each for each in found.findings if each.status != "ok"]
    assert len(wrong) == len(made.faults)
    stories = wrong_plugs(made, found)
    for fault in made.faults:
        near = [why for why, plugs in stories if plugs & fault.plugs]
        assert len(near) == 1, (fault, near)
        assert near[0] in EXPECTED[fault.kind]
    touched = frozenset().union(*(fault.touched for fault in made.faults))
    assert all(plugs <= touched for _, plugs in stories)
    assert found.moves <= sum(fault.moves for fault in made.faults)
    mend(made, found)
    assert made.actual == made.planned


@pytest.mark.parametrize("style", STYLES)
def test_a_fabric_as_planned_is_ok(style: Style, tmp_path: Path) -> None:
    made = tree(random.Random(5), units=2, hosts=3, uplinks=5)
    found = judged(made, tmp_path, style)
    assert (found.status, found.right, found.work_order) == ("ok", found.planned, ())
    assert len(found.findings) == 1


def test_several_outputs_of_one_fabric_are_one_view(tmp_path: Path) -> None:
    made = tree(random.Random(6), units=2, hosts=3, uplinks=5)
    spoil(made, random.Random(7), 7)
    found = judged(made, tmp_path, *STYLES)
    assert len(found.findings) == 7
    mend(made, found)
    assert made.actual == made.planned


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", ["su01-leaf-r3", "spine004", "gpu0002"])
def test_a_dead_device_is_one_finding(style: Style, name: str, tmp_path: Path) -> None:
    made = tree(random.Random(8), units=2, hosts=3, uplinks=5)
    mine = [plug for plug in made.planned if made.boxes[plug[0]].planned_name == name]
    for plug in mine:
        made.unplug(plug)
    found = judged(made, tmp_path, style)
    assert [(each.check, each.subject) for each in found.findings] == [("cabling.absent", name)]
    assert found.right == found.planned - len(mine)
    assert [row.action for row in found.work_order] == ["look"]


def test_a_rail_that_no_output_shows_is_unknown_and_not_missing(tmp_path: Path) -> None:
    made = tree(random.Random(9), units=2, hosts=3, uplinks=5)
    for plug in [plug for plug in made.planned if made.rails.get(plug[0]) == "r4"]:
        if plug in made.actual:
            made.unplug(plug)
    plan = [line for line in made.plan().splitlines() if "spine" not in line]
    (tmp_path / "plan.csv").write_text("\n".join(plan))
    (tmp_path / "seen.txt").write_text(made.text("ibnetdiscover"))
    found = judge_files(tmp_path / "plan.csv", [str(tmp_path / "seen.txt")], stdin=io.BytesIO(), now=0.0)
    assert [each.check for each in found.findings if each.status != "warn"] == ["cabling.not_seen"]
    assert (found.status, found.unknown, found.right) == ("unknown", 6, found.planned - 6)
