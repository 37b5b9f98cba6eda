"""systemd units that failed; processes that are stuck or were left behind."""

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from re import sub

from wholestack.finding import Status
from wholestack.health.check import Cause, Check, Limit, Seen, Symptom
from wholestack.health.formats.proc import Process, looks_like_ps, read_ps
from wholestack.health.formats.systemd import Unit, looks_like_systemctl, read_systemctl
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe
from wholestack.remote.batch import Command, Output


def _no_systemd(output: Output) -> str:
    return "systemd does not run here" if b"not been booted with systemd" in output.stdout + output.stderr else ""


SYSTEMD = Probe(
    command=Command(name="systemd", shell="systemctl --failed --plain --no-pager", limit_s=10, max_bytes=1_000_000),
    formats=(Format(name="systemctl", matches=looks_like_systemctl, read=read_systemctl),),
    absent=_no_systemd,
)
PROCESSES = Probe(
    command=Command(
        name="processes",
        # State D twice, some seconds apart: more likely stuck than reading.
        shell=(
            "ps -eo pid,ppid,stat,etimes,user:32,comm; sleep 2; "
            "ps -eo pid,ppid,stat,etimes,user:32,comm | awk 'NR == 1 || $3 ~ /^D/'"
        ),
        limit_s=10,
        max_bytes=3_000_000,
    ),
    formats=(Format(name="ps -eo pid,ppid,stat,etimes,user,comm", matches=looks_like_ps, read=read_ps),),
)

FAILED = Cause(
    code="service.failed",
    says="systemd unit failed",
    owner="cluster team",
    remedy="journalctl -b -u UNIT says why; mend it, systemctl restart UNIT; if it may fail, allow it in the profile",
)
DEFUNCT = Cause(
    code="processes.defunct",
    says="many processes are dead and not collected",
    owner="cluster team",
    remedy="end the parent that does not collect them (PID in the evidence); if it is a job's, tell its owner",
    status="warn",
)
BLOCKED = Cause(
    code="processes.blocked",
    says="processes hang in the kernel (state D)",
    owner="cluster team",
    remedy="cat /proc/PID/stack and dmesg say in what (storage, GPU driver); a reboot is the only way out",
    status="warn",
    explains=("kernel.hung_task",),
)

HARMLESS_UNITS = (
    "motd-news.service", "apt-*.service", "unattended-upgrades.service", "update-notifier-*.service", "apport*.service",
    "ua-*.service", "ubuntu-advantage*.service", "esm-cache.service", "fwupd*.service", "snapd*.service", "snap.*",
    "man-db.service", "mandb.service", "logrotate.service", "e2scrub*.service", "plocate-updatedb.service",
    "packagekit*.service", "geoclue.service", "*-wait-online.service",
    "user@*.service", "session-*.scope", "run-*", "docker-*.scope", "dnf-makecache.service", "pmlogger*", "pmie*",
)  # fmt: skip
"""No training run depends on these: a warning only."""
ALLOWED_OPTION = "failed_units_allowed"
"""Option of a profile: names or patterns of units that may fail, with blanks between."""
TOLD_ELSEWHERE = {
    "docker": ("container_runtime docker", "service docker"),
    "containerd": ("container_runtime containerd", "service containerd"),
    "chronyd": ("clock",), "chrony": ("clock",), "ntpd": ("clock",), "ntp": ("clock",), "ntpsec": ("clock",),
    "systemd-timesyncd": ("clock",), "zfs-import-cache": ("pool",), "mdmonitor": ("array",),
}  # fmt: skip
"""Parts of other checks whose own Finding takes in that of the unit."""

MANY_DEFUNCT = Limit(name="processes.defunct", default=20, about="dead, not collected processes that are a warning")
BLOCKED_S = Limit(name="processes.blocked_s", default=600, about="age of a process in state D that is a warning")


def judge_units(seen: Seen) -> Iterator[Symptom]:
    """Failed units that the profile does not allow."""
    allowed = seen.expectation.options.get(ALLOWED_OPTION, "").replace(",", " ").split()
    for unit in seen.of(SYSTEMD):
        if "failed" in (unit.active, unit.sub) and not _matches(unit.name, allowed):
            status: Status | None = "warn" if _matches(unit.name, HARMLESS_UNITS) else None
            yield Symptom(cause=FAILED, part=_unit_part(unit), evidence=(unit.line,), status=status)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.service") for pattern in patterns)


def _unit_part(unit: Unit) -> Part:
    key = unit.name.removesuffix(".service")
    within = TOLD_ELSEWHERE.get(key, ())
    if key.endswith(".mount"):
        # systemd.unit(5): `-` is `/`, anything else is escaped as \\xNN.
        place = sub(
            r"\\x([0-9a-f]{2})", lambda code: chr(int(code[1], 16)), key.removesuffix(".mount").replace("-", "/")
        )
        within = (f"mount /{place}",)
    return Part(kind="service", key=key, within=within)


def judge_defunct(seen: Seen) -> Iterator[Symptom]:
    """Many zombies, with the parent that has most of them."""
    table = seen.of(PROCESSES)[-1]
    dead = [process for process in table.odd if process.state.startswith("Z")]
    if len(dead) < seen.limit(MANY_DEFUNCT):
        return
    parent, count = Tally(process.parent for process in dead).most_common(1)[0]
    words = f"{len(dead)} defunct processes, {count} of them children of:"
    yield Symptom(cause=DEFUNCT, evidence=(words, table.named(parent), *(each.line for each in dead[:2])))


def judge_blocked(seen: Seen) -> Iterator[Symptom]:
    """Old processes in state D in every table."""
    waiting = [[each for each in table.odd if each.state.startswith("D")] for table in seen.of(PROCESSES)]
    stuck = set.intersection(*({each.pid for each in table} for table in waiting))
    limit = seen.limit(BLOCKED_S)
    old = [each for each in waiting[-1] if each.pid in stuck and each.age_s >= limit and not _of_the_kernel(each)]
    if old:
        names = ", ".join(f"{count} x {name}" for name, count in Tally(each.name for each in old).most_common(5))
        yield Symptom(cause=BLOCKED, evidence=(f"in state D: {names}", *(each.line for each in old[:6])))


def _of_the_kernel(process: Process) -> bool:
    """Some of the kernel's own threads wait in state D by design."""
    return process.pid == 2 or process.parent == 2


CHECKS = (
    Check(
        name="systemd.failed",
        about="systemd units that failed, but those that the profile allows",
        probes=(SYSTEMD,),
        parts=("service",),
        causes=(FAILED,),
        judge=judge_units,
        options=(ALLOWED_OPTION,),
    ),
    Check(
        name="processes.defunct",
        about="many dead processes that nobody collects",
        probes=(PROCESSES,),
        parts=("host",),
        causes=(DEFUNCT,),
        limits=(MANY_DEFUNCT,),
        judge=judge_defunct,
    ),
    Check(
        name="processes.blocked",
        about="processes that hang in the kernel",
        probes=(PROCESSES,),
        parts=("host",),
        causes=(BLOCKED,),
        limits=(BLOCKED_S,),
        judge=judge_blocked,
    ),
)
