"""When a machine does not say how it is: causes of lost, late and garbled telemetry, and the probe that dates the rest.

Neither healthy nor broken: the status is ``unknown``, since a GPU about to fall off the bus often shows nothing else.
"""

import re
import textwrap
from dataclasses import dataclass

from wholestack.health.check import Cause, Symptom
from wholestack.health.parts import Part
from wholestack.health.probe import Format, Probe, UnreadableError
from wholestack.remote.batch import Command, Output

HUNG = Cause(
    code="telemetry.hung",
    says="a tool did not answer in time",
    owner="cluster team",
    remedy="look for its process in state D (ps -o stat,wchan -C TOOL); if it stays, drain and reboot the host",
    status="unknown",
    explains=("processes.blocked",),
)
NEEDS_ROOT = Cause(
    code="telemetry.needs_root",
    says="needs root",
    owner="cluster team",
    remedy="sweep as root, or allow sudo -n and give --sudo",
    status="unknown",
)
GARBLED = Cause(
    code="telemetry.garbled",
    says="a tool's output was not understood",
    owner="cluster team",
    remedy="run the command by hand; if its output is right, open an issue with the output",
    status="unknown",
)
FIELD = Cause(
    code="telemetry.field",
    says="a reading is not a number",
    owner="cluster team",
    remedy="read it again by hand; a sensor or device that stays silent is about to fail or already gone",
    status="unknown",
)
LOST = Cause(
    code="telemetry.lost",
    says="the host did not answer",
    owner="cluster team",
    remedy="try ssh by hand, then its BMC (wholestack health bmc); power it on or take it out of the inventory",
    status="unknown",
)
ONE_FILE = Cause(
    code="telemetry.one_file",
    says="the check needs the output of another command too",
    owner="cluster team",
    remedy="judge takes one file: judge it by other checks, or put this one on the host itself "
    "(wholestack health check --only NAME, or sweep)",
    status="unknown",
)
CHECK_WRONG = Cause(
    code="telemetry.check",
    says="a check is wrong, not the host",
    owner="cluster team",
    remedy="mend the check as the evidence says, or open an issue with the output of its command; the other checks of "
    "this host stand",
    status="unknown",
)
TOO_LITTLE = Cause(
    code="telemetry.too_little",
    says="too little of the host could be looked at",
    owner="cluster team",
    remedy="install the tools that the evidence names (or sweep with --sudo), then sweep again",
    status="unknown",
)
EXPECTED = Cause(
    code="telemetry.expected_missing",
    says="what the profile expects is not there",
    owner="cluster team",
    remedy="install the tool or the device, or correct the profile of this kind of host",
    status="fail",
    explains=("telemetry.too_little",),
)
CAUSES = (HUNG, NEEDS_ROOT, GARBLED, FIELD, LOST, ONE_FILE, CHECK_WRONG, TOO_LITTLE, EXPECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When and where the outputs of a host were taken."""

    now: float
    """Seconds since the epoch by the host's clock."""
    boot_id: str
    uptime_s: float
    kernel: str
    hostname: str
    root: bool


def _read_moment(text: str) -> Moment:
    fields = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    if not re.fullmatch(r"[0-9]{1,11}(?:\.[0-9]{1,9})?", fields["now"].strip()):
        raise UnreadableError("now is no number of seconds")
    return Moment(
        now=float(fields["now"]),
        boot_id=fields["boot_id"].strip(),
        uptime_s=float(fields["uptime"].split()[0]),
        kernel=fields["kernel"].strip(),
        hostname=fields["hostname"].strip(),
        root=fields["uid"].strip() == "0",
    )


MOMENT = Probe(
    command=Command(
        name="moment",
        shell=(
            'echo "now=$(date +%s)"; echo "boot_id=$(cat /proc/sys/kernel/random/boot_id)"; '
            'echo "uptime=$(cat /proc/uptime)"; echo "kernel=$(uname -r)"; echo "hostname=$(uname -n)"; '
            'echo "uid=$(id -u)"'
        ),
        limit_s=5,
        max_bytes=4_000,
    ),
    formats=(Format(name="moment", matches=lambda text: "boot_id=" in text, read=_read_moment),),
)


def unreadable(probe: Probe[object], output: Output | None, error: UnreadableError, checks: tuple[str, ...]) -> Symptom:
    """One symptom for a probe, however many checks rest on it."""
    ending = output.ending if output is not None else "not_run"
    if str(error).startswith("needs root"):
        ending = "needs_root"
    cause = {"timed_out": HUNG, "hung": HUNG, "needs_root": NEEDS_ROOT, "not_run": LOST}.get(ending, GARBLED)
    return Symptom(
        cause=cause,
        part=Part(kind="probe", key=probe.name),
        evidence=(
            f"{probe.command.shell.splitlines()[0][:80]}: {error}",
            *textwrap.wrap(f"not judged: {', '.join(checks)}", 300, break_on_hyphens=False),
        ),
    )
