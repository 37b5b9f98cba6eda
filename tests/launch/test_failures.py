"""What the facts of an end mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.launch.failures import Ending, blames_job, classify, is_retryable, signal_name

endings = st.builds(
    Ending,
    exit_code=st.one_of(st.none(), st.integers(0, 255)),
    signal_name=st.sampled_from(["SIGKILL", "SIGTERM", "SIGSEGV", "SIGABRT", "signal 40", ""]),
    intervention=st.sampled_from(["none", "cancel", "wall", "memory"]),
    kernel_killed=st.booleans(),
    last_lines=st.lists(st.sampled_from(["MemoryError", "oops", "", "ValueError: x"]), max_size=4),
)


@given(endings)
def test_only_exit_code_0_undisturbed_is_done(ending):
    is_good = ending.exit_code == 0 and ending.intervention == "none"
    assert (classify(ending).outcome == "done") == is_good


@given(endings)
def test_every_other_end_says_why_and_is_blamed_or_retried_but_never_both(ending):
    verdict = classify(ending, limit="wall time 1 s")
    assert verdict.outcome not in ("running", "lost")
    assert bool(verdict.detail) == (verdict.outcome != "done")
    assert not (blames_job(verdict.outcome) and is_retryable(verdict.outcome))
    assert "\n" not in verdict.detail


@given(endings.filter(lambda ending: ending.intervention != "none"))
def test_what_we_did_decides_whatever_the_exit_looks_like(ending):
    assert (
        classify(ending).outcome
        == {"cancel": "cancelled", "wall": "timeout", "memory": "out_of_memory"}[ending.intervention]
    )


@pytest.mark.parametrize(
    "line",
    [
        "MemoryError",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB for an array",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
        "torch.cuda.OutOfMemoryError: CUDA out of memory.",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: you tried",
        "  what():  std::bad_alloc",
        "OSError: [Errno 12] Cannot allocate memory",
    ],
)
@pytest.mark.parametrize("end", [{"exit_code": 1}, {"exit_code": None, "signal_name": "SIGABRT"}])
def test_a_failed_allocation_is_known_by_its_last_line(line, end):
    assert classify(Ending(last_lines=["before", line], **end)).outcome == "out_of_memory"


@pytest.mark.parametrize("line", ["ValueError: MemoryError is not a number", "KeyError: 'MemoryError'"])
def test_a_mention_of_memory_is_not_a_failed_allocation(line):
    assert classify(Ending(exit_code=1, last_lines=[line])).outcome == "failed"


def test_the_kernels_killer_is_out_of_memory_and_another_kill_is_not():
    ending = {"exit_code": None, "signal_name": "SIGKILL"}
    assert classify(Ending(kernel_killed=True, **ending)).outcome == "out_of_memory"
    assert classify(Ending(kernel_killed=False, **ending)).outcome == "killed"


@pytest.mark.parametrize(("code", "outcome"), [(137, "killed"), (143, "killed"), (139, "failed"), (134, "failed")])
def test_a_shell_passes_on_how_its_command_ended(code, outcome):
    assert classify(Ending(exit_code=code)).outcome == outcome


def test_signals_have_names():
    assert signal_name(9) == "SIGKILL"
    assert signal_name(40) == "signal 40"
