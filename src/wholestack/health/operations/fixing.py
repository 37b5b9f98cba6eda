"""Mend one fault: show the exact commands; on request, on an idle host, run them; then ask the very check again.

Everything goes over the same remote as a sweep. The check is put before the fix as well: what is gone by itself, or was
mended by a run that was killed, is not mended again. After the fix it is put again until it no longer sees the fault or
the fix's time to settle is over; what cannot be told is no proof. A GPU or CPU is probed as well, where wholestack is
installed on the host: that it computes wrong outweighs a check that sees nothing.

A fix whose end is not known (killed here, or the connection broke) may still be at work: its time is waited out,
looking, before it is run again, and one that must not be run twice never is.

A fix whose commands go to a BMC is for a host that is silent: what runs there only a scheduler can say, and one that
this holds for usable is left alone, whatever else is asked for, since it is the way to it that is broken; so no fix
takes away a host that jobs may still be given to.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from wholestack.errors import EngineError, InputError
from wholestack.finding import EXIT_FINDINGS, EXIT_OK, EXIT_UNKNOWN, Finding
from wholestack.health import catalog
from wholestack.health.check import Before, Cause, Expectation, Seen
from wholestack.health.checks.nvidia import NVIDIA_SMI
from wholestack.health.connection import CHECK as CONNECTION
from wholestack.health.diagnosis import diagnose, to_findings
from wholestack.health.earlier import EarlierSweep
from wholestack.health.fixes.catalog import fixes_for
from wholestack.health.fixes.fix import Fault, Fix
from wholestack.health.fleet import compare
from wholestack.health.history.store import History
from wholestack.health.judges import judge_reply
from wholestack.health.operations.cluster import Node
from wholestack.health.operations.deeds import Ledger
from wholestack.health.operations.draining import Outcome
from wholestack.health.operations.locating import locate
from wholestack.health.operations.probing import probe_device
from wholestack.health.operations.story import WRONG, FaultStory, refusal_to_fix, stories
from wholestack.health.parts import identity_in
from wholestack.health.probe import NotThereError, UnreadableError
from wholestack.health.records import RESULTS, SweepPlan
from wholestack.health.result import HostResult, symptoms_of
from wholestack.health.sending import commands_for
from wholestack.record import Record
from wholestack.remote.batch import Command, Remote, Trouble
from wholestack.remote.host import Host
from wholestack.runs import RunReader

MARGIN_S = 20.0
"""For the way to a host and back."""
LONGEST_SETTLE_S = 600.0
BETWEEN_S = 5.0
"""Between two looks while a fix settles."""
Pause = Callable[[float], Awaitable[None]]
Show = Callable[[Host, Command], str]
"""The exact command as it is run for a host."""
Sight = Literal["there", "gone", "wrong", "unknown"]
"""``wrong``: the check no longer sees it, but a probe of the device finds it wrong."""
_REACHED: frozenset[Trouble | None] = frozenset({"lost", "timed_out", "protocol"})
"""Troubles with which a command may have run though nothing came back of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the check says of the fault now."""

    sight: Sight
    why: str = ""
    """Why it is not known, if so; or what a probe says."""
    is_sound: bool = False
    """A probe of the device found nothing wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One Finding of a sweep, with all that mending it needs."""

    finding: Finding
    cause: Cause
    host: Host
    plan: SweepPlan
    results: tuple[HostResult, ...]
    """Of all hosts of the sweep."""
    before: Before | None
    """What the sweep left behind of this host."""

    @property
    def part(self) -> str:
        """``kind key``."""
        return identity_in(self.finding.part)

    @property
    def expectation(self) -> Expectation:
        """Of the host's kind."""
        return self.plan.expectations.get(self.host.kind, Expectation())


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended(Record):
    """What became of a fix."""

    finding: str
    host: str
    part: str
    cause: str
    fix: str
    commands: tuple[str, ...]
    outcome: Outcome
    why: str
    story: str = ""

    @property
    def exit_code(self) -> int:
        """0 it is (or would be) mended; 1 it is still there, or was refused; 3 that cannot be told."""
        if self.outcome in ("failed", "unknown"):
            return EXIT_UNKNOWN
        return EXIT_OK if self.outcome in ("will", "done", "is_so") else EXIT_FINDINGS


