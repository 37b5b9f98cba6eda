"""A batch of commands as one ``sh`` script, and the reader of what the script sends back. Pure: no sockets here.

The script (``batch.sh``, behind a few lines of settings) goes to the standard input of ``sh -s``, never onto a
command line: any login shell can start ``sh -s``, nothing of a batch shows in the host's process list, and the end
of standard input tells the script that its client is gone. It needs no file on the host.

Every command runs in a session of its own, all side by side; the script gives each its limit in seconds (TERM, one
second later KILL, one second later it is called hung), cuts its outputs, and writes what came as lines that bear a
random nonce, so that neither a login banner nor an output can be taken for one. Outputs are in base64.
"""

import binascii
import hashlib
import math
import shlex
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Literal

from wholestack.errors import InputError
from wholestack.remote.batch import Command, Ending, Output, Reply, Trouble
from wholestack.remote.host import Host

MAX_STDERR_BYTES = 2000
SUDO_CHECK_S = 5
"""What the script gives to ``sudo -n true`` before it goes on without root."""
KILLING_S = 3
"""From a limit to the word that the command is hung, and a little."""
_MAX_LINE_BYTES = 8192
_KEPT_NOISE_BYTES = 2000
_MAX_NOISE_BYTES = 1 << 20
_STRETCH = 3
"""More than hexadecimal makes of an output, with all that is around it."""
_EXTRA_BYTES = 10_000
_ENDINGS: Mapping[bytes, Ending] = {
    b"ended": "ended",
    b"timed_out": "timed_out",
    b"hung": "hung",
    b"needs_root": "needs_root",
}
_BODY = files("wholestack.remote").joinpath("batch.sh").read_text("utf-8")


def script(commands: Sequence[Command], *, sudo: bool, nonce: str) -> bytes:
    """The script that runs a batch, for the standard input of ``sh -s``.

    Args:
        commands: The batch; names must differ.
        sudo: Whether ``sudo -n`` may be used for commands that need root.
        nonce: 32 random hexadecimal digits, new for every script; :class:`FrameReader` needs them.

    Raises:
        InputError: two commands have one name, or the nonce is none.
    """
    if len(nonce) != 32 or not set(nonce) <= set("0123456789abcdef"):
        raise InputError(f"nonce {nonce!r} is not 32 hexadecimal digits")
    names = [command.name for command in commands]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"two commands of a batch are called {twice[0]!r}", remedy="give every command its own name")
    settings = [
        # The mark of our processes is readable in /proc, so it must not tell the nonce.
        f"nonce={nonce} token={hashlib.sha256(nonce.encode()).hexdigest()[:32]}",
        f"sudo={int(sudo)} total={math.ceil(longest_s(commands, sudo=sudo))} last={len(commands) - 1}",
    ]
    for index, command in enumerate(commands):
        settings.append(
            f"l_{index}={_seconds(command.limit_s)} b_{index}={command.max_bytes + 1}"
            f" r_{index}={int(command.needs_root)} c_{index}={shlex.quote(command.shell)}"
        )
    return ("\n".join([*settings, _BODY])).encode()


def longest_s(commands: Sequence[Command], *, sudo: bool) -> float:
    """Wall seconds after which a host has answered, even if every command hangs."""
    wait_s = SUDO_CHECK_S + KILLING_S if sudo else 0
    return max((command.limit_s for command in commands), default=0.0) + KILLING_S + wait_s


def _seconds(value: float) -> str:
    """As ``sleep`` reads it: whole seconds without a point, since some read no other."""
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


