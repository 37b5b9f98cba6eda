"""From the folder of a concluded sweep to what a history keeps of it."""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

from wholestack.errors import InputError, RunDirectoryError
from wholestack.finding import Finding
from wholestack.health.claim_causes import CLAIM, NOTHING_APPLIES
from wholestack.health.connection import CHECK as CONNECTION
from wholestack.health.history.looks import Fact, HostLook, Seat, Sight, SweepLook, is_serial, sweep_look
from wholestack.health.looked import judged_by
from wholestack.health.parts import identity_in
from wholestack.health.records import PLAN, RESULTS, SUMMARY, HostVerdict, SweepSummary
from wholestack.health.result import HostResult
from wholestack.health.verdicts import read_sweep
from wholestack.remote.host import SHARED, Host
from wholestack.runs import FINDINGS, RunReader

FACTS = (
    "gpu.name", "gpu.driver", "gpu.cuda", "gpu.vbios", "gpu.inforom_image", "ib.firmware", "ib.board",
    "drive.models", "drive.firmware.*", "switch.firmware", "host.product", "host.bios_version", "host.os",
    "kernel.version", "docker.version", "containerd.version", "cpu.model",
)  # fmt: skip
"""Traits that are versions or models: what a host has, not how it fares."""
MOST_EVIDENCE = 4
"""Lines of a Finding that are kept, as they were when it was first seen."""


def in_order(folders: Iterable[Path]) -> list[Path]:
    """Concluded sweeps in the order in which they ended.

    Raises:
        InputError: one has not ended.
        RunDirectoryError: one is no run directory, or cannot be read.
    """
    ended: list[tuple[float, Path]] = []
    for folder in folders:
        summary = RunReader(folder).read_optional(SUMMARY, SweepSummary)
        if summary is None:
            remedy = "name folders of sweeps that have ended"
            raise InputError(f"{folder}: no sweep, or one that has not ended", remedy=remedy)
        ended.append((summary.at, folder))
    return [folder for _, folder in sorted(ended)]


def look_at(folder: Path) -> SweepLook:
    """A concluded sweep, as a history takes it.

    Raises:
        InputError: it is another kind of run, or has not ended.
        RunDirectoryError: it is no run directory, or cannot be read.
        RecordError: its files do not belong together.
    """
    sweep = read_sweep(folder)
    results = {each.host: each for each in RunReader(folder).journal(RESULTS, HostResult)}
    hosts = {host.name: host for host in sweep.plan.hosts}
    looks = [_host_look(hosts[each.host], results[each.host], each, sweep.plan.checks) for each in sweep.verdicts]
    return sweep_look(
        looks,
        id=_digest_of(folder),
        at=sweep.summary.at,
        folder=str(folder.resolve()),
        checks=sweep.plan.checks,
        in_full=not sweep.plan.left_out,
    )


def _host_look(host: Host, result: HostResult, verdict: HostVerdict, put: Iterable[str]) -> HostLook:
    found = list(verdict.findings)
    if verdict.status == "unknown" and not found:
        found.append(NOTHING_APPLIES.finding(host.name, CLAIM, evidence=()))
    return HostLook(
        host=host.name,
        kind=host.kind,
        facts=tuple(sorted({*_versions(result), *_places(host)})),
        seats=tuple(sorted(_seats(result))),
        sights=tuple(sorted(map(_sight, found), key=lambda each: each.id)),
        judged=frozenset() if any(each.check == CONNECTION for each in found) else frozenset(judged_by(verdict, put)),
    )


def _versions(result: HostResult) -> Iterator[Fact]:
    by_name: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for trait in result.traits:
        if any(fnmatchcase(trait.name, pattern) for pattern in FACTS):
            by_name.setdefault(trait.name, []).append((str(trait.value), trait.parts))
    for name, said in by_name.items():
        if len(said) == 1:
            yield Fact(name=name, value=said[0][0])
        else:
            yield from (
                Fact(name=name, value=value, part=result.parts[part].identity)
                for value, parts in said
                for part in parts
            )


def _places(host: Host) -> Iterator[Fact]:
    for name in SHARED:
        if value := getattr(host, name):
            yield Fact(name=f"host.{name}", value=value)


def _seats(result: HostResult) -> Iterator[Seat]:
    for each in result.identities:
        if is_serial(each.serial):
            part = result.parts[each.part].identity
            yield Seat(part=part, serial=each.serial, model=each.model, lot=each.lot)


def _sight(found: Finding) -> Sight:
    return Sight(
        id=found.id,
        check=found.check,
        part=identity_in(found.part),
        cause=found.cause,
        owner=found.owner,
        status=found.status,
        evidence=found.evidence[:MOST_EVIDENCE],
    )


def _digest_of(folder: Path) -> str:
    hashed = sha256()
    for name in (PLAN, SUMMARY, FINDINGS):
        try:
            hashed.update((folder / name).read_bytes())
        except OSError as error:
            raise RunDirectoryError(f"{folder / name}: cannot be read: {error.strerror}") from error
    return hashed.hexdigest()[:32]
