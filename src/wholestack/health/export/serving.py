"""An HTTP server for one answer: ``GET /metrics``.

It is made for a scraper on the same machine, and to be left alone by everybody else: no request has a body that is
read, a connection is for one request and under a time limit in each direction, there are so many at a time (one more
is cut off), and one text is made at a time, however many ask for it.
"""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

from wholestack.errors import InputError
from wholestack.health.export.exposition import CONTENT_TYPE

PATH = "/metrics"
MOST_CONNECTIONS = 32
MOST_REQUEST_BYTES = 8192
READ_S = 5.0
"""For a whole request to come."""
WRITE_S = 20.0
"""For an answer to go."""
LINGER_S = 1.0
"""For the rest of a request that was refused."""
END_S = 5.0
"""For answers under way, once the end was asked for."""
SAID = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
}


class MetricsServer:
    """Answers with a text that is made anew for each request.

    Args:
        make: Makes the text; called in a thread, never twice at a time.
        read_s: See :data:`READ_S`.
        write_s: See :data:`WRITE_S`.
        most: See :data:`MOST_CONNECTIONS`.
    """

    def __init__(
        self,
        make: Callable[[], bytes],
        *,
        read_s: float = READ_S,
        write_s: float = WRITE_S,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        self._make = make
        self._read_s, self._write_s, self._most = read_s, write_s, most
        self._making = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self, address: str, port: int) -> int:
        """Listen; returns the port, which is a free one where 0 was asked for.

        Raises:
            InputError: the address or the port is not to be had.
        """
        try:
            self._server = await asyncio.start_server(self._take, address, port, limit=MOST_REQUEST_BYTES)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"cannot listen on {address} port {port}: {error}", remedy="free the port or choose another --port"
            ) from error
        return int(self._server.sockets[0].getsockname()[1])

    async def until_told(self) -> None:
        """Answer until SIGTERM or SIGINT, then end what is under way and return."""
        end = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end.set)
        try:
            await end.wait()
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
            await self.close()

    async def close(self) -> None:
        """Listen no more; what is under way has :data:`END_S` to end, then it is cut off."""
        if self._server is not None:
            self._server.close()
        if self._open:
            await asyncio.wait(self._open, timeout=END_S)
            for writer in self._open.values():
                writer.transport.abort()
            await asyncio.gather(*self._open, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= self._most:
            writer.transport.abort()
            return
        self._open[task] = writer
        try:
            status, body = await self._answer(reader)
            async with asyncio.timeout(self._write_s):
                writer.write(_head(status, body))
                if body:
                    writer.write(body)
                await writer.drain()
                if status != 200:
                    await _linger(reader, writer)
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError):
            pass  # Whoever asked is gone, or too slow.
        finally:
            del self._open[task]
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[int, bytes]:
        try:
            async with asyncio.timeout(self._read_s):
                request = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            return 408, b""
        except asyncio.LimitOverrunError:
            return 431, b""
        except asyncio.IncompleteReadError:
            return 400, b""
        words = request.partition(b"\r\n")[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return 400, b""
        if words[1].partition(b"?")[0] != PATH.encode():
            return 404, b""
        if words[0] != b"GET":
            return 405, b""
        async with self._making:
            return 200, await asyncio.to_thread(self._make)


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Let the other side read the refusal: a connection closed with bytes unread takes back what was sent."""
    writer.write_eof()
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while await reader.read(MOST_REQUEST_BYTES):
                pass


def _head(status: int, body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status} {SAID[status]}", f"Content-Length: {len(body)}", "Connection: close"]
    if status == 405:
        lines.append("Allow: GET")
    if status == 200:
        lines += [f"Content-Type: {CONTENT_TYPE}", "X-Content-Type-Options: nosniff"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
