"""When a host could not be asked: what the way to it says, and what to do; never "it is off" of a host that refuses us.

All of one check, ``telemetry.host``: one Finding a host, whatever number of probes the connection took with it. Where
its BMC was asked instead (:mod:`wholestack.health.outofband`), that one says whether the host is off or hangs.
"""

from collections.abc import Mapping

from wholestack.health.check import Cause
from wholestack.health.formats.ipmi import looks_like_power, read_power
from wholestack.health.formats.redfish import looks_like_system, read_power_state
from wholestack.health.probe import Format, NotThereError, Probe, UnreadableError
from wholestack.health.telemetry import LOST
from wholestack.remote.batch import Command, Output, Trouble

CHECK = "telemetry.host"
"""Name that Findings on the connection carry."""

HOST_KEY = Cause(
    code="telemetry.host_key",
    says="its host key is not known, or changed",
    owner="cluster team",
    remedy="not known, and a new host: sweep with --accept-new. Changed: verify at the host's console that it was set "
    "up anew (ssh-keygen -lf of its key), only then ssh-keygen -R HOST; if it was not, find out who answers",
    status="unknown",
)
LOGIN = Cause(
    code="telemetry.login",
    says="the host refuses the login",
    owner="cluster team",
    remedy="compare user and key (--user, --identity, ~/.ssh/config) with `ssh -v HOST true`; "
    "ssh-copy-id adds the key to the host's authorized_keys",
    status="unknown",
)
KEY_FILE = Cause(
    code="telemetry.key_file",
    says="the private key on this machine cannot be used",
    owner="cluster team",
    remedy="correct the path (--identity, or identity in the file of hosts); a key with a passphrase goes to the agent "
    "(ssh-add), then name no identity",
    status="unknown",
)
NAME = Cause(
    code="telemetry.name",
    says="the host's name does not resolve",
    owner="cluster team",
    remedy="correct the name, or give its address in the file of hosts; else repair DNS (getent hosts NAME)",
    status="unknown",
)
OFF = Cause(
    code="telemetry.off",
    says="the host is powered off",
    owner="cluster team",
    remedy="read its event log first (wholestack health bmc HOST): after a power or heat fault have that mended; else "
    "power it on (wholestack health fix)",
)
UNRESPONSIVE = Cause(
    code="telemetry.unresponsive",
    says="the host is powered on, but does not answer over SSH",
    owner="cluster team",
    remedy="read event log and console (wholestack health bmc HOST; ipmitool sol activate); if others of its rack or "
    "switch are silent too, it is the network; else power it off and on (wholestack health fix)",
)
NO_BMC = Cause(
    code="telemetry.bmc",
    says="the BMC could not be asked",
    owner="cluster team",
    remedy="do what the evidence says; if the BMC itself hangs, reset it (ipmitool mc reset cold), else by taking the "
    "host's power away",
    status="unknown",
)
CAUSES = (HOST_KEY, LOGIN, KEY_FILE, NAME, OFF, UNRESPONSIVE, NO_BMC)
POWER = Probe(
    command=Command(name="bmc_power", shell="ipmitool chassis power status"),
    formats=(
        Format(name="ipmitool chassis power status", matches=looks_like_power, read=read_power),
        Format(name="Redfish ComputerSystem", matches=looks_like_system, read=read_power_state),
    ),
    failure=lambda output: "its BMC" if output.exit_status else "",
)
"""No sweep sends it: it is answered by the BMC of a host that does not answer itself."""
SILENT: frozenset[Trouble] = frozenset(("unreachable", "closed", "lost", "timed_out"))
"""Troubles with which a host may be off: what refuses us is at work."""
_HANGING: frozenset[Trouble] = frozenset(("unreachable", "timed_out"))
"""Those with which one that is on gives no sign of life, or none beyond its kernel's."""
_BY_TROUBLE: Mapping[Trouble, Cause] = {"host_key": HOST_KEY, "auth": LOGIN, "key_file": KEY_FILE, "name": NAME}


def cause_of(trouble: Trouble, power: Output | None = None) -> Cause:
    """What a trouble means; of a host that is silent or breaks off, that it did not answer.

    Args:
        trouble: Of the way to the host.
        power: What its BMC says, where it was asked.
    """
    state = power_in(power) if power is not None and trouble in SILENT else ""
    if state == "off":
        return OFF
    if state == "on" and trouble in _HANGING:
        return UNRESPONSIVE
    return _BY_TROUBLE.get(trouble, LOST)


def power_in(output: Output) -> str:
    """``on``, ``off``, another word of the BMC such as ``poweringon``, or empty where it did not say."""
    try:
        return POWER.read(output)
    except (UnreadableError, NotThereError):
        return ""


def power_line(output: Output) -> str:
    """What the BMC says of the power, as one line of evidence."""
    try:
        return f"its BMC says that the power is {POWER.read(output)}"
    except (UnreadableError, NotThereError) as error:
        return str(error)
