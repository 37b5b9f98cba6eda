"""Judging the replies of a sweep: here, or for large fleets in processes beside, since reading outputs is what costs.

Reading and judging one host takes about twenty milliseconds of CPU; talking to it takes less. For a few hosts a
second process is not worth its start.
"""

import gc
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from asyncio import get_running_loop
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache

from wholestack.errors import EngineError
from wholestack.health import catalog
from wholestack.health.check import Before, Check, Expectation
from wholestack.health.examine import examine
from wholestack.health.result import HostResult, result_of, silent_result
from wholestack.remote.batch import Reply


def judge_reply(
    reply: Reply, checks: Sequence[Check], *, expectation: Expectation, before: Before | None, now: float
) -> HostResult:
    """What is kept of a reply, whole, partial or none.

    Args:
        reply: Of one host.
        checks: Those to put.
        expectation: Of the host's kind.
        before: What the last sweep left behind.
        now: Seconds since the epoch, by our clock, when the reply was there.
    """
    names = [check.name for check in checks]
    if reply.trouble is not None and all(each.ending == "not_run" for each in reply.outputs.values()):
        return silent_result(reply, names, before=before, now=now)
    found = examine(reply.outputs, checks, expectation=expectation, before=before, now=now, round_trip_s=reply.seconds)
    return result_of(reply, found, names, now=now)


class Judges:
    """Judges replies in so many processes; use as a context manager.

    Args:
        names: Of the checks to put.
        processes: 0 judges in this process.
    """

    def __init__(self, names: Sequence[str], *, processes: int) -> None:
        self._names = tuple(names)
        self._pool = (
            ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), initializer=_begin)
            if processes
            else None
        )

    async def judge(self, reply: Reply, *, expectation: Expectation, before: Before | None, now: float) -> HostResult:
        """See :func:`judge_reply`.

        Raises:
            EngineError: a process beside was killed.
        """
        if self._pool is None:
            return judge_reply(reply, _checks(self._names), expectation=expectation, before=before, now=now)
        try:
            return await get_running_loop().run_in_executor(
                self._pool, _judge_there, self._names, reply, expectation, before, now
            )
        except BrokenProcessPool as error:
            raise EngineError("a process that judges replies was killed", remedy="free memory, then resume") from error

    def __enter__(self) -> "Judges":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


@lru_cache(maxsize=4)
def _checks(names: tuple[str, ...]) -> tuple[Check, ...]:
    return tuple(catalog.named(name) for name in names)


def _judge_there(
    names: tuple[str, ...], reply: Reply, expectation: Expectation, before: Before | None, now: float, /
) -> HostResult:
    return judge_reply(reply, _checks(names), expectation=expectation, before=before, now=now)


def _begin() -> None:
    """Ctrl-C is for the parent, which then ends us; if it was killed, we end by ourselves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A host leaves tens of thousands of values and hardly a cycle: with Python's own thresholds the collector looks
    # through all of them again and again, a fifth of the whole time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
