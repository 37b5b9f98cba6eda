"""Mend one fault: show the exact commands; on request, on an idle host, run them; then ask the very check again.

Everything goes over the same remote as a sweep. The check is put before the fix as well: what is gone by itself, or was
mended by a run that was killed, is not mended again. After the fix it is put again until it no longer sees the fault or
the fix's time to settle is over; what cannot be told is no proof.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from wholestack.errors import EngineError, InputError
from wholestack.finding import EXIT_FINDINGS, EXIT_OK, EXIT_UNKNOWN, Finding
from wholestack.health import catalog
from wholestack.health.check import Before, Cause, Expectation, Seen
from wholestack.health.checks.nvidia import NVIDIA_SMI
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
from wholestack.health.operations.story import FaultStory, refusal_to_fix, stories
from wholestack.health.parts import identity_in
from wholestack.health.probe import NotThereError, UnreadableError
from wholestack.health.records import RESULTS, SweepPlan
from wholestack.health.result import HostResult, symptoms_of
from wholestack.health.sending import commands_for
from wholestack.record import Record
from wholestack.remote.batch import Command, Remote
from wholestack.remote.host import Host
from wholestack.runs import RunReader

MARGIN_S = 20.0
"""For the way to a host and back."""
LONGEST_SETTLE_S = 600.0
BETWEEN_S = 5.0
"""Between two looks while a fix settles."""
Pause = Callable[[float], Awaitable[None]]
Sight = Literal["there", "gone", "unknown"]


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
        if self.outcome == "failed":
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
    if not known or not any(check.name == case.finding.check for check in catalog.CHECKS):
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


def plan_fix(case: Case, story: FaultStory) -> Mended:
    """What would happen, as far as it can be told without asking the host.

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
        commands=tuple(command.shell for command in fix.commands(fault)),
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
        pause: Sleeps.

    Raises:
        InputError: there is no fix.
    """
    planned = plan_fix(case, story)
    sight = await look_again(case, remote, now=ledger.clock())
    if sight == "gone":
        return _already_gone(planned, story, ledger)
    if planned.outcome != "will":
        return planned
    refused = refusal_to_fix(story) or (sight == "unknown" and "the check cannot tell whether it is still there") or ""
    if not refused and not even_with_job:
        refused = await busy(case.host, remote, node, deadline_s=_deadline_s([NVIDIA_SMI.command]))
    if refused:
        return replace(planned, outcome="refused", why=refused)
    fix, fault = fix_of(case)
    try:
        with ledger.deed(story, "fix", says="; ".join(planned.commands), why=case.cause.says):
            for command in fix.commands(fault):
                await _run(case.host, command, remote)
    except EngineError as error:
        return replace(planned, outcome="failed", why=str(error))
    return await _prove(case, story, remote, ledger, planned, settle_s=fix.about.settle_s, pause=pause)


async def look_again(case: Case, remote: Remote, *, now: float) -> Sight:
    """Put the very check that found it, and compare with the other hosts of the sweep as it did."""
    checks = (catalog.named(case.finding.check),)
    commands = commands_for(catalog.probes_of(checks), case.expectation)
    reply = await remote.run(case.host, commands, deadline_s=_deadline_s(commands))
    result = judge_reply(reply, checks, expectation=case.expectation, before=case.before, now=now)
    if result.trouble is not None or result.unjudged or result.skipped:
        return "unknown"
    known = catalog.named_causes()
    others = [each for each in case.results if each.host != case.host.name]
    beside = compare([*others, _dressed(case, result)], case.plan.expectations, known).get(case.host.name, ())
    causes = {code: cause for code, (cause, _) in known.items()}
    own = [each for each in beside if each.check == case.finding.check]
    found = to_findings(case.host.name, diagnose([*symptoms_of(result, causes), *own]), at=result.at)
    here = [each for each in found if identity_in(each.part) == case.part]
    if any(each.cause == case.finding.cause or each.status == "fail" for each in here):
        return "there"
    return "unknown" if any(each.status == "unknown" for each in found) else "gone"


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


async def busy(host: Host, remote: Remote, node: Node | None, *, deadline_s: float) -> str:
    """What runs on a host; empty if it is idle. That nobody can say so is a reason too."""
    if node is not None and node.jobs:
        return f"{node.jobs[0]} runs there"
    reply = await remote.run(host, [NVIDIA_SMI.command], deadline_s=deadline_s)
    try:
        smi = Seen(reply.outputs, now=0.0).of(NVIDIA_SMI)
    except NotThereError:
        return "" if node is not None else "no scheduler and no GPU that says whether a job runs there"
    except UnreadableError as error:
        return f"it cannot be told whether a job runs there: {error}"
    for gpu in smi.gpus:
        for process in gpu.processes:
            return f"process {process.pid} ({process.name[:60]}) uses {gpu.part.identity}"
    return "" if smi.gpus or node is not None else "nvidia-smi lists no GPU: it cannot be told whether a job runs there"


async def _run(host: Host, command: Command, remote: Remote) -> None:
    reply = await remote.run(host, [command], deadline_s=_deadline_s([command]))
    output = reply.outputs.get(command.name)
    if output is None or output.ending != "ended":
        why = reply.detail or (output.ending.replace("_", " ") if output else "no answer")
        raise EngineError(f"{host.name}: {command.shell}: {why}")
    if output.exit_status:
        said = " ".join((output.stderr.decode(errors="replace") or output.text).split())[:200]
        raise EngineError(f"{host.name}: {command.shell}: exit status {output.exit_status}: {said}")


async def _prove(
    case: Case, story: FaultStory, remote: Remote, ledger: Ledger, done: Mended, *, settle_s: float, pause: Pause
) -> Mended:
    looks = 1 + int(min(settle_s, LONGEST_SETTLE_S) // BETWEEN_S)
    sight: Sight = "unknown"
    for place in range(looks):
        if place:
            await pause(BETWEEN_S)
        sight = await look_again(case, remote, now=ledger.clock())
        if sight == "gone":
            break
    kind, outcome, says = _PROOFS[sight]
    ledger.note(story, kind, says=f"{case.finding.check} {says}", why=case.cause.says)
    return replace(done, outcome=outcome, why=f"{case.finding.check} {says}")


def _already_gone(planned: Mended, story: FaultStory, ledger: Ledger) -> Mended:
    says = "the check no longer sees it"
    if story.done.doing == "fix":
        ledger.note(story, "fix_ended", says="was done when it was interrupted", why=planned.cause)
    if story.done.since is not None and story.done.proved is not True:
        ledger.note(story, "proof_held", says=says, why=planned.cause)
    return replace(planned, outcome="is_so", why=says)


_PROOFS: Mapping[Sight, tuple[str, Outcome, str]] = {
    "gone": ("proof_held", "done", "no longer sees it"),
    "there": ("proof_broken", "refused", "still sees it"),
    "unknown": ("proof_unknown", "failed", "cannot tell whether it is still there"),
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
    return "\n".join(lines)
