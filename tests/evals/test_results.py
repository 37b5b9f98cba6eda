import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from wholestack.errors import InputError, RecordError, RunBusyError, RunDirectoryError
from wholestack.evals.backend import ItemScore, ModelIdentity
from wholestack.evals.items import find_items, make_item, own_lines, seal_items
from wholestack.evals.layouts.catalog import read_questions
from wholestack.evals.memory import MemoryBackend
from wholestack.evals.results import NOT_YET, folder_of, item_scores, key_of, read_result, score_into
from wholestack.evals.scores import Scores
from wholestack.record import from_json, to_json
from wholestack.runs import lock_folder

TEXT = b"one two three four five six seven eight nine ten. " * 4


def items(count=12, **changes):
    return [
        make_item(
            f"question {n} is", [f"answer {n}", f"other {n}", f"third {n}"], n % 3,
            source="s", cluster=f"c{n // 2}", id=f"i{n}", **changes,
        )
        for n in range(count)
    ]  # fmt: skip


@pytest.fixture
def item_set():
    return seal_items(items(), kind="items from a file", passed_over={"no gold answer": 2})


@pytest.fixture
def model():
    return MemoryBackend(TEXT)


class Spying:
    """A model that remembers what it was asked, and may be interrupted or lie."""

    def __init__(self, inner, *, stop_after=None, change=None, identity=None):
        self.inner, self.stop_after, self.change, self.asked = inner, stop_after, change, []
        self.identity = identity or inner.identity

    def expense(self, *given):
        return self.inner.expense(*given)

    def generate(self, *given):
        return self.inner.generate(*given)

    def score(self, given, *, done=()):
        for number, score in enumerate(self.inner.score(given, done=done)):
            if number == self.stop_after:
                raise KeyboardInterrupt
            self.asked.append(score.id)
            yield self.change(score) if self.change else score


def test_a_result_is_read_as_it_was_scored(model, item_set, tmp_path):
    written = score_into(model, item_set, tmp_path, stem="sums")
    found = read_result(written.folder)
    assert found.folder.parent == tmp_path
    assert found.folder.name == f"sums-memory-{found.plan.key[:8]}"
    assert found.identity == model.identity
    assert found.items == item_set.items
    assert found.by_item == written.by_item
    assert [replace(score, seal="") for score in found.by_item] == [
        replace(score, seal="") for score in model.score(item_set.items)
    ]
    assert found.complete


def test_questions_that_are_no_items_count_as_unscorable(model, item_set, tmp_path):
    summary = score_into(model, item_set, tmp_path).summary
    assert (summary.items, summary.scored, summary.unscorable) == (14, 12, {"no gold answer": 2})


def test_two_runs_of_one_scoring_give_equal_bytes(model, item_set, tmp_path):
    one, two = (score_into(MemoryBackend(TEXT), item_set, tmp_path / name).folder for name in "ab")
    names = sorted(path.name for path in one.iterdir())
    assert names == [
        "items.jsonl",
        "lock",
        "manifest.json",
        "metrics.json",
        "per_item.jsonl",
        "result.json",
        "scores.jsonl",
    ]
    for name in names:
        if name != "lock":
            assert (one / name).read_bytes() == (two / name).read_bytes(), name


def test_the_file_of_metrics_is_the_summary(model, item_set, tmp_path):
    result = score_into(model, item_set, tmp_path)
    assert from_json(Scores, (result.folder / "metrics.json").read_bytes()) == result.summary
    assert result.summary.flat()["answer_bpb"] > 0


def test_an_interrupted_scoring_asks_only_for_the_rest_and_ends_equal(model, item_set, tmp_path):
    unbroken = score_into(model, item_set, tmp_path / "unbroken")
    first = Spying(model, stop_after=5)
    with pytest.raises(KeyboardInterrupt):
        score_into(first, item_set, tmp_path)
    partial = read_result(folder_of(tmp_path, "items", model.identity, item_set))
    assert not partial.complete
    assert (partial.scores.reasons == NOT_YET).sum() == 7
    second = Spying(model)
    result = score_into(second, item_set, tmp_path)
    assert first.asked + second.asked == [item.id for item in item_set.items]
    for name in ("metrics.json", "per_item.jsonl", "scores.jsonl"):
        assert (result.folder / name).read_bytes() == (unbroken.folder / name).read_bytes()


def test_a_complete_scoring_asks_for_nothing(model, item_set, tmp_path):
    score_into(model, item_set, tmp_path)
    again = Spying(model)
    seen = []
    score_into(again, item_set, tmp_path, watch=lambda done, total: seen.append((done, total)))
    assert again.asked == []
    assert seen == [(12, 12)]


