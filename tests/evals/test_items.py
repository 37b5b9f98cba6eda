import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wholestack.errors import InputError, RunDirectoryError, WholestackError
from wholestack.evals.items import (
    Item,
    ItemSet,
    items_bytes,
    make_item,
    metric_name,
    read_items,
    seal_items,
)

GOOD = {"context": "two and two", "choices": ["is four", "is five"], "gold": 0}


def write_lines(path, *lines):
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def item_with(**changes):
    fields = {"context": "a b", "choices": ("c", "d"), "gold": 1, "delimiter": " ", "source": "s", "cluster": "k"}
    return make_item(**{**fields, **changes})


def test_a_saved_set_loads_as_it_was(small_set, tmp_path):
    small_set.save(tmp_path / "new" / "folder")
    assert ItemSet.load(tmp_path / "new" / "folder") == small_set


def test_every_changed_byte_of_the_items_is_refused_under_the_old_name(small_set, tmp_path):
    small_set.save(tmp_path)
    path = tmp_path / "items.jsonl"
    original = path.read_bytes()
    for at in range(0, len(original), 97):
        path.write_bytes(original[:at] + bytes([original[at] ^ 1]) + original[at + 1 :])
        with pytest.raises(WholestackError, match="changed after it was sealed"):
            ItemSet.load(tmp_path)


def test_a_changed_byte_of_the_manifest_is_refused_or_means_the_same(small_set, tmp_path):
    small_set.save(tmp_path)
    path = tmp_path / "manifest.json"
    original = path.read_bytes()
    refused = 0
    for at in range(0, len(original), 41):
        path.write_bytes(original[:at] + bytes([original[at] ^ 1]) + original[at + 1 :])
        try:
            assert ItemSet.load(tmp_path) == small_set
        except WholestackError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize("suffix", [b"\n", b" ", b"{}\n"])
def test_bytes_added_to_the_items_are_refused(small_set, tmp_path, suffix):
    small_set.save(tmp_path)
    path = tmp_path / "items.jsonl"
    path.write_bytes(path.read_bytes() + suffix)
    with pytest.raises(InputError, match=r"items.jsonl: was changed"):
        ItemSet.load(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"manifest\.json: cannot be read"):
        ItemSet.load(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(small_set, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="cannot be made"):
        small_set.save(tmp_path / "file" / "folder")


@settings(deadline=None)
@given(st.sampled_from(["context", "delimiter", "source", "cluster", "choices", "gold", "id"]))
def test_every_field_of_an_item_is_in_the_digest(field):
    other = {"choices": ("c", "e"), "gold": 0}.get(field, "other")
    plain = seal_items([item_with()], kind="items from a file")
    changed = seal_items([item_with(**{field: other})], kind="items from a file")
    assert plain.digest != changed.digest
    assert metric_name("answer_bpb", plain) != metric_name("answer_bpb", changed)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "continuation choices"},
        {"cut_rule": "x"},
        {"python_version": "3.13"},
        {"documents": {"h": "p"}},
        {"seed": 1},
        {"passed_over": {"r": 1}},
    ],
)
def test_everything_in_the_manifest_is_in_the_digest(change):
    base = {"kind": "items from a file"}
    assert seal_items([item_with()], **base).digest != seal_items([item_with()], **{**base, **change}).digest


def test_order_is_in_the_digest():
    one, two = item_with(context="one"), item_with(context="two")
    assert (
        seal_items([one, two], kind="items from a file").digest
        != seal_items([two, one], kind="items from a file").digest
    )


def test_the_metric_name_carries_eight_digits_of_the_digest(small_set):
    assert metric_name("answer_bpb", small_set) == f"answer_bpb[{small_set.digest[:8]}]"
    assert metric_name("answer_bpb", "3f2a9c1b00000000") == "answer_bpb[3f2a9c1b]"


def test_own_items_need_three_keys_and_get_defaults(tmp_path):
    found = read_items(write_lines(tmp_path / "sums.jsonl", GOOD, {**GOOD, "context": "", "delimiter": "", "id": "x"}))
    first, second = found.items
    assert (first.source, first.delimiter, first.cluster) == ("sums", " ", first.id)
    assert (second.id, second.context, second.answer) == ("x", "", "is four")
    assert found.manifest.kind == "items from a file"
    assert found.manifest.python_version == ""


def test_unknown_keys_are_ignored_and_change_nothing(tmp_path):
    plain = read_items(write_lines(tmp_path / "a.jsonl", GOOD))
    extra = read_items(write_lines(tmp_path / "sub_a.jsonl", {**GOOD, "source": "a", "difficulty": [1, {"x": None}]}))
    assert extra == plain
    assert b"difficulty" not in items_bytes(extra.items)


