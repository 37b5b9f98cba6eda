"""Ask every host once, judge each as it answers, compare them, and keep what was found in a run directory.

A result is on the disk before it counts, so a sweep that is killed at any byte is resumed with the hosts that are left.
Outputs are let go as soon as they are judged: memory grows with what is kept of a host, a few kilobytes.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wholestack.errors import InputError, WholestackError
from wholestack.health import catalog
from wholestack.health.check import Before, Check, Expectation
from wholestack.health.judges import Judges
from wholestack.health.records import KIND, PLAN, RESULTS, SUMMARY, SweepPlan
from wholestack.health.result import HostResult
from wholestack.health.sending import commands_for
from wholestack.health.verdicts import Sweep, conclude, read_sweep
from wholestack.remote.batch import Remote
from wholestack.remote.host import Host
from wholestack.runs import RunDirectory, RunManifest

CONNECT_S = 20.0
"""For the way to a host and back, on top of the slowest probe."""
Watch = Callable[[HostResult], None]
"""Told of every host that is done, once it is on the disk."""
Clock = Callable[[], float]
BeforeOf = Callable[[str], Before | None]
"""What an earlier sweep left behind, by host."""


def plan_for(
    hosts: Sequence[Host],
    checks: Sequence[Check],
    expectations: Mapping[str, Expectation],
    *,
    concurrency: int,
    retries: int = 2,
    sudo: bool = False,
    since: str = "",
) -> SweepPlan:
    """Everything that is asked of a sweep.

    Raises:
        InputError: there is no host, or two of one name, or no check, or a number is out of its range.
    """
    names = [host.name for host in hosts]
    doubled = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if doubled:
        raise InputError(f"host {doubled[0]!r} is named twice", remedy="a host has one line in the inventory")
    if not hosts:
        raise InputError("no host to sweep", remedy="name hosts, or a file with hosts")
    if not checks:
        raise InputError("no check is left", remedy="see --only and --skip")
    if concurrency < 1:
        raise InputError(f"concurrency is {concurrency}, must be at least 1")
    if retries < 0:
        raise InputError(f"retries is {retries}, must be at least 0")
    slowest = max(probe.command.limit_s for probe in catalog.probes_of(tuple(checks)))
    return SweepPlan(
        hosts=tuple(hosts),
        checks=tuple(check.name for check in checks),
        left_out=tuple(check.name for check in catalog.chosen() if check not in checks),
        expectations=dict(expectations),
        deadline_s=slowest + CONNECT_S,
        concurrency=concurrency,
        retries=retries,
        sudo=sudo,
        since=since,
    )


def create(folder: Path, plan: SweepPlan, *, at: float) -> RunDirectory:
    """Make the run directory of a new sweep.

    Raises:
        RunDirectoryError: it exists and is not empty, or cannot be written.
    """
    config: dict[str, object] = {"hosts": len(plan.hosts), "checks": list(plan.checks)}
    manifest = RunManifest(kind=KIND, created_at=at, seed=0, config=config, versions=_versions())
    run = RunDirectory.create(folder, manifest)
    run.write(PLAN, plan)
    return run


def resume(folder: Path) -> RunDirectory:
    """Open the run directory of a sweep that was interrupted.

    Raises:
        InputError: it is the directory of a sweep that asked nobody yet.
        RunDirectoryError: it is no run directory, or that of another kind of run.
        RunBusyError: another process is at work in it.
    """
    run = RunDirectory.resume(folder, kind=KIND)
    if not (folder / PLAN).exists():
        run.close()
        raise InputError(f"{folder}: was ended before it asked anybody", remedy="remove it, or name another --out")
    return run


async def sweep(
    run: RunDirectory,
    remote: Remote,
    *,
    before: BeforeOf = lambda _: None,
    watch: Watch = lambda _: None,
    clock: Clock = time.time,
    processes: int = 0,
) -> Sweep:
    """Ask the hosts of a plan that have not answered yet, and conclude.

    Args:
        run: Made by :func:`create` or :func:`resume`; stays open.
        remote: The way to the hosts; stays open.
        before: Counters of an earlier sweep.
        watch: Told of every host, also of those that were done before a resumption.
        clock: Seconds since the epoch.
        processes: How many judge replies beside this one; worth it for hundreds of hosts.
    """
    if (run.path / SUMMARY).exists():
        return read_sweep(run.path)
    plan = run.read(PLAN, SweepPlan)
    results = {each.host: _slim(each) for each in run.journal(RESULTS, HostResult)}
    for each in results.values():
        watch(each)
    started = time.monotonic()

    def keep(result: HostResult) -> None:
        results[result.host] = _slim(result)
        watch(result)

    left = [host for host in plan.hosts if host.name not in results]
    with Judges(plan.checks, processes=processes) as judges:
        await _Asking(run, remote, plan, judges, before=before, keep=keep, clock=clock).all(left)
    # In the order of the plan, whoever answered first: the same answers give the same findings.
    ordered = [results[host.name] for host in plan.hosts]
    return conclude(run, plan, ordered, seconds=time.monotonic() - started, at=clock())


class _Asking:
    """As many hosts at a time as the plan says; one more task writes, so that nobody waits for the disk."""

    def __init__(
        self,
        run: RunDirectory,
        remote: Remote,
        plan: SweepPlan,
        judges: Judges,
        *,
        before: BeforeOf,
        keep: Watch,
        clock: Clock,
    ) -> None:
        self._run = run
        self._remote = remote
        self._plan = plan
        self._judges = judges
        self._before = before
        self._keep = keep
        self._clock = clock
        probes = catalog.probes_of(tuple(each for name in plan.checks if (each := catalog.named(name)).passive))
        self._expectations = {host.kind: plan.expectations.get(host.kind, Expectation()) for host in plan.hosts}
        self._commands = {kind: commands_for(probes, each) for kind, each in self._expectations.items()}
        self._done: asyncio.Queue[HostResult | None] = asyncio.Queue(maxsize=4 * plan.concurrency)

    async def all(self, hosts: Sequence[Host]) -> None:
        """Ask and keep.

        Raises:
            WholestackError: the first error of ours in any of the tasks, as it is, not in a group.
        """
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._ask_all(hosts))
                both.create_task(self._write())
        except BaseExceptionGroup as group:
            ours = next(_ours(group), None)
            if ours is None:
                raise
            raise ours from group

    async def _ask_all(self, hosts: Sequence[Host]) -> None:
        waiting = iter(hosts)
        async with asyncio.TaskGroup() as askers:
            for _ in range(min(self._plan.concurrency, len(hosts))):
                askers.create_task(self._ask(waiting))
        await self._done.put(None)

    async def _ask(self, waiting: Iterator[Host]) -> None:
        for host in waiting:
            commands, expectation = self._commands[host.kind], self._expectations[host.kind]
            reply = await self._remote.run(host, commands, deadline_s=self._plan.deadline_s)
            before = self._before(host.name)
            result = await self._judges.judge(reply, expectation=expectation, before=before, now=self._clock())
            await self._done.put(result)

    async def _write(self) -> None:
        """Put results on the disk in the order in which they come, many in one go where they come fast."""
        ended = False
        while not ended:
            waiting = [await self._done.get()]
            while not self._done.empty():
                waiting.append(self._done.get_nowait())
            ended = waiting[-1] is None
            results = [each for each in waiting if each is not None]
            await asyncio.to_thread(self._run.extend, RESULTS, results)
            for each in results:
                self._keep(each)


def _ours(group: BaseExceptionGroup[BaseException]) -> Iterator[WholestackError]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _ours(each)
        elif isinstance(each, WholestackError):
            yield each


def _slim(result: HostResult) -> HostResult:
    """Without what only the next sweep needs."""
    return replace(result, after=None)


def _versions() -> dict[str, str]:
    import platform
    from importlib import metadata

    return {"python": platform.python_version(), "wholestack": metadata.version("wholestack")}
