import math

import numpy as np
import pytest
import torch

from wholestack.errors import InputError
from wholestack.evals.items import make_item, seal_items
from wholestack.evals.prepared import prepare_items
from wholestack.evals.scoring import NOT_FINITE, score, score_items

from .material import ByteTokenizer, InTwoSteps, SmallTransformer, TokensOnly

FAMILIES = ["byte", "bpe", "sentencepiece"]
TOLERANCE_NATS = {torch.float32: 1e-5, torch.float64: 1e-9}


@pytest.fixture(scope="module")
def ragged_set(small_set):
    """Continuation choices and items with other numbers of choices of very different lengths."""
    own = [
        make_item("Zwei und zwei", ["sind vier", "sind", "x" * 40], 1, source="own"),
        make_item("\u00e97", ["b", "cc"], 0, delimiter="", source="own"),
        make_item("漢字" * 20, ["🎈", "é" * 30, "zz", "yyy", "x"], 4, delimiter="\n", source="own"),
    ]
    return seal_items([*small_set.items, *own], kind="items from a file")


def one_text_at_a_time(model, item_set, tokenizer):
    """The oracle: no batches, no padding, no mask, no sharing; each text alone in the model."""
    totals = []
    model.eval()
    for item in item_set.items:
        alone = list(tokenizer.encode(item.context))
        whole = [list(tokenizer.encode(item.context + item.delimiter + choice)) for choice in item.choices]
        shared = next(n for n in range(len(alone), -1, -1) if all(tokens[:n] == alone[:n] for tokens in whole))
        for tokens in whole:
            with torch.no_grad():
                log_p = model(torch.tensor([tokens]))[0].double().log_softmax(-1)
            totals.append(-math.fsum(float(log_p[at - 1, tokens[at]]) for at in range(shared, len(tokens))))
    return np.array(totals)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("family", FAMILIES)
def test_batches_padding_and_sharing_change_nothing(ragged_set, tokenizers, family, dtype):
    tokenizer = tokenizers[family]
    model = SmallTransformer(tokenizer.vocabulary, dtype=dtype)
    prepared = prepare_items(ragged_set, tokenizer, context_tokens=512)
    expected = one_text_at_a_time(model, ragged_set, tokenizer)
    for batch_size in (1, 7, 32):
        for padding in ("right", "left"):
            for context_use in ("shared", "per choice"):
                found = score_items(model, prepared, batch_size=batch_size, padding=padding, context_use=context_use)
                assert found.is_scored.all()
                per_token = np.abs(found.nll_nats - expected) / found.answer_tokens
                assert per_token.max() <= TOLERANCE_NATS[dtype]


def test_the_order_of_the_items_changes_nothing(ragged_set):
    model = SmallTransformer(256)
    turned = seal_items(ragged_set.items[::-1], kind="items from a file")
    one, other = (
        score_items(model, prepare_items(s, ByteTokenizer(), context_tokens=512), batch_size=5)
        for s in (ragged_set, turned)
    )
    places = {identity: index for index, identity in enumerate(other.item_ids.tolist())}
    for index, identity in enumerate(one.item_ids.tolist()):
        there = places[identity]
        np.testing.assert_allclose(
            one.nll_nats[one.choice_offsets[index] : one.choice_offsets[index + 1]],
            other.nll_nats[other.choice_offsets[there] : other.choice_offsets[there + 1]],
            atol=1e-4,
            rtol=1e-6,
        )


def test_the_test_model_depends_on_context_so_that_these_tests_can_fail(ragged_set):
    model = SmallTransformer(256, dtype=torch.float64)
    prepared = prepare_items(ragged_set, ByteTokenizer(), context_tokens=512)
    cut = prepare_items(ragged_set, ByteTokenizer(), context_tokens=70)
    assert np.abs(score_items(model, prepared).nll_nats - score_items(model, cut).nll_nats).max() > 0.1


def test_a_model_that_takes_tokens_only_gets_the_same_numbers(ragged_set):
    inner = SmallTransformer(256, dtype=torch.float64)
    prepared = prepare_items(ragged_set, ByteTokenizer(), context_tokens=512)
    plain = score_items(TokensOnly(inner), prepared, batch_size=9)
    shared = score_items(inner, prepared, batch_size=9)
    np.testing.assert_allclose(plain.nll_nats, shared.nll_nats, atol=1e-9, rtol=0)
    assert plain.positions > 2 * shared.positions


