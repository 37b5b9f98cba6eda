"""Take hosts out and give them back: what is to happen is decided first (pure), shown, and only then done.

A host is drained for one story: the worst that is open on it. It is never drained below the floor, against a person's
word, or twice; it is given back only if its reason is still the one that was written, and what it was drained for is
proved to be gone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wholestack.errors import EngineError, InputError
from wholestack.finding import EXIT_FINDINGS, EXIT_OK, EXIT_UNKNOWN, WORST_FIRST
from wholestack.health.history.account import find_machine
from wholestack.health.history.store import History
from wholestack.health.operations.cluster import Cluster, Node, finding_of, reason_for
from wholestack.health.operations.deeds import Ledger
from wholestack.health.operations.floor import Floor
from wholestack.health.operations.story import FaultStory, stories
from wholestack.record import Record

Outcome = Literal["will", "done", "is_so", "left", "refused", "failed", "unknown"]
"""``will`` be done with ``--apply``; was ``done``; ``is_so`` already; ``left`` to a person; ``refused``; ``failed``;
``unknown``: a fix of which nobody knows whether it was done, or helped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Record):
    """What becomes of one host, and why."""

    host: str
    outcome: Outcome
    why: str
    reason: str = ""
    """What is or will be left with the node."""
    command: str = ""
    """The exact one."""
    story: str = ""
    is_by_person: bool = False
    """Whether it is at work although we drained it, which the story does not know yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One host that is to be drained."""

    host: str
    story: FaultStory | None
    """For which fault; ``None``: nothing is wrong with it."""
    told_by_name: bool = True
    """Whether a person named this very host; what a rule names is not drained while a job runs there."""


def exit_code_of(decisions: Iterable[Decision]) -> int:
    """1 where something is not as it was asked, 3 where it could not be done, else 0."""
    outcomes = {each.outcome for each in decisions}
    if "failed" in outcomes:
        return EXIT_UNKNOWN
    return EXIT_FINDINGS if outcomes & {"left", "refused"} else EXIT_OK


def host_stories(history: History, host: int, *, now: float) -> list[FaultStory]:
    """The stories of one machine."""
    return stories(history.findings(host), history.events(host), history.silences(), now=now)


def told_by_id(history: History, hosts: Sequence[str], *, now: float) -> dict[str, FaultStory]:
    """All stories of some hosts, by id.

    Raises:
        InputError: the history has no such host.
    """
    machines = [find_machine(history, name).id for name in dict.fromkeys(hosts)]
    return {each.id: each for machine in machines for each in host_stories(history, machine, now=now)}


def wanted_of(history: History, hosts: Sequence[str], *, now: float, finding: str = "") -> list[Wanted]:
    """What to drain hosts for: of each the worst story that is open, the oldest of these.

    Args:
        history: Open.
        hosts: Names.
        now: Seconds since the epoch.
        finding: Id of a Finding or its beginning, to drain for that one.

    Raises:
        InputError: the history has no such host, or the host no such Finding.
    """
    found = []
    for name in dict.fromkeys(hosts):
        machine = find_machine(history, name)
        told = host_stories(history, machine.id, now=now)
        fitting = [each for each in told if any(id_.startswith(finding) for id_ in each.findings)]
        if finding and not fitting:
            raise InputError(f"{name} has no finding {finding!r}", remedy=f"wholestack health history {name}")
        there = [each for each in fitting if each.gone is None and (finding or each.status == "fail")]
        worst = min(there, key=lambda each: (WORST_FIRST.index(each.status), each.first), default=None)
        found.append(Wanted(host=machine.name, story=worst))
    return found


def plan_drain(
    wanted: Sequence[Wanted], nodes: Mapping[str, Node], cluster: Cluster, *, floor: Floor
) -> list[Decision]:
    """What becomes of each host, in the order in which they are wanted: the first ones get what room there is."""
    room = sum(node.is_usable for node in nodes.values()) - floor.of(len(nodes))
    decisions = []
    for each in wanted:
        decision = _decide(each, nodes.get(each.host))
        if decision.outcome == "will":
            takes = nodes[each.host].is_usable
            if takes and room < 1:
                says = f"fewer than {floor.of(len(nodes))} of {len(nodes)} hosts would be left (floor {floor})"
                decision = replace(decision, outcome="refused", why=says)
            else:
                room -= takes
                shown = cluster.shown("drain", each.host, decision.reason)
                decision = replace(decision, command=shown)
        decisions.append(decision)
    return decisions


def _decide(wanted: Wanted, node: Node | None) -> Decision:
    host, story = wanted.host, wanted.story
    if node is None:
        return Decision(host=host, outcome="refused", why="the scheduler has no node of that name")
    if story is None:
        return Decision(host=host, outcome="refused", why="nothing that fails is open on it: no reason to drain it")
    reason = reason_for(story.cause, story.finding)
    said = Decision(host=host, outcome="will", why=story.cause, reason=reason, story=story.id)
    if node.is_drained and finding_of(node.reason):
        return replace(said, outcome="is_so", why="is drained by wholestack", reason=node.reason)
    if node.is_drained:
        by = f"{node.by}: " if node.by else ""
        return replace(said, outcome="left", why=f"somebody drained it ({by}{node.reason or 'no reason'})", reason="")
    if story.done.is_drained or story.done.by_person:
        why = "a person returned it to work; it is theirs until the fault is gone"
        return replace(said, outcome="left", why=why, is_by_person=story.done.is_drained)
    if story.veto:
        return replace(said, outcome="left", why=story.veto)
    if node.jobs and not wanted.told_by_name:
        return replace(said, outcome="refused", why=f"a job runs there ({node.jobs[0]}); drain it by name")
    return said


