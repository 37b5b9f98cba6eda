"""``wholestack health ticket``: the evidence pack of a finding."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wholestack.cli.health_history import default_history
from wholestack.cli.output import print_json
from wholestack.record import to_builtins


def ticket(
    finding: str,
    /,
    *,
    folder: Annotated[Path, Parameter(name="--in")],
    out: Path | None = None,
    log: Path | None = None,
    history: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Put together what the one who acts on a finding needs: serial numbers, slot, versions, counters before and after,
    log lines, history, what was tried.

    Says what is missing where it is not complete. Secrets that are known for what they are (keys, tokens, passwords,
    values of environment variables) are masked; read it before it leaves the house. The same input gives the same
    bytes.

    Exit codes: 0 it is complete; 1 something is missing; 2 usage.

    Parameters
    ----------
    finding
        Id of a finding, or its beginning.
    folder
        The sweep that it is from.
    out
        Where it goes: a new folder, or a file that ends in .tar.gz; without it the page is only printed.
    log
        A log of the host (dmesg, journalctl -k): its lines that name the part are taken up.
    history
        File of the history; default: see `wholestack health history add --help`.
    json
        Print one JSON document.
    """
    from wholestack.health.history.store import History
    from wholestack.health.tickets.gathering import ticket_for
    from wholestack.health.tickets.packing import write_pack
    from wholestack.health.tickets.page import page

    path = history or default_history()
    if history is None and not path.exists():
        found = ticket_for(folder, finding, log=log)
    else:
        with History(path) as opened:
            found = ticket_for(folder, finding, opened, log=log)
    if out is not None:
        write_pack(found, out)
    if json:
        print_json(to_builtins(found))
    elif out is None:
        sys.stdout.write(page(found))
    else:
        missing = ", ".join(each.item.replace("_", " ") for each in found.missing)
        print(f"{out}: ticket for the {found.to}, {f'missing: {missing}' if missing else 'complete'}")
    return found.exit_code