def test_a_model_in_two_steps_computes_logits_only_where_they_are_scored(ragged_set):
    inner = SmallTransformer(256, dtype=torch.float64)
    prepared = prepare_items(ragged_set, ByteTokenizer(), context_tokens=512)
    model = InTwoSteps(inner)
    found = score_items(model, prepared)
    np.testing.assert_allclose(found.nll_nats, score_items(inner, prepared).nll_nats, atol=1e-9, rtol=0)
    assert model.unembedded == prepared.answer_tokens.sum()


def test_methods_of_the_same_names_that_take_something_else_are_not_called(small_set):
    class Other(SmallTransformer):
        def hidden(self, tokens):
            raise AssertionError("hidden was called")

        def unembed(self, hidden):
            raise AssertionError("unembed was called")

    prepared = prepare_items(small_set, ByteTokenizer(), context_tokens=512)
    same = score_items(SmallTransformer(256), prepared)
    np.testing.assert_array_equal(score_items(Other(256), prepared).nll_nats, same.nll_nats)


@pytest.mark.parametrize("arguments", [{"padding": "left"}, {"context_use": "shared"}])
def test_what_a_model_of_tokens_only_cannot_do_is_refused(small_set, arguments):
    prepared = prepare_items(small_set, ByteTokenizer(), context_tokens=512)
    with pytest.raises(InputError, match="need a model that takes positions and mask"):
        score_items(TokensOnly(SmallTransformer(256)), prepared, **arguments)


def test_a_cut_context_scores_like_the_text_that_is_left(small_set):
    model = SmallTransformer(256, context=64, dtype=torch.float64)
    cut = score_items(model, prepare_items(small_set, ByteTokenizer(), context_tokens=40))
    shorter = []
    for item in small_set.items:
        room = 40 - max(len(choice.encode()) for choice in item.choices)
        context = item.context.encode()[-room:].decode()
        shorter.append(make_item(context, item.choices, item.gold, delimiter=item.delimiter, source="s"))
    whole = prepare_items(seal_items(shorter, kind="items from a file"), ByteTokenizer(), context_tokens=64)
    assert cut.truncated.sum() > 20
    assert not whole.truncated.any()
    np.testing.assert_allclose(cut.nll_nats, score_items(model, whole).nll_nats, atol=1e-9, rtol=0)


def test_a_uniform_model_has_eight_bits_a_byte_and_guesses_at_chance(item_set):
    def uniform(tokens, *, positions, mask):
        return torch.zeros(*tokens.shape, 256)

    scores = score(uniform, prepare_items(item_set, ByteTokenizer(), context_tokens=512))
    assert scores.answer_bpb == pytest.approx(8, abs=1e-6)
    assert scores.metric("answer_bpb_macro").value == pytest.approx(8, abs=1e-6)
    for name in ("raw", "per_byte", "per_token"):
        assert scores.metric(f"choice_nll_{name}").value == pytest.approx(math.log(4), abs=1e-5)
        assert scores.metric(f"accuracy_{name}").value == pytest.approx(0.25)
        assert scores.metric(f"brier_{name}").value == pytest.approx(0.75, abs=1e-5)


def test_a_model_that_knows_the_answers_is_right_everywhere(small_set):
    texts = {item.context + item.delimiter + item.answer for item in small_set.items}

    def oracle(tokens):
        logits = torch.zeros(*tokens.shape, 256)
        for row, line in enumerate(tokens.tolist()):
            for at in range(len(line)):
                for text in texts:
                    data = text.encode()
                    if bytes(line[: at + 1]) == data[: at + 1] and at + 1 < len(data):
                        logits[row, at, data[at + 1]] = 20.0
        return logits

    scores = score(oracle, prepare_items(small_set, ByteTokenizer(), context_tokens=512))
    assert scores.metric("accuracy_raw").value == 1
    assert scores.answer_bpb < 1e-5


