"""``grep -s . FILE...``: many one-line files of ``/sys`` or ``/proc`` in one output, a line ``path:value`` each.

``grep`` ends with 2 where one file of many is missing, so its exit status says nothing; an output without any line
means that the kernel has no such files.
"""

import re
from collections.abc import Callable

from wholestack.health.probe import UnreadableError
from wholestack.remote.batch import Output

_LINE = re.compile(r"^([^\s:]{1,200}):(.*)$", re.MULTILINE)


def read_tree(text: str) -> dict[str, str]:
    """Value by path; of a file with several lines all of them, joined by line breaks.

    Raises:
        UnreadableError: a line is not ``path:value``, so that nothing can be trusted to be complete.
    """
    found = _LINE.findall(text)
    if len(found) != len(filled_lines(text)):
        raise UnreadableError("a line is not `path:value`")
    tree: dict[str, str] = {}
    for path, value in found:
        tree[path] = f"{tree[path]}\n{value}" if path in tree else value
    return tree


def filled_lines(text: str) -> list[str]:
    """Lines that are not blank; only line feeds end a line, as regular expressions have it."""
    return [line for line in text.split("\n") if line and not line.isspace()]


def nothing_printed(what: str) -> Callable[[Output], str]:
    """For :attr:`Probe.absent`: says ``what`` if the command printed nothing on standard output."""
    return lambda output: "" if output.stdout.strip() else what


def trusted(_: Output) -> str:
    """For :attr:`Probe.failure`: the exit status says nothing, the text must."""
    return ""


def number(text: str | None) -> int | None:
    """A whole number, decimal, at most 20 digits; ``None`` for anything else."""
    return int(text) if text is not None and re.fullmatch(r"[ \t]*-?[0-9]{1,20}[ \t]*", text) else None