def drain(
    decisions: Iterable[Decision], told: Mapping[str, FaultStory], cluster: Cluster, ledger: Ledger
) -> list[Decision]:
    """Do what was decided; what was begun before and is so by now gets its end written down.

    Args:
        decisions: Of :func:`plan_drain`.
        told: Stories by id.
        cluster: The scheduler.
        ledger: Gets every deed.
    """
    return [_drained(each, told.get(each.story), cluster, ledger) for each in decisions]


def _drained(decision: Decision, story: FaultStory | None, cluster: Cluster, ledger: Ledger) -> Decision:
    if story is None:
        return decision
    if decision.outcome == "is_so" and story.done.doing == "drain":
        ledger.note(story, "drain_ended", says="was done when it was interrupted", why=story.cause)
    if decision.is_by_person:
        _note_person(decision, story, ledger)
    if decision.outcome != "will":
        return decision
    try:
        with ledger.deed(story, "drain", says=decision.command, why=story.cause):
            cluster.drain(decision.host, decision.reason)
            now = cluster.nodes().get(decision.host)
            if now is None or not now.is_drained or now.reason != decision.reason:
                raise EngineError(f"{decision.host}: the scheduler took it and shows it not")
    except EngineError as error:
        return replace(decision, outcome="failed", why=str(error))
    return replace(decision, outcome="done")


def _note_person(decision: Decision, story: FaultStory, ledger: Ledger) -> None:
    ledger.note(story, "undrained_by_person", says=f"{decision.host} is at work, nobody here did that", why="")


def plan_undrain(
    history: History, hosts: Sequence[str], nodes: Mapping[str, Node], cluster: Cluster, *, now: float
) -> list[Decision]:
    """What becomes of each host.

    Raises:
        InputError: the history has no such host.
    """
    return [_give_back(history, name, nodes.get(name), cluster, now) for name in dict.fromkeys(hosts)]


def _give_back(history: History, host: str, node: Node | None, cluster: Cluster, now: float) -> Decision:
    if node is None:
        return Decision(host=host, outcome="refused", why="the scheduler has no node of that name")
    machine = find_machine(history, host)
    told = host_stories(history, machine.id, now=now)
    ours = finding_of(node.reason)
    story = next((each for each in reversed(told) if ours in each.findings), None) if ours else None
    if not node.is_drained:
        begun = next((each for each in told if each.done.doing == "undrain"), None)
        drained = next((each for each in told if each.done.is_drained), None)
        story = begun or drained
        return Decision(
            host=host,
            outcome="is_so",
            why="is at work",
            story=story.id if story else "",
            is_by_person=story is not None and begun is None,
        )
    if not ours:
        by = f"{node.by}: " if node.by else ""
        return Decision(host=host, outcome="left", why=f"somebody drained it ({by}{node.reason or 'no reason'})")
    said = Decision(host=host, outcome="refused", why="", reason=node.reason)
    if story is None:
        return replace(said, why=f"this history knows nothing of finding {ours}")
    said = replace(said, story=story.id)
    others = [each for each in told if each.gone is None and each.status == "fail" and each.id != story.id]
    if story.veto:
        return replace(said, outcome="left", why=story.veto)
    if not _is_proved(story):
        return replace(said, why=f"not proved to be gone: {story.cause} (wholestack health stories {host})")
    if others:
        return replace(said, why=f"something else fails: {others[0].cause}")
    shown = cluster.shown("undrain", host, node.reason)
    return replace(said, outcome="will", why="the check no longer sees it", command=shown)


def _is_proved(story: FaultStory) -> bool:
    """By the check after a fix, or by a sweep that could see it and did not; not where a probe found it wrong."""
    return not story.done.is_wrong and (story.done.proved is True or story.gone is not None)


def undrain(
    decisions: Iterable[Decision], told: Mapping[str, FaultStory], cluster: Cluster, ledger: Ledger
) -> list[Decision]:
    """Do what was decided; see :func:`drain`."""
    return [_given_back(each, told.get(each.story), cluster, ledger) for each in decisions]


def _given_back(decision: Decision, story: FaultStory | None, cluster: Cluster, ledger: Ledger) -> Decision:
    if story is None:
        return decision
    if decision.is_by_person:
        _note_person(decision, story, ledger)
    elif decision.outcome == "is_so":
        ledger.note(story, "undrain_ended", says="was done when it was interrupted", why="")
    if decision.outcome != "will":
        return decision
    try:
        with ledger.deed(story, "undrain", says=decision.command, why=decision.why):
            cluster.undrain(decision.host, decision.reason)
            now = cluster.nodes().get(decision.host)
            if now is None or now.is_drained:
                raise EngineError(f"{decision.host}: the scheduler took it and shows it not")
    except EngineError as error:
        return replace(decision, outcome="failed", why=str(error))
    return replace(decision, outcome="done")


_WORDS: Mapping[Outcome, str] = {
    "will": "would", "done": "done", "is_so": "is so", "left": "left", "refused": "refused", "failed": "failed",
    "unknown": "unknown",
}  # fmt: skip


def describe(decisions: Sequence[Decision]) -> str:
    """For a terminal."""
    lines = []
    for each in decisions:
        lines.append(f"{_WORDS[each.outcome]:8} {each.host}: {each.why}")
        if each.command and each.outcome in ("will", "done", "failed"):
            lines.append(f"         {each.command}")
    if any(each.outcome == "will" for each in decisions):
        lines.append("nothing was done; --apply does it")
    return "\n".join(lines)
