"""Free memory is the kernel's estimate or what the control group leaves, whichever is less; unknown is not zero."""

from pathlib import Path

import pytest

from wholestack.machine import available_memory_bytes

MEMINFO = "MemTotal:  9000 kB\nMemAvailable:   2048 kB\nSwapFree: 1 kB\n"


@pytest.mark.parametrize(
    ("meminfo", "limit", "used", "free"),
    [
        (MEMINFO, "max", "5", 2048 * 1024),
        (MEMINFO, "3000000", "1000000", 2_000_000),
        (MEMINFO, "9000000", "1000000", 2048 * 1024),
        (MEMINFO, "1000", "3000", 0),
        (MEMINFO, None, None, 2048 * 1024),
        (None, "3000", "1000", 2000),
        ("MemTotal: 5 kB\n", None, None, None),
        ("MemAvailable: many\n", "odd", "1", None),
        (None, None, None, None),
    ],
)
def test_the_lesser_bound_counts(
    tmp_path: Path, meminfo: str | None, limit: str | None, used: str | None, free: int | None
) -> None:
    for name, text in (("meminfo", meminfo), ("memory.max", limit), ("memory.current", used)):
        if text is not None:
            (tmp_path / name).write_text(f"{text}\n")
    assert available_memory_bytes(tmp_path, tmp_path) == free


def test_this_machine_says() -> None:
    found = available_memory_bytes()
    assert found is not None
    assert found > 1 << 20
