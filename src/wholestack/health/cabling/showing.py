"""What ``wholestack health cabling`` says, in 80 columns and as JSON."""

from collections import Counter

from wholestack.health.cabling.judging import Judged
from wholestack.health.cabling.work_order import Row
from wholestack.health.describing import WORDS, bullet, describe_finding
from wholestack.record import to_builtins

MOST_FINDINGS = 8
MOST_ROWS = 12


def describe_cabling(judged: Judged, *, everything: bool, out: str = "") -> str:
    """A line of verdict, what was found by cause, Findings, the work order.

    Args:
        judged: What was found.
        everything: All Findings and rows, and what is ok.
        out: File that the work order was written to.
    """
    shown = [each for each in judged.findings if everything or each.status != "ok"]
    counts = [f"{judged.right} of {judged.planned} cables are as planned"]
    if judged.unknown:
        counts.append(f"{judged.unknown} could not be looked at")
    lines = [f"{WORDS[judged.status]}: {', '.join(counts)}"]
    lines += [bullet("found", f"{count} x {cause}") for cause, count in Counter(each.cause for each in shown).items()]
    most = len(shown) if everything else MOST_FINDINGS
    lines += [describe_finding(each) for each in shown[:most]]
    if len(shown) > most:
        lines.append(bullet("more", f"{len(shown) - most} more findings (--all shows them)"))
    lines += [bullet("note", note) for note in judged.notes]
    return "\n".join([*lines, *_work(judged, everything=everything, out=out)])


def cabling_document(judged: Judged, *, everything: bool) -> dict[str, object]:
    """The same as JSON has it."""
    document = to_builtins(judged)
    shown = [each for each in judged.findings if everything or each.status != "ok"]
    return document | {"findings": [to_builtins(each) for each in shown]}


def _work(judged: Judged, *, everything: bool, out: str) -> list[str]:
    if not judged.work_order:
        return []
    count = len(judged.work_order)
    lines = [bullet("do", f"{count} thing{'s' if count != 1 else ''}{f', in {out}' if out else ''}:")]
    rack: str | None = None
    most = count if everything else MOST_ROWS
    for row in judged.work_order[:most]:
        if row.rack != rack:
            rack = row.rack
            lines.append(f"rack {rack}" if rack else "rack not in the plan")
        lines.append(_line(row))
    if count > most:
        lines.append(bullet("more", f"{count - most} more lines (--out FILE has them all)"))
    return lines


def _line(row: Row) -> str:
    where = f"{row.device} {row.port}"
    text = f"{row.action} {where}"
    if row.to_device:
        rack = f" (rack {row.to_rack})" if row.to_rack != row.rack else ""
        text += f" to {row.to_device} {row.to_port}{rack}"
    cable = f"cable {row.label}, " if row.label else ""
    if row.other_end:
        text += f"  [{cable}other end {row.other_end}]"
    return bullet(f"u{row.unit}" if row.unit else "", f"{text} #{row.story}")