class FrameReader:
    """Bytes from a host to outputs, piece by piece, in whatever pieces they come.

    Whatever is not ours is skipped; what a stream that breaks off has left incomplete counts as not run. Holds at
    most ``max_bytes`` + 1 of each command and 10 kB.

    Args:
        commands: As given to :func:`script`.
        nonce: The same.
    """

    def __init__(self, commands: Sequence[Command], nonce: str) -> None:
        self.began = False
        """Whether the script runs."""
        self.ended = False
        """Whether it said that nothing will follow."""
        self._noise_left_bytes = _MAX_NOISE_BYTES
        self._left_bytes = _MAX_NOISE_BYTES + sum(_STRETCH * (each.max_bytes + _EXTRA_BYTES) for each in commands)
        self._start = f"{nonce} ".encode()
        self._gathered = [_Gathered(command) for command in commands]
        self._rest = b""
        self._skipping = False
        self._noise = b""

    @property
    def noise(self) -> str:
        """The last of what came before the script began: a banner, a message of the login shell."""
        return self._noise.decode(errors="replace").strip()

    @property
    def over(self) -> bool:
        """Whether to stop listening: it has ended, or more has come than a batch can give."""
        return self.ended or self._left_bytes < 0 or self._is_babble

    @property
    def _is_babble(self) -> bool:
        return not self.began and self._noise_left_bytes < 0

    def hear(self, data: bytes) -> None:
        """Take in standard error of the login shell."""
        self._noise = (self._noise + data)[-_KEPT_NOISE_BYTES:]

    def feed(self, data: bytes) -> list[Output]:
        """Take in some bytes; the outputs that they complete."""
        if self.began:
            self._left_bytes -= len(data)
        else:
            self._noise_left_bytes -= len(data)
        if not self.began:
            self.hear(data)
        data = self._rest + data
        complete: list[Output] = []
        *lines, self._rest = self._lines(data)
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif output := self._line(line):
                complete.append(output)
        if len(self._rest) > _MAX_LINE_BYTES:
            self._rest, self._skipping = b"", True
        return complete

    def _lines(self, data: bytes) -> list[bytes]:
        """Whole lines and the rest; a flood in which nothing of ours is counts as one line."""
        return data.split(b"\n") if self._start in data else data.rsplit(b"\n", 1)

    def close(self) -> dict[str, Output]:
        """The stream is over: an output for every command of the batch, in its order."""
        if not self._skipping:
            self._line(self._rest)
        self._rest = b""
        return {each.command.name: each.last(broken=not self.ended) for each in self._gathered}

    def reply(self, host: Host, *, late: bool, seconds: float, attempts: int = 1) -> Reply:
        """Close, and judge the stream as a whole.

        Args:
            host: It came from here.
            late: Whether it was broken off because of the deadline.
            seconds: Wall time of the round trip.
            attempts: Connections tried.
        """
        outputs = self.close()
        missing = sum(output.ending == "not_run" for output in outputs.values())
        trouble, detail = self._judged(late=late, missing=missing)
        return Reply(host=host, outputs=outputs, trouble=trouble, detail=detail, seconds=seconds, attempts=attempts)

    def _judged(self, *, late: bool, missing: int) -> tuple[Trouble | None, str]:
        count = f"{missing} of {len(self._gathered)} commands have not answered"
        if self.ended and not missing:
            return None, ""
        if self.over and not self.ended:
            return "protocol", f"it sends without end: {count}"
        if late:
            said = "" if self.began else "; the login shell did not start ours: is its home directory hung?"
            return "timed_out", f"the deadline passed: {count}{said}"
        if not self.began:
            said = f"; it said: {self.noise.splitlines()[-1][:200]!r}" if self.noise else ""
            return "protocol", f"the login shell did not run `sh -s`{said}"
        if self.ended:
            return "protocol", f"the answer came damaged: {count}"
        return "lost", f"the connection broke: {count}"

    def _line(self, line: bytes) -> Output | None:
        words = line.rstrip(b"\r").split(b" ")
        if not line.startswith(self._start) or len(words) < 3 or words[-1] != b".":
            return None
        match words[1:-1]:
            case [b"hello", _]:
                self.began = True
            case [b"end"]:
                self.ended = True
            case [kind, index, *more] if (gathered := self._at(index)) and not gathered.is_complete:
                gathered.take(kind, more)
                return gathered.output() if gathered.is_complete else None
        return None

    def _at(self, index: bytes) -> "_Gathered | None":
        number = _number(index)
        return self._gathered[number] if number is not None and number < len(self._gathered) else None


class _Stream:
    """Standard output or error of one command, as far as it has come."""

    def __init__(self, max_bytes: int) -> None:
        self.data = bytearray()
        self.is_complete = False
        self._max_bytes = max_bytes
        self._come = -1  # encoded characters with one between two pieces
        self._broken = False

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing of what has begun to come."""
        return self.is_complete or (self._come < 0 and not self._broken)

    def take(self, length: bytes, text: bytes, *, hexadecimal: bool) -> None:
        """One piece. One that does not fit spoils the stream: an output with a hole must not look whole."""
        expected = _number(length)
        if self.is_complete or self._broken or expected is None:
            return
        try:
            self.data += binascii.unhexlify(text) if hexadecimal else binascii.a2b_base64(text, strict_mode=True)
        except ValueError:
            self._broken = True
        self._come += len(text) + 1
        if len(self.data) > self._max_bytes + 1 or self._come > expected:
            self._broken = True
        self.is_complete = self._come == expected and not self._broken


class _Gathered:
    """What has come of one command."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self._stdout = _Stream(command.max_bytes)
        self._stderr = _Stream(MAX_STDERR_BYTES)
        self._ending: Ending | None = None
        self._status = 0
        self._seconds = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether nothing more is to come."""
        if self._ending == "needs_root":
            return True
        return self._ending is not None and self._stdout.is_complete and self._stderr.is_whole

    def take(self, kind: bytes, words: Sequence[bytes]) -> None:
        """One line."""
        match words:
            case [length, text] if kind in (b"o", b"O"):
                self._stdout.take(length, text, hexadecimal=kind == b"O")
            case [length, text] if kind in (b"e", b"E"):
                self._stderr.take(length, text, hexadecimal=kind == b"E")
            case [status, ending, centiseconds] if kind == b"x" and ending in _ENDINGS:
                self._ending = _ENDINGS[ending]
                self._status = _number(status) or 0
                self._seconds = (_number(centiseconds) or 0) / 100

    def output(self) -> Output:
        """As it stands."""
        stdout, stderr = bytes(self._stdout.data), bytes(self._stderr.data)
        ending = self._ending or "not_run"
        return Output(
            name=self.command.name,
            stdout=stdout[: self.command.max_bytes],
            stderr=stderr[:MAX_STDERR_BYTES],
            exit_status=self._status if ending == "ended" else None,
            ending=ending,
            truncated=len(stdout) > self.command.max_bytes,
            seconds=self._seconds,
        )

    def last(self, *, broken: bool) -> Output:
        """When nothing more will come.

        A command that is known to have timed out keeps that verdict with what has come of its output. One that
        ended, but whose output never did although the script went to its end, left something behind that holds its
        pipe and cannot be killed.
        """
        if self.is_complete or self._ending in ("timed_out", "hung"):
            return self.output()
        never: Literal["hung", "not_run"] = "hung" if self._ending and not broken else "not_run"
        seconds = self._seconds if self._ending else 0.0
        return Output(name=self.command.name, exit_status=None, ending=never, seconds=seconds)


def _number(digits: bytes) -> int | None:
    return int(digits) if digits.isdigit() and len(digits) < 12 else None
