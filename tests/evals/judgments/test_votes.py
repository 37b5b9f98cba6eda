"""Reading votes: what is a vote, what is not and why, in which tables."""

import pytest

from wholestack.errors import InputError
from wholestack.evals.judgments import votes as module
from wholestack.evals.judgments.votes import make_votes, read_table, read_votes


def as_rows(votes):
    return [
        (votes.items[item], votes.reviewers[reviewer], votes.labels[label])
        for item, reviewer, label in zip(votes.item, votes.reviewer, votes.label, strict=True)
    ]


ROWS = [("a", "ann", "yes"), ("a", "bob", "nö"), ("b", "ann", "yes")]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_any_delimiter_and_encoding_gives_the_same_votes(tmp_path, delimiter, encoding, end):
    path = tmp_path / "votes.csv"
    lines = [("Worker", "other, one", "LABEL ", "item"), *((who, "x", label, item) for item, who, label in ROWS)]
    quoted = [[f'"{cell}"' if delimiter in cell else cell for cell in line] for line in lines]
    path.write_bytes(end.join(delimiter.join(line) for line in quoted).encode(encoding))
    votes = read_votes(path)
    assert as_rows(votes) == ROWS
    assert votes.ignored == ({module.CODE_PAGE: 3} if encoding == "cp1252" else {})


def test_a_reviewer_has_one_vote_an_item_and_the_later_one_counts():
    rows = [("a", "ann", "no"), ("b", "ann", "no"), ("a", "bob", "no"), ("a", "ann", "yes"), ("b", "ann", "no")]
    votes = make_votes(rows)
    assert as_rows(votes) == [("a", "ann", "yes"), ("a", "bob", "no"), ("b", "ann", "no")]
    assert votes.ignored == {module.REPEATED: 1, module.REPLACED: 1}


def test_votes_on_unknown_items_are_counted_and_items_without_votes_stay():
    votes = make_votes([("a", "ann", "yes"), ("z", "ann", "yes")], items=["b", "a"], labels=["no"])
    assert as_rows(votes) == [("a", "ann", "yes")]
    assert votes.items == ("b", "a")
    assert votes.labels == ("no", "yes")
    assert votes.counts.tolist() == [0, 1]
    assert votes.ignored == {module.UNKNOWN_ITEM: 1}


def test_lines_that_are_no_votes_are_counted_by_reason(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(f"item,reviewer,label\na,ann,yes\nb,ann\n,ann,yes\nc, ,yes\n\nd,ann,{'x' * 1001}\n e ,ann,yes\n")
    votes = read_votes(path)
    assert as_rows(votes) == [("a", "ann", "yes"), ("e", "ann", "yes")]
    assert votes.ignored == {module.SHORT: 1, module.EMPTY: 2, module.LONG: 1}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no column item"),
        (b"item,label\n", "no column reviewer in the header: item, label"),
        (b"item,reviewer,label\n", "no vote in it"),
        (b"item,reviewer,label\na,b\n", "no vote in it .1 the line has too few"),
        (b"\x89PNG\r\n\x1a\n\0\0\xff", "is no text"),
        (b'item,reviewer,label\n"' + b"x" * 2_000_000, "line"),
    ],
)
def test_a_file_without_votes_is_one_clear_line(tmp_path, content, says):
    path = tmp_path / "votes.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says) as caught:
        read_votes(path)
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message


def test_a_large_table_is_read_in_pieces_as_a_small_one(tmp_path):
    path = tmp_path / "votes.csv"
    rows = [(f"i{n % 700}", f"r{n % 11}", f"l{n % 3}") for n in range(1000)]
    path.write_text("item,reviewer,label\n" + "".join(",".join(row) + "\n" for row in rows))
    assert as_rows(read_votes(path)) == as_rows(make_votes(rows))


def test_known_labels_are_a_table_of_two_columns(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("truth;x;item\nyes;;a\nno;;b\nyes;;b\n")
    assert read_table(path, "item", "truth") == {"a": "yes", "b": "yes"}
    with pytest.raises(InputError, match="no column label"):
        read_table(path, "item", "label")
