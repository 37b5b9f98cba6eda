"""Client CPU per SSH connection: this package against one plain `ssh` process a host, on a real sshd on loopback.

Both log in the same number of times to the same server with the same key and known hosts, as many at one time. Plain
`ssh` runs `echo fine`; ours runs the whole script, once with one command, once with forty. Only the client is
counted: of `ssh` its processes, not the program that starts them; of ours this whole process, imports aside.
"""

import argparse
import asyncio
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from wholestack.remote.batch import Command
from wholestack.remote.host import Host
from wholestack.remote.ssh import SshRemote
from wholestack.testing.sshd import LoopbackSshd, loopback_sshd


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one way has cost."""

    name: str
    logins: int
    good: int
    cpu_s: float
    wall_s: float

    def row(self, reference: "Cost") -> str:
        """A line of the table."""
        each_ms = 1000 * self.cpu_s / self.logins
        ratio = (reference.cpu_s / reference.logins) / (self.cpu_s / self.logins)
        return (
            f"| {self.name} | {self.good} of {self.logins} | {each_ms:.1f} ms | {ratio:.1f} | "
            f"{self.logins / self.wall_s:.1f} |"
        )


def plain_ssh(server: LoopbackSshd, logins: int, at_once: int, *options: str) -> Cost:
    """One `ssh` process a login."""
    host = server.hosts()[0]
    command = ["ssh", "-F", "none", "-T", "-n", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"]
    command += ["-o", f"UserKnownHostsFile={server.known_hosts}", "-o", "GlobalKnownHostsFile=/dev/null"]
    command += ["-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-i", str(server.identity)]
    command += [*options, "-p", str(server.port), f"{host.user}@{host.address}", "echo fine"]

    def login(_: int) -> bool:
        done = subprocess.run(command, capture_output=True, check=False)
        return done.stdout == b"fine\n"

    def all_of() -> int:
        with ThreadPoolExecutor(at_once) as pool:
            return sum(pool.map(login, range(logins)))

    return _measured(
        " ".join(["`ssh`, `echo fine`", *(f"`{each}`" for each in options)]), logins, all_of, resource.RUSAGE_CHILDREN
    )


def ours(server: LoopbackSshd, logins: int, at_once: int, commands: Sequence[Command]) -> Cost:
    """One :class:`SshRemote` for all."""
    hosts = [replace(server.hosts()[0], name=f"host{number}") for number in range(logins)]

    async def all_of() -> int:
        remote = SshRemote(config=[], known_hosts=[server.known_hosts], max_connections=at_once)

        async def login(host: Host) -> bool:
            reply = await remote.run(host, commands, deadline_s=120.0)
            return reply.trouble is None and all(output.stdout for output in reply.outputs.values())

        good = sum(await asyncio.gather(*(login(host) for host in hosts)))
        await remote.close()
        return good

    name = f"`SshRemote`, {len(commands)} command{'s' if len(commands) > 1 else ''}"
    return _measured(name, logins, lambda: asyncio.run(all_of()), resource.RUSAGE_SELF)


def _measured(name: str, logins: int, run: Callable[[], int], who: int) -> Cost:
    before, start = resource.getrusage(who), time.monotonic()
    good = run()
    after, wall_s = resource.getrusage(who), time.monotonic() - start
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(name=name, logins=logins, good=good, cpu_s=cpu_s, wall_s=wall_s)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logins", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=16)
    options = parser.parse_args()
    one = [Command(name="fine", shell="echo fine")]
    forty = [Command(name=f"n{number}", shell="seq 500", limit_s=60.0) for number in range(40)]
    with tempfile.TemporaryDirectory() as folder, loopback_sshd(Path(folder)) as server:
        ours(server, 4, 4, one)  # imports and first uses
        plain = plain_ssh(server, options.logins, options.at_once)
        costs = [plain, plain_ssh(server, options.logins, options.at_once, "-oKexAlgorithms=curve25519-sha256")]
        costs.append(ours(server, options.logins, options.at_once, one))
        costs.append(ours(server, max(1, options.logins // 5), options.at_once, forty))
    print("| client | answered | client CPU a login | `ssh` over it | logins/s |\n|---|---|---|---|---|")
    for cost in costs:
        print(cost.row(plain))


if __name__ == "__main__":
    main()
