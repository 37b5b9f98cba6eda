"""What every fix must do, as a list of the rules that one breaks.

Use it in a test of your own fix, with faults that it mends::

    def test_my_fix_keeps_the_rules():
        fault = Fault(host="gpu001", cause="driver.not_loaded", part="driver nvidia")
        assert broken_rules(MY_FIX, [fault]) == []
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from wholestack.errors import InputError
from wholestack.health import catalog
from wholestack.health.fixes.fix import Fault, Fix
from wholestack.remote.batch import Command

LONGEST_S = 600.0
"""Of one command, and of settling."""
_HOSTILE = (
    "$(touch /tmp/x)",
    "a'; touch /tmp/x; '",
    "a b",
    "`id`",
    "-rf",
    "/x\ntouch /tmp/x",
    "0000:9b:00; id",
    "a|b",
    "&& id",
)
_NEVER = re.compile(r"\b(?:reboot|poweroff|halt|shutdown|mkfs|dd|rm)\b")


def broken_rules(fix: Fix, faults: Sequence[Fault]) -> list[str]:
    """Every rule that a fix breaks; none if it is sound.

    Args:
        fix: To be tried.
        faults: That it mends; at least one for each of its causes.
    """
    return [*_about(fix, faults), *(rule for fault in faults for rule in _of_one(fix, fault))]


def _about(fix: Fix, faults: Sequence[Fault]) -> Iterator[str]:
    about = fix.about
    if not re.fullmatch(r"[a-z][a-z0-9_]*", about.name):
        yield f"its name is {about.name!r}: lower-case letters and _"
    if not about.says or not about.source:
        yield "it does not say what it does, and where its commands are documented"
    if not 0 <= about.settle_s <= LONGEST_S:
        yield f"settle_s is {about.settle_s}, must be from 0 to {LONGEST_S:g}: waits are bounded"
    known = catalog.causes()
    yield from (f"no check says {code}" for code in about.causes if code not in known)
    missing = set(about.causes) - {fault.cause for fault in faults}
    if not about.causes or missing:
        yield f"no fault was given for its causes: {', '.join(sorted(missing)) or 'it has none'}"


def _of_one(fix: Fix, fault: Fault) -> Iterator[str]:
    try:
        commands = fix.commands(fault)
    except InputError as error:
        yield f"refuses a fault that it mends: {error}"
        return
    if not commands or not all(isinstance(each, Command) for each in commands):
        yield f"{fault.cause}: gives no commands"
        return
    if fix.commands(fault) != commands:
        yield f"{fault.cause}: other commands when it is asked again: what was shown must be what is run"
    if len({each.name for each in commands}) != len(commands):
        yield f"{fault.cause}: two commands of one name"
    for each in commands:
        if each.limit_s > LONGEST_S:
            yield f"{each.name}: may take {each.limit_s:g} s, at most {LONGEST_S:g}"
        if found := _NEVER.search(each.shell):
            yield f"{each.name}: {found[0]} is no fix that is tried unattended"
    yield from _with_hostile_names(fix, fault)


def _with_hostile_names(fix: Fix, fault: Fault) -> Iterator[str]:
    """What a host calls its parts is untrusted: refused, or quoted, or not used."""
    for kind in ("gpu", "mount", "service", "host", "drive"):
        for name in (*_HOSTILE, *(f"/{each}" for each in _HOSTILE)):
            try:
                commands = fix.commands(replace(fault, part=f"{kind} {name}"))
            except InputError:
                continue
            for each in commands:
                if name in each.shell.replace(shlex.quote(name), ""):
                    yield f"{each.name}: takes the name of a part into a shell unquoted: {name!r}"
                    return
