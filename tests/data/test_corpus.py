import hashlib
import json
import shutil

import pytest

from wholestack.data import Corpus
from wholestack.data.corpus import sealed
from wholestack.errors import DataError, InputError


@pytest.fixture
def copy(corpus, tmp_path):
    """A corpus of one's own, to damage."""
    shutil.copytree(corpus.folder, tmp_path / "copy")
    return Corpus.open(tmp_path / "copy")


def damage(path, at=10):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_every_document_comes_back_with_its_text(corpus, two_sources):
    expected = {(s.name, path): text for s in two_sources for path, text in s.texts.items()}
    found = {(d.source, d.path): d.text for split in ("train", "held_out") for d in corpus.documents(split)}
    assert found == expected


def test_documents_of_one_source_are_its_own(corpus):
    held_out = list(corpus.documents("held_out", "prose"))
    assert held_out
    assert {each.source for each in held_out} == {"prose"}
    assert {each.id for each in held_out}.isdisjoint(each.id for each in corpus.documents("train"))


def test_where_names_the_document_of_every_token(corpus):
    for source in corpus.sources:
        tokens = corpus.tokens("train", source)
        for entry in [each for each in corpus.ledger if each.source == source and each.split == "train"][::7]:
            last = entry.first_token + entry.tokens - 1
            assert corpus.where(source, "train", entry.first_token) == entry
            assert corpus.where(source, "train", last) == entry
            text = corpus.tokenizer.decode_bytes(tokens[entry.first_token : last].tolist())
            assert hashlib.sha256(text).hexdigest() == entry.sha256
            assert tokens[last] == corpus.tokenizer.end_of_document


def test_the_ledger_covers_every_token_once(corpus):
    for source in corpus.sources:
        for split in ("train", "held_out"):
            place = 0
            for entry in corpus.ledger:
                if (entry.source, entry.split) == (source, split):
                    assert entry.first_token == place
                    place += entry.tokens
            assert place == len(corpus.tokens(split, source)) == len(corpus.stream(split, source))


@pytest.mark.parametrize(("source", "split", "token"), [("code", "train", 10**9), ("code", "train", -1)])
def test_a_token_that_is_not_there_is_an_error(corpus, source, split, token):
    with pytest.raises(InputError, match="it holds"):
        corpus.where(source, split, token)


def test_unknown_sources_and_splits_name_the_known(corpus):
    with pytest.raises(InputError, match="known are: code, prose"):
        corpus.where("cod", "train", 0)
    with pytest.raises(InputError, match="train, held_out"):
        corpus.tokens("test", "code")
    with pytest.raises(InputError, match="known are: code, prose"):
        list(corpus.documents("train", "cod"))


def test_not_from_lists_exactly_the_others(corpus):
    assert corpus.not_from(["code", "prose"]) == []
    others = corpus.not_from(["code"])
    assert len(others) == 60
    assert {each.source for each in others} == {"prose"}
    assert len(corpus.not_from([])) == len(corpus.ledger) == 120


def test_an_intact_corpus_verifies(corpus):
    (found,) = corpus.verify()
    assert (found.check, found.status) == ("data.shard", "ok")


def test_one_flipped_bit_names_the_shard_and_no_other(copy):
    shard = copy.manifest.shards[0]
    damage(copy.folder / shard.file)
    (found,) = copy.verify()
    assert (found.subject, found.check, found.status) == (shard.file, "data.shard", "fail")
    assert shard.sha256 in found.evidence[1]
    assert found.remedy
    with pytest.raises(DataError, match="no longer spell"):
        list(copy.documents(shard.split, shard.source))


def test_a_missing_shard_is_a_failure_and_an_unreadable_one_is_unknown(copy):
    first, second = copy.manifest.shards[:2]
    (copy.folder / first.file).unlink()
    (copy.folder / second.file).unlink()
    (copy.folder / second.file).mkdir()
    found = {each.subject: each.status for each in copy.verify()}
    assert found == {first.file: "fail", second.file: "unknown"}


@pytest.mark.parametrize("name", ["ledger.jsonl", "tokenizer.json", "refused.jsonl"])
def test_a_changed_file_is_named(copy, name):
    (copy.folder / name).write_bytes((copy.folder / name).read_bytes() + b"\n")
    assert [(each.subject, each.check) for each in copy.verify()] == [(name, "data.file")]


def test_a_ledger_that_was_tampered_with_answers_nothing(copy):
    path = copy.folder / "ledger.jsonl"
    path.write_text(path.read_text().replace('"MIT"', '"CC0-1.0"'))
    with pytest.raises(DataError, match=r"ledger\.jsonl"):
        copy.where("code", "train", 0)


def test_another_tokenizer_is_refused(copy):
    path = copy.folder / "tokenizer.json"
    stored = json.loads(path.read_text())
    stored["merges"].pop()
    path.write_text(json.dumps(stored))
    with pytest.raises(DataError, match=r"tokenizer\.json"):
        _ = copy.tokenizer


def test_a_manifest_that_was_edited_is_refused(copy):
    path = copy.folder / "manifest.json"
    path.write_text(path.read_text().replace('"licence": "MIT', '"licence": "Any'))
    with pytest.raises(DataError, match="its own digest"):
        Corpus.open(copy.folder)


def test_the_digest_does_not_depend_on_versions_or_place(corpus, copy):
    assert copy.manifest.digest == corpus.manifest.digest == sealed(corpus.manifest)
    assert str(corpus.folder) not in (corpus.folder / "manifest.json").read_text()


def test_a_folder_without_a_corpus_is_one_clear_error(tmp_path):
    with pytest.raises(DataError, match=r"no corpus.*prepare it first"):
        Corpus.open(tmp_path)