def case_of(folder: Path, name: str) -> Case:
    """A Finding of a sweep.

    Args:
        folder: Of the sweep.
        name: Id of the Finding or its beginning.

    Raises:
        InputError: there is no such Finding, it is of another version, or not of a check that can be put again.
        RunDirectoryError: it is no run directory.
    """
    found = locate(folder, name)
    return Case(
        finding=found.finding,
        cause=found.cause,
        host=found.host,
        plan=found.plan,
        results=tuple(RunReader(folder).journal(RESULTS, HostResult)),
        before=EarlierSweep(folder).before(found.host.name),
    )


def fix_of(case: Case) -> tuple[Fix, Fault]:
    """The fix for a Finding.

    Raises:
        InputError: there is none; says what a person can do.
    """
    fault = Fault(host=case.host.name, cause=case.cause.code, part=case.part)
    known = fixes_for(case.cause.code)
    if not known or case.finding.check not in (CONNECTION, *(check.name for check in catalog.CHECKS)):
        raise InputError(
            f"no fix for {case.cause.code}: {case.cause.says}", remedy=f"{case.cause.owner}: {case.cause.remedy}"
        )
    return known[0], fault


def story_for(case: Case, history: History, *, now: float) -> FaultStory:
    """The story that the Finding is in.

    Raises:
        InputError: the history does not have it.
    """
    told = stories(history.findings(), history.events(), history.silences(), now=now)
    for story in reversed(told):
        if case.finding.id in story.findings:
            return story
    raise InputError(f"finding {case.finding.id} is not in the history", remedy="wholestack health history add SWEEP")


def as_it_is(host: Host, command: Command) -> str:
    """How a command is shown that is run on the host itself."""
    return command.shell


def plan_fix(case: Case, story: FaultStory, *, show: Show = as_it_is) -> Mended:
    """What would happen, as far as it can be told without asking the host.

    Args:
        case: Of :func:`case_of`.
        story: That it is in.
        show: Tells the exact commands.

    Raises:
        InputError: there is no fix.
    """
    fix, fault = fix_of(case)
    refused = refusal_to_fix(story) if story.done.doing != "fix" or story.veto else ""
    outcome: Outcome = "left" if story.veto else "refused" if refused else "will"
    return Mended(
        finding=case.finding.id,
        host=case.host.name,
        part=case.part,
        cause=case.cause.code,
        fix=fix.about.name,
        commands=tuple(show(case.host, command) for command in fix.commands(fault)),
        outcome=outcome,
        why=refused or fix.about.says,
        story=story.id,
    )


async def mend(
    case: Case,
    story: FaultStory,
    remote: Remote,
    ledger: Ledger,
    *,
    node: Node | None = None,
    even_with_job: bool = False,
    show: Show = as_it_is,
    pause: Pause = asyncio.sleep,
) -> Mended:
    """Do it.

    Args:
        case: Of :func:`case_of`.
        story: That it is in.
        remote: The way to the host.
        ledger: Gets every deed.
        node: The host as its scheduler has it, where one was asked.
        even_with_job: Whether this very host was named as one that may be mended although a job runs there.
        show: Tells the exact commands, as they are written down.
        pause: Sleeps.

    Raises:
        InputError: there is no fix.
    """
    planned = plan_fix(case, story, show=show)
    look, told = await _look_first(case, story, remote, ledger, planned, pause=pause)
    if told is not None:
        return told
    fix, fault = fix_of(case)
    refused = refusal_to_fix(story)
    if not refused and story.done.doing == "fix" and not fix.about.is_repeatable:
        refused = "nobody knows whether it ran, and it must not run twice: look at the host, or hand it over"
    if not refused and look.sight == "unknown":
        return replace(planned, outcome="unknown", why=f"{_CANNOT_TELL}: {look.why}; nothing was done")
    refused = refused or _still_usable(fix, node)
    if not refused and not even_with_job:
        refused = await busy(case.host, remote, node, fix, deadline_s=_deadline_s([NVIDIA_SMI.command]))
    if refused:
        return replace(planned, outcome="refused", why=refused)
    try:
        with ledger.deed(story, "fix", says="; ".join(planned.commands), why=case.cause.says) as deed:
            for command in fix.commands(fault):
                if not deed.unknown:
                    deed.unknown = await _run(case.host, command, remote)
    except EngineError as error:
        return replace(planned, outcome="failed", why=str(error))
    if deed.unknown:
        return replace(planned, outcome="unknown", why=deed.unknown)
    look = await look_again(case, remote, now=ledger.clock())
    look = await _wait(case, remote, ledger, look, wait_s=_settle_s(fix), pause=pause)
    look = await _probed(case, remote, look)
    return _proved(case, story, ledger, planned, look)


