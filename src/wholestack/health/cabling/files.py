"""From file names to a judgement."""

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from wholestack.errors import InputError
from wholestack.health.cabling.judging import Judged, judge_cabling
from wholestack.health.cabling.plan import read_plan
from wholestack.health.cabling.seen import Sights, files_of
from wholestack.health.judging import MOST_BYTES, read_saved
from wholestack.health.probe import UnreadableError
from wholestack.journal import read_at_most

MOST_PLAN_BYTES = 256_000_000


def judge_files(plan: Path, seen: Iterable[str], *, stdin: BinaryIO, now: float) -> Judged:
    """Judge saved outputs by a plan.

    Args:
        plan: File of the plan.
        seen: Files and folders of outputs; ``-`` is standard input.
        stdin: Read where ``-`` is among them.
        now: Seconds since the epoch.

    Raises:
        InputError: the plan is wrong, or there is no output. One that cannot be read is a Finding.
    """
    content = read_at_most(plan, MOST_PLAN_BYTES, remedy="name a plan (CSV, TOML, JSON)")
    wiring = read_plan(content, name=str(plan))
    paths = list(dict.fromkeys(seen))
    files = list(files_of(paths))
    if not files:
        raise InputError("no output to compare with", remedy="name files or folders with --seen")
    sights = Sights()
    unreadable: list[tuple[str, str]] = []
    for file, host in files:
        saved = read_saved(file, stdin)
        try:
            if saved.truncated:
                raise UnreadableError(f"is larger than {MOST_BYTES:,} bytes")
            sights.add(saved.content.decode(errors="replace"), source=saved.subject, host=host)
        except UnreadableError as error:
            unreadable.append((saved.subject, str(error)))
    return judge_cabling(wiring, sights.seen(), unreadable=unreadable, now=now)
