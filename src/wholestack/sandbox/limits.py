"""What one run may take."""

from dataclasses import dataclass

from wholestack.errors import InputError
from wholestack.record import Record

_MB = 1 << 20
SMALLEST_MEMORY_BYTES = 64 * _MB
"""Below this the interpreter itself does not start reliably."""
LONGEST_S = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(Record):
    """Caps of one run. The wall clock is the authority: whatever else fails, the run ends then.

    Example:
        >>> Limits(wall_s=2.0, memory_bytes=256 << 20).processes
        16
    """

    wall_s: float = 10.0
    """Seconds from the start of the sandbox to its end."""
    memory_bytes: int = 512 * _MB
    """Address space of each process, and resident memory of all of them together."""
    processes: int = 16
    """Processes and threads at one time, the program itself among them."""
    file_bytes: int = 16 * _MB
    """Largest file that can be written."""
    disk_bytes: int = 64 * _MB
    """All files together; they lie in memory and are gone with the run."""
    files: int = 1024
    """Number of files and folders."""
    output_bytes: int = _MB
    """Of standard output, of standard error and of the result, each; more ends the run."""
    open_files: int = 64
    """File descriptors of each process."""

    def __post_init__(self) -> None:
        """Refuse what cannot be kept.

        Raises:
            InputError: a cap is not positive, or too small to start a program.
        """
        if not 0 < self.wall_s <= LONGEST_S:
            raise InputError(f"wall_s is {self.wall_s}: more than 0 and at most {LONGEST_S:g} seconds are allowed")
        if self.memory_bytes < SMALLEST_MEMORY_BYTES:
            raise InputError(f"memory_bytes is {self.memory_bytes}: at least {SMALLEST_MEMORY_BYTES} are needed")
        for name, least in (("processes", 1), ("file_bytes", 1), ("disk_bytes", 4096), ("files", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}: at least {least} is needed")
        for name, least in (("output_bytes", 1), ("open_files", 16)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}: at least {least} is needed")
