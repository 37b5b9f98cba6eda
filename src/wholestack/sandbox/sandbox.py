"""The sandbox: open it once, run programs in it."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from wholestack.errors import InputError, RecordError, SandboxError
from wholestack.sandbox.bubblewrap import Bubblewrap
from wholestack.sandbox.container import Container
from wholestack.sandbox.image import default_folder, image_of_this_interpreter
from wholestack.sandbox.limits import Limits
from wholestack.sandbox.outcome import Isolation, Outcome
from wholestack.sandbox.plain import PlainProcess
from wholestack.sandbox.signs import cpu_seconds
from wholestack.sandbox.watching import SHORT_OF, Watch

_PROBE = Limits(wall_s=60.0, processes=4)
_PROBED = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
found = []
if libc.unshare(0x10000000) == 0:
    found.append("a nested user namespace can be made")
if os.getuid() in (0, OWNER) or os.geteuid() == 0:
    found.append("the program runs as user %d" % os.getuid())
if os.path.exists("/proc/self") or os.path.exists("/etc"):
    found.append("files of this machine can be seen")
try:
    os.mkdir("/python/made")
    found.append("the interpreter's folder can be written to")
except OSError:
    pass
if os.getpid() > 100:
    found.append("processes have the machine's numbers")
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 9))
    found.append("the network can be reached")
except OSError:
    pass
RESULT.write(repr(found).replace("'", '"'))
"""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Runs untrusted Python programs, each in namespaces of its own, and gives back what they said.

    Inside there is an interpreter with its standard library, an empty folder to work in, and nothing else: no
    packages, no network, no other process, an empty environment. Data crosses as JSON.

    Example:
        >>> sandbox = Sandbox.open()
        >>> sandbox.run("print(6 * 7); RESULT.write(str(ARGUMENT + 1))", argument=1).stdout
        b'42\\n'
    """

    _container: Container

    @classmethod
    def open(cls, *, require_isolation: bool = True, folder: Path | None = None) -> "Sandbox":
        """Find out what this machine grants, by trying it.

        Args:
            require_isolation: Refuse where there is no isolation, rather than to run as a plain process. Whatever
                runs code that was written by a model or by strangers leaves this as it is.
            folder: Where the copied interpreter is kept (about 75 MB); ``None`` for this machine's cache.

        Raises:
            SandboxError: no isolation here; says what is missing.
        """
        image = image_of_this_interpreter(folder or default_folder())
        try:
            sandbox = cls(Bubblewrap(image))
            sandbox._probe()
        except SandboxError as error:
            if require_isolation:
                raise SandboxError(
                    f"untrusted code cannot be isolated here: {error.message}", remedy=error.remedy
                ) from error
            return cls(PlainProcess(image))
        return sandbox

    @property
    def isolation(self) -> Isolation:
        """What stands between a program and this machine."""
        return self._container.isolation

    def run(
        self,
        program: str | bytes,
        *,
        argument: Any = None,
        files: Mapping[str, bytes] | None = None,
        limits: Limits | None = None,
        hash_seed: int | None = None,
    ) -> Outcome:
        """Run one program to its end.

        Inside, ``ARGUMENT`` is the argument and ``RESULT`` a text stream: the JSON that the program writes there is
        ``Outcome.value()``. Standard input is empty.

        Args:
            program: Source text.
            argument: A JSON value; ``None`` for no argument.
            files: More files of the working folder, by relative path. The program can import them.
            limits: Caps.
            hash_seed: Of the inner interpreter, 0 to 2**32 - 1; ``None`` for a random one.

        Raises:
            InputError: a file's name leaves the folder, the argument is not JSON, or it all is larger than the caps.
            SandboxError: the sandbox did not start, or could not be ended.
        """
        limits = limits or Limits()
        if hash_seed is not None and not 0 <= hash_seed < 1 << 32:
            raise InputError(f"hash_seed is {hash_seed}: 0 to 2**32 - 1 is allowed")
        letter = _letter(program, argument, files or {}, limits)
        folder = None
        try:
            folder = Path(tempfile.mkdtemp(prefix="wholestack-")) if self._container.needs_folder else None
            return Watch(self._container, letter, limits=limits, hash_seed=hash_seed, folder=folder).follow()
        except OSError as error:
            if error.errno not in SHORT_OF:
                raise
            raise SandboxError(
                f"the sandbox cannot be run: {error.strerror}", remedy="free what this machine or process is short of"
            ) from error
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def _probe(self) -> None:
        outcome = self.run(_PROBED.replace("OWNER", str(os.geteuid())), limits=_PROBE)
        said = outcome.stderr[-300:].decode(errors="replace")
        try:
            found = outcome.value() if outcome.ok else [f"{outcome.describe()}: {said}"]
        except RecordError as error:
            found = [error.message]
        if found:
            raise SandboxError(f"bubblewrap starts, but {'; '.join(map(str, found))}")


def _letter(program: str | bytes, argument: Any, files: Mapping[str, bytes], limits: Limits) -> bytes:
    """What the first code inside reads; see ``inside.py``."""
    source = program if isinstance(program, bytes) else _encoded(program)
    blobs = []
    for name, content in files.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name or name == "main.py":
            raise InputError(f"file {name!r}: a relative path within the folder is allowed, other than main.py")
        blobs += [_encoded(str(path)), content]
    largest, total = max(map(len, [source, *blobs])), sum(map(len, blobs)) + len(source)
    if largest > limits.file_bytes or total > limits.disk_bytes or len(files) >= limits.files:
        raise InputError(
            f"program and files: {total} bytes in {len(files) + 1} files, the largest {largest}; the sandbox's limits "
            f"are {limits.disk_bytes}, {limits.files} and {limits.file_bytes}"
        )
    try:
        passed = b"" if argument is None else json.dumps(argument, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the argument is not JSON: {error}") from error
    head = (
        limits.memory_bytes, limits.processes, limits.file_bytes, limits.open_files, cpu_seconds(limits),
        *map(len, blobs), len(source), len(passed),
    )  # fmt: skip
    return b" ".join(b"%d" % number for number in head) + b"\n" + b"".join(blobs) + source + passed


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"text that is not UTF-8: {error.reason} at character {error.start}") from error
