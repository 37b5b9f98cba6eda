"""``wholestack health``: which machines may train, which part is broken, who owns it."""

import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from wholestack.cli.output import print_json
from wholestack.errors import InputError
from wholestack.finding import EXIT_OK, EXIT_UNKNOWN, exit_code
from wholestack.health import catalog
from wholestack.health.describing import describe_check, describe_judgement
from wholestack.health.judging import Judgement, read_saved
from wholestack.health.judging import judge as judge_saved
from wholestack.health.profile import expectation_from
from wholestack.record import to_builtins

Json = Annotated[bool, Parameter(negative="")]
Names = Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative="")]

app = App(
    name="health",
    help="Which machines may train, which part is broken, who owns it.",
    help_format="plaintext",
    result_action="return_value",
)


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
    expectation = expectation_from(_text(expect), where=str(expect), kind=kind) if expect else None
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
    rows = [describe_check(check) for check in catalog.CHECKS]
    if json:
        print_json([row.document() for row in rows])
    else:
        for row in rows:
            print(row.line())
        print(f"{len(rows)} checks")
    return EXIT_OK


def _show(found: Judgement, *, json: bool, everything: bool) -> int:
    shown = [each for each in found.findings if everything or each.status != "ok"]
    if json:
        print_json(
            {
                "status": found.status,
                "findings": [to_builtins(each) for each in shown],
                "skipped": [to_builtins(each) for each in found.skipped],
            }
        )
    else:
        print(describe_judgement(found, everything=everything))
    return exit_code(found.findings) if found.findings else EXIT_UNKNOWN


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", remedy="name an existing file") from error
