import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.evals.backend import Writing
from wholestack.evals.items import make_item
from wholestack.evals.memory import MemoryBackend
from wholestack.evals.prepared import TOO_LONG
from wholestack.testing.evals_backend import BackendConformance

TEXT = b"The cat sat on the mat. The dog sat on the log. Two and two make four. " * 3


class TestMemory(BackendConformance):
    tolerance_nats = 1e-12

    def make_backend(self):
        return MemoryBackend(TEXT)

    def make_other(self):
        return MemoryBackend(TEXT + b".")


class TestKnowingNothing(BackendConformance):
    tolerance_nats = 1e-12

    def make_backend(self):
        return MemoryBackend()

    def make_other(self):
        return MemoryBackend(order=2)

    def test_the_context_is_read(self, scoring):
        pytest.skip("every byte has 1/256 whatever stands before it: that is this model")


def counted(text, context, byte, *, order, strength):
    """The formula of the module again, in fractions and by looking at every place of the text."""
    found = Fraction(1, 256)
    for length in range(min(order, len(context)) + 1):
        seen = context[len(context) - length :]
        starts = [at for at in range(len(text) - length) if text[at : at + length] == seen]
        if starts:
            hits = sum(text[at + length] == byte for at in starts)
            found = (hits + strength * found) / (len(starts) + strength)
    return found


@given(
    st.binary(max_size=30).map(lambda data: bytes(byte % 3 + 97 for byte in data)),
    st.text("abc", max_size=5),
    st.text("abc", min_size=1, max_size=4),
    st.integers(0, 3),
    st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(3)]),
)
def test_the_numbers_are_those_of_the_formula(text, context, answer, order, strength):
    model = MemoryBackend(text, order=order, strength=float(strength))
    item = make_item(context, [answer, "zz"], 0, delimiter="", source="s")
    (found,) = model.score([item])
    whole = (context + answer).encode()
    expected = -sum(
        math.log(counted(text, whole[:at], whole[at], order=order, strength=strength))
        for at in range(len(context), len(whole))
    )
    assert found.nll_nats[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("context", [b"", b"The", b" on the "])
def test_the_probabilities_of_all_bytes_sum_to_one(context):
    model = MemoryBackend(TEXT)
    assert sum(model._probability(context, byte) for byte in range(256)) == pytest.approx(1, abs=1e-12)


def test_knowing_nothing_costs_eight_bits_a_byte():
    item = make_item("a", ["bcd", "e"], 0, source="s")
    (found,) = MemoryBackend().score([item])
    assert found.nll_nats == pytest.approx([4 * math.log(256), 2 * math.log(256)])


def test_what_was_read_is_preferred():
    right = make_item("The cat sat on the", ["mat", "mug", "moon"], 0, source="s")
    (found,) = MemoryBackend(TEXT).score([right])
    assert min(found.nll_nats) == found.nll_nats[0]


def test_a_context_that_does_not_fit_is_cut_and_an_answer_that_does_not_fit_is_refused():
    model = MemoryBackend(TEXT, context_bytes=8)
    fits, cut, too_long = model.score(
        [
            make_item("abc", ["defg", "h"], 0, source="s", delimiter=""),
            make_item("abcdefg", ["defg", "h"], 0, source="s", delimiter=""),
            make_item("a", ["0123456789", "h"], 0, source="s", delimiter=""),
        ]
    )
    assert (fits.truncated, cut.truncated) == (False, True)
    assert too_long.reason == TOO_LONG


@pytest.mark.parametrize("setting", [{"order": -1}, {"strength": 0.0}, {"strength": math.nan}, {"context_bytes": 1}])
def test_settings_out_of_range_are_refused(setting):
    with pytest.raises(InputError):
        MemoryBackend(**setting)


def test_it_goes_on_as_the_text_did():
    (found,) = MemoryBackend(TEXT, order=6).generate(["The cat sat"], Writing(max_tokens=40, stop=(".",)))
    assert (found.text, found.finish) == (" on the mat", "stop")


def test_seeds_write_different_texts_above_temperature_zero():
    texts = {
        next(MemoryBackend(TEXT).generate(["The"], Writing(max_tokens=20, temperature=1.0, seed=seed))).text
        for seed in range(5)
    }
    assert len(texts) > 1


def test_a_temperature_next_to_zero_is_zero():
    model = MemoryBackend(b"the cat sat on the mat " * 9)
    cold, none = (
        next(iter(model.generate(["the "], Writing(max_tokens=8, temperature=each)))) for each in (1e-300, 0.0)
    )
    assert cold.text == none.text
