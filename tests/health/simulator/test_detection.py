"""Every kind of fault is found where it is, by whom it concerns; healthy hosts are left in peace."""

import asyncio
from collections import Counter

import pytest

from wholestack.health import catalog, sweep
from wholestack.health.earlier import EarlierSweep
from wholestack.health.simulation import plain_findings
from wholestack.health.simulator.faults.table import FAULTS
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.kinds import KINDS
from wholestack.health.simulator.remote import FleetRemote
from wholestack.health.simulator.truth import Found, compare
from wholestack.health.verdicts import Sweep

pytestmark = pytest.mark.heavy

STEP_S = 600.0
SEED = 20_261
MISSED: dict[str, str] = {}
"""Kinds of fault that may be missed, with the reason; never more than 2 % of them."""


def swept(fleet: Fleet, folder, *, since=None) -> Sweep:
    plan = sweep.plan_for(fleet.hosts(), catalog.chosen(), {}, concurrency=16, since=str(since or ""))
    before = EarlierSweep(since).before if since else lambda _: None
    with sweep.create(folder, plan, at=fleet.now) as run:
        return asyncio.run(sweep.sweep(run, FleetRemote(fleet), before=before, clock=lambda: fleet.now))


def plain(found: Sweep) -> dict[str, list[Found]]:
    return {verdict.host: plain_findings(verdict.findings) for verdict in found.verdicts}


def broken_by_each_kind(fleet: Fleet) -> None:
    """One fault a host, taking turns over the kinds of host, so that of each kind most hosts stay healthy."""
    by_kind = {kind.name: [machine for machine in fleet if machine.kind == kind.name] for kind in KINDS}
    broken: Counter[str] = Counter()
    for fault in FAULTS:
        able = [
            machine
            for machines in by_kind.values()
            for machine in machines
            if not machine.broken and fault.applies(machine)
        ]
        chosen = min(able, key=lambda machine: broken[machine.kind] / len(by_kind[machine.kind]))
        broken[chosen.kind] += 1
        fleet.inject(chosen.name, fault, severity=0.7)


def test_every_kind_of_fault_is_found_with_its_part_and_its_owner(tmp_path):
    assert len(MISSED) <= 0.02 * len(FAULTS)
    fleet = Fleet(440, seed=SEED)
    swept(fleet, tmp_path / "before")
    broken_by_each_kind(fleet)
    fleet.advance(STEP_S)
    found = swept(fleet, tmp_path / "after", since=tmp_path / "before")
    result = compare(fleet.truths, plain(found))
    wrong = {
        each.truth.fault: (each.finding, each.truth.names, each.truth.owners)
        for each in result.matches
        if each.finding is None or not each.right_part or not each.right_owner
    }
    assert len(result.matches) == len(FAULTS)
    assert wrong.keys() <= MISSED.keys(), wrong
    assert result.false_alarms == 0


def test_healthy_hosts_are_called_fit_and_can_be_read(tmp_path):
    found = swept(Fleet(150, seed=SEED + 1), tmp_path / "healthy")
    alarms = [(one.subject, one.check, one.cause) for each in found.verdicts for one in each.findings]
    statuses = Counter(one.status for each in found.verdicts for one in each.findings)
    checks = sum(len(found.plan.checks) - len(each.skipped) for each in found.verdicts)
    assert statuses["fail"] == 0, alarms
    assert sum(len(each.unjudged) for each in found.verdicts) + statuses["unknown"] <= 0.001 * checks
