import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.data.shards import ShardWriter, TokenStream, file_sha256
from wholestack.errors import DataError, RunDirectoryError


@given(st.lists(st.lists(st.integers(0, 65535), max_size=30), max_size=12), st.integers(1, 20), st.data())
def test_what_was_written_is_read_whatever_the_size_of_a_shard(tmp_path_factory, parts, shard_tokens, data):
    folder = tmp_path_factory.mktemp("stream")
    (folder / "shards").mkdir()
    writer = ShardWriter(folder, "s", "train", shard_tokens=shard_tokens)
    firsts = [writer.append(np.array(part, dtype=np.uint16)) for part in parts]
    shards = writer.close()
    flat = [token for part in parts for token in part]
    assert firsts == [sum(map(len, parts[:i])) for i in range(len(parts))]
    assert all(shard.tokens == shard_tokens for shard in shards[:-1])
    stream = TokenStream(folder, shards)
    assert len(stream) == len(flat)
    first = data.draw(st.integers(0, len(flat)))
    count = data.draw(st.integers(0, len(flat) - first))
    assert stream.take(first, count).tolist() == flat[first : first + count]
    for shard in shards:
        bytes_of = (folder / shard.file).read_bytes()
        assert bytes_of == np.array(flat[shard.first_token :][: shard.tokens], dtype="<u2").tobytes()
        assert shard.sha256 == hashlib.sha256(bytes_of).hexdigest() == file_sha256(folder / shard.file)


@pytest.fixture
def shards(tmp_path):
    (tmp_path / "shards").mkdir()
    writer = ShardWriter(tmp_path, "s", "train", shard_tokens=4)
    writer.append(np.arange(10, dtype=np.uint16))
    return writer.close()


@pytest.mark.parametrize(("first", "count"), [(-1, 1), (0, 11), (10, 1), (5, -1)])
def test_tokens_outside_the_stream_are_an_error(tmp_path, shards, first, count):
    with pytest.raises(IndexError, match="stream of 10"):
        TokenStream(tmp_path, shards).take(first, count)


def test_a_missing_or_short_shard_is_named(tmp_path, shards):
    path = tmp_path / shards[1].file
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(DataError, match=r"s\.train\.00001\.bin.*expected 8"):
        TokenStream(tmp_path, shards)
    path.unlink()
    with pytest.raises(DataError, match=r"s\.train\.00001\.bin"):
        TokenStream(tmp_path, shards)


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path):
    writer = ShardWriter(tmp_path / "missing", "s", "train")
    writer.append(np.zeros(3, dtype=np.uint16))
    with pytest.raises(RunDirectoryError, match="cannot be written"):
        writer.close()
