"""A saved output is judged by the same rules as a host."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.health.gpu_host import smi
from wholestack.errors import InputError
from wholestack.health import judging
from wholestack.health.check import Expectation
from wholestack.health.describing import describe_judgement
from wholestack.health.judging import MOST_BYTES, Saved, judge, read_saved

HEAD = "Filesystem 1024-blocks Used Available Capacity Mounted on\n"
FULL = HEAD + "/dev/sda1 100 99 1 99% /\n"
FREE = HEAD + "/dev/sda1 100 9 91 9% /\n"


def test_the_worst_finding_is_the_status_and_names_the_part():
    found = judge("filesystem.bytes", FULL, now=5.0)
    assert found.status == "fail"
    (only,) = found.findings
    assert only.part == "filesystem / (/dev/sda1)"
    assert "99%" in only.evidence[0]
    assert only.owner == "cluster team"


def test_a_check_that_saw_nothing_is_an_ok_that_can_be_shown():
    found = judge("filesystem.bytes", FREE, now=5.0)
    assert (found.status, [each.status for each in found.findings]) == ("ok", ["ok"])


def test_what_the_part_does_not_support_is_no_fault():
    text = re.sub(
        r"<ecc_(mode|errors)>.*?</ecc_\1>",
        lambda section: re.sub(r">[^<>\s][^<>]*<", ">N/A<", section[0]),
        smi(),
        flags=re.DOTALL,
    )
    found = judge("gpu.ecc", text, now=5.0)
    assert (found.status, found.findings, [each.reason for each in found.skipped]) == ("ok", (), ["not_supported"])


@pytest.mark.parametrize("text", ["", "  \n", "foreign text", HEAD, '{"a": 1}', "\x00\x01"])
def test_empty_and_foreign_text_is_unknown_and_says_why(text):
    found = judge("filesystem.bytes", text, now=5.0)
    assert found.status == "unknown"
    assert found.findings[0].evidence
    assert found.findings[0].check == "telemetry.df"


def test_a_cut_output_is_unknown_even_if_what_is_there_looks_well():
    saved = Saved(subject="x", content=FREE.encode(), truncated=True)
    assert judge("filesystem.bytes", saved, now=5.0).status == "unknown"


def test_an_expectation_moves_a_limit():
    lax = Expectation(limits={"filesystem.full_share": 1.0})
    assert judge("filesystem.bytes", FULL, expectation=lax, now=5.0).status == "warn"


def test_a_misspelt_check_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"filesystem\.bytes"):
        judge("filesystem.byte", FULL, now=5.0)


def test_a_file_and_standard_input_are_read_up_to_a_cap(tmp_path, monkeypatch):
    monkeypatch.setattr(judging, "MOST_BYTES", 10)
    path = tmp_path / "df.txt"
    path.write_bytes(b"x" * 11)
    assert read_saved(str(path), io.BytesIO()) == Saved(subject=str(path), content=b"x" * 10, truncated=True)
    assert read_saved("-", io.BytesIO(b"y" * 10)) == Saved(subject="standard input", content=b"y" * 10)
    assert MOST_BYTES >= 1_000_000


@pytest.mark.parametrize("name", ["missing", ""])
def test_a_file_that_cannot_be_read_is_one_line_that_names_it(tmp_path, name):
    with pytest.raises(InputError, match=f"{tmp_path / name}: cannot be read"):
        read_saved(str(tmp_path / name), io.BytesIO())


def test_what_steers_a_terminal_does_not_reach_it():
    hostile = HEAD + "/dev/\x1b]0;owned\x07sda 100 99 1 99% /\x1b[2J\n"
    for each in judge("filesystem.bytes", hostile, now=5.0).findings:
        assert not set("\x1b\x07") & set("".join([each.part, *each.evidence]))


@given(st.text())
def test_no_text_at_all_is_a_crash_and_only_a_table_without_full_lines_is_ok(text):
    found = judge("filesystem.bytes", text, now=5.0)
    assert found.status != "ok" or text.lstrip().startswith("Filesystem")


@pytest.mark.parametrize(
    ("check", "text", "needed"),
    [
        ("mount.expected", "/dev/sda1 / ext4 defaults 0 1\n", "cat /proc/mounts"),
        ("mount.expected", "/dev/sda1 / ext4 rw 0 0\n", "cat /proc/mounts"),
    ],
)
def test_a_check_that_needs_another_output_says_which_and_not_that_a_host_is_silent(check, text, needed):
    (only,) = judge(check, text, now=0.0).findings
    assert (only.status, only.cause) == ("unknown", "the check needs the output of another command too")
    assert only.evidence[0] == f"{check} also needs the output of: {needed}"
    assert "judge takes one file" in only.remedy


@pytest.mark.parametrize(
    "text",
    [
        "hello /there you\n",
        "/dev/sda1 / ext4",
        "/dev/sda1 / ext4 rw,relatime 0 0",
        "/dev/sda1 / ext4 rw,relatime 0 0\n/dev/sdb1 /data ext4 r",
        "/dev/sda1 / ext4 rw,relatime 0\n",
        "/dev/sda1 / ext4 defaults 0 0\n",
        "# comment\n/dev/sda1 / ext4 rw 0 0\n",
        "/dev/sda1 on / type ext4 (rw,relatime)\n",
    ],
)
def test_a_cut_or_foreign_table_of_mounts_is_unknown(text):
    assert judge("mount.readonly", text, now=0.0).status == "unknown"


@pytest.mark.parametrize("device", ["/dev/sda1", "tmpfs", ""])
def test_a_whole_table_of_mounts_is_read_also_where_a_device_has_no_name(device):
    text = f"/dev/sdb2 / ext4 rw 0 0\n{device} /data\\040sets ext4 rw,relatime 0 0\n"
    assert judge("mount.readonly", text, now=0.0).status == "ok"


def test_one_finding_is_one_finding():
    assert describe_judgement(judge("filesystem.bytes", FULL, now=5.0), everything=False).startswith(
        "FAIL: 0 passed, 1 finding, 0 skipped\n"
    )
    assert describe_judgement(judge("filesystem.bytes", FREE, now=5.0), everything=False) == (
        "ok: 1 passed, 0 findings, 0 skipped"
    )
