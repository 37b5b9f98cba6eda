"""Goals: what is really wanted, written down before any cheap number is believed.

A goal is a target measure that may be costly or rare, such as the share of outputs people accept. It lives in a run
directory of its own, ``GOALS/NAME``: ``goal.jsonl`` holds its definitions (the last one counts, the older ones stay
to be seen), ``measurements.jsonl`` what was measured so far, ``agreements.jsonl`` how well cheap metrics ranked as it
does, ``claims.jsonl``, ``looks.jsonl`` and ``findings.jsonl`` what was sealed about that and how it came out, so that
``wholestack ready GOALS/NAME`` reads them as it reads those of any run.

A measurement belongs to the definition under which it was made. Whoever changes what is measured starts again, and
the old measurements no longer count for the new goal.
"""

import math
import platform
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from wholestack import __version__
from wholestack.errors import InputError
from wholestack.record import Record, digest
from wholestack.runs import MANIFEST, RunDirectory, RunManifest, RunReader

KIND = "goal"
DEFINITIONS = "goal.jsonl"
MEASUREMENTS = "measurements.jsonl"

Better = Literal["higher", "lower"]

_LARGEST = 1e100
"""Of a measurement: squares of it are summed."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal(Record):
    """What is really wanted. Make it with :func:`make_goal`, which checks it."""

    SCHEMA: ClassVar[str] = "goal/1"

    name: str
    """Short name, also that of its folder."""
    measure: str
    """The target measure in words."""
    better: Better
    """Direction."""
    unit: str
    """Unit of the measure; empty for shares and counts."""
    how: str
    """How it is measured."""
    by: str
    """Who measures it."""
    matters: float
    """Smallest difference that changes a decision, in the unit of the measure."""
    set_at: float
    """Seconds since the epoch."""

    @property
    def definition(self) -> str:
        """Hash of what a measurement of it is: measure, direction, unit and way; not of who, when and what matters."""
        return digest(self.name, self.measure, self.better, self.unit, self.how)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(Record):
    """One value of the target measure for one model or setting."""

    SCHEMA: ClassVar[str] = "goal-measurement/1"

    definition: str
    """Of the goal as it was when this was measured."""
    model: str
    """Model or setting."""
    value: float
    """In the unit of the goal."""
    error: float | None
    """Standard error; ``None`` where nobody says."""
    n: int | None
    """Things measured, for instance outputs that were judged; ``None`` where nobody says."""
    note: str
    """Anything that a reader should know."""
    at: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Record):
    """All that is known of one model under a goal: its measurements taken together."""

    model: str
    """Model or setting."""
    value: float
    """Mean of its measurements, weighted by precision where all state an error."""
    error: float | None
    """Standard error of ``value``; ``None`` where any measurement lacks one."""
    measurements: int
    """How many there are."""
    first_at: float
    """When the first was made, seconds since the epoch."""


def make_goal(
    name: str,
    *,
    measure: str,
    better: Better,
    matters: float,
    unit: str = "",
    how: str = "",
    by: str = "",
    set_at: float,
) -> Goal:
    """Check a goal and make it.

    Raises:
        InputError: the name cannot be a folder's, the measure is empty, or what matters is not above zero.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is no name of a goal", remedy="use letters, digits, dot, hyphen and underscore")
    if not measure.strip():
        raise InputError(f"goal {name}: the measure is empty", remedy="say in words what is really wanted")
    if not (math.isfinite(matters) and matters > 0):
        raise InputError(
            f"goal {name}: the smallest difference that matters is {matters:g}, must be above zero",
            remedy="say which difference would change a decision",
        )
    return Goal(
        name=name, measure=measure.strip(), better=better, unit=unit, how=how, by=by, matters=matters, set_at=set_at
    )


def set_goal(folder: Path, goal: Goal) -> Goal | None:
    """Put a goal's definition on the disk and hand back the one that it replaces.

    Args:
        folder: Holds one folder a goal.
        goal: The definition.

    Raises:
        RunDirectoryError: the folder cannot be written or holds something else.
    """
    path = folder / goal.name
    before: Goal | None = None
    if (path / MANIFEST).is_file():
        before = read_goal(path)
        run = RunDirectory.resume(path)
    else:
        run = RunDirectory.create(path, _manifest(goal))
    with run:
        run.append(DEFINITIONS, goal)
    return before


