"""Simulated hosts behind a real SSH server on this machine: one port, one address of 127.0.0.0/8 a host.

The socket is bound to the loopback device, so nothing outside this machine reaches it. Every host has its own host
key; ``known_hosts``, ``ssh_config``, ``hosts.toml`` and a fresh client key are written into a folder, so that
``ssh -F FOLDER/ssh_config node0003 nvidia-smi -q -x`` and a sweep of ``hosts.toml`` work as with real hosts. Hosts with
a fault of the connection behave so: they close it, refuse the key, show another host key, or break off half way.
"""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import asyncssh

from wholestack.errors import EngineError
from wholestack.health.simulator.batches import LAST_LINE, answer, read_script
from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.remote import FleetRemote
from wholestack.remote.batch import Command, Output
from wholestack.remote.host import Host

_LOOPBACK = b"lo"
_SO_BINDTODEVICE = 25
MAX_SCRIPT_BYTES = 4 << 20
HOSTS_IN_A_NET = 250
HOSTS_IN_A_RACK = 4
"""What the inventory says of where they stand: ``r1`` is the first four."""


def address_of(index: int) -> str:
    """The loopback address of the host with that place in the fleet."""
    return f"127.0.{index // HOSTS_IN_A_NET}.{1 + index % HOSTS_IN_A_NET}"


