"""``systemctl --failed`` and ``systemctl`` (list-units): one line a unit, and how many there are.

The footer's count is held against the lines that were understood, so that a cut listing is never "none failed".
Source: systemctl(1). A mark (``●``, ``*``) stands before units in trouble unless ``--plain``.
"""

import re
from dataclasses import dataclass

from wholestack.health.probe import UnreadableError

_LOADS = "loaded|not-found|bad-setting|error|masked|merged|stub"
_ROW = re.compile(
    rf"^[ \t]*(?:[●○×*x↻][ \t]+)?(\S{{3,400}})[ \t]+({_LOADS})[ \t]+(\S+)[ \t]+(\S+)([ \t].*)?$", re.MULTILINE
)
_HEADING = re.compile(r"^[ \t]*UNIT[ \t]+LOAD[ \t]+ACTIVE[ \t]+SUB", re.MULTILINE)
_FOOTER = re.compile(r"^[ \t]*([0-9]{1,6}) (?:loaded )?units? listed", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One unit."""

    name: str
    load: str
    active: str
    sub: str
    line: str


def looks_like_systemctl(text: str) -> bool:
    """Its heading or its footer."""
    return _HEADING.search(text) is not None or _FOOTER.search(text) is not None


def read_systemctl(text: str) -> list[Unit]:
    """Every unit listed.

    Raises:
        UnreadableError: there are not as many lines as the footer says, or no footer.
    """
    footer = _FOOTER.search(text)
    if footer is None:
        raise UnreadableError("no line `N loaded units listed`: cut, or --no-legend")
    units = [_unit(words) for words in _ROW.finditer(text, 0, footer.start())]
    if len(units) != int(footer[1]):
        raise UnreadableError(f"{footer[1]} units listed, {len(units)} lines understood")
    return units


def _unit(words: re.Match[str]) -> Unit:
    return Unit(name=words[1], load=words[2], active=words[3], sub=words[4], line=" ".join(words[0].split())[:200])
