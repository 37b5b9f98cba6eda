"""Reaching simulated hosts: a Remote that answers the commands of a batch at once and without sleeping.

A tool is recognised by the words of the shell command (``tools.table``); what is not known is not installed (exit
status 127). A hung tool is an ending, not a wait. :class:`FleetRemote` renders what it is asked for; :func:`render_all`
does so beforehand and keeps the outputs compressed without the hosts, so that a benchmark of a sweep times and weighs
the sweep and not the simulator.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wholestack.health.simulator.fleet import Fleet
from wholestack.health.simulator.machine import Machine
from wholestack.health.simulator.reactions import react
from wholestack.health.simulator.spoiling import spoil
from wholestack.health.simulator.tools.answer import Answer, not_found
from wholestack.health.simulator.tools.table import Tool, tool_of
from wholestack.remote.batch import Command, Ending, Output, Reply, Trouble
from wholestack.remote.host import Host

KEPT_RAW_BYTES = 1_024
LOGIN_S = 0.3
"""What a connection takes before the first command runs."""
_DETAILS: Mapping[Trouble, str] = {
    "unreachable": "connect to host {host} port 22: No route to host",
    "refused": "connect to host {host} port 22: Connection refused",
    "host_key": "host key of {host} is not the known one",
    "auth": "Permission denied (publickey)",
    "name": "the name {host} does not resolve",
    "key_file": "private key: No such file or directory",
    "lost": "connection to {host} was lost",
    "timed_out": "{host} did not answer in time",
    "protocol": "{host} answered something else",
}


class FleetRemote:
    """All hosts of a fleet, by name, as they are when they are asked."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._tools: dict[str, Tool | None] = {}
        self._still: dict[str, dict[str, tuple[int, Answer]]] = {}
        self._rendered: RenderedRemote | None = None
        self._rendered_at = 0.0

    def render_all(self, commands: Sequence[Command]) -> int:
        """Render all hosts' answers to these commands now; used until time passes or the host changes.

        Returns:
            Bytes that are kept.
        """
        self._rendered, self._rendered_at = render_all(self._fleet, commands), self._fleet.now
        return self._rendered.size_bytes

    async def run(self, host: Host, commands: Sequence[Command], *, deadline_s: float) -> Reply:
        """Answer a batch; never raises for what a host does."""
        return self.reply(host, commands, deadline_s=deadline_s)

    async def close(self) -> None:
        """Nothing is held."""

    def reply(self, host: Host, commands: Sequence[Command], *, deadline_s: float) -> Reply:
        """The same as :meth:`run` without a loop."""
        machine = self._fleet.get(host.name)
        if machine is None:
            return _unknown_host(host, commands)
        kept = self._kept(machine)
        if kept and all(command.shell in kept.outputs for command in commands):
            return _reply(host, commands, machine.trouble, kept.output, deadline_s)
        return _reply(host, commands, machine.trouble, lambda command: self.output(machine, command), deadline_s)

    def _kept(self, machine: Machine) -> "_KeptHost | None":
        """What was rendered beforehand, if it is still true."""
        if self._rendered is None or self._rendered_at != self._fleet.now:
            return None
        kept = self._rendered.of(machine.name)
        return kept if kept and kept.version == machine.version else None

    def output(self, machine: Machine, command: Command) -> Output:
        """What one command gives on one host now."""
        if command.needs_root and not machine.root:
            return Output(name=command.name, exit_status=None, ending="needs_root")
        if (changed := react(machine, command.shell)) is not None:
            return Output(
                name=command.name,
                stdout=changed.stdout.encode()[: command.max_bytes],
                stderr=changed.stderr.encode()[:2_000],
                exit_status=changed.exit_status,
                seconds=changed.seconds,
            )
        tool = self._tool(command.shell)
        answer = self._answer(machine, tool) if tool else not_found(command.shell.split(" ", 1)[0])
        body, status, ending, seconds = _ended(machine, tool, answer, command)
        return Output(
            name=command.name,
            stdout=body[: command.max_bytes],
            stderr=answer.stderr.encode()[:2_000] if ending == "ended" else b"",
            exit_status=status,
            ending=ending,
            truncated=len(body) > command.max_bytes,
            seconds=round(seconds, 3),
        )

    def _tool(self, shell: str) -> Tool | None:
        if shell not in self._tools:
            self._tools[shell] = tool_of(shell)
        return self._tools[shell]

    def _answer(self, machine: Machine, tool: Tool) -> Answer:
        if not tool.still:
            return tool.answer(machine)
        answers = self._still.setdefault(machine.name, {})
        kept = answers.get(tool.name)
        if kept is None or kept[0] != machine.version:
            kept = (machine.version, tool.answer(machine))
            answers[tool.name] = kept
        return kept[1]

    def forget(self, machine: Machine) -> None:
        """Let go of all texts of one host."""
        machine.log.forget_text()
        self._still.pop(machine.name, None)


def _ended(
    machine: Machine, tool: Tool | None, answer: Answer, command: Command
) -> tuple[bytes, int | None, Ending, float]:
    """Output, exit status, ending and seconds of a command, after what ails its tool."""
    body = answer.stdout.encode()
    if tool is None:
        return body, answer.exit_status, "ended", answer.seconds
    seconds = answer.seconds + machine.slow.get(tool.name, 0.0)
    if effect := machine.effects.get(tool.name):
        spoilt = spoil(
            effect,
            body,
            exit_status=answer.exit_status,
            seconds=seconds,
            limit_s=command.limit_s,
            max_bytes=command.max_bytes,
        )
        return spoilt.body, spoilt.exit_status, spoilt.ending, spoilt.seconds
    if seconds > command.limit_s:
        return b"", None, "timed_out", command.limit_s
    return body, answer.exit_status, "ended", seconds


