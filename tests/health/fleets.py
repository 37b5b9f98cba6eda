"""A small fleet of hosts in memory whose every answer a test can choose."""

import asyncio
from pathlib import Path

from wholestack.health import catalog, sweep
from wholestack.health.check import Expectation
from wholestack.health.earlier import EarlierSweep
from wholestack.health.verdicts import Sweep
from wholestack.remote.batch import Output
from wholestack.remote.host import Host
from wholestack.remote.simulated import SimulatedRemote

CHECKS = catalog.chosen(["filesystem"])
NOW = 1_000_000.0


def df(used: int = 9) -> bytes:
    return f"Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/sda1 100 {used} 1 {used}% /\n".encode()


def moment(now: float = NOW, boot_id: str = "boot") -> bytes:
    return f"now={now:.0f}\nboot_id={boot_id}\nuptime=7200.0 1.0\nkernel=6.1\nhostname=h\nuid=0\n".encode()


def healthy(command) -> Output:
    return Output(name=command.name, stdout=moment() if command.name == "moment" else df())


class Answers:
    """Answers of hosts: healthy, unless told otherwise by host and command; keeps who was asked."""

    def __init__(self, special=None):
        self.special = special or {}
        self.asked = []

    def __call__(self, host, command):
        self.asked.append(host.name)
        told = self.special.get(host.name, {})
        if isinstance(told, str):
            return told
        answer = told.get(command.name, healthy(command))
        return answer


def run(folder: Path, names, answers=None, *, since=None, checks=CHECKS, watch=lambda _: None, **plan) -> Sweep:
    """One whole sweep."""
    hosts = [name if isinstance(name, Host) else Host(name=name) for name in names]
    expectations = plan.pop("expectations", {host.kind: Expectation() for host in hosts})
    asked = sweep.plan_for(hosts, checks, expectations, **({"concurrency": 4, "since": str(since or "")} | plan))
    before = EarlierSweep(since).before if since else lambda _: None
    with sweep.create(folder, asked, at=NOW) as directory:
        remote = SimulatedRemote(answers or Answers())
        return asyncio.run(sweep.sweep(directory, remote, before=before, watch=watch, clock=lambda: NOW))
