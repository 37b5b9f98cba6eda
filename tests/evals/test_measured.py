"""Numbers from tables and result folders."""

import json

import pytest

from wholestack.errors import InputError
from wholestack.evals.items import make_item, seal_items
from wholestack.evals.measured import better_of, read_numbers
from wholestack.evals.memory import MemoryBackend
from wholestack.evals.results import folder_of, score_into


def _write(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_gives_values_and_their_errors_and_leaves_text_out(tmp_path):
    path = _write(tmp_path, "model,loss,loss_se,note\nsmall,1.5,0.1,first\nlarge,1.25,,second\n")
    small, large = read_numbers(path)
    assert (small.model, small.values, small.errors) == ("small", {"loss": 1.5}, {"loss": 0.1})
    assert (large.values, large.errors) == ({"loss": 1.25}, {})
    assert large.where == f"{path}:3"


def test_csv_tsv_and_jsonl_say_the_same(tmp_path):
    rows = [{"model": "a", "loss": 1.5, "acc": 0}, {"model": "b", "loss": 1e-3, "acc": 1}]
    lines = _write(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "t.jsonl")
    commas = _write(tmp_path, "\ufeffmodel,loss,acc\na,1.5,0\n\nb,1e-3,1\n", "t.csv")
    tabs = _write(tmp_path, "model\tloss\tacc\na\t1.5\t0\nb\t1e-3\t1\n", "t.tsv")
    found = [[(row.model, row.values) for row in read_numbers(path)] for path in (lines, commas, tabs)]
    assert found[0] == found[1] == found[2] == [("a", {"loss": 1.5, "acc": 0.0}), ("b", {"loss": 0.001, "acc": 1.0})]


def test_a_column_that_only_ends_like_an_error_is_a_value(tmp_path):
    (row,) = read_numbers(_write(tmp_path, "model,relative_se\na,0.5\n"))
    assert (row.values, row.errors) == ({"relative_se": 0.5}, {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no row"),
        ("model,loss\n", "holds no row"),
        ("model,loss\na\n", ":2: 1 cells under 2 columns"),
        ("model,loss,loss\na,1,2\n", "stands twice"),
        ("model,loss\na,1\nb,nan\n", ":3: loss is 'nan'"),
        ("model,loss\na,1\nb,about 2\n", ":3: loss is 'about 2'"),
        ("model,loss,loss_se\na,1,-1\n", "loss_se is -1"),
        ('{"model": "a", "loss": 1}\n[1]\n', ":2: no object"),
        ('{"model": "a", "loss": 1\n', ":1: not JSON"),
    ],
)
def test_a_bad_table_is_one_line_that_names_the_place(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read_numbers(_write(tmp_path, text))


def test_a_missing_file_and_a_file_of_bytes_are_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv: cannot be read"):
        read_numbers(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"model\xff,loss\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_numbers(tmp_path / "bytes.csv")


def test_a_result_folder_is_one_row_under_the_models_name(tmp_path):
    """As ``evals score`` writes it, by a model that is really run."""
    items = [
        make_item(f"question {n} is", [f"answer {n}", f"other {n}"], n % 2, source="s", cluster=f"c{n}", id=f"i{n}")
        for n in range(12)
    ]
    item_set, model = seal_items(items, kind="items from a file"), MemoryBackend(b"one two three four five " * 9)
    folder = folder_of(tmp_path, "questions", model.identity, item_set)
    result = score_into(model, item_set, tmp_path, stem="questions")
    (row,) = read_numbers(folder)
    assert row.model == model.identity.name
    assert row.values["answer_bpb"] == result.summary.metric("answer_bpb").value
    assert row.errors["accuracy_raw"] == result.summary.metric("accuracy_raw").standard_error
    assert {better_of(name) for name in row.values} == {"higher", "lower"}
    assert not any(name.endswith(("_low", "_high", "_se", "_p_value")) for name in row.values)


def test_a_folder_without_a_scoring_is_named(tmp_path):
    with pytest.raises(InputError, match=r"not a result of wholestack evals score"):
        read_numbers(tmp_path)


def test_the_direction_is_known_by_name_or_asked_for():
    assert better_of("answer_bpb[3f2a9c1b]") == "lower"
    assert better_of("accuracy_raw") == "higher"
    assert better_of("vibes", lower=["vibes"]) == "lower"
    assert better_of("loss", higher=["loss"]) == "higher"
    with pytest.raises(InputError, match="--higher vibes or --lower vibes"):
        better_of("vibes")
    with pytest.raises(InputError, match="both"):
        better_of("vibes", higher=["vibes"], lower=["vibes"])


def test_a_number_that_no_float_holds_is_text_and_not_a_crash(tmp_path):
    path = _write(tmp_path, '{"model": "a", "acc": 1' + "0" * 400 + '}\n{"model": "b", "acc": 1}\n', "t.jsonl")
    with pytest.raises(InputError, match="no finite number"):
        read_numbers(path)


def test_metrics_that_were_copied_from_another_result_decide_nothing(tmp_path):
    items = seal_items(
        [make_item(f"{n}?", ["yes", "no"], n % 2, source="s") for n in range(6)], kind="items from a file"
    )
    mine, other = (score_into(MemoryBackend(text), items, tmp_path / name) for name, text in (("a", b"no"), ("b", b"")))
    before = read_numbers(mine.folder)
    (mine.folder / "metrics.json").write_bytes((other.folder / "metrics.json").read_bytes())
    assert read_numbers(mine.folder) == before != read_numbers(other.folder)


@pytest.mark.parametrize("cell", ["8e306", "1e-322", "-1e308"])
def test_a_number_whose_square_is_none_is_refused_by_its_place(cell, tmp_path):
    with pytest.raises(InputError, match=r"table\.csv:2: loss"):
        read_numbers(_write(tmp_path, f"model,loss\na,{cell}\n"))
