"""Journals: cut at any byte they lose nothing acknowledged; damage is named; a full disk leaves them as they were."""

import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import RecordError, RunDirectoryError
from wholestack.journal import JournalWriter, read_journal, write_atomic, write_pieces
from wholestack.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(Record):
    SCHEMA: ClassVar[str] = "line/1"

    number: int
    text: str = ""


def write(path: Path, lines: list[Line]) -> None:
    with JournalWriter(path, Line) as writer:
        for line in lines:
            writer.append(line)


@given(texts=st.lists(st.text(), min_size=1, max_size=5), data=st.data())
def test_cut_at_any_byte_it_keeps_every_whole_line_and_goes_on(tmp_path_factory, texts: list[str], data) -> None:
    path = tmp_path_factory.mktemp("journal") / "j.jsonl"
    lines = [Line(number=index, text=text) for index, text in enumerate(texts)]
    write(path, lines)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    kept = lines[: whole[:cut].count(b"\n")]
    assert read_journal(path, Line) == kept
    write(path, [Line(number=99)])
    assert read_journal(path, Line) == [*kept, Line(number=99)]


def test_several_records_at_once_are_the_same_lines_and_one_of_another_class_writes_none(tmp_path: Path) -> None:
    lines = [Line(number=index, text="\n" * index) for index in range(4)]
    write(tmp_path / "single.jsonl", lines)
    with JournalWriter(tmp_path / "shared.jsonl", Line) as writer:
        writer.extend(lines[:1])
        writer.extend(())
        writer.extend(lines[1:])
        with pytest.raises(TypeError):
            writer.extend([lines[0], Record()])  # type: ignore[list-item]  # the very mistake
    assert (tmp_path / "shared.jsonl").read_bytes() == (tmp_path / "single.jsonl").read_bytes()


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    write(path, [Line(number=index) for index in range(3)])
    path.write_bytes(path.read_bytes().replace(b'"number":1', b'"nmuber":1'))
    with pytest.raises(RecordError, match=r"j\.jsonl:2"):
        read_journal(path, Line)


def test_a_missing_journal_is_empty_and_another_class_is_refused(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "none.jsonl", Line) == []
    with JournalWriter(tmp_path / "j.jsonl", Line) as writer, pytest.raises(TypeError, match="Line"):
        writer.append(Record())  # type: ignore[arg-type]


def test_a_long_unfinished_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    write(path, [Line(number=1)])
    with path.open("ab") as file:
        file.write(b"x" * 200_000)
    write(path, [Line(number=2)])
    assert [line.number for line in read_journal(path, Line)] == [1, 2]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB that is ours alone."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a tmpfs")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=False)
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.root
def test_a_full_disk_is_one_clear_error_and_loses_nothing_acknowledged(small_disk: Path) -> None:
    path = small_disk / "j.jsonl"
    acknowledged = 0
    with JournalWriter(path, Line) as writer:
        with pytest.raises(RunDirectoryError, match="free space"):
            while acknowledged < 1000:
                writer.append(Line(number=acknowledged, text="x" * 1000))
                acknowledged += 1
        assert 0 < acknowledged < 64
        assert [line.number for line in read_journal(path, Line)] == list(range(acknowledged))
    with pytest.raises(RunDirectoryError, match="free space"):
        write_atomic(small_disk / "other.json", b"y" * 60_000)
    assert sorted(each.name for each in small_disk.iterdir()) == ["j.jsonl"]


def test_write_atomic_replaces_and_leaves_nothing_beside(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a.json", b"one")
    write_atomic(tmp_path / "a.json", b"two")
    assert (tmp_path / "a.json").read_bytes() == b"two"
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_a_folder_that_does_not_exist_is_an_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="nowhere"):
        JournalWriter(tmp_path / "nowhere" / "j.jsonl", Line)


def test_only_an_ordinary_file_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to-pipe").symlink_to("pipe")
    (tmp_path / "itself").symlink_to("itself")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name, says in (
            ("pipe", "is no ordinary file"),
            ("to-pipe", "is no ordinary file"),
            ("socket", "is no ordinary file"),
            ("/dev/null", "is no ordinary file"),
            (".", "is a folder"),
            ("itself", "cannot be written"),
            ("a\0b", "cannot be written"),
            ("nowhere/a.json", "cannot be written"),
            ("pipe/a.json", "cannot be written"),
        ):
            with pytest.raises(RunDirectoryError, match=says) as caught:
                write_atomic(tmp_path / name, b"one")
            assert "\n" not in str(caught.value)
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
        assert stat.S_ISSOCK((tmp_path / "socket").stat().st_mode)
        assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["itself", "pipe", "socket", "to-pipe"]


def test_of_a_link_the_file_that_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "old.json").write_bytes(b"old")
    for name in ("old", "new"):
        (tmp_path / name).symlink_to(f"inner/{name}.json")
        write_atomic(tmp_path / name, b"written")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "inner" / f"{name}.json").read_bytes() == b"written"


def test_pieces_that_end_in_an_error_leave_the_file_as_it_was(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise ValueError("half a record")

    write_atomic(tmp_path / "a", b"old")
    with pytest.raises(ValueError, match="half a record"):
        write_pieces(tmp_path / "a", pieces())
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"old"]
