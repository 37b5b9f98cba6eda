import os
import subprocess
import sys

import pytest

from wholestack.data import Corpus, FolderSource, MemorySource
from wholestack.data.build import prepare
from wholestack.errors import DataError, InputError, RunDirectoryError


def made(folder, sources, **settings):
    return prepare(sources, folder, **{"vocab_size": 256, "seed": 0, **settings})


def test_the_same_inputs_make_the_same_corpus_elsewhere(corpus, two_sources, tmp_path):
    again = prepare(two_sources, tmp_path / "again", vocab_size=300, seed=0)
    assert again.manifest == corpus.manifest


def test_again_in_the_same_folder_nothing_is_written(two_sources, tmp_path):
    first = made(tmp_path / "c", two_sources)
    before = {path: path.stat().st_mtime_ns for path in first.folder.rglob("*")}
    assert made(tmp_path / "c", two_sources).manifest == first.manifest
    assert {path: path.stat().st_mtime_ns for path in first.folder.rglob("*")} == before


@pytest.mark.parametrize("change", [{"seed": 1}, {"vocab_size": 257}, {"held_out_fraction": 0.1}])
def test_other_inputs_do_not_overwrite_a_corpus(two_sources, tmp_path, change):
    made(tmp_path / "c", two_sources)
    with pytest.raises(InputError, match="made from other documents or settings"):
        made(tmp_path / "c", two_sources, **change)
    with pytest.raises(InputError, match="made from other documents or settings"):
        made(tmp_path / "c", two_sources[:1])


def test_a_damaged_corpus_of_the_same_inputs_is_made_again(two_sources, tmp_path):
    first = made(tmp_path / "c", two_sources)
    shard = first.folder / first.manifest.shards[0].file
    shard.write_bytes(b"\0" * shard.stat().st_size)
    assert made(tmp_path / "c", two_sources).verify()[0].status == "ok"
    (tmp_path / "c" / "manifest.json").write_text("{")
    assert made(tmp_path / "c", two_sources).manifest == first.manifest


KILLED = """
import os, signal, sys
from pathlib import Path
from wholestack.data import MemorySource
from wholestack.data.build import prepare
phase, calls, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
texts = {{f"{{i}}": " ".join(f"word{{i}}x{{j}}" for j in range(200)) for i in range(40)}}
def kill(now, done, total):
    global calls
    calls -= now == phase
    if calls < 0:
        os.kill(os.getpid(), signal.SIGKILL)
prepare([MemorySource("m", texts, given="MIT")], folder, vocab_size=260, seed=0, progress={progress})
"""


def killed(phase, calls, folder, progress="kill"):
    program = KILLED.format(progress=progress)
    return subprocess.run([sys.executable, "-c", program, phase, str(calls), str(folder)], check=False).returncode


@pytest.mark.parametrize(("phase", "calls"), [("read", 20), ("compare", 0), ("write", 0), ("write", 39)])
def test_killed_at_any_phase_it_is_no_corpus_and_the_next_try_makes_a_whole_one(tmp_path, phase, calls):
    assert killed(phase, calls, tmp_path / "c") == -9
    with pytest.raises(DataError, match="no corpus"):
        Corpus.open(tmp_path / "c")
    texts = {f"{i}": " ".join(f"word{i}x{j}" for j in range(200)) for i in range(40)}
    sources = [MemorySource("m", texts, given="MIT")]
    again = prepare(sources, tmp_path / "c", vocab_size=260, seed=0)
    assert again.verify()[0].status == "ok"
    assert again.manifest == prepare(sources, tmp_path / "d", vocab_size=260, seed=0).manifest
    left = {path.name for path in (tmp_path / "c").rglob("*") if path.is_file()}
    assert left == {path.name for path in (tmp_path / "d").rglob("*") if path.is_file()}


def test_half_written_files_of_another_try_are_taken_away(two_sources, tmp_path):
    folder = tmp_path / "c"
    (folder / "shards").mkdir(parents=True)
    (folder / "shards" / "old.train.00099.bin").write_bytes(b"xx")
    (folder / ".ledger.jsonl.1.tmp").write_bytes(b"x")
    made(folder, two_sources)
    names = {path.name for path in folder.rglob("*")}
    assert not names & {"old.train.00099.bin", ".ledger.jsonl.1.tmp"}


def test_a_folder_with_something_else_in_it_is_left_alone(two_sources, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match=r"thesis\.txt"):
        made(tmp_path, two_sources)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_that_cannot_be_made_is_one_clear_error(two_sources, tmp_path):
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "c"):
        with pytest.raises(RunDirectoryError, match="cannot be made"):
            made(folder, two_sources)


@pytest.mark.root
@pytest.mark.parametrize("kibibytes", [40, 120, 160])
def test_a_full_disk_is_one_clear_error_and_no_corpus(two_sources, tmp_path, kibibytes):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot mount a small disk here")
    try:
        with pytest.raises(RunDirectoryError, match="cannot be written"):
            made(disk / "c", two_sources)
        with pytest.raises(DataError, match="no corpus"):
            Corpus.open(disk / "c")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"vocab_size": 255}, "vocab_size is 255"),
        ({"held_out_fraction": 0.6}, "held_out_fraction is 0.6"),
        ({"held_out_fraction": float("nan")}, "held_out_fraction is nan"),
    ],
)
def test_settings_out_of_range_are_refused_before_anything_is_made(two_sources, tmp_path, settings, said):
    with pytest.raises(InputError, match=said):
        made(tmp_path / "c", two_sources, **settings)
    assert not (tmp_path / "c").exists()


