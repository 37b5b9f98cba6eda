"""A host that is off or hangs, seen in a sweep through its BMC and mended by it: all of it with a real BMC."""

import asyncio
import time
from dataclasses import replace

import pytest

from tests.health.ipmi_sim import PASSWORD, SUPPLY_1
from tests.health.looking import moment
from wholestack.health import catalog
from wholestack.health import sweep as sweeps
from wholestack.health.history.store import History
from wholestack.health.history.taking import look_at
from wholestack.health.operations import fixing
from wholestack.health.operations.cluster import Node
from wholestack.health.operations.deeds import Ledger
from wholestack.health.operations.story import next_step
from wholestack.health.outofband.address import Credentials
from wholestack.health.outofband.asking import Bmcs, WithBmcs
from wholestack.health.telemetry import LOST
from wholestack.health.tickets.gathering import ticket_for
from wholestack.health.verdicts import read_sweep
from wholestack.remote.batch import Output
from wholestack.remote.host import Host
from wholestack.remote.simulated import SimulatedRemote

ANN = Credentials(user="ADMIN", password=PASSWORD)
DOWN = Node(name="gpu007", is_usable=False, is_drained=False)


@pytest.fixture(autouse=True)
def empty_log(controller):
    controller.shell("ipmitool sel clear")


class Silent:
    """One host that answered nothing in a sweep; it comes up when its power is switched on by the BMC."""

    def __init__(self, folder, controller, *, on, trouble="unreachable"):
        self.controller, self.folder = controller, folder
        controller.set_power(on=on)
        self.before = len(controller.switched())
        self.comes_up, self.trouble = True, trouble
        self.bmcs = Bmcs(ANN)
        self.way = WithBmcs(SimulatedRemote(self.answer), self.bmcs)
        host = Host(name="gpu007", bmc=f"ipmi://127.0.0.1:{controller.port}?cipher=3")
        checks = tuple(catalog.named(name) for name in ("bmc.sel", "filesystem.bytes"))
        plan = sweeps.plan_for([host], checks, {}, concurrency=1)
        with sweeps.create(folder / "s", plan, at=time.time()) as run:
            self.sweep = asyncio.run(sweeps.sweep(run, self.way))
        self.history = History(folder / "h.sqlite", write=True)
        self.history.add(look_at(folder / "s"))

    def answer(self, host, command):
        if self.comes_up and self.switched()[-1:] == ["1"]:
            return Output(name=command.name, stdout=moment().encode())
        return self.trouble

    def switched(self):
        return self.controller.switched()[self.before :]

    def finding(self):
        (found,) = [each for each in self.sweep.verdicts[0].findings if each.check == "telemetry.host"]
        return found

    def case(self):
        return fixing.case_of(self.folder / "s", self.finding().id)

    def story(self):
        return fixing.story_for(self.case(), self.history, now=time.time())

    def mend(self, **given):
        async def pause(_):
            return None

        clock = iter(range(int(time.time()), 1 << 40, 60))
        ledger = Ledger(history=self.history, by="ann", clock=lambda: next(clock))
        show = self.bmcs.shown
        return asyncio.run(fixing.mend(self.case(), self.story(), self.way, ledger, show=show, pause=pause, **given))

    def kinds(self):
        return [each.kind for each in self.history.events() if each.kind != "first_seen"]


@pytest.fixture
def off(tmp_path, controller):
    return Silent(tmp_path, controller, on=False)


@pytest.fixture
def hung(tmp_path, controller):
    return Silent(tmp_path, controller, on=True)


def test_a_sweep_says_of_a_silent_host_whether_it_is_off_or_hangs(off, tmp_path, controller):
    found = off.finding()
    assert (found.status, found.cause, found.owner) == ("fail", "the host is powered off", "cluster team")
    assert [line.partition(":")[0] for line in found.evidence] == ["unreachable", "its BMC says that the power is off"]
    verdict = off.sweep.verdicts[0]
    assert (verdict.status, verdict.passed, verdict.unjudged) == ("fail", ("bmc.sel",), ("filesystem.bytes",))
    assert read_sweep(tmp_path / "s").verdicts == off.sweep.verdicts
    (tmp_path / "2").mkdir()
    assert (
        Silent(tmp_path / "2", controller, on=True).finding().cause
        == "the host is powered on, but does not answer over SSH"
    )


