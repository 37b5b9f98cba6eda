import hashlib
import itertools
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import chi2, chisquare

from wholestack.errors import InputError
from wholestack.evals.continuation import build_continuation_items

from .material import HeldOut


def prose(number, words=400, alphabet="abcdefghij", separators=" \n"):
    rng = random.Random(number)
    text = ""
    for _ in range(words):
        text += "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 9))) + rng.choice(separators)
    return HeldOut(str(number), "made", f"made/{number}", text)


def test_the_right_choice_really_follows_the_context(documents, item_set):
    texts = {source: [d.text for d in documents if d.source == source] for source in ("code", "prose")}
    for item in item_set.items:
        assert any(item.context + item.delimiter + item.answer in text for text in texts[item.source])


def test_wrong_choices_are_from_other_documents_of_the_source_and_do_not_follow_the_context(documents, item_set):
    own = {source: [d.text for d in documents if d.source == source] for source in ("code", "prose")}
    for item in item_set.items:
        homes = [text for text in own[item.source] if item.context + item.delimiter + item.answer in text]
        for choice in set(item.choices) - {item.answer}:
            assert not any(item.context + item.delimiter + choice in text for text in own[item.source])
            assert any(item.delimiter + choice in text for text in own[item.source] if [text] != homes)


def test_all_choices_have_the_same_bytes_in_bounds_and_end_with_a_word(item_set):
    for item in item_set.items:
        lengths = {len(choice.encode()) for choice in item.choices}
        assert len(item.choices) == 4
        assert len(lengths) == 1
        assert 48 <= lengths.pop() <= 80
        assert 160 <= len(item.context.encode()) <= 256
        assert not item.context[-1].isspace()
        assert all(not choice[-1].isspace() for choice in item.choices)


def test_both_sources_give_the_same_number_of_items(item_set):
    assert item_set.manifest.sources == {"code": 200, "prose": 200}


def test_the_right_choice_is_equally_often_at_each_place_within_each_source(item_set):
    for source in ("code", "prose"):
        places = Counter(item.gold for item in item_set.items if item.source == source)
        assert places == {0: 50, 1: 50, 2: 50, 3: 50}


def test_places_do_not_follow_from_the_place_before(item_set):
    golds = [item.gold for item in item_set.items]
    steps = Counter((after - before) % 4 for before, after in itertools.pairwise(golds))
    assert chisquare([steps[step] for step in range(4)]).pvalue > 0.001


def shallow_features(item):
    """What a guesser sees without reading: place, lengths, and rank in several orders."""
    choices = item.choices
    columns = [
        *([float(place == k) for place in range(4)] for k in range(3)),
        [len(choice.encode()) for choice in choices],
        [len(choice) for choice in choices],
        [len(choice.split()) for choice in choices],
        [sum(map(str.isupper, choice)) for choice in choices],
        [sum(not c.isalnum() for c in choice) for choice in choices],
        [sorted(choices).index(choice) for choice in choices],
        [float(choice[:1].isspace()) for choice in choices],
    ]
    return np.array(columns).T


@pytest.mark.parametrize("seed", [0, 1])
def test_a_conditional_logistic_guesser_finds_nothing_in_length_place_and_rank(documents, seed):
    items = build_continuation_items(documents, count=400, seed=seed).items
    features = np.array([shallow_features(item) for item in items], float)  # [items, choices, features]
    features = (features - features.mean((0, 1))) / np.maximum(features.std((0, 1)), 1e-9)
    varying = (features - features.mean(1, keepdims=True)).std((0, 1)) > 1e-9
    assert not varying[3], "bytes differ within an item"
    features = features[:, :, varying]
    gold = np.array([item.gold for item in items])

    def loss(weights):
        scores = features @ weights
        return (np.log(np.exp(scores).sum(1)) - scores[np.arange(len(gold)), gold]).sum()

    fit = minimize(loss, np.zeros(features.shape[2]))
    gain = 2 * (len(items) * np.log(4) - fit.fun)
    assert chi2.sf(gain, features.shape[2]) > 0.001


def test_no_document_gives_more_items_than_allowed_and_their_texts_lie_apart(documents):
    found = build_continuation_items(documents, count=300, seed=1, per_document=3)
    by_cluster = {}
    for item in found.items:
        by_cluster.setdefault(item.cluster, []).append(item)
    assert max(map(len, by_cluster.values())) == 3
    texts = {hashlib.sha256(d.text.encode()).hexdigest()[:16]: d.text for d in documents}
    for cluster, items in by_cluster.items():
        whole = [item.context + item.delimiter + item.answer for item in items]
        home = texts[cluster]
        spans = sorted((home.encode().find(part.encode()), len(part.encode())) for part in whole)
        assert all(at + size <= after for (at, size), (after, _) in itertools.pairwise(spans))


def test_choices_are_not_near_identical_and_do_not_stand_in_the_context(item_set):
    def grams(text):
        even = " ".join(text.lower().split())
        return {even[i : i + 4] for i in range(len(even) - 3)}

    for item in item_set.items:
        assert not any(choice in item.context for choice in item.choices)
        for i, one in enumerate(item.choices):
            for other in item.choices[i + 1 :]:
                assert len(grams(one) & grams(other)) < 0.5 * len(grams(one) | grams(other))


