"""Where a host's BMC is, and who asks it: the key ``bmc`` of the file of hosts, and credentials that stand elsewhere.

``ipmi://[user@]host[:port][?cipher=N]`` and ``redfish://[user@]host[:port][/redfish/v1/Systems/ID][?ca=FILE |
?sha256=FINGERPRINT | ?insecure]``; ``{name}`` stands for the host's name. A password has no place in it.
"""

import os
import re
import stat
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, urlsplit

from wholestack.errors import InputError
from wholestack.journal import read_at_most
from wholestack.remote.host import Host

OPTIONS = {"ipmi": ("cipher",), "redfish": ("ca", "sha256", "insecure")}
"""By protocol: what may stand behind the question mark."""
_HOST = re.compile(r"[0-9A-Za-z][0-9A-Za-z.:-]{0,252}")
_USER = re.compile(r"[!-~]{1,64}")
_PATH = re.compile(r"(?:/redfish/v1/[!-~]{1,200})?")
_VALUES = {
    "cipher": re.compile(r"\d{1,2}"),
    "ca": re.compile(r".+"),
    "sha256": re.compile(r"(?:[0-9A-Fa-f]{2}:?){32}"),
    "insecure": re.compile(r""),
}
MOST_BYTES = 10_000
"""Of a file of credentials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A user of BMCs. The password is in no text that this makes."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcAddress:
    """Where one BMC is."""

    protocol: str
    host: str
    port: int | None = None
    user: str = ""
    """Instead of that of the credentials."""
    path: str = ""
    """Redfish: of the host's system; empty: the only one there is."""
    option: str = ""
    """One of :data:`OPTIONS`."""
    value: str = ""
    """Of the option."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}://{host}" + (f":{self.port}" if self.port else "")


def address_of(host: Host) -> BmcAddress:
    """Where a host's BMC is.

    Raises:
        InputError: the file of hosts names none, or what it names is no address of one.
    """
    if not host.bmc:
        raise InputError(
            f"{host.name} has no bmc in the file of hosts", remedy='write bmc = "ipmi://HOST" or "redfish://HOST"'
        )
    text = host.bmc.replace("{name}", host.name)
    if re.search(r":[^@]*@", text.partition("://")[2] or text):
        # Looked for before the text is taken apart: what says what is wrong with it would repeat the password.
        raise InputError(f"bmc of {host.name} holds a password", remedy="see `wholestack health bmc --help`")
    try:
        parts = urlsplit(text)
        port = parts.port
        options = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError as error:
        raise _wrong(host, "its port is no number up to 65535, or a bracket is alone") from error
    if why := _mistake(parts, options):
        # Values of options are not repeated: somebody may have put a password there.
        raise _wrong(host, f"{text.partition('?')[0]!r}: {why}")
    option, value = options[0] if options else ("", "")
    return BmcAddress(
        protocol=parts.scheme,
        host=parts.hostname or "",
        port=port,
        user=parts.username or "",
        path=parts.path.rstrip("/"),
        option=option,
        value=value.replace(":", "").lower() if option == "sha256" else value,
    )


def _mistake(parts: SplitResult, options: list[tuple[str, str]]) -> str:
    known = OPTIONS.get(parts.scheme)
    if known is None:
        return f"begins with none of {', '.join(f'{each}://' for each in OPTIONS)}"
    if not _HOST.fullmatch(parts.hostname or "") or (parts.username and not _USER.fullmatch(parts.username)):
        return "names no host, or an odd one"
    if not _PATH.fullmatch(parts.path.rstrip("/")) or (parts.path.rstrip("/") and parts.scheme != "redfish"):
        return "its path is none of a system (/redfish/v1/Systems/ID)"
    if len(options) > 1 or parts.fragment:
        return "has more than one option"
    for name, value in options:
        if name not in known or not _VALUES[name].fullmatch(value):
            return f"option {name!r} is none of its options ({', '.join(known)}), or has an odd value"
    return ""


def _wrong(host: Host, why: str) -> InputError:
    return InputError(f"bmc of {host.name}: {why}", remedy='write "ipmi://HOST" or "redfish://HOST"')


def read_credentials(path: Path) -> Credentials:
    """User and password of a TOML file that only its owner can read.

    Raises:
        InputError: it cannot be read, others may read it, or it is something else.
    """
    remedy = 'write user = "NAME" and password = "WORD" into it, chmod 600'
    text = read_at_most(path, MOST_BYTES, remedy=remedy)
    known = path.stat()
    if known.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or known.st_uid not in (0, os.geteuid()):
        raise InputError(f"{path}: others may read or write it", remedy="chown it to you, chmod 600")
    try:
        table = tomllib.loads(text.decode())
    except (ValueError, RecursionError):
        # What tomllib says of it may repeat a piece of the password.
        raise InputError(f"{path}: is no TOML", remedy=remedy) from None
    if set(table) != {"user", "password"} or not all(isinstance(each, str) for each in table.values()):
        raise InputError(f"{path}: must hold user and password, two texts, and nothing else", remedy=remedy)
    return Credentials(user=table["user"], password=table["password"])
