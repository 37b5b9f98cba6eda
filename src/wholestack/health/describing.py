"""Findings and checks as text for a person: 80 columns, what matters first."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

from wholestack.finding import Finding, Skipped, Status
from wholestack.health.check import Check
from wholestack.health.judging import Judgement

WIDTH = 80
WORDS: dict[Status, str] = {"fail": "FAIL", "unknown": "UNKNOWN", "warn": "WARN", "ok": "ok"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """One check of the catalogue, as it is listed."""

    name: str
    command: str
    parts: tuple[str, ...]
    severity: Status
    formats: tuple[str, ...]
    about: str
    needs_root: bool
    passive: bool
    causes: tuple[str, ...]

    def document(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "name": self.name,
            "command": self.command,
            "kinds of part": list(self.parts),
            "severity": self.severity,
            "formats": list(self.formats),
            "about": self.about,
            "needs root": self.needs_root,
            "passive": self.passive,
            "causes": list(self.causes),
        }

    def line(self) -> str:
        """As a terminal has it."""
        reads = f"reads: {', '.join(self.formats)}"
        root = "; needs root" if self.needs_root else ""
        rest = "" if self.passive else "; only judges saved outputs"
        return f"{self.name} ({self.severity})\n" + indented(f"{self.about}; {reads}{root}{rest}")


def describe_check(check: Check) -> CheckRow:
    """One check, as it is listed."""
    formats = dict.fromkeys(form.name for probe in check.probes for form in probe.formats)
    return CheckRow(
        name=check.name,
        command="; ".join(probe.command.shell for probe in check.probes),
        parts=check.parts,
        severity=check.severity,
        formats=tuple(formats),
        about=check.about,
        needs_root=any(probe.command.needs_root for probe in check.probes),
        passive=check.passive,
        causes=tuple(cause.code for cause in check.causes),
    )


def describe_judgement(found: Judgement, *, everything: bool) -> str:
    """What the checks say of one host or output: a line of verdict, then Findings, then what was skipped."""
    shown = [each for each in found.findings if everything or each.status != "ok"]
    passed = sum(each.status == "ok" for each in found.findings)
    skipped = len(found.skipped)
    wrong = len(found.findings) - passed
    counts = f"{passed} passed, {wrong} finding{'s' if wrong != 1 else ''}, {skipped} skipped"
    lines = [f"{WORDS[found.status]}: {counts}", *(describe_finding(each) for each in shown)]
    return "\n".join([*lines, *describe_skipped(found.skipped)])


def describe_finding(each: Finding) -> str:
    """One Finding: what, where, the evidence, who and what to do."""
    if each.status == "ok":
        return bullet("ok", each.check)
    where = f" on {each.part}" if each.part not in ("", "host") else ""
    lines = [bullet(WORDS[each.status], f"{each.cause}{where}  [{each.check} {each.id[:8]}]")]
    lines += [indented(line, cut=True) for line in each.evidence[:4]]
    if len(each.evidence) > 4:
        left = len(each.evidence) - 4
        lines.append(indented(f"and {left} more {'line' if left == 1 else 'lines'} (--json has them)"))
    return "\n".join([*lines, indented(f"{each.owner}: {each.remedy}", hang=2)])


def describe_skipped(skipped: Iterable[Skipped]) -> list[str]:
    """Checks that did not apply, one line a reason."""
    by_reason: dict[str, list[str]] = {}
    for each in skipped:
        by_reason.setdefault(f"{each.reason.replace('_', ' ')} ({each.detail})", []).append(each.check)
    return [bullet("skipped", f"{why}: {', '.join(names)}") for why, names in by_reason.items()]


def bullet(word: str, text: str) -> str:
    """A word in the margin and a text beside it."""
    return _filled(text, first=f"{word:<8} ", rest=" " * 9)


def headed(text: str) -> str:
    """A text from the margin on, what does not fit on its line indented."""
    return _filled(text, first="", rest=" " * 9)


def indented(text: str, *, cut: bool = False, hang: int = 0, more: int = 0) -> str:
    """A text under a bullet, wrapped; with ``cut`` at most three lines of it."""
    most = 3 * (WIDTH - 9 - more)
    if cut and len(text) > most:
        text = text[: most - 3] + "..."
    return _filled(text, first=" " * (9 + more), rest=" " * (9 + more + hang))


def _filled(text: str, *, first: str, rest: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
