"""Lines, however they are cut on the way."""

from hypothesis import given
from hypothesis import strategies as st

from wholestack.launch.wire import Lines


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")), max_size=10),
    cuts=st.lists(st.integers(1, 7), max_size=100),
)
def test_lines_come_out_whole_and_in_order_however_they_are_cut(lines, cuts):
    stream = b"".join(line + b"\n" for line in lines) + b"unfinished"
    reader, out = Lines(), []
    for size in [*cuts, len(stream)]:
        out += reader.feed(stream[:size])
        stream = stream[size:]
    assert out == lines
