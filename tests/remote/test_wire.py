"""The script and its reader: what a host can send, and what a host can do to the script."""

import base64
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.remote.processes import marked
from wholestack.errors import InputError
from wholestack.remote.batch import Command
from wholestack.remote.host import Host
from wholestack.remote.wire import FrameReader, longest_s, script

NONCE = "0123456789abcdef" * 2
COMMANDS = [
    Command(name="first", shell="x", max_bytes=5000),
    Command(name="second", shell="y", max_bytes=10),
    Command(name="third", shell="z", needs_root=True),
]


def line(*words):
    return b"\n" + b" ".join([NONCE.encode(), *(str(word).encode() for word in words), b"."]) + b"\n"


def pieces(kind, index, data, width=3000):
    text = base64.b64encode(data).decode()
    parts = [text[start : start + width] for start in range(0, len(text), width)] or [""]
    length = len(text) + len(parts) - 1
    return b"".join(line(kind, index, length, part) for part in parts)


def frames(index, stdout=b"", stderr=b"", status=0, ending="ended"):
    error = pieces("e", index, stderr) if stderr else b""
    return line("x", index, status, ending, 123) + error + pieces("o", index, stdout)


WHOLE = (
    line("hello", 0)
    + frames(1, b"two", b"oops", status=2)
    + line("x", 2, 0, "needs_root", 0)
    + frames(0, bytes(range(256)) * 19)
    + line("end")
)


def read(data, *, cut=None, commands=COMMANDS):
    reader = FrameReader(commands, NONCE)
    complete = []
    for start in range(0, len(data), cut or len(data) or 1):
        complete += reader.feed(data[start : start + (cut or len(data))])
    return reader, complete


@pytest.mark.parametrize("cut", [1, 2, 7, 64, 4096, None])
def test_frames_are_read_in_any_pieces(cut):
    reader, complete = read(WHOLE, cut=cut)
    assert (reader.began, reader.ended, reader.over) == (True, True, True)
    assert [output.name for output in complete] == ["second", "third", "first"]
    outputs = reader.close()
    assert list(outputs) == ["first", "second", "third"]
    assert outputs["first"].stdout == bytes(range(256)) * 19
    second = outputs["second"]
    assert (second.stdout, second.stderr, second.exit_status, second.ending) == (b"two", b"oops", 2, "ended")
    assert second.seconds == 1.23
    assert (outputs["third"].ending, outputs["third"].exit_status) == ("needs_root", None)
    assert reader.reply(Host(name="h"), late=False, seconds=0.0).trouble is None


@given(st.binary(max_size=300), st.integers(0, 60))
def test_noise_before_the_first_frame_does_not_matter(noise, cut):
    reader, _ = read(noise + WHOLE, cut=cut or None)
    assert reader.close()["first"].stdout == bytes(range(256)) * 19


@given(st.integers(0, len(WHOLE)))
def test_a_stream_that_breaks_off_keeps_what_is_complete_and_nothing_else(place):
    reader, complete = read(WHOLE[:place])
    outputs = reader.close()
    whole = read(WHOLE)[0].close()
    for name, output in outputs.items():
        assert output == whole[name] or output.ending == "not_run"
        assert output.ending != "not_run" or (output.stdout, output.exit_status) == (b"", None)
    assert all(outputs[each.name] == each for each in complete)


def test_the_last_newline_may_be_missing():
    reader, _ = read(WHOLE.rstrip(b"\n"))
    assert not reader.ended
    reader.close()
    assert reader.ended


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=40), st.booleans())
def test_damage_never_passes_for_an_output(place, garbage, replace):
    """An output is as it was sent, or it is not there. (Status and a missing error carry no sum: that is SSH's.)"""
    after = place + len(garbage) if replace else place
    reader, _ = read(WHOLE[:place] + b"\n" + garbage + b"\n" + WHOLE[after:])
    whole = read(WHOLE)[0].close()
    for name, output in reader.close().items():
        if output.ending == "ended":
            assert output.stdout == whole[name].stdout
            assert output.stderr in (b"", whole[name].stderr)


