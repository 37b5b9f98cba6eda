"""What ``wholestack health sweep`` does with its options: read what is asked, sweep, print."""

import asyncio
import os
import sys
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path

from wholestack.cli.health_bmc import credentials
from wholestack.cli.output import code_for, findings_document, print_json, read_text
from wholestack.cli.sweep_progress import SweepWatcher
from wholestack.errors import InputError
from wholestack.finding import finding
from wholestack.health import catalog
from wholestack.health import sweep as sweeps
from wholestack.health.earlier import EarlierSweep
from wholestack.health.grouping import describe_sweep
from wholestack.health.outofband.address import address_of
from wholestack.health.profile import Profile, read_profile
from wholestack.health.records import PLAN, HostVerdict, SweepPlan
from wholestack.health.verdicts import Sweep
from wholestack.remote.batch import Remote
from wholestack.remote.host import Host
from wholestack.remote.inventory import find_hosts
from wholestack.runs import RunDirectory

LARGE_FLEET = 256
"""Hosts from which on processes beside are worth their start, about a second."""
MOST_PROCESSES = 8
CONCURRENCY = 64
RETRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a new sweep is to do; see the options of the command."""

    hosts: tuple[str, ...]
    profile: Path | None
    only: tuple[str, ...]
    skip: tuple[str, ...]
    user: str | None
    port: int | None
    jump: str | None
    identity: Path | None
    concurrency: int | None
    retries: int | None
    sudo: bool
    since: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How host keys are verified."""

    known_hosts: Path | None
    accept_new: bool


def run(asked: Asked, way: Way, *, out: Path | None, resume: Path | None, json: bool, everything: bool) -> int:
    """Sweep and print; returns the exit code."""
    if resume is not None:
        _refuse_with_resume(asked, out)
        directory = sweeps.resume(resume)
    else:
        now = time.time()
        plan = _plan(asked)
        folder = out or Path(time.strftime("sweep-%Y%m%dT%H%M%S", time.localtime(now)))
        directory = sweeps.create(folder, plan, at=now)
    with directory:
        found = _sweep(directory, way)
    if json:
        print_json(document(found, everything=everything))
    else:
        put, left_out = len(found.plan.checks), len(found.plan.left_out)
        print(describe_sweep(found.verdicts, found.summary, put=put, left_out=left_out, everything=everything))
        print(f"\nkept in {found.folder}; wholestack health explain ID --in {found.folder}")
    return code_for(found.summary.status, [each for verdict in found.verdicts for each in verdict.findings])


def _refuse_with_resume(asked: Asked, out: Path | None) -> None:
    for field in fields(asked):
        if _given(getattr(asked, field.name)):
            name = "hosts" if field.name == "hosts" else f"--{field.name}"
            raise InputError(f"{name} cannot be given with --resume", remedy="a sweep keeps what it was asked")
    if out is not None:
        raise InputError("--out cannot be given with --resume", remedy="a sweep keeps what it was asked")


def document(sweep: Sweep, *, everything: bool = False) -> dict[str, object]:
    """As JSON has a sweep: counts, and by host what ``judge`` has.

    Where checks were left out, who may train is ``null``: it was not asked.
    """
    at, in_full = sweep.summary.at, not sweep.plan.left_out
    return {
        "status": sweep.summary.status,
        "in_full": in_full,
        "may_train": sweep.summary.may_train if in_full else None,
        "may_not": sweep.summary.may_not,
        "unknown": sweep.summary.unknown,
        "seconds": sweep.summary.seconds,
        "folder": str(sweep.folder),
        "hosts": {
            verdict.host: _host(verdict, at=at, in_full=in_full, everything=everything) for verdict in sweep.verdicts
        },
    }


def _host(verdict: HostVerdict, *, at: float, in_full: bool, everything: bool) -> dict[str, object]:
    passed = [finding(verdict.host, name, "ok", evidence=(), at=at) for name in verdict.passed] if everything else []
    shown = findings_document(
        (*verdict.findings, *passed), status=verdict.status, skipped=verdict.skipped, everything=everything
    )
    return shown | {"kind": verdict.kind, "may_train": verdict.may_train if in_full else None}


def processes_for(hosts: int) -> int:
    """How many processes judge replies: none for a small fleet, else one a core, up to eight."""
    return min(len(os.sched_getaffinity(0)), MOST_PROCESSES) if hosts >= LARGE_FLEET else 0


def _given(value: object) -> bool:
    """Whether an option was given: 0 is a value, a flag that is off and an empty list are none."""
    return value is not None and value is not False and value != ()


def _plan(asked: Asked) -> SweepPlan:
    if asked.port is not None and not 0 < asked.port < 1 << 16:
        raise InputError(f"port is {asked.port}, must be 1 to 65535")
    hosts = [_override(host, asked) for host in find_hosts(asked.hosts)]
    for host in hosts:
        if host.bmc is not None:
            address_of(host)
    profile = read_profile(read_text(asked.profile), where=str(asked.profile)) if asked.profile else Profile()
    if asked.since is not None:
        EarlierSweep(asked.since)
    return sweeps.plan_for(
        hosts,
        catalog.chosen(asked.only, asked.skip),
        profile.for_kinds(host.kind for host in hosts),
        concurrency=CONCURRENCY if asked.concurrency is None else asked.concurrency,
        retries=RETRIES if asked.retries is None else asked.retries,
        sudo=asked.sudo,
        since=str(asked.since.resolve()) if asked.since else "",
    )


def _override(host: Host, asked: Asked) -> Host:
    return replace(
        host,
        user=asked.user or host.user,
        port=asked.port or host.port,
        jump=asked.jump or host.jump,
        identity=str(asked.identity) if asked.identity else host.identity,
    )


def _sweep(directory: RunDirectory, way: Way) -> Sweep:
    plan = directory.read(PLAN, SweepPlan)
    before = EarlierSweep(Path(plan.since)).before if plan.since else lambda _: None
    with SweepWatcher(len(plan.hosts), sys.stderr) as watcher:
        try:
            return asyncio.run(_over_ssh(directory, plan, way, before, watcher))
        except KeyboardInterrupt:
            print(f"wholestack: interrupted; go on with --resume {directory.path}", file=sys.stderr)
            raise


async def _over_ssh(
    directory: RunDirectory, plan: SweepPlan, way: Way, before: sweeps.BeforeOf, watcher: SweepWatcher
) -> Sweep:
    remote = over_ssh(plan, way)
    try:
        return await sweeps.sweep(
            directory, remote, before=before, watch=watcher, processes=processes_for(len(plan.hosts))
        )
    finally:
        await remote.close()


def over_ssh(plan: SweepPlan, way: Way) -> Remote:
    """The way to the hosts of a plan, by the BMC of one that is silent.

    Raises:
        InputError: asyncssh is not installed, or the credentials for BMCs are wrong.
    """
    try:
        from wholestack.remote.ssh import SshRemote
    except ModuleNotFoundError as error:
        if error.name != "asyncssh":
            raise
        raise InputError(
            "a sweep needs asyncssh", remedy="in a clone: make venv; or pip install asyncssh pyyaml"
        ) from error
    remote = SshRemote(
        known_hosts=[way.known_hosts] if way.known_hosts else None,
        accept_new=way.accept_new,
        sudo=plan.sudo,
        max_connections=plan.concurrency,
        retries=plan.retries,
    )
    if all(host.bmc is None for host in plan.hosts):
        return remote
    from wholestack.health.outofband.asking import Bmcs, WithBmcs

    return WithBmcs(remote, Bmcs(credentials()))
