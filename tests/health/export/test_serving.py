"""The server: one answer for GET /metrics, and nobody who asks otherwise, slowly or too often keeps it from that."""

import asyncio
import os
import signal

import pytest

from wholestack.errors import InputError
from wholestack.health.export.serving import MOST_REQUEST_BYTES, MetricsServer

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


def serving(asking, make=lambda: b"x 1\n", **limits):
    """What comes of talking to a server on a free port."""

    async def run():
        server = MetricsServer(make, **limits)
        port = await server.start("127.0.0.1", 0)
        try:
            return await asyncio.wait_for(asking(port), 30)
        finally:
            await server.close()

    return asyncio.run(run())


async def ask(port, request=GET):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()


def test_metrics_are_answered_as_the_format_asks():
    head, body = serving(ask).split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n")
    assert b"\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8" in head
    assert body == b"x 1\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /metrics?name=x HTTP/1.0\r\n\r\n", 200),
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /metrics/../../etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET /metrics\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 3 * MOST_REQUEST_BYTES, 431),
    ],
)
def test_anything_else_is_refused(request_, status):
    assert serving(lambda port: ask(port, request_)).split(b" ")[1] == str(status).encode()


def test_who_says_nothing_is_not_waited_for():
    assert serving(lambda port: ask(port, b"GET /me"), read_s=0.1).startswith(b"HTTP/1.1 408 ")


def test_who_does_not_read_is_left_and_the_next_one_is_answered():
    made = []

    def large():
        made.append(1)
        return b"x" * (64 << 20 if len(made) == 1 else 4)

    async def asking(port):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(GET)
        while not made:
            await asyncio.sleep(0.01)
        answer = await ask(port)
        writer.transport.abort()
        return answer

    assert serving(asking, large, write_s=0.2, most=2).endswith(b"xxxx")


def test_more_connections_than_allowed_are_cut_off_until_one_is_free():
    async def answered(port):
        try:
            return await ask(port)
        except ConnectionError:
            return b""

    async def asking(port):
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        refused = await answered(port)
        for _, writer in idle:
            writer.close()
        while not (answer := await answered(port)):
            await asyncio.sleep(0.01)
        return refused, answer

    refused, answer = serving(asking, most=3)
    assert refused == b""
    assert answer.endswith(b"x 1\n")


def test_one_text_is_made_at_a_time():
    at_once, most = [0], [0]

    def make():
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        for _ in range(10**5):
            pass
        at_once[0] -= 1
        return b"x 1\n"

    async def asking(port):
        return await asyncio.gather(*(ask(port) for _ in range(16)))

    assert len(serving(asking, make)) == 16
    assert most == [1]


def test_a_port_that_is_taken_is_one_line():
    async def asking(port):
        with pytest.raises(InputError, match=rf"cannot listen on 127.0.0.1 port {port}: .*choose another --port"):
            await MetricsServer(lambda: b"").start("127.0.0.1", port)

    serving(asking)


def test_on_sigterm_what_is_under_way_is_answered_first():
    async def run():
        loop = asyncio.get_running_loop()
        begun = asyncio.Event()
        server = MetricsServer(lambda: loop.call_soon_threadsafe(begun.set) and b"x" * 10**6)
        port = await server.start("127.0.0.1", 0)
        told = asyncio.create_task(server.until_told())
        asked = asyncio.create_task(ask(port))
        await begun.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(told, 20)
        with pytest.raises(OSError, match=r"refused|Connect"):
            await ask(port)
        return await asked

    assert asyncio.run(run()).endswith(b"x" * 10**6)
