import json
import os
import subprocess

import pytest

from wholestack.data import FolderSource, JsonLinesSource, MemorySource, Refusal, SourceDocument
from wholestack.data.folder import decode, read_text, walk
from wholestack.errors import InputError
from wholestack.testing.sources import broken_rules


def split(source) -> tuple[dict[str, SourceDocument], dict[str, Refusal]]:
    found = list(source.documents())
    return (
        {each.path: each for each in found if isinstance(each, SourceDocument)},
        {each.path: each for each in found if isinstance(each, Refusal)},
    )


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "notes"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("Some text.\n")
    (root / "sub" / "b.md").write_text("Other text, café.\n")
    return root


def test_a_given_licence_holds_for_every_file(folder):
    kept, refused = split(FolderSource(folder, given="CC0-1.0"))
    assert {path: each.licence for path, each in kept.items()} == {"a.txt": "CC0-1.0", "sub/b.md": "CC0-1.0"}
    assert kept["sub/b.md"].text == "Other text, café.\n"
    assert not refused


def test_without_any_licence_each_file_is_refused_by_name(folder):
    kept, refused = split(FolderSource(folder))
    assert not kept
    assert {path: each.reason for path, each in refused.items()} == {"a.txt": "no_licence", "sub/b.md": "no_licence"}


def test_the_nearest_licence_file_decides_and_an_unknown_one_refuses(folder):
    (folder / "LICENSE").write_text("SPDX-License-Identifier: MIT\n")
    (folder / "sub" / "COPYING").write_text("You may look at it on Sundays.\n")
    (folder / "sub" / "own.txt").write_text("# SPDX-License-Identifier: 0BSD\nhello\n")
    source = FolderSource(folder)
    kept, refused = split(source)
    assert {path: each.licence for path, each in kept.items()} == {"a.txt": "MIT", "sub/own.txt": "0BSD"}
    assert refused["sub/b.md"].reason == "no_licence"
    assert "sub/COPYING" in refused["sub/b.md"].detail
    assert refused["LICENSE"].reason == "left_out"
    assert source.licence == "MIT, read from LICENSE"


def test_what_is_no_utf8_text_is_named_with_what_was_seen(folder):
    (folder / "latin.txt").write_bytes("café".encode("latin-1"))
    (folder / "bin").write_bytes(b"MZ\0\0")
    (folder / "utf16.txt").write_bytes("hello".encode("utf-16"))
    _, refused = split(FolderSource(folder, given="MIT"))
    assert {path: each.reason for path, each in refused.items()} == {
        "bin": "binary",
        "latin.txt": "not_utf8",
        "utf16.txt": "binary",
    }
    assert refused["latin.txt"].detail == "byte 0xe9 at 3"


def test_links_pipes_and_large_files_are_refused_and_not_followed(folder, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "elsewhere").mkdir()
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "link-folder").symlink_to(tmp_path / "elsewhere")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    (folder / "large.txt").write_text("x" * 101)
    kept, refused = split(FolderSource(folder, given="MIT", largest_bytes=100))
    assert set(kept) == {"a.txt", "sub/b.md"}
    assert {path: each.reason for path, each in refused.items()} == {
        "link.txt": "outside",
        "link-folder": "outside",
        "loop": "outside",
        "pipe": "outside",
        "large.txt": "too_large",
    }


def test_a_name_that_is_not_utf8_is_spelt_out(folder):
    with open(os.fsencode(folder) + b"/\xff.txt", "w") as file:
        file.write("text")
    kept, _ = split(FolderSource(folder, given="MIT"))
    assert "\\xff.txt" in kept


def test_hidden_files_are_a_tools_and_not_an_authors(folder):
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("text")
    assert set(split(FolderSource(folder, given="MIT"))[0]) == {"a.txt", "sub/b.md"}


def test_endings_select(folder):
    assert set(split(FolderSource(folder, given="MIT", suffixes=(".md",)))[0]) == {"sub/b.md"}
    with pytest.raises(InputError, match=r"no file ending in \.rst"):
        list(FolderSource(folder, given="MIT", suffixes=(".rst",)).documents())


def test_an_empty_folder_is_one_clear_error(tmp_path):
    with pytest.raises(InputError, match="no file in it"):
        list(FolderSource(tmp_path, "notes", "MIT").documents())
    with pytest.raises(InputError, match="not a folder"):
        FolderSource(tmp_path / "missing")
    with pytest.raises(InputError, match="not a licence"):
        FolderSource(tmp_path, given="unknown")


