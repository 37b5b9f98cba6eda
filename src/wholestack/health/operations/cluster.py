"""Who hands out hosts: what a scheduler says of its nodes, and how one is taken out and given back.

The reason that is left with a node is ``wholestack: <cause> (<finding id>)``. Only a node with exactly such a reason is
ours; a reason that a person changed, added to, or wrote is theirs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from wholestack.record import Record

PREFIX = "wholestack: "
LONGEST_CAUSE = 160
"""Characters of a cause that are written into a reason."""
_OURS = re.compile(rf"{re.escape(PREFIX)}[^\n]{{1,{LONGEST_CAUSE}}} \(([0-9a-f]{{16}})\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Record):
    """One node, as its scheduler has it."""

    name: str
    is_usable: bool
    """Jobs may start there."""
    is_drained: bool
    """Somebody took it out."""
    reason: str = ""
    by: str = ""
    """Who set the reason, where the scheduler says."""
    jobs: tuple[str, ...] = ()
    """What runs there, a few words each."""


class Cluster(Protocol):
    """A scheduler. Built in: :mod:`~wholestack.health.operations.slurm`, ``kubernetes``."""

    def nodes(self) -> Mapping[str, Node]:
        """All nodes by name, now.

        Raises:
            EngineError: it does not answer.
        """
        ...

    def drain(self, name: str, reason: str) -> None:
        """Let no new job start on a node; what runs goes on. A node that is not as it was read is left alone.

        Raises:
            EngineError: it could not be done.
        """
        ...

    def undrain(self, name: str, reason: str) -> None:
        """Give a node back whose reason is this one.

        Raises:
            EngineError: it could not be done, or the reason is another by now.
        """
        ...

    def shown(self, action: Literal["drain", "undrain"], name: str, reason: str) -> str:
        """The exact command or request, for a person to read."""
        ...


def reason_for(cause: str, finding: str) -> str:
    """What is left with a node."""
    plain = " ".join(re.sub(r"[\"'\\\n|]", " ", cause).split())
    return f"{PREFIX}{plain[:LONGEST_CAUSE] or 'unfit'} ({finding})"


def finding_of(reason: str) -> str:
    """The Finding of a reason of ours; empty where it is not ours, or no longer as we wrote it."""
    found = _OURS.fullmatch(reason)
    return found[1] if found else ""
