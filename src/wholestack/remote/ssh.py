"""Hosts over SSH by asyncssh; nothing needs to be installed on them. The only module that imports asyncssh.

The user's ``~/.ssh/config`` counts as asyncssh reads it (HostName, User, Port, IdentityFile, IdentityAgent, ProxyJump,
ProxyCommand, UserKnownHostsFile, Ciphers, Include, Match and more). Two things differ from ``ssh``: host keys are
always verified, whatever StrictHostKeyChecking says, and no password is ever asked for or sent.

What many hosts share is done once: key and known-hosts files are read once, a jump host is logged in to once.
"""

import asyncio
import copy
import errno
import math
import os
import random
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncssh
from asyncssh.public_key import get_default_public_key_algs

from wholestack.errors import InputError
from wholestack.remote.batch import Command, Output, Reply, Trouble
from wholestack.remote.host import Host, parse_host
from wholestack.remote.wire import FrameReader, script

_PORT = 22
_KEEPALIVE_S = 5.0
_ENDING_S = 1.0
# In this order for speed: AES-GCM runs in hardware on both sides; nothing old is added to what asyncssh offers.
_CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
)


class SshRemote:
    """Runs batches over SSH.

    Args:
        config: ``ssh_config`` files; ``None``: the user's own, if there is one.
        known_hosts: Files of host keys; ``None``: those that the configuration names, else the user's and the
            machine's.
        accept_new: Whether the key of a host that no file knows is trusted at first sight and added to the first
            file. A key that differs from a known one is never accepted.
        sudo: Whether ``sudo -n`` may be used for commands that need root.
        max_connections: Hosts that are talked to at one time.
        retries: Further tries of a host that cannot be reached or whose connection broke; of a batch with a command
            that must run once at most, only where it was not reached.
        connect_timeout_s: Seconds for one login, from the first packet to the last.
        rng: Spreads the tries.
        sleep: Waits between tries.
    """

    def __init__(
        self,
        *,
        config: Sequence[str | Path] | None = None,
        known_hosts: Sequence[str | Path] | None = None,
        accept_new: bool = False,
        sudo: bool = False,
        max_connections: int = 64,
        retries: int = 2,
        connect_timeout_s: float = 15.0,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if max_connections < 1:
            raise InputError(f"max_connections is {max_connections}, must be at least 1")
        self._sudo = sudo
        self._places = asyncio.Semaphore(max_connections)
        self._retries = retries
        self._connect_timeout_s = connect_timeout_s
        self._rng = rng or random.Random()
        self._sleep = sleep
        self._files = _Files(config, known_hosts, accept_new=accept_new)
        self._jumps: dict[tuple[str, str | None], asyncio.Task[asyncssh.SSHClientConnection]] = {}

    async def run(self, host: Host, commands: Sequence[Command], *, deadline_s: float) -> Reply:
        """See :class:`~wholestack.remote.batch.Remote`. The deadline counts from when the host's turn comes."""
        async with self._places:
            start = time.monotonic()
            reply = await self._once(host, commands, left_s=deadline_s)
            outputs = dict(reply.outputs)
            attempts = 1
            again = (
                "unreachable",
                "closed",
                "jump",
                "name",
                *(() if any(each.once for each in commands) else ("lost",)),
            )
            while attempts <= self._retries and reply.trouble in again:
                pause_s = 0.5 * 2 ** (attempts - 1) * self._rng.uniform(0.5, 1.5)
                left_s = deadline_s - (time.monotonic() - start) - pause_s
                if left_s <= 0:
                    break
                await self._sleep(pause_s)
                reply = await self._once(host, commands, left_s=left_s)
                outputs = {name: _better(outputs[name], output) for name, output in reply.outputs.items()}
                attempts += 1
            return replace(reply, outputs=outputs, seconds=time.monotonic() - start, attempts=attempts)

    async def close(self) -> None:
        """End the connections to jump hosts."""
        tasks, self._jumps = list(self._jumps.values()), {}
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, asyncssh.SSHClientConnection):
                await _end(result)

    async def _once(self, host: Host, commands: Sequence[Command], *, left_s: float) -> Reply:
        """One connection, from login to the last output."""
        nonce = secrets.token_hex(16)
        reader = FrameReader(commands, nonce)
        text = script(commands, sudo=self._sudo, nonce=nonce)
        failure, late, start = None, False, time.monotonic()
        try:
            connection = await self._connect(host, left_s=left_s)
            try:
                async with asyncio.timeout(left_s - (time.monotonic() - start)):
                    await _converse(connection, reader, text)
            finally:
                await _end(connection)
        except _LoginError as error:
            failure = error.failure
        except TimeoutError:
            late = True
        except (OSError, asyncssh.Error) as error:
            failure = _explain(error, host, reached=True)
        reply = reader.reply(host, late=late, seconds=0.0)
        if failure is None or reply.trouble is None:
            return reply
        detail = f"{failure.detail}; {reply.detail}" if reader.began else failure.detail
        return replace(reply, trouble=failure.trouble, detail=detail)

    async def _connect(self, host: Host, *, left_s: float, spare: str | None = None) -> asyncssh.SSHClientConnection:
        """Log in within the time left, if need be with a spare private key.

        Raises:
            _LoginError: it failed, and why.
        """
        start = time.monotonic()
        where, trust = self._files.settings(host, spare=spare)
        client = _Client(trust)
        options = dict(where.options)
        if where.jump:
            options["tunnel"] = await self._jump(where.jump, host.identity, left_s=left_s)
        limit_s = min(self._connect_timeout_s, left_s - (time.monotonic() - start))
        try:
            async with asyncio.timeout(limit_s):
                return await asyncssh.connect(client_factory=lambda: client, **options)
        except TimeoutError:
            raise _LoginError(_slow(limit_s, reached=client.reached)) from None
        except asyncssh.HostKeyNotVerifiable as error:
            raise _LoginError(_Failure("host_key", client.says or _printable(str(error)))) from error
        except (OSError, ValueError, asyncssh.Error) as error:
            raise _LoginError(_explain(error, host, reached=client.reached)) from error

    async def _jump(self, jump: str, spare: str | None, *, left_s: float) -> asyncssh.SSHClientConnection:
        """The one connection to a jump host, opened by the first host that goes through it.

        The key named for the host is tried there too, behind those that are usual for the jump host.
        """
        task = self._jumps.get((jump, spare))
        if task is None or (task.done() and not _is_open(task)):
            task = self._jumps[jump, spare] = asyncio.create_task(self._open_jump(jump, spare))
        try:
            async with asyncio.timeout(left_s):
                # Shielded: the host that opened it may be cancelled while others wait for it.
                return await asyncio.shield(task)
        except TimeoutError:
            raise _LoginError(_Failure("jump", f"jump host {jump}: no login within {left_s:.1f} s")) from None

    async def _open_jump(self, jump: str, spare: str | None) -> asyncssh.SSHClientConnection:
        before, _, last = jump.rpartition(",")
        try:
            host = replace(parse_host(last), jump=before or None)
            return await self._connect(host, left_s=math.inf, spare=spare)
        except _LoginError as error:
            failure = error.failure
            trouble = "jump" if failure.trouble in _NO_ANSWER else failure.trouble
            raise _LoginError(_Failure(trouble, f"jump host {last}: {failure.detail}")) from error


