"""What a simulated sweep says of every injected fault."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from wholestack.health.simulation import MOST_FAULTS, SimulationFigures, describe_simulation, document
from wholestack.health.simulator.truth import Comparison, Found, Match, Truth

TRUTH = Truth(host="node0001", fault="xid_48", part="gpu", names=("0000:1b:00",), owners=("vendor",), severity=0.25)
RIGHT = Found(status="fail", part="gpu 0000:1b:00", owner="vendor", check="gpu.xid", cause="Xid")
WRONG = replace(RIGHT, part="gpu 0000:3d:00", owner="network")
FOUND = Match(truth=TRUTH, finding=RIGHT, right_part=True, right_owner=True)
BLAMED = Match(truth=replace(TRUTH, host="node0002"), finding=WRONG, right_part=False, right_owner=False)
MISSED = Match(truth=replace(TRUTH, host="node0003"), finding=None, right_part=False, right_owner=False)


def simulated(*matches):
    figures = SimulationFigures(
        hosts=9, injected=3, found=2, right_part=1, right_owner=1, false_alarms=0, host_checks=9, unknown=0,
        seconds=1.0, peak_bytes=1,
    )  # fmt: skip
    comparison = Comparison(
        injected=3, found=2, right_part=1, right_owner=1, false_alarms=0, false_warnings=0, unknown=0, extra=0,
        matches=matches,
    )  # fmt: skip
    return SimpleNamespace(figures=figures, comparison=comparison, sweep=SimpleNamespace(verdicts=()))


def test_every_fault_has_a_line_the_missed_and_the_wrong_ones_first():
    lines = describe_simulation(simulated(FOUND, BLAMED, MISSED)).splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "missed node0003 xid_48 (severity 0.25) at 0000:1b:00 wrong node0002" in text
    assert "wrong part gpu 0000:3d:00, it is 0000:1b:00, wrong owner network, it is vendor found node0001" in text
    assert text.endswith("found node0001 xid_48 (severity 0.25): gpu.xid, right part, right owner")


@pytest.mark.parametrize("everything", [False, True])
def test_as_many_faults_as_a_screen_holds_unless_all_are_asked_for(everything):
    many = [replace(FOUND, truth=replace(TRUTH, host=f"node{n:04d}")) for n in range(MOST_FAULTS + 5)]
    text = describe_simulation(simulated(*many, MISSED), everything=everything)
    assert text.count("xid_48") == MOST_FAULTS + (6 if everything else 0)
    assert ("and 6 more faults" in text) is not everything
    assert "missed   node0003" in text


def test_json_has_every_fault_with_what_was_blamed():
    faults = document(simulated(FOUND, MISSED))["faults"]
    assert [(each["host"], each["found_by"], each["right_part"]) for each in faults] == [
        ("node0001", "gpu.xid", True), ("node0003", None, False)]  # fmt: skip
    assert (faults[0]["severity"], faults[0]["blamed"], faults[0]["owner"]) == (0.25, "gpu 0000:1b:00", "vendor")
