"""Fixes: shown first, on idle hosts only, within a budget, proved by the very check, and written down."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from wholestack.errors import InputError
from wholestack.health import catalog
from wholestack.health import sweep as sweeps
from wholestack.health.earlier import EarlierSweep
from wholestack.health.fixes.catalog import all_fixes, fixes_for
from wholestack.health.fixes.fix import Fault
from wholestack.health.history.silences import silence
from wholestack.health.history.store import History
from wholestack.health.history.taking import look_at
from wholestack.health.operations import fixing
from wholestack.health.operations.cluster import Node
from wholestack.health.operations.deeds import Ledger
from wholestack.health.simulator.faults.table import fault_named
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.hardware import GpuProcess
from wholestack.health.simulator.kinds import KINDS
from wholestack.health.simulator.machine import ToolEffect
from wholestack.health.simulator.remote import FleetRemote
from wholestack.health.simulator.tools.answer import Answer
from wholestack.testing.fixes import broken_rules

DOCS = Path(__file__).parents[3] / "docs" / "adding" / "fix.md"
PARTS = {"mount": "mount /data", "service": "service slurmd", "gpu": "gpu 0000:9b:00"}
MENDED = (
    ("gpu_persistence_off", "gpu.persistence", "gpu_persistence"),
    ("gpu_remap_pending", "gpu.row_remap_pending", "gpu_reset"),
    ("fabric_manager_dead", "fabric_manager.down", "fabric_manager"),
    ("peer_memory_missing", "gpu.peer_memory", "peer_memory"),
    ("time_daemon_dead", "service.failed", "failed_unit"),
    ("docker_dead", "docker.down", "containers"),
    ("unit_failed", "service.failed", "failed_unit"),
    ("mount_missing", "mount.missing", "mount"),
    ("nfs_hung", "mount.hung", "remount"),
    ("swap_on", "swap.on", "swap"),
    ("numa_balancing_on", "kernel.numa_balancing", "kernel_parameters"),
    ("gpu_ecc_disabled", "gpu.ecc_mode", "gpu_ecc"),
)
"""Kind of fault, code of the cause, name of the fix."""


class Broken:
    """A swept fleet of which one host has a fault, its history, and the way to it."""

    def __init__(self, folder, kind, cause, *, hosts=9):
        fault = fault_named(kind)
        assert fault, kind
        code = catalog.causes()[cause][0]
        checks = tuple(check for check in catalog.CHECKS if check.passive and code in check.causes)
        for each in KINDS:
            self.fleet = Fleet(hosts, seed=5, kinds=(each,))
            if any(fault.applies(machine) and machine.gpus for machine in self.fleet):
                break
        self.machine = next(machine for machine in self.fleet if fault.applies(machine))
        self.rest(self.machine)
        self.remote = FleetRemote(self.fleet)
        self.checks = checks
        self.folder = folder
        self.sweep("before")
        self.fleet.inject(self.machine.name, fault, severity=0.9)
        self.fleet.advance(600)
        self.rest(self.machine)
        self.sweep("after", since=folder / "before")
        self.history = History(folder / "h.sqlite", write=True)
        self.history.add(look_at(folder / "after"))
        findings = next(each for each in look_at(folder / "after").hosts if each.host == self.machine.name).sights
        self.id = next(each.id for each in findings if each.cause == code.says)

    def rest(self, machine):
        machine.job = None
        for gpu in machine.gpus:
            gpu.processes = []

    def sweep(self, name, since=None):
        plan = sweeps.plan_for(self.fleet.hosts(), self.checks, {}, concurrency=4, since=str(since or ""))
        before = EarlierSweep(since).before if since else lambda _: None
        with sweeps.create(self.folder / name, plan, at=self.fleet.now) as run:
            asyncio.run(sweeps.sweep(run, self.remote, before=before, clock=lambda: self.fleet.now))

    def case(self):
        return fixing.case_of(self.folder / "after", self.id[:10])

    def story(self):
        return fixing.story_for(self.case(), self.history, now=self.fleet.now)

    def mend(self, **given):
        async def pause(seconds):
            self.fleet.advance(seconds)
            self.rest(self.machine)

        ledger = Ledger(history=self.history, by="ann", clock=lambda: self.fleet.now)
        return asyncio.run(fixing.mend(self.case(), self.story(), self.remote, ledger, pause=pause, **given))

    def kinds(self):
        return [each.kind for each in self.history.events() if each.kind != "first_seen"]


@pytest.mark.parametrize(("kind", "cause", "name"), MENDED)
def test_a_simulated_fault_is_mended_and_the_check_says_so(tmp_path, kind, cause, name):
    broken = Broken(tmp_path, kind, cause)
    shown = fixing.plan_fix(broken.case(), broken.story())
    assert (shown.outcome, shown.fix) == ("will", name)
    assert broken.kinds() == []
    done = broken.mend(node=Node(name="x", is_usable=False, is_drained=True))
    assert done.outcome == "done", done.why
    assert done.commands == shown.commands
    assert broken.kinds() == ["fix_begun", "fix_ended", "proof_held"]
    again = broken.mend()
    assert again.outcome == "is_so"
    assert broken.kinds() == ["fix_begun", "fix_ended", "proof_held"]


@pytest.fixture
def pending(tmp_path):
    return Broken(tmp_path, "gpu_remap_pending", "gpu.row_remap_pending")


def test_nothing_is_done_where_a_job_runs_unless_the_host_is_named(pending):
    gpu = pending.machine.gpus[-1]
    gpu.processes = [GpuProcess(pid=77, name="python3", used_mib=900)]
    pending.machine.version += 1
    refused = pending.mend()
    assert (refused.outcome, "process 77" in refused.why) == ("refused", True)
    gpu.processes = []
    pending.machine.version += 1
    working = Node(name="x", is_usable=True, is_drained=False, jobs=("job 9 of bob",))
    assert pending.mend(node=working).outcome == "refused"
    assert pending.kinds() == []
    assert pending.mend(node=working, even_with_job=True).outcome == "done"


def test_whether_a_job_runs_must_be_known(tmp_path):
    broken = Broken(tmp_path, "swap_on", "swap.on")
    broken.machine.effects["nvidia_smi"] = ToolEffect(kind="hung")
    broken.machine.version += 1
    refused = broken.mend()
    assert (refused.outcome, "cannot be told" in refused.why) == ("refused", True)


def test_a_fix_that_does_not_help_is_tried_within_its_budget_and_then_handed_over(pending, monkeypatch):
    def nothing_happens(machine, shell):
        return Answer() if "reset" in shell else None

    monkeypatch.setattr("wholestack.health.simulator.remote.react", nothing_happens)
    for _ in range(3):
        pending.rest(pending.machine)  # while it settled, a job may have begun
        pending.machine.version += 1
        assert pending.mend().outcome == "refused"
    assert pending.kinds() == ["fix_begun", "fix_ended", "proof_broken"] * 2
    assert "handed" in pending.mend().why.replace("hand it", "handed")


def test_a_time_server_that_does_not_answer_is_not_mended_by_a_restart(tmp_path):
    broken = Broken(tmp_path, "clock_not_synchronised", "time.unsynchronised")
    tried = broken.mend()
    assert (tried.outcome, tried.fix, tried.why) == ("refused", "time_sync", "time.sync still sees it")
    assert broken.kinds() == ["fix_begun", "fix_ended", "proof_broken"]


def test_a_command_that_fails_is_no_fix(pending, monkeypatch):
    monkeypatch.setattr(
        "wholestack.health.simulator.remote.react",
        lambda machine, shell: Answer(stderr="in use", exit_status=19) if "reset" in shell else None,
    )
    failed = pending.mend()
    assert (failed.outcome, "exit status 19: in use" in failed.why) == ("failed", True)
    assert pending.kinds() == ["fix_begun", "fix_failed"]


def test_what_was_interrupted_is_looked_at_first_and_not_done_twice(pending):
    ledger = Ledger(history=pending.history, by="ann", clock=lambda: pending.fleet.now)
    ledger.note(pending.story(), "fix_begun", says="nvidia-smi --gpu-reset", why="x")
    assert pending.mend().outcome == "done"  # it had not happened yet
    assert pending.kinds() == ["fix_begun", "fix_begun", "fix_ended", "proof_held"]


def test_a_fix_that_may_still_be_at_work_is_waited_for_and_not_doubled(pending):
    ledger = Ledger(history=pending.history, by="ann", clock=lambda: pending.fleet.now)
    ledger.note(pending.story(), "fix_begun", says="nvidia-smi --gpu-reset", why="x")
    began = pending.fleet.now

    async def pause(seconds):
        pending.fleet.advance(seconds)
        pending.rest(pending.machine)
        for gpu in pending.machine.gpus:
            gpu.remap_pending = gpu.remap_pending and pending.fleet.now < began + 60
        pending.machine.version += 1

    async def mend():
        return await fixing.mend(pending.case(), pending.story(), pending.remote, ledger, pause=pause)

    assert asyncio.run(mend()).outcome == "is_so"
    assert pending.kinds() == ["fix_begun", "fix_ended", "proof_held"]


@pytest.mark.parametrize("ended", [True, False])
def test_a_fix_that_was_killed_before_its_proof_is_proved_before_it_is_tried_again(pending, monkeypatch, ended):
    """And one that must not run twice is not run again though the fault is there."""
    (fix,) = fixes_for("gpu.row_remap_pending")
    monkeypatch.setattr(fixing, "fixes_for", lambda _: (replace(fix, about=replace(fix.about, is_repeatable=False)),))
    ledger = Ledger(history=pending.history, by="ann", clock=lambda: pending.fleet.now)
    for kind in ("fix_begun", *["fix_ended"] * ended):
        ledger.note(pending.story(), kind, says="nvidia-smi --gpu-reset", why="x")
    told = pending.mend()
    assert told.outcome == "refused"
    assert ("still sees it" in told.why) == ended
    assert ("must not run twice" in told.why) == (not ended)
    assert pending.kinds() == (["fix_begun", "fix_ended", "proof_broken"] if ended else ["fix_begun"])


def test_what_was_done_before_the_kill_only_gets_its_end(pending):
    ledger = Ledger(history=pending.history, by="ann", clock=lambda: pending.fleet.now)
    ledger.note(pending.story(), "fix_begun", says="nvidia-smi --gpu-reset", why="x")
    for gpu in pending.machine.gpus:
        gpu.remap_pending = False
    pending.machine.version += 1
    assert pending.mend().outcome == "is_so"
    assert pending.kinds() == ["fix_begun", "fix_ended", "proof_held"]


def test_a_person_s_silence_is_a_veto(pending):
    now = pending.fleet.now
    pending.history.silence(silence(finding=pending.id, reason="mine", by="bob", since=now, until=now + 60))
    assert fixing.plan_fix(pending.case(), pending.story()).outcome == "left"
    assert pending.mend().outcome == "left"


def test_what_has_no_fix_says_who_acts_and_what_is_no_finding_is_refused(tmp_path):
    broken = Broken(tmp_path, "gpu_remap_failure", "gpu.row_remap_failure")
    with pytest.raises(InputError, match="vendor: drain the host"):
        fixing.plan_fix(broken.case(), broken.story())
    with pytest.raises(InputError):
        fixing.case_of(tmp_path / "after", "gpu.row_remap_failure")


def test_every_fix_keeps_the_rules():
    for fix in all_fixes():
        kinds = {code: _part(code) for code in fix.about.causes}
        faults = [Fault(host="a", cause=code, part=part) for code, part in kinds.items()]
        assert broken_rules(fix, faults) == [], fix.about.name
    names = [fix.about.name for fix in all_fixes()]
    assert len(set(names)) == len(names)


def _part(code):
    return PARTS.get(code.partition(".")[0], "host")


def test_the_rules_find_what_is_wrong():
    (fix,) = fixes_for("service.failed")
    fault = Fault(host="a", cause="service.failed", part="service slurmd")
    bad = replace(fix, lines=lambda fault: (f"systemctl restart {fault.key}",))
    assert any("unquoted" in rule for rule in broken_rules(bad, [fault]))
    assert any("reboot" in rule for rule in broken_rules(replace(fix, lines=lambda _: ("reboot",)), [fault]))
    assert any(
        "bounded" in rule for rule in broken_rules(replace(fix, about=replace(fix.about, settle_s=1e9)), [fault])
    )
    assert broken_rules(fix, [])


def test_the_example_of_the_guide_is_a_sound_fix():
    space: dict = {}
    for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, "fix.md", "exec", dont_inherit=True), space)
    space["test_it_keeps_the_rules"]()
    assert space["FIXES"][0].commands(Fault(host="a", cause="driver.not_loaded", part="host"))[0].needs_root
