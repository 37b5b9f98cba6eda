"""A real OpenSSH server on loopback, for tests and benchmarks: own keys, own configuration, ended with its ``with``.

Needs ``sshd`` and ``ssh-keygen`` (Debian: ``openssh-server``). The user that runs it is the one to log in as.
"""

import getpass
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wholestack.errors import EngineError
from wholestack.remote.host import Host

MAX_ADDRESSES = 16
"""More than sshd listens on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopbackSshd:
    """A server that runs."""

    port: int
    identity: Path
    """Private key of the user that may log in."""
    known_hosts: Path
    """Names the server's key for all its addresses."""
    home: Path
    """``HOME`` of the sessions; a ``.bashrc`` in it is read where bash is the login shell."""
    addresses: tuple[str, ...]
    log: Path

    def hosts(self) -> tuple[Host, ...]:
        """A host for each address."""
        return tuple(
            Host(
                name=f"host{number}",
                address=address,
                port=self.port,
                user=getpass.getuser(),
                identity=str(self.identity),
            )
            for number, address in enumerate(self.addresses, 1)
        )


@contextmanager
def loopback_sshd(
    folder: Path, *, addresses: int = 1, settings: Mapping[str, str] | None = None
) -> Iterator[LoopbackSshd]:
    """Start a server, give it, end it.

    Args:
        folder: For keys, configuration and log; made if missing.
        addresses: How many of 127.0.0.1, 127.0.0.2, ... it answers on, at most :data:`MAX_ADDRESSES`.
        settings: Further lines of ``sshd_config``.

    Raises:
        EngineError: sshd is not installed or does not start.
    """
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if program is None:
        raise EngineError("sshd is not installed", remedy="on Debian: apt-get install openssh-server")
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    _make_key(folder / "host_key")
    _make_key(folder / "identity")
    places = tuple(f"127.0.0.{number}" for number in range(1, addresses + 1))
    port = _free_port()
    config = folder / "sshd_config"
    config.write_text(_config(folder, home, places, port, settings or {}))
    key = (folder / "host_key.pub").read_text().strip()
    known_hosts = folder / "known_hosts"
    known_hosts.write_text("".join(f"[{place}]:{port} {key}\n" for place in places))
    server = LoopbackSshd(
        port=port,
        identity=folder / "identity",
        known_hosts=known_hosts,
        home=home,
        addresses=places,
        log=folder / "sshd.log",
    )
    with _running([program, "-D", "-e", "-f", str(config)], server):
        yield server


@contextmanager
def _running(command: list[str], server: LoopbackSshd) -> Iterator[None]:
    if Path("/run").is_dir() and getpass.getuser() == "root":
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it, and only an init script makes it
    with server.log.open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            _wait_until_ready(process, server)
            yield
        finally:
            process.terminate()


def _wait_until_ready(process: "subprocess.Popen[bytes]", server: LoopbackSshd) -> None:
    while server.log.read_text().count("Server listening") < len(server.addresses):
        try:
            process.wait(0.01)
        except subprocess.TimeoutExpired:
            continue
        raise EngineError(f"sshd does not start: {server.log.read_text()[-500:].strip()}")


def _config(folder: Path, home: Path, places: tuple[str, ...], port: int, settings: Mapping[str, str]) -> str:
    lines = {
        "Port": str(port),
        "HostKey": str(folder / "host_key"),
        "AuthorizedKeysFile": str(folder / "identity.pub"),
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "UseDNS": "no",
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
        "MaxStartups": "1000",
        "SetEnv": f"HOME={home}",
        "LogLevel": "INFO",
    } | dict(settings)
    listen = [f"ListenAddress {place}" for place in places]
    return "\n".join([*listen, *(f"{key} {value}" for key, value in lines.items()), ""])


def _make_key(path: Path) -> None:
    path.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
