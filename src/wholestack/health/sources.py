"""Where Findings come from beside the checks of the catalogue: one table, so that each cause can be explained.

A module that says something new keeps a ``CAUSES`` and, for names that its Findings carry as their check, says what
each looks at; it is one line in :data:`SOURCES`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from wholestack.health import catalog, claim_causes, connection, coverage, telemetry
from wholestack.health.active import causes as active
from wholestack.health.bootlog import causes as bootlog
from wholestack.health.cabling import causes as cabling
from wholestack.health.check import Cause, Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What looks at something without being a check of the catalogue."""

    noun: str
    """With which the codes of its causes begin."""
    about: str
    """One line: what it looks at."""
    command: str
    """Which makes its Findings."""
    causes: tuple[Cause, ...]
    """Everything that it can say."""
    checks: Mapping[str, str] = field(default_factory=dict)
    """Names that its Findings carry as their check, and what each looks at."""

    def document(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "noun": self.noun,
            "about": self.about,
            "command": self.command,
            "checks": dict(self.checks),
            "causes": [cause.code for cause in self.causes],
        }


SOURCES = (
    Source(
        noun="telemetry",
        about="what a host did not say, or not so that it could be read",
        command="wholestack health sweep",
        causes=(*telemetry.CAUSES, *connection.CAUSES),
        checks={
            connection.CHECK: "whether the host can be asked",
            coverage.CHECK: "whether enough of the host could be looked at",
        },
    ),
    Source(
        noun="host",
        about="whether a claim on a host rests on a whole sweep that nobody changed",
        command="wholestack health sweep, wholestack settle",
        causes=claim_causes.CAUSES,
        checks=claim_causes.CHECKS,
    ),
    Source(
        noun="bootlog",
        about="whether a boot went as good boots of its kind of host do",
        command="wholestack health bootlog judge",
        causes=bootlog.CAUSES,
        checks=bootlog.CHECKS,
    ),
    Source(
        noun="device",
        about="whether each device multiplies right, keeps what it is given and keeps pace",
        command="wholestack health probe",
        causes=active.CAUSES,
        checks=active.CHECKS,
    ),
    Source(
        noun="cabling",
        about="whether cables are as the wiring plan has them",
        command="wholestack health cabling",
        causes=cabling.CAUSES,
        checks=cabling.CHECKS,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCause:
    """A cause and what says it: a check or, for want of one, a source."""

    cause: Cause
    check: Check | None
    source: Source | None


def every_cause() -> dict[str, KnownCause]:
    """Everything that health can say, by code."""
    known = {
        cause.code: KnownCause(cause=cause, check=None, source=source) for source in SOURCES for cause in source.causes
    }
    for code, (cause, check) in catalog.causes().items():
        if check is not None:
            known[code] = KnownCause(cause=cause, check=check, source=None)
    return known


def source_of(check: str) -> Source | None:
    """The source whose Findings carry a name as their check, or that a noun names."""
    found = (each for each in SOURCES if check == each.noun or check in each.checks)
    return next(found, None)
