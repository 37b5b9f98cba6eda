"""Output of a job on its way into a file, with a cap: the first half and the last half are kept, the gap is counted.

The head is written as it comes, so a job can be followed; the tail is held in memory until the job has ended.
"""

import os
from pathlib import Path

_LAST_BYTES = 8192


class CappedLog:
    """One stream of a job.

    Args:
        path: The file; an older one is replaced.
        cap_bytes: Most output to keep.
    """

    def __init__(self, path: Path, cap_bytes: int) -> None:
        self.path = path
        self.trouble = ""
        """Why the file is incomplete though the cap was not reached: what the disk said."""
        self.refused_bytes = 0
        """Output that the disk did not take."""
        self._room = cap_bytes - cap_bytes // 2
        self._tail_cap = cap_bytes // 2
        self._tail = bytearray()
        self._last = bytearray()
        self._skipped = 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)

    @property
    def dropped_bytes(self) -> int:
        """Output that is not in the file."""
        return self._skipped + max(0, len(self._tail) - self._tail_cap) + self.refused_bytes

    def write(self, data: bytes) -> None:
        """Take output in; never fails, a full disk must not end the job."""
        self._last += data[-_LAST_BYTES:]
        del self._last[:-_LAST_BYTES]
        head = data[: self._room]
        self._room -= len(head)
        self._put(head)
        self._tail += data[len(head) :]
        if len(self._tail) > 2 * self._tail_cap + _LAST_BYTES:
            self._trim()

    def finish(self) -> None:
        """Write the tail and close the file; a second time is harmless."""
        if self._file < 0:
            return
        self._trim()
        if self._skipped:
            self._put(f"\n[{self._skipped} bytes left out]\n".encode(), counted=False)
        self._put(bytes(self._tail))
        os.close(self._file)
        self._file = -1

    def abandon(self) -> None:
        """Close the file without writing: in a fork, where the log belongs to the parent."""
        os.close(self._file)
        self._file = -1

    def last_lines(self, count: int) -> tuple[str, ...]:
        """The last lines that are not empty, undecodable bytes replaced."""
        lines = self._last.decode("utf-8", errors="replace").splitlines()
        return tuple(line[:2000] for line in lines if line.strip())[-count:]

    def _trim(self) -> None:
        excess = max(0, len(self._tail) - self._tail_cap)
        self._skipped += excess
        del self._tail[:excess]

    def _put(self, data: bytes, *, counted: bool = True) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError as error:
            self.trouble = f"{self.path.name} is incomplete: {error.strerror}"
            self.refused_bytes += len(data) - written if counted else 0
