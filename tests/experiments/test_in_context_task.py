"""Episodes of the table task: what is shown, what is asked, and the best that can be known."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.experiments.in_context_task import (
    Episode,
    TableTask,
    best_losses,
    items_of,
    make_episode,
    make_needle,
    posterior,
    shortened,
    text_of,
    tokens_of,
    training_rows,
)

TASK = TableTask(keys=6, labels=3, noise=0.2)


def likelihood(task: TableTask, table: tuple[int, ...], keys: list[int], labels: list[int]) -> float:
    wrong = task.noise / (task.labels - 1)
    shown = zip(keys, labels, strict=True)
    return math.prod(1 - task.noise if table[key] == label else wrong for key, label in shown)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=7), st.integers(0, 2), st.floats(0.05, 0.4))
def test_the_best_learner_is_bayes_rule_over_every_table(shown, asked, noise):
    task = TableTask(keys=3, labels=2, noise=noise)
    keys, labels = [key for key, _ in shown], [label for _, label in shown]
    tables = list(itertools.product(range(2), repeat=3))
    weights = [likelihood(task, table, keys, labels) for table in tables]
    expected = sum(
        weight * likelihood(task, table, [asked], [1]) for weight, table in zip(weights, tables, strict=True)
    ) / sum(weights)
    episode = Episode(
        keys=np.array(keys, int), labels=np.array(labels, int), asked=np.array([asked]), answers=np.array([1])
    )
    assert posterior(task, episode)[0, 1] == pytest.approx(expected)
    assert best_losses(task, episode)[0][0] == pytest.approx(-math.log(expected))


def test_without_demonstrations_the_best_learner_is_at_chance():
    episode = shortened(make_episode(TASK, demonstrations=5, questions=40, rng=np.random.default_rng(0)), 0)
    losses, right = best_losses(TASK, episode)
    assert losses == pytest.approx(math.log(3))
    assert right == pytest.approx(1 / 3)


def test_with_many_demonstrations_only_the_noise_is_left():
    rng = np.random.default_rng(0)
    losses, right = best_losses(TASK, make_episode(TASK, demonstrations=3000, questions=4000, rng=rng))
    noise = -(0.8 * math.log(0.8) + 0.2 * math.log(0.1))
    assert losses.mean() == pytest.approx(noise, abs=0.03)
    assert right.mean() == pytest.approx(0.8, abs=0.02)


def test_fewer_demonstrations_are_the_first_ones_on_the_same_questions():
    whole = make_episode(TASK, demonstrations=50, questions=8, rng=np.random.default_rng(1))
    few = shortened(whole, 7)
    assert (few.keys.tolist(), few.labels.tolist()) == (whole.keys[:7].tolist(), whole.labels[:7].tolist())
    assert (few.asked.tolist(), few.answers.tolist()) == (whole.asked.tolist(), whole.answers.tolist())


@given(st.integers(1, 60), st.integers(0, 100))
def test_a_needle_stands_once_and_without_noise(demonstrations, seed):
    for episode in make_needle(TASK, demonstrations=demonstrations, questions=5, rng=np.random.default_rng(seed)):
        places = np.flatnonzero(episode.keys == episode.asked[0])
        assert len(places) == 1
        assert episode.labels[places[0]] == episode.answers[0]


def test_text_and_tokens_are_the_same_demonstrations():
    episode = make_episode(TASK, demonstrations=20, questions=3, rng=np.random.default_rng(2))
    assert "".join(TASK.vocabulary[token] for token in tokens_of(TASK, episode)) == text_of(TASK, episode)


def test_questions_are_items_behind_their_demonstrations_in_any_template():
    episode = make_episode(TASK, demonstrations=2, questions=3, rng=np.random.default_rng(2))
    items = items_of(TASK, episode, name="e", template="<{key}> is {label}.\n")
    shown = text_of(TASK, episode, template="<{key}> is {label}.\n")
    assert shown.count("\n") == 2
    for item, key, answer in zip(items, episode.asked, episode.answers, strict=True):
        assert item.context + item.delimiter == f"{shown}<{TASK.vocabulary[key]}> is "
        assert item.answer == str(answer)
        assert item.cluster == "e"
    assert len({item.id for item in items}) == 3


def test_rows_to_pretrain_on_are_keys_and_labels_in_turn_from_few_and_from_many_keys():
    rows = training_rows(TASK, rows=200, tokens=41, rng=np.random.default_rng(0))
    assert rows.shape == (200, 41)
    assert rows[:, 0::2].max() < TASK.keys
    assert rows[:, 1::2].min() >= TASK.keys
    used = [len(set(row[0::2].tolist())) for row in rows]
    assert min(used) <= 3
    assert max(used) == TASK.keys


@pytest.mark.parametrize("wrong", [{"keys": 1}, {"keys": 53}, {"labels": 11}, {"noise": 0.8}, {"noise": -0.1}])
def test_a_task_without_anything_to_learn_is_refused(wrong):
    with pytest.raises(InputError):
        TableTask(**{"keys": 6, "labels": 4, **wrong})
