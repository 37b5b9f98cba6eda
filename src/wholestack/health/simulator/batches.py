"""The other end of the batch script of :mod:`wholestack.remote`: the commands are read from it, not run, and answered.

A sweep starts ``sh -s`` and sends a script whose first lines set, in shell quoting, ``nonce``, ``last`` and for every
command I its text ``c_I``, limit ``l_I`` in seconds, bytes ``b_I`` and need of root ``r_I``; its last line is ``main``.
The answer is lines that start with the nonce and end in a point: ``hello UID``, ``o|e I LENGTH BASE64``,
``x I STATUS ENDING CENTISECONDS``, ``end``. Written from the comment at the top of ``remote/batch.sh``; the test of
this module sends the real script through the real reader.
"""

import binascii
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from wholestack.remote.batch import Command, Output

LAST_LINE = b"\nmain\n"
_PIECE = 3_000
_NONCE = re.compile(r"^nonce=([0-9a-f]{32}) ", re.MULTILINE)
_LAST = re.compile(r"\blast=(-?\d{1,6})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch as the script has it."""

    nonce: str
    commands: tuple[Command, ...]


def read_script(text: str) -> Batch | None:
    """The batch of a script; ``None`` if it is none of ours."""
    nonce, last = _NONCE.search(text), _LAST.search(text)
    if not nonce or not last:
        return None
    commands, at = [], last.end()
    for index in range(int(last.group(1)) + 1):
        at = text.find(f"\nl_{index}=", at)
        if at < 0:
            return None
        limit, _, limit_end = _word(text, at + 1, f"l_{index}")
        size, _, size_end = _word(text, limit_end, f"b_{index}")
        root, _, root_end = _word(text, size_end, f"r_{index}")
        shell, _, at = _word(text, root_end, f"c_{index}")
        commands.append(
            Command(
                name=f"c{index}",
                shell=shell,
                limit_s=float(limit),
                max_bytes=int(size) - 1,
                needs_root=root == "1",
            )
        )
    return Batch(nonce=nonce.group(1), commands=tuple(commands))


_QUOTED = re.compile(r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"]+)+")


def _word(text: str, start: int, name: str) -> tuple[str, int, int]:
    """The value of one assignment in shell quoting, where it starts and ends."""
    begin = text.index(f"{name}=", start) + len(name) + 1
    match = _QUOTED.match(text, begin)
    if not match:
        return "", begin, begin
    return "".join(shlex.split(match.group())), begin, match.end()


def answer(batch: Batch, outputs: Iterable[Output], *, uid: int, whole: bool = True) -> bytes:
    """What the script would send back.

    Args:
        batch: As read.
        outputs: One a command, in its order; those that did not run are left out.
        uid: Of the session.
        whole: Whether the end is reached; without it the connection breaks off.
    """
    mark = batch.nonce
    lines = [f"{mark} hello {uid} ."]
    for index, output in enumerate(outputs):
        if output.ending == "not_run":
            continue
        if output.ending != "needs_root":
            lines += _stream(mark, "o", index, output.stdout)
            lines += _stream(mark, "e", index, output.stderr)
        status = output.exit_status or 0
        lines.append(f"{mark} x {index} {status} {output.ending} {round(output.seconds * 100)} .")
    if whole:
        lines.append(f"{mark} end .")
    return "".join(f"\n{line}\n" for line in lines).encode()


def _stream(mark: str, kind: str, index: int, data: bytes) -> list[str]:
    encoded = binascii.b2a_base64(data, newline=False).decode()
    if not encoded:
        return [f"{mark} {kind} {index} 0  ."]
    pieces = [encoded[at : at + _PIECE] for at in range(0, len(encoded), _PIECE)]
    length = len(encoded) + len(pieces) - 1
    return [f"{mark} {kind} {index} {length} {piece} ." for piece in pieces]
