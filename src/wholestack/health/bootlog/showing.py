"""What bootlog commands say, for a terminal of 80 columns and as JSON."""

from datetime import UTC, datetime

from wholestack.finding import worst_first
from wholestack.health.bootlog.folder import Judged, Learnt
from wholestack.health.bootlog.judging import BootJudgement
from wholestack.health.describing import WORDS, bullet, describe_finding, indented
from wholestack.record import to_builtins


def describe_judged(judged: Judged, *, everything: bool) -> str:
    """A line of verdict, Findings, what was accepted, what was looked at."""
    found = judged.judgement
    shown = [each for each in found.findings if everything or each.status != "ok"]
    passed = sum(each.status == "ok" for each in found.findings)
    wrong = len(found.findings) - passed
    counts = [f"{passed} passed", f"{wrong} finding{'s' if wrong != 1 else ''}", f"{len(found.accepted)} accepted"]
    lines = [f"{WORDS[found.status]}: {judged.subject}, {_which(judged)}: {', '.join(counts)}"]
    lines += [describe_finding(each) for each in shown]
    for each in found.accepted:
        lines.append(bullet("accepted", f"{each.kind}: {each.line}"))
        lines.append(indented(f"{each.why}, {each.by}, until {day(each.until)}", hang=2))
    return "\n".join([*lines, *(bullet("note", note) for note in found.notes)])


def judged_document(judged: Judged, *, everything: bool) -> dict[str, object]:
    """The same as JSON has it."""
    found: BootJudgement = judged.judgement
    shown = [each for each in worst_first(found.findings) if everything or each.status != "ok"]
    return {
        "status": found.status,
        "subject": judged.subject,
        "boot": judged.number,
        "boots": judged.boots,
        "findings": [to_builtins(each) for each in shown],
        "accepted": [to_builtins(each) for each in found.accepted],
        "lines": [to_builtins(each) for each in found.lines],
        "notes": list(found.notes),
    }


def describe_learnt(learnt: Learnt, model: str) -> str:
    """What was learnt, and what was left out and why."""
    formats = ", ".join(f"{count} {name}" for name, count in sorted(learnt.formats.items()))
    new = f"{learnt.boots} boot{'s' if learnt.boots != 1 else ''} learnt"
    lines = [f"{model}: {new}{f' ({formats})' if formats else ''}, {learnt.all_boots} in all of {learnt.hosts} hosts"]
    lines.append(bullet("kernels", ", ".join(learnt.kernels) or "no log says its version"))
    if learnt.known:
        lines.append(bullet("again", f"{learnt.known} boots that the model had already, or that are in two files"))
    if learnt.parts:
        lines.append(
            bullet("parts", f"{learnt.parts} boots are not whole: they tell what is familiar, not what is missing")
        )
    lines += [bullet("left out", each) for each in learnt.left_out]
    if learnt.left_out_count > len(learnt.left_out):
        lines.append(bullet("left out", f"and {learnt.left_out_count - len(learnt.left_out)} more files"))
    lines += [bullet("look", f"{file} holds a crash: is that boot good?") for file in learnt.crashes]
    if learnt.all_boots < 20:
        lines.append(bullet("few", "3 boots tell what is always there, 5 its values and order; 20 tell it well"))
    return "\n".join(lines)


def day(moment_s: float) -> str:
    """A date."""
    return datetime.fromtimestamp(moment_s, UTC).strftime("%Y-%m-%d")


def _which(judged: Judged) -> str:
    return "one boot" if judged.boots == 1 else f"boot {judged.number} of {judged.boots} in the file"
