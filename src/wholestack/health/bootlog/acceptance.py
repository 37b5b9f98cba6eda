"""What a person decided: a deviation may be, why, by whom and until when."""

from collections.abc import Iterable
from dataclasses import replace

from wholestack.errors import InputError
from wholestack.health.bootlog.deviations import Deviation
from wholestack.health.bootlog.masking import masked
from wholestack.health.bootlog.records import Acceptance, BootModel
from wholestack.record import digest

LONGEST_DAYS = 3_660


def accept(
    model: BootModel, lines: Iterable[tuple[str, str]], *, why: str, by: str, now: float, until: float
) -> BootModel:
    """The model with decisions added; a later one on the same line takes the place of an earlier one.

    Args:
        model: That judges.
        lines: Kind of deviation (empty for all kinds) and the very line.
        why: The reason.
        by: The person.
        now: Seconds since the epoch.
        until: Seconds since the epoch; from then on the line speaks again.

    Raises:
        InputError: no reason or person, or an end that has passed or is too far.
    """
    if not why.strip() or not by.strip():
        raise InputError("a decision needs a reason and a person", remedy="give --why and --by")
    if not now < until <= now + LONGEST_DAYS * 86_400:
        remedy = f"give --until a date within {LONGEST_DAYS // 366} years"
        raise InputError("the decision would have ended already, or never end", remedy=remedy)
    added = {
        digest(kind, line): Acceptance(
            id=digest(kind, line),
            kind=kind,
            line=line,
            wording=masked(line).wording,
            why=why.strip(),
            by=by.strip(),
            at=now,
            until=until,
        )
        for kind, line in lines
    }
    kept = tuple(each for each in model.accepted if each.id not in added)
    return replace(model, accepted=(*kept, *added.values()))


def decided(accepted: Iterable[Acceptance], deviation: Deviation) -> Acceptance | None:
    """The decision about a deviation, the one with the latest end; also one that has ended."""
    fitting = [each for each in accepted if each.kind in ("", deviation.kind) and _is_about(each, deviation)]
    return max(fitting, key=lambda each: each.until, default=None)


def _is_about(decision: Acceptance, deviation: Deviation) -> bool:
    """The very line, or a missing wording; of an unknown line the numbers may differ, of no other."""
    if deviation.line in (decision.line, decision.wording):
        return True
    return deviation.kind == "unknown" and decision.wording == deviation.wording
