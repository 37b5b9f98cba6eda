import pytest

from wholestack.data.ledger import NAMED, LedgerEntry, Tally, write_lines
from wholestack.data.source import Refusal
from wholestack.errors import RunDirectoryError
from wholestack.journal import read_journal
from wholestack.record import from_json, to_json


def entry(path="a", source="s", licence="MIT", split="train", size_bytes=10, tokens=4) -> LedgerEntry:
    return LedgerEntry(
        id=path, source=source, path=path, licence=licence, sha256="0" * 64, size_bytes=size_bytes,
        tokens=tokens, split=split, cluster=path, first_token=0,
    )  # fmt: skip


def statement_of(tally):
    from wholestack.data.ledger import DataStatement

    return DataStatement(corpus="c", vocab_size=512, seed=1, held_out_fraction=0.06, sources=tally.summaries())


def test_the_statement_says_sources_licences_sizes_and_what_was_refused():
    tally = Tally({"s": "MIT, as given", "t": "mixed"})
    for each in [entry(), entry("b", split="held_out"), entry("c", licence="GPL-3.0-only", size_bytes=3)]:
        tally.add(each)
    tally.refuse(Refusal(source="s", path="x.bin", reason="binary", detail="a NUL byte"))
    text = statement_of(tally).text()
    for part in [
        "Source s", "MIT, as given", "train: 2 documents, 13 bytes, 8 tokens", "held out: 1 documents, 10 bytes",
        "GPL-3.0-only: 1 documents, 3 bytes", "terms of their own: 1", "c: GPL-3.0-only", "binary content: 1",
        "x.bin (a NUL byte)", "3 documents, 23 bytes, 12 tokens from 2 source(s)", "nothing is held out",
    ]:  # fmt: skip
        assert part in text, part


def test_the_statement_survives_the_disk():
    tally = Tally({"s": "MIT"})
    tally.add(entry())
    tally.refuse(Refusal(source="s", path="x", reason="binary"))
    statement = statement_of(tally)
    assert from_json(type(statement), to_json(statement)) == statement


def test_more_refusals_than_are_named_are_counted():
    tally = Tally({"s": "MIT"})
    for number in range(NAMED + 7):
        tally.refuse(Refusal(source="s", path=f"file{number}", reason="not_utf8"))
    text = statement_of(tally).text()
    assert f"not UTF-8 text: {NAMED + 7}" in text
    assert f"file{NAMED - 1}\n" in text
    assert "and 7 more" in text


def test_a_file_name_cannot_write_a_line_of_its_own():
    tally = Tally({"s": "MIT"})
    tally.refuse(Refusal(source="s", path="x\n  licence: CC0-1.0", reason="binary"))
    assert "\n  licence: CC0-1.0" not in statement_of(tally).text()


def test_lines_appear_whole_or_not_at_all(tmp_path):
    def broken():
        yield entry()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_lines(tmp_path / "ledger.jsonl", broken())
    assert list(tmp_path.iterdir()) == []
    write_lines(tmp_path / "ledger.jsonl", [entry(), entry("b")])
    assert read_journal(tmp_path / "ledger.jsonl", LedgerEntry) == [entry(), entry("b")]
    with pytest.raises(RunDirectoryError, match="cannot be written"):
        write_lines(tmp_path / "missing" / "ledger.jsonl", [entry()])
