"""A named file is ordinary and of bounded size, or one clear line; nothing is waited for."""

import os

import pytest

from wholestack.errors import InputError, WholestackError
from wholestack.evals import reading
from wholestack.evals.backend import ItemScore, Opening
from wholestack.evals.items import make_item, seal_items
from wholestack.evals.loading import load_scored
from wholestack.evals.measured import read_numbers
from wholestack.evals.memory import MemoryBackend, open_memory
from wholestack.evals.reading import read_file
from wholestack.evals.results import score_into
from wholestack.evals.tasks import open_task, pose
from wholestack.evals.written.questions import read_questions
from wholestack.journal import read_journal


def _pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    return tmp_path / "pipe.toml"


READERS = {
    "a file": read_file,
    "items": lambda path: pose(path, open_task("own")),
    "questions": read_questions,
    "a task": lambda path: open_task(str(path)),
    "a table": read_numbers,
    "a text to count": lambda path: open_memory(f"memory:{path}", Opening()),
    "a journal": lambda path: read_journal(path, ItemScore),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_pipe_without_a_writer_is_not_waited_for(reader, tmp_path):
    with pytest.raises(WholestackError, match="no ordinary file"):
        reader(_pipe(tmp_path))


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_device_without_an_end_is_not_read(reader, tmp_path):
    (tmp_path / "link.toml").symlink_to("/dev/zero")
    with pytest.raises(WholestackError, match="no ordinary file"):
        reader(tmp_path / "link.toml")


@pytest.mark.parametrize("name", ["items.jsonl", "manifest.json", "scores.jsonl"])
def test_a_pipe_in_a_result_is_damage(name, tmp_path):
    items = seal_items([make_item("a", ["b", "c"], 0, source="s")], kind="items from a file")
    folder = score_into(MemoryBackend(b""), items, tmp_path).folder
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(WholestackError, match="no ordinary file"):
        load_scored(folder)


def test_a_file_larger_than_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_BYTES", 3)
    (tmp_path / "f").write_bytes(b"1234")
    with pytest.raises(InputError, match="larger than 3 bytes"):
        read_file(tmp_path / "f")


def test_folders_and_missing_files_are_named(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match=f"{path}: cannot be read"):
            read_file(path)


def test_a_file_that_is_written_to_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "items.jsonl"
    path.write_text("one\n")
    inner, looks = os.fstat, []

    def looked(handle):
        found = inner(handle)
        looks.append(found)
        if len(looks) == 2:  # the first is whether it is a file at all, the second is compared with the last
            with path.open("a") as other:
                other.write("two\n")
        return found

    monkeypatch.setattr(os, "fstat", looked)
    with pytest.raises(InputError, match="changed while it was read"):
        read_file(path)
