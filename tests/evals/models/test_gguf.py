"""GGUF files of which nothing can be trusted: whatever stands in them, a model or one clear line, in bounded memory."""

import os
import random
import resource
import struct

import pytest

from wholestack.errors import InputError
from wholestack.evals.backend import Opening
from wholestack.evals.models.gguf_header import MOST_VALUES, Header, read_header
from wholestack.evals.models.opening import open_backend

from .material import save_gguf, small_bpe

HEADERS = 3_000
OPENINGS = 60
MOST_MORE_MB = 700
HOSTILE = (0, 1, 2, 31, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
"""Values that are put in the place of a number."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    save_gguf(path, small_bpe())
    return path.read_bytes()


@pytest.fixture(scope="module")
def header_bytes(whole):
    """Where the tensors begin."""
    return whole.rindex(b"ffn_down.weight") + 200


def mutated(whole, header_bytes, rng):
    """Cut, with bytes changed, with a number changed, or with a piece taken out or doubled; mostly in the header."""
    data = bytearray(whole)
    at = rng.randrange(header_bytes)
    way = rng.randrange(5)
    if way == 0:
        return bytes(data[: rng.randrange(len(data))])
    if way == 1:
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(header_bytes)] = rng.randrange(256)
    elif way == 2:
        data[at : at + 4] = struct.pack("<I", rng.choice(HOSTILE))
    elif way == 3:
        data[at : at + 8] = struct.pack("<Q", rng.choice((*HOSTILE, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)))
    else:
        piece = data[at : at + rng.randint(1, 40)]
        data[at : at + len(piece)] = piece * rng.choice((0, 2, 3))
    return bytes(data)


def one_line(error):
    assert "\n" not in str(error)
    assert len(str(error)) < 600


def test_the_header_of_a_whole_file_is_read(whole, tmp_path):
    (tmp_path / "m.gguf").write_bytes(whole)
    backend = open_backend(str(tmp_path / "m.gguf"), Opening())
    assert read_header(tmp_path / "m.gguf") == Header(tensors=21, weights=backend.identity.parameters)


def test_no_header_is_trusted(whole, header_bytes, tmp_path):
    """Thousands of mutations: read, or refused in one line."""
    rng, path = random.Random(3), tmp_path / "m.gguf"
    refused = 0
    for _ in range(HEADERS):
        path.write_bytes(mutated(whole, header_bytes, rng))
        try:
            read_header(path)
        except InputError as error:
            one_line(error)
            refused += 1
    assert refused > HEADERS / 3


@pytest.mark.heavy
def test_no_file_is_trusted(whole, header_bytes, tmp_path):
    """Those whose header holds are opened as a whole: a model, or one line; memory does not grow with what they say."""
    rng, path = random.Random(4), tmp_path / "m.gguf"
    opened = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(OPENINGS):
        read = False
        while not read:
            path.write_bytes(mutated(whole, header_bytes, rng))
            try:
                read = bool(read_header(path))
            except InputError:
                continue
        try:
            open_backend(str(path), Opening())
            opened += 1
        except InputError as error:
            one_line(error)
    assert 0 < opened < OPENINGS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MORE_MB * 1024


def replaced(whole, key, form, *values):
    """The file with the value of a key changed."""
    at = whole.index(key.encode()) + len(key) + 4
    return whole[:at] + struct.pack(form, *values) + whole[at + struct.calcsize(form) :]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda whole: b"", "is damaged or no GGUF file"),
        (lambda whole: b"GGML" + whole[4:], "does not begin with GGUF"),
        (lambda whole: whole[:4] + struct.pack("<I", 9) + whole[8:], "is of version 9"),
        (lambda whole: whole[:8] + struct.pack("<Q", 1 << 40) + whole[16:], "speaks of 1,099,511,627,776 tensors"),
        (lambda whole: whole[:16] + struct.pack("<Q", 1 << 62) + whole[24:], "keys"),
        (lambda whole: whole[:200], "ends in the middle of its header"),
        (lambda whole: whole[:-100], "lies outside of it"),
        (lambda whole: replaced(whole, "tokenizer.ggml.tokens", "<I", 77), "is of type 77, which is none"),
        (lambda whole: replaced(whole, "tokenizer.ggml.tokens", "<IQ", 1, 1 << 60), f"{MOST_VALUES:,} values"),
        (lambda whole: replaced(whole, "llama.block_count", "<I", 1 << 31), "speaks of 2,147,483,648 layers"),
        (lambda whole: replaced(whole, "llama.feed_forward_length", "<I", 1 << 28), "speaks of a model of"),
        (lambda whole: replaced(whole, "llama.attention.head_count_kv", "<I", 1 << 28), "speaks of a model of"),
        (lambda whole: replaced(whole, "llama.attention.head_count", "<I", 0), "cannot be loaded"),
        (lambda whole: whole.replace(b"blk.1.ffn_up.weight", b"blk.0.ffn_up.weight"), "two tensors have one name"),
        (lambda whole: whole.replace(b"blk.1.ffn_up.weight", b"blk.7.ffn_up.weight"), "the file lacks"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said_in_one_line(whole, change, says, tmp_path):
    (tmp_path / "m.gguf").write_bytes(change(whole))
    with pytest.raises(InputError, match=says) as caught:
        open_backend(str(tmp_path / "m.gguf"), Opening())
    one_line(caught.value)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "m.gguf")
    with pytest.raises(InputError, match="it is no ordinary file"):
        read_header(tmp_path / "m.gguf")
