import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.data.source import WHY, Refusal, check_name, fit_name
from wholestack.errors import InputError
from wholestack.record import from_json, to_json


@given(st.text(max_size=100))
def test_a_fitted_name_is_always_usable(name):
    assert check_name(fit_name(name))


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "../x", "a b", "é", "x" * 65, "-", "a\n"])
def test_a_name_that_is_no_file_name_is_refused(name):
    with pytest.raises(InputError, match="not usable"):
        check_name(name)


def test_a_refusal_survives_the_disk():
    refusal = Refusal(source="s", path="a.bin", reason="binary", detail="a NUL byte")
    assert from_json(Refusal, to_json(refusal)) == refusal
    assert refusal.reason in WHY
