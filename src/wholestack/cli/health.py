"""``wholestack health``: which machines may train, which part is broken, who owns it."""

import asyncio
import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from wholestack.cli import health_bmc, health_cabling, health_history, health_operations, health_replay, health_ticket
from wholestack.cli.output import code_for, findings_document, print_json, read_text
from wholestack.finding import EXIT_OK
from wholestack.health import catalog
from wholestack.health.describing import describe_check, describe_judgement
from wholestack.health.judging import Judgement, read_saved
from wholestack.health.judging import judge as judge_saved
from wholestack.health.profile import expectation_from, read_profile
from wholestack.record import to_builtins

Json = Annotated[bool, Parameter(negative="")]
Flag = Annotated[bool, Parameter(negative="")]
Names = Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")]

app = App(
    name="health",
    help="Which machines may train, which part is broken, who owns it.",
    help_format="plaintext",
    result_action="return_value",
)
profile = App(
    name="profile",
    help="What each kind of host should be like: learn writes it from hosts called good.",
    help_format="plaintext",
    result_action="return_value",
)
app.command(profile)
app.command(
    "wholestack.cli.bootlog:app",
    name="bootlog",
    help="Boot logs: learn good boots of a kind of host, judge others, accept what is harmless.",
)
app.command(
    "wholestack.cli.probe:app",
    name="probe",
    help="Active checks of this host: exact products, memory, pace; `probe learn` learns the pace of a fleet.",
)
app.command(health_history.history)
app.command(health_history.fleet)
app.command(health_history.silence)
app.command(health_operations.stories)
app.command(health_operations.drain)
app.command(health_operations.undrain)
app.command(
    "wholestack.cli.health_export:export",
    name="export",
    help="Metrics for Prometheus, as a text file or over HTTP, with alert rules and a dashboard.",
)
app.command(health_bmc.bmc)
app.command(health_cabling.cabling)
app.command(health_operations.fix)
app.command(health_ticket.ticket)
app.command(health_replay.replay)


@app.command
def check(
    *,
    profile: Path | None = None,
    kind: str | None = None,
    only: Names = (),
    skip: Names = (),
    sudo: Flag = False,
    json: Json = False,
    all: Json = False,
) -> int:
    """Check this very machine, at once, without any set-up.

    Some probes need root; without it their verdict is unknown, never ok.

    Exit codes: 0 nothing wrong; 1 something is; 3 something could not be told; 2 usage.

    Parameters
    ----------
    profile
        What this machine should be like (TOML); also a manifest of its hardware (JSON).
    kind
        Which kind of host, where the profile has several.
    only
        Put only these checks: names, or nouns such as gpu for all of gpu.*.
    skip
        Leave these checks out.
    sudo
        Use sudo -n for what needs root.
    json
        Print one JSON document.
    all
        Show what is ok as well.
    """
    from wholestack.health.local import check_this_machine
    from wholestack.remote.local import LocalRemote

    expectation = expectation_from(read_text(profile), where=str(profile), kind=kind) if profile else None
    asking = check_this_machine(catalog.chosen(only, skip), LocalRemote(sudo=sudo), expectation=expectation)
    return _show(asyncio.run(asking), json=json, everything=all)


@app.command
def sweep(
    *hosts: str,
    profile: Path | None = None,
    only: Names = (),
    skip: Names = (),
    user: str | None = None,
    port: int | None = None,
    jump: str | None = None,
    identity: Path | None = None,
    known_hosts: Path | None = None,
    accept_new: Flag = False,
    concurrency: int | None = None,
    retries: int | None = None,
    sudo: Flag = False,
    since: Path | None = None,
    out: Path | None = None,
    resume: Path | None = None,
    json: Json = False,
    all: Json = False,
) -> int:
    """Check many machines over SSH, one round trip each; nothing is installed on them and nothing is changed.

    The user, port, key and jump host of a machine come from the options, else from the file of hosts, else from
    your ssh configuration. Host keys are verified; there is no way to give a password. One that does not answer is
    asked by its BMC, where the file of hosts and the environment say how (`wholestack health bmc --help`).

    Exit codes: 0 every host may train; 1 something is wrong; 3 something could not be told; 2 usage;
    130 interrupted (go on with --resume).

    Parameters
    ----------
    hosts
        A file of hosts (TOML, or an Ansible inventory), a Slurm node list such as gpu[001-128], or names.
    profile
        What each kind of host should be like (TOML); `wholestack health profile learn` writes one.
    only
        Put only these checks: names, or nouns such as gpu for all of gpu.*.
    skip
        Leave these checks out.
    user
        Log in as this user.
    port
        Connect to this port.
    jump
        Go through this host: [user@]host[:port].
    identity
        File of the private key.
    known_hosts
        File of known host keys, instead of your own.
    accept_new
        Trust the key of a host that is not known yet, and remember it. A key that changed is never trusted.
    concurrency
        Hosts at a time; default: 64.
    retries
        Further tries of a host that cannot be reached; default: 2.
    sudo
        Use sudo -n for what needs root.
    since
        An earlier sweep: error counters count from there instead of from boot.
    out
        Folder for the results; made if it is missing. Default: sweep-<time>.
    resume
        Go on with an interrupted sweep in this folder: only hosts without a result are asked. What was asked is kept
        with it and cannot be given again, but for --known-hosts and --accept-new.
    json
        Print one JSON document on stdout; everything else goes to stderr.
    all
        Show what is ok as well, and every finding of a group.
    """
    from wholestack.cli import sweeping

    asked = sweeping.Asked(
        hosts=hosts, profile=profile, only=only, skip=skip, user=user, port=port, jump=jump, identity=identity,
        concurrency=concurrency, retries=retries, sudo=sudo, since=since,
    )  # fmt: skip
    way = sweeping.Way(known_hosts=known_hosts, accept_new=accept_new)
    return sweeping.run(asked, way, out=out, resume=resume, json=json, everything=all)


