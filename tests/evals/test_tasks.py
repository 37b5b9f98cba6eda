import hashlib
import json

import pytest

from wholestack.errors import InputError, RecordError
from wholestack.evals.backend import Writing
from wholestack.evals.layouts import catalog
from wholestack.evals.layouts.catalog import LAYOUTS
from wholestack.evals.shots import Shots
from wholestack.evals.tasks import BUILT_IN, PURPOSES, Task, changed_files, open_task, pose, task_of
from wholestack.record import from_json, to_json

from .layouts.rows import ROWS


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def questions(first, last, *, group=None):
    return [
        {"id": f"q{n}", "context": f"What is {n}?", "choices": [f"it is {n}", f"not {n}"], "gold": 0}
        | ({"group": group(n)} if group else {})
        for n in range(first, last)
    ]


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "items.jsonl", questions(0, 8))


@pytest.fixture
def pool(tmp_path):
    return write(tmp_path / "pool.jsonl", questions(100, 120))


def few(count, **changes):
    return Task(name="t", layout="own", shots=Shots(count=count, **changes))


def contexts(item_set):
    return [item.context for item in item_set.items]


def test_every_layout_is_a_task_that_is_built_in():
    names = [task.name for task in BUILT_IN]
    assert len(set(names)) == len(names)
    assert {layout.name for layout in LAYOUTS} <= set(names)
    assert {task.purpose for task in BUILT_IN} <= set(PURPOSES)


@pytest.mark.parametrize("task", BUILT_IN, ids=lambda task: task.name)
def test_every_built_in_task_can_put_its_questions(task, tmp_path):
    item_set = pose(write(tmp_path / "rows.jsonl", ROWS[task.layout]), task)
    assert item_set.manifest.passed_over == {}
    assert task_of(item_set).name == task.name
    if task.answers == "letters":
        for item in item_set.items:
            assert item.choices == tuple("ABCDEF"[: len(item.choices)])
            assert all(f"\n{letter}. " in item.context for letter in item.choices)


def test_letters_and_texts_ask_the_same_questions_with_the_same_gold(tmp_path):
    path = write(tmp_path / "rows.jsonl", ROWS["mmlu"])
    texts, letters = (pose(path, open_task(name)) for name in ("mmlu", "mmlu-letters"))
    for plain, lettered in zip(texts.items, letters.items, strict=True):
        assert (plain.id, plain.gold, plain.cluster) == (lettered.id, lettered.gold, lettered.cluster)
        assert f"{lettered.answer}. {plain.answer}" in lettered.context


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_task_is_read_from_a_file(suffix, tmp_path):
    path = tmp_path / f"mine{suffix}"
    task = Task(
        name="mine",
        purpose="reasoning",
        layout="boolq",
        template="{passage}\n{question}?",
        delimiter="\n",
        shots=Shots(count=2, seed=5),
        writing=Writing(max_tokens=20, stop=("\n",)),
        extraction="yes or no",
        checker="exact",
    )
    toml = (
        'name = "mine"\npurpose = "reasoning"\nlayout = "boolq"\ntemplate = "{passage}\\n{question}?"\n'
        'delimiter = "\\n"\nextraction = "yes or no"\nchecker = "exact"\n[shots]\ncount = 2\nseed = 5\n'
        '[writing]\nmax_tokens = 20\nstop = ["\\n"]\n'
    )
    path.write_text(toml if suffix == ".toml" else to_json(task).decode())
    assert open_task(str(path)) == task
    assert from_json(Task, to_json(task)) == task


def test_an_unknown_task_and_a_misspelt_key_are_one_line(tmp_path):
    with pytest.raises(InputError, match="no task 'nonsense'") as caught:
        open_task("nonsense")
    assert "mmlu-letters" in str(caught.value)
    (tmp_path / "a.toml").write_text('name = "a"\ntemplat = "x"\n')
    with pytest.raises(RecordError, match=r"a\.toml: unknown key 'templat'"):
        open_task(str(tmp_path / "a.toml"))
    (tmp_path / "b.toml").write_text("name = \n")
    with pytest.raises(InputError, match=r"b\.toml: not TOML"):
        open_task(str(tmp_path / "b.toml"))
    with pytest.raises(InputError, match=r"c\.toml: cannot be read"):
        open_task(str(tmp_path / "c.toml"))


def test_examples_stand_in_front_with_their_answers(file, pool):
    item_set = pose(file, few(2), shots_from=pool)
    for number, context in enumerate(contexts(item_set)):
        first, second, last = context.split("\n\n")
        assert last == f"What is {number}?"
        for shown in (first, second):
            asked, _, answer = shown.partition("? ")
            assert answer == f"it is {asked.removeprefix('What is ')}"


