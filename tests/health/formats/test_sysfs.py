"""`grep -s .` over many small files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.health.formats.sysfs import number, read_tree
from wholestack.health.probe import UnreadableError

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789_/", min_size=1, max_size=20)
VALUES = st.text(st.characters(blacklist_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=20)


@given(tree=st.dictionaries(NAMES, VALUES, min_size=1))
def test_what_grep_prints_is_read_back(tree):
    assert read_tree("".join(f"{path}:{value}\n" for path, value in tree.items())) == tree


def test_a_file_of_several_lines_keeps_them_and_a_stray_line_is_refused():
    assert read_tree("a/b:1\na/b:2\n") == {"a/b": "1\n2"}
    with pytest.raises(UnreadableError):
        read_tree("a/b:1\nsegmentation fault\n")


@pytest.mark.parametrize("text", [None, "", "1.5", "0x10", "1 2", "nan", "9" * 21, "٣", "+5"])
def test_only_whole_decimal_numbers_are_numbers(text):
    assert number(text) is None


@given(value=st.integers(-(10**19), 10**19))
def test_whole_numbers_are_read(value):
    assert number(f" {value}\t") == value
