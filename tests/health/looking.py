"""Put checks to texts as a host would give them."""

from collections.abc import Iterable
from pathlib import Path

from wholestack.health.check import Before, Check, Counter, Expectation, Seen
from wholestack.health.diagnosis import diagnose
from wholestack.health.examine import Examination, examine
from wholestack.health.probe import NotThereError, UnreadableError
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


def never_crashes(check: Check, text: str) -> None:
    """Any text gives symptoms, or one of the two errors that say why not."""
    name = check.probes[0].name
    seen = Seen({name: Output(name=name, stdout=text.encode(errors="replace"))}, now=NOW, boot_id="b", uptime_s=3600.0)
    for question in (check.judge, check.traits, check.measures, check.counters):
        try:
            list(question(seen))
        except (NotThereError, UnreadableError):
            continue