async def _look_first(
    case: Case, story: FaultStory, remote: Remote, ledger: Ledger, planned: Mended, *, pause: Pause
) -> tuple[Look, Mended | None]:
    """What the check says before anything is done, and what becomes of the fix if that is the end of it.

    A fix that was begun and never proved has its time first; if it had ended, its proof is all that is missing.
    """
    look = await look_again(case, remote, now=ledger.clock())
    done = story.done
    is_unproved = planned.outcome != "left" and done.tried is not None and done.proved is None
    if look.sight == "there" and is_unproved:
        fix, fault = fix_of(case)
        ends = (done.tried or 0.0) + sum(command.limit_s for command in fix.commands(fault)) + _settle_s(fix)
        look = await _wait(case, remote, ledger, look, wait_s=ends - ledger.clock(), pause=pause)
        if look.sight != "gone" and not done.doing:
            return look, _proved(case, story, ledger, planned, look)
    if look.sight == "gone":
        if planned.outcome != "left" and done.tried is not None and (done.proved is None or done.is_wrong):
            look = await _probed(case, remote, look)
        if done.is_wrong and not look.is_sound:
            return look, replace(planned, outcome="refused", why=WRONG)
        return look, _already_gone(case, planned, story, ledger, look)
    return look, None if planned.outcome == "will" else planned


def _settle_s(fix: Fix) -> float:
    return min(fix.about.settle_s, LONGEST_SETTLE_S)


async def _wait(
    case: Case, remote: Remote, ledger: Ledger, look: Look, *, wait_s: float, pause: Pause
) -> Look:  # fmt: skip
    """Look until the fault is gone or the time is over; what the last look says."""
    until = ledger.clock() + wait_s
    for _ in range(math.ceil(max(0.0, wait_s) / BETWEEN_S)):
        # A look at a host that is silent takes longer than the pause.
        if look.sight == "gone" or ledger.clock() > until:
            break
        await pause(BETWEEN_S)
        look = await look_again(case, remote, now=ledger.clock())
    return look


async def look_again(case: Case, remote: Remote, *, now: float) -> Look:
    """Put the very check that found it, and compare with the other hosts of the sweep as it did."""
    # That the host does not answer is seen by whoever asks it anything.
    silence = case.finding.check == CONNECTION
    checks = () if silence else (catalog.named(case.finding.check),)
    commands = commands_for(catalog.probes_of(checks), case.expectation)
    reply = await remote.run(case.host, commands, deadline_s=_deadline_s(commands))
    result = judge_reply(reply, checks, expectation=case.expectation, before=case.before, now=now)
    if (result.trouble is not None and not silence) or result.unjudged or result.skipped:
        why = reply.detail or (
            result.skipped[0].detail if result.skipped else "its output did not come or is no output"
        )
        return Look(sight="unknown", why=why)
    known = catalog.named_causes()
    others = [each for each in case.results if each.host != case.host.name]
    beside = compare([*others, _dressed(case, result)], case.plan.expectations, known).get(case.host.name, ())
    causes = {code: cause for code, (cause, _) in known.items()}
    own = [each for each in beside if each.check == case.finding.check]
    found = to_findings(case.host.name, diagnose([*symptoms_of(result, causes), *own]), at=result.at)
    here = [each for each in found if identity_in(each.part) == case.part]
    if any(each.cause == case.finding.cause or each.status == "fail" for each in here):
        return Look(sight="there")
    blind = next((each for each in found if each.status == "unknown"), None)
    return Look(sight="gone") if blind is None else Look(sight="unknown", why=blind.cause)


def _dressed(case: Case, result: HostResult) -> HostResult:
    """The new look with the rest of what the host said in the sweep, so that it is compared with its like."""
    old = next((each for each in case.results if each.host == case.host.name), None)
    if old is None:
        return result
    new = {each.name for each in result.traits}
    shift = len(result.parts)
    kept = [
        replace(each, parts=tuple(part + shift for part in each.parts)) for each in old.traits if each.name not in new
    ]
    return replace(result, parts=(*result.parts, *old.parts), traits=(*result.traits, *kept))


