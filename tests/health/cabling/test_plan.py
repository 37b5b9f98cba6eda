"""Wiring plans: every form reads alike, every mistake is one line that names its place."""

import pytest

from wholestack.errors import InputError
from wholestack.health.cabling.plan import read_plan

GOOD = "a,a_port,b,b_port,rail\nh1,mlx5_0,leaf1,1/1/1,r0\nh2,mlx5_0,leaf1,1/1/2,r0\n"


@pytest.mark.parametrize(
    "content",
    [
        GOOD.encode(),
        b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace(",", ";").encode(),
        GOOD.replace(",", "\t").encode(),
        b"# cables of hall 2\n\n" + GOOD.encode() + b"\n,,,,\n",
    ],
    ids=["plain", "BOM and CRLF", "semicolon", "tab", "comments and empty rows"],
)
def test_every_way_to_write_a_csv_is_read_alike(content: bytes) -> None:
    plan = read_plan(content, name="plan.csv")
    assert [str(cable) for cable in plan.cables] == ["h1 mlx5_0 - leaf1 1/1/1", "h2 mlx5_0 - leaf1 1/1/2"]
    assert {cable.rail for cable in plan.cables} == {"r0"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plan.toml", '[[cable]]\na = "h1"\na_port = "mlx5_0"\nb = "leaf1"\nb_port = 3\nlength_m = 1.5\n'),
        ("plan.json", '[{"a": "h1", "a_port": "mlx5_0", "b": "leaf1", "b_port": 3, "length_m": 1.5}]'),
        ("plan.json", '{"cable": [{"a": "h1", "a_port": "mlx5_0", "b": "leaf1", "b_port": 3, "length_m": 1.5}]}'),
    ],
)
def test_toml_and_json_say_the_same(name: str, text: str) -> None:
    [cable] = read_plan(text.encode(), name=name).cables
    assert (str(cable), cable.length_m, cable.where) == ("h1 mlx5_0 - leaf1 3", "1.5", "cable 1")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "plan.csv: is empty"),
        (b"\xef\xbb\xbf \n", "plan.csv: is empty"),
        (b"a,a_port,b,b_port\n", "plan.csv: has no cable"),
        (b"a,a_port,b,b_port\nh1,1,l1,1\nh\xff,1,l1,2\n", "plan.csv:3: is not UTF-8"),
        (b"a,a_port,b,b_port,colour\nh1,1,l1,1,red\n", "line 1: unknown column 'colour'"),
        (b"a,a_port,b,b_port,rail,rail\nh1,1,l1,1,1,1\n", "line 1: column 'rail' is there twice"),
        (b"a,a_port,b\nh1,1,l1\n", "line 1: column 'b_port' is missing"),
        (b"a,a_port,b,b_port\n\nh1,1,l1\n", "line 3: has 3 fields, the header has 4"),
        (b"a,a_port,b,b_port\nh1,,l1,2\n", "line 2: a_port is empty"),
        (b"a,a_port,b,b_port\nh1,1,H1,1\n", "line 2: both ends are H1 1"),
        (b"a,a_port,b,b_port\nh1,1,l1,1\nh2,1,L1,1\n", "line 3: L1 1 has a cable already in line 2"),
        (b"a,a_port,b,b_port,a_rack\nh1,1,l1,1,A\nh1,2,l1,2,B\n", "line 3: h1 is in rack B unit -, before in rack A"),
        (b'a,a_port,b,b_port\nh1,1,"l1,1\n', "line 2: unexpected end of data"),
        (b"a,a_port,b,b_port\nh\x1b[2J,1,l1,1\n", "line 2: a is longer than 200 characters or not printable"),
    ],
)
def test_a_mistake_is_one_line_that_names_its_place(content: bytes, says: str) -> None:
    with pytest.raises(InputError) as caught:
        read_plan(content, name="plan.csv")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [("p.toml", "[[cable]\n"), ("p.json", "{"), ("p.json", "[1]"), ("p.toml", "x = 1"), ("p.json", '[{"a": [1]}]')],
)
def test_broken_toml_and_json_are_one_line(name: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_plan(text.encode(), name=name)
    assert "\n" not in str(caught.value)
