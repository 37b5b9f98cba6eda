"""At what a sweep looked, and so what its silence on something says."""

from collections.abc import Container, Iterable
from functools import cache

from wholestack.health import catalog
from wholestack.health.records import HostVerdict


def judged_by(verdict: HostVerdict, put: Iterable[str]) -> set[str]:
    """Checks that were put, applied and could be read."""
    return set(put) - set(verdict.unjudged) - {each.check for each in verdict.skipped}


def would_see(check: str, judged: Container[str], *, as_much: bool) -> bool:
    """Whether a look at a host that answered would show again what an earlier one showed.

    Args:
        check: Of the earlier Finding.
        judged: By the later look.
        as_much: Whether the later look was asked for all that the earlier one was.
    """
    readers = _readers().get(check)
    if readers is not None:
        return any(name in judged for name in readers)
    if check.startswith("telemetry."):
        return as_much
    return check in judged


@cache
def _readers() -> dict[str, tuple[str, ...]]:
    """Checks that read a probe, by the check of the Finding that the probe is silent."""
    reading: dict[str, tuple[str, ...]] = {}
    for check in catalog.CHECKS:
        for probe in check.probes:
            name = f"telemetry.{probe.name}"
            reading[name] = (*reading.get(name, ()), check.name)
    return reading
