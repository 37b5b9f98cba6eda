"""``wholestack health history``, ``fleet`` and ``silence``: what was seen over time."""

import os
import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from wholestack.cli.output import parse_end, print_json
from wholestack.errors import InputError
from wholestack.finding import EXIT_OK
from wholestack.record import to_builtins

Json = Annotated[bool, Parameter(negative="")]

history = App(
    name="history",
    help="Everything of one host over time; `history add` takes sweeps up, `history retire` takes a host out.",
    help_format="plaintext",
    result_action="return_value",
)
silence = App(
    name="silence",
    help="What is known and shall not be raised, for a reason and until an end: add, list, lift.",
    help_format="plaintext",
    result_action="return_value",
)


def default_history() -> Path:
    """``$XDG_STATE_HOME/wholestack/health.sqlite``, by default under ``~/.local/state``."""
    state = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(state) if state and Path(state).is_absolute() else Path.home() / ".local" / "state"
    return folder / "wholestack" / "health.sqlite"


@history.command
def add(*sweeps: Path, history: Path | None = None, json: Json = False) -> int:
    """Take up concluded sweeps, in the order in which they ended; one that is there already changes nothing.

    Parameters
    ----------
    sweeps
        Folders of sweeps.
    history
        File of the history; made if it is missing. Default: wholestack/health.sqlite in $XDG_STATE_HOME or
        ~/.local/state.
    json
        Print one JSON document: a list.
    """
    from wholestack.health.history.store import History
    from wholestack.health.history.taking import in_order, look_at

    if not sweeps:
        raise InputError("no sweep to add", remedy="name folders of sweeps")
    rows = []
    folders = in_order(sweeps)
    with History(history or default_history(), write=True) as opened:
        for folder in folders:
            look = look_at(folder)
            added = opened.add(look)
            rows.append({"sweep": look.folder, "hosts": len(look.hosts), "new": added.is_new, "changed": added.changed})
    if json:
        print_json(rows)
    else:
        for row in rows:
            what = f"{row['changed']} of {row['hosts']} hosts changed" if row["new"] else "was there already"
            print(f"{row['sweep']}: {what}")
    return EXIT_OK


@history.default
def show(host: str, /, *, history: Path | None = None, json: Json = False) -> int:
    """Say how one host fared: since when, what was found and came back, how often it failed, what was changed.

    Exit codes: 0 it is well (or what is wrong is silenced); 1 something is wrong; 3 it is not known, or the host was
    not asked for too long; 2 usage.

    Parameters
    ----------
    host
        Name of a host; also the serial number of the machine or of one of its parts.
    history
        File of the history; default: see `wholestack health history add --help`.
    json
        Print one JSON document.
    """
    from wholestack.health.history.account import host_history
    from wholestack.health.history.describing import describe_host
    from wholestack.health.history.store import History

    now = time.time()
    with History(history or default_history()) as opened:
        found = host_history(opened, host, now=now)
    if json:
        print_json(to_builtins(found))
    else:
        print(describe_host(found))
    return found.exit_code


@history.command
def retire(host: str, /, *, why: str, by: str, history: Path | None = None, json: Json = False) -> int:
    """Take a host out of what is there: it counts no more in `health fleet` and in the metrics.

    Its past stays (`health history HOST`). A later sweep that sees it brings it back.

    Parameters
    ----------
    host
        Name or serial number of a host.
    why
        The reason.
    by
        The person who decides.
    history
        File of the history; default: see `wholestack health history add --help`.
    json
        Print one JSON document.
    """
    from wholestack.health.history.account import find_machine
    from wholestack.health.history.store import History

    with History(history or default_history(), write=True) as opened:
        machine = find_machine(opened, host)
        opened.retire(machine, by=by, why=why, at=time.time())
    if json:
        print_json({"retired": machine.name, "by": by.strip(), "why": why.strip()})
    else:
        print(f"{machine.name} is retired; a sweep that sees it brings it back")
    return EXIT_OK


