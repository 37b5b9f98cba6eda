"""Two sweeps beside each other: what is new, what healed, what changed, what is still so, and what cannot be told.

A Finding of the older sweep has healed only where the newer one looked again: the host answered and the check could be
put. A host that went silent has not healed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wholestack.finding import WORST_FIRST, Finding
from wholestack.health.connection import CHECK as CONNECTION
from wholestack.health.describing import WORDS, bullet, indented
from wholestack.health.records import HostVerdict
from wholestack.health.verdicts import Sweep, read_sweep
from wholestack.record import to_builtins
from wholestack.runs import RunReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One Finding whose status is another."""

    before: Finding
    after: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What became of everything that either sweep found."""

    new: tuple[Finding, ...]
    healed: tuple[Finding, ...]
    changed: tuple[Change, ...]
    still: tuple[Finding, ...]
    """As the newer sweep has it."""
    unclear: tuple[Finding, ...]
    """Of the older sweep; the newer one could not look."""
    altered: tuple[str, ...]
    """Hosts whose boot, driver, firmware or other traits are not what the older claim was sealed on."""

    @property
    def worse(self) -> bool:
        """Whether anything is new, or worse than it was."""
        rank = WORST_FIRST.index
        return bool(self.new) or any(rank(each.after.status) < rank(each.before.status) for each in self.changed)

    def document(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "new": [to_builtins(each) for each in self.new],
            "healed": [to_builtins(each) for each in self.healed],
            "changed": [
                {"before": each.before.status, "after": each.after.status, "finding": to_builtins(each.after)}
                for each in self.changed
            ],
            "still": [to_builtins(each) for each in self.still],
            "unclear": [to_builtins(each) for each in self.unclear],
            "altered": list(self.altered),
        }


def compare_sweeps(older: Path, newer: Path) -> Difference:
    """Compare two run directories.

    Raises:
        InputError: one is no concluded sweep.
    """
    claimed = [{claim.subject: claim.predicted for claim in RunReader(folder).claims()} for folder in (older, newer)]
    return difference(read_sweep(older), read_sweep(newer), altered=altered_hosts(*claimed))


def difference(older: Sweep, newer: Sweep, *, altered: Iterable[str] = ()) -> Difference:
    """Compare two sweeps by the ids of their Findings."""
    before = {each.id: each for verdict in older.verdicts for each in verdict.findings}
    after = {each.id: each for verdict in newer.verdicts for each in verdict.findings}
    verdicts = {verdict.host: verdict for verdict in newer.verdicts}
    gone = [each for id_, each in before.items() if id_ not in after]
    both = [(before[id_], each) for id_, each in after.items() if id_ in before]
    return Difference(
        new=_ordered(each for id_, each in after.items() if id_ not in before),
        healed=_ordered(each for each in gone if _looked_again(each, verdicts.get(each.subject))),
        changed=tuple(Change(before=old, after=new) for old, new in both if old.status != new.status),
        still=_ordered(new for old, new in both if old.status == new.status),
        unclear=_ordered(each for each in gone if not _looked_again(each, verdicts.get(each.subject))),
        altered=tuple(sorted(altered)),
    )


def altered_hosts(older: Mapping[str, float | str | None], newer: Mapping[str, float | str | None]) -> list[str]:
    """Hosts of both whose claims were sealed on other traits.

    Args:
        older: What was predicted, by host.
        newer: The same of the newer sweep.
    """
    return sorted(host for host, predicted in older.items() if host in newer and newer[host] != predicted)


def describe_difference(found: Difference) -> str:
    """For a terminal: counts, then what moved."""
    counts = (
        f"{len(found.new)} new, {len(found.healed)} healed, {len(found.changed)} changed,"
        f" {len(found.still)} still so, {len(found.unclear)} could not be looked at again"
    )
    lines = [counts]
    lines += [_line("new", each) for each in found.new]
    lines += [_line("healed", each) for each in found.healed]
    lines += [_line("changed", each.after, f" (was {WORDS[each.before.status]})") for each in found.changed]
    lines += [_line("unclear", each) for each in found.unclear]
    if found.altered:
        hosts = ", ".join(found.altered)
        lines.append(bullet("altered", f"another boot, driver or firmware than before: {hosts}"))
    return "\n".join(lines)


def _line(word: str, each: Finding, more: str = "") -> str:
    part = f", {each.part}" if each.part not in ("", "host") else ""
    said = f"{each.subject}{part}: {WORDS[each.status]} {each.cause}{more}  [{each.check} {each.id[:8]}]"
    evidence = [indented(each.evidence[0], cut=True)] if word == "new" and each.evidence else []
    return "\n".join([bullet(word, said), *evidence])


def _looked_again(each: Finding, verdict: HostVerdict | None) -> bool:
    if verdict is None or any(found.check == CONNECTION for found in verdict.findings):
        return False
    return each.check not in verdict.unjudged


def _ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda each: (WORST_FIRST.index(each.status), each.subject, each.id)))