@pytest.mark.parametrize("trouble", ["closed", "lost", "jump", "refused"])
def test_a_host_that_shows_a_sign_of_life_or_was_not_reached_is_not_called_hung(tmp_path, controller, trouble):
    found = Silent(tmp_path, controller, on=True, trouble=trouble).finding()
    assert (found.status, found.cause) == ("unknown", LOST.says)


def test_a_host_that_is_off_is_powered_on_and_asked_again(off):
    shown = fixing.plan_fix(off.case(), off.story(), show=off.bmcs.shown)
    assert (shown.outcome, shown.fix) == ("will", "power_on")
    (command,) = shown.commands
    assert command.startswith("ipmitool -I lanplus -H 127.0.0.1 -p ")
    assert command.endswith(" -U ADMIN -E -N 2 -R 3 -C 3 chassis power on")
    assert (off.kinds(), off.switched()) == ([], [])
    done = off.mend()
    assert (done.outcome, done.commands) == ("done", shown.commands), done.why
    assert off.switched() == ["1"]
    assert off.kinds() == ["fix_begun", "fix_ended", "proof_held"]
    begun = next(each for each in off.history.events() if each.kind == "fix_begun")
    assert (begun.says, PASSWORD in begun.says) == (command, False)
    assert off.mend().outcome == "is_so"
    assert off.switched() == ["1"]


def test_a_host_that_hangs_is_cycled_where_its_scheduler_says_that_it_is_idle(hung):
    refused = hung.mend()
    assert (refused.outcome, "only its scheduler" in refused.why) == ("refused", True)
    busy = replace(DOWN, jobs=("job 9 of bob",))
    assert (hung.mend(node=busy).outcome, hung.mend(node=busy).why) == (
        "refused",
        "job 9 of bob runs there; try again when it ended (--even-with-job does not wait)",
    )
    assert (hung.kinds(), hung.switched()) == ([], [])
    done = hung.mend(node=DOWN)
    assert done.outcome == "done", done.why
    assert hung.switched() == ["0", "1"]
    assert hung.kinds() == ["fix_begun", "fix_ended", "proof_held"]


def test_a_host_that_jobs_may_be_given_to_is_never_switched_off(hung):
    usable = replace(DOWN, is_usable=True)
    for even in (False, True):
        refused = hung.mend(node=usable, even_with_job=even)
        assert (refused.outcome, "holds it for usable" in refused.why) == ("refused", True)
    assert hung.switched() == []


def test_a_job_on_a_host_that_is_off_is_left_to_its_scheduler_to_end(off):
    assert off.mend(node=replace(DOWN, jobs=("job 9 of bob",))).outcome == "refused"
    assert off.switched() == []


def test_what_was_killed_between_off_and_on_is_gone_on_with(hung):
    ledger = Ledger(history=hung.history, by="ann", clock=time.time)
    ledger.note(hung.story(), "fix_begun", says="ipmitool chassis power off", why="x")
    hung.controller.set_power(on=False)
    assert hung.mend(node=DOWN).outcome == "done"
    assert hung.switched() == ["1"]


def test_a_host_that_does_not_come_up_is_waited_for_so_long_and_no_longer(off):
    off.comes_up = False
    told = off.mend()
    assert (told.outcome, told.why) == ("refused", "telemetry.host still sees it")
    assert off.kinds() == ["fix_begun", "fix_ended", "proof_broken"]


def test_a_bmc_that_refuses_is_a_fix_that_failed(off):
    off.way = WithBmcs(SimulatedRemote(off.answer), Bmcs(Credentials(user="ADMIN", password="wrong")))
    told = off.mend()
    # The check cannot be put by it either.
    assert (told.outcome, told.why) == (
        "unknown",
        f"the check cannot tell whether it is still there: {LOST.says}; nothing was done",
    )
    assert off.kinds() == []


def test_a_ticket_for_what_the_event_log_blames_has_its_line(tmp_path, controller):
    controller.add((0x08, SUPPLY_1, 0x6F, 0xA1))
    silent = Silent(tmp_path, controller, on=False)
    (failed,) = [each for each in silent.sweep.verdicts[0].findings if each.cause == "power supply failed"]
    told = ticket_for(tmp_path / "s", failed.id)
    assert (told.to, told.host) == ("vendor", "gpu007")
    assert any("Failure detected | Asserted" in line for line in told.log_lines)


def test_the_next_step_of_such_a_story_is_known(off):
    from wholestack.health.fixes.catalog import mended

    story = off.story()
    fixable = (story.check, story.cause) in mended()
    assert (fixable, next_step(story, fixable=fixable).action) == (True, "drain")
