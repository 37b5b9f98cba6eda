"""Slurm: ``scontrol show node -o``, ``squeue`` and ``scontrol update`` (their manual pages, Slurm 21.08 to 24.11).

``-o`` is read and not ``--json``, whose layout changes with every release and which needs a plug-in that Debian leaves
out. Slurm has no compare-and-set: between reading a reason and acting a person may change it; the node is read again
right before, which leaves a gap of one command.
"""

import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from wholestack.errors import EngineError, InputError
from wholestack.health.operations.cluster import Node
from wholestack.remote.node_list import expand_slurm

PATIENCE_S = 60.0
Run = Callable[[Sequence[str]], str]
"""Runs a command and gives its standard output."""

_UNUSABLE = frozenset(
    ("DOWN", "ERROR", "FUTURE", "UNKNOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "MAINT", "REBOOT",
     "NOT_RESPONDING", "INVALID_REG", "POWERED_DOWN", "POWERING_DOWN")
)  # fmt: skip
_DRAINED = frozenset(("DRAIN", "DRAINED", "DRAINING"))
_REASON = re.compile(r" Reason=(.*?)(?: \[([^\]@]*)@[^\]]*\])?(?: Comment=.*| Extra=.*)?$")


def run_command(words: Sequence[str]) -> str:
    """Run a command of Slurm here.

    Raises:
        EngineError: it is not installed, failed, or gave no answer in time.
    """
    try:
        done = subprocess.run(
            list(words), capture_output=True, text=True, errors="replace", timeout=PATIENCE_S, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise EngineError(f"{words[0]} is not installed", remedy="run this where Slurm's commands are") from error
    except subprocess.TimeoutExpired as error:
        raise EngineError(
            f"{words[0]}: no answer within {PATIENCE_S:g} s", remedy="see whether slurmctld runs"
        ) from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[:300]
        raise EngineError(
            f"{' '.join(words[:2])}: {said or f'exit status {done.returncode}'}",
            remedy="run this where Slurm's commands work (sinfo), or name another scheduler (--kubernetes)",
        )
    return done.stdout


class Slurm:
    """The cluster that ``scontrol`` finds (``SLURM_CONF``)."""

    def __init__(self, run: Run = run_command) -> None:
        self._run = run

    def nodes(self) -> Mapping[str, Node]:
        """See :class:`~wholestack.health.operations.cluster.Cluster`."""
        jobs = read_jobs(self._run(("squeue", "-h", "-t", "running,completing,suspended", "-o", "%i|%u|%N")))
        return read_nodes(self._run(("scontrol", "show", "node", "-o")), jobs)

    def drain(self, name: str, reason: str) -> None:
        """See :class:`~wholestack.health.operations.cluster.Cluster`."""
        if (node := self._node(name)).is_drained and node.reason != reason:
            raise EngineError(f"{name}: was drained by {node.by or 'somebody'} meanwhile: {node.reason}")
        self._run(self._words("drain", name, reason))

    def undrain(self, name: str, reason: str) -> None:
        """See :class:`~wholestack.health.operations.cluster.Cluster`."""
        if (node := self._node(name)).reason != reason:
            raise EngineError(f"{name}: its reason is another by now: {node.reason or 'none'}")
        self._run(self._words("undrain", name, reason))

    def shown(self, action: Literal["drain", "undrain"], name: str, reason: str) -> str:
        """See :class:`~wholestack.health.operations.cluster.Cluster`."""
        return shlex.join(self._words(action, name, reason))

    @staticmethod
    def _words(action: Literal["drain", "undrain"], name: str, reason: str) -> tuple[str, ...]:
        update = ("scontrol", "update", f"NodeName={name}")
        return (*update, "State=DRAIN", f"Reason={reason}") if action == "drain" else (*update, "State=RESUME")

    def _node(self, name: str) -> Node:
        found = read_nodes(self._run(("scontrol", "show", "node", "-o", name)), {})
        if name not in found:
            raise EngineError(f"{name}: Slurm has no such node")
        return found[name]


def read_nodes(text: str, jobs: Mapping[str, Sequence[str]]) -> dict[str, Node]:
    """What ``scontrol show node -o`` prints, a line a node.

    Args:
        text: Its output.
        jobs: By node, see :func:`read_jobs`.

    Raises:
        EngineError: a line is none of a node.
    """
    found = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("No nodes"):
            continue
        name, state = re.match(r"NodeName=(\S+)", line), re.search(r" State=(\S+)", line)
        if name is None or state is None:
            raise EngineError(f"scontrol show node: cannot be read: {line[:80]!r}")
        # A mark behind the state, such as *, says that the node does not answer or is powered down.
        flags = {each.rstrip("*~#!%$@^-") for each in state[1].upper().split("+")}
        reason = _REASON.search(line)
        found[name[1]] = Node(
            name=name[1],
            is_usable=not flags & _UNUSABLE and not state[1].endswith(("*", "~", "%", "$")),
            is_drained=bool(flags & _DRAINED),
            reason=reason[1].strip() if reason else "",
            by=(reason[2] or "") if reason else "",
            jobs=tuple(jobs.get(name[1], ())),
        )
    return found


def read_jobs(text: str) -> dict[str, list[str]]:
    """What ``squeue -o '%i|%u|%N'`` prints, as jobs by node.

    Raises:
        EngineError: a line is none of a job.
    """
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.strip().split("|")
        if not words[0]:
            continue
        if len(words) != 3:
            raise EngineError(f"squeue: cannot be read: {line[:80]!r}")
        try:
            nodes = expand_slurm(words[2]) if words[2] else []
        except InputError as error:
            raise EngineError(f"squeue: cannot be read: {error.message}") from error
        for node in nodes:
            found.setdefault(node, []).append(f"job {words[0]} of {words[1]}")
    return found