@given(st.lists(st.one_of(st.binary(max_size=60), st.sampled_from(WHOLE.splitlines())), max_size=30))
def test_anything_at_all_is_survived(parts):
    reader, _ = read(b"\n".join(parts))
    assert list(reader.close()) == ["first", "second", "third"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["o", "e", "x", "O", "E", "hello", "q"]), st.lists(st.integers(-1, 10**14), max_size=4)
        ),
        max_size=20,
    )
)
def test_malformed_frames_with_the_right_nonce_are_survived(lines):
    reader, _ = read(b"".join(line(kind, *words) for kind, words in lines))
    assert list(reader.close()) == ["first", "second", "third"]


def test_a_frame_without_the_nonce_counts_for_nothing():
    forged = WHOLE.replace(NONCE.encode(), b"f" * 32)
    reader, complete = read(forged)
    assert (reader.began, complete) == (False, [])
    assert {output.ending for output in reader.close().values()} == {"not_run"}


def test_forged_frames_among_true_ones_count_for_nothing():
    forged = (frames(1, b"forged", status=0) + line("end")).replace(NONCE.encode(), b"f" * 32)
    reader, _ = read(line("hello", 0) + forged + frames(0, b"true"))
    outputs = reader.close()
    assert (reader.ended, outputs["first"].stdout, outputs["second"].ending) == (False, b"true", "not_run")


def test_the_first_verdict_on_a_command_stays():
    reader, _ = read(frames(1, b"true") + frames(1, b"false", status=9))
    assert (reader.close()["second"].stdout, reader.close()["second"].exit_status) == (b"true", 0)


def test_an_output_over_its_cap_is_cut_and_marked_and_a_flood_is_dropped():
    outputs = read(frames(1, b"x" * 11) + frames(0, b"y" * 6000))[0].close()
    assert (outputs["second"].stdout, outputs["second"].truncated) == (b"x" * 10, True)
    assert (outputs["first"].stdout, outputs["first"].ending) == (b"", "not_run")


def test_a_host_that_sends_for_ever_is_not_listened_to_for_ever():
    reader = FrameReader(COMMANDS, NONCE)
    fed = 0
    while not reader.over and fed < 1 << 24:
        reader.feed(b"z" * 65536)
        fed += 65536
    assert fed < 1 << 23
    reply = reader.reply(Host(name="h"), late=False, seconds=0.0)
    assert reply.trouble == "protocol"
    assert "without end" in reply.detail


def test_lines_without_end_and_big_pieces_take_no_memory():
    reader, _ = read(line("hello", 0) + b"a" * 3_000_000)
    held = sum(len(part) for part in (reader._rest, reader._noise))
    assert held < 20_000


def test_hexadecimal_is_read_where_a_host_has_no_base64():
    data = bytes(range(200))
    text = data.hex()
    outputs = read(line("O", 0, 400, text) + line("E", 0, 0, "") + line("x", 0, 0, "ended", 1))[0].close()
    assert (outputs["first"].stdout, outputs["first"].ending) == (data, "ended")


def test_carriage_returns_of_a_terminal_in_between_do_not_matter():
    assert read(WHOLE.replace(b"\n", b"\r\n"))[0].close()["first"].ending == "ended"


def test_a_command_that_cannot_be_killed_is_hung_also_if_its_output_never_comes():
    outputs = read(line("x", 0, 0, "hung", 1200) + line("x", 1, 0, "ended", 3) + line("end"))[0].close()
    assert (outputs["first"].ending, outputs["first"].seconds) == ("hung", 12.0)
    assert outputs["second"].ending == "hung"  # it ended, but something of it holds its pipe
    assert outputs["third"].ending == "not_run"


@pytest.mark.parametrize(
    ("data", "late", "trouble", "says"),
    [
        (b"", False, "protocol", "did not run `sh -s`"),
        (b"This account is currently not available.\n", False, "protocol", "currently not available"),
        (b"", True, "timed_out", "home directory"),
        (line("hello", 0), True, "timed_out", "3 of 3 commands"),
        (line("hello", 0) + frames(1), False, "lost", "2 of 3 commands"),
        (line("hello", 0) + line("end"), False, "protocol", "damaged"),
    ],
)
def test_the_reply_says_what_went_wrong(data, late, trouble, says):
    reply = read(data)[0].reply(Host(name="h"), late=late, seconds=1.0)
    assert reply.trouble == trouble
    assert says in reply.detail
    assert "\n" not in reply.detail
    assert list(reply.outputs) == ["first", "second", "third"]