def test_numbers_that_are_not_finite_make_an_item_unscorable_and_never_nan(small_set):
    class Broken(SmallTransformer):
        def forward(self, tokens, positions=None, mask=None):
            logits = super().forward(tokens, positions, mask).clone()
            logits[tokens == ord("q")] = math.nan
            return logits

    prepared = prepare_items(small_set, ByteTokenizer(), context_tokens=512)
    found = score_items(Broken(256), prepared)
    has_q = [any("q" in choice[:-1] for choice in item.choices) or item.context[-1] == "q" for item in small_set.items]
    assert 0 < sum(has_q) < len(has_q)
    assert (found.reasons == NOT_FINITE).tolist() == has_q
    assert np.isfinite(found.nll_nats).all()
    scores = score(Broken(256), prepared)
    assert scores.unscorable == {NOT_FINITE: sum(has_q)}
    assert scores.scored == len(has_q) - sum(has_q)


def test_a_diverged_model_has_no_numbers_and_says_why(small_set):
    def diverged(tokens):
        return torch.full((*tokens.shape, 256), math.nan)

    scores = score(diverged, prepare_items(small_set, ByteTokenizer(), context_tokens=512))
    assert (scores.scored, scores.metrics, scores.detectable) == (0, (), None)
    with pytest.raises(InputError, match="could be scored"):
        _ = scores.answer_bpb


def test_unscorable_items_are_counted_beside_scored_ones():
    items = [
        make_item("", ["a", "b"], 0, source="s"),
        make_item("abc", ["d", "e" * 30], 0, source="s"),
        make_item("abc", ["d", "f"], 0, source="s"),
    ]
    prepared = prepare_items(seal_items(items, kind="items from a file"), ByteTokenizer(), context_tokens=16)
    scores = score(SmallTransformer(256), prepared)
    assert (scores.items, scores.scored, sum(scores.unscorable.values())) == (3, 1, 2)
    assert {metric.items for metric in scores.metrics} == {1}


def test_items_that_are_all_unscorable_never_reach_the_model():
    item = make_item("", ["a", "b"], 0, source="s")
    prepared = prepare_items(seal_items([item], kind="items from a file"), ByteTokenizer(), context_tokens=16)
    scores = score(SmallTransformer(256), prepared)
    assert (scores.scored, scores.positions) == (0, 0)


def test_dropout_is_off_while_scoring_and_the_mode_is_given_back(small_set):
    prepared = prepare_items(small_set, ByteTokenizer(), context_tokens=512)
    model = SmallTransformer(256)
    model.train()
    first, second = score_items(model, prepared), score_items(model, prepared)
    np.testing.assert_array_equal(first.nll_nats, second.nll_nats)
    assert model.training
    model.eval()
    score_items(model, prepared)
    assert not model.training


def test_the_mode_is_given_back_after_an_error_too(small_set):
    class Wrong(SmallTransformer):
        def forward(self, tokens, positions=None, mask=None):
            return super().forward(tokens, positions, mask)[:, -1:]

    model = Wrong(256)
    model.train()
    with pytest.raises(InputError, match=r"the model returned \(24, 1, 256\)"):
        score_items(model, prepare_items(small_set, ByteTokenizer(), context_tokens=512), batch_size=24)
    assert model.training


def test_tokens_that_the_model_does_not_know_are_an_error(small_set):
    prepared = prepare_items(small_set, ByteTokenizer(), context_tokens=512)
    with pytest.raises(InputError, match="does not know a token"):
        score_items(SmallTransformer(60), prepared)
    with pytest.raises(InputError, match="is not among the model's 60"):
        score_items(lambda tokens: torch.zeros(*tokens.shape, 60), prepared)


def test_half_precision_is_summed_in_single(small_set):
    prepared = prepare_items(small_set, ByteTokenizer(), context_tokens=512)
    uniform = score_items(lambda tokens: torch.zeros(*tokens.shape, 256, dtype=torch.bfloat16), prepared)
    np.testing.assert_allclose(uniform.nll_nats, prepared.answer_tokens * math.log(256), rtol=1e-6)


def test_a_batch_of_nothing_is_refused(small_set):
    prepared = prepare_items(small_set, ByteTokenizer(), context_tokens=512)
    with pytest.raises(InputError, match="batch_size is 0"):
        score_items(SmallTransformer(256), prepared, batch_size=0)


def test_sharing_computes_the_context_once(item_set):
    prepared = prepare_items(item_set, ByteTokenizer(), context_tokens=512)

    def cheap(tokens, *, positions, mask):
        return torch.zeros(*tokens.shape, 256)

    shared = score_items(cheap, prepared, batch_size=8)
    needed = len(prepared.contexts) + (prepared.answer_tokens - 1).sum()
    assert needed <= shared.positions <= 1.03 * needed
