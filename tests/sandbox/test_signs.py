"""Which limits a failed run hints at; that the kernel gives these signs is tested with ``wholestack sandbox run``."""

import signal

import pytest

from wholestack.sandbox import Ending, Isolation, Limits, Outcome
from wholestack.sandbox.signs import signs_of_limits

LIMITS = Limits(wall_s=10.0, processes=1)


def outcome(said: str = "", *, code: int | None = 1, seconds: float = 0.1, ending: Ending = Ending.EXITED) -> Outcome:
    return Outcome(
        isolation=Isolation.BUBBLEWRAP, ending=ending, exit_code=code, stdout=b"", stderr=said.encode(),
        result=b"", seconds=seconds, peak_bytes=0,
    )  # fmt: skip


def test_every_limit_is_named_once_by_its_first_sign():
    said = "MemoryError\n\nOSError: [Errno 12] Cannot allocate memory\nOSError: [Errno 24] Too many open files: 'f'\n"
    found = signs_of_limits(outcome(said), LIMITS)
    assert [(each.limit, each.seen) for each in found] == [
        ("memory_bytes", "MemoryError"), ("open_files", "OSError: [Errno 24] Too many open files"),
    ]  # fmt: skip


@pytest.mark.parametrize("ending", [each for each in Ending if each is not Ending.EXITED])
def test_a_run_that_was_ended_from_outside_has_its_reason_already(ending):
    assert signs_of_limits(outcome("MemoryError\n", code=None, ending=ending), LIMITS) == ()


def test_a_run_that_went_well_met_nothing():
    assert signs_of_limits(outcome("MemoryError\n", code=0), LIMITS) == ()


@pytest.mark.parametrize(("seconds", "is_named"), [(11.9, False), (12.0, True)])
def test_a_kill_is_a_sign_of_processor_time_only_after_as_much_time(seconds, is_named):
    found = signs_of_limits(outcome(code=128 + signal.SIGKILL, seconds=seconds), LIMITS)
    assert [each.limit for each in found] == (["wall_s"] if is_named else [])


def test_errors_of_the_same_number_that_are_no_words_of_a_traceback_are_none():
    said = "saw OSError: [Errno 27] File too large\nValueError: [Errno 27] File too large\nMemoryErrors: 3\n"
    assert signs_of_limits(outcome(said), LIMITS) == ()


def test_a_megabyte_without_a_line_end_is_no_burden():
    assert signs_of_limits(outcome("Error" * 200_000), LIMITS) == ()
