"""Writing a program: lines, fresh names, open sites, tags.

A writer is handed from block to block. ``hoisted`` collects the lines of a function or class, which stand above the
lines of the module that are being written.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from wholestack.codetasks.draws import Draws
from wholestack.codetasks.family import Site
from wholestack.codetasks.grammar.names import NAMES
from wholestack.codetasks.levels import LOOKED_UP, Level

Type = Literal["int", "text", "ints", "table"]


@dataclass(frozen=True, slots=True)
class Var:
    """A variable that has a value."""

    name: str
    """As the program calls it."""
    type: Type
    """What it holds: a whole number, a text, a list of whole numbers, a dict from text to whole number."""


class Writer:
    """One program that is being written.

    Args:
        draws: Where every choice comes from.
        level: Its difficulty.
    """

    def __init__(self, draws: Draws, level: Level) -> None:
        self.draws = draws
        self.level = level
        self.sites: list[Site] = []
        self.tagged: dict[int, str] = {}
        """Variable to ask about at each tag, empty where only the line is of interest."""
        self.others: list[Var] = []
        """Variables besides the one that the chain follows, which a step may use."""
        self.may_open = slice(None)
        """Which sites may stay open; the others only vary the program."""
        self._top: list[str] = []
        self._lines: list[str] = []
        self._indent = ""
        self._free: dict[str, list[str]] = {}
        self._pending: str | None = None

    def name(self, role: str) -> str:
        """A name that the program does not have yet; once all are used, the one that was used longest ago."""
        free = self._free.get(role) or self._free.setdefault(role, self.draws.shuffled(NAMES[role]))
        name = free.pop()
        free.insert(0, name)
        return name

    def new(self, type: Type) -> Var:
        """A new variable; it has no value before a line gives it one."""
        return Var(self.name(type), type)

    def line(self, text: str, *, watch: str | None = None) -> None:
        """Write one line, or several with their own indentation below the current one.

        Args:
            text: The line.
            watch: A question may be asked about this line; the name of the variable that changes there, or "".
        """
        tag = ""
        watch, self._pending = self._pending if watch is None else watch, None
        if watch is not None:
            tag = f"\x01{len(self.tagged)}"
            self.tagged[len(self.tagged)] = watch
        self._lines += [(self._indent + each).rstrip(" ") for each in (text + tag).split("\n")]

    def mark(self, x: Var) -> None:
        """A question may be asked about this variable at the line that is written next."""
        self._pending = x.name

    def site(self, misreading: str, *forms: str) -> str:
        """Open a site within a line; the answer stands for whichever form it will have."""
        self.sites.append(Site(misreading, tuple((form,) for form in forms)))
        return f"\x00{len(self.sites) - 1}.0\x00"

    def slots(self, misreading: str, *forms: tuple[str, ...]) -> tuple[str, ...]:
        """Open a site that changes several places together; one text for each."""
        self.sites.append(Site(misreading, forms))
        number = len(self.sites) - 1
        return tuple(f"\x00{number}.{slot}\x00" for slot in range(len(forms[0])))

    def either(self, misreading: str, *forms: Sequence[str]) -> None:
        """Open a site of whole lines, each form with its own indentation below the current one."""
        texts = (("\n".join(self._indent + line for line in form),) for form in forms)
        self.sites.append(Site(misreading, tuple(texts)))
        self._lines.append(f"\x00{len(self.sites) - 1}.0\x00")

    @contextmanager
    def indented(self, head: str) -> Iterator[None]:
        """Write a head such as ``for x in xs:`` and what follows below it."""
        self.line(head)
        before = self._indent
        self._indent += "    "
        yield
        self._indent = before

    @contextmanager
    def hoisted(self) -> Iterator[None]:
        """What is written goes above the module's lines; a function sees none of the module's variables."""
        lines, indent, others, pending = self._lines, self._indent, self.others, self._pending
        self._lines, self._indent, self.others, self._pending = [], "", [], None
        yield
        self._top += [*self._lines, "", ""]
        self._lines, self._indent, self.others, self._pending = lines, indent, others, pending

    def template(self) -> str:
        """The program with its open sites."""
        return "\n".join((*self._top, *self._lines)) + "\n"

    def small(self) -> int:
        """A number as a step of this level has it."""
        return self.draws.between(*self.level.small)

    def start(self) -> int:
        """A number as a program of this level starts from."""
        return self.draws.between(*self.level.start)

    def turns(self) -> int:
        """Turns of a loop of this level."""
        return self.draws.between(*self.level.turns)

    def operand(self, avoid: str) -> str:
        """Another number: a literal, a variable at hand, or an open site of two of them.

        Args:
            avoid: Name of the variable that the step already uses.
        """
        at_hand = [each.name for each in self.others if each.type == "int" and each.name != avoid]
        if len(at_hand) > 1 and self.draws.chance(1.0 if self.level.number == LOOKED_UP + 1 else 0.3):
            return self.site("wrong_name", *self.draws.some(at_hand, 2))
        if at_hand and self.draws.chance(0.6):
            return self.draws.pick(at_hand)
        return str(self.small())