def test_no_source_and_two_of_one_name_are_refused(two_sources, tmp_path):
    with pytest.raises(InputError, match="no source"):
        made(tmp_path / "c", [])
    with pytest.raises(InputError, match="two sources of one name"):
        made(tmp_path / "c", [two_sources[0], two_sources[0]])


def test_a_source_without_usable_text_says_what_it_had(two_sources, tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.bin").write_bytes(b"\0")
    (notes / "b.txt").write_bytes(b"\xff")
    (notes / "c.txt").write_bytes(b"\xfe")
    source = FolderSource(notes, given="MIT")
    with pytest.raises(InputError, match=r"'notes'.*1 x binary content \(first: a\.bin\); 2 x not UTF-8"):
        made(tmp_path / "c", [*two_sources, source])
    with pytest.raises(InputError, match=r"1 x no licence.*first: x"):
        made(tmp_path / "d", [MemorySource("m", {"x": "text"})])


def test_equal_texts_are_kept_once_and_their_groups_are_joined(texts, tmp_path):
    shared = texts(0)
    documents = {f"{i}": texts(i) for i in range(1, 40)} | {"first": shared}
    groups = {"first": ("A",), "1": ("A",)}
    other = MemorySource("b", {"second": shared, "2b": texts(99)}, given="MIT", groups={"second": ("B",), "2b": ("B",)})
    corpus = made(tmp_path / "c", [MemorySource("a", documents, given="MIT", groups=groups), other])
    assert [(each.path, each.reason) for each in corpus.refused()] == [("second", "duplicate")]
    cluster = {each.path: each.cluster for each in corpus.ledger}
    assert cluster["first"] == cluster["1"] == cluster["2b"]
    assert cluster["2"] != cluster["first"]


@pytest.mark.parametrize("seed", range(5))
def test_planted_near_duplicates_never_straddle_the_split(texts, tmp_path, seed):
    documents = {}
    for i in range(60):
        documents[f"{i}"] = texts(i)
        documents[f"{i}-edited"] = texts(i).replace(" a", " b")[5:] + "and a new end"
    corpus = made(tmp_path / "c", [MemorySource("a", documents, given="MIT")], seed=seed)
    split = {each.path: each.split for each in corpus.ledger}
    assert "held_out" in split.values()
    assert all(split[f"{i}"] == split[f"{i}-edited"] for i in range(60))


def test_the_tokenizer_never_reads_held_out_text(texts, tmp_path):
    marked = {f"{i}": texts(i) for i in range(50)}
    corpus = made(tmp_path / "c", [MemorySource("a", marked, given="MIT")], vocab_size=400)
    held = {each.path for each in corpus.documents("held_out")}
    changed = {path: text.upper() if path in held else text for path, text in marked.items()}
    train_only = {path: text for path, text in changed.items() if path not in held}
    from wholestack.data.bpe import train

    expected = train([train_only[path] for path in train_only], vocab_size=400)
    assert corpus.tokenizer.digest == expected.digest


def test_a_lone_surrogate_is_refused_by_name(texts, tmp_path):
    corpus = made(tmp_path / "c", [MemorySource("a", {"ok": texts(1), "bad": "x\ud800"}, given="MIT")])
    assert [(each.path, each.reason) for each in corpus.refused()] == [("bad", "not_utf8")]


def test_progress_never_goes_back_and_reaches_the_end(two_sources, tmp_path):
    seen = []
    made(tmp_path / "c", two_sources, progress=lambda *now: seen.append(now))
    phases = list(dict.fromkeys(phase for phase, _, _ in seen))
    assert phases == ["read", "compare", "train tokenizer", "write"]
    for phase in phases:
        done = [each for name, each, _ in seen if name == phase]
        assert done == sorted(done)
    assert seen[-1][1] == seen[-1][2]


def test_a_given_tokenizer_cuts_the_text_and_makes_another_corpus(corpus, texts, two_sources, tmp_path):
    new = [MemorySource("letters", {f"l{i}.txt": texts(5000 + i) for i in range(30)}, given="CC0-1.0")]
    made = prepare(new, tmp_path / "given", vocab_size=300, seed=0, tokenizer=corpus.tokenizer)
    assert made.manifest.tokenizer == corpus.manifest.tokenizer
    own = prepare(new, tmp_path / "own", vocab_size=300, seed=0)
    assert own.manifest.tokenizer != made.manifest.tokenizer
    assert own.manifest.inputs != made.manifest.inputs
    text = next(iter(made.documents("train"))).text
    tokens = corpus.tokenizer.encode(text).tolist()
    stream = made.tokens("train", "letters").tolist()
    assert stream[: len(tokens)] == tokens


def test_a_given_tokenizer_that_is_too_large_is_refused_before_anything_is_made(corpus, two_sources, tmp_path):
    with pytest.raises(InputError, match="given tokenizer has"):
        prepare(two_sources, tmp_path / "corpus", vocab_size=260, seed=0, tokenizer=corpus.tokenizer)
    assert not (tmp_path / "corpus").exists()
