"""File systems: full in bytes or in inodes."""

from collections.abc import Iterable, Iterator

from wholestack.health.check import Cause, Check, Limit, Seen, Symptom
from wholestack.health.formats.df import FileSystem, looks_like_df, read_df
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe
from wholestack.remote.batch import Command

DF = Format(name="df", matches=looks_like_df, read=read_df)
BYTES = Probe(command=Command(name="df", shell="df -lPk", limit_s=5, max_bytes=200_000), formats=(DF,))
INODES = Probe(command=Command(name="df_inodes", shell="df -lPi", limit_s=5, max_bytes=200_000), formats=(DF,))

FULL = Limit(name="filesystem.full_share", default=0.95, about="share of bytes or inodes in use that is a fail")
FILLING = Limit(name="filesystem.filling_share", default=0.90, about="share in use that is a warning")

FULL_CAUSE = Cause(
    code="filesystem.full",
    says="file system full",
    owner="cluster team",
    remedy="find what fills it (du -x -d2 MOUNT | sort -n | tail), remove or move it; then see who writes there",
)
FILLING_CAUSE = Cause(
    code="filesystem.filling",
    says="file system nearly full",
    owner="cluster team",
    remedy="clean up before it is full (du -x -d2 MOUNT | sort -n | tail)",
    status="warn",
)


def _once(entries: Iterable[FileSystem]) -> Iterator[FileSystem]:
    """Without the roots of containers that lie on a file system which is told of itself: they share its blocks."""
    listed = sorted(entries, key=lambda each: (each.device == "overlay", each.mount != "/"))
    told: set[str] = set()
    for entry in listed:
        if entry.device != "overlay" or entry.mount == "/" or entry.size not in told:
            yield entry
        told.add(entry.size)


def _judge(entries: Iterable[FileSystem], seen: Seen, unit: str) -> Iterator[Symptom]:
    for entry in _once(entries):
        if entry.used_share is None or not entry.fills:
            continue
        cause = (
            FULL_CAUSE
            if entry.used_share >= seen.limit(FULL)
            else FILLING_CAUSE
            if entry.used_share >= seen.limit(FILLING)
            else None
        )
        if cause is not None:
            part = Part(kind="filesystem", key=entry.mount, label=entry.device)
            yield Symptom(cause=cause, part=part, evidence=(f"{unit}: {entry.line}",))


CHECKS = (
    Check(
        name="filesystem.bytes",
        about="local file systems that are full, or nearly",
        probes=(BYTES,),
        parts=("filesystem",),
        causes=(FULL_CAUSE, FILLING_CAUSE),
        limits=(FULL, FILLING),
        judge=lambda seen: _judge(seen.of(BYTES), seen, "bytes"),
    ),
    Check(
        name="filesystem.inodes",
        about="local file systems without free inodes, although bytes are free",
        probes=(INODES,),
        parts=("filesystem",),
        causes=(FULL_CAUSE, FILLING_CAUSE),
        limits=(FULL, FILLING),
        judge=lambda seen: _judge(seen.of(INODES), seen, "inodes"),
    ),
)