_NO_ANSWER: frozenset[Trouble] = frozenset(("unreachable", "closed", "lost", "timed_out"))
"""Troubles that must not look like those of the host behind a jump host."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why there is no connection."""

    trouble: Trouble
    detail: str


class _LoginError(Exception):
    """No login; carries what becomes of it in the reply."""

    def __init__(self, failure: _Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class _Where:
    """How one host is connected to."""

    options: dict[str, Any]
    """For ``asyncssh.connect``."""
    jump: str | None


class _Trust:
    """The host keys that one set of files holds."""

    def __init__(self, files: Sequence[str], *, accept_new: bool) -> None:
        self.keys = asyncssh.SSHKnownHosts()
        self._files = files
        self._accept_new = accept_new
        for file in files:
            path = Path(file).expanduser()
            try:
                self.keys.load(path.read_text("utf-8", "replace") if path.is_file() else "")
            except (OSError, ValueError) as error:
                raise InputError(f"{file}: {error}", remedy="repair or remove the line") from error

    def algorithms(self, name: str, port: int) -> list[str]:
        """Kinds of host key to ask for, those of known keys first; empty where certificates or nothing is known.

        All kinds are asked for: a server that has no key of a known kind shows another, and that can be told.
        """
        known, authorities, *_ = self.keys.match(name, "", None if port == _PORT else port)
        first = [] if authorities else [each for key in known for each in key.sig_algorithms]
        return [each.decode() for each in dict.fromkeys([*first, *get_default_public_key_algs()])] if first else []

    def verdict(self, name: str, address: str, port: int, key: asyncssh.SSHKey) -> str:
        """Why a key that is not among them is refused; empty if it is accepted, and then kept."""
        files = " or ".join(self._files) or "any file"
        if self.keys.match(name, address, None if port == _PORT else port)[0]:
            return (
                f"the host key is not the one in {files}: if the host was set up anew, run "
                f"`ssh-keygen -R {_as_known(name, port)}` and trust it again; if not, find out who answers"
            )
        if not self._accept_new or not self._files:
            return f"the host key is not in {files}: run `ssh` to it once, or allow new host keys"
        line = f"{_as_known(name, port)} {key.export_public_key('openssh').decode().strip()}\n"
        path = Path(self._files[0]).expanduser()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with path.open("a+b") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
            file.write(b"\n" * (file.read(1) not in (b"", b"\n")) + line.encode())
        self.keys.load(line)
        return ""


def _as_known(name: str, port: int) -> str:
    return name if port == _PORT else f"[{name}]:{port}"


class _Files:
    """The user's files, each read once: configuration, private keys, host keys."""

    def __init__(
        self, config: Sequence[str | Path] | None, known_hosts: Sequence[str | Path] | None, *, accept_new: bool
    ) -> None:
        if config is None:
            config = [path for path in (Path("~/.ssh/config").expanduser(),) if path.is_file()]
        self._config = [str(path) for path in config]
        self._known_hosts = None if known_hosts is None else tuple(str(path) for path in known_hosts)
        self._accept_new = accept_new
        self._trusts: dict[tuple[str, ...], _Trust] = {}
        self._keys: dict[tuple[str, ...], list[asyncssh.SSHKeyPair]] = {}

    def settings(self, host: Host, *, spare: str | None = None) -> tuple[_Where, _Trust]:
        """How to connect to a host, if need be with a spare key, and which host keys count.

        Raises:
            _LoginError: its private key cannot be used.
            InputError: a file of configuration or host keys is wrong.
        """
        where: dict[str, Any] = {"host": host.address or host.name, "config": self._config}
        where |= {} if host.port is None else {"port": host.port}
        where |= {} if host.user is None else {"username": host.user}
        try:
            found = asyncssh.SSHClientConnectionOptions(**where, known_hosts=b"", client_keys=None)
        except (OSError, ValueError) as error:
            raise InputError(f"ssh configuration: {error}", remedy="repair the file or name another one") from error
        config = found.config
        jump = host.jump or config.get("ProxyJump")
        trust = self._trust(config)
        options = where | {
            "known_hosts": trust.keys,
            "password_auth": False,
            "kbdint_auth": False,
            "host_based_auth": False,
            "agent_forwarding": False,
            "x11_forwarding": False,
            "compression_algs": ["none", "zlib@openssh.com"],
            "keepalive_interval": _KEEPALIVE_S,
        }
        if config.get("Ciphers") is None:
            options["encryption_algs"] = _CIPHERS
        kinds = trust.algorithms(found.host_key_alias or found.host, found.port)
        if kinds and config.get("HostKeyAlgorithms") is None:
            options["server_host_key_algs"] = kinds
        return _Where(options | self._key_options(host, config, spare), str(jump) if jump else None), trust

    def _trust(self, config: Any) -> _Trust:
        files = self._known_hosts
        if files is None:
            user = config.get("UserKnownHostsFile", ["~/.ssh/known_hosts", "~/.ssh/known_hosts2"])
            machine = config.get("GlobalKnownHostsFile", ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"])
            files = (*user, *machine)
        if files not in self._trusts:
            self._trusts[files] = _Trust(files, accept_new=self._accept_new)
        return self._trusts[files]

    def _key_options(self, host: Host, config: Any, spare: str | None) -> dict[str, Any]:
        """Which keys to offer. Where the configuration restricts the agent or adds certificates, asyncssh decides."""
        if host.identity is None and (config.get("IdentitiesOnly") or config.get("CertificateFile")):
            return {}
        if host.identity:
            return {"client_keys": self._pairs((host.identity,), must=True), "agent_path": None}
        usual = self._pairs(tuple(config.get("IdentityFile", ())), must=False)
        return {"client_keys": usual + (self._pairs((spare,), must=True) if spare else [])}

    def _pairs(self, files: tuple[str, ...], *, must: bool) -> list[asyncssh.SSHKeyPair]:
        if files not in self._keys:
            self._keys[files] = self._load(files, must=must)
        # An algorithm is chosen on the pair for each server, so each gets a copy.
        return [copy.copy(pair) for pair in self._keys[files]]

    @staticmethod
    def _load(files: Sequence[str], *, must: bool) -> list[asyncssh.SSHKeyPair]:
        """Key pairs of private key files, the user's usual ones if none is named; encrypted ones are the agent's."""
        try:
            keys = [str(Path(file).expanduser()) for file in files]
            if must and not all(Path(key).is_file() for key in keys):
                # Also of a device or pipe: reading that would never end, and all hosts wait with it.
                raise FileNotFoundError(errno.ENOENT, "no such file, or no plain one")
            options = asyncssh.SSHClientConnectionOptions(
                config=None, known_hosts=b"", client_keys=keys or (), ignore_encrypted=not must
            )
        except (OSError, ValueError) as error:
            if not must:
                return []
            hint = "; add it to the agent and name no identity" if "passphrase" in str(error).lower() else ""
            reason = error.strerror if isinstance(error, OSError) and error.strerror else _printable(str(error))
            raise _LoginError(_Failure("key_file", f"private key {files[0]}: {reason}{hint}")) from error
        return list(options.client_keys or ())


class _Client(asyncssh.SSHClient):
    """Notes how far a login has come."""

    def __init__(self, trust: _Trust) -> None:
        self.reached = False
        self.says = ""
        self._trust = trust

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Something answers."""
        self.reached = True

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Asked for keys that are not known."""
        self.says = self._trust.verdict(host, addr, port, key)
        return not self.says


class _Session(asyncssh.SSHClientSession[bytes]):
    """Feeds a reader; ``over`` when it has all or the channel is gone."""

    def __init__(self, reader: FrameReader) -> None:
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reader = reader

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """Standard output, or (with a type) error."""
        if datatype:
            self._reader.hear(data)
        else:
            self._reader.feed(data)
        if self._reader.over:
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        """The channel is gone."""
        if exc is not None and not self.over.done():
            self.over.set_exception(exc)
        self._finish()

    def _finish(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


async def _converse(connection: asyncssh.SSHClientConnection, reader: FrameReader, text: bytes) -> None:
    """Send the script, take in what comes. Standard input stays open: its end would end the script."""
    session = _Session(reader)
    channel, _ = await connection.create_session(lambda: session, "sh -s", encoding=None, request_pty=False)
    channel.write(text)
    await session.over


async def _end(connection: asyncssh.SSHClientConnection) -> None:
    """Close; a peer that has gone silent is not waited for."""
    connection.close()
    try:
        async with asyncio.timeout(_ENDING_S):
            await connection.wait_closed()
    except TimeoutError:
        connection.abort()


def _is_open(task: "asyncio.Task[asyncssh.SSHClientConnection]") -> bool:
    return not task.cancelled() and task.exception() is None and not task.result().is_closed()


def _better(one: Output, other: Output) -> Output:
    """Of two tries the later, unless only the earlier one came to something."""
    return one if other.ending == "not_run" else other


def _slow(limit_s: float, *, reached: bool) -> _Failure:
    if reached:
        return _Failure("timed_out", f"it answers, but the login took more than {limit_s:.1f} s: is it overloaded?")
    return _Failure("unreachable", f"no answer within {limit_s:.1f} s: is it up, and does a firewall let SSH through?")


def _printable(text: str) -> str:
    """One line; some of it may come from the host."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:300])


def _explain(error: Exception, host: Host, *, reached: bool) -> _Failure:
    """What became of the login or the connection, and what to do."""
    name, says = host.address or host.name, _printable(str(error) or type(error).__name__)
    match error:
        case asyncssh.PermissionDenied():
            return _Failure("auth", f"no key was accepted ({says}): check user and key, or add it to authorized_keys")
        case asyncssh.KeyExchangeFailed() if "host key" in says.lower():
            return _Failure("host_key", f"it has no host key of a kind that is known of it ({says}): see ssh-keyscan")
        case asyncssh.ConnectionLost():
            when = "" if reached else " at once: is it more logins than sshd's MaxStartups allows?"
            return _Failure("lost", f"it closed the connection{when} ({says})")
        case asyncssh.ChannelOpenError() if not reached:
            return _Failure("unreachable", f"the jump host cannot reach it ({says})")
        case asyncssh.ChannelOpenError() | asyncssh.ServiceNotAvailable():
            return _Failure("refused", f"it opens no session ({says}): may this user run commands?")
        case asyncssh.Error():
            return _Failure("protocol", f"it does not speak SSH as we do ({says})")
        case socket.gaierror():
            return _Failure("name", f"the name {name} does not resolve: correct it or give an address")
        case ConnectionRefusedError():
            return _Failure("closed", f"nothing listens there ({says}): is sshd running, and is it this port?")
        case OSError() if reached:
            return _Failure("lost", f"the connection broke ({says})")
        case OSError():
            return _Failure("unreachable", f"{says}: is it up and in the network?")
    return _Failure("protocol", f"it does not speak SSH as we do ({says})")