class RenderedRemote:
    """The answers of all hosts at one moment; made by :func:`render_all`."""

    def __init__(self, hosts: Mapping[str, "_KeptHost"]) -> None:
        self._hosts = hosts

    async def run(self, host: Host, commands: Sequence[Command], *, deadline_s: float) -> Reply:
        """Answer a batch; a command that was not rendered is not installed."""
        kept = self._hosts.get(host.name)
        if kept is None:
            return _unknown_host(host, commands)
        return _reply(host, commands, kept.trouble, kept.output, deadline_s)

    async def close(self) -> None:
        """Nothing is held."""

    def of(self, name: str) -> "_KeptHost | None":
        """What is kept of a host."""
        return self._hosts.get(name)

    @property
    def size_bytes(self) -> int:
        """Bytes of the compressed outputs, those that are equal counted once."""
        bodies = {
            id(output.body): len(output.body) for host in self._hosts.values() for output in host.outputs.values()
        }
        return sum(bodies.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptOutput:
    body: bytes
    packed: bool
    rest: Output
    """The output without its body; often the same for many hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptHost:
    trouble: str
    version: int
    outputs: Mapping[str, _KeptOutput]
    """By shell text."""

    def output(self, command: Command) -> Output:
        kept = self.outputs.get(command.shell)
        if kept is None:
            return Output(name=command.name, stderr=b"sh: 1: not found\n", exit_status=127)
        rest = kept.rest
        return Output(
            name=command.name,
            stdout=zlib.decompress(kept.body) if kept.packed else kept.body,
            stderr=rest.stderr,
            exit_status=rest.exit_status,
            ending=rest.ending,
            truncated=rest.truncated,
            seconds=rest.seconds,
        )


def render_all(fleet: Fleet, commands: Sequence[Command]) -> RenderedRemote:
    """Render the answers of all hosts to these commands now. The fleet may be let go, or its time go on."""
    remote, hosts = FleetRemote(fleet), {}
    shared: dict[object, bytes] = {}
    rests: dict[Output, Output] = {}
    for machine in fleet:
        outputs = {}
        for command in commands:
            output = remote.output(machine, command)
            packed = len(output.stdout) > KEPT_RAW_BYTES
            body = zlib.compress(output.stdout, 1) if packed else output.stdout
            rest = Output(
                name="",
                stderr=output.stderr,
                exit_status=output.exit_status,
                ending=output.ending,
                truncated=output.truncated,
                seconds=output.seconds,
            )
            outputs[command.shell] = _KeptOutput(
                body=shared.setdefault(body, body), packed=packed, rest=rests.setdefault(rest, rest)
            )
        hosts[machine.name] = _KeptHost(trouble=machine.trouble, version=machine.version, outputs=outputs)
        remote.forget(machine)
    return RenderedRemote(hosts)


def _reply(
    host: Host, commands: Sequence[Command], trouble: str, output: Callable[[Command], Output], deadline_s: float
) -> Reply:
    """The reply of a host with that trouble, empty for none."""
    if trouble and trouble not in {"lost", "timed_out"}:
        return _without(host, commands, _trouble(trouble))
    outputs = {command.name: output(command) for command in commands}
    seconds = max((each.seconds for each in outputs.values()), default=0.0)
    if trouble or seconds > deadline_s:
        arrived = commands[: len(commands) // 2] if trouble else commands
        in_time = {each.name for each in arrived if outputs[each.name].seconds <= deadline_s}
        return _partly(host, outputs, in_time, _trouble(trouble or "timed_out"), deadline_s)
    return Reply(host=host, outputs=outputs, seconds=round(LOGIN_S + seconds, 3))


def _without(host: Host, commands: Sequence[Command], trouble: Trouble) -> Reply:
    return Reply(
        host=host,
        outputs={command.name: _not_run(command) for command in commands},
        trouble=trouble,
        detail=_DETAILS[trouble].format(host=host.name),
        seconds=3.0,
    )


def _unknown_host(host: Host, commands: Sequence[Command]) -> Reply:
    return Reply(
        host=host,
        outputs={command.name: _not_run(command) for command in commands},
        trouble="unreachable",
        detail=f"Could not resolve hostname {host.name}: Name or service not known",
    )


def _partly(host: Host, outputs: Mapping[str, Output], arrived: set[str], trouble: Trouble, deadline_s: float) -> Reply:
    """What came by the deadline, or before the connection was lost."""
    return Reply(
        host=host,
        outputs={
            name: output if name in arrived else Output(name=name, exit_status=None, ending="not_run")
            for name, output in outputs.items()
        },
        trouble=trouble,
        detail=_DETAILS[trouble].format(host=host.name),
        seconds=deadline_s if trouble == "timed_out" else 2.0,
    )


def _not_run(command: Command) -> Output:
    return Output(name=command.name, exit_status=None, ending="not_run")


def _trouble(word: str) -> Trouble:
    return next(trouble for trouble in _DETAILS if trouble == word)
