"""What the two sources of metrics tell, as one kind of value: when each host was asked, and what was seen of it then.

:func:`from_sweep` and :func:`from_history` read; :func:`joined` is pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from wholestack.errors import InputError, RunDirectoryError
from wholestack.finding import Status
from wholestack.health.history.failures import Offender, courses, offenders
from wholestack.health.history.looks import HostLook, Sight
from wholestack.health.history.silences import Silence, without_silenced
from wholestack.health.history.spans import ONE_LOOK_S, Event, FindingSpan, Machine, Sweeps
from wholestack.health.history.store import History
from wholestack.health.history.taking import look_at
from wholestack.health.looked import would_see
from wholestack.health.operations.story import TRANSITIONS, Done
from wholestack.health.records import PLAN, RESULTS, SUMMARY, SweepPlan, SweepSummary
from wholestack.runs import FINDINGS, MANIFEST, RunReader

SourceName = Literal["sweep", "history"]
CLOCK_S = 300.0
"""A sweep that ended so much later than now was timed by another clock: its age is not known, so it is stale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTold:
    """One host, as it was when it was asked last."""

    host: str
    kind: str
    at: float
    """When the sweep that asked it ended."""
    stale_s: float
    """How long after that something is known of it."""
    findings: tuple[FindingSpan, ...]
    """What is there."""
    in_full_at: float | None
    """When it was asked last with no check left out; ``None``: never, so that nothing is said on training."""
    in_full_stale_s: float = ONE_LOOK_S
    """How long after that it counts."""
    machine: int = 0
    """Its number in the history; 0 where there is none."""
    judged: frozenset[str] = frozenset()
    """Of a sweep that is read by itself: checks that were put, applied and could be read."""

    def is_fresh(self, now: float) -> bool:
        """Whether what it was is still believed."""
        return -CLOCK_S <= now - self.at <= self.stale_s

    def is_known(self, now: float) -> bool:
        """Whether it was looked at in full, and that is still believed: else nothing wrong is not fit."""
        return self.in_full_at is not None and now - self.in_full_at <= self.in_full_stale_s


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFigures:
    """How the newest sweep went."""

    seconds: float
    asked: int
    answered: int
    """Hosts of which at least one check could be judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one source tells."""

    source: SourceName
    hosts: tuple[HostTold, ...]
    ended: float
    """When its newest sweep ended."""
    figures: SweepFigures | None = None
    silences: tuple[Silence, ...] = ()
    offenders: tuple[Offender, ...] = ()
    drained: tuple[str, ...] = ()
    """Hosts that the events say were drained by us and not given back."""

    def is_fresh(self, now: float) -> bool:
        """Whether anything of it is still believed."""
        return any(each.is_fresh(now) for each in self.hosts)


def newest_sweep(folder: Path) -> Path:
    """The sweep itself, or of a folder of sweeps the one that was concluded last.

    Raises:
        InputError: there is none.
        RunDirectoryError: the folder cannot be read.
    """
    try:
        if (folder / MANIFEST).exists():
            return folder
        ended = {each: each.stat().st_mtime_ns for each in folder.glob(f"*/{SUMMARY}")}
    except OSError as error:
        raise RunDirectoryError(f"{folder}: cannot be read: {error.strerror}") from error
    if not ended:
        raise InputError(f"{folder}: no sweep that has ended", remedy="name the --out of a sweep, or a folder of such")
    return max(ended, key=lambda each: (ended[each], each.parent.name)).parent


def sweep_files(folder: Path) -> list[Path]:
    """Files of a sweep that metrics come from."""
    return [folder / name for name in (MANIFEST, PLAN, RESULTS, FINDINGS, SUMMARY)]


def history_files(path: Path) -> list[Path]:
    """Files of a history: what is not in the first yet is in the second."""
    return [path, path.with_name(f"{path.name}-wal")]