def test_the_seed_decides_which_examples_and_in_which_order(file, pool):
    first, again, other = (contexts(pose(file, few(3, seed=seed), shots_from=pool)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_order_of_the_examples_file_changes_no_prompt(file, pool, tmp_path):
    turned = write(tmp_path / "turned.jsonl", questions(100, 120)[::-1])
    assert contexts(pose(file, few(3), shots_from=pool)) == contexts(pose(file, few(3), shots_from=turned))


def test_an_item_is_never_its_own_example(file):
    item_set = pose(file, few(7), shots_from=file)
    for number, context in enumerate(contexts(item_set)):
        assert context.count(f"What is {number}?") == 1
        assert context.endswith(f"What is {number}?")


def test_an_item_under_another_id_is_recognised_by_its_text(file, tmp_path):
    renamed = write(tmp_path / "renamed.jsonl", [{**row, "id": f"x{row['id']}"} for row in questions(0, 8)])
    for number, context in enumerate(contexts(pose(file, few(7), shots_from=renamed))):
        assert context.count(f"What is {number}?") == 1


def test_no_example_is_of_the_items_group(tmp_path):
    path = write(tmp_path / "items.jsonl", questions(0, 8, group=lambda n: f"passage {n // 4}"))
    for number, context in enumerate(contexts(pose(path, few(4), shots_from=path))):
        same = [other for other in range(8) if other // 4 == number // 4]
        assert [other for other in same if f"What is {other}?" in context] == [number]


def test_too_few_examples_are_one_line(file):
    with pytest.raises(InputError, match="7 examples are not item 'q0' nor of its group, 8 are asked for"):
        pose(file, few(8), shots_from=file)


def test_examples_need_a_file(file):
    with pytest.raises(InputError, match="--shots-from"):
        pose(file, few(2))


def test_a_task_that_names_its_examples_by_hash_takes_no_other_file(file, pool, tmp_path):
    sealed = task_of(pose(file, few(2), shots_from=pool))
    assert pose(file, sealed, shots_from=pool).items
    with pytest.raises(InputError, match="names by its hash"):
        pose(file, sealed, shots_from=write(tmp_path / "other.jsonl", questions(100, 119)))


def test_the_manifest_says_which_examples_were_shown(file, pool):
    item_set = pose(file, few(2), shots_from=pool)
    shown = task_of(item_set).shots
    assert len(shown.ids) == 2
    assert all(f"What is {name.removeprefix('q')}?" in item_set.items[0].context for name in shown.ids)


def test_no_wording_changes_an_id(tmp_path):
    path = write(tmp_path / "rows.jsonl", ROWS["race"])
    plain = pose(path, Task(name="t", layout="race"))
    worded = pose(path, Task(name="t", layout="race", template="{question}", delimiter="\n"))
    assert [item.id for item in plain.items] == [item.id for item in worded.items]
    assert plain.digest != worded.digest


def test_the_wording_of_a_row_gives_way_to_that_of_the_task(tmp_path):
    path = write(tmp_path / "a.jsonl", [{**questions(0, 1)[0], "delimiter": ": "}])
    assert pose(path, Task(name="t")).items[0].delimiter == ": "
    assert pose(path, Task(name="t", delimiter="")).items[0].delimiter == ""


def test_a_limit_takes_the_same_items_whatever_their_order(tmp_path):
    forward = pose(write(tmp_path / "a.jsonl", questions(0, 50)), Task(name="t"), limit=10)
    backward = pose(write(tmp_path / "b.jsonl", questions(0, 50)[::-1]), Task(name="t"), limit=10)
    assert {item.id for item in forward.items} == {item.id for item in backward.items}
    assert len(forward.items) == 10
    assert [item.id for item in forward.items] != [f"q{n}" for n in range(10)]


def test_a_limit_counts_refused_questions_too(tmp_path):
    rows = questions(0, 200)
    for row in rows[::2]:
        del row["gold"]
    item_set = pose(write(tmp_path / "a.jsonl", rows), Task(name="t"), limit=60)
    refused = item_set.manifest.passed_over["no gold answer"]
    assert len(item_set.items) + refused == 60
    assert 15 < refused < 45


def test_a_limit_below_one_and_one_without_items_are_refused(tmp_path):
    with pytest.raises(InputError, match="limit is 0"):
        pose(write(tmp_path / "a.jsonl", questions(0, 3)), Task(name="t"), limit=0)
    rows = [{**row, "gold": 9} for row in questions(0, 300)] + questions(300, 301)
    with pytest.raises(InputError, match="none of the 1 questions drawn can be used"):
        pose(write(tmp_path / "b.jsonl", rows), Task(name="t"), limit=1)


def test_a_file_of_which_nothing_can_be_used_is_one_line_with_counts(tmp_path):
    rows = [{**questions(0, 1)[0], "gold": 5}, {**questions(1, 2)[0], "choices": ["a", "a"]}]
    with pytest.raises(InputError, match=r"\(1 no gold answer, 1 two choices are the same\); line 1: gold is 5"):
        pose(write(tmp_path / "a.jsonl", rows), Task(name="t"))


def test_a_template_that_the_layout_cannot_fill_is_one_line(file):
    with pytest.raises(InputError, match=r"names \{passage\}"):
        pose(file, Task(name="t", template="{passage}"))


def test_a_file_of_examples_is_read_once_so_hash_and_examples_are_of_the_same_bytes(file, pool, monkeypatch):
    """It changes right after the first time that it is read."""
    read, inner = [], catalog.read_file

    def reading(path, **given):
        read.append(path)
        raw = inner(path, **given)
        if path == pool:
            write(pool, questions(200, 220))
        return raw

    monkeypatch.setattr(catalog, "read_file", reading)
    monkeypatch.setattr("wholestack.evals.tasks.read_file", reading)
    before = hashlib.sha256(pool.read_bytes()).hexdigest()
    posed = pose(file, few(2), shots_from=pool)
    assert read == [file, pool]
    assert task_of(posed).shots.file_sha256 == before
    assert set(task_of(posed).shots.ids) <= {f"q{n}" for n in range(100, 120)}


def test_files_that_change_or_vanish_after_they_were_read_are_named(file, pool):
    posed = pose(file, few(2), shots_from=pool)
    assert changed_files(posed) == ()
    write(file, questions(0, 9))
    assert changed_files(posed) == (file,)
    pool.unlink()
    assert changed_files(posed) == (file, pool)
