"""Follows one run from its start to the proof that nothing is left of it.

The proof is the kernel's: the process whose end is awaited is the first of a process namespace, and it cannot end
before all others in it are gone (pid_namespaces(7)); for a plain process it is a subreaper that found no child left.
"""

import contextlib
import errno
import json
import os
import select
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from wholestack.errors import SandboxError
from wholestack.processes import descendants, proportional_bytes, resident_bytes
from wholestack.sandbox.container import Container, Start, beside_the_standard_streams
from wholestack.sandbox.limits import Limits
from wholestack.sandbox.outcome import Ending, Outcome

STANDS = b"?!"
"""What the first code inside writes to the result channel: that it can be sent its program, and that it becomes it."""
END_S = 10.0
"""How long the kernel gets to end what was killed."""
SHORT_OF = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT}
"""What a machine or a process may lack for a run."""
_SAMPLE_S = 0.05
_BLOCK_BYTES = 1 << 16
_LONGEST_COMPLAINT = 500


class Watch:
    """One run.

    Args:
        container: How to start it.
        letter: What the first code inside reads.
        limits: Caps.
        hash_seed: Of the inner interpreter; ``None`` for a random one.
        folder: Where the program works, if the container needs a folder.
    """

    def __init__(
        self, container: Container, letter: bytes, *, limits: Limits, hash_seed: int | None, folder: Path | None
    ) -> None:
        self._container = container
        self._hash_seed = hash_seed
        self._process: subprocess.Popen[bytes] | None = None
        self._sources: dict[str, int] = {}
        self._sending = False
        self._letter = memoryview(letter)
        self._limits = limits
        self._folder = folder
        self._ending = Ending.EXITED
        self._killed = False
        self._first: int | None = None
        """pidfd of the process whose end is the end of all."""
        self._first_pid = 0
        self._peak_bytes = 0
        self._texts = {name: bytearray() for name in ("stdout", "stderr", "result", "status")}
        self._begin = time.monotonic()
        self._deadline = self._begin + limits.wall_s

    def follow(self) -> Outcome:
        """Wait until it ends or has to be ended.

        Raises:
            SandboxError: the sandbox did not start, or something in it does not die.
        """
        with contextlib.ExitStack() as opened:
            process = self._start(opened)
            self._selector = opened.enter_context(selectors.DefaultSelector())
            gone = os.pidfd_open(process.pid)
            opened.callback(os.close, gone)
            self._listen(process, gone)
            self._loop(gone)
            self._await_the_end()
            for key in list(self._selector.get_map().values()):
                if isinstance(key.data, str):
                    self._read_rest(key)
            process.wait()
            return self._outcome()

    def let_go(self) -> None:
        """Close what keeps the run alive: it goes on only while we hold it."""
        self._to_inside.close()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _start(self, opened: contextlib.ExitStack) -> subprocess.Popen[bytes]:
        """Start it so that it is ended with the stack, whatever happens."""
        with _NO_FORK, contextlib.ExitStack() as only_for_start:
            sinks = {}
            for name in ("result", "status"):
                self._sources[name], sinks[name] = _pipe()
                opened.callback(os.close, self._sources[name])
                only_for_start.callback(os.close, sinks[name])
            letter, to_inside = _pipe()
            only_for_start.callback(os.close, letter)
            self._to_inside = opened.enter_context(open(to_inside, "wb", buffering=0))
            os.set_blocking(to_inside, False)
            opened.callback(self._end_for_good)
            opened.callback(_RUNNING.discard, self)
            _RUNNING.add(self)
            start = self._container.start(
                limits=self._limits,
                letter=letter,
                status=sinks["status"],
                channel=sinks["result"],
                hash_seed=self._hash_seed,
                folder=self._folder,
            )
            for descriptor in start.only_for_start:
                only_for_start.callback(os.close, descriptor)
            self._process = _started(start, self._folder)
        return self._process

    def _listen(self, process: subprocess.Popen[bytes], gone: int) -> None:
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            if stream is not None:
                self._sources[name] = stream.fileno()
        for name, source in self._sources.items():
            os.set_blocking(source, False)
            self._selector.register(source, selectors.EVENT_READ, name)
        self._selector.register(gone, selectors.EVENT_READ, None)

    def _loop(self, gone: int) -> None:
        sample_at = self._begin + _SAMPLE_S
        while True:
            now = time.monotonic()
            for key, events in self._selector.select(max(0.0, min(sample_at, self._deadline) - now)):
                if key.fd == gone:
                    return
                if events & selectors.EVENT_WRITE:
                    self._write()
                else:
                    self._read(key)
            now = time.monotonic()
            if now >= self._deadline:
                if self._killed:
                    raise SandboxError(
                        f"something in the sandbox does not die within {END_S:g} s: it hangs in the kernel"
                    )
                self._kill(Ending.TIMED_OUT)
            elif now >= sample_at:
                self._sample()
                sample_at = time.monotonic() + _SAMPLE_S

    def _write(self) -> None:
        try:
            self._letter = self._letter[self._to_inside.write(self._letter[:_BLOCK_BYTES]) or 0 :]
        except BrokenPipeError:
            self._letter = memoryview(b"")
        if not self._letter:
            self._selector.unregister(self._to_inside)
            self._to_inside.close()

    def _read(self, key: selectors.SelectorKey) -> bool:
        """Take one block of a pipe; false when there is no more."""
        text, most = self._texts[key.data], self._limits.output_bytes + len(STANDS)
        try:
            block = os.read(key.fd, _BLOCK_BYTES)
        except BlockingIOError:
            return False
        text += block
        if not block:
            self._selector.unregister(key.fd)
        elif key.data == "status":
            self._note_first()
        elif len(text) > most:
            del text[most:]
            self._kill(Ending.OUTPUT_EXCEEDED)
            return False
        self._send_when_ready()
        return bool(block)

    def _read_rest(self, key: selectors.SelectorKey) -> None:
        """What was written before the end and not yet read. Nobody is left to write more."""
        while self._read(key):
            pass

    def _note_first(self) -> None:
        pid = _documents(self._texts["status"]).get("child-pid")
        if self._first_pid or not pid:
            return
        self._first_pid = pid
        try:
            self._first = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        except OSError:  # no descriptor is left, and without a handle it cannot be followed
            os.kill(pid, signal.SIGKILL)
            raise
        if self._killed:
            self._signal()

    def _send_when_ready(self) -> None:
        """Nothing untrusted goes in before we hold what can end it, and before it dies with us.

        What is left of a container that was killed while it started waits for its program in vain, and ends when the
        pipe is closed.
        """
        if self._first is None or not self._texts["result"] or self._sending or self._killed:
            return
        self._sending = True
        _first_to_go([self._first_pid, *descendants(self._first_pid)])
        self._selector.register(self._to_inside, selectors.EVENT_WRITE, None)

    def _sample(self) -> None:
        if not self._texts["result"] or self._first is None or self._killed:
            return  # before it stands, what it holds is still this machine's
        pids = [self._first_pid, *descendants(self._first_pid)]
        held = sum(map(resident_bytes, pids))
        if held > self._limits.memory_bytes:  # pages that they share were counted often: look closer
            held = sum(proportional_bytes(pid) or resident_bytes(pid) for pid in pids)
        self._peak_bytes = max(self._peak_bytes, held)
        if held > self._limits.memory_bytes:
            self._kill(Ending.MEMORY_EXCEEDED)
        elif self._container.holds_too_much(self._first_pid, self._limits, self._folder):
            self._kill(Ending.FILES_EXCEEDED)

    def _kill(self, why: Ending) -> None:
        """End all of it; the first reason stands."""
        if not self._killed:
            self._killed, self._ending = True, why
            self._deadline = time.monotonic() + END_S
            self._signal()

    def _signal(self) -> None:
        """SIGKILL to the first process, whose end is the end of all; where it is not known yet, once it is.

        Not to the container instead: killed while it starts, it would leave the first process behind.
        """
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)

    def _await_the_end(self) -> None:
        """The container has gone; what it contained must be too."""
        if self._first is None:
            return
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._first, selectors.EVENT_READ)
            if not waiting.select(0.0):
                self._signal()
                if not waiting.select(END_S):
                    raise SandboxError(f"process {self._first_pid} of the sandbox does not die within {END_S:g} s")

    def _end_for_good(self) -> None:
        """Also when we are interrupted."""
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            try:
                self._await_the_first()
            finally:
                self._signal()
                self.let_go()
                try:
                    process.wait(2 * END_S)  # a guard that ends what a program left gets END_S for it
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                self._await_the_end()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        if self._first is not None:
            os.close(self._first)

    def _await_the_first(self) -> None:
        """Until it is known what must be ended."""
        deadline = time.monotonic() + END_S
        status = select.poll()
        status.register(self._sources["status"], select.POLLIN)
        while not self._first_pid and status.poll(max(0.0, deadline - time.monotonic()) * 1000):
            block = os.read(self._sources["status"], _BLOCK_BYTES)
            if not block:
                return
            self._texts["status"] += block
            self._note_first()

    def _outcome(self) -> Outcome:
        result = bytes(self._texts["result"])
        exit_code = _documents(self._texts["status"]).get("exit-code")
        if self._ending is Ending.EXITED and (not result.startswith(STANDS) or exit_code is None):
            complaint = bytes(self._texts["stderr"][-_LONGEST_COMPLAINT:]).decode(errors="replace")
            complaint = " ".join(complaint.split())
            code = self._process.returncode if self._process else None
            raise SandboxError(
                f"the sandbox did not start: {complaint or f'exit code {code}'}",
                remedy="'wholestack sandbox probe' says what this machine lacks",
            )
        cap = self._limits.output_bytes
        return Outcome(
            isolation=self._container.isolation,
            ending=self._ending,
            exit_code=exit_code if self._ending is Ending.EXITED else None,
            stdout=bytes(self._texts["stdout"][:cap]),
            stderr=bytes(self._texts["stderr"][:cap]),
            result=result.removeprefix(STANDS),
            seconds=time.monotonic() - self._begin,
            peak_bytes=self._peak_bytes,
        )