def from_sweep(folder: Path) -> Told:
    """What a concluded sweep tells.

    Raises:
        InputError: it is another kind of run, or has not ended.
        RunDirectoryError: it cannot be read.
        RecordError: its files do not belong together.
    """
    look = look_at(folder)
    run = RunReader(folder)
    summary, plan = run.read(SUMMARY, SweepSummary), run.read(PLAN, SweepPlan)
    hosts = tuple(
        HostTold(
            host=each.host,
            kind=each.kind,
            at=look.at,
            stale_s=ONE_LOOK_S,
            findings=tuple(_span(each, sight, look.at) for sight in each.sights),
            in_full_at=None if plan.left_out else look.at,
            judged=each.judged,
        )
        for each in look.hosts
    )
    answered = sum(bool(each.judged) for each in look.hosts)
    figures = SweepFigures(seconds=summary.seconds, asked=len(hosts), answered=answered)
    return Told(source="sweep", hosts=hosts, ended=look.at, figures=figures)


def from_history(path: Path, *, now: float) -> Told:
    """What a history tells.

    Args:
        path: Its file.
        now: Seconds since the epoch.

    Raises:
        InputError: there is no sweep in it.
        HistoryError: it cannot be read.
    """
    with History(path) as history:
        machines = [each for each in history.machines() if each.is_named]
        findings, silences, sweeps = history.findings(), history.silences(), history.sweeps()
        drained = _drained(history.events())
        if not machines:
            raise InputError(f"{path}: {history.why_empty()}", remedy="wholestack health history add SWEEP")
    named = {each.id for each in machines}
    there: dict[int, list[FindingSpan]] = {}
    for each in findings:
        if each.gone is None:
            there.setdefault(each.host, []).append(each)
    counted = [each for each in without_silenced(findings, silences) if each.host in named]
    until = min(now, sweeps.last)
    return Told(
        source="history",
        hosts=tuple(_of_machine(each, there.get(each.id, ()), sweeps) for each in machines),
        ended=sweeps.last,
        silences=tuple(silences),
        offenders=tuple(offenders(courses(machines, counted, sweeps), until)),
        drained=tuple(each.name for each in machines if each.id in drained),
    )


def joined(sources: Iterable[Told]) -> list[HostTold]:
    """Every host once, as the source that asked it last tells; of the same sweep the history, which knows more.

    What the history has and a later sweep could not have seen (checks were left out, the host did not answer) stays, as
    it would if the sweep were in the history.
    """
    hosts: dict[str, HostTold] = {}
    for told in sorted(sources, key=lambda each: each.source):  # the history first
        for each in told.hosts:
            known = hosts.get(each.host)
            if known is None:
                hosts[each.host] = each
            elif each.at > known.at:
                as_much = each.in_full_at is not None
                spans = {span.id: replace(span, host=known.machine) for span in each.findings}
                stays = {
                    span.id: span for span in known.findings if not would_see(span.check, each.judged, as_much=as_much)
                }
                hosts[each.host] = replace(
                    each,
                    findings=tuple((stays | spans).values()),
                    in_full_at=each.in_full_at if as_much else known.in_full_at,
                    stale_s=known.stale_s,
                    in_full_stale_s=max(known.in_full_stale_s, known.stale_s),
                    machine=known.machine,
                )
    return list(hosts.values())


def _of_machine(machine: Machine, there: Sequence[FindingSpan], sweeps: Sweeps) -> HostTold:
    line, in_full = sweeps.of(machine.id), sweeps.in_full(machine.id)
    return HostTold(
        host=machine.name,
        kind=machine.kind,
        at=line.times[-1],
        stale_s=line.stale_s,
        findings=tuple(there),
        in_full_at=in_full.times[-1] if in_full else None,
        in_full_stale_s=in_full.stale_s if in_full else ONE_LOOK_S,
        machine=machine.id,
    )


def _drained(events: Iterable[Event]) -> set[int]:
    """Machines with a story in which they are drained."""
    stories: dict[tuple[int, str], Done] = {}
    for event in events:
        if event.kind in TRANSITIONS:
            key = (event.host, event.subject)
            stories[key] = TRANSITIONS[event.kind](stories.get(key, Done()), event.at)
    return {machine for (machine, _), done in stories.items() if done.is_drained}


def _span(look: HostLook, sight: Sight, at: float) -> FindingSpan:
    status: Status = sight.status
    serial = next((seat.serial for seat in look.seats if seat.part == sight.part), "")
    return FindingSpan(
        id=sight.id,
        host=0,
        check=sight.check,
        part=sight.part,
        serial=serial,
        cause=sight.cause,
        owner=sight.owner,
        status=status,
        evidence=sight.evidence,
        first=at,
    )
