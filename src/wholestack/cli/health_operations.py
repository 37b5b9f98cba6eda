"""``wholestack health stories``, ``drain``, ``undrain``, ``fix``: what acts on hosts after a sweep."""

import getpass
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wholestack.cli.health_bmc import credentials
from wholestack.cli.health_history import default_history
from wholestack.cli.output import print_json
from wholestack.errors import InputError
from wholestack.finding import EXIT_FINDINGS, EXIT_OK
from wholestack.record import to_builtins

if TYPE_CHECKING:
    from wholestack.health.operations.cluster import Cluster, Node
    from wholestack.health.operations.deeds import Ledger
    from wholestack.health.operations.draining import Decision
    from wholestack.health.operations.fixing import Case, Mended
    from wholestack.health.operations.story import FaultStory

Flag = Annotated[bool, Parameter(negative="")]


def who(by: str | None) -> str:
    """Who acts: who is named, else the user."""
    try:
        return by or getpass.getuser()
    except (KeyError, OSError) as error:
        raise InputError("nobody knows who runs this", remedy="give --by") from error


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """Which scheduler has the hosts."""

    kubernetes: str | None = None
    """Instead of Slurm, the cluster behind this API server (taint and cordon). Untested on a real cluster."""
    token: Path | None = None
    """With --kubernetes: file with a bearer token."""
    ca: Path | None = None
    """With --kubernetes: file with the certificate of its authority."""

    def open(self) -> "Cluster":
        """A way to it.

        Raises:
            InputError: the options do not go together.
        """
        if self.kubernetes is None:
            from wholestack.health.operations.slurm import Slurm

            if self.token is not None or self.ca is not None:
                raise InputError("--token and --ca are for --kubernetes", remedy="give its URL, or leave them out")
            return Slurm()
        from wholestack.health.operations.kubernetes import Kubernetes

        if self.token is None:
            raise InputError("--kubernetes without --token", remedy="name the file of a bearer token")
        return Kubernetes(self.kubernetes, token=self.token, ca=self.ca)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """Who acts by which history, and whether it is only shown."""

    by: str | None = None
    """Who does this; default: the user."""
    history: Path | None = None
    """File of the history; default: see `wholestack health history add --help`."""
    apply: Flag = False
    """Do it."""
    json: Flag = False
    """Print one JSON document."""

    @property
    def path(self) -> Path:
        """Of the history."""
        return self.history or default_history()

    @property
    def person(self) -> str:
        """Who acts."""
        return who(self.by)


SLURM, SHOWING = Scheduler(), Acting()
"""As it is where nothing is said."""


def stories(host: str | None = None, /, *, history: Path | None = None, all: Flag = False, json: Flag = False) -> int:
    """List the faults that are not over, what was done about each, and what comes next.

    Exit codes: 0 there is none; 1 there is one; 2 usage.

    Parameters
    ----------
    host
        Of this host only.
    history
        File of the history; default: see `wholestack health history add --help`.
    all
        Also those that are over.
    json
        Print one JSON document: a list.
    """
    from wholestack.health.history.store import History
    from wholestack.health.operations.telling import describe_stories, told_stories

    with History(history or default_history()) as opened:
        told = told_stories(opened, host, now=time.time(), everything=all)
    if json:
        print_json([to_builtins(each) for each in told])
    else:
        print(describe_stories(told))
    return EXIT_FINDINGS if any(each.is_open for each in told) else EXIT_OK


def drain(
    *hosts: str,
    finding: str = "",
    rule: Path | None = None,
    floor: str | None = None,
    inventory: Annotated[Path | None, Parameter(name="--hosts")] = None,
    scheduler: Scheduler = SLURM,
    acting: Acting = SHOWING,
) -> int:
    """Take hosts out of the scheduler for the worst that fails on them; running jobs go on.

    Shows what would happen; --apply does it. Never touches a host that a person drained, returned to work or
    silenced, and never leaves fewer usable hosts than the floor.

    Exit codes: 0 all of them are drained (or would be); 1 one was left or refused; 3 the scheduler did not do it;
    2 usage.

    Parameters
    ----------
    hosts
        Names, as the sweep and the scheduler have them.
    finding
        Drain for this finding (id or its beginning), also where it is only a warning.
    rule
        Instead of hosts: a file with a rule, which was replayed on this history (`health replay`) as it is. It names
        the hosts on which it holds now; one where a job runs is left.
    floor
        So many hosts must stay usable: a number, or a share of all such as 90%.
    inventory
        File of hosts whose [drain] floor counts where --floor is not given.
    """
    from wholestack.health.history.store import History
    from wholestack.health.operations import draining
    from wholestack.health.operations.deeds import Ledger, acting_alone
    from wholestack.health.operations.floor import floor_from
    from wholestack.health.operations.replaying import wanted_by
    from wholestack.health.operations.rules import read_rule

    if rule is not None and (hosts or finding):
        raise InputError("--rule beside hosts or --finding", remedy="a rule names its hosts; give one or the other")
    ruled = read_rule(rule) if rule is not None else None
    if ruled is None:
        _refuse_none(hosts)
    keep, cluster, path = floor_from(floor, inventory), scheduler.open(), acting.path
    with acting_alone(path) if acting.apply else nullcontext(), History(path, write=acting.apply) as opened:
        now = time.time()
        if ruled is not None:
            wanted = wanted_by(opened, ruled, now=now)
        else:
            wanted = draining.wanted_of(opened, hosts, now=now, finding=finding)
        decisions = draining.plan_drain(wanted, cluster.nodes(), cluster, floor=keep)
        if acting.apply:
            told = {each.story.id: each.story for each in wanted if each.story}
            person = acting.person if ruled is None else f"{acting.person}, by rule {ruled.name}"
            decisions = draining.drain(decisions, told, cluster, Ledger(history=opened, by=person, clock=time.time))
    return _show(decisions, json=acting.json)