def _started(start: Start, folder: Path | None) -> subprocess.Popen[bytes]:
    owner: dict[str, Any] = {} if start.user is None else {"user": start.user, "group": start.user, "extra_groups": []}
    try:
        return subprocess.Popen(
            start.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=start.inherited,
            env=dict(start.environment),
            cwd=folder or "/",
            bufsize=0,
            start_new_session=True,  # signals of a terminal or to our process group are for us to answer
            **owner,
        )
    except OSError as error:
        if error.errno in SHORT_OF:
            raise
        raise SandboxError(f"{start.command[0]} does not start: {error.strerror}") from error


def _pipe() -> tuple[int, int]:
    """A pipe beside the standard streams, also where the owner has closed some of those."""
    source, sink = os.pipe()
    return beside_the_standard_streams(source), beside_the_standard_streams(sink)


_NO_FORK = threading.RLock()
"""Held while a run starts, when descriptors are open that a forked child must not have."""
_RUNNING: set[Watch] = set()


def _let_go_in_child() -> None:
    """A child that Python forks has copies of what keeps runs alive; with them they would outlive a killed owner."""
    for watch in _RUNNING:
        watch.let_go()
    _RUNNING.clear()
    _NO_FORK.release()


os.register_at_fork(before=_NO_FORK.acquire, after_in_parent=_NO_FORK.release, after_in_child=_let_go_in_child)


def _first_to_go(pids: Iterable[int]) -> None:
    """Where the machine runs out of memory, these end before anything else; what they start inherits it."""
    for pid in pids:
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def _documents(status: bytes | bytearray) -> Mapping[str, Any]:
    """The keys of all complete lines of the container's status."""
    merged: dict[str, Any] = {}
    for line in _complete_lines(bytes(status)):
        merged |= json.loads(line)
    return merged


def _complete_lines(text: bytes) -> Iterator[bytes]:
    return (line for line in text.split(b"\n")[:-1] if line.strip())
