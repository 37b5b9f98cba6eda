import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from wholestack.codetasks.generating import Tally, cells_of, generate, make_items
from wholestack.codetasks.item import CodeItem, item_line, read_line, seal
from wholestack.codetasks.kinds.catalog import KINDS
from wholestack.codetasks.levels import LEVELS
from wholestack.codetasks.writing import write_new
from wholestack.errors import InputError, RecordError
from wholestack.evals.items import read_items
from wholestack.evals.layouts.catalog import read_questions
from wholestack.sandbox import Sandbox


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Path:
    path = tmp_path_factory.mktemp("codetasks") / "items.jsonl"
    generate(path, cells_of(), count=150, seed=5, run=sandbox.run)
    return path


def test_every_kind_has_items_at_every_level_in_turn(items: list[CodeItem]) -> None:
    assert Counter((item.kind, item.difficulty) for item in items) == {
        (kind, level): 20 for kind in KINDS for level in LEVELS
    }
    cells = len(KINDS) * len(LEVELS)
    assert [item.kind for item in items[:cells]] == [item.kind for item in items[cells : 2 * cells]]


def test_no_two_items_ask_the_same_of_the_same_program(items: list[CodeItem]) -> None:
    assert len({(item.program, item.question) for item in items}) == len({item.id for item in items}) == len(items)


@pytest.mark.parametrize(("batch", "processes"), [(60, 1), (400, 2)])
def test_the_same_seed_gives_the_same_bytes_in_whatever_batches(
    tmp_path: Path, file: Path, sandbox: Sandbox, batch: int, processes: int
) -> None:
    again = tmp_path / "again.jsonl"
    generate(again, cells_of(), count=150, seed=5, run=sandbox.run, batch=batch, processes=processes)
    assert again.read_bytes() == file.read_bytes()


def test_a_longer_file_begins_with_the_shorter_one(file: Path, sandbox: Sandbox) -> None:
    first = [item.hash for item in make_items(cells_of(), count=60, seed=5, run=sandbox.run)]
    assert first == [json.loads(line)["hash"] for line in file.read_bytes().splitlines()[:60]]


def test_another_seed_gives_other_items(file: Path, sandbox: Sandbox) -> None:
    ids = {item.id for item in make_items(cells_of(), count=50, seed=6, run=sandbox.run)}
    assert not ids & {json.loads(line)["id"] for line in file.read_bytes().splitlines()}


def test_the_file_is_an_item_set_as_it_is(file: Path) -> None:
    rows = [json.loads(line) for line in file.read_bytes().splitlines()]
    read = read_items(file).items
    assert [(item.id, item.context, item.choices, item.gold) for item in read] == [
        (row["id"], row["context"], tuple(row["choices"]), row["gold"]) for row in rows
    ]


def test_a_line_that_was_changed_is_named(file: Path) -> None:
    line = file.read_bytes().splitlines()[3]
    assert read_line(line, where="f:4").program in json.loads(line)["program"]
    gold = json.loads(line)["gold"]
    changed = line.replace(f'"gold":{gold}'.encode(), f'"gold":{(gold + 1) % 4}'.encode())
    with pytest.raises(RecordError, match="f:4: was changed"):
        read_line(changed, where="f:4")


def test_what_was_refused_is_counted_by_reason(tmp_path: Path, sandbox: Sandbox) -> None:
    seen: list[tuple[int, int]] = []
    tally = generate(
        tmp_path / "a.jsonl",
        cells_of(["eval"], [6]),
        count=40,
        seed=1,
        run=sandbox.run,
        progress=lambda now: seen.append((now.written, now.wanted)),
    )
    assert tally.drafted == tally.written + sum(tally.refused.values()) > 40
    assert seen[0] == (0, 40)
    assert seen[-1] == (40, 40)


def test_what_cannot_be_asked_for_is_refused(tmp_path: Path, sandbox: Sandbox) -> None:
    def ask(**changed: int) -> Tally:
        options = {"count": 1, "seed": 0, **changed}
        return generate(tmp_path / "no.jsonl", cells_of(["eval"], [1]), run=sandbox.run, **options)

    with pytest.raises(InputError, match="count is 0"):
        ask(count=0)
    with pytest.raises(InputError, match="seed is -1"):
        ask(seed=-1)
    with pytest.raises(InputError, match="processes is 0"):
        ask(processes=0)
    with pytest.raises(InputError, match="no kind 'evil'"):
        cells_of(["evil"])
    with pytest.raises(InputError, match="difficulty is 11"):
        cells_of([], [11])
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_stays_as_it_is(tmp_path: Path, sandbox: Sandbox) -> None:
    (tmp_path / "mine.jsonl").write_text("mine")
    with pytest.raises(InputError, match="exists"):
        generate(tmp_path / "mine.jsonl", cells_of(["eval"], [1]), count=1, seed=0, run=sandbox.run)
    assert (tmp_path / "mine.jsonl").read_text() == "mine"


