"""Whether enough of a host was looked at to speak of the whole of it.

A check that does not apply gives no Finding, so a host on which next to no tool answers would pass with the few checks
that are left. Two rules, of the checks that were put:

* Every Linux machine has processors, memory and file systems: where every check of one of these (:data:`BASIS`) was
  skipped, the host is ``unknown``.
* A host of a kind that has GPUs, because its profile expects some or because at least half of the hosts of its kind
  in the sweep show some, is ``unknown`` where every check that asks the GPUs themselves was skipped.

What was tried and could not be read is ``unknown`` by itself and not counted here. Checks that were left out by
``--only`` or ``--skip`` make a narrower claim instead (:mod:`wholestack.health.verdicts`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from wholestack.finding import Skipped
from wholestack.health import catalog
from wholestack.health.check import Expectation, Symptom
from wholestack.health.diagnosis import CheckSymptom
from wholestack.health.fleet import alike
from wholestack.health.result import HostResult
from wholestack.health.telemetry import TOO_LITTLE

BASIS = ("cpu", "memory", "filesystem")
"""Nouns of checks that apply to every machine."""
CHECK = "telemetry.coverage"
"""What the Finding names as its check."""
GPU_PROBE = "nvidia_smi"
"""Checks that read it first ask the GPUs; those that only read the kernel log pass on any host."""
GPU_NOUNS = ("gpu.", "nvlink.")


def expects_gpus(expectation: Expectation) -> bool:
    """Whether a profile expects GPUs: a trait of theirs that is not 0, or a check of theirs that must apply."""
    traits = [name for name, value in expectation.traits.items() if value not in (0, False)]
    return any(name.startswith(GPU_NOUNS) for name in (*traits, *expectation.checks))


def hosts_with_gpus(
    results: Sequence[HostResult], checks: Sequence[str], expectations: Mapping[str, Expectation]
) -> set[str]:
    """Names of the hosts whose kind has GPUs.

    Args:
        results: Of all hosts of a sweep.
        checks: Names of those that were put.
        expectations: By kind.
    """
    asking = _asking_gpus(checks)
    found = {each.host for each in results if expects_gpus(expectations.get(each.kind, Expectation()))}
    for members in alike(results).values():
        showing = [each for each in members if each.trouble is None and not asking <= _names(each.skipped)]
        if asking and 2 * len(showing) >= len(members):
            found |= {each.host for each in members}
    return found


def asks_gpus(checks: Iterable[str]) -> bool:
    """Whether any of these checks asks the GPUs themselves."""
    return bool(_asking_gpus(checks))


def shortfall(checks: Sequence[str], skipped: Collection[Skipped], *, gpus: bool) -> list[CheckSymptom]:
    """One symptom with a line for every part of the host at which nothing was looked; empty where enough was.

    Args:
        checks: Names of those that were put.
        skipped: Those that did not apply.
        gpus: Whether the host should have GPUs.
    """
    evidence = tuple(_missing(checks, skipped, gpus=gpus))
    return [CheckSymptom(check=CHECK, symptom=Symptom(cause=TOO_LITTLE, evidence=evidence))] if evidence else []


def _missing(checks: Sequence[str], skipped: Collection[Skipped], *, gpus: bool) -> Iterator[str]:
    why = {each.check: each.detail for each in skipped}
    asked = {noun: {name for name in checks if name.partition(".")[0] == noun} for noun in BASIS}
    if gpus:
        asked["gpu"] = _asking_gpus(checks)
    for noun, names in asked.items():
        if names and names <= set(why):
            reasons = dict.fromkeys(why[name] for name in sorted(names))
            yield f"nothing of {noun} could be judged: {'; '.join(reasons)}"


def _asking_gpus(checks: Iterable[str]) -> set[str]:
    asking = {each.name for each in catalog.CHECKS if each.probes[0].name == GPU_PROBE and each.name.startswith("gpu.")}
    return asking & set(checks)


def _names(skipped: Iterable[Skipped]) -> set[str]:
    return {each.check for each in skipped}