def test_the_watcher_sees_every_item(model, item_set, tmp_path):
    seen = []
    score_into(model, item_set, tmp_path, watch=lambda done, total: seen.append((done, total)), keep_every_s=0)
    assert seen == [(done, 12) for done in range(13)]


def test_scores_that_come_fast_share_a_write_and_the_file_is_the_same(model, item_set, tmp_path):
    ticks = iter(range(100))
    seen = []
    result = score_into(
        model,
        item_set,
        tmp_path / "shared",
        watch=lambda done, total: seen.append(done),
        keep_every_s=5,
        clock=lambda: next(ticks),
    )
    assert seen == [0, 5, 10, 12]
    single = score_into(model, item_set, tmp_path / "single", keep_every_s=0)
    assert (result.folder / "scores.jsonl").read_bytes() == (single.folder / "scores.jsonl").read_bytes()


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_last_line_is_scored_again(model, item_set, tmp_path, cut):
    path = score_into(model, item_set, tmp_path).folder / "scores.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    again = Spying(model)
    score_into(again, item_set, tmp_path)
    assert again.asked == ["i11"]
    assert path.read_bytes() == whole


def test_no_changed_byte_of_the_journal_is_trusted(model, item_set, tmp_path):
    folder = score_into(model, item_set, tmp_path).folder
    path = folder / "scores.jsonl"
    whole = path.read_bytes()
    expected = read_result(folder)
    for at in range(0, len(whole) - 1, 13):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            found = read_result(folder)
        except RecordError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            # A last digit that rounds to the same number is no change; a torn line is not there.
            assert set(found.by_item) <= set(expected.by_item)


def test_a_damaged_line_is_named_and_says_what_to_do(model, item_set, tmp_path):
    path = score_into(model, item_set, tmp_path).folder / "scores.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], lines[3].replace(b'"nll_nats":[', b'"nll_nats":[1'), *lines[4:]]))
    with pytest.raises(RecordError, match=r"scores\.jsonl:4: is damaged") as caught:
        score_into(model, item_set, tmp_path)
    assert "sed -i 4d" in str(caught.value)
    subprocess.run(["sed", "-i", "4d", str(path)], check=True)
    again = Spying(model)
    score_into(again, item_set, tmp_path)
    assert again.asked == ["i3"]


def test_a_line_of_another_scoring_is_not_taken(model, item_set, tmp_path):
    other = score_into(MemoryBackend(b"other"), item_set, tmp_path).folder / "scores.jsonl"
    own = score_into(model, item_set, tmp_path).folder / "scores.jsonl"
    own.write_bytes(other.read_bytes())
    with pytest.raises(RecordError, match="from another scoring"):
        score_into(model, item_set, tmp_path)


def test_a_doubled_line_is_not_taken(model, item_set, tmp_path):
    path = score_into(model, item_set, tmp_path).folder / "scores.jsonl"
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(RecordError, match=r"scores\.jsonl:13"):
        read_result(path.parent)


def test_a_second_live_process_is_refused(model, item_set, tmp_path):
    folder = folder_of(tmp_path, "items", model.identity, item_set)
    folder.mkdir()
    handle = lock_folder(folder)
    try:
        with pytest.raises(RunBusyError, match=f"process {os.getpid()} is at work"):
            score_into(model, item_set, tmp_path)
    finally:
        os.close(handle)
    assert score_into(model, item_set, tmp_path).complete


def test_a_plan_or_items_that_were_changed_are_refused(model, item_set, tmp_path):
    folder = score_into(model, item_set, tmp_path).folder
    plan = (folder / "result.json").read_text()
    (folder / "result.json").write_text(plan.replace('"order": "4"', '"order": "5"'))
    with pytest.raises(RecordError, match="do not belong together"):
        read_result(folder)
    (folder / "result.json").write_text(plan)
    items_file = (folder / "items.jsonl").read_text()
    (folder / "items.jsonl").write_text(items_file.replace("question 3", "question 4"))
    with pytest.raises(InputError, match="was changed after it was sealed"):
        read_result(folder)


def test_a_folder_without_a_result_is_named(tmp_path):
    with pytest.raises(InputError, match=r"not a result of wholestack evals score"):
        read_result(tmp_path)