def test_a_cell_without_new_items_keeps_those_that_there_are(
    tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wholestack.codetasks.generating.item_seed", lambda *cell: 7)
    monkeypatch.setattr("wholestack.codetasks.generating.BARREN", 20)
    path, cells = tmp_path / "few.jsonl", cells_of(["eval"], [1])
    with pytest.raises(InputError, match="eval at difficulty 1 gave no new item"):
        generate(path, cells, count=2, seed=0, run=sandbox.run)
    told: list[int] = []
    generate(path, cells, count=1, seed=0, run=sandbox.run, progress=lambda now: told.append(now.written))
    assert told[0] == 1
    assert len(path.read_bytes().splitlines()) == 1


def test_the_layout_of_the_file_is_recognised(file: Path) -> None:
    reading = read_questions(file)
    assert (reading.layout.name, len(reading.questions), reading.refusals) == ("own", 150, ())


PINNED = "f724241acd762468401271b91258a2017eaeaecdeb16fb9ab93baeac21b9cc90"
"""SHA-256 of fifty items. A change of it is a change of the grammar, which needs another VERSION."""


def test_a_seed_gives_what_it_gave(sandbox: Sandbox) -> None:
    made = make_items(cells_of(), count=50, seed=1, run=sandbox.run)
    assert sha256(b"".join(map(item_line, made))).hexdigest() == PINNED


def test_a_file_that_appears_meanwhile_is_not_written_over(tmp_path: Path, items: list[CodeItem]) -> None:
    path = tmp_path / "items.jsonl"

    def lines() -> Iterator[bytes]:
        yield item_line(items[0])
        path.write_text("somebody else's")

    with pytest.raises(InputError, match="exists"):
        write_new(path, lines())
    assert path.read_text() == "somebody else's"
    assert list(tmp_path.iterdir()) == [path]


def test_two_generations_of_one_file_do_not_mix(tmp_path: Path, items: list[CodeItem]) -> None:
    path = tmp_path / "items.jsonl"

    def lines() -> Iterator[bytes]:
        yield item_line(items[0])
        with pytest.raises(InputError, match="another process is writing"):
            write_new(path, [b"other"])

    write_new(path, lines())
    assert path.read_bytes() == item_line(items[0])
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_generation_left_is_written_over(tmp_path: Path, items: list[CodeItem]) -> None:
    (tmp_path / ".items.jsonl.tmp").write_bytes(b"x" * 100_000)
    write_new(tmp_path / "items.jsonl", [item_line(items[0])])
    assert (tmp_path / "items.jsonl").read_bytes() == item_line(items[0])
    assert len(list(tmp_path.iterdir())) == 1


class Killed(BaseException):
    """Stands for what ends a process between two lines."""


@pytest.mark.parametrize("after", [1, 2, 4])
def test_what_is_left_is_gone_on_from_and_gives_the_same_bytes(
    tmp_path: Path, file: Path, sandbox: Sandbox, after: int
) -> None:
    path = tmp_path / "items.jsonl"
    told: list[int] = []

    def until(now: Tally) -> None:
        told.append(now.written)
        if len(told) > after:
            raise Killed

    with pytest.raises(Killed):
        generate(path, cells_of(), count=150, seed=5, run=sandbox.run, batch=60, progress=until)
    assert not path.exists()
    left = (tmp_path / ".items.jsonl.tmp").read_bytes()
    assert len(left.splitlines()) == told[-1] > 0
    seen: list[int] = []
    tally = generate(
        path, cells_of(), count=150, seed=5, run=sandbox.run, progress=lambda now: seen.append(now.written)
    )
    assert seen[0] == told[-1]
    assert path.read_bytes() == file.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["items.jsonl"]
    assert tally.drafted == 150 + sum(tally.refused.values())


def test_what_is_left_and_does_not_fit_is_made_again(tmp_path: Path, file: Path, sandbox: Sandbox) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    changed = lines[40].replace(b'"gold":', b'"gold": ')
    ours = b"".join(lines[:40])
    path = tmp_path / "items.jsonl"
    told: list[int] = []
    item = read_line(lines[39], where="")
    otherwise = item_line(seal(replace(item, gold=(item.gold + 1) % 4)))
    for left, fits in (
        (ours + changed + lines[41], 40),  # written in another way
        (ours + lines[41] + lines[40], 40),  # of another cell
        (ours[:-100], 39),  # cut off
        (ours + bytes(5000), 40),  # what a machine that lost its power can leave
        (b"".join(lines), 50),  # more than asked for
        (lines[0] + lines[0] * 60, 1),  # repeated
        (b"".join(lines[:39]) + otherwise, 0),  # of another version of a kind
        (b"x" * (3 << 20), 0),
        (b"".join(map(item_line, make_items(cells_of(), count=50, seed=6, run=sandbox.run))), 0),  # another seed
    ):
        (tmp_path / ".items.jsonl.tmp").write_bytes(left)
        told.clear()
        tally = generate(
            path, cells_of(), count=50, seed=5, run=sandbox.run, progress=lambda now: told.append(now.written)
        )
        assert told[0] == fits
        assert tally.dropped == left.count(b"\n") - fits
        assert path.read_bytes() == b"".join(lines[:50])
        path.unlink()


def test_a_file_that_had_just_appeared_is_not_written_to(tmp_path: Path, items: list[CodeItem]) -> None:
    path = tmp_path / "items.jsonl"
    (tmp_path / "moved.jsonl").write_text("whole")
    (tmp_path / ".items.jsonl.tmp").hardlink_to(tmp_path / "moved.jsonl")
    write_new(path, [item_line(items[0])])
    assert (tmp_path / "moved.jsonl").read_text() == "whole"
    assert path.read_bytes() == item_line(items[0])


def test_an_error_of_what_makes_the_lines_is_not_called_one_of_the_file(tmp_path: Path) -> None:
    def lines() -> Iterator[bytes]:
        yield b"x"
        raise PermissionError(1, "something else")

    with pytest.raises(PermissionError, match="something else"):
        write_new(tmp_path / "items.jsonl", lines())
    assert list(tmp_path.iterdir()) == []