async def busy(host: Host, remote: Remote, node: Node | None, fix: Fix, *, deadline_s: float) -> str:
    """What runs on a host; empty if it is idle. That nobody can say so is a reason too."""
    if node is not None and node.jobs:
        return f"{node.jobs[0]} runs there{_WAIT}"
    if fix.about.by_bmc:
        known = node is not None or not fix.about.interrupts
        return "" if known else "it does not answer: only its scheduler can say whether a job runs there (--slurm)"
    reply = await remote.run(host, [NVIDIA_SMI.command], deadline_s=deadline_s)
    try:
        smi = Seen(reply.outputs, now=0.0).of(NVIDIA_SMI)
    except NotThereError:
        return "" if node is not None else "no scheduler and no GPU that says whether a job runs there"
    except UnreadableError as error:
        return f"it cannot be told whether a job runs there: {error}"
    for gpu in smi.gpus:
        for process in gpu.processes:
            return f"process {process.pid} ({process.name[:60]}) uses {gpu.part.identity}{_WAIT}"
    return "" if smi.gpus or node is not None else "nvidia-smi lists no GPU: it cannot be told whether a job runs there"


def _still_usable(fix: Fix, node: Node | None) -> str:
    if node is None or not node.is_usable or not (fix.about.by_bmc and fix.about.interrupts):
        return ""
    return "its scheduler holds it for usable: either the way to it is broken and not the host, or drain it first"


async def _run(host: Host, command: Command, remote: Remote) -> str:
    """Why it is not known whether it was done; empty if it was.

    Raises:
        EngineError: it was not done, or says itself that it failed.
    """
    reply = await remote.run(host, [replace(command, once=True)], deadline_s=_deadline_s([command]))
    output = reply.outputs[command.name]
    if output.ending == "ended" and output.exit_status:
        said = " ".join((output.stderr.decode(errors="replace") or output.text).split())[:200]
        raise EngineError(f"{host.name}: {command.shell}: exit status {output.exit_status}: {said}")
    if output.ending == "ended":
        return ""
    why = f"{host.name}: {command.shell}: {reply.detail or output.ending.replace('_', ' ')}"
    if output.ending in ("timed_out", "hung") or (output.ending == "not_run" and reply.trouble in _REACHED):
        return f"{why}; nobody knows whether it was done"
    raise EngineError(why)


def _proved(case: Case, story: FaultStory, ledger: Ledger, done: Mended, look: Look) -> Mended:
    kind, outcome, says = _PROOFS[look.sight]
    between = "; " if look.sight == "gone" else ": "
    says = f"{case.finding.check} {says}{between + look.why if look.why else ''}"
    ledger.note(story, kind, says=says, why=case.cause.says)
    return replace(done, outcome=outcome, why=says)


async def _probed(case: Case, remote: Remote, look: Look) -> Look:
    """The same, and what a probe says of the device where the check no longer sees the fault."""
    found = await probe_device(case.host, case.part, remote) if look.sight == "gone" else None
    if found is None:
        return look
    sight: Sight = "wrong" if found.status == "wrong" else "gone"
    return Look(sight=sight, why=found.says, is_sound=found.status == "sound")


def _already_gone(case: Case, planned: Mended, story: FaultStory, ledger: Ledger, look: Look) -> Mended:
    says = f"the check no longer sees it{f'; {look.why}' if look.why else ''}"
    if story.done.doing == "fix":
        ledger.note(story, "fix_ended", says="was done when it was interrupted", why=planned.cause)
    if look.sight == "wrong":
        return _proved(case, story, ledger, planned, look)
    if story.done.since is not None and story.done.proved is not True:
        ledger.note(story, "proof_held", says=says, why=planned.cause)
    return replace(planned, outcome="is_so", why=says)


_WAIT = "; try again when it ended (--even-with-job does not wait)"
_CANNOT_TELL = "the check cannot tell whether it is still there"
_PROOFS: Mapping[Sight, tuple[str, Outcome, str]] = {
    "gone": ("proof_held", "done", "no longer sees it"),
    "there": ("proof_broken", "refused", "still sees it"),
    "wrong": ("probe_broken", "refused", "no longer sees it, but a probe finds the device wrong"),
    "unknown": ("proof_unknown", "unknown", "cannot tell whether it is still there"),
}


def _deadline_s(commands: Sequence[Command]) -> float:
    return max(command.limit_s for command in commands) + MARGIN_S


def describe_fix(found: Mended) -> str:
    """For a terminal."""
    words = {"will": "would", "is_so": "is so", "refused": "no"}
    lines = [f"{found.host}, {found.part}: {found.cause}", f"{words.get(found.outcome, found.outcome)}: {found.why}"]
    lines += [f"  {command}" for command in found.commands]
    if found.outcome == "will":
        lines.append("nothing was done; --apply runs this, if no job runs there, and puts the check again")
    else:
        lines.append(f"what comes next: wholestack health stories {found.host}")
    return "\n".join(lines)