def test_boilerplate_that_every_document_repeats_is_never_an_answer_twice():
    licence = "Permission is hereby granted free of charge to any person obtaining a copy of this software to deal "
    texts = [HeldOut(str(i), "s", str(i), licence * 6 + prose(i, 200).text) for i in range(12)]
    found = build_continuation_items(texts, count=30, seed=0)
    answers = [item.answer for item in found.items]
    assert len(set(answers)) == len(answers)


def test_the_order_of_the_documents_and_of_their_sources_does_not_matter(documents, item_set):
    shuffled = random.Random(1).sample(documents, len(documents))
    assert build_continuation_items(iter(shuffled), count=400, seed=3) == item_set


def test_the_same_text_twice_counts_once(documents, item_set):
    copies = [HeldOut(d.id + "copy", d.source, "z" + d.path, d.text) for d in documents[:5]]
    again = build_continuation_items([*documents, *copies], count=400, seed=3)
    assert again.items == item_set.items
    assert again.manifest.passed_over["document: same text as another"] == 5


def test_seed_and_documents_change_the_set_and_its_name(documents, item_set):
    assert build_continuation_items(documents, count=400, seed=4).digest != item_set.digest
    assert build_continuation_items(documents[1:], count=400, seed=3).digest != item_set.digest


def test_the_python_version_is_in_the_name(documents, item_set):
    assert build_continuation_items(documents, count=400, seed=3, python_version="3.99").digest != item_set.digest


def test_documents_of_one_source_do_not_change_the_items_of_another(documents, item_set):
    less = [d for d in documents if d.source == "code" or d.path > "C"]
    code = [i for i in build_continuation_items(less, count=400, seed=3).items if i.source == "code"]
    assert {i.context for i in code} == {i.context for i in item_set.items if i.source == "code"}


def test_the_manifest_names_every_document_used(documents, item_set):
    by_hash = {hashlib.sha256(d.text.encode()).hexdigest()[:16]: f"{d.source}:{d.path}" for d in documents}
    assert all(by_hash[key] == name for key, name in item_set.manifest.documents.items())
    assert {item.cluster for item in item_set.items} <= set(item_set.manifest.documents)


def test_a_source_that_runs_dry_is_made_up_for_by_the_others():
    small = [HeldOut(f"p{i}", "small", f"p{i}", prose(100 + i, 80).text) for i in range(5)]
    found = build_continuation_items([*small, *(prose(i) for i in range(20))], count=60, seed=0)
    assert sum(found.manifest.sources.values()) == 60
    assert 0 < found.manifest.sources["small"] < 30


def test_too_little_text_is_one_line_with_the_number_there_is():
    with pytest.raises(InputError, match=r"1000 items were asked for, the held-out documents of made hold \d+ "):
        build_continuation_items([prose(i) for i in range(8)], count=1000, seed=0)


@pytest.mark.parametrize(
    "texts", [[], [""], ["short"] * 9, [prose(i).text for i in range(3)], ["x" * 5000] * 5, ["\n" * 900] * 5]
)
def test_documents_that_hold_no_item_are_an_error_and_not_a_crash(texts):
    held_out = [HeldOut(str(i), "s", str(i), text) for i, text in enumerate(texts)]
    with pytest.raises(InputError, match="hold 0"):
        build_continuation_items(held_out, count=4, seed=0)


@pytest.mark.parametrize(
    "arguments",
    [{"count": 0}, {"context_bytes": (10, 5)}, {"answer_bytes": (0, 5)}, {"per_document": 0}],
)
def test_a_wrong_bound_is_named(arguments):
    with pytest.raises(InputError, match=next(iter(arguments))):
        build_continuation_items([], **{"count": 4, "seed": 0, **arguments})


def test_half_a_surrogate_pair_is_counted_and_passed_over():
    held_out = [*(prose(i) for i in range(6)), HeldOut("bad", "made", "bad", "\ud800" + prose(9).text)]
    found = build_continuation_items(held_out, count=8, seed=0)
    assert found.manifest.passed_over["document: not Unicode text"] == 1


def test_line_boundaries_cut_at_line_ends_only(documents):
    found = build_continuation_items(documents, count=100, seed=0, boundary="line")
    assert {item.delimiter for item in found.items} == {"\n"}


def test_all_choices_of_an_item_were_cut_at_the_same_delimiter(documents, item_set):
    assert {item.delimiter for item in item_set.items} == {" ", "\n"}
    for item in item_set.items:
        starts_blank = {choice[:1].isspace() for choice in item.choices}
        assert item.delimiter == "\n" or starts_blank == {False}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.text(alphabet=st.sampled_from("ab \n\t\ré漢🎈.0"), min_size=0, max_size=300), min_size=4, max_size=12),
    st.integers(0, 3),
)
def test_any_text_gives_whole_characters_of_the_right_size_or_an_error(texts, seed):
    held_out = [HeldOut(str(i), "s", str(i), text) for i, text in enumerate(texts)]
    try:
        found = build_continuation_items(held_out, count=2, seed=seed, context_bytes=(4, 9), answer_bytes=(3, 8))
    except InputError:
        return
    for item in found.items:
        assert len({len(choice.encode()) for choice in item.choices}) == 1
        assert any(item.context + item.delimiter + item.answer in text for text in texts)