class FleetServer:
    """Serves a fleet until it is closed.

    Args:
        fleet: The hosts.
        folder: Gets the files that a client needs; made if missing.
        port: 0 lets the system choose.
        clock: True time; the fleet is brought up to it before it answers.

    Example::

        server = FleetServer(fleet, Path("served"), port=2222, clock=time.time)
        await server.start()
        await server.wait()
    """

    def __init__(self, fleet: Fleet, folder: Path, *, port: int, clock: Callable[[], float]) -> None:
        self.fleet = fleet
        self.port = port
        self._folder = folder.absolute()
        self._clock = clock
        self._remote = FleetRemote(fleet)
        self._by_address = {address_of(index): machine for index, machine in enumerate(fleet)}
        self._host_keys: dict[str, asyncssh.SSHKey] = {}
        self._client_key = asyncssh.generate_private_key("ssh-ed25519")
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Bind, write the client's files, accept.

        Raises:
            EngineError: the port is taken or the system does not let us bind to the loopback device.
        """
        self._socket = _bound(self.port)
        self.port = self._socket.getsockname()[1]
        self._write_files()
        self._accepting = asyncio.create_task(self._accept(self._socket))

    async def wait(self) -> None:
        """Until it is closed."""
        if self._accepting:
            await self._accepting

    async def close(self) -> None:
        """End all connections."""
        tasks = [task for task in (self._accepting, *self._connections) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._socket:
            self._socket.close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listening)
            task = asyncio.create_task(self._serve(connection))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

    async def _serve(self, connection: socket.socket) -> None:
        machine = self._by_address.get(connection.getsockname()[0])
        if machine is None or machine.trouble in {"unreachable", "refused"}:
            connection.close()
            return
        self._catch_up()
        key = self._host_key(machine, changed=machine.trouble == "host_key")
        trusted = [] if machine.trouble == "auth" else [self._client_key.convert_to_public()]
        authorized = asyncssh.import_authorized_keys(
            "".join(each.export_public_key("openssh").decode() for each in trusted)
        )

        async def handle(process: asyncssh.SSHServerProcess[bytes]) -> None:
            await self._answer(machine, process)

        try:
            served = await asyncssh.run_server(
                connection,
                server_host_keys=[key],
                authorized_client_keys=authorized,
                process_factory=handle,
                encoding=None,
                server_version="OpenSSH_9.2p1",
            )
            await served.wait_closed()
        except (OSError, asyncssh.Error):
            connection.close()

    async def _answer(self, machine: Machine, process: "asyncssh.SSHServerProcess[bytes]") -> None:
        command = process.command or ""
        if command.strip() != "sh -s":
            output = self._remote.output(machine, Command(name="typed", shell=command, limit_s=60.0))
            process.stdout.write(output.stdout)
            process.stderr.write(output.stderr)
            process.exit(output.exit_status if output.exit_status is not None else 255)
            return
        text = await _script(process)
        batch = read_script(text)
        if batch is None:
            process.stderr.write(b"sh: this is no script of a sweep, and others are not run here\n")
            process.exit(2)
            return
        outputs = self._outputs(machine, batch.commands)
        whole = machine.trouble not in {"lost", "timed_out"}
        process.stdout.write(answer(batch, outputs, uid=0 if machine.root else 1000, whole=whole))
        await process.stdout.drain()
        if machine.trouble == "timed_out":
            await process.stdin.read()
        process.exit(0 if whole else 255)

    def _outputs(self, machine: Machine, commands: tuple[Command, ...]) -> list[Output]:
        if machine.trouble in {"lost", "timed_out"}:
            reply = self._remote.reply(Host(name=machine.name), commands, deadline_s=3_600)
            return [reply.outputs[command.name] for command in commands]
        return [self._remote.output(machine, command) for command in commands]

    def _catch_up(self) -> None:
        passed = self._clock() - self.fleet.now
        if passed >= 1.0:
            self.fleet.advance(passed)

    def _host_key(self, machine: Machine, *, changed: bool) -> asyncssh.SSHKey:
        name = f"{machine.name}/changed" if changed else machine.name
        if name not in self._host_keys:
            self._host_keys[name] = asyncssh.generate_private_key("ssh-ed25519")
        return self._host_keys[name]

    def _write_files(self) -> None:
        folder = self._folder
        folder.mkdir(parents=True, exist_ok=True)
        key = folder / "id_ed25519"
        self._client_key.write_private_key(key)
        key.chmod(0o600)
        known, config, inventory = [], [], [f'[defaults]\nuser = "root"\nport = {self.port}\nidentity = "{key}"\n']
        for address, machine in self._by_address.items():
            public = self._host_key(machine, changed=False).export_public_key("openssh").decode().strip()
            known.append(f"[{address}]:{self.port},[{machine.name}]:{self.port} {public}\n")
            config.append(
                f"Host {machine.name}\n  HostName {address}\n  Port {self.port}\n  User root\n  IdentityFile {key}\n"
                f"  UserKnownHostsFile {folder / 'known_hosts'}\n  IdentitiesOnly yes\n"
            )
            inventory.append(f'\n[[hosts]]\nname = "{machine.name}"\naddress = "{address}"\nkind = "{machine.kind}"\n')
        names = [machine.name for machine in self._by_address.values()]
        for number, start in enumerate(range(0, len(names), HOSTS_IN_A_RACK), 1):
            listed = ", ".join(f'"{name}"' for name in names[start : start + HOSTS_IN_A_RACK])
            inventory.append(f'\n[[places]]\nhosts = [{listed}]\nrack = "r{number}"\n')
        (folder / "known_hosts").write_text("".join(known))
        (folder / "ssh_config").write_text("".join(config))
        (folder / "hosts.toml").write_text("".join(inventory))


def _bound(port: int) -> socket.socket:
    """A listening socket that takes connections to any loopback address and from nowhere else."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, _SO_BINDTODEVICE, _LOOPBACK)
        listening.bind(("0.0.0.0", port))
        listening.listen(1024)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise EngineError(
            f"cannot serve on port {port} of the loopback device: {error}", remedy="choose another port, on Linux"
        ) from error
    return listening


async def _script(process: "asyncssh.SSHServerProcess[bytes]") -> str:
    """Standard input up to the last line of the script; the client keeps it open behind that."""
    text = b""
    while len(text) < MAX_SCRIPT_BYTES and not text.endswith(LAST_LINE):
        piece = await process.stdin.read(65_536)
        if not piece:
            break
        text += piece
    return text.decode(errors="replace")
