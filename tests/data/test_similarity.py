import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.data import similarity
from wholestack.data.similarity import THRESHOLD, WORDS_A_SHINGLE, Sketches, clusters, shingles, word_hashes


def plain_shingles(text: str) -> set[tuple[str, ...]]:
    """Oracle: the definition in plain Python, for ASCII text."""
    words = "".join(each.lower() if each.isalnum() else " " for each in text).split()
    if len(words) < WORDS_A_SHINGLE:
        return {tuple(words)}
    return {tuple(words[i : i + WORDS_A_SHINGLE]) for i in range(len(words) - WORDS_A_SHINGLE + 1)}


def near(texts: list[str], **settings) -> set[tuple[int, int]]:
    sketches = Sketches(**settings)
    for text in texts:
        sketches.add(text.encode())
    return {tuple(pair) for pair in sketches.near_pairs().tolist()}


def plain_near(texts: list[str]) -> set[tuple[int, int]]:
    sets = [plain_shingles(text) for text in texts]
    return {
        (i, j)
        for j in range(len(sets))
        for i in range(j)
        if len(sets[i] & sets[j]) >= THRESHOLD * min(len(sets[i]), len(sets[j]))
    }


WORDS = st.sampled_from(["a", "b", "cc", "D", "e9", "is", "the", "of"])
TEXTS = st.lists(st.lists(WORDS, max_size=30).map(" ".join), min_size=1, max_size=8)


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=300))
def test_as_many_shingles_as_the_definition_says(text):
    assert len(shingles(text.encode())) == len(plain_shingles(text))


@given(TEXTS)
def test_pairs_are_exactly_those_of_the_definition(texts):
    assert near(texts) == plain_near(texts)


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=80))
def test_case_space_and_punctuation_do_not_matter(text):
    changed = "  ".join(text.upper().replace("_", " ").split())
    changed = "".join(each if each.isalnum() else ", " for each in changed)
    assert shingles(changed.encode()).tolist() == shingles(text.encode()).tolist()


@pytest.mark.parametrize(("text", "count"), [("日本語", 3), ("héllo wörld", 2), ("привет мир", 2), ("a-b", 2), ("", 0)])
def test_what_counts_as_a_word(text, count):
    assert len(word_hashes(text.encode())) == count


@pytest.mark.parametrize("share", [0.02, 0.05, 0.10])
def test_planted_edits_are_found_among_many_documents(share, texts):
    rng = random.Random(5)
    originals = [texts(seed, words=200) for seed in range(40)]
    planted = []
    for original in originals:
        words = original.split()
        for place in rng.sample(range(len(words)), int(share * len(words))):
            words[place] = "changed"
        planted.append(" ".join(words))
    found = near(originals + planted)
    expected = {(index, index + len(originals)) for index in range(len(originals))}
    assert found == expected


def test_a_chapter_inside_a_book_is_found(texts):
    chapter = texts(1, words=80)
    book = texts(2, words=2000) + chapter + texts(3, words=2000)
    assert near([chapter, book, texts(4)]) == {(0, 1)}


def test_a_hundred_copies_are_one_cluster_and_shared_boilerplate_is_none(texts):
    header = texts(0, words=30)
    copies = [header + texts(1, words=150) + f"copy{index}" for index in range(100)]
    others = [header + texts(seed, words=150) for seed in range(2, 102)]
    sketches = Sketches()
    for text in [*others[:50], *copies, *others[50:]]:
        sketches.add(text.encode())
    labels = clusters(200, map(tuple, sketches.near_pairs().tolist()), [()] * 200)
    assert len(set(labels[50:150])) == 1
    assert len(set(labels)) == 101


def test_above_the_limit_sampling_still_finds_large_near_duplicates(texts):
    documents = [texts(seed, words=3000) for seed in range(8)]
    sketches = Sketches(limit=2000)
    for text in [*documents, *(each + "and one more sentence" for each in documents)]:
        sketches.add(text.encode())
    assert sketches.zero_bits > 0
    assert sum(map(len, sketches._sets)) <= 2000
    assert {tuple(pair) for pair in sketches.near_pairs().tolist()} == {(index, index + 8) for index in range(8)}


def test_no_documents_have_no_pairs():
    assert Sketches().near_pairs().shape == (0, 2)


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_clusters_are_the_connected_components(case):
    count, pairs = case
    labels = clusters(count, pairs, [()] * count)
    reach = np.eye(count, dtype=bool)
    for left, right in pairs:
        reach[left, right] = reach[right, left] = True
    for _ in range(count):
        reach = reach | ((reach.astype(int) @ reach.astype(int)) > 0)
    assert labels == [int(np.flatnonzero(row)[0]) for row in reach]


def test_a_common_group_name_joins():
    assert clusters(4, [], [("x",), (), ("y", "x"), ("y",)]) == [0, 1, 0, 0]


def test_mixing_is_a_bijection_on_a_sample():
    values = np.arange(100_000, dtype=np.uint64)
    assert len(np.unique(similarity.mix(values))) == len(values)
