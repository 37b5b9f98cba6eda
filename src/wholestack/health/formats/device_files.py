"""Trees of small kernel files, as ``grep -s . PATHS`` prints them (``path:value``) or saved as ``path TAB value``.

A path may hold colons itself (``0000:9b:00.0/vendor``); the value begins behind the first ``/name:``.
"""

import re

from wholestack.health.formats.sysfs import whole

GREP_LINE = re.compile(r"^(?:\./)?([^\n]*?/[A-Za-z_]\w*):(.*)$", re.MULTILINE)
TAB_LINE = re.compile(r"^([^\t\n]+)\t(.*)$", re.MULTILINE)


def read_tree(text: str) -> dict[str, str]:
    """Path to value; of a file with several lines the last.

    Raises:
        UnreadableError: it is cut within a line.
    """
    return {path: value.strip() for path, value in GREP_LINE.findall(whole(text))}


def read_tab_tree(text: str) -> dict[str, str]:
    """The same from ``path TAB value``."""
    return {path.strip(): value.strip() for path, value in TAB_LINE.findall(text)}


def first_line(text: str) -> str:
    """The first line that is not empty."""
    return text.lstrip().partition("\n")[0].strip()