@app.command
def judge(
    check: str,
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    expect: Path | None = None,
    kind: str | None = None,
    json: Json = False,
    all: Json = False,
) -> int:
    """Judge a saved output, for instance of a machine that is already off.

    Exit codes: 0 nothing wrong; 1 something is; 3 cannot be told (empty, cut, foreign text); 2 usage.

    Parameters
    ----------
    check
        Name of a check; `wholestack health checks` lists them with the formats that each reads.
    file
        The saved output, or - for standard input.
    expect
        What it should be: a profile (TOML), or a manifest of a node's hardware (JSON).
    kind
        Which kind of host, where the profile has several.
    json
        Print one JSON document.
    all
        Show what is ok as well.
    """
    expectation = expectation_from(read_text(expect), where=str(expect), kind=kind) if expect else None
    saved = read_saved(file, sys.stdin.buffer)
    return _show(judge_saved(check, saved, expectation=expectation, now=time.time()), json=json, everything=all)


@app.command
def checks(*, json: Json = False) -> int:
    """List every check: what it looks at, with which command, in which formats.

    Parameters
    ----------
    json
        Print one JSON document: a list.
    """
    rows = [describe_check(each) for each in catalog.CHECKS]
    if json:
        print_json([row.document() for row in rows])
    else:
        for row in rows:
            print(row.line())
        print(f"{len(rows)} checks")
    return EXIT_OK


@app.command
def explain(
    finding: str, /, *, found_in: Annotated[Path | None, Parameter(name="--in")] = None, json: Json = False
) -> int:
    """Say what a finding means, what was seen, who acts and what to do.

    Parameters
    ----------
    finding
        Id of a finding or its beginning; or the code of a cause, or the name of a check.
    found_in
        What the finding is of: the folder of a sweep or probe, or a file of what --json of a command printed
        (judge, check, bootlog judge, cabling).
    json
        Print one JSON document.
    """
    from wholestack.health.explaining import describe_meaning, findings_in
    from wholestack.health.explaining import explain as look_up

    meaning = look_up(finding, findings_in(found_in) if found_in else ())
    if json:
        print_json(meaning.document())
    else:
        print(describe_meaning(meaning))
    return EXIT_OK


@app.command
def diff(older: Path, newer: Path, /, *, json: Json = False) -> int:
    """Compare two sweeps: what is new, healed, changed, still so, and what could not be looked at again.

    Exit codes: 0 nothing new or worse; 1 something is; 3 something could not be looked at again; 2 usage.

    Parameters
    ----------
    older
        Folder of a sweep.
    newer
        Folder of a later sweep.
    json
        Print one JSON document.
    """
    from wholestack.health.difference import compare_sweeps, describe_difference

    found = compare_sweeps(older, newer)
    if json:
        print_json(found.document())
    else:
        print(describe_difference(found))
    return found.exit_code


@app.command
def simulate(
    *,
    hosts: int = 64,
    seed: int = 0,
    faults: Path | None = None,
    out: Path | None = None,
    serve: Flag = False,
    port: int = 2222,
    json: Json = False,
    all: Json = False,
) -> int:
    """Sweep simulated hosts whose faults are known, and count what is found, missed and wrongly called unfit.

    Exit codes: 0 every fault found and no false alarm; 1 otherwise; 2 usage.

    Parameters
    ----------
    hosts
        Number of hosts, of several kinds.
    seed
        Same seed, same hosts and faults.
    faults
        Which faults, where and when (TOML, [[fault]] entries; of an empty file none); default: a drawn mixture on a
        tenth of the hosts.
    out
        Folder for the two sweeps (with --serve: for what a client needs); default: kept nowhere
        (simulated-hosts with --serve).
    serve
        Keep the hosts up behind an SSH server on this machine, for ssh and sweeps by hand, until Ctrl-C.
    port
        Of that server.
    json
        Print one JSON document.
    all
        Show every injected fault, not only as many as a screen holds.
    """
    from wholestack.cli import simulating

    if serve:
        return simulating.serve(hosts, seed, faults, folder=out or Path("simulated-hosts"), port=port)
    return simulating.run(hosts, seed, faults, folder=out, json=json, everything=all)


@profile.command
def learn(sweep: Path, /, *, hosts: Names = (), out: Path | None = None, json: Json = False) -> int:
    """Write a profile from hosts that are called good: what they share is what is expected from now on.

    Refuses hosts that may not train, and hosts that disagree, by name.

    Parameters
    ----------
    sweep
        Folder of a sweep.
    hosts
        Learn from these only; default: every host of the sweep that may train.
    out
        File to write; default: standard output.
    json
        Print one JSON document: the expectations by kind of host, and the file where one was written.
    """
    from wholestack.health.learning import learn_from
    from wholestack.journal import write_atomic

    text = learn_from(sweep, hosts)
    if out is not None:
        write_atomic(out, text.encode())
    if json:
        kinds = read_profile(text).kinds
        print_json(
            {"kinds": {name: to_builtins(each) for name, each in kinds.items()}, "out": str(out) if out else None}
        )
    elif out is None:
        sys.stdout.write(text)
    else:
        print(f"{out} written; give it to a sweep with --profile {out}", file=sys.stderr)
    return EXIT_OK


def _show(found: Judgement, *, json: bool, everything: bool) -> int:
    if json:
        print_json(findings_document(found.findings, status=found.status, skipped=found.skipped, everything=everything))
    else:
        print(describe_judgement(found, everything=everything))
    return code_for(found.status, found.findings)