def fleet(*, history: Path | None = None, false_rate: float | None = None, json: Json = False) -> int:
    """Say how the fleet fares: failures, repeat offenders, what flaps, faults that share a batch, what changes did.

    Exit codes: 0 all hosts are well; 1 something is wrong with one; 3 of some it is not known; 2 usage.

    Parameters
    ----------
    history
        File of the history; default: see `wholestack health history add --help`.
    false_rate
        A host is named as one that fails too often where a sound one fails again so soon with at most this
        probability; default: 0.15.
    json
        Print one JSON document.
    """
    from wholestack.health.history.account import fleet_history
    from wholestack.health.history.describing import describe_fleet
    from wholestack.health.history.failures import FALSE_RATE
    from wholestack.health.history.store import History

    rate = FALSE_RATE if false_rate is None else false_rate
    if not 0 < rate < 1:
        raise InputError(f"false rate is {rate}, must be between 0 and 1")
    with History(history or default_history()) as opened:
        found = fleet_history(opened, now=time.time(), false_rate=rate)
    if json:
        print_json(to_builtins(found))
    else:
        print(describe_fleet(found))
    return found.exit_code


@silence.command(name="add")
def silence_add(
    *,
    check: str = "",
    finding: str = "",
    host: str | None = None,
    part: str = "",
    reason: str,
    by: str,
    until: str,
    history: Path | None = None,
    json: Json = False,
) -> int:
    """Silence a check, a finding, a host or a part; what is given must all fit.

    Parameters
    ----------
    check
        Name of a check, or a pattern such as gpu.*.
    finding
        Id of a finding, or its beginning.
    host
        Name or serial number of a host.
    part
        Serial number of a part, wherever it sits, or its place, such as "gpu 0000:9b:00".
    reason
        Why.
    by
        Who says so.
    until
        When it ends, within ten years: a time from now such as 7d, or a date (2026-12-24, 2026-12-24T18:00, UTC).
    history
        File of the history; default: see `wholestack health history add --help`.
    json
        Print one JSON document.
    """
    from wholestack.health.explaining import check_fits
    from wholestack.health.history.account import find_machine
    from wholestack.health.history.silences import silence as new_silence
    from wholestack.health.history.store import History

    now = time.time()
    with History(history or default_history(), write=True) as opened:
        machine = find_machine(opened, host).id if host is not None else None
        new = new_silence(check=check, finding=finding, host=machine, part=part, reason=reason, by=by, since=now,
                          until=parse_end(until, now))  # fmt: skip
        if check:
            check_fits(check, lambda: {each.check for each in opened.findings()})
        number = opened.silence(new)
    if json:
        print_json({**to_builtins(new), "id": number})
    else:
        print(f"silence {number}: {new.scope}")
    return EXIT_OK


@silence.command(name="list")
def silence_list(*, history: Path | None = None, all: Json = False, json: Json = False) -> int:
    """List the silences that count now.

    Parameters
    ----------
    history
        File of the history; default: see `wholestack health history add --help`.
    all
        Also those that ended.
    json
        Print one JSON document: a list.
    """
    from wholestack.health.history.describing import describe_silence
    from wholestack.health.history.store import History

    now = time.time()
    with History(history or default_history()) as opened:
        shown = [each for each in opened.silences() if all or each.is_active(now)]
        names = {each.id: each.name for each in opened.machines()}
    if json:
        print_json([{**to_builtins(each), "host": names.get(each.host or 0)} for each in shown])
    else:
        for each in shown:
            print(describe_silence(each, names.get(each.host or 0, "")))
        print(f"{len(shown)} silence{'s' if len(shown) != 1 else ''}")
    return EXIT_OK


@silence.command(name="lift")
def silence_lift(number: int, /, *, reason: str, by: str, history: Path | None = None, json: Json = False) -> int:
    """End a silence before its time.

    Parameters
    ----------
    number
        As `silence list` shows it.
    reason
        Why.
    by
        Who says so.
    history
        File of the history; default: see `wholestack health history add --help`.
    json
        Print one JSON document.
    """
    from wholestack.health.history.store import History

    with History(history or default_history(), write=True) as opened:
        opened.lift(number, by=by, why=reason, at=time.time())
    if json:
        print_json({"lifted": number})
    else:
        print(f"silence {number} is lifted")
    return EXIT_OK
