"""Simulated hosts behind a real SSH server, asked by a real client."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from tests.health.simulator.hosts import one_host, only
from wholestack.cli import simulating
from wholestack.errors import EngineError
from wholestack.health.simulator.faults.table import fault_named
from wholestack.health.simulator.kinds import KINDS
from wholestack.health.simulator.remote import FleetRemote
from wholestack.remote.batch import Command
from wholestack.remote.inventory import read_toml

asyncssh = pytest.importorskip("asyncssh")
serve = pytest.importorskip("wholestack.health.simulator.serve")


def served(fleet, folder, ask):
    async def run():
        server = serve.FleetServer(fleet, folder, port=0, clock=lambda: fleet.now)
        try:
            await server.start()
        except EngineError as error:
            pytest.skip(str(error))
        try:
            return await ask(server)
        finally:
            await server.close()

    return asyncio.run(run())


def connect(server, folder, **more):
    settings = {
        "username": "root",
        "client_keys": [str(folder / "id_ed25519")],
        "known_hosts": str(folder / "known_hosts"),
        "config": None,
    }
    return asyncssh.connect("127.0.0.1", server.port, **(settings | more))


def test_a_typed_command_is_answered_by_its_tool(tmp_path):
    fleet = one_host("l40s-8")

    async def ask(server):
        async with connect(server, tmp_path) as connection:
            return [await connection.run(shell) for shell in ("nvidia-smi -q -x", "frobnicate")]

    smi, unknown = served(fleet, tmp_path, ask)
    expected = FleetRemote(fleet).output(only(fleet), Command(name="x", shell="nvidia-smi -q -x"))
    assert smi.stdout == expected.text
    assert smi.exit_status == 0
    assert unknown.exit_status == 127


def test_a_batch_comes_back_whole(tmp_path):
    wire = pytest.importorskip("wholestack.remote.wire")
    fleet = one_host("h100-8-ndr")
    commands = [Command(name="log", shell="dmesg", limit_s=5), Command(name="smi", shell="nvidia-smi -q -x"),
                Command(name="smart", shell="smartctl", needs_root=True)]  # fmt: skip

    async def ask(server):
        reader = wire.FrameReader(commands, "ab" * 16)
        async with connect(server, tmp_path) as connection:
            process = await connection.create_process("sh -s", encoding=None)
            process.stdin.write(wire.script(commands, sudo=False, nonce="ab" * 16))
            while not reader.over:
                data = await process.stdout.read(65_536)
                if not data:
                    break
                reader.feed(data)
        return reader.close()

    outputs = served(fleet, tmp_path, ask)
    live = FleetRemote(fleet)
    assert outputs == {command.name: live.output(only(fleet), command) for command in commands}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("host_unreachable", OSError),
        ("host_refuses_login", "PermissionDenied"),
        ("host_key_changed", "HostKeyNotVerifiable"),
    ],
)
def test_a_broken_connection_is_broken_for_real(tmp_path, fault, error):
    fleet = one_host("a10-4")
    fleet.inject("node0000", fault_named(fault))
    expected = (asyncssh.ConnectionLost, OSError) if error is OSError else getattr(asyncssh, error)

    async def ask(server):
        with pytest.raises(expected):
            async with connect(server, tmp_path):
                pass

    served(fleet, tmp_path, ask)


def test_a_stranger_gets_in_nowhere(tmp_path):
    async def ask(server):
        stranger = asyncssh.generate_private_key("ssh-ed25519")
        with pytest.raises(asyncssh.PermissionDenied):
            async with connect(server, tmp_path, client_keys=[stranger]):
                pass

    served(one_host("a10-4"), tmp_path, ask)


def test_the_files_of_the_client_are_written(tmp_path):
    async def ask(server):
        return server.port

    port = served(one_host("a10-4"), tmp_path / "new", ask)
    folder = tmp_path / "new"
    assert f"HostName 127.0.0.1\n  Port {port}" in (folder / "ssh_config").read_text()
    assert 'kind = "a10-4"' in (folder / "hosts.toml").read_text()
    (host,) = read_toml((folder / "hosts.toml").read_text(), where="served")
    assert host.rack == "r1"
    assert stat.S_IMODE(os.stat(folder / "id_ed25519").st_mode) == 0o600


def test_a_client_finds_its_key_from_wherever_it_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def ask(server):
        return server.port

    served(one_host("a10-4"), Path("here"), ask)
    key = str(tmp_path / "here" / "id_ed25519")
    hosts = read_toml((tmp_path / "here" / "hosts.toml").read_text(), where="served")
    assert [host.identity for host in hosts] == [key]
    assert f"IdentityFile {key}\n" in (tmp_path / "here" / "ssh_config").read_text()


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_the_example_that_is_printed_works_on_every_kind_of_host(tmp_path, kind):
    fleet = one_host(kind)

    async def ask(server):
        async with connect(server, tmp_path) as connection:
            return await connection.run(simulating.EXAMPLE)

    answer = served(fleet, tmp_path, ask)
    assert answer.exit_status == 0
    assert answer.stdout.startswith("0000:00:00.0 ")


def test_every_host_has_an_address_of_its_own():
    addresses = [serve.address_of(index) for index in range(4_096)]
    assert len(set(addresses)) == 4_096
    assert addresses[0] == "127.0.0.1"
    assert all(address.startswith("127.") for address in addresses)
