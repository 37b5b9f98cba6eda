"""Training text from files: packed, broken, binary, being written; each document or a reason."""

import bz2
import gzip
import json
import lzma
import os

import pytest

from wholestack.data import training_text as module
from wholestack.data.training_text import Text, Unread, texts_of, training_texts
from wholestack.errors import InputError

LINES = "".join(json.dumps({"text": f"document {number}", "meta": {"more": "told"}}) + "\n" for number in range(3))


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.jsonl", bytes), ("a.jsonl.gz", gzip.compress), ("a.ndjson.bz2", bz2.compress), ("a.JSONL.XZ", lzma.compress)],
)
def test_json_lines_are_read_packed_or_not(tmp_path, name, pack):
    path = tmp_path / name
    path.write_bytes(pack(LINES.encode()))
    assert list(training_texts(tmp_path)) == [
        Text(f"{path}:{number}", f"document {number - 1}\ntold") for number in (1, 2, 3)
    ]


def test_plain_text_is_read_packed_and_in_pieces_that_overlap(tmp_path):
    text = "".join(f"word{number} " for number in range(200_000))
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    pieces = [each.text for each in training_texts(path)]
    assert len(pieces) > 1
    assert pieces[0] + "".join(each[module._OVERLAP_BYTES :] for each in pieces[1:]) == text


@pytest.mark.parametrize("cut", [1, 30])
def test_a_packed_file_that_is_cut_off_gives_what_it_has_and_says_so(tmp_path, cut):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(os.urandom(64).hex().encode() + b"\n" + LINES.encode())[:-cut])
    *_, last = training_texts(path)
    assert isinstance(last, Unread)
    assert last.place == str(path)
    assert "cannot be read to its end" in last.reason


def test_what_is_not_what_its_name_says_is_named(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_text("no gzip")
    assert [type(each) for each in training_texts(path)] == [Unread]
    path = tmp_path / "b.txt"
    path.write_bytes(b"text\0text")
    assert list(training_texts(path)) == [Unread(str(path), "holds zero bytes: is no text")]


def test_zst_is_read_or_says_what_is_missing(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    monkeypatch.setattr(module.importlib, "import_module", _missing)
    [found] = training_texts(path)
    assert isinstance(found, Unread)
    assert "pip install zstandard" in found.reason


def _missing(name):
    raise ImportError(name)


def test_a_file_that_grows_while_it_is_read_is_told(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(LINES)
    texts = texts_of([path])
    first = next(texts)
    with path.open("a") as file:
        file.write(LINES)
    rest = list(texts)
    assert isinstance(first, Text)
    assert isinstance(rest[-1], Unread)
    assert "changed while it was read" in rest[-1].reason


def test_no_place_and_no_file_are_one_clear_line(tmp_path):
    with pytest.raises(InputError, match="is not there"):
        training_texts(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no file in it"):
        training_texts(tmp_path)