def test_a_deadline_that_passes_after_all_is_there_is_none():
    reply = read(WHOLE)[0].reply(Host(name="h"), late=True, seconds=1.0)
    assert reply.trouble is None


@pytest.mark.parametrize("nonce", ["", "x" * 32, NONCE.upper(), NONCE + "0", "a; rm -rf / ;                    "])
def test_what_is_no_nonce_is_refused(nonce):
    with pytest.raises(InputError, match="nonce"):
        script(COMMANDS, sudo=False, nonce=nonce)


def test_a_name_twice_is_refused():
    with pytest.raises(InputError, match="'first'"):
        script([COMMANDS[0], COMMANDS[0]], sudo=False, nonce=NONCE)


def test_the_mark_of_processes_does_not_tell_the_nonce():
    text = script(COMMANDS, sudo=False, nonce=NONCE).decode()
    token = re.search(r"token=(\w+)", text)[1]
    assert NONCE not in token
    assert text.count(NONCE) == 1


def test_the_longest_answer_is_known_beforehand():
    commands = [Command(name="a", shell="a", limit_s=2.0), Command(name="b", shell="b", limit_s=30.0)]
    assert 30 < longest_s(commands, sudo=False) < longest_s(commands, sudo=True) < 60


SHELLS = [
    shell for shell in (["dash", "-s"], ["bash", "--posix", "-s"], ["busybox", "sh", "-s"]) if shutil.which(shell[0])
]
each_shell = pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])


def talk(shell, commands, *, before=b"", environment=None, sudo=False):
    """The script in a shell, to its end; the reader, and what the shell said on standard error."""
    nonce = os.urandom(16).hex()
    with subprocess.Popen(
        shell,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
        bufsize=0,
    ) as process:
        process.stdin.write(before + script(commands, sudo=sudo, nonce=nonce))
        reader = FrameReader(commands, nonce)
        while not reader.over and (data := process.stdout.read(65536)):
            reader.feed(data)
        process.stdin.close()
        said = process.stderr.read()
        process.wait()
    return reader, said


@each_shell
def test_many_large_outputs_at_one_time_are_not_mixed(shell):
    """Lines of twenty writers meet on one pipe."""
    commands = [
        Command(name=f"n{n}", shell=f"i=0; while [ $i -lt 2000 ]; do echo {n}-{'x' * 40}; i=$((i+1)); done", limit_s=60)
        for n in range(20)
    ]
    reader, said = talk(shell, commands)
    outputs = reader.close()
    assert said == b""
    assert {name: set(output.stdout.split()) for name, output in outputs.items()} == {
        f"n{n}": {f"{n}-{'x' * 40}".encode()} for n in range(20)
    }
    assert {len(output.stdout.split()) for output in outputs.values()} == {2000}


@each_shell
def test_no_file_is_needed(shell, tmp_path):
    """TMPDIR, HOME and the working directory are no folders at all."""
    environment = {"PATH": os.environ["PATH"], "TMPDIR": "/nowhere", "HOME": "/nowhere"}
    reader, _ = talk(shell, [Command(name="a", shell="seq 100000")], environment=environment)
    assert len(reader.close()["a"].stdout.split()) == 100_000


# A process in uninterruptible sleep cannot be made at will: for the script, one whose signals have no effect is such.
UNKILLABLE = b"""
kill() {
  for target; do :; done
  grep -qs BEYOND_REACH= "/proc/${target#-}/environ" || command kill "$@"
}
"""


@each_shell
def test_what_cannot_be_killed_is_called_hung_and_costs_only_itself(shell):
    mark = f"BEYOND_REACH={os.urandom(8).hex()}"
    commands = [
        Command(name="fine", shell="echo fine"),
        Command(name="dead", shell=f"echo some; exec env {mark} sleep 60", limit_s=0.3),
        Command(name="also", shell="echo fine"),
    ]
    reader, _ = talk(shell, commands, before=UNKILLABLE)
    outputs = reader.close()
    assert reader.ended
    assert (outputs["fine"].stdout, outputs["also"].stdout) == (b"fine\n", b"fine\n")
    assert (outputs["dead"].ending, outputs["dead"].exit_status) == ("hung", None)
    assert marked(mark)
    for pid in marked(mark):
        os.kill(pid, signal.SIGKILL)