def test_scores_without_a_plan_are_not_taken_over(model, item_set, tmp_path):
    folder = score_into(model, item_set, tmp_path).folder
    (folder / "result.json").unlink()
    with pytest.raises(RunDirectoryError, match=r"has scores and no result\.json"):
        score_into(model, item_set, tmp_path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda score: replace(score, nll_nats=score.nll_nats[:-1]), "2 numbers where 3 were due"),
        (lambda score: replace(score, nll_nats=(), tokens=()), "0 numbers where 3 were due"),
        (lambda score: replace(score, nll_nats=(float("nan"), 1.0, 2.0)), "not finite"),
        (lambda score: replace(score, nll_nats=(float("inf"), 1.0, 2.0)), "not finite"),
        (lambda score: replace(score, tokens=()), "numbers where 3 were due"),
    ],
)
def test_what_is_no_number_is_a_reason_and_never_zero(model, item_set, tmp_path, change, reason):
    result = score_into(Spying(model, change=lambda s: change(s) if s.id == "i4" else s), item_set, tmp_path)
    assert result.summary.scored == 11
    assert any(reason in each for each in result.summary.unscorable)
    assert read_result(result.folder).by_item == result.by_item


def test_a_model_that_answers_for_another_item_is_refused(model, item_set, tmp_path):
    lying = Spying(model, change=lambda score: replace(score, id="i7"))
    with pytest.raises(InputError, match="gave a score of 'i7' for item 'i0'"):
        score_into(lying, item_set, tmp_path)


def test_a_model_that_ends_early_is_refused(model, item_set, tmp_path):
    class Silent(Spying):
        def score(self, given, *, done=()):
            return list(self.inner.score(given))[:2]

    with pytest.raises(InputError, match="gave nothing for item 'i2'"):
        score_into(Silent(model), item_set, tmp_path)


def test_the_arrays_are_those_of_the_items_whatever_the_order_of_the_scores(model, item_set):
    scores = list(model.score(item_set.items))
    found, turned = item_scores(item_set, scores), item_scores(item_set, scores[::-1])
    for name in ("nll_nats", "answer_tokens", "answer_bytes", "gold", "reasons", "clusters", "choice_offsets"):
        assert np.array_equal(getattr(found, name), getattr(turned, name))
    for index, (item, score) in enumerate(zip(item_set.items, scores, strict=True)):
        first, last = found.choice_offsets[index], found.choice_offsets[index + 1]
        assert found.nll_nats[first:last].tolist() == list(score.nll_nats)
        assert found.answer_bytes[first:last].tolist() == [
            len(f"{item.delimiter}{choice}".encode()) for choice in item.choices
        ]
        assert found.gold[index] == item.gold
    assert len(set(found.clusters.tolist())) == 6


