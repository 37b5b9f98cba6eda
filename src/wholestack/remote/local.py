"""This very machine as a host: the same script, through a local ``sh``."""

import asyncio
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from wholestack.remote.batch import Command, Reply
from wholestack.remote.host import Host
from wholestack.remote.wire import FrameReader, script


class LocalRemote:
    """Runs batches here, whatever host is named.

    Args:
        sudo: Whether ``sudo -n`` may be used for commands that need root.
        shell: The POSIX shell and its arguments; it must read the script from standard input.
        environment: Variables on top of this process's own: what no command line may hold, since everybody sees that.
    """

    def __init__(
        self,
        *,
        sudo: bool = False,
        shell: Sequence[str] = ("sh", "-s"),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._sudo = sudo
        self._shell = tuple(shell)
        self._environment = dict(environment)

    async def run(self, host: Host, commands: Sequence[Command], *, deadline_s: float) -> Reply:
        """See :class:`~wholestack.remote.batch.Remote`."""
        start = time.monotonic()
        nonce = secrets.token_hex(16)
        reader = FrameReader(commands, nonce)
        text = script(commands, sudo=self._sudo, nonce=nonce)
        loop = asyncio.get_running_loop()
        try:
            transport, conversation = await loop.subprocess_exec(
                lambda: _Conversation(reader),
                *self._shell,
                stderr=asyncio.subprocess.DEVNULL,
                # The script signals its process group, which must not be ours.
                start_new_session=True,
                env={**os.environ, **self._environment},
            )
        except OSError as error:
            detail = f"{self._shell[0]} does not start: {error.strerror}"
            return Reply(host=host, outputs=reader.close(), trouble="refused", detail=detail)
        late = False
        try:
            async with asyncio.timeout(deadline_s):
                conversation.say(transport, text)
                await conversation.over
                if reader.ended or not reader.over:  # else it has been told off and still talks
                    await conversation.gone
        except TimeoutError:
            late = True
        finally:
            # The end of its standard input makes the script end whatever it started, even if its shell is dead.
            transport.close()
            await conversation.gone
        return reader.reply(host, late=late, seconds=time.monotonic() - start)

    async def close(self) -> None:
        """Nothing is kept."""


class _Conversation(asyncio.SubprocessProtocol):
    """Feeds a reader; ``over`` when it has all or the script has no more to say, ``gone`` when the shell is."""

    def __init__(self, reader: FrameReader) -> None:
        loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        self._reader = reader

    @staticmethod
    def say(transport: asyncio.SubprocessTransport, text: bytes) -> None:
        """Send the script; standard input stays open."""
        pipe = transport.get_pipe_transport(0)
        if not isinstance(pipe, asyncio.WriteTransport):
            raise TypeError("a process without standard input")
        pipe.write(text)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._reader.feed(data)
        if self._reader.over:
            _finish(self.over)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            _finish(self.over)

    def process_exited(self) -> None:
        _finish(self.gone)


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
