"""``wholestack health bmc``: hosts through their baseboard management controllers; and who asks these."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wholestack.cli.output import code_for, findings_document, print_json
from wholestack.errors import InputError
from wholestack.finding import worst

if TYPE_CHECKING:
    from wholestack.health.outofband.address import Credentials

USER, PASSWORD, FILE = "WHOLESTACK_BMC_USER", "WHOLESTACK_BMC_PASSWORD", "WHOLESTACK_BMC_CREDENTIALS"
"""Environment variables."""
Flag = Annotated[bool, Parameter(negative="")]


def credentials() -> "Credentials | None":
    """Who asks BMCs, by the environment; ``None`` where it says nothing.

    Raises:
        InputError: it says half of it, or names a file that is wrong.
    """
    from wholestack.health.outofband.address import Credentials, read_credentials

    user, password, file = (os.environ.get(name, "") for name in (USER, PASSWORD, FILE))
    if file and not (user or password):
        return read_credentials(Path(file))
    if not (user or password):
        return None
    if file or not (user and password):
        raise InputError(f"{USER}, {PASSWORD} and {FILE} do not go together", remedy="set the first two, or the third")
    return Credentials(user=user, password=password)


def bmc(*hosts: str, json: Flag = False, all: Flag = False) -> int:
    """Ask the BMCs of hosts for power, event log and sensors: what is left to ask when a host no longer answers.

    Where they are is said by the file of hosts, under [defaults], [kinds.NAME] or [[hosts]], for instance
    bmc = "ipmi://{name}-bmc" (IPMI over LAN; needs ipmitool) or bmc = "redfish://{name}-bmc" (over HTTPS; behind it
    ?ca=FILE or ?sha256=FINGERPRINT for a certificate that this machine does not trust, ?insecure to trust any).
    User and password are never written there: set WHOLESTACK_BMC_USER and WHOLESTACK_BMC_PASSWORD, or
    WHOLESTACK_BMC_CREDENTIALS, a file of mode 600 with the lines user = "NAME" and password = "WORD".
    A sweep with these set asks the BMC of every host that does not answer. Nothing is changed.

    Exit codes: 0 nothing wrong; 1 something is, for instance a host that is off; 3 a BMC could not be asked; 2 usage.

    Parameters
    ----------
    hosts
        Files of hosts (TOML) that say where the BMCs are; names, or lists such as gpu[001-004], beside them choose
        among their hosts.
    json
        Print one JSON document.
    all
        Show what is ok as well.
    """
    import asyncio
    import time

    from wholestack.health.describing import describe_judgement
    from wholestack.health.outofband.asking import ask_bmcs
    from wholestack.remote.inventory import find_among

    asking = credentials()
    chosen = find_among(hosts)
    if asking is None:
        raise InputError("no user and password for BMCs", remedy=f"set {USER} and {PASSWORD}, or {FILE}")
    said = asyncio.run(ask_bmcs(chosen, asking, now=time.time()))
    findings = [each for one in said for each in one.judgement.findings]
    status = worst(findings)
    if json:
        documents = {}
        for one in said:
            found = one.judgement
            shown = findings_document(found.findings, status=found.status, skipped=found.skipped, everything=all)
            documents[one.host] = {"bmc": one.bmc, "power": one.power or None, **shown}
        print_json({"status": status, "hosts": documents})
    else:
        for one in said:
            print(f"{one.host}: power {one.power or 'unknown'} ({one.bmc})")
            print(describe_judgement(one.judgement, everything=all))
    return code_for(status, findings)
