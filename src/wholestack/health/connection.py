"""When a host could not be asked: what the way to it says, and what to do; never "it is off" of a host that refuses us.

All of one check, ``telemetry.host``: one Finding a host, whatever number of probes the connection took with it.
"""

from collections.abc import Mapping

from wholestack.health.check import Cause
from wholestack.health.telemetry import LOST
from wholestack.remote.batch import Trouble

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
CAUSES = (HOST_KEY, LOGIN, KEY_FILE, NAME)
_BY_TROUBLE: Mapping[Trouble, Cause] = {"host_key": HOST_KEY, "auth": LOGIN, "key_file": KEY_FILE, "name": NAME}


def cause_of(trouble: Trouble) -> Cause:
    """What a trouble means; of a host that is silent or breaks off, that it did not answer."""
    return _BY_TROUBLE.get(trouble, LOST)
