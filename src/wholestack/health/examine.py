"""Examine one host: from the outputs of its probes to symptoms, traits, measures and counters. Pure.

A check is a plug-in that meets the text of a broken host: whatever exception it raises, it has no verdict on this host
(``unknown``, with its name and the error), and nothing else of this host or of a sweep is lost. The same for what a
check says without having declared it (:mod:`wholestack.health.declared`): that shows on the day on which a host breaks
in the way that nobody tried, so it is told there, by name, and what the check saw stays.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from wholestack.finding import Skipped
from wholestack.health.check import (
    Before,
    Check,
    Counter,
    Expectation,
    Identity,
    Measure,
    Scalar,
    Seen,
    Symptom,
    Trait,
)
from wholestack.health.declared import sayable
from wholestack.health.diagnosis import LONGEST_LINE, CheckSymptom, bounded, not_too_many
from wholestack.health.growth import left_behind
from wholestack.health.parts import HOST, Part
from wholestack.health.probe import NotThereError, Probe, UnreadableError, tripped
from wholestack.health.telemetry import CHECK_WRONG, EXPECTED, MOMENT, unreadable
from wholestack.remote.batch import Output

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What the checks say of one host, before it is compared with others."""

    symptoms: tuple[CheckSymptom, ...]
    """As seen; :func:`~wholestack.health.diagnosis.diagnose` merges them."""
    traits: tuple[Trait, ...]
    measures: tuple[Measure, ...]
    passed: tuple[str, ...]
    """Checks that applied, could be read and saw nothing."""
    skipped: tuple[Skipped, ...]
    after: Before | None
    """Left behind for the next look: where the host did not say when this one was taken, what the last one left."""
    at: float
    """Seconds since the epoch, by the host's clock where it said."""
    boot_id: str = ""
    """Of the running kernel; empty if it did not say."""
    identities: tuple[Identity, ...] = ()


def examine(
    outputs: Mapping[str, Output],
    checks: Sequence[Check],
    *,
    expectation: Expectation | None = None,
    before: Before | None = None,
    now: float,
    round_trip_s: float | None = None,
) -> Examination:
    """Put every check to one host.

    Args:
        outputs: By probe name.
        checks: Those to put.
        expectation: Of the host's kind; also overrides limits.
        before: The last look at this host.
        now: Seconds since the epoch, where the host does not say; by the clock of the machine that asked.
        round_trip_s: How long before ``now`` the host was asked at most, so that its clock can be compared with ours;
            ``None`` if these outputs were not taken just now.
    """
    moment = Seen(outputs, now=now).maybe(MOMENT)
    seen = Seen(
        outputs,
        expectation=expectation,
        now=moment.now if moment else now,
        boot_id=moment.boot_id if moment else "",
        uptime_s=moment.uptime_s if moment else None,
        before=before,
        asked_at=now - round_trip_s if round_trip_s is not None else None,
        answered_at=now if round_trip_s is not None else None,
    )
    gathered = _Gathered(seen)
    gathered.date(MOMENT)
    for check in checks:
        gathered.put(check)
    gathered.compare_with_profile(checks)
    return Examination(
        symptoms=tuple(not_too_many([*gathered.symptoms, *gathered.silent_probes()])),
        traits=tuple(gathered.traits),
        measures=tuple(gathered.measures),
        passed=tuple(gathered.passed),
        skipped=tuple(gathered.skipped),
        after=left_behind(seen, gathered.counters) if moment else before,
        at=seen.now,
        boot_id=seen.boot_id,
        identities=tuple(gathered.identities),
    )


