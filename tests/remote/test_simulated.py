"""Hosts in memory: troubles, hangs and limits without waiting."""

import asyncio

from wholestack.remote.batch import Command, Output
from wholestack.remote.host import Host
from wholestack.remote.simulated import SimulatedRemote, hang

BATCH = [Command(name="a", shell="a"), Command(name="b", shell="b", max_bytes=3), Command(name="c", shell="c")]


def run(answer, *, deadline_s=60.0, **kwargs):
    return asyncio.run(SimulatedRemote(answer, **kwargs).run(Host(name="h"), BATCH, deadline_s=deadline_s))


def fine(host, command):
    return Output(name=command.name, stdout=command.name.encode() * 5, seconds=0.25)


def test_a_trouble_ends_the_host_and_keeps_what_came_before():
    reply = run(lambda host, command: "lost" if command.name == "b" else fine(host, command))
    assert reply.trouble == "lost"
    assert reply.detail
    assert {name: output.ending for name, output in reply.outputs.items()} == {
        "a": "ended",
        "b": "not_run",
        "c": "not_run",
    }


def test_an_answer_may_be_awaited_and_is_cut():
    async def answer(host, command):
        await asyncio.sleep(0)
        return fine(host, command)

    reply = run(answer)
    assert (reply.outputs["b"].stdout, reply.outputs["b"].truncated) == (b"bbb", True)
    assert (reply.trouble, reply.seconds) == (None, 0.25)


def test_a_hang_takes_no_time_but_counts_it():
    reply = run(lambda host, command: hang(command) if command.name == "b" else fine(host, command))
    assert reply.outputs["b"].ending == "hung"
    assert reply.seconds == 12.0
    assert reply.outputs["c"].stdout == b"ccccc"


def test_beyond_the_deadline_nothing_counts():
    def answer(host, command):
        return hang(command) if command.name == "b" else fine(host, command)

    reply = run(answer, deadline_s=5.0)
    assert (reply.trouble, reply.seconds) == ("timed_out", 5.0)
    assert (reply.outputs["b"].ending, reply.outputs["a"].ending) == ("not_run", "ended")


def test_longer_than_the_limit_is_timed_out():
    reply = run(lambda host, command: Output(name=command.name, stdout=b"x", seconds=11.0))
    assert (reply.outputs["a"].ending, reply.outputs["a"].exit_status) == ("timed_out", None)
    assert reply.outputs["a"].seconds == 10.0


def test_without_root_what_needs_it_is_not_asked():
    asked = []

    async def runs():
        remote = SimulatedRemote(lambda host, command: asked.append(command.name) or fine(host, command), is_root=False)
        return await remote.run(Host(name="h"), [Command(name="r", shell="r", needs_root=True)], deadline_s=1.0)

    assert asyncio.run(runs()).outputs["r"].ending == "needs_root"
    assert asked == []
