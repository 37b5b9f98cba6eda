"""Sweep simulated hosts whose faults are known, and count what was found.

The fleet is swept once while it is healthy, then faults are injected, time passes, and it is swept again with the first
sweep's counters: rates are judged as they are on real hosts. Outputs are rendered before the clock starts.
"""

import math
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wholestack.finding import Finding
from wholestack.health import catalog
from wholestack.health import sweep as sweeps
from wholestack.health.check import Expectation
from wholestack.health.describing import bullet, indented
from wholestack.health.earlier import EarlierSweep
from wholestack.health.names import fold
from wholestack.health.sending import commands_for
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.plan import PlannedFault, Schedule, read_plan
from wholestack.health.simulator.remote import FleetRemote
from wholestack.health.simulator.truth import Comparison, Found, Match, Truth, compare
from wholestack.health.sweep import Watch
from wholestack.health.verdicts import Sweep
from wholestack.record import Record, to_builtins

STEP_S = 600.0
"""Time passes in steps of a sweep every ten minutes."""
CONCURRENCY = 64
MOST_FAULTS = 40
"""That are shown, a line or two each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationFigures(Record):
    """What came of a simulated sweep."""

    hosts: int
    injected: int
    found: int
    """Injected faults of which a Finding says so."""
    right_part: int
    right_owner: int
    false_alarms: int
    """Hosts without a fault that were called unfit."""
    host_checks: int
    """Checks put, over all hosts; those skipped not counted."""
    unknown: int
    """Of these, those that could not be judged on hosts whose tools and connection are whole."""
    seconds: float
    """Wall time of the second sweep."""
    peak_bytes: int
    """Largest resident memory of this process, simulated hosts included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A simulated sweep beside the truth."""

    figures: SimulationFigures
    comparison: Comparison
    sweep: Sweep


async def simulate(
    count: int,
    *,
    seed: int,
    folder: Path,
    planned: Sequence[PlannedFault] | None = None,
    watch: Watch = lambda _: None,
    processes: int = 0,
) -> Simulated:
    """Sweep, break, wait, sweep again, compare.

    Args:
        count: Hosts.
        seed: Of fleet and faults.
        folder: Gets the two run directories, ``before`` and ``after``.
        planned: Faults; ``None`` for a drawn mixture.
        watch: Told of every host of the second sweep.
        processes: How many judge replies beside this one.

    Raises:
        InputError: the plan names a host or fault that is not there.
    """
    fleet = Fleet(count, seed=seed)
    remote = FleetRemote(fleet)
    await _sweep(fleet, remote, folder / "before", watch=lambda _: None, processes=processes)
    _break(fleet, planned)
    checks = catalog.chosen()
    remote.render_all(commands_for(catalog.probes_of(checks), Expectation()))
    found = await _sweep(fleet, remote, folder / "after", watch=watch, since=folder / "before", processes=processes)
    compared = compare(fleet.truths, {verdict.host: plain_findings(verdict.findings) for verdict in found.verdicts})
    return Simulated(figures=_figures(found, fleet.truths, compared), comparison=compared, sweep=found)


def planned_or_drawn(path: Path | None) -> tuple[PlannedFault, ...] | None:
    """The faults of a file; ``None``, for a drawn mixture, where there is no file.

    Raises:
        InputError: the file is wrong.
    """
    return read_plan(path) if path is not None else None


def broken_fleet(count: int, *, seed: int, planned: Sequence[PlannedFault] | None, now: float) -> Fleet:
    """A fleet with its faults, as it is now that all of them are there.

    Raises:
        InputError: the plan names a host or fault that is not there.
    """
    fleet = Fleet(count, seed=seed, start_s=now - _steps(planned) * STEP_S)
    _break(fleet, planned)
    return fleet


def document(simulated: Simulated) -> dict[str, object]:
    """As JSON has it: the figures, and every injected fault with what became of it, in the order of injection."""
    return {**to_builtins(simulated.figures), "faults": [_outcome(match) for match in simulated.comparison.matches]}


def describe_simulation(simulated: Simulated, *, everything: bool = False) -> str:
    """For a terminal: figures, then every injected fault, what was missed or wrongly blamed first.

    Args:
        simulated: To be described.
        everything: All faults; else as many as a screen holds.
    """
    figures = simulated.figures
    share = 100 * figures.unknown / max(1, figures.host_checks)
    matches = sorted(simulated.comparison.matches, key=lambda each: (_rank(each), each.truth.host))
    shown = matches if everything else matches[:MOST_FAULTS]
    lines = [
        f"{figures.hosts} simulated hosts swept in {figures.seconds:.1f} s, {figures.peak_bytes / 1e6:,.0f} MB",
        bullet("found", f"{figures.found} of {figures.injected} injected faults"),
        bullet("right", f"part {figures.right_part}, owner {figures.right_owner} of {figures.injected}"),
        bullet("alarms", f"{figures.false_alarms} healthy hosts called unfit"),
        bullet("unknown", f"{figures.unknown} of {figures.host_checks} host-checks ({share:.2f} %)"),
        *(_describe_match(each) for each in shown),
    ]
    if len(shown) < len(matches):
        lines.append(indented(f"and {len(matches) - len(shown)} more faults, found (--all shows them, --json has all)"))
    wrong = _wrongly_unfit(simulated)
    if wrong:
        lines += [bullet("wrongly", fold(wrong)), indented("called unfit; look with explain and sweep --all")]
    return "\n".join(lines)


def _rank(match: Match) -> int:
    """0 missed, 1 found with the wrong part or owner, 2 found."""
    return 0 if match.finding is None else 1 if not (match.right_part and match.right_owner) else 2


def _describe_match(match: Match) -> str:
    truth, found = match.truth, match.finding
    fault = f"{truth.host} {truth.fault} (severity {truth.severity:.2f})"
    if found is None:
        return bullet("missed", f"{fault} at {', '.join(truth.names) or 'the host as a whole'}")
    part = "right part" if match.right_part else f"wrong part {found.part}, it is {', '.join(truth.names)}"
    owner = "right owner" if match.right_owner else f"wrong owner {found.owner}, it is {' or '.join(truth.owners)}"
    return bullet(("missed", "wrong", "found")[_rank(match)], f"{fault}: {found.check}, {part}, {owner}")


def _outcome(match: Match) -> dict[str, object]:
    truth, found = match.truth, match.finding
    return {
        "host": truth.host,
        "fault": truth.fault,
        "severity": truth.severity,
        "part": list(truth.names),
        "owners": list(truth.owners),
        "found_by": found.check if found else None,
        "blamed": found.part if found else None,
        "owner": found.owner if found else None,
        "right_part": match.right_part,
        "right_owner": match.right_owner,
    }


def _break(fleet: Fleet, planned: Sequence[PlannedFault] | None) -> None:
    """Inject the faults and let time pass until the last of them is a step old."""
    if planned is None:
        fleet.inject_mixture()
        fleet.advance(STEP_S)
        return
    schedule = Schedule(planned, start_s=fleet.now)
    schedule.inject_due(fleet)
    for _ in range(_steps(planned)):
        fleet.advance(STEP_S)
        schedule.inject_due(fleet)


def _steps(planned: Sequence[PlannedFault] | None) -> int:
    last_s = max((each.at for each in planned or ()), default=0.0) * 3600
    return 1 + math.ceil(last_s / STEP_S)


async def _sweep(
    fleet: Fleet, remote: FleetRemote, folder: Path, *, watch: Watch, since: Path | None = None, processes: int
) -> Sweep:
    plan = sweeps.plan_for(fleet.hosts(), catalog.chosen(), {}, concurrency=CONCURRENCY, since=str(since or ""))
    before = EarlierSweep(since).before if since else lambda _: None
    with sweeps.create(folder, plan, at=fleet.now) as run:
        return await sweeps.sweep(run, remote, before=before, watch=watch, clock=lambda: fleet.now, processes=processes)


def plain_findings(findings: Sequence[Finding]) -> list[Found]:
    """As the simulator compares them: it knows nothing of Findings."""
    return [
        Found(
            status=each.status,
            part=each.part,
            owner=each.owner,
            cause=each.cause,
            check=each.check,
            evidence=each.evidence,
        )
        for each in findings
    ]


def _figures(sweep: Sweep, truths: Sequence[Truth], compared: Comparison) -> SimulationFigures:
    spoilt = {truth.host for truth in truths if truth.tool}
    put = [len(sweep.plan.checks) - len(verdict.skipped) for verdict in sweep.verdicts]
    return SimulationFigures(
        hosts=len(sweep.verdicts),
        injected=compared.injected,
        found=compared.found,
        right_part=compared.right_part,
        right_owner=compared.right_owner,
        false_alarms=compared.false_alarms,
        host_checks=sum(put),
        unknown=sum(len(verdict.unjudged) for verdict in sweep.verdicts if verdict.host not in spoilt),
        seconds=sweep.summary.seconds,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def _wrongly_unfit(simulated: Simulated) -> list[str]:
    broken = {match.truth.host for match in simulated.comparison.matches}
    return [each.host for each in simulated.sweep.verdicts if each.status == "fail" and each.host not in broken]
