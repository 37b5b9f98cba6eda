"""``grep -s . FILE...``: many one-line files of ``/sys`` or ``/proc`` in one output, a line ``path:value`` each.

``grep`` ends with 2 where one file of many is missing, so 0, 1 and 2 say nothing. No output is not "no such files": the
shell may not have got so far. "Not there" needs evidence: ``No such file or directory`` for that very path, or a
``grep -s`` that ended with 2 and without a word, as it does where none of its files exists.
"""

import re
from collections.abc import Callable

from wholestack.health.probe import UnreadableError
from wholestack.remote.batch import Output

_LINE = re.compile(r"^([^\s:]{1,200}):(.*)$", re.MULTILINE)
_NUMBER = re.compile(r"[ \t]*-?[0-9]{1,20}[ \t]*")


def read_tree(text: str) -> dict[str, str]:
    """Value by path; of a file with several lines all of them, joined by line breaks.

    Raises:
        UnreadableError: a line is not ``path:value``, so that nothing can be trusted to be complete.
    """
    found = _LINE.findall(whole(text))
    if len(found) != len(filled_lines(text)):
        raise UnreadableError("a line is not `path:value`")
    tree: dict[str, str] = {}
    for path, value in found:
        tree[path] = f"{tree[path]}\n{value}" if path in tree else value
    return tree


def filled_lines(text: str) -> list[str]:
    """Lines that are not blank; only line feeds end a line, as regular expressions have it."""
    return [line for line in text.split("\n") if line and not line.isspace()]


def whole(text: str) -> str:
    """The text of a table, which tools and kernel end with a line feed: without one the last line may be cut.

    Raises:
        UnreadableError: it does not end with one.
    """
    if not text.endswith("\n"):
        raise UnreadableError(f"cut in a line: ends in {text[-40:]!r}")
    return text


def no_such_path(what: str, path: str) -> Callable[[Output], str]:
    """For :attr:`Probe.absent`: says ``what`` if nothing was printed but that this path does not exist.

    ``cd`` of dash gives no reason: ``cd: can't cd to PATH``.
    """

    def absent(output: Output) -> str:
        said = filled_lines(output.stderr.decode(errors="replace"))
        gone = bool(said) and all(_says_gone(line, path) for line in said)
        return what if gone and not output.stdout.strip() and output.exit_status in _BY_ITSELF else ""

    return absent


def no_files(what: str, path: str) -> Callable[[Output], str]:
    """For :attr:`Probe.absent` of ``cd PATH && grep -s . FILE...``: says ``what`` if folder or files do not exist."""
    no_path = no_such_path(what, path)

    def absent(output: Output) -> str:
        silent = not (output.stdout + output.stderr).strip() and output.exit_status == _NO_FILE
        return what if silent else no_path(output)

    return absent


def grep_failure(output: Output) -> str:
    """For :attr:`Probe.failure` of ``grep`` on many files: it ends with 2 where one is missing, as some mostly are."""
    return "" if output.exit_status in _BY_ITSELF else f"exit status {output.exit_status}"


def trusted(_: Output) -> str:
    """For :attr:`Probe.failure`: the exit status says nothing, the text must."""
    return ""


_NO_FILE = 2
_BY_ITSELF = (0, 1, 2)
"""Exit statuses of a shell, ``grep``, ``cat`` or ``ls`` that was not killed."""


def _says_gone(line: str, path: str) -> bool:
    tail = re.search(rf"{re.escape(path)}(?![\w/.*-])(.*)", line)
    reason = tail[1].strip("'\" ") if tail is not None else "?"
    return reason.endswith("No such file or directory") or (not reason and "can't cd to" in line)


def number(text: str | None) -> int | None:
    """A whole number, decimal, at most 20 digits; ``None`` for anything else."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None
