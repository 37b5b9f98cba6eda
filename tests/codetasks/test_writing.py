"""A file in the making: who may write it, what is left of it, and what is said when it cannot be written."""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wholestack.codetasks.writing import new_file, write_new
from wholestack.errors import InputError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "items.jsonl"


@pytest.fixture
def left(tmp_path: Path) -> Path:
    return tmp_path / ".items.jsonl.tmp"


@pytest.fixture
def before_lock(monkeypatch):
    """Something that happens once, between the opening of the next file in the making and its lock."""

    def arrange(happens) -> None:
        once, real = [happens], fcntl.flock

        def flock(file, operation):
            if once:
                once.pop()()
            real(file, operation)

        monkeypatch.setattr("fcntl.flock", flock)

    return arrange


def test_a_file_that_appears_before_we_have_its_lock_is_not_written_to(path, left, before_lock):
    first = new_file(path, resumable=True)
    first.__enter__().write(b"whole\n")
    before_lock(lambda: first.__exit__(None, None, None))
    with pytest.raises(InputError, match=r"items\.jsonl: exists"), new_file(path, resumable=True) as file:
        file.cut(0)
    assert path.read_bytes() == b"whole\n"
    assert not left.exists()


def test_a_file_that_is_removed_before_we_have_its_lock_is_made_anew(path, before_lock):
    first = new_file(path)
    first.__enter__().write(b"half")

    before_lock(lambda: first.__exit__(InputError, InputError("a line cannot be made"), None))
    with new_file(path, resumable=True) as file:
        file.cut(0)
        file.write(b"whole\n")
        with pytest.raises(InputError, match="another process is writing"), new_file(path, resumable=True):
            pass
    assert path.read_bytes() == b"whole\n"


def test_what_took_the_hidden_name_meanwhile_does_not_appear(path, left):
    with pytest.raises(InputError, match=r"\.items\.jsonl\.tmp: was removed or replaced"), new_file(path) as file:
        file.write(b"ours\n")
        left.unlink()
        left.write_bytes(b"half of another's")
    assert not path.exists()
    assert left.read_bytes() == b"half of another's"


@pytest.mark.parametrize("error", [InputError("a cell is used up"), KeyboardInterrupt(), RuntimeError()])
def test_whatever_ends_it_what_was_written_is_gone_on_with(path, left, error):
    with pytest.raises(type(error)), new_file(path, resumable=True) as file:
        file.write(b"1\n2\n")
        raise error
    assert left.read_bytes() == b"1\n2\n"
    with new_file(path, resumable=True) as file:
        assert list(file.kept_lines(100)) == [b"1\n", b"2\n"]
        assert file.cut(2) == 1
        file.write(b"3\n")
    assert path.read_bytes() == b"1\n3\n"
    assert not left.exists()


def test_where_nothing_was_written_nothing_is_left(path, left):
    with pytest.raises(InputError), new_file(path, resumable=True):
        raise InputError("at once")
    assert not left.exists()


def test_a_line_that_was_written_is_there_though_the_process_is_killed(path, left):
    program = (
        "import os, sys; from pathlib import Path; from wholestack.codetasks.writing import new_file\n"
        "with new_file(Path(sys.argv[1]), resumable=True) as file:\n"
        "    file.write(b'1\\n'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program, path], check=False, timeout=60).returncode == -9
    assert left.read_bytes() == b"1\n"


def test_what_is_made_when_somebody_takes_the_name_is_left(path, left):
    with pytest.raises(InputError, match=r"items\.jsonl: exists"), new_file(path, resumable=True) as file:
        file.write(b"ours\n")
        path.write_bytes(b"theirs")
    assert (path.read_bytes(), left.read_bytes()) == (b"theirs", b"ours\n")


def test_a_full_disk_is_named_and_takes_nothing_away():
    if shutil.which("bwrap") is None:
        pytest.skip("a small file system of one's own takes bubblewrap")
    program = """
from pathlib import Path
from wholestack.codetasks.writing import new_file
from wholestack.errors import InputError
for resumable in (True, False):
    try:
        with new_file(Path("/mnt/f"), resumable=resumable) as file:
            file.cut(0)
            for _ in range(1000):
                file.write(b"x" * 999 + b"\\n")
    except InputError as error:
        print(error)
    left = Path("/mnt/.f.tmp")
    print(left.read_bytes().count(b"\\n") if left.exists() else "nothing")
"""
    small = ["bwrap", "--dev-bind", "/", "/", "--size", "65536", "--tmpfs", "/mnt"]
    command = [*small, sys.executable, "-c", program]
    said = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert said.stdout.splitlines() == [
        "/mnt/.f.tmp: cannot be written: No space left on device (free space, then the same command goes on)",
        "65",
        "/mnt/.f.tmp: cannot be written: No space left on device (free space, then run the same command again)",
        "nothing",
    ]


@pytest.mark.parametrize("refusal", [errno.EPERM, errno.EOPNOTSUPP])
def test_where_a_file_has_one_name_only_it_appears_and_takes_nobodys_place(path, left, monkeypatch, refusal):
    def link(*_) -> None:
        raise OSError(refusal, os.strerror(refusal))

    monkeypatch.setattr("os.link", link)
    write_new(path, [b"whole\n"])
    assert path.read_bytes() == b"whole\n"
    other = path.with_name("other")
    with pytest.raises(InputError, match="other: exists"), new_file(other) as file:
        file.write(b"ours\n")
        other.write_bytes(b"theirs")
    assert other.read_bytes() == b"theirs"
    assert sorted(each.name for each in path.parent.iterdir()) == ["items.jsonl", "other"]


def test_a_name_that_cannot_be_given_keeps_the_lines(path, left, monkeypatch):
    def link(*_) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("os.link", link)
    with pytest.raises(InputError, match="goes on"), new_file(path, resumable=True) as file:
        file.write(b"1\n")
    assert left.read_bytes() == b"1\n"


@pytest.mark.parametrize("strange", ["pipe", "link", "folder"])
def test_what_is_no_file_at_the_hidden_name_is_named_and_left_alone(path, left, strange):
    {"pipe": os.mkfifo, "link": lambda at: at.symlink_to("elsewhere"), "folder": Path.mkdir}[strange](left)
    with pytest.raises(InputError, match=r"\.items\.jsonl\.tmp: is no ordinary file.*remove it, or name another"):
        write_new(path, [b"1\n"])
    assert os.listdir(path.parent) == [left.name]


def test_a_folder_that_is_not_there_is_said_of_the_file_that_was_asked_for(path):
    with pytest.raises(InputError, match=r"none/items\.jsonl: cannot be written: No such file.*folder of yours"):
        write_new(path.parent / "none" / path.name, [b"1\n"])
