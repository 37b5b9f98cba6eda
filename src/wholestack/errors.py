"""Every error that Wholestack raises on purpose.

A faulty machine, a bad item or a failed trial is a value (a Finding, an outcome). An exception means that
*we* could not do our work, and its one line says what, where and what to do::

    WholestackError                exit 2
    ├── InputError                 the user's file, key or value is wrong
    ├── RecordError                a stored or received record does not decode
    ├── RunDirectoryError          a run directory cannot be made, opened or written
    │   └── RunBusyError           another live process holds it
    ├── HistoryError               a history of a fleet's health cannot be opened, read or written
    ├── DataError                  text or a shard cannot be used
    ├── FitError                   the points cannot support a fit
    ├── SandboxError               untrusted code cannot be kept in, or its run not followed
    └── EngineError                a job could not be started or followed

Every class takes one message and an optional ``remedy``, printed behind it.
"""


class WholestackError(Exception):
    """Root of the tree; ``str()`` is the one line that the command prints.

    Args:
        message: What went wrong and where: names the file, key, line or value.
        remedy: What to do next, in the imperative; empty if there is nothing to add.
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class InputError(WholestackError):
    """A file, key or value that the user gave is wrong."""


class RecordError(WholestackError):
    """A record does not decode: unknown key, wrong type, NaN, or a schema that this version does not read."""


class RunDirectoryError(WholestackError):
    """A run directory cannot be made, opened, read or written."""


class RunBusyError(RunDirectoryError):
    """Another live process holds the run directory."""


class HistoryError(WholestackError):
    """The file of a history is none, of a later version, held by another process, or cannot be read or written."""


class DataError(WholestackError):
    """A document, source or shard cannot be used."""


class FitError(WholestackError):
    """The points cannot support the fit that was asked for."""


class SandboxError(WholestackError):
    """Untrusted code cannot be isolated here, or a run of it could not be followed to its end."""


class EngineError(WholestackError):
    """The engine could not start, follow or end a job."""
