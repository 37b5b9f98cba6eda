"""Logs with a cap."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.launch.logs import CappedLog


@given(blocks=st.lists(st.binary(max_size=60), max_size=40), cap=st.integers(2, 400))
def test_head_and_tail_are_kept_and_the_gap_is_counted(tmp_path_factory, blocks, cap):
    path = tmp_path_factory.mktemp("log") / "log"
    log = CappedLog(path, cap)
    for block in blocks:
        log.write(block)
    log.finish()
    data, kept = b"".join(blocks), path.read_bytes()
    gap = len(data) - cap
    if gap <= 0:
        assert kept == data
        assert log.dropped_bytes == 0
    else:
        mark = f"\n[{gap} bytes left out]\n".encode()
        assert kept == data[: cap - cap // 2] + mark + data[len(data) - cap // 2 :]
        assert log.dropped_bytes == gap


def test_the_head_can_be_read_while_the_job_runs(tmp_path):
    log = CappedLog(tmp_path / "log", 100)
    log.write(b"so far")
    assert (tmp_path / "log").read_bytes() == b"so far"
    log.finish()


def test_memory_stays_bounded(tmp_path):
    log = CappedLog(tmp_path / "log", 1000)
    for _ in range(100):
        log.write(b"x" * 65536)
    assert len(log._tail) < 1000 * 2 + 2 * 65536
    log.finish()


def test_last_lines_pass_over_empty_ones_and_survive_any_bytes(tmp_path):
    log = CappedLog(tmp_path / "log", 10)
    log.write(b"one\ntwo\n\xff\xfe\n\n")
    assert log.last_lines(2) == ("two", "��")
    log.finish()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_told_and_does_not_end_the_job(tmp_path):
    full = tmp_path / "log"
    full.symlink_to("/dev/full")
    log = CappedLog(full, 100)
    log.write(b"x" * 40)
    log.finish()
    assert log.dropped_bytes == 40
    assert re.search("No space left", log.trouble)
