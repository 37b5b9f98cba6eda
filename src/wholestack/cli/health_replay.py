"""``wholestack health replay``: what a rule would have done."""

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wholestack.cli.health_history import default_history
from wholestack.cli.health_operations import who
from wholestack.cli.output import print_json
from wholestack.record import to_builtins

Flag = Annotated[bool, Parameter(negative="")]


def replay(
    rule: Path, /, *, by: str | None = None, history: Path | None = None, all: Flag = False, json: Flag = False
) -> int:
    """Replay a rule on all that the history knows: which hosts it would have drained, when, and how often wrongly.

    Only a rule that was replayed, and not changed since, may drain (`health drain --rule`); that it was is written into
    the history. A rule is a file of TOML: name, check (or a pattern such as gpu.*), seen, of ("seen in 2 of 3
    sweeps"), and as you like cause (a pattern), status (fail, or warn for warnings as well), soon_h (24: gone by itself
    within so many hours, it was wrong to drain).

    Exit codes: 0 it was never wrong; 1 it was; 3 it never drained anything that can be judged; 2 usage.

    Parameters
    ----------
    rule
        File of the rule.
    by
        Who does this; default: the user.
    history
        File of the history; default: see `wholestack health history add --help`.
    all
        Show every drain; else those that were wrong first, as many as a screen holds.
    json
        Print one JSON document.
    """
    from wholestack.health.history.store import History
    from wholestack.health.operations import replaying
    from wholestack.health.operations.rules import read_rule

    read, person, now = read_rule(rule), who(by), time.time()
    path = history or default_history()
    with History(path) as opened:
        found = replaying.replay(opened, read)
    with History(path, write=True) as opened:
        replaying.write_down(opened, found, by=person, at=now)
    if json:
        print_json(to_builtins(found))
    else:
        print(replaying.describe_replay(found, everything=all))
    return found.exit_code
