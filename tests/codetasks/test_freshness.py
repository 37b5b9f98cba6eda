"""Whether programs stand in training text."""

import os

import msgspec
import pytest

from wholestack.codetasks.freshness import freshness, freshness_findings
from wholestack.codetasks.item import item_line
from wholestack.data.build import prepare
from wholestack.data.folder import MemorySource
from wholestack.data.training_text import Text, Unread, training_texts
from wholestack.errors import InputError


@pytest.fixture(scope="module")
def some(items):
    """Hard ones: the programs are long enough to be their own."""
    return [item for item in items if item.difficulty >= 8][:40]


def test_other_text_holds_none(some):
    found = freshness(some, [Text("a", "def add(a, b):\n    return a + b\n" * 50), Text("b", "Nothing to see here.")])
    assert (found.items, found.documents, found.seen) == (40, 2, ())


def test_a_program_word_for_word_is_exact_wherever_it_stands(some):
    text = "Some words before.\n\n" + some[3].program + "\nand words after it " * 200
    found = freshness(some, [Text("x", "nothing"), Text("y", text)])
    exact = [each for each in found.seen if each.match == "exact"]
    assert [(each.item, each.place) for each in exact] == [(some[3].id, "y")]


def test_a_program_with_other_spaces_and_case_is_near(some):
    text = " ".join(some[0].program.upper().split())
    seen = {each.item: each for each in freshness(some, [Text("x", text)]).seen}
    assert seen[some[0].id].match == "near"
    assert seen[some[0].id].share > 0.9


def test_an_exact_place_stands_although_a_nearer_one_follows(some):
    twice = [Text("first", some[0].program), Text("second", some[0].program + "\n" + some[1].program)]
    seen = {each.item: each for each in freshness(some, twice).seen}
    assert (seen[some[0].id].place, seen[some[0].id].match) == ("first", "exact")


def test_json_lines_are_read_for_all_their_texts(some, tmp_path):
    path = tmp_path / "train.jsonl"
    path.write_bytes(b"".join(item_line(item) for item in some) + b"not json\n\n")
    found = freshness(some, training_texts(path))
    assert {each.item for each in found.seen if each.match == "exact"} == {item.id for item in some}
    assert found.unread == 1
    assert found.first_unread[0].place.endswith(":41")


def test_a_long_file_is_read_in_pieces_that_cut_no_program(some, tmp_path):
    block = "x" * 1000 + "\n"
    for shift in (0, 300, 700):
        before = ((1 << 20) - shift) // len(block)
        (tmp_path / f"{shift}.txt").write_text(block * before + some[shift // 300].program + block * 2000)
    found = freshness(some, training_texts(tmp_path))
    exact = {each.item for each in found.seen if each.match == "exact"}
    assert exact == {some[place].id for place in (0, 1, 2)}


def test_what_is_no_text_is_unread_and_makes_the_answer_unknown(some, tmp_path):
    (tmp_path / "shard.bin").write_bytes(bytes(1000))
    found = freshness(some, training_texts(tmp_path))
    assert found.unread == 1
    (finding,) = freshness_findings(tmp_path / "items.jsonl", found)
    assert finding.status == "unknown"
    assert "shard.bin" in finding.evidence[1]


def test_a_corpus_of_ours_is_read_from_its_shards(some, tmp_path):
    documents = {f"{n}.py": f"value_{n} = {n}\n" * 30 for n in range(40)} | {"a.py": some[5].program + "\n# more\n" * 5}
    corpus = tmp_path / "data"
    prepare([MemorySource("mine", documents, given="MIT")], corpus, vocab_size=300, seed=1, held_out_fraction=0.0)
    for place in (tmp_path, corpus):
        seen = freshness(some, training_texts(place)).seen
        assert [each.item for each in seen if each.match == "exact"] == [some[5].id]


def test_places_that_are_not_there_or_empty_are_refused(tmp_path):
    with pytest.raises(InputError, match="is not there"):
        training_texts(tmp_path / "none")
    with pytest.raises(InputError, match="no file"):
        training_texts(tmp_path)


def test_findings_are_worst_for_exact_ones(some):
    found = freshness(some, [Text("x", some[0].program), Unread("y", "torn")])
    statuses = [each.status for each in freshness_findings("items.jsonl", found)]
    assert statuses[0] == "fail"
    assert statuses[-1] == "unknown"


def test_programs_within_json_of_any_shape_are_found(some, tmp_path):
    rows = [msgspec.json.decode(item_line(item)) for item in some[:5]]
    files = {
        "array.json": msgspec.json.encode(rows),
        "lines.txt": b"".join(map(item_line, some[:5])),
        "lines.JSONL": b"".join(map(item_line, some[:5])),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        seen = freshness(some, training_texts(tmp_path / name)).seen
        assert {each.item for each in seen if each.match == "exact"} == {item.id for item in some[:5]}, name


def test_hidden_files_count_and_what_is_no_plain_file_is_unread(some, tmp_path):
    (tmp_path / ".shards").mkdir()
    (tmp_path / ".shards" / "t.txt").write_text(some[0].program)
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.jsonl")
    found = freshness(some, training_texts(tmp_path))
    assert [each.item for each in found.seen if each.match == "exact"] == [some[0].id]
    assert found.unread == 2