class _Gathered:
    """Collects the answers of all checks to one host."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.symptoms: list[CheckSymptom] = []
        self.traits: list[Trait] = []
        self.measures: list[Measure] = []
        self.counters: list[Counter] = []
        self.identities: list[Identity] = []
        self.passed: list[str] = []
        self.skipped: list[Skipped] = []
        self._why_absent: dict[str, str] = {}
        self._silent: dict[str, tuple[Probe[Any], UnreadableError, list[str]]] = {}

    def date(self, moment: Probe[Any]) -> None:
        """Say so where the host was asked for its time and boot and did not tell: windows then rest on our clock."""
        try:
            if moment.name in self.seen.outputs:
                self.seen.of(moment)
        except (UnreadableError, NotThereError) as error:
            said = error if isinstance(error, UnreadableError) else UnreadableError(error.detail)
            self._silent[moment.name] = (moment, said, ["the host's clock, boot and time since boot"])

    def put(self, check: Check) -> None:
        """One check: its symptoms, deviations from the profile, and what the fleet will be compared by."""
        found: list[Symptom] = []
        mistakes: list[str] = []
        try:
            found.extend(sayable(check, check.judge(self.seen), mistakes))
            traits = list(sayable(check, check.traits(self.seen), mistakes))
            self.measures.extend(sayable(check, check.measures(self.seen), mistakes))
            self.counters.extend(sayable(check, check.counters(self.seen), mistakes))
            self.identities.extend(sayable(check, check.identities(self.seen), mistakes))
        except NotThereError as absent:
            self._why_absent[check.name] = absent.detail
            if found or mistakes:
                self._blame(check, mistakes)
                self._add(check, found)
            else:
                self._absent(check, absent)
            return
        except UnreadableError as error:
            self._note_silent(check, error)
            self._blame(check, mistakes)
            self._add(check, found)
            return
        except Exception as error:  # noqa: BLE001  a plug-in: no list of what it may raise is complete
            # The facts were read, yet the judge cannot cope with them: that is no verdict, and no reason to lose the
            # other checks of this host or the other hosts of a sweep.
            self._note_silent(check, UnreadableError(f"{check.name}: {tripped(error)}"))
            self._blame(check, mistakes)
            self._add(check, found)
            return
        found.extend(deviations(traits, self.seen.expectation.traits))
        self.traits.extend(traits)
        self._blame(check, mistakes)
        self._add(check, found)
        if not found and not mistakes:
            self.passed.append(check.name)

    def compare_with_profile(self, checks: Sequence[Check]) -> None:
        """Say which traits of the profile none of the checks that give them has shown; nothing of others."""
        shown = {trait.name for trait in self.traits}
        for name, wanted in self.seen.expectation.traits.items():
            # Where none is expected, nothing there is as expected.
            if name in shown or wanted in (0, False):
                continue
            for check in checks:
                if any(fnmatchcase(name, pattern) for pattern in check.trait_names) and self._should_show(check):
                    self._add(check, [self._not_shown(check, f"{name} expected {wanted}")])

    def silent_probes(self) -> Iterator[CheckSymptom]:
        """One symptom for every probe that could not be read."""
        for name, (probe, error, checks) in self._silent.items():
            symptom = unreadable(probe, self.seen.outputs.get(name), error, tuple(checks))
            yield bounded(CheckSymptom(check=f"telemetry.{name}", symptom=symptom))

    def _add(self, check: Check, found: Sequence[Symptom]) -> None:
        self.symptoms.extend(bounded(CheckSymptom(check=check.name, symptom=each)) for each in found)

    def _blame(self, check: Check, mistakes: Sequence[str]) -> None:
        """What the check said without having declared it, as one ``unknown`` that names check and probe."""
        if mistakes:
            evidence = tuple(f"{check.name}: {each}" for each in dict.fromkeys(mistakes))
            symptom = Symptom(cause=CHECK_WRONG, part=Part(kind="probe", key=check.probes[0].name), evidence=evidence)
            self.symptoms.append(bounded(CheckSymptom(check=CHECK_WRONG.code, symptom=symptom)))

    def _absent(self, check: Check, absent: NotThereError) -> None:
        if check.name in self.seen.expectation.checks:
            self._add(check, [Symptom(cause=EXPECTED, part=HOST, evidence=(f"{check.name}: {absent.detail}",))])
        else:
            detail = absent.detail[:LONGEST_LINE]
            self.skipped.append(Skipped(check=check.name, reason=absent.reason, detail=detail))

    def _should_show(self, check: Check) -> bool:
        """Whether all that a check reads was asked for, and the check has not said itself why it shows less."""
        told = any(each.check == check.name and each.status in ("fail", "unknown") for each in self.symptoms)
        silent = any(check.name in names for _, _, names in self._silent.values())
        return not told and not silent and all(probe.name in self.seen.outputs for probe in check.probes)

    def _not_shown(self, check: Check, expected: str) -> Symptom:
        unread = next(self._unreadable(check), None)
        if unread is not None:
            return Symptom(cause=EXPECTED, evidence=(f"{expected}, could not be read: {unread}",), status="unknown")
        why = self._why_absent.get(check.name, f"{check.name} saw none")
        return Symptom(cause=EXPECTED, evidence=(f"{expected}, not there: {why}",))

    def _unreadable(self, check: Check) -> Iterator[UnreadableError]:
        for probe in check.probes:
            try:
                self.seen.of(probe)
            except UnreadableError as error:
                yield error
            except NotThereError:
                continue

    def _note_silent(self, check: Check, error: UnreadableError) -> None:
        """Which of the check's probes it was: the first one that raises this very error when it is asked again.

        If none does, the check itself met something that it could not understand, in what its first probe gave.
        """
        for probe in check.probes:
            try:
                self.seen.of(probe)
            except UnreadableError as again:
                if again is error:
                    self._silent.setdefault(probe.name, (probe, error, []))[2].append(check.name)
                    return
            except NotThereError:
                continue
        probe = check.probes[0]
        self._silent.setdefault(probe.name, (probe, error, []))[2].append(check.name)


def deviations(traits: Sequence[Trait], expected: Mapping[str, Scalar]) -> Iterator[Symptom]:
    """Traits that are not as expected; of those that nothing is expected of, none."""
    for trait in traits:
        wanted = expected.get(trait.name)
        if wanted is not None and not _same(wanted, trait.value):
            evidence = (f"{trait.name} is {trait.value}, expected {wanted}",)
            yield Symptom(cause=trait.differs, part=trait.part, evidence=evidence)


def _same(one: Scalar, other: Scalar) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= 1e-9 * max(abs(one), abs(other))
    return str(one) == str(other)