def measure_goal(
    path: Path, model: str, value: float, *, error: float | None = None, n: int | None = None, note: str = "", at: float
) -> Measurement:
    """Add one measurement of the target.

    Args:
        path: Folder of the goal.
        model: Model or setting, under the name that its proxies have too.
        value: In the unit of the goal.
        error: Standard error of ``value``; a share of ``n`` gets the one of a count when none is given.
        n: Things measured.
        note: Anything that a reader should know.
        at: When, seconds since the epoch.

    Raises:
        InputError: there is no such goal, or a number is not finite or below its bound.
    """
    goal = read_goal(path)
    if not model.strip():
        raise InputError(f"goal {goal.name}: the model has no name")
    if not abs(value) <= _LARGEST:
        raise InputError(
            f"goal {goal.name}: the value of {model} is {value}, must be a finite number up to {_LARGEST:g}"
        )
    if error is not None and not (error == 0 or 1 / _LARGEST <= error <= _LARGEST):
        raise InputError(f"goal {goal.name}: the error of {model} is {error}, must be a standard error of 0 or more")
    if n is not None and n < 1:
        raise InputError(f"goal {goal.name}: n of {model} is {n}, must be 1 or more")
    if n is not None and error is None and not 0 <= value <= 1:
        raise InputError(
            f"goal {goal.name}: {value:g} of {model} is no share of {n}", remedy="give 0.7 for 70 %, or --error as well"
        )
    made = Measurement(
        definition=goal.definition,
        model=model.strip(),
        value=float(value),
        error=None if error is None else float(error),
        n=n,
        note=note,
        at=at,
    )
    with RunDirectory.resume(path) as run:
        run.append(MEASUREMENTS, made)
    return made


def read_goal(path: Path) -> Goal:
    """The definition that counts.

    Raises:
        InputError: the folder is no goal's.
    """
    return read_definitions(path)[-1]


def read_definitions(path: Path) -> list[Goal]:
    """Every definition that a goal has had, oldest first; at least one.

    Raises:
        InputError: the folder is no goal's.
    """
    if not (path / MANIFEST).is_file():
        known = goals_in(path.parent)
        remedy = f"known are: {', '.join(known)}" if known else "record it first: wholestack evals goal set"
        raise InputError(f"{path}: no goal", remedy=remedy)
    run = RunReader(path)
    found = run.journal(DEFINITIONS, Goal) if run.manifest.kind == KIND else []
    if not found:
        raise InputError(f"{path}: holds a {run.manifest.kind!r} and no goal", remedy="name the folder of a goal")
    return found


def goals_in(folder: Path) -> list[str]:
    """Names of the goals that a folder holds, sorted."""
    return sorted(path.parent.name for path in folder.glob(f"*/{DEFINITIONS}"))


def read_measurements(path: Path) -> list[Measurement]:
    """Measurements under the definition that counts, oldest first."""
    definition = read_goal(path).definition
    return [each for each in RunReader(path).journal(MEASUREMENTS, Measurement) if each.definition == definition]


def outdated(path: Path) -> int:
    """Number of measurements that were made under another definition and do not count."""
    return len(RunReader(path).journal(MEASUREMENTS, Measurement)) - len(read_measurements(path))


def targets(path: Path) -> list[Target]:
    """What is known of each model, in the order of their first measurement."""
    by_model: dict[str, list[Measurement]] = {}
    for each in read_measurements(path):
        by_model.setdefault(each.model, []).append(each)
    return [_together(model, found) for model, found in by_model.items()]


def standard_error(measurement: Measurement) -> float | None:
    """The stated error, or that of a share of ``n`` with one success and one failure added (Agresti and Caffo 2000).

    Without the addition a share of 0 or 1 would claim to have no error at all.
    """
    if measurement.error is not None:
        return measurement.error
    if measurement.n is None or not 0 <= measurement.value <= 1:
        return None
    share = (measurement.value * measurement.n + 1) / (measurement.n + 2)
    return math.sqrt(share * (1 - share) / (measurement.n + 2))


def _pooled(found: list[Measurement]) -> list[Measurement]:
    """Shares of counts as one share of all; weights from each share's own error would favour 0 and 1."""
    counts = [each.n for each in found if each.error is None and each.n is not None and 0 <= each.value <= 1]
    if len(counts) < len(found):
        return found
    together = sum(counts)
    share = sum(each.value * count for each, count in zip(found, counts, strict=True)) / together
    return [replace(found[0], value=share, n=together)]


def _together(model: str, measured: list[Measurement]) -> Target:
    found = _pooled(measured)
    errors = [standard_error(each) for each in found]
    known = [each for each in errors if each is not None and each > 0]
    precise = len(known) == len(found)
    weights = [1 / each**2 for each in known] if precise else [1.0] * len(found)
    total = sum(weights)
    if precise:
        error: float | None = total**-0.5
    else:
        error = None if None in errors else sum(each**2 for each in known) ** 0.5 / len(found)
    return Target(
        model=model,
        value=sum(weight * each.value for weight, each in zip(weights, found, strict=True)) / total,
        error=error,
        measurements=len(measured),
        first_at=min(each.at for each in measured),
    )


def _manifest(goal: Goal) -> RunManifest:
    versions = {"python": platform.python_version(), "wholestack": __version__}
    return RunManifest(kind=KIND, created_at=goal.set_at, seed=0, config={"goal": goal.name}, versions=versions)
