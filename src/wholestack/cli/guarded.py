"""Streams that nothing steers but ourselves: text of items, models, endpoints and files may hold terminal commands.

Whatever is printed goes through :class:`GuardedStream`. What could move a cursor, set a title, hide or reverse text is
written as its escape, ``\\u001b``, which reads the same in a JSON document. Colours and weights of our own tables pass.
"""

import re
from collections.abc import Iterable
from typing import Any, TextIO

_UNSAFE = re.compile(
    # a weight or colour that hides nothing; an item's text may have it, and at worst is bold
    r"(?P<style>\x1b\[(?:[0-4]|2[2-4]|3[1-79]|9[1-7])?(?:;(?:[0-4]|3[1-79]|9[1-7]))*m)"
    r"|(?P<unsafe>[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f])"
)
_LIVE = re.compile(r"((?:\r|\x1b\[(?:2K|[0-9]*A|\?25[lh]))+)")


def guarded(text: str, *, styles: bool) -> str:
    """The text with everything that steers a terminal written as its escape.

    Args:
        text: Whatever is to be printed; line ends and tabs stay.
        styles: Whether weights and colours may pass, as to a terminal.
    """

    def shown(found: re.Match[str]) -> str:
        if styles and found["style"]:
            return found[0]
        return "".join(letter if " " <= letter <= "~" else _escape(letter) for letter in found[0])

    return _UNSAFE.sub(shown, text)


def _escape(character: str) -> str:
    """As JSON writes it, in one unit or two."""
    raw = character.encode("utf-16-be")
    return "".join(f"\\u{int.from_bytes(raw[at : at + 2], 'big'):04x}" for at in range(0, len(raw), 2))


class GuardedStream:
    """A text stream of which every text is guarded; all else is the stream's own.

    Args:
        stream: Where the texts go.
        live: Whether a progress line is drawn on it, which goes back to the start of its line and erases it; on a
            terminal these commands then pass, so no text of others may be printed there as it is.
    """

    def __init__(self, stream: TextIO, *, live: bool) -> None:
        self._stream = stream
        self._live = live

    def write(self, text: str) -> int:
        """Write the text, guarded; says that all of it was written."""
        terminal = self._stream.isatty()
        pieces = _LIVE.split(text) if terminal and self._live else [text]
        # Every second piece is a command that was found between the texts.
        self._stream.write(
            "".join(piece if place % 2 else guarded(piece, styles=terminal) for place, piece in enumerate(pieces))
        )
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
