"""The script of a sweep is read, and its answer is one that the sweep reads back unchanged."""

import pytest

from wholestack.health.simulator.batches import answer, read_script
from wholestack.remote.batch import Command, Output
from wholestack.remote.host import Host

NONCE = "0123456789abcdef" * 2
COMMANDS = (
    Command(name="a", shell="echo \"it's\" 'two words' | tail -c 10", limit_s=2.5, max_bytes=4_000),
    Command(name="b", shell="lscpu", needs_root=True),
    Command(name="c", shell="for x in 1 2\ndo echo l_9=3 $x\ndone", limit_s=10),
    Command(name="d", shell="sleep 100"),
)
OUTPUTS = (
    Output(name="a", stdout=bytes(range(256)) * 15, stderr=b"warning\n", seconds=0.25),
    Output(name="b", exit_status=None, ending="needs_root"),
    Output(name="c", stdout=b"", exit_status=3, seconds=1.5),
    Output(name="d", exit_status=None, ending="hung", seconds=12.0),
)


def test_a_script_that_is_none_of_ours_is_not_read():
    assert read_script("echo hello\n") is None
    assert read_script(f"nonce={NONCE} token=x\nsudo=0 total=9 last=0\nmain\n") is None


def test_a_script_written_by_hand_is_read():
    text = (
        f"nonce={NONCE} token=00\nsudo=0 total=9 last=1\n"
        "l_0=2.5 b_0=101 r_0=0 c_0='echo '\"'\"'x'\"'\"\nl_1=10 b_1=11 r_1=1 c_1=lscpu\nbody\nmain\n"
    )
    batch = read_script(text)
    assert batch.nonce == NONCE
    assert [command.shell for command in batch.commands] == ["echo 'x'", "lscpu"]
    assert [(command.limit_s, command.max_bytes, command.needs_root) for command in batch.commands] == [
        (2.5, 100, False),
        (10.0, 10, True),
    ]


def test_the_real_script_and_the_real_reader_agree_with_us():
    wire = pytest.importorskip("wholestack.remote.wire")
    batch = read_script(wire.script(COMMANDS, sudo=False, nonce=NONCE).decode())
    assert [command.shell for command in batch.commands] == [command.shell for command in COMMANDS]
    assert [command.limit_s for command in batch.commands] == [command.limit_s for command in COMMANDS]
    reader = wire.FrameReader(COMMANDS, NONCE)
    reader.feed(answer(batch, OUTPUTS, uid=0))
    reply = reader.reply(Host(name="h"), late=False, seconds=1.0)
    assert reply.trouble is None
    assert tuple(reply.outputs.values()) == OUTPUTS


def test_an_answer_that_breaks_off_is_one_that_was_lost():
    wire = pytest.importorskip("wholestack.remote.wire")
    batch = read_script(wire.script(COMMANDS, sudo=False, nonce=NONCE).decode())
    reader = wire.FrameReader(COMMANDS, NONCE)
    half = (*OUTPUTS[:2], *(Output(name=name, exit_status=None, ending="not_run") for name in "cd"))
    reader.feed(answer(batch, half, uid=0, whole=False))
    reply = reader.reply(Host(name="h"), late=False, seconds=1.0)
    assert reply.trouble == "lost"
    assert reply.outputs["a"] == OUTPUTS[0]
