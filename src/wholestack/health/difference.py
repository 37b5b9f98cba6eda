"""Two sweeps beside each other: what is new, what healed, what changed, what is still so, and what cannot be told.

A Finding of the older sweep has healed only where the newer one looked again: the host answered, the check was put, it
applied and its outputs could be read. A host that went silent, a tool that is gone and a check that ``--only`` left out
heal nothing.

A claim of the older sweep is no longer valid where boot id, driver, firmware or another trait is not what it was sealed
on; what changed is named.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wholestack.finding import EXIT_FINDINGS, EXIT_OK, EXIT_UNKNOWN, WORST_FIRST, Finding
from wholestack.health.connection import CHECK as CONNECTION
from wholestack.health.describing import WORDS, bullet, indented
from wholestack.health.looked import judged_by, would_see
from wholestack.health.records import RESULTS
from wholestack.health.result import HostResult
from wholestack.health.verdicts import Sweep, read_sweep
from wholestack.record import to_builtins
from wholestack.runs import RunReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One Finding whose status is another."""

    before: Finding
    after: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """A host that is not the one that the older claim was sealed on."""

    host: str
    changes: tuple[str, ...]
    """What is another: ``boot id``, or a trait with both values."""


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
    altered: tuple[Altered, ...]
    """Hosts whose older claim is no longer valid."""

    @property
    def worse(self) -> bool:
        """Whether anything is new, or worse than it was."""
        rank = WORST_FIRST.index
        return bool(self.new) or any(rank(each.after.status) < rank(each.before.status) for each in self.changed)

    @property
    def exit_code(self) -> int:
        """1 where anything is new or worse; else 3 where something could not be looked at again; else 0."""
        if self.worse:
            return EXIT_FINDINGS
        return EXIT_UNKNOWN if self.unclear else EXIT_OK

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
            "altered": [each.host for each in self.altered],
            "claims_no_longer_valid": {each.host: list(each.changes) for each in self.altered},
        }


def compare_sweeps(older: Path, newer: Path) -> Difference:
    """Compare two run directories.

    Raises:
        InputError: one is no concluded sweep.
    """
    results = [
        {each.host: each for each in RunReader(folder).journal(RESULTS, HostResult)} for folder in (older, newer)
    ]
    return difference(read_sweep(older), read_sweep(newer), altered=altered_hosts(*results))


def difference(older: Sweep, newer: Sweep, *, altered: Iterable[Altered] = ()) -> Difference:
    """Compare two sweeps by the ids of their Findings."""
    before = {each.id: each for verdict in older.verdicts for each in verdict.findings}
    after = {each.id: each for verdict in newer.verdicts for each in verdict.findings}
    again = _Again(older, newer)
    gone = [each for id_, each in before.items() if id_ not in after]
    both = [(before[id_], each) for id_, each in after.items() if id_ in before]
    return Difference(
        new=_ordered(each for id_, each in after.items() if id_ not in before),
        healed=_ordered(each for each in gone if again.looked_at(each)),
        changed=tuple(Change(before=old, after=new) for old, new in both if old.status != new.status),
        still=_ordered(new for old, new in both if old.status == new.status),
        unclear=_ordered(each for each in gone if not again.looked_at(each)),
        altered=tuple(sorted(altered, key=lambda each: each.host)),
    )


def altered_hosts(older: Mapping[str, HostResult], newer: Mapping[str, HostResult]) -> list[Altered]:
    """Hosts of both sweeps that have another boot or other traits; what either did not say is not compared.

    Args:
        older: Results by host.
        newer: The same of the newer sweep.
    """
    found = [Altered(host=host, changes=_changes(older[host], newer[host])) for host in older if host in newer]
    return [each for each in found if each.changes]


def _changes(older: HostResult, newer: HostResult) -> tuple[str, ...]:
    rebooted = bool(older.boot_id and newer.boot_id) and older.boot_id != newer.boot_id
    before, after = _by_name(older), _by_name(newer)
    other = [name for name in before if name in after and before[name] != after[name]]
    traits = [f"{name} {before[name]} -> {after[name]}" for name in sorted(other)]
    return (*(["boot id changed"] if rebooted else []), *traits)


def _by_name(result: HostResult) -> dict[str, str]:
    """Traits with all their values, and how many parts have each where that is not all of them."""
    values: dict[str, list[tuple[str, int]]] = {}
    for trait in result.traits:
        values.setdefault(trait.name, []).append((str(trait.value), len(trait.parts)))
    return {
        name: said[0][0] if len(said) == 1 else ", ".join(f"{count} x {value}" for value, count in sorted(said))
        for name, said in values.items()
    }


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
    for each in found.altered:
        lines.append(bullet("altered", f"{each.host}: claim no longer valid: {'; '.join(each.changes)}"))
    return "\n".join(lines)


def _line(word: str, each: Finding, more: str = "") -> str:
    part = f", {each.part}" if each.part not in ("", "host") else ""
    said = f"{each.subject}{part}: {WORDS[each.status]} {each.cause}{more}  [{each.check} {each.id[:8]}]"
    evidence = [indented(each.evidence[0], cut=True)] if word == "new" and each.evidence else []
    return "\n".join([bullet(word, said), *evidence])


class _Again:
    """At what the newer sweep looked."""

    def __init__(self, older: Sweep, newer: Sweep) -> None:
        self._verdicts = {verdict.host: verdict for verdict in newer.verdicts}
        self._put = newer.plan.checks
        self._as_much = set(older.plan.checks) <= set(newer.plan.checks)

    def looked_at(self, each: Finding) -> bool:
        """Whether the newer sweep would have seen a Finding of the older one again."""
        verdict = self._verdicts.get(each.subject)
        if verdict is None or any(found.check == CONNECTION for found in verdict.findings):
            return False
        return would_see(each.check, judged_by(verdict, self._put), as_much=self._as_much)


def _ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda each: (WORST_FIRST.index(each.status), each.subject, each.id)))
