"""Which Pythons are known to give the same question from the same seed, and what is in doubt with another.

Programs use only what means the same in every version, and the generator draws with integers of its own. What could
still differ is what is seen of a run: ``sys.settrace`` says when a line begins, and versions have changed that (PEP 626
in 3.10, comprehensions without frames in 3.12, ``f_locals`` in 3.13); and how a value is written. So the versions are
named for which runs were compared, and another is neither right nor wrong.
"""

from dataclasses import dataclass

from wholestack.codetasks.running import Runs
from wholestack.errors import InputError, SandboxError
from wholestack.sandbox import Limits

OLDEST, NEWEST = (3, 11), (3, 13)
"""Of CPython: the versions whose runs were compared, both included."""
REMEDY = "use one of these, for instance in an environment made by: uv venv --python 3.13"

_ASK = "import sys; RESULT.write('[\"%s\", [%d, %d, %d]]' % (sys.implementation.name, *sys.version_info[:3]))"
_LIMITS = Limits(wall_s=60.0)  # a machine with much to do takes its time


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs the programs."""

    implementation: str
    """As ``sys.implementation.name`` has it, for instance ``cpython``."""
    version: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.implementation.replace('cpython', 'Python')} {'.'.join(map(str, self.version))}"

    @property
    def doubt(self) -> str:
        """What is not known of this version, as one sentence; empty for one whose runs were compared."""
        if self.implementation == "cpython" and OLDEST <= self.version[:2] <= NEWEST:
            return ""
        oldest, newest = (".".join(map(str, version)) for version in (OLDEST, NEWEST))
        return (
            f"{self} runs the programs, and the same seed is known to give the same lines with CPython {oldest} to "
            f"{newest} only: another may count the lines that a program runs, or write its values, in another way, and "
            "then traces, answers and hashes differ"
        )


def interpreter_of(run: Runs) -> Interpreter:
    """Ask the Python inside the sandbox what it is.

    Raises:
        SandboxError: it does not say.
    """
    outcome = run(_ASK, limits=_LIMITS)
    if not outcome.ok:
        raise SandboxError(f"the Python inside the sandbox does not start: {outcome.describe()}")
    name, version = outcome.value(tuple[str, tuple[int, int, int]])
    return Interpreter(name, version)


def require_known(run: Runs) -> None:
    """Refuse a Python that may give other questions than those of other machines.

    Raises:
        InputError: it is not one of those that were compared; says what may differ.
        SandboxError: it does not say what it is.
    """
    if doubt := interpreter_of(run).doubt:
        raise InputError(doubt, remedy=REMEDY)
