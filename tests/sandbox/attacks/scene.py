"""What an attack can be tried on: files, listeners and a victim that belong to one test, and nothing else."""

import contextlib
import ctypes
import os
import platform
import py_compile
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from wholestack.sandbox.system_calls import DENIED, LOOKED_AT

VICTIM = """
import ctypes, os, sys
secret = bytearray(os.environ["SECRET"].encode())
print(ctypes.addressof((ctypes.c_char * len(secret)).from_buffer(secret)), flush=True)
sys.stdin.read()
"""
MORE_CALLS = {"madvise": (28, 233), "pidfd_open": (434, 434)}


@dataclass
class Scene:
    """One test's things on this machine, and what is known of the run."""

    secret: str = field(default_factory=lambda: f"secret-{secrets.token_hex(12)}")
    mark: str = field(default_factory=lambda: f"m{secrets.token_hex(7)}")
    folder: Path = field(init=False)
    """Everybody may write here."""
    victim: "subprocess.Popen[bytes]" = field(init=False)
    """A process with the secret in its memory and environment."""
    address: int = field(init=False)
    listeners: dict[str, socket.socket] = field(default_factory=dict)
    inherited: int = field(init=False)
    """A descriptor for a file with the secret, which started processes keep."""
    shared_before: int = field(init=False)
    output: bytes = b""
    result: bytes = b""
    over: bool = False
    seen: dict[str, Any] = field(default_factory=dict)
    """For effects that remember."""

    def __enter__(self) -> "Scene":
        self._opened = contextlib.ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="attacked-"))
        self._opened.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o777)
        for place in ("home", "library", "inner", ".git", "__pycache__"):
            (self.folder / place).mkdir()
            (self.folder / place).chmod(0o777)
        for name in ("secret", "home/.netrc", ".git/HEAD", "library/answer.py"):
            path = self.folder / name
            path.write_text(f"{self.secret!r}\n" if name.endswith("py") else self.secret)
            path.chmod(0o666)
        (self.folder / "library" / "answer.py").write_text(f"ANSWER = {self.secret!r}\n")
        py_compile.compile(str(self.folder / "library" / "answer.py"), doraise=True)
        self._start_victim()
        self._listen()
        self.inherited = os.open(self.folder / "secret", os.O_RDONLY)
        self._opened.callback(os.close, self.inherited)
        os.set_inheritable(self.inherited, True)
        self.shared_before = shared_memory()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _start_victim(self) -> None:
        self.victim = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", VICTIM, self.secret],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"SECRET": self.secret},
            start_new_session=True,
        )
        self._opened.enter_context(self.victim)
        self._opened.callback(self.victim.kill)
        assert self.victim.stdout is not None
        self.address = int(self.victim.stdout.readline())

    def _listen(self) -> None:
        for name, family, kind, address in (
            ("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            ("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            ("tcp6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)),
            ("abstract", socket.AF_UNIX, socket.SOCK_DGRAM, f"\0{self.mark}"),
            ("unix", socket.AF_UNIX, socket.SOCK_DGRAM, str(self.folder / "socket")),
        ):
            listener = self._opened.enter_context(socket.socket(family, kind))
            listener.bind(cast(Any, address))
            if kind == socket.SOCK_STREAM:
                listener.listen()
            listener.setblocking(False)
            self.listeners[name] = listener
        (self.folder / "socket").chmod(0o777)

    def argument(self, *, inside: bool) -> dict[str, Any]:
        """What the program is told; it is told everything that could help it, but not the secret."""
        column = 0 if platform.machine() == "x86_64" else 1
        calls = {name: numbers[column] for name, numbers in {**DENIED, **LOOKED_AT, **MORE_CALLS}.items()}
        return {
            "mark": self.mark,
            "folder": str(self.folder),
            "victim": self.victim.pid,
            "owner": os.getpid(),
            "address": self.address,
            "length": len(self.secret),
            "ports": {name: self.listeners[name].getsockname()[1] for name in ("tcp", "udp", "tcp6")},
            "library": "/python/lib/python3.11" if inside else str(self.folder / "library"),
            "handle": file_handle(self.folder / "secret"),
            "calls": {name: number for name, number in calls.items() if number is not None},
        }


def shared_memory() -> int:
    """Bytes of this machine's shared memory, mapped or not."""
    line = next(each for each in Path("/proc/meminfo").read_text().splitlines() if each.startswith("Shmem:"))
    return int(line.split()[1]) * 1024


def file_handle(path: Path) -> tuple[int, str] | None:
    """Type and hex of the handle by which the kernel finds a file without its path; ``None`` where there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle, mount = ctypes.create_string_buffer(136), ctypes.c_int()
    handle[:4] = (128).to_bytes(4, sys.byteorder)
    if libc.name_to_handle_at(-100, str(path).encode(), handle, ctypes.byref(mount), 0) != 0:
        return None
    size, kind = (int.from_bytes(handle.raw[at : at + 4], sys.byteorder) for at in (0, 4))
    return kind, handle.raw[8 : 8 + size].hex()
