"""Checks: what one looks at, and what it says of a host. Pure: everything it knows is in :class:`Seen`.

A check answers up to five questions, each a function of what was seen:

* ``judge``: what is wrong by itself? Symptoms, each with a part and a cause.
* ``traits``: what should be the same on every host (or part) of one kind? Compared with the profile, else with the
  fleet's majority; a profile is learnt from them.
* ``measures``: what should be about the same? Compared with the fleet by a robust outlier test.
* ``counters``: what only counts up? Kept, so that the next look judges growth (:mod:`wholestack.health.growth`).
* ``identities``: which one is it? Serial numbers, by which the history knows a part again in another slot or host.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from wholestack.finding import Finding, Status, finding
from wholestack.health.parts import HOST, Part, PartKind
from wholestack.health.probe import NotThereError, Probe, UnreadableError
from wholestack.record import Record
from wholestack.remote.batch import Output

F = TypeVar("F")
Owner = Literal["vendor", "data centre", "network", "cluster team", "job owner"]
"""Who acts: ``vendor`` replaces hardware; ``data centre`` does power, cooling, cabling, reseating on site; ``network``
the fabric beyond the host's port; ``cluster team`` software, configuration, reboots; ``job owner`` the user's job."""
Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that can be wrong; a constant of the check's module."""

    code: str
    """Unique, ``noun.what``, for instance ``gpu.off_bus``."""
    says: str
    """In a few words, as a Finding shows it."""
    owner: Owner
    remedy: str
    """What to do, in the imperative, for a person at 3 a.m."""
    status: Status = "fail"
    explains: tuple[str, ...] = ()
    """Codes that this one brings about on the same part, on parts within it, or on the host as a whole: their
    symptoms become its evidence, since one fault is one Finding. A code followed by a blank and a part's key means
    that part only: ``telemetry.hung nvidia_smi``."""

    def finding(
        self,
        subject: str,
        check: str,
        *,
        evidence: Sequence[str],
        part: str = "",
        at: float | None = None,
        status: Status | None = None,
        settles: str = "",
    ) -> Finding:
        """What it is called on a subject: the one way from a cause to a Finding, so that each can be explained.

        Args:
            subject: The host, or whatever is judged.
            check: Name of what saw it.
            evidence: The very lines or numbers.
            part: Which part of the subject.
            at: Seconds since the epoch.
            status: Another than the cause's own.
            settles: Id of the claim that it settles.
        """
        return finding(
            subject,
            check,
            status or self.status,
            evidence=evidence,
            part=part,
            cause=self.says,
            owner=self.owner,
            remedy=self.remedy,
            at=at,
            settles=settles,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """One cause seen at one part."""

    cause: Cause
    evidence: tuple[str, ...]
    """The very lines or numbers."""
    part: Part = HOST
    status: Status | None = None
    """Another status than the cause's own."""

    def __post_init__(self) -> None:
        """Refuse evidence that is one text, which would be shown letter by letter, or no text at all."""
        if not isinstance(self.evidence, tuple) or not all(isinstance(line, str) for line in self.evidence):
            found = repr(self.evidence)[:60]
            raise TypeError(f"evidence of {self.cause.code} is {found}, must be a tuple of texts: (line,)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """A property that all of one kind should share."""

    name: str
    """Key in a profile, ``noun.what``, for instance ``gpu.count``."""
    value: Scalar
    differs: Cause
    """What it means if it is not as expected."""
    part: Part = HOST
    drifts: bool = True
    """Whether the fleet's majority decides where the profile says nothing; a count of things in use should not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number that should be about the same on all of one kind."""

    name: str
    """``noun.what_unit``, for instance ``gpu.temperature_c``."""
    value: float
    outlies: Cause
    """What it means if it stands out."""
    part: Part = HOST
    bad: Literal["high", "low", "both"] = "both"
    """On which side standing out is bad."""
    least: float = 0.0
    """Differences from the fleet's median below this never matter, whatever the spread."""
    certain: float | None = None
    """A part that lies so far beyond its neighbours, what is usual for its place taken off, stands out whatever the
    spread; for quantities of which physics says how much healthy parts can differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter(Record):
    """A number that only counts up, until a reset."""

    name: str
    """``noun.what``."""
    value: int
    part: str = ""
    """Identity of the part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which one a part is: what stays with it when it is moved to another slot or another host."""

    part: Part
    serial: str
    """As the maker wrote it; for want of one, an address or GUID that is burnt in."""
    model: str = ""
    """Part number, or the name of the product."""
    lot: str = ""
    """When it was made, or with which others, where it says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A threshold that a profile may change under its name."""

    name: str
    """``noun.what_unit``."""
    default: float
    about: str
    """What happens beyond it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Before(Record):
    """What an earlier look at the same host left behind."""

    at: float
    """Seconds since the epoch, by the host's clock."""
    boot_id: str
    counters: tuple[Counter, ...]
    older: tuple["Before", ...] = ()
    """What this look could not read and looks before it had: each with its own time and boot, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A counter as it was read last."""

    value: int
    at: float
    """Seconds since the epoch, by the host's clock."""
    boot_id: str


def all_known(before: Before) -> dict[tuple[str, str], Known]:
    """Counters by name and part, each as it was read last."""
    return {
        (each.name, each.part): Known(value=each.value, at=look.at, boot_id=look.boot_id)
        for look in (*reversed(before.older), before)
        for each in look.counters
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation(Record):
    """What a kind of host should be like; one table of a profile."""

    traits: dict[str, Scalar] = field(default_factory=dict)
    """By name of the trait."""
    limits: dict[str, float] = field(default_factory=dict)
    """By name of the limit; only those that differ from the defaults."""
    checks: tuple[str, ...] = ()
    """Checks that must apply: if one has nothing to look at, that is a fail."""
    options: dict[str, str] = field(default_factory=dict)
    """Named texts that a probe or check asks for, for instance a container image."""


class Seen:
    """Everything that is known of one host at one moment; probes are read on first use and once.

    Args:
        outputs: By probe name.
        expectation: Of the host's kind.
        now: Seconds since the epoch: the host's clock if it gave one.
        boot_id: Of the running kernel; empty if not known.
        uptime_s: Since boot; ``None`` if not known.
        before: The last look, if there was one.
        asked_at: Between these two moments by the asking machine's clock the host said what time it is; ``None`` where
            nobody asked it just now (a saved output).
        answered_at: See ``asked_at``.
    """

    def __init__(
        self,
        outputs: Mapping[str, Output],
        *,
        expectation: Expectation | None = None,
        now: float,
        boot_id: str = "",
        uptime_s: float | None = None,
        before: Before | None = None,
        asked_at: float | None = None,
        answered_at: float | None = None,
    ) -> None:
        self.outputs = outputs
        self.expectation = expectation or Expectation()
        self.now = now
        self.boot_id = boot_id
        self.uptime_s = uptime_s
        self.before = before
        self._facts: dict[tuple[str, int], Any] = {}
        self._old = all_known(before) if before is not None else {}
        self.asked_at = asked_at
        self.answered_at = answered_at

    def of(self, probe: Probe[F]) -> F:
        """Facts of a probe.

        Raises:
            NotThereError, UnreadableError: see :meth:`Probe.read`; a check lets them pass, what follows is decided once
                (:mod:`wholestack.health.examine`).
        """
        # Two modules may read one output in their own ways: the name alone does not tell their facts apart.
        key = (probe.name, id(probe.formats))
        if key not in self._facts:
            self._facts[key] = self._read(probe)
        found = self._facts[key]
        if isinstance(found, NotThereError | UnreadableError):
            raise found
        facts: F = found
        return facts

    def maybe(self, probe: Probe[F]) -> F | None:
        """Facts of a probe that only adds to others, or ``None``."""
        try:
            return self.of(probe)
        except (NotThereError, UnreadableError):
            return None

    def limit(self, limit: Limit) -> float:
        """The profile's value of a limit, or its default."""
        return self.expectation.limits.get(limit.name, limit.default)

    def known(self, name: str, part: str) -> Known | None:
        """What earlier looks knew last of a counter; see :mod:`wholestack.health.growth`."""
        return self._old.get((name, part))

    def _read(self, probe: Probe[F]) -> F | NotThereError | UnreadableError:
        if probe.option and probe.option not in self.expectation.options and probe.name not in self.outputs:
            return NotThereError("not_expected", f"no option {probe.option!r} in the profile")
        output = self.outputs.get(probe.name, Output(name=probe.name, exit_status=None, ending="not_run"))
        try:
            return probe.read(output)
        except (NotThereError, UnreadableError) as error:
            return error


def _nothing(_: Seen) -> Iterator[Any]:
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Check:
    """One line of the catalogue; each is itself and equal to no other."""

    name: str
    """``noun.what``."""
    about: str
    """One line for the catalogue."""
    probes: tuple[Probe[Any], ...]
    """What it reads; ``wholestack health judge`` takes a saved output for the first one."""
    parts: tuple[PartKind, ...]
    """What it can blame, or tell the serial number of."""
    causes: tuple[Cause, ...]
    """Everything that it can say."""
    judge: Callable[[Seen], Iterable[Symptom]] = _nothing
    traits: Callable[[Seen], Iterable[Trait]] = _nothing
    measures: Callable[[Seen], Iterable[Measure]] = _nothing
    counters: Callable[[Seen], Iterable[Counter]] = _nothing
    identities: Callable[[Seen], Iterable[Identity]] = _nothing
    limits: tuple[Limit, ...] = ()
    trait_names: tuple[str, ...] = ()
    """Names of all traits that it may give: what a profile may state; ``noun.*`` for names made from what is found."""
    options: tuple[str, ...] = ()
    """Options of a profile that it reads itself; those of its probes come on top."""
    passive: bool = True
    """Whether a sweep puts it; else it only judges saved outputs, for instance of a benchmark."""

    @property
    def severity(self) -> Status:
        """The worst that it can say."""
        return "fail" if any(cause.status == "fail" for cause in self.causes) else "warn"

    @property
    def keeps_counters(self) -> bool:
        """Whether it says anything that only counts up."""
        return self.counters is not _nothing
