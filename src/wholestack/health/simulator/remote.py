"""Reaching simulated hosts: a Remote that answers the commands of a batch at once and without sleeping.

A tool is recognised by the words of the shell command (``tools.table``); what is not known is not installed (exit
status 127). A hung tool is an ending, not a wait. Nothing is rendered before it is asked for, unless
:meth:`FleetRemote.render_all` is called first, which keeps the outputs compressed, so that a benchmark of the sweep
does not time the simulator.
"""

import zlib
from collections.abc import Sequence

from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.spoiling import spoil
from wholestack.health.simulator.tools.answer import Answer, not_found
from wholestack.health.simulator.tools.table import Tool, tool_of
from wholestack.remote.batch import Command, Ending, Output, Reply, Trouble
from wholestack.remote.host import Host

KEPT_RAW_BYTES = 1_024
_DETAILS: dict[str, str] = {
    "unreachable": "connect to host {host} port 22: No route to host",
    "refused": "connect to host {host} port 22: Connection refused",
    "host_key": "host key of {host} is not the known one",
    "auth": "Permission denied (publickey)",
    "lost": "connection to {host} was lost",
    "timed_out": "{host} did not answer in time",
    "protocol": "{host} answered something else",
}


class FleetRemote:
    """All hosts of a fleet, by name."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._tools: dict[str, Tool | None] = {}
        self._still: dict[tuple[str, str], tuple[int, Answer]] = {}
        self._rendered: dict[tuple[str, str], _Kept] = {}

    async def run(self, host: Host, commands: Sequence[Command], *, deadline_s: float) -> Reply:
        """Answer a batch; never raises for what a host does."""
        return self.reply(host, commands, deadline_s=deadline_s)

    async def close(self) -> None:
        """Nothing is held."""

    def render_all(self, commands: Sequence[Command]) -> int:
        """Render the answers of all hosts to these commands now; they are used until time passes.

        Returns:
            Bytes kept.
        """
        self._rendered.clear()
        shared: dict[bytes, bytes] = {}
        kept_bytes = 0
        for machine in self._fleet:
            for command in commands:
                kept = _Kept(self.output(machine, command), self._fleet.now, shared)
                self._rendered[machine.name, command.shell] = kept
                kept_bytes += len(kept.body)
        return kept_bytes

    def reply(self, host: Host, commands: Sequence[Command], *, deadline_s: float) -> Reply:
        """The same as :meth:`run` without a loop."""
        machine = self._fleet.get(host.name)
        if machine is None:
            return _without(host, commands, "unreachable", f"Could not resolve hostname {host.name}")
        trouble = machine.trouble
        if trouble and trouble not in {"lost", "timed_out"}:
            return _without(host, commands, trouble, _DETAILS[trouble].format(host=host.name))
        outputs = {command.name: self._kept_or_new(machine, command) for command in commands}
        seconds = max((output.seconds for output in outputs.values()), default=0.0)
        if trouble or seconds > deadline_s:
            return _partly(host, commands, outputs, trouble or "timed_out", deadline_s)
        return Reply(host=host, outputs=outputs, seconds=round(0.3 + seconds, 3))

    def _kept_or_new(self, machine: Machine, command: Command) -> Output:
        kept = self._rendered.get((machine.name, command.shell))
        if kept and kept.now == self._fleet.now:
            return kept.output(command)
        return self.output(machine, command)

    def output(self, machine: Machine, command: Command) -> Output:
        """What one command gives on one host now."""
        if command.needs_root and not machine.root:
            return Output(name=command.name, exit_status=None, ending="needs_root")
        if command.shell not in self._tools:
            self._tools[command.shell] = tool_of(command.shell)
        tool = self._tools[command.shell]
        answer = self._answer(machine, tool) if tool else not_found(command.shell.split(" ", 1)[0])
        effect = machine.effects.get(tool.name) if tool else None
        ending: Ending = "ended"
        body = answer.stdout.encode()
        status: int | None = answer.exit_status
        seconds = answer.seconds + (machine.slow.get(tool.name, 0.0) if tool else 0.0)
        if effect:
            spoilt = spoil(
                effect,
                body,
                exit_status=status,
                seconds=seconds,
                limit_s=command.limit_s,
            )
            body, status, ending, seconds = spoilt.body, spoilt.exit_status, spoilt.ending, spoilt.seconds
        elif seconds > command.limit_s:
            body, status, ending, seconds = b"", None, "timed_out", command.limit_s
        return Output(
            name=command.name,
            stdout=body[: command.max_bytes],
            stderr=answer.stderr.encode()[:2_000] if ending == "ended" else b"",
            exit_status=status,
            ending=ending,
            truncated=len(body) > command.max_bytes,
            seconds=round(seconds, 3),
        )

    def _answer(self, machine: Machine, tool: Tool) -> Answer:
        if not tool.still:
            return tool.answer(machine)
        key = (machine.name, tool.name)
        kept = self._still.get(key)
        if kept is None or kept[0] != machine.version:
            kept = (machine.version, tool.answer(machine))
            self._still[key] = kept
        return kept[1]


class _Kept:
    """One output, compressed."""

    __slots__ = ("body", "now", "packed", "rest")

    def __init__(self, output: Output, now: float, shared: dict[bytes, bytes]) -> None:
        self.packed = len(output.stdout) > KEPT_RAW_BYTES
        body = zlib.compress(output.stdout, 1) if self.packed else output.stdout
        self.body = shared.setdefault(body, body)
        self.now = now
        self.rest = (output.stderr, output.exit_status, output.ending, output.truncated, output.seconds)

    def output(self, command: Command) -> Output:
        stderr, exit_status, ending, truncated, seconds = self.rest
        return Output(
            name=command.name,
            stdout=zlib.decompress(self.body) if self.packed else self.body,
            stderr=stderr,
            exit_status=exit_status,
            ending=ending,
            truncated=truncated,
            seconds=seconds,
        )


def _without(host: Host, commands: Sequence[Command], trouble: str, detail: str) -> Reply:
    return Reply(
        host=host,
        outputs={command.name: _not_run(command) for command in commands},
        trouble=_trouble(trouble),
        detail=detail,
        seconds=3.0,
    )


def _partly(
    host: Host, commands: Sequence[Command], outputs: dict[str, Output], trouble: str, deadline_s: float
) -> Reply:
    """The first half of the answers arrived."""
    arrived = {command.name for command in commands[: len(commands) // 2]}
    return Reply(
        host=host,
        outputs={
            command.name: outputs[command.name] if command.name in arrived else _not_run(command)
            for command in commands
        },
        trouble=_trouble(trouble),
        detail=_DETAILS[trouble].format(host=host.name),
        seconds=deadline_s if trouble == "timed_out" else 2.0,
    )


def _not_run(command: Command) -> Output:
    return Output(name=command.name, exit_status=None, ending="not_run")


def _trouble(word: str) -> Trouble:
    troubles: dict[str, Trouble] = {
        "unreachable": "unreachable",
        "refused": "refused",
        "host_key": "host_key",
        "auth": "auth",
        "lost": "lost",
        "timed_out": "timed_out",
        "protocol": "protocol",
    }
    return troubles[word]