def undrain(
    *hosts: str,
    scheduler: Scheduler = SLURM,
    acting: Acting = SHOWING,
) -> int:
    """Give hosts back that wholestack drained and whose fault is proved to be gone.

    Shows what would happen; --apply does it. A drain that a person set, or whose reason a person changed, stays.

    Exit codes: 0 all of them are at work (or would be); 1 one was left or refused; 3 the scheduler did not do it;
    2 usage.

    Parameters
    ----------
    hosts
        Names.
    """
    from wholestack.health.history.store import History
    from wholestack.health.operations import draining
    from wholestack.health.operations.deeds import Ledger, acting_alone

    _refuse_none(hosts)
    cluster, path = scheduler.open(), acting.path
    with acting_alone(path) if acting.apply else nullcontext(), History(path, write=acting.apply) as opened:
        now = time.time()
        decisions = draining.plan_undrain(opened, hosts, cluster.nodes(), cluster, now=now)
        if acting.apply:
            told = draining.told_by_id(opened, hosts, now=now)
            ledger = Ledger(history=opened, by=acting.person, clock=time.time)
            decisions = draining.undrain(decisions, told, cluster, ledger)
    return _show(decisions, json=acting.json)


def fix(
    finding: str,
    /,
    *,
    folder: Annotated[Path, Parameter(name="--in")],
    even_with_job: str = "",
    slurm: Flag = False,
    scheduler: Scheduler = SLURM,
    known_hosts: Path | None = None,
    acting: Acting = SHOWING,
) -> int:
    """Mend a finding for whose cause a safe, well-known remedy exists.

    Shows the exact commands; --apply runs them over SSH (those that switch the power of a host that does not answer:
    by its BMC, see `wholestack health bmc --help`) and puts the very check again that found it. Refused where a
    job runs or nobody can say so, where a person said no (`health silence`), after two fixes that did not help, and
    at the third time on one host in 30 days, which is hardware return.

    Exit codes: 0 it is mended (or would be); 1 it is still there, or was refused; 3 that cannot be told; 2 usage.

    Parameters
    ----------
    finding
        Id of a finding, or its beginning.
    folder
        The sweep that it is from; a history must have it.
    even_with_job
        Name of the host, to say that it may be mended although a job runs there.
    slurm
        Ask Slurm as well whether a job runs there (or the cluster of --kubernetes); by default only the GPUs are asked.
    known_hosts
        File of known host keys, instead of your own.
    """
    import asyncio

    from wholestack.health.history.store import History
    from wholestack.health.operations import fixing
    from wholestack.health.operations.deeds import Ledger, acting_alone
    from wholestack.health.outofband.asking import Bmcs

    path = acting.path
    case = fixing.case_of(folder, finding)
    if even_with_job and even_with_job != case.host.name:
        raise InputError(f"--even-with-job {even_with_job}", remedy=f"the finding is of {case.host.name}")
    node = None
    if acting.apply and (slurm or scheduler.kubernetes is not None):
        node = scheduler.open().nodes().get(case.host.name)
    with acting_alone(path) if acting.apply else nullcontext(), History(path, write=acting.apply) as opened:
        story = fixing.story_for(case, opened, now=time.time())
        found = fixing.plan_fix(case, story, show=Bmcs(credentials()).shown)
        if acting.apply:
            ledger = Ledger(history=opened, by=acting.person, clock=time.time)
            found = asyncio.run(_mend(case, story, ledger, known_hosts, node, even_with_job=bool(even_with_job)))
    if acting.json:
        print_json(to_builtins(found))
    else:
        print(fixing.describe_fix(found))
    return found.exit_code


async def _mend(
    case: "Case", story: "FaultStory", ledger: "Ledger", known_hosts: Path | None, node: "Node | None", *,
    even_with_job: bool,
) -> "Mended":  # fmt: skip
    from wholestack.cli import sweeping
    from wholestack.health.operations import fixing
    from wholestack.health.outofband.asking import Bmcs

    remote = sweeping.over_ssh(case.plan, sweeping.Way(known_hosts=known_hosts, accept_new=False))
    show = Bmcs(credentials()).shown
    try:
        return await fixing.mend(case, story, remote, ledger, node=node, even_with_job=even_with_job, show=show)
    finally:
        await remote.close()


def _show(decisions: Sequence["Decision"], *, json: bool) -> int:
    from wholestack.health.operations.draining import describe, exit_code_of

    if json:
        print_json([to_builtins(each) for each in decisions])
    else:
        print(describe(decisions))
    return exit_code_of(decisions)


def _refuse_none(hosts: Sequence[str]) -> None:
    if not hosts:
        raise InputError("no host is named", remedy="name hosts")
