"""Records: what is written comes back, and nothing slips in or out unseen."""

import math
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import RecordError
from wholestack.record import Record, digest, from_builtins, from_json, to_builtins, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner(Record):
    name: str
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer(Record):
    SCHEMA: ClassVar[str] = "outer/1"

    count: int
    inner: Inner
    more: tuple[Inner, ...] = ()
    free: dict[str, float | str] | None = None
    share: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must lie in 0..1, is {self.share}")


finite = st.floats(allow_nan=False, allow_infinity=False)
inners = st.builds(Inner, name=st.text(), weights=st.lists(finite).map(tuple))
outers = st.builds(
    Outer,
    count=st.integers(-(2**53), 2**53),
    inner=inners,
    more=st.lists(inners, max_size=3).map(tuple),
    free=st.none() | st.dictionaries(st.text(), finite | st.text(), max_size=3),
    share=st.floats(0, 1),
)


@given(outers)
def test_a_record_comes_back_as_it_was(record: Outer) -> None:
    assert from_json(Outer, to_json(record)) == record
    assert from_json(Outer, to_json(record, indent=2)) == record


def test_defaults_are_written_out() -> None:
    assert to_builtins(Outer(count=1, inner=Inner(name="a"))) == {
        "schema": "outer/1",
        "count": 1,
        "inner": {"name": "a", "weights": ()},
        "more": (),
        "free": None,
        "share": 0.5,
    }
    decoded = from_builtins(Outer, {"schema": "outer/1", "count": 1, "inner": {"name": "a"}})
    assert to_builtins(decoded)["share"] == 0.5


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({"schema": "outer/1", "count": 1, "inner": {"name": "a"}, "cuont": 2}, "'cuont'"),
        ({"schema": "outer/1", "count": 1, "inner": {"name": "a", "nmae": "b"}}, "place.inner: unknown key 'nmae'"),
        ({"schema": "outer/1", "count": 1, "inner": {"name": "a"}, "more": [{"name": "b", "x": 1}]}, "place.more[0]"),
    ],
)
def test_an_unknown_key_is_refused_with_its_path(raw: dict, path: str) -> None:
    with pytest.raises(RecordError, match="unknown key") as caught:
        from_builtins(Outer, raw, where="place")
    assert path in str(caught.value)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused_on_writing(bad: float) -> None:
    for record in (
        Outer(count=1, inner=Inner(name="a", weights=(0.0, bad))),
        Outer(count=1, inner=Inner(name="a"), free={"x": bad}),
    ):
        with pytest.raises(RecordError, match="finite"):
            to_json(record)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[1]", b"null", b'{"count": 1}', b'{"schema": "outer/2", "count": 1, "inner": {"name": "a"}}']
    + [b'{"schema": "outer/1", "count": NaN, "inner": {"name": "a"}}']
    + [b'{"schema": "outer/1", "count": "one", "inner": {"name": "a"}}']
    + [b'{"schema": "outer/1", "count": 1, "inner": {"name": "a"}, "share": 2.0}', b"\xff\xfe"],
)
def test_what_does_not_decode_is_an_error_that_names_the_place(text: bytes) -> None:
    with pytest.raises(RecordError, match=r"file\.json:3"):
        from_json(Outer, text, where="file.json:3")


def test_the_digest_does_not_depend_on_the_order_of_keys_and_changes_with_any_value() -> None:
    assert digest({"a": 1, "b": 2.0}) == digest({"b": 2.0, "a": 1})
    values = [{"a": 1}, {"a": 2}, {"b": 1}, {"a": "1"}, {"a": 1.5}, [{"a": 1}], {"a": [1]}, {"a": None}]
    assert len({digest(value) for value in values}) == len(values)


def test_a_record_cannot_be_changed() -> None:
    record = Inner(name="a")
    with pytest.raises(AttributeError):
        record.name = "b"  # type: ignore[misc]
