"""A rule: what must have been seen how often on a host before it is drained without a person naming it.

A file of TOML::

    name = "uncorrectable errors"
    check = "gpu.ecc"      # or a pattern such as gpu.*
    cause = "*"            # pattern for the words of a Finding; the default is all
    status = "fail"        # the least: "fail", or "warn" for warnings as well
    seen = 2               # in so many ...
    of = 3                 # ... of so many sweeps that asked the host, the latest of which is one
    soon_h = 24            # gone by itself within so many hours: it was wrong to drain
"""

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from wholestack.errors import InputError, RecordError
from wholestack.health import catalog
from wholestack.health.history.spans import FindingSpan
from wholestack.journal import read_at_most
from wholestack.record import Record, digest, from_builtins

MOST_SWEEPS = 1_000
MOST_BYTES = 100_000
"""Of a file with a rule."""
LONGEST_SOON_H = 24.0 * 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Record):
    """Drain where a check saw something in ``seen`` of ``of`` sweeps."""

    name: str
    check: str
    """Name of a check, or a pattern."""
    cause: str = "*"
    """Pattern for the words of the cause."""
    status: Literal["fail", "warn"] = "fail"
    """The least."""
    seen: int
    of: int
    soon_h: float = 24.0
    """Gone without any deed within so many hours: it was wrong to drain."""

    def __post_init__(self) -> None:
        """Refuse a rule that can never hold, or always does."""
        if not self.name.strip() or not self.name.isprintable() or len(self.name) > 100:
            raise InputError(f"name is {self.name[:40]!r}, must be a line of at most 100 characters")
        if not 1 <= self.seen <= self.of <= MOST_SWEEPS:
            raise InputError(f"seen is {self.seen}, of {self.of}: must be 1 <= seen <= of <= {MOST_SWEEPS}")
        if not 0 < self.soon_h <= LONGEST_SOON_H:
            raise InputError(f"soon_h is {self.soon_h:g}, must be above 0 and at most {LONGEST_SOON_H:g}")
        if not any(fnmatchcase(each.name, self.check) for each in catalog.CHECKS) and not self.check.startswith("tele"):
            names = [each.name for each in catalog.CHECKS]
            raise InputError(f"no check is {self.check!r}", remedy=catalog.nearest(self.check, names))

    @property
    def hash(self) -> str:
        """Of all that it says; of a rule that was changed, another."""
        return digest(self)

    @property
    def statuses(self) -> tuple[str, ...]:
        """Of Findings that count."""
        return ("fail",) if self.status == "fail" else ("fail", "warn")

    def means(self, span: FindingSpan) -> bool:
        """Whether a Finding counts."""
        return (
            span.status in self.statuses and fnmatchcase(span.check, self.check) and fnmatchcase(span.cause, self.cause)
        )


def read_rule(path: Path) -> Rule:
    """The rule of a file.

    Raises:
        InputError: it cannot be read, or is no rule.
    """
    content = read_at_most(path, MOST_BYTES, remedy="name a file with a rule (TOML)")
    try:
        return from_builtins(Rule, tomllib.loads(content.decode()), where=str(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: {error}", remedy="write it as wholestack health replay --help shows") from error
    except RecordError as error:
        raise InputError(error.message, remedy="write it as wholestack health replay --help shows") from error
    except InputError as error:
        raise InputError(f"{path}: {error.message}", remedy=error.remedy) from error