def test_more_text_than_the_cap_is_an_error_and_not_a_truncation(folder):
    with pytest.raises(InputError, match="more than 15 bytes"):
        list(FolderSource(folder, given="MIT", largest_total_bytes=15).documents())


def test_the_order_is_that_of_the_names(tmp_path):
    for name in ("b", "a/z", "a/b", "c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [path.relative_to(tmp_path).as_posix() for path in walk(tmp_path)] == ["a/b", "a/z", "b", "c"]


def test_a_deep_folder_does_not_exhaust_the_stack(tmp_path):
    deep = tmp_path / "deep"
    deep.mkdir()
    try:
        path = deep
        for _ in range(1200):
            path = path / "d"
            path.mkdir()
        assert list(walk(deep)) == []
    finally:  # the cleaning of pytest is recursive
        subprocess.run(["rm", "-rf", str(deep)], check=True)


def test_a_byte_order_mark_is_no_text():
    assert decode(b"\xef\xbb\xbfhello") == "hello"


def test_a_file_that_went_away_is_unreadable(tmp_path):
    assert read_text(tmp_path / "gone") == ("unreadable", "No such file or directory")


def lines(tmp_path, *rows) -> JsonLinesSource:
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows))
    return JsonLinesSource(file)


def test_rows_with_text_and_licence_are_documents_and_other_fields_are_ignored(tmp_path):
    source = lines(
        tmp_path,
        {"text": "One.", "licence": "MIT", "path": "x/y.txt", "score": 3},
        {"text": "Two.", "license": "CC0-1.0", "id": 7},
        {"text": "Three.", "licence": "MIT"},
    )
    kept, refused = split(source)
    assert {path: (each.text, each.licence) for path, each in kept.items()} == {
        "line 1 (x/y.txt)": ("One.", "MIT"),
        "line 2 (7)": ("Two.", "CC0-1.0"),
        "line 3": ("Three.", "MIT"),
    }
    assert not refused
    assert source.name == "rows"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"text": "x"}, "no_licence"),
        ({"text": "x", "licence": "unknown"}, "no_licence"),
        ({"text": "x", "licence": 5}, "no_licence"),
        ({"licence": "MIT"}, "malformed"),
        ({"text": 5, "licence": "MIT"}, "malformed"),
        (["text"], "malformed"),
        (b"{not json", "malformed"),
        (b'{"text": "\\ud800", "licence": "MIT"}', "malformed"),
        (b'{"a":' * 3000 + b"1" + b"}" * 3000, "malformed"),
        (b'{"text": "caf\xe9", "licence": "MIT"}', "not_utf8"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_by_its_line(tmp_path, row, reason):
    kept, refused = split(lines(tmp_path, {"text": "Good.", "licence": "MIT"}, row))
    assert len(kept) == 1
    assert [(path, each.reason) for path, each in refused.items()] == [("line 2", reason)]


def test_a_line_above_the_cap_is_refused_and_the_next_is_read(tmp_path):
    rows = [{"text": "x" * 300, "licence": "MIT"}, {"text": "short", "licence": "MIT"}]
    source = JsonLinesSource(lines(tmp_path, *rows).file, largest_bytes=100)
    kept, refused = split(source)
    assert [each.text for each in kept.values()] == ["short"]
    assert refused["line 1"].reason == "too_large"


def test_an_empty_or_missing_file_is_one_clear_error(tmp_path):
    with pytest.raises(InputError, match="no line"):
        list(lines(tmp_path).documents())
    with pytest.raises(InputError, match="not a file"):
        JsonLinesSource(tmp_path / "missing.jsonl")


def test_memory_without_a_licence_is_refused_by_name():
    kept, refused = split(MemorySource("m", {"a": "text", "b": "text"}))
    assert not kept
    assert set(refused) == {"a", "b"}
    with pytest.raises(InputError, match="empty"):
        list(MemorySource("m", {}).documents())


def test_all_of_them_keep_the_rules_of_a_source(folder, tmp_path):
    (folder / "bin").write_bytes(b"\0")
    assert broken_rules(lambda: FolderSource(folder, given="MIT")) == []
    rows = lines(tmp_path, {"text": "x", "licence": "MIT"}, {"text": "y"})
    assert broken_rules(lambda: JsonLinesSource(rows.file)) == []
    assert broken_rules(lambda: MemorySource("m", {"a": "x"}, given="MIT")) == []
