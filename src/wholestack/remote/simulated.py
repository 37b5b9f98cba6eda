"""Hosts in memory, for tests and simulators: no process, no socket, no waiting."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from wholestack.remote.batch import Command, Output, Reply, Trouble
from wholestack.remote.host import Host

Answer: TypeAlias = Output | Trouble
"""What a command gave; or what befell the host at it: this and all later commands are ``not_run``."""

HANG_GRACE_S = 2.0
"""A hung command is given up this long after its limit, as on a real host."""


class SimulatedRemote:
    """A remote whose hosts are a function.

    Limits are kept as a host would keep them: outputs are cut at ``max_bytes``, one that says it took longer than
    ``limit_s`` is ``timed_out``, one that is not over at the deadline is ``not_run``. Time is only counted: a batch
    takes as long as its longest command.

    Args:
        answer: Gives the answer of a host to a command, or an awaitable of it; called in the order of the batch.
        is_root: Whether commands that need root are started.

    Example:
        >>> remote = SimulatedRemote(lambda host, command: Output(name=command.name, stdout=b"fine"))
        >>> reply = asyncio.run(remote.run(Host(name="gpu1"), [Command(name="df", shell="df")], deadline_s=9.0))
        >>> reply.outputs["df"].text
        'fine'
    """

    def __init__(self, answer: Callable[[Host, Command], Answer | Awaitable[Answer]], *, is_root: bool = True) -> None:
        self._answer = answer
        self._is_root = is_root

    async def run(self, host: Host, commands: Sequence[Command], *, deadline_s: float) -> Reply:
        """See :class:`~wholestack.remote.batch.Remote`."""
        outputs: dict[str, Output] = {}
        trouble: Trouble | None = None
        for command in commands:
            answer = "lost" if trouble else await self._ask(host, command)
            if isinstance(answer, str):
                trouble = trouble or answer
                answer = Output(name=command.name, exit_status=None, ending="not_run")
            outputs[command.name] = _within(answer, command)
        if not trouble and max((each.seconds for each in outputs.values()), default=0.0) > deadline_s:
            trouble = "timed_out"
        outputs = {name: _by(deadline_s, output) for name, output in outputs.items()}
        seconds = max((each.seconds for each in outputs.values()), default=0.0)
        seconds = deadline_s if trouble == "timed_out" else seconds
        detail = f"simulated: {trouble}" if trouble else ""
        await asyncio.sleep(0)  # gives way, as a real one does
        return Reply(host=host, outputs=outputs, trouble=trouble, detail=detail, seconds=seconds)

    async def _ask(self, host: Host, command: Command) -> Answer:
        if command.needs_root and not self._is_root:
            return Output(name=command.name, exit_status=None, ending="needs_root")
        answer = self._answer(host, command)
        return await answer if inspect.isawaitable(answer) else answer

    async def close(self) -> None:
        """Nothing is kept."""


def hang(command: Command) -> Output:
    """The answer of a command that cannot be killed."""
    return Output(name=command.name, exit_status=None, ending="hung", seconds=command.limit_s + HANG_GRACE_S)


def _within(output: Output, command: Command) -> Output:
    """As the command's own limits leave it."""
    if output.ending == "ended" and output.seconds > command.limit_s:
        output = replace(output, ending="timed_out", exit_status=None, seconds=command.limit_s)
    return replace(
        output,
        name=command.name,
        stdout=output.stdout[: command.max_bytes],
        stderr=output.stderr[:2000],
        truncated=output.truncated or len(output.stdout) > command.max_bytes,
    )


def _by(deadline_s: float, output: Output) -> Output:
    if output.seconds <= deadline_s:
        return output
    return Output(name=output.name, exit_status=None, ending="not_run")
