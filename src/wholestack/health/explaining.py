"""What a Finding, a cause or a check means, in prose, for somebody who was just woken up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from wholestack.errors import InputError
from wholestack.finding import Finding
from wholestack.health import catalog
from wholestack.health.check import Cause, Check
from wholestack.health.describing import WORDS, bullet, describe_check, indented
from wholestack.health.sources import SOURCES, KnownCause, Source, every_cause, source_of
from wholestack.journal import read_at_most
from wholestack.record import from_builtins, to_builtins
from wholestack.runs import RunReader

SHORTEST_PREFIX = 4
MOST_EXPLAINED = 6
"""What a finding explains, of which the person who looks at it reads the first."""
MOST_BYTES = 64_000_000
"""Of a saved document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What one name stands for; at least one of the first four is there."""

    finding: Finding | None = None
    cause: Cause | None = None
    check: Check | None = None
    source: Source | None = None
    """What says it, where that is no check of the catalogue."""
    same_elsewhere: int = 0
    """Other hosts of the sweep with the same cause."""

    def document(self) -> dict[str, object]:
        """As JSON has it."""
        cause = self.cause
        return {
            "finding": to_builtins(self.finding) if self.finding else None,
            "cause": None
            if cause is None
            else {
                "code": cause.code,
                "says": cause.says,
                "status": cause.status,
                "owner": cause.owner,
                "remedy": cause.remedy,
                "explains": list(cause.explains),
            },
            "check": describe_check(self.check).document() if self.check else None,
            "source": self.source.document() if self.source else None,
            "same_elsewhere": self.same_elsewhere,
        }


def explain(name: str, findings: Sequence[Finding] = ()) -> Meaning:
    """Look a name up.

    Args:
        name: Id of a Finding or its unique beginning, code of a cause, or name of a check or of a source.
        findings: Among which the id is; see :func:`findings_in`.

    Raises:
        InputError: it is none of these, or the beginning of several ids.
    """
    known = every_cause()
    by_name = {check.name: check for check in catalog.CHECKS}
    if name in known:
        each = known[name]
        return Meaning(cause=each.cause, check=by_name.get(name, each.check), source=each.source)
    if name in by_name:
        return Meaning(check=by_name[name])
    if (source := source_of(name)) is not None:
        return Meaning(source=source)
    found = _by_prefix(name, findings)
    others = {each.subject for each in findings if each.cause == found.cause} - {found.subject}
    said = _cause_of(found, known.values())
    return Meaning(
        finding=found,
        cause=said.cause if said else None,
        check=by_name.get(found.check),
        source=(said.source if said else None) or source_of(found.check),
        same_elsewhere=len(others),
    )


def check_fits(pattern: str, seen: Callable[[], Iterable[str]]) -> None:
    """See that a name or pattern means a check: a mistyped one would mean nothing, and nobody would notice.

    Args:
        pattern: Name of a check, or a pattern such as ``gpu.*``.
        seen: Names that findings carry, of plug-ins that are not here for instance; asked only if it is none of ours.

    Raises:
        InputError: no check is called so; names the nearest.
    """
    ours = [*(check.name for check in catalog.CHECKS), *(name for source in SOURCES for name in source.checks)]
    if not any(fnmatchcase(name, pattern) for name in ours) and not any(fnmatchcase(name, pattern) for name in seen()):
        raise InputError(f"no check is called {pattern!r}", remedy=catalog.nearest(pattern, ours))


def findings_in(path: Path) -> list[Finding]:
    """Findings of a run directory (a sweep, a probe), or of a document that ``--json`` of any command printed.

    Raises:
        InputError: the file cannot be read, is too large, or holds no findings.
        RunDirectoryError: the folder is no run directory.
        RecordError: a finding does not decode.
    """
    if not path.is_file():
        return RunReader(path).findings()
    remedy = "name the folder of a sweep or probe, or what --json of a command printed"
    content = read_at_most(path, MOST_BYTES, remedy=remedy)
    try:
        found = msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: is no JSON: {error}", remedy=remedy) from error
    listed = found.get("findings") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise InputError(f"{path}: has no findings", remedy=remedy)
    return [from_builtins(Finding, each, where=f"{path}: finding {place}") for place, each in enumerate(listed, 1)]


def describe_meaning(meaning: Meaning) -> str:
    """For a terminal, 80 columns."""
    lines: list[str] = []
    if meaning.finding is not None:
        lines += _about_finding(meaning.finding, meaning.same_elsewhere)
    if meaning.cause is not None:
        lines += _about_cause(meaning.cause, brief=meaning.finding is not None)
    if meaning.check is not None:
        row = describe_check(meaning.check)
        lines.append(bullet("check", f"{row.name}: {row.about}"))
        lines.append(indented(f"command: {row.command}", cut=True))
        if meaning.cause is None:
            lines += [bullet("can say", f"{cause.code}: {cause.says}") for cause in meaning.check.causes]
        lines += [bullet("limit", f"{limit.name} = {limit.default:g}: {limit.about}") for limit in meaning.check.limits]
    if meaning.source is not None:
        lines += _about_source(meaning.source, alone=meaning.cause is None)
    return "\n".join(lines)


def _about_finding(each: Finding, same_elsewhere: int) -> list[str]:
    where = f", {each.part}" if each.part not in ("", "host") else ""
    lines = [f"{WORDS[each.status]}: {each.cause}, on {each.subject}{where}", ""]
    lines += [bullet("seen", each.evidence[0])] if each.evidence else []
    lines += [indented(line) for line in each.evidence[1:]]
    lines += [bullet("owner", each.owner), bullet("do", each.remedy)]
    if same_elsewhere:
        lines.append(bullet("also", f"the same on {same_elsewhere} other hosts of this sweep: look for one reason"))
    return lines


def _about_cause(cause: Cause, *, brief: bool) -> list[str]:
    lines = []
    if not brief:
        lines = [f"{cause.code}: {cause.says} ({WORDS[cause.status]})", ""]
        lines += [bullet("owner", cause.owner), bullet("do", cause.remedy)]
    if cause.status == "unknown":
        lines.append(bullet("means", "neither healthy nor broken: the host did not let us look; it may not be trusted"))
    if cause.explains:
        known = every_cause()
        says = list(dict.fromkeys(_said(each, known) for each in cause.explains))
        if brief and len(says) > MOST_EXPLAINED:
            says = [*says[:MOST_EXPLAINED], f"and {len(says) - MOST_EXPLAINED} more (explain {cause.code} has them)"]
        lines.append(bullet("explains", f"{', '.join(says)}: seen with it, they are the same fault"))
    return lines


def _about_source(source: Source, *, alone: bool) -> list[str]:
    lines = [bullet("from", f"{source.command}: {source.about}")]
    if alone:
        lines += [bullet("check", f"{name}: {about}") for name, about in source.checks.items()]
        lines += [bullet("can say", f"{cause.code}: {cause.says}") for cause in source.causes]
    return lines


def _said(explained: str, known: Mapping[str, KnownCause]) -> str:
    """What ``code``, or ``code key-of-the-part``, says."""
    code, _, key = explained.partition(" ")
    says = known[code].cause.says if code in known else code
    return f"{says} ({key})" if key else says


def _cause_of(found: Finding, known: Iterable[KnownCause]) -> KnownCause | None:
    """The cause that a Finding names; of its own check if two say the same."""
    fitting = [each for each in known if each.cause.says == found.cause]
    own = [each for each in fitting if each.check is not None and each.check.name == found.check]
    return own[0] if own else fitting[0] if fitting else None


def _by_prefix(name: str, findings: Sequence[Finding]) -> Finding:
    fitting = {each.id: each for each in findings if each.id.startswith(name) and len(name) >= SHORTEST_PREFIX}
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    if fitting:
        listed = ", ".join(f"{each.id} ({each.subject})" for each in list(fitting.values())[:5])
        raise InputError(f"{name!r} begins the ids of {len(fitting)} findings", remedy=f"give more of one: {listed}")
    sources = [each for source in SOURCES for each in (source.noun, *source.checks)]
    names = [*(check.name for check in catalog.CHECKS), *sources, *every_cause()]
    ids = ", ".join(f"{each.id[:8]} ({each.subject})" for each in findings[:3])
    where = f"; findings here are {ids}" if findings else "; for a finding, name its run with --in DIR"
    raise InputError(f"no finding, cause or check {name!r}", remedy=f"{catalog.nearest(name, names)}{where}")
