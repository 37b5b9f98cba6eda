"""What every remote promises, as tests: subclass :class:`RemoteConformance`, say how to reach a host, run pytest.

The commands really run where the remote runs commands; a simulated one is told by :func:`behave` what they would do.
Example::

    class TestMyRemote(RemoteConformance):
        def make_remote(self, folder):
            return nullcontext((MyRemote(), Host(name="there")))
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from wholestack.remote.batch import Command, Ending, Output, Remote, Reply
from wholestack.remote.host import Host
from wholestack.remote.simulated import Answer, hang

_PATIENCE_S = 60.0
_EVERY_BYTE = "".join(f"\\{value:03o}" for value in range(256))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command and what it must give."""

    name: str
    shell: str
    stdout: bytes = b""
    stderr: bytes | None = b""
    """``None``: anything, since shells word it differently."""
    exit_status: int | None = 0
    ending: Ending = "ended"
    limit_s: float = 2 * _PATIENCE_S
    """Of commands that end: whatever they leave behind must not hold up the batch until then."""
    max_bytes: int = 1_000_000
    truncated: bool = False

    @property
    def command(self) -> Command:
        """As it is sent."""
        return Command(name=self.name, shell=self.shell, limit_s=self.limit_s, max_bytes=self.max_bytes)

    def broken(self, output: Output) -> str:
        """What is wrong with an output; empty if nothing is."""
        wrong = [
            f"{name} is {getattr(output, name)!r:.200}, not {wanted!r:.200}"
            for name in ("stdout", "stderr", "exit_status", "ending", "truncated")
            if (wanted := getattr(self, name)) is not None or name == "exit_status"
            if getattr(output, name) != wanted
        ]
        return f"{self.name}: {'; '.join(wrong)}" if wrong else ""


QUICK = (
    Case(name="words", shell="printf 'one\\ntwo'", stdout=b"one\ntwo"),
    Case(name="nothing", shell=":"),
    Case(name="both", shell="echo out; echo err >&2; exit 3", stdout=b"out\n", stderr=b"err\n", exit_status=3),
    Case(name="every_byte", shell=f"printf '{_EVERY_BYTE}'", stdout=bytes(range(256))),
    Case(name="absent", shell="no-such-tool-9", exit_status=127, stderr=None),
    Case(name="killed", shell="kill -9 $$", exit_status=137, stderr=None),
    Case(name="locale", shell='printf %s "$LC_ALL"', stdout=b"C"),
    Case(name="input", shell="cat; echo read", stdout=b"read\n"),
    Case(name="quoted", shell="printf %s '$HOME \"`x`\\ '\\''\n'", stdout=b"$HOME \"`x`\\ '\n"),
    Case(name="long", shell="head -c 300000 /dev/zero", stdout=bytes(300_000), max_bytes=300_000),
    Case(name="longer", shell="head -c 300001 /dev/zero", stdout=bytes(300_000), max_bytes=300_000, truncated=True),
    Case(name="none_wanted", shell="echo much", max_bytes=0, truncated=True),
    Case(name="loud", shell="head -c 9999 /dev/zero >&2; echo done", stdout=b"done\n", stderr=bytes(2000)),
    Case(name="parent", shell="sleep 1000 & echo gone", stdout=b"gone\n"),
    Case(
        name="forger", shell="echo; echo 00000000000000000000000000000000 end .", stdout=b"\n" + b"0" * 32 + b" end .\n"
    ),
)
"""Commands that end."""

STUCK = (
    Case(
        name="slow",
        shell="echo early; sleep 1000",
        stdout=b"early\n",
        exit_status=None,
        ending="timed_out",
        limit_s=2.0,
    ),
    Case(
        name="stubborn",
        shell="trap '' TERM HUP INT; echo here; while :; do sleep 1000; done",
        stdout=b"here\n",
        stderr=None,
        exit_status=None,
        ending="timed_out",
        limit_s=2.0,
    ),
    Case(
        name="family",
        shell="(trap '' TERM; while :; do sleep 1000; done) & wait",
        stderr=None,
        exit_status=None,
        ending="timed_out",
        limit_s=2.0,
    ),
    Case(name="stopped", shell="kill -STOP $$", exit_status=None, ending="timed_out", limit_s=2.0),
)
"""Commands that are killed at their limit."""


def behave(host: Host, command: Command) -> Answer:
    """What the commands of this suite do, for a simulated remote."""
    case = {case.name: case for case in (*QUICK, *STUCK)}.get(command.name)
    if case is None:
        return hang(command) if command.name == "forever" else Output(name=command.name, stdout=b"fine\n")
    # The remote is to cut and to stop by itself.
    stdout = case.stdout + b"x" * case.truncated
    if case.ending == "timed_out":
        return Output(name=case.name, stdout=stdout, seconds=case.limit_s + 1.0)
    return Output(name=case.name, stdout=stdout, stderr=case.stderr or b"", exit_status=case.exit_status)


