"""``wholestack health bootlog``: are the lines of a boot familiar, expected, and in the expected order?"""

import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from wholestack.cli.live import LiveWatcher
from wholestack.cli.output import code_for, parse_duration, parse_end, print_json
from wholestack.errors import InputError
from wholestack.finding import EXIT_OK
from wholestack.health.bootlog.acceptance import accept as decide
from wholestack.health.bootlog.boots import WINDOW_S
from wholestack.health.bootlog.folder import judge_file, learn_files, lines_to_accept
from wholestack.health.bootlog.learning import Learner
from wholestack.health.bootlog.records import read_model
from wholestack.health.bootlog.showing import day, describe_judged, describe_learnt, judged_document
from wholestack.health.cleaning import printable
from wholestack.journal import changing, write_atomic
from wholestack.record import to_builtins, to_json

Flag = Annotated[bool, Parameter(negative="")]
PLAIN_EVERY_S = 10.0

app = App(
    name="bootlog",
    help="Boot logs: learn good boots of a kind of host, judge others, accept what is harmless.",
    help_format="plaintext",
    result_action="return_value",
)


@app.command
def learn(*logs: Path, model: Path, window: str | None = None, json: Flag = False) -> int:
    """Learn how a kind of host boots, from some boots that are called good.

    Reads dmesg (also -T, -x, --time-format iso), journalctl -k (-o short,
    short-iso, short-monotonic), syslog and /dev/kmsg; each file's format is
    found out. A host is named by its log, else by the folder under the one
    that is given, else by the file's name up to the first dot. 20 boots of
    several hosts tell well what is always there; from fewer it is said what
    cannot be told. The same boot in two files counts once.

    Parameters
    ----------
    logs
        Folders of boot logs, and files.
    model
        File of the model. If it is there, the boots are added to it. While one command changes it another that would
        is refused.
    window
        How long after its start a boot is looked at; default: 10m. A model keeps its own.
    json
        Print one JSON document.
    """
    if not logs:
        raise InputError("no logs to learn from", remedy="name a folder of good boots")
    with changing(model):
        old = read_model(model) if model.exists() else None
        if old is not None and window is not None:
            raise InputError(f"{model}: keeps its window of {old.window_s:g} s", remedy="leave --window out")
        learner = Learner(old, window_s=parse_duration(window) if window else WINDOW_S)
        with _Files() as progress:
            learnt = learn_files(logs, learner, progress)
        write_atomic(model, to_json(learner.model()) + b"\n")
    if json:
        print_json({"model": str(model), **to_builtins(learnt)})
    else:
        print(describe_learnt(learnt, str(model)))
    return EXIT_OK


@app.command
def judge(
    model: Path,
    file: Annotated[Path, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    boot: int | None = None,
    host: str | None = None,
    json: Flag = False,
    all: Flag = False,
) -> int:
    """Judge a boot: unknown lines, missing lines, other values, another order.

    One fault is one finding, with its lines and in how many of the good boots
    they were. What cannot be told (the log is cut, lines were suppressed,
    another kernel, too few boots) is unknown, never ok.

    Exit codes: 0 nothing wrong; 1 something is; 3 something could not be told; 2 usage.

    Parameters
    ----------
    model
        File that `wholestack health bootlog learn` wrote.
    file
        A boot log, in any of the formats that are learnt.
    boot
        Which boot of the file, from 1; default: the last.
    host
        Whose log it is; default: as the log says, else the file's name.
    json
        Print one JSON document.
    all
        Show what is ok as well.
    """
    judged = judge_file(read_model(model), file, boot=boot, host=host or "", now=time.time())
    if json:
        print_json(judged_document(judged, everything=all))
    else:
        print(describe_judged(judged, everything=all))
    return code_for(judged.judgement.status, judged.judgement.findings)


@app.command
def accept(
    model: Path,
    what: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    why: str,
    by: str,
    until: str,
    log: Path | None = None,
    json: Flag = False,
) -> int:
    """Record a person's decision that a line may be.

    Until the decision ends the line is quiet, shown as accepted. Of an unknown
    line the numbers may differ; a familiar line with another value is accepted
    with that value alone.

    Parameters
    ----------
    model
        File that `wholestack health bootlog learn` wrote.
    what
        The line, with or without its date; or with --log the id of a finding or its beginning.
    why
        The reason.
    by
        The person who decides.
    until
        When the decision ends: a date such as 2027-03-31 (UTC), or how long from now, such as 90d.
    log
        The boot log that the finding is about.
    json
        Print one JSON document: the decisions of the model.
    """
    now = time.time()
    ends = parse_end(until, now)
    read_model(model)  # a wrong name leaves no file to hold beside it
    with changing(model):
        old = read_model(model)
        new = decide(old, lines_to_accept(old, what, log, now=now), why=why, by=by, now=now, until=ends)
        write_atomic(model, to_json(new) + b"\n")
    if json:
        print_json({"model": str(model), "accepted": [to_builtins(each) for each in new.accepted]})
    else:
        for each in new.accepted:
            if each.at == now:
                print(f"accepted until {day(each.until)} by {printable(each.by)}: {printable(each.line)}")
    return EXIT_OK


class _Files(LiveWatcher):
    """Files that are read, on a terminal or as a line now and then."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._started = self._last_plain = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        elapsed_s = time.monotonic() - self._started
        left = f", about {elapsed_s / done * (total - done):.0f} s left" if done else ""
        line = f"{done} of {total} files, {elapsed_s:.0f} s{left}"
        if self._console.is_terminal:
            self._draw(line)
        elif time.monotonic() - self._last_plain >= PLAIN_EVERY_S:
            self._last_plain = time.monotonic()
            self._console.print(line, soft_wrap=True)
