"""What every model behind :class:`~wholestack.evals.backend.Backend` promises, as tests.

Subclass :class:`BackendConformance`, say how to make yours, run pytest. Example::

    class TestMyBackend(BackendConformance):
        def make_backend(self):
            return MyBackend("weights")

        def make_other(self):
            return MyBackend("other weights")
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import pytest

from wholestack.evals.backend import Backend, Generation, ItemScore, ModelIdentity, Writing
from wholestack.evals.items import Item, make_item
from wholestack.record import from_json, to_json

PROMPTS = ("The first of all letters is", "1, 2, 3,", "A")
STRANGE = "half of a pair: \ud800"


def conformance_items() -> list[Item]:
    """Items of many shapes: two to six choices, long and short, empty, in several scripts, with trailing spaces."""
    shapes: list[tuple[str, tuple[str, ...], str]] = [
        ("The sky is", ("blue", "a kind of bread"), " "),
        ("Two and two make", ("four", "five", "six", "seven"), " "),
        ("def f(x):\n    return", ("x", "x + 1", "None"), " "),
        ("Grüße aus", ("Köln", "München", "Zürich"), " "),
        ("東京は", ("日本の首都です", "山です"), ""),
        ("The word ends in the mid", ("dle", "night"), ""),
        ("A trailing space ", ("is here", "is not"), ""),
        ("Line\n\nline\n", ("one", "two", "three", "four", "five", "six"), "\n"),
        ("word " * 60, ("short", "a much longer answer of several words, with commas, and an end."), " "),
        ("🙂 smiles and", ("🙃", "frowns"), " "),
    ]
    return [
        make_item(context, choices, index % len(choices), delimiter=delimiter, source="suite", id=f"item-{index}")
        for index, (context, choices, delimiter) in enumerate(shapes)
    ]


class BackendConformance:
    """The suite. Override :meth:`make_backend` and :meth:`make_other`."""

    scores: bool = True
    """Whether it can score; an endpoint without log-probabilities cannot."""
    writes: bool = True
    """Whether it can write."""
    tolerance_nats: float = 1e-5
    """How far the order and the company of items may move a scored token; 1e-9 in float64."""

    def make_backend(self) -> Backend:
        """The model under test, made anew: the same each time."""
        raise NotImplementedError

    def make_other(self) -> Backend:
        """One that differs in anything that reaches a number."""
        raise NotImplementedError

    @pytest.fixture
    def backend(self) -> Backend:
        """The model under test."""
        return self.make_backend()

    @pytest.fixture
    def scoring(self, backend: Backend) -> Backend:
        """The model under test, if it scores."""
        if not self.scores:
            pytest.skip("this backend does not score")
        return backend

    @pytest.fixture
    def writing(self, backend: Backend) -> Backend:
        """The model under test, if it writes."""
        if not self.writes:
            pytest.skip("this backend does not write")
        return backend

    def assert_same(self, left: Sequence[ItemScore], right: Sequence[ItemScore]) -> None:
        """Equal up to the tolerance a token."""
        for one, other in zip(left, right, strict=True):
            assert (one.id, one.reason, one.tokens) == (other.id, other.reason, other.tokens)
            assert (one.truncated, one.spanning) == (other.truncated, other.spanning)
            for first, second, tokens in zip(one.nll_nats, other.nll_nats, one.tokens, strict=True):
                assert abs(first - second) <= self.tolerance_nats * max(tokens, 1), one.id

    def test_it_is_a_backend(self, backend: Backend) -> None:
        """By the protocol's members."""
        assert isinstance(backend, Backend)

    def test_its_identity_is_stable(self, backend: Backend) -> None:
        """Asked twice, made twice, written down and read: the same."""
        identity = backend.identity
        assert identity == backend.identity == self.make_backend().identity
        assert from_json(ModelIdentity, to_json(identity)) == identity
        assert identity.kind
        assert identity.name

    def test_its_identity_says_what_decides_the_tokens(self, scoring: Backend) -> None:
        """Weights, and the rule by which tokens are scored."""
        assert {"weights", "token_rule"} <= scoring.identity.parts.keys()

    def test_another_model_has_another_identity(self, backend: Backend) -> None:
        """In its digest, which is what keys read."""
        assert self.make_other().identity.digest != backend.identity.digest

    def test_scoring_does_not_change_the_identity(self, scoring: Backend) -> None:
        """Not even its name."""
        before = scoring.identity
        list(scoring.score(conformance_items()))
        assert scoring.identity == before

    def test_every_item_gets_its_score_in_the_order_given(self, scoring: Backend) -> None:
        """As many numbers as choices, each finite and no gain; a tokenizer may not know a script, and then says so."""
        items = conformance_items()
        found = list(scoring.score(items))
        assert [each.id for each in found] == [item.id for item in items]
        for item, each in zip(items, found, strict=True):
            assert each.seal == ""
            if each.reason and not f"{item.context}{item.choices}".isascii():
                continue
            assert each.reason == ""
            assert len(each.nll_nats) == len(each.tokens) == len(item.choices)
            assert all(math.isfinite(nll) and nll > -1e-6 for nll in each.nll_nats)
            assert all(tokens >= 1 for tokens in each.tokens)

    def test_scoring_twice_gives_the_same_to_the_bit(self, scoring: Backend) -> None:
        """Also by a model made anew."""
        items = conformance_items()
        first = list(scoring.score(items))
        assert first == list(scoring.score(items)) == list(self.make_backend().score(items))

    def test_order_changes_no_number(self, scoring: Backend) -> None:
        """Backwards, each item has the number that it had."""
        items = conformance_items()
        backwards = list(scoring.score(items[::-1]))
        self.assert_same(list(scoring.score(items)), backwards[::-1])

    def test_company_changes_no_number(self, scoring: Backend) -> None:
        """Alone, each item has the number that it has among others."""
        items = conformance_items()
        alone = [each for item in items for each in scoring.score([item])]
        self.assert_same(list(scoring.score(items)), alone)

    def test_the_name_of_an_item_changes_no_number(self, scoring: Backend) -> None:
        """Nor does its source, cluster or gold answer: none of them is read."""
        items = conformance_items()
        renamed = [replace(item, source="other", cluster="other", gold=0) for item in items]
        assert list(scoring.score(items)) == list(scoring.score(renamed))

    def test_the_context_is_read(self, scoring: Backend) -> None:
        """Another context, another number: a scorer of answers alone would pass everything else."""
        items = conformance_items()
        changed = [replace(item, context=f"Nothing to do with it. {item.context[::-1]}") for item in items]
        pairs = zip(scoring.score(items), scoring.score(changed), strict=True)
        assert any(one.nll_nats != other.nll_nats for one, other in pairs)

    def test_the_order_of_choices_changes_no_number(self, scoring: Backend) -> None:
        """Each choice takes its number along."""
        items = conformance_items()
        turned = [replace(item, choices=item.choices[::-1]) for item in items]
        back = [replace(each, nll_nats=each.nll_nats[::-1], tokens=each.tokens[::-1]) for each in scoring.score(turned)]
        self.assert_same(list(scoring.score(items)), back)

    def test_scores_come_as_they_are_final(self, scoring: Backend) -> None:
        """The first may be taken without the rest, and a new call starts anew."""
        items = conformance_items()
        whole = list(scoring.score(items))
        self.assert_same(list(islice(scoring.score(items), 3)), whole[:3])
        self.assert_same(list(scoring.score(items)), whole)

    def test_going_on_gives_what_was_missing_to_the_bit(self, scoring: Backend) -> None:
        """Wherever a scoring was broken off, the rest has the numbers that it would have had."""
        items = conformance_items()
        whole = list(scoring.score(items))
        for kept in (whole[:1], whole[:7], whole[3:8], whole[::2], whole):
            done = {each.id for each in kept}
            assert list(scoring.score(items, done=done)) == [each for each in whole if each.id not in done]

    def test_no_items_give_no_scores(self, scoring: Backend) -> None:
        """And no error."""
        assert list(scoring.score([])) == []

    def test_what_cannot_be_scored_comes_with_a_reason_and_spoils_nothing(self, scoring: Backend) -> None:
        """Text that is no Unicode has no tokens; the items beside it keep their numbers."""
        items = conformance_items()
        strange = replace(items[0], id="strange", context=STRANGE)
        found = list(scoring.score([items[1], strange, items[2]]))
        assert found[1].reason
        assert found[1].nll_nats == found[1].tokens == ()
        self.assert_same(list(scoring.score(items[1:3])), [found[0], found[2]])

    def test_an_empty_context_is_scored_or_refused_with_a_reason(self, scoring: Backend) -> None:
        """Never an exception, never a zero."""
        empty = replace(conformance_items()[0], context="", delimiter="")
        (found,) = scoring.score([empty])
        assert bool(found.reason) != bool(found.nll_nats)
        assert all(nll > 0 for nll in found.nll_nats)

    def test_a_long_context_is_cut_on_its_left_or_read_whole(self, scoring: Backend) -> None:
        """What is in front of the cut cannot change a number; cut or not is said."""
        item = conformance_items()[0]
        long = replace(item, context="word " * 100_000 + item.context)
        (found,) = scoring.score([long])
        assert found.reason or len(found.nll_nats) == len(item.choices)
        if found.truncated:
            (other,) = scoring.score([replace(long, context=f"Begin. {long.context}")])
            self.assert_same([found], [other])

    def test_a_score_survives_the_journal(self, scoring: Backend) -> None:
        """JSON and back."""
        for each in scoring.score(conformance_items()):
            assert from_json(ItemScore, to_json(each)) == each

    def test_expense_is_said_before(self, backend: Backend) -> None:
        """It grows with what is asked, nothing is free, and a time says what it rests on."""
        items = conformance_items() if self.scores else []
        prompts, writing = (PROMPTS, Writing(max_tokens=7)) if self.writes else ((), None)
        little = backend.expense(items[:2], prompts[:1], writing)
        much = backend.expense(items, prompts, writing)
        assert 0 < little.requests < much.requests
        assert 0 < little.prompt_tokens < much.prompt_tokens
        assert much.written_tokens == 7 * len(prompts)
        assert much.basis or much.seconds is None

    def test_every_prompt_gets_its_text_in_the_order_given(self, writing: Backend) -> None:
        """Whatever stands beside it."""
        said = Writing(max_tokens=8)
        found = list(writing.generate(PROMPTS, said))
        assert len(found) == len(PROMPTS)
        for prompt, each in zip(PROMPTS, found, strict=True):
            assert next(iter(writing.generate([prompt], said))).text == each.text
            assert each.finish in ("stop", "length")
            assert each.reason == ""
        assert [each.text for each in writing.generate(PROMPTS[::-1], said)] == [each.text for each in found[::-1]]

    def test_it_writes_no_more_than_it_may(self, writing: Backend) -> None:
        """And says that it was cut."""
        for most in (1, 5):
            for each in writing.generate(PROMPTS, Writing(max_tokens=most)):
                assert each.tokens <= most
                assert each.finish == "stop" or each.tokens == most

    def test_it_stops_in_front_of_a_stop_text(self, writing: Backend) -> None:
        """Which is not part of the text."""
        whole = [each.text for each in writing.generate(PROMPTS, Writing(max_tokens=12))]
        for prompt, text in zip(PROMPTS, whole, strict=True):
            for stop in sorted(set(_pieces(text)))[:3]:
                (found,) = writing.generate([prompt], Writing(max_tokens=12, stop=(stop,)))
                assert found.text == text[: text.index(stop)]
                assert found.finish == "stop"

    def test_writing_is_repeatable(self, writing: Backend) -> None:
        """At temperature 0, and above it with a seed."""
        for said in (Writing(max_tokens=8), Writing(max_tokens=8, temperature=1.0, seed=3)):
            first = list(writing.generate(PROMPTS, said))
            assert first == list(self.make_backend().generate(PROMPTS, said))

    def test_a_text_survives_the_journal(self, writing: Backend) -> None:
        """JSON and back."""
        for each in writing.generate(PROMPTS, Writing(max_tokens=4)):
            assert from_json(Generation, to_json(each)) == each

    def test_no_prompts_give_no_texts(self, writing: Backend) -> None:
        """And no error."""
        assert list(writing.generate([], Writing(max_tokens=4))) == []


def _pieces(text: str) -> Iterator[str]:
    """Parts of a text by which it may be stopped, whole letters only."""
    return (text[at : at + 2] for at in range(len(text) - 1) if "\ufffd" not in text[at : at + 2])