def test_what_was_written_per_item_is_again_a_file_of_items(model, tmp_path):
    path = tmp_path / "own.jsonl"
    rows = [
        {"id": f"r{n}", "context": f"c {n}", "choices": ["a", "b"], "gold": n % 2, "level": n, "group": "g"}
        for n in range(4)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = find_items(read_questions(path))
    sealed = seal_items(found.items, kind="items from a file", kept=found.kept)
    result = score_into(model, sealed, tmp_path / "out", stem="own")
    written = result.folder / "per_item.jsonl"
    lines = [json.loads(line) for line in written.read_text().splitlines()]
    assert [line["level"] for line in lines] == [0, 1, 2, 3]
    assert [tuple(line["nll_nats"]) for line in lines] == [score.nll_nats for score in result.by_item]
    again = find_items(read_questions(written))
    assert again.items == found.items
    assert {name: keys["level"] for name, keys in again.kept.items()} == {f"r{n}": n for n in range(4)}


def test_keys_that_mean_nothing_survive_whatever_they_hold(tmp_path):
    path = tmp_path / "own.jsonl"
    kept = {"big": 10**30, "deep": [[{"a": None}]], "text": "\u2028\x85", "nll_nats": "mine"}
    path.write_text(json.dumps({"id": "x", "context": "c", "choices": ["a", "b"], "gold": 0, **kept}) + "\n")
    found = find_items(read_questions(path))
    sealed = seal_items(found.items, kind="items from a file", kept=found.kept)
    sealed.save(tmp_path / "set")
    loaded = type(sealed).load(tmp_path / "set")
    assert loaded.digest == seal_items(found.items, kind="items from a file").digest
    (line,) = own_lines(loaded, {"x": {"nll_nats": [1.0]}}).splitlines()
    assert json.loads(line)["deep"] == kept["deep"]
    assert json.loads(line)["text"] == kept["text"]
    assert json.loads(line)["nll_nats"] == [1.0]


SCORER = """
import sys
from pathlib import Path
from wholestack.evals.items import ItemSet
from wholestack.evals.memory import MemoryBackend
from wholestack.evals.results import score_into
item_set, model = ItemSet.load(Path(sys.argv[1])), MemoryBackend(Path(sys.argv[2]).read_bytes())
asked = open(sys.argv[4], "a")
class Slow:
    identity = model.identity
    def score(self, items, *, done=()):
        for score in model.score(items, done=done):
            asked.write(score.id + "\\n"); asked.flush()
            yield score
def watch(done, total):
    print(done, flush=True)
score_into(Slow(), item_set, Path(sys.argv[3]), watch=watch, keep_every_s=0)
"""


@pytest.mark.heavy
def test_a_scoring_killed_at_any_point_goes_on_and_scores_nothing_twice(tmp_path):
    """Killed by SIGKILL again and again after some items; what was acknowledged is there, in order, once."""
    sealed = seal_items(items(40), kind="items from a file")
    sealed.save(tmp_path / "set")
    (tmp_path / "text").write_bytes(TEXT)
    log = tmp_path / "asked"
    command = [sys.executable, "-c", SCORER, *map(str, (tmp_path / "set", tmp_path / "text", tmp_path / "out", log))]
    acknowledged = 0
    for wanted in (1, 4, 9, 17, 30):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                assert int(line) >= acknowledged
                acknowledged = int(line)
                if acknowledged >= wanted:
                    process.send_signal(signal.SIGKILL)
                    break
        folder = folder_of(tmp_path / "out", "items", MemoryBackend(TEXT).identity, sealed)
        there = [score.id for score in read_result(folder).by_item]
        assert len(there) >= acknowledged
        assert there == [item.id for item in sealed.items][: len(there)]
        acknowledged = len(there)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    result = read_result(folder)
    assert [replace(each, seal="") for each in result.by_item] == list(MemoryBackend(TEXT).score(sealed.items))
    # Only what was under way at one of the five kills, and so not acknowledged, was asked for again.
    asked = log.read_text().split()
    assert len(asked) - len(set(asked)) <= 5
    unbroken = score_into(MemoryBackend(TEXT), sealed, tmp_path / "unbroken")
    assert (result.folder / "metrics.json").read_bytes() == (unbroken.folder / "metrics.json").read_bytes()


def test_of_two_processes_at_once_the_second_is_refused_and_nothing_is_lost(tmp_path):
    """The first stands still in the middle until the second has been refused."""
    sealed, model = seal_items(items(40), kind="items from a file"), MemoryBackend(TEXT)
    sealed.save(tmp_path / "set")
    (tmp_path / "text").write_bytes(TEXT)
    code = SCORER.replace("print(done, flush=True)", "print(done, flush=True); done == 20 and sys.stdin.readline()")
    places = (tmp_path / "set", tmp_path / "text", tmp_path / "out", tmp_path / "asked")
    command = [sys.executable, "-c", code, *map(str, places)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        while first.stdout.readline() != "20\n":
            pass
        with pytest.raises(RunBusyError, match=f"process {first.pid} is at work in it"):
            score_into(model, sealed, tmp_path / "out")
        first.communicate("go on\n")
    assert first.returncode == 0
    both, alone = (score_into(model, sealed, tmp_path / name).folder for name in ("out", "alone"))
    for name in ("scores.jsonl", "metrics.json", "per_item.jsonl"):
        assert (both / name).read_bytes() == (alone / name).read_bytes()


def test_the_name_of_a_model_is_not_in_the_key_and_its_parts_are(item_set):
    one = ModelIdentity(kind="k", name="a", parts={"weights": "1"})
    assert key_of(one, item_set) == key_of(replace(one, name="b", parameters=7), item_set)
    assert key_of(one, item_set) != key_of(replace(one, parts={"weights": "2"}), item_set)
    assert key_of(one, item_set) != key_of(replace(one, kind="l"), item_set)


@pytest.mark.parametrize("name", ["/models/My Model/", "a:b\\c", "..", "", "ü" * 300, "https://host:1/v1"])
def test_any_name_makes_one_folder(model, item_set, tmp_path, name):
    folder = folder_of(tmp_path, name, replace(model.identity, name=name), item_set)
    assert folder.parent == tmp_path
    assert len(folder.name) < 120
    folder.mkdir()


def test_a_score_without_a_seal_survives_json():
    assert from_json(ItemScore, to_json(ItemScore(id="a", reason="r"))) == ItemScore(id="a", reason="r")
