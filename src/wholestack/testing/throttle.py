"""A fault to inject: slow a process down from outside, as a hot, shared or failing machine would.

The process is stopped and continued in turn (SIGSTOP, SIGCONT), with its descendants, so that it runs for a given
share of the time and notices nothing. A throttle that is itself killed with SIGKILL may leave it stopped.
On the command line::

    python -m wholestack.testing.throttle PID --share 0.33 --seconds 20
"""

import argparse
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from wholestack.errors import InputError
from wholestack.processes import descendants

Send = Callable[[int, signal.Signals], None]
Wait = Callable[[float], bool]


def duty_cycle(pid: int, *, share: float, period_s: float, wait: Wait, send: Send = os.kill) -> None:
    """Stop and continue a process until told otherwise or until it has gone; it is left running.

    Args:
        pid: The process; what descends from it is slowed down with it.
        share: Share of the time that it runs, above 0 and at most 1.
        period_s: One stop and one go together.
        wait: Waits so many seconds; true ends the throttling.
        send: Sends a signal.
    """
    try:
        while not wait(share * period_s):
            if not _send_all(pid, signal.SIGSTOP, send):
                return
            is_over = wait((1.0 - share) * period_s)
            if not _send_all(pid, signal.SIGCONT, send) or is_over:
                return
    finally:
        _send_all(pid, signal.SIGCONT, send)


@contextmanager
def throttled(pid: int, *, share: float = 1 / 3, period_s: float = 0.06) -> Iterator[None]:
    """Slow a process down inside the block.

    Raises:
        InputError: the share is not above 0 and at most 1.
    """
    _check_share(share)
    over = threading.Event()
    cycle = threading.Thread(
        target=duty_cycle,
        kwargs={"pid": pid, "share": share, "period_s": period_s, "wait": over.wait},
        daemon=True,
    )
    cycle.start()
    try:
        yield
    finally:
        over.set()
        cycle.join()


def main(arguments: Sequence[str] | None = None) -> int:
    """Throttle until the time is over, the process has ended, or Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m wholestack.testing.throttle", description=__doc__)
    parser.add_argument("pid", type=int)
    parser.add_argument("--share", type=float, default=1 / 3, help="share of the time that it runs")
    parser.add_argument("--seconds", type=float, default=None, help="for how long (default: until it ends)")
    given = parser.parse_args(arguments)
    try:
        _check_share(given.share)
    except InputError as error:
        parser.error(str(error))
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: over.set())  # or the process would be left stopped
    timer = threading.Timer(given.seconds, over.set) if given.seconds is not None else None
    with contextlib.suppress(KeyboardInterrupt):
        if timer:
            timer.start()
        duty_cycle(given.pid, share=given.share, period_s=0.06, wait=over.wait)
    if timer:
        timer.cancel()
    return 0


def _check_share(share: float) -> None:
    if not 0 < share <= 1:
        raise InputError(f"share must be above 0 and at most 1, got {share}")


def _send_all(pid: int, number: signal.Signals, send: Send) -> bool:
    """The parent first: it would otherwise see its children stop. False when it has gone."""
    try:
        send(pid, number)
    except ProcessLookupError:
        return False
    for child in descendants(pid):
        with contextlib.suppress(ProcessLookupError):
            send(child, number)
    return True


if __name__ == "__main__":
    raise SystemExit(main())