def test_saved_items_can_be_read_as_own_items_under_another_name(small_set, tmp_path):
    small_set.save(tmp_path)
    again = read_items(tmp_path / "items.jsonl")
    assert again.items == small_set.items
    assert again.digest != small_set.digest


def test_blank_lines_line_ends_of_windows_and_a_byte_order_mark_are_harmless(tmp_path):
    path = tmp_path / "w.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\r\n")
    assert len(read_items(path).items) == 1


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path):
    path = tmp_path / "w.jsonl"
    path.write_text(json.dumps({**GOOD, "context": "a\u2028b\u0085c"}, ensure_ascii=False), encoding="utf-8")
    found = read_items(path)
    assert found.items[0].context == "a\u2028b\u0085c"
    found.save(tmp_path / "set")
    assert ItemSet.load(tmp_path / "set") == found


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "expected an object, got list"),
        ({"context": "a", "choices": ["b", "c"]}, "gold is missing"),
        ({**GOOD, "gold": 2}, "gold is 2, the choices are 0 to 1"),
        ({**GOOD, "gold": -1}, "gold is -1"),
        ({**GOOD, "gold": True}, "gold is bool"),
        ({**GOOD, "gold": 0.0}, "gold is float"),
        ({**GOOD, "choices": ["b"]}, "two or more choices, got 1"),
        ({**GOOD, "choices": ["b", " "]}, "choice 1 is empty"),
        ({**GOOD, "choices": ["b", "b"]}, "two choices are the same"),
        ({**GOOD, "choices": "bc"}, "choices is str, not a list of texts"),
        ({**GOOD, "choices": ["b", 1]}, "choices is not a list of texts"),
        ({**GOOD, "context": None}, "context is NoneType, not text"),
        ({**GOOD, "delimiter": 1}, "delimiter is int, not text"),
        (GOOD, "the same item was on line 1"),
        ({**GOOD, "choices": ["is five", "is four"], "gold": 1}, "the same item was on line 1"),
        ({**GOOD, "context": "\ud800"}, ""),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = write_lines(tmp_path / "own.jsonl", GOOD, line)
    with pytest.raises(InputError) as caught:
        read_items(path)
    assert f"{path}:2: " in caught.value.message
    assert message in caught.value.message


def test_a_repeated_id_is_named_with_both_lines(tmp_path):
    path = write_lines(tmp_path / "own.jsonl", {**GOOD, "id": "q"}, "", {**GOOD, "context": "other", "id": "q"})
    with pytest.raises(InputError, match=r"own.jsonl:3: id 'q' was on line 1"):
        read_items(path)


def test_text_that_is_not_utf8_is_named_by_line(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b'\n{"context": "\xff", "choices": ["a", "b"], "gold": 0}\n')
    with pytest.raises(InputError, match=r"own.jsonl:2: not JSON"):
        read_items(path)


def test_many_bad_lines_are_counted(tmp_path):
    with pytest.raises(InputError, match="and 3 more lines"):
        read_items(write_lines(tmp_path / "own.jsonl", *["nonsense"] * 8))


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_a_file_without_items_is_refused(tmp_path, content):
    (tmp_path / "own.jsonl").write_bytes(content)
    with pytest.raises(InputError, match="holds no item"):
        read_items(tmp_path / "own.jsonl")


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_items_or_one_clear_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "own.jsonl"
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_items(path)


texts = st.text(min_size=1, max_size=20).filter(str.strip)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.text(max_size=20), st.lists(texts, min_size=2, max_size=5, unique=True)),
        min_size=1,
        max_size=4,
        unique_by=str,
    )
)
def test_any_text_survives_saving_and_loading(tmp_path_factory, contents):
    items = [make_item(context, choices, len(choices) - 1, source="s") for context, choices in contents]
    sealed = seal_items(items, kind="items from a file")
    folder = tmp_path_factory.mktemp("set")
    sealed.save(folder)
    assert ItemSet.load(folder) == sealed


def test_sealing_refuses_no_items_and_repeated_ids():
    with pytest.raises(InputError, match="at least one"):
        seal_items([], kind="items from a file")
    with pytest.raises(InputError, match="'x' occurs more than once"):
        seal_items([item_with(id="x"), item_with(id="x", context="y")], kind="items from a file")


def test_an_item_knows_its_answer():
    assert Item(id="i", source="s", cluster="c", context="", delimiter="", choices=("a", "b"), gold=1).answer == "b"
