"""A sweep as a person reads it: what is wrong, grouped by cause, the odd ones out before what all have in common."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wholestack.finding import WORST_FIRST, Finding, Status
from wholestack.health.claim_causes import CLAIM, NOTHING_APPLIES, PART
from wholestack.health.describing import WORDS, bullet, indented
from wholestack.health.names import fold
from wholestack.health.records import HostVerdict, SweepSummary

EXAMPLES = 2
"""Findings of a group that are shown with their evidence."""
EVIDENCE = 2
"""Lines of evidence of each."""
MOST_CHECKS = 8
"""Checks, or reasons to skip some, that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """All Findings of one cause and status."""

    status: Status
    cause: str
    owner: str
    remedy: str
    hosts: tuple[str, ...]
    findings: tuple[Finding, ...]


def grouped(findings: Iterable[Finding]) -> list[Group]:
    """Groups by status and cause: worst first, then those with the fewest hosts."""
    members: dict[tuple[Status, str, str, str], list[Finding]] = defaultdict(list)
    for each in findings:
        members[(each.status, each.cause, each.owner, each.remedy)].append(each)
    groups = [
        Group(
            status=status,
            cause=cause,
            owner=owner,
            remedy=remedy,
            hosts=tuple(sorted({each.subject for each in found})),
            findings=tuple(found),
        )
        for (status, cause, owner, remedy), found in members.items()
    ]
    return sorted(groups, key=lambda group: (WORST_FIRST.index(group.status), len(group.hosts), group.cause))


def describe_sweep(
    verdicts: Sequence[HostVerdict], summary: SweepSummary, *, put: int = 0, left_out: int = 0, everything: bool = False
) -> str:
    """Counts, then groups by cause, in 80 columns.

    Args:
        verdicts: Of all hosts.
        summary: Of the sweep.
        put: Checks that were put.
        left_out: Those that were not to be put; where there are any, nothing is said on who may train.
        everything: Also who is fine, and every Finding of a group.
    """
    settling = PART if left_out else CLAIM
    groups = grouped(each for verdict in verdicts for each in (*verdict.findings, *_nothing_applied(verdict, settling)))
    passed = "passed what applied" if left_out else "may train"
    lines = [describe_counts(verdicts, summary, passed=passed)]
    if left_out:
        lines.append(bullet("checks", f"{put} of {put + left_out} put; nothing is said on who may train"))
        lines += describe_passed(verdicts)
    if left_out or everything:
        lines += describe_skipped_by_check(verdicts, everything=everything)
    lines += [_describe(group, everything) for group in groups]
    if everything:
        fit = [verdict.host for verdict in verdicts if verdict.may_train]
        lines.append(bullet("ok", f"{passed}: {fold(fit) or 'none'}"))
    return "\n".join(lines)


def describe_counts(verdicts: Sequence[HostVerdict], summary: SweepSummary, *, passed: str = "may train") -> str:
    """The one line to read first.

    Args:
        verdicts: Of all hosts.
        summary: Of the sweep.
        passed: What is said of those on which nothing is wrong.
    """
    warned = f" ({summary.warnings} with warnings)" if summary.warnings else ""
    counts = f"{summary.may_train} {passed}{warned}, {summary.may_not} may not, {summary.unknown} unknown"
    return f"{_hosts(len(verdicts))}: {counts}; {summary.seconds:.0f} s"


def describe_passed(verdicts: Sequence[HostVerdict]) -> list[str]:
    """Checks that applied and saw nothing, each with its number of hosts; those that were skipped are not."""
    counts = Counter(name for verdict in verdicts for name in verdict.passed)
    shown = [f"{name} on {_hosts(count)}" for name, count in counts.most_common(MOST_CHECKS)]
    more = f" and {len(counts) - MOST_CHECKS} more (--json --all)" if len(counts) > MOST_CHECKS else ""
    return [bullet("passed", f"{', '.join(shown) or 'none'}{more}")]


def describe_skipped_by_check(verdicts: Sequence[HostVerdict], *, everything: bool = False) -> list[str]:
    """Checks that did not apply: one line a reason, those on most hosts first."""
    names: dict[str, dict[str, None]] = defaultdict(dict)
    hosts: dict[str, set[str]] = defaultdict(set)
    for verdict in verdicts:
        for each in verdict.skipped:
            why = f"{each.reason.replace('_', ' ')} ({each.detail})"
            names[why][each.check] = None
            hosts[why].add(verdict.host)
    ordered = sorted(names, key=lambda why: -len(hosts[why]))
    shown = ordered if everything else ordered[:MOST_CHECKS]
    lines = [bullet("skipped", f"{', '.join(names[why])} on {_hosts(len(hosts[why]))}: {why}") for why in shown]
    left = len(ordered) - len(shown)
    return [*lines, bullet("skipped", f"for {left} more reasons (--all shows them)")] if left else lines


def _nothing_applied(verdict: HostVerdict, settling: str) -> list[Finding]:
    """A host is unknown without a Finding where every check that was put was skipped: said here."""
    if verdict.status != "unknown" or verdict.findings:
        return []
    lacking = tuple(dict.fromkeys(each.detail for each in verdict.skipped))
    return [NOTHING_APPLIES.finding(verdict.host, settling, evidence=lacking)]


def _hosts(count: int) -> str:
    return f"{count} host{'s' if count != 1 else ''}"


def _describe(group: Group, everything: bool) -> str:
    count = _hosts(len(group.hosts))
    more = f", {len(group.findings)} findings" if len(group.findings) > len(group.hosts) else ""
    lines = ["", bullet(WORDS[group.status], f"{group.cause}: {count}{more}"), indented(fold(group.hosts))]
    shown = group.findings if everything else group.findings[:EXAMPLES]
    for each in shown:
        part = f", {each.part}" if each.part not in ("", "host") else ""
        lines.append(indented(f"- {each.subject}{part}  [{each.check} {each.id[:8]}]", hang=2))
        lines += [indented(line, cut=True, more=2) for line in each.evidence[:EVIDENCE]]
    left = len(group.findings) - len(shown)
    if left:
        lines.append(indented(f"- and {left} more (--all shows them, --json has everything)", hang=2))
    return "\n".join([*lines, indented(f"{group.owner}: {group.remedy}", hang=2)])