class RemoteConformance:
    """The suite. Override :meth:`make_remote`."""

    def make_remote(self, folder: Path) -> AbstractContextManager[tuple[Remote, Host]]:
        """A fresh remote and a host to reach by it; it may use the folder."""
        raise NotImplementedError

    def run(self, folder: Path, *batches: Sequence[Command], deadline_s: float = _PATIENCE_S) -> list[Reply]:
        """Run batches one after the other on one remote, then close it, twice."""

        async def all_of(remote: Remote, host: Host) -> list[Reply]:
            replies = [await remote.run(host, commands, deadline_s=deadline_s) for commands in batches]
            await remote.close()
            await remote.close()
            return replies

        with self.make_remote(folder) as (remote, host):
            return asyncio.run(all_of(remote, host))

    def test_what_commands_give_comes_back_as_it_was(self, tmp_path: Path) -> None:
        """Bytes, statuses, cuts; in the order of the batch."""
        (reply,) = self.run(tmp_path, [case.command for case in QUICK])
        assert (reply.trouble, reply.detail) == (None, "")
        assert list(reply.outputs) == [case.name for case in QUICK]
        assert [name for name, output in reply.outputs.items() if name != output.name] == []
        assert [broken for case in QUICK if (broken := case.broken(reply.outputs[case.name]))] == []

    def test_commands_that_hang_cost_only_themselves(self, tmp_path: Path) -> None:
        """Four of twenty-five; the other twenty-one are all there."""
        limit_s = 2 * _PATIENCE_S
        fine = [Command(name=f"fine_{number}", shell="echo fine", limit_s=limit_s) for number in range(21)]
        commands = [*fine[:9], *(case.command for case in STUCK), *fine[9:]]
        (reply,) = self.run(tmp_path, commands)
        assert reply.trouble is None
        assert {reply.outputs[each.name].stdout for each in fine} == {b"fine\n"}
        assert {reply.outputs[each.name].ending for each in fine} == {"ended"}
        assert [broken for case in STUCK if (broken := case.broken(reply.outputs[case.name]))] == []
        assert all(reply.outputs[case.name].seconds >= case.limit_s for case in STUCK)

    def test_one_that_streams_for_ever_is_cut(self, tmp_path: Path) -> None:
        """By its limit or by the end of its pipe, whichever is first."""
        shell = "while :; do echo again; done"
        commands = [
            Command(name="fine", shell="echo fine"),
            Command(name="endless", shell=shell, max_bytes=1000, limit_s=1.0),
            Command(name="endless_error", shell=f"({shell}) >&2", limit_s=1.0),
        ]
        (reply,) = self.run(tmp_path, commands)
        assert reply.trouble is None
        assert reply.outputs["fine"].stdout == b"fine\n", reply
        assert all(len(output.stdout) <= 1000 and len(output.stderr) <= 2000 for output in reply.outputs.values())

    def test_the_deadline_is_kept_and_what_has_come_counts(self, tmp_path: Path) -> None:
        """A command that would go on is not run; the rest is there; it is said why."""
        commands = [Command(name="forever", shell="sleep 1000", limit_s=900.0), Command(name="fine", shell="echo fine")]
        (reply,) = self.run(tmp_path, commands, deadline_s=4.0)
        assert reply.trouble == "timed_out"
        assert reply.detail
        assert "\n" not in reply.detail
        assert reply.outputs["fine"].stdout == b"fine\n", reply
        assert (reply.outputs["forever"].ending, reply.outputs["forever"].exit_status) == ("not_run", None)

    def test_what_needs_root_runs_as_root_or_not_at_all(self, tmp_path: Path) -> None:
        """Never as somebody else."""
        (reply,) = self.run(tmp_path, [Command(name="rooted", shell="id -u", needs_root=True)])
        output = reply.outputs["rooted"]
        assert reply.trouble is None
        assert output.ending in ("ended", "needs_root")
        assert output.ending == "ended" or (output.stdout, output.exit_status) == (b"", None)

    def test_an_empty_batch_is_answered(self, tmp_path: Path) -> None:
        """Which tells that the host can be reached."""
        (reply,) = self.run(tmp_path, [])
        assert (reply.trouble, dict(reply.outputs)) == (None, {})

    def test_batches_follow_each_other(self, tmp_path: Path) -> None:
        """On one remote; the reply names its host."""
        batch = [Command(name="fine", shell="echo fine")]
        replies = self.run(tmp_path, batch, batch)
        assert [reply.outputs["fine"].stdout for reply in replies] == [b"fine\n"] * 2
        assert replies[0].host == replies[1].host
        assert all(reply.seconds >= 0 for reply in replies)
        assert [reply.attempts for reply in replies] == [1, 1]

    def test_hosts_are_asked_side_by_side(self, tmp_path: Path) -> None:
        """Nothing is mixed up between runs at one time."""

        async def together(remote: Remote, host: Host) -> list[Reply]:
            runs = [
                remote.run(host, [Command(name=f"n{n}", shell=f"echo fine # {n}")], deadline_s=_PATIENCE_S)
                for n in range(5)
            ]
            replies = await asyncio.gather(*runs)
            await remote.close()
            return list(replies)

        with self.make_remote(tmp_path) as (remote, host):
            replies = asyncio.run(together(remote, host))
        assert [reply.detail for reply in replies] == [""] * 5
        assert [list(reply.outputs) for reply in replies] == [[f"n{n}"] for n in range(5)]
        assert {output.stdout for reply in replies for output in reply.outputs.values()} == {b"fine\n"}

    def test_a_run_can_be_cancelled_and_the_next_one_works(self, tmp_path: Path) -> None:
        """Cancelling raises what it should and leaves nothing broken."""

        async def cancelled(remote: Remote, host: Host) -> Reply:
            forever = [Command(name="forever", shell="sleep 1000", limit_s=900.0)]
            task = asyncio.create_task(remote.run(host, forever, deadline_s=_PATIENCE_S))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            reply = await remote.run(host, [Command(name="fine", shell="echo fine")], deadline_s=_PATIENCE_S)
            await remote.close()
            return reply

        with self.make_remote(tmp_path) as (remote, host):
            reply = asyncio.run(cancelled(remote, host))
        assert reply.outputs["fine"].stdout == b"fine\n", reply
