"""Put checks to texts as a host would give them."""

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path

from wholestack.health import catalog
from wholestack.health.check import Before, Check, Counter, Expectation, Seen
from wholestack.health.diagnosis import LONGEST_LINE, diagnose
from wholestack.health.examine import Examination, examine
from wholestack.health.probe import NotThereError, UnreadableError
from wholestack.health.sending import commands_for
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.remote import FleetRemote
from wholestack.health.telemetry import CHECK_WRONG
from wholestack.remote.batch import Output

NOW = 1_795_996_800
"""A moment of late 2026."""
RECORDED = Path(__file__).parent / "recorded"


def recorded(*parts):
    """Text of a recorded output of the project's own."""
    return RECORDED.joinpath(*parts).read_text()


def moment(*, now=NOW, boot_id="b", uptime_s=360_000.0, root=True):
    """What the probe of that name prints."""
    lines = (f"now={now:.0f}", f"boot_id={boot_id}", f"uptime={uptime_s} 1.0", "kernel=6.8.0", "hostname=h")
    return "\n".join((*lines, f"uid={0 if root else 1000}", ""))


def look(
    checks: Iterable[Check], *, profile: Expectation | None = None, before: Before | None = None, **texts
) -> Examination:
    """Examine a host whose probes gave these texts (or outputs), by those of the checks that read one of them.

    The clock is right unless a moment is given.
    """
    given = {"moment": moment()} | texts
    outputs = {
        name: text if isinstance(text, Output) else Output(name=name, stdout=text.encode())
        for name, text in given.items()
    }
    put = tuple(check for check in checks if any(probe.name in texts for probe in check.probes))
    return examine(outputs, put, expectation=profile, before=before, now=NOW)


def said(examination: Examination):
    """``(status, code, part)`` of every Finding after merging."""
    return [
        (each.status, each.symptom.cause.code, each.symptom.part.identity) for each in diagnose(examination.symptoms)
    ]


def before(*counters: Counter, hours=1.0, boot_id="b") -> Before:
    """A look some hours ago."""
    return Before(at=NOW - hours * 3600, boot_id=boot_id, counters=counters)


def judged_file(check: Check, text: str, *, now=NOW):
    """Status and causes of a saved output, as ``health judge`` puts it: without a moment."""
    name = check.probes[0].name
    return examine({name: Output(name=name, stdout=text.encode())}, (check,), now=now)


@functools.cache
def healthy() -> Mapping[str, Output]:
    """What every probe gives on a simulated host with eight GPUs that has no fault."""
    fleet = Fleet(1, seed=1)
    (host,) = fleet.hosts()
    commands = commands_for(catalog.probes_of(catalog.chosen()), Expectation())
    return FleetRemote(fleet).reply(host, commands, deadline_s=60.0).outputs


def never_crashes(check: Check, text: str) -> None:
    """Any text of any of its probes, the others healthy, gives symptoms, or a reason why not; all of it declared."""
    for probe in check.probes:
        output = Output(name=probe.name, stdout=text.encode(errors="replace"))
        outputs = {other.name: healthy()[other.name] for other in check.probes if other.name in healthy()}
        outputs[probe.name] = output
        seen = Seen(outputs, now=NOW, boot_id="b", uptime_s=3600.0)
        for question in (check.judge, check.traits, check.measures, check.counters):
            try:
                list(question(seen))
            except (NotThereError, UnreadableError):
                continue
        is_told(check, examine(outputs, (check,), now=NOW))


def is_told(check: Check, found: Examination) -> None:
    """The check passed, was skipped, saw something or could not look; what it says can be merged and is bounded."""
    assert [each.symptom.evidence for each in found.symptoms if each.check == CHECK_WRONG.code] == []
    told = {*found.passed, *(each.check for each in found.skipped), *(each.check for each in found.symptoms)}
    lines = [line for each in diagnose(found.symptoms) for line in each.symptom.evidence]
    assert check.name in told or any(f"{check.name}" in line for line in lines), check.name
    assert all(len(line) <= LONGEST_LINE for line in lines)