def tools_without(folder, *missing, more=()):
    """A folder of what the script uses, less some."""
    folder.mkdir()
    for tool in {
        "sh",
        "head",
        "base64",
        "setsid",
        "sleep",
        "cat",
        "grep",
        "id",
        "od",
        "tr",
        "fold",
        "env",
        *more,
    } - set(missing):
        (folder / tool).symlink_to(shutil.which(tool))
    return folder


@pytest.mark.parametrize("missing", [("setsid",), ("base64",), ("setsid", "base64", "id")], ids="-".join)
@each_shell
def test_missing_tools_are_done_without(shell, missing, tmp_path):
    """No setsid: processes are found by their mark. No base64: hexadecimal."""
    if Path("/usr/sbin").samefile("/usr/bin"):
        pytest.skip("the script adds /usr/sbin to its path, which is /usr/bin here")
    tools = tools_without(tmp_path / "tools", *missing)
    commands = [
        Command(name="bytes", shell="head -c 5000 /dev/zero; printf '\\377\\000'; echo e >&2"),
        Command(name="slow", shell="sleep 1000; echo no", limit_s=0.3),
    ]
    before = b"PATH=%s\n" % str(tools).encode()
    reader, _ = talk([shutil.which(shell[0]), *shell[1:]], commands, before=before)
    outputs = reader.close()
    assert outputs["bytes"].stdout == bytes(5000) + b"\xff\0"
    assert outputs["bytes"].stderr == b"e\n"
    assert outputs["slow"].ending == "timed_out"


@each_shell
def test_a_sudo_that_wants_a_password_or_is_not_there_starts_nothing(shell, tmp_path):
    """As a user who is not root; `id` says so, since the tests may run as root."""
    tools = tools_without(tmp_path / "tools", "id", "sudo")
    (tools / "id").write_text("#!/bin/sh\necho 1000\n")
    (tools / "id").chmod(0o755)
    commands = [Command(name="rooted", shell="echo ran", needs_root=True), Command(name="fine", shell="echo fine")]
    for sudo in (None, "echo 'sudo: a password is required' >&2; exit 1"):
        if sudo:
            (tools / "sudo").write_text(f"#!/bin/sh\n{sudo}\n")
            (tools / "sudo").chmod(0o755)
        for allowed in (False, True):
            before = f"PATH={tools}\n".encode()
            outputs = talk([shutil.which(shell[0]), *shell[1:]], commands, before=before, sudo=allowed)[0].close()
            assert (outputs["rooted"].ending, outputs["rooted"].stdout) == ("needs_root", b"")
            assert outputs["fine"].stdout == b"fine\n"


@each_shell
def test_a_sudo_that_works_is_used_only_where_it_is_allowed_and_needed(shell, tmp_path):
    tools = tools_without(tmp_path / "tools", "id")
    (tools / "id").write_text("#!/bin/sh\necho 1000\n")
    (tools / "sudo").write_text('#!/bin/sh\n[ "$1" = -n ] || exit 1\nshift\nAS_ROOT=yes exec "$@"\n')
    (tools / "true").symlink_to(shutil.which("true"))
    for tool in ("id", "sudo"):
        (tools / tool).chmod(0o755)
    commands = [
        Command(name="rooted", shell='echo "$AS_ROOT $LC_ALL"', needs_root=True),
        Command(name="plain", shell='echo "$AS_ROOT"'),
        Command(name="stuck", shell="sleep 1000", needs_root=True, limit_s=0.3),
    ]
    before = f"PATH={tools}\n".encode()
    whole = [shutil.which(shell[0]), *shell[1:]]
    outputs = talk(whole, commands, before=before, sudo=True)[0].close()
    assert (outputs["rooted"].stdout, outputs["plain"].stdout) == (b"yes C\n", b"\n")
    assert outputs["stuck"].ending == "timed_out"
    assert talk(whole, commands, before=before, sudo=False)[0].close()["rooted"].ending == "needs_root"
