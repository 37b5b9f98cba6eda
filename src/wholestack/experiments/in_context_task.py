"""The task of ``evals context``: a table of keys and labels that is new in every episode and told by noisy examples.

An episode draws for each of K keys one of L labels, its own. A demonstration is a key, drawn evenly, and a label: the
key's own with probability 1 - noise, else one of the others. A question is one more demonstration whose label is not
shown; so nobody is right more often than 1 - noise. Nothing about an episode can be known before its demonstrations are
seen, and because they are noisy, copying the last one is not enough: counts have to be weighed. So more demonstrations
go on helping, and the best that any learner can do is known exactly (:func:`best_losses`).

The needle test beside it is another thing: one demonstration among many holds the asked key, without noise, and has to
be found. It measures retrieval of a fragment, not learning.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wholestack.errors import InputError
from wholestack.evals.items import Item, make_item
from wholestack.evals.statistics import Floats, Ints

KEYS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
LABELS = "0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTask:
    """How episodes are made.

    Raises:
        InputError: more keys or labels than there are letters or digits, or a noise that leaves nothing to learn.
    """

    keys: int = 24
    labels: int = 4
    noise: float = 0.2
    """Probability that a demonstration shows another label than the key's own."""

    def __post_init__(self) -> None:
        if not (2 <= self.keys <= len(KEYS) and 2 <= self.labels <= len(LABELS)):
            raise InputError(f"{self.keys} keys and {self.labels} labels", remedy=f"at most {len(KEYS)} and 10")
        if not 0 <= self.noise < 1 - 1 / self.labels:
            raise InputError(f"noise is {self.noise}, with {self.labels} labels it must be below chance")

    @property
    def vocabulary(self) -> str:
        """Every character of an episode, in the order of the tokens."""
        return KEYS[: self.keys] + LABELS[: self.labels]


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """Demonstrations in the order in which they are shown, and questions on the same table."""

    keys: Ints
    """``[demonstrations]``."""
    labels: Ints
    """``[demonstrations]``, as shown."""
    asked: Ints
    """``[questions]``, keys."""
    answers: Ints
    """``[questions]``, labels as demonstrations would have shown them."""


def make_episode(task: TableTask, *, demonstrations: int, questions: int, rng: np.random.Generator) -> Episode:
    """One episode; with the same generator fewer demonstrations are not a prefix of more, see :func:`shortened`."""
    table = rng.integers(task.labels, size=task.keys)
    keys = rng.integers(task.keys, size=demonstrations)
    asked = rng.integers(task.keys, size=questions)
    return Episode(
        keys=keys, labels=_shown(task, table[keys], rng), asked=asked, answers=_shown(task, table[asked], rng)
    )


def make_needle(task: TableTask, *, demonstrations: int, questions: int, rng: np.random.Generator) -> list[Episode]:
    """Episodes of one question each: the asked key stands once, without noise, at a depth of its own."""
    found = []
    for _ in range(questions):
        table = rng.integers(task.labels, size=task.keys)
        asked = int(rng.integers(task.keys))
        keys = (asked + 1 + rng.integers(task.keys - 1, size=demonstrations)) % task.keys
        keys[int(rng.integers(demonstrations))] = asked
        labels = np.where(keys == asked, table[keys], _shown(task, table[keys], rng))
        found.append(Episode(keys=keys, labels=labels, asked=np.array([asked]), answers=table[[asked]]))
    return found


def shortened(episode: Episode, demonstrations: int) -> Episode:
    """The same table and questions with the first so many demonstrations."""
    return Episode(
        keys=episode.keys[:demonstrations],
        labels=episode.labels[:demonstrations],
        asked=episode.asked,
        answers=episode.answers,
    )


def demonstrated(episode: Episode) -> Episode:
    """The demonstrations as questions with nothing in front of them, and the labels that they show as answers."""
    none = np.zeros(0, np.int64)
    return Episode(keys=none, labels=none, asked=episode.keys, answers=episode.labels)


def tokens_of(task: TableTask, episode: Episode) -> Ints:
    """Key, label, key, label, ... as tokens of :attr:`TableTask.vocabulary`, ``[2 * demonstrations]``."""
    return np.stack([episode.keys, task.keys + episode.labels], 1).ravel().astype(np.int64)


def check_template(template: str) -> None:
    """Refuse what cannot write a demonstration whose last word before its end is the label.

    A question is a demonstration without its label, so the key stands in front of it. Each stands there once, without
    a format of its own, and nothing else is in braces.

    Raises:
        InputError: it cannot.
    """
    remedy = "write {key} and behind it {label}, each once, for instance '{key}: {label}\\n'"
    before, key, rest = template.partition("{key}")
    between, label, behind = rest.partition("{label}")
    if not key or not label or any(brace in before + between + behind for brace in "{}"):
        raise InputError(f"--template {template!r}: is not a key, then its label", remedy=remedy)
    if any(each.isalnum() for each in behind):
        raise InputError(f"--template {template!r}: has words behind the label", remedy="put them before {label}")


def text_of(task: TableTask, episode: Episode, *, template: str = "{key}{label}") -> str:
    """The demonstrations as text for any model."""
    pairs = zip(episode.keys.tolist(), episode.labels.tolist(), strict=True)
    return "".join(template.format(key=KEYS[key], label=LABELS[label]) for key, label in pairs)


def posterior(task: TableTask, episode: Episode) -> Floats:
    """Probability that each label is shown next, given the demonstrations, ``[questions, labels]``, by Bayes' rule."""
    counts = np.zeros((task.keys, task.labels))
    np.add.at(counts, (episode.keys, episode.labels), 1)
    right, wrong = 1 - task.noise, task.noise / (task.labels - 1)
    log_odds = counts[episode.asked] * (np.log(right) - np.log(wrong) if wrong else 1e9)
    weights = np.exp(log_odds - log_odds.max(1, keepdims=True))
    own = weights / weights.sum(1, keepdims=True)
    return np.asarray(right * own + wrong * (1 - own), dtype=np.float64)


def best_losses(task: TableTask, episode: Episode) -> tuple[Floats, Floats]:
    """Loss in nats and chance of being right of the best learner that knows the task, ``[questions]`` each."""
    probabilities = posterior(task, episode)
    rows = np.arange(len(episode.answers))
    best = probabilities == probabilities.max(1, keepdims=True)
    return -np.log(probabilities[rows, episode.answers]), best[rows, episode.answers] / best.sum(1)


def training_rows(task: TableTask, *, rows: int, tokens: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Rows to pretrain on, ``[rows, tokens]``, an episode each.

    An episode uses some of the keys only, between three and all of them and few as often as many: with few keys the
    same one comes back soon, and looking back is learnt first where it pays soon.
    """
    pairs = -(-tokens // 2)
    made = []
    for _ in range(rows):
        used = int(np.exp(rng.uniform(np.log(min(3, task.keys)), np.log(task.keys + 1))))
        table = rng.integers(task.labels, size=task.keys)
        keys = rng.permutation(task.keys)[:used][rng.integers(used, size=pairs)]
        none = np.zeros(0, np.int64)
        shown = Episode(keys=keys, labels=_shown(task, table[keys], rng), asked=none, answers=none)
        made.append(tokens_of(task, shown)[:tokens])
    return np.stack(made)


def items_of(task: TableTask, episode: Episode, *, name: str, template: str = "{key}{label}") -> list[Item]:
    """The questions behind the demonstrations, for any model: the demonstrations are nothing but context.

    Args:
        task: Keys and labels.
        episode: Demonstrations and questions.
        name: Of the episode: its questions are one cluster.
        template: How a demonstration is written; what stands between key and label is the delimiter.
    """
    shown = text_of(task, episode, template=template)
    before, _, behind = template.partition("{key}")
    delimiter = behind.partition("{label}")[0]
    return [
        make_item(
            shown + before + KEYS[key],
            list(LABELS[: task.labels]),
            label,
            delimiter=delimiter,
            source="table",
            cluster=name,
            id=f"{name}-{number}",
        )
        for number, (key, label) in enumerate(zip(episode.asked.tolist(), episode.answers.tolist(), strict=True))
    ]


def _shown(task: TableTask, own: Ints, rng: np.random.Generator) -> Ints:
    other = (own + 1 + rng.integers(task.labels - 1, size=own.shape)) % task.labels
    return np.asarray(np.where(rng.random(own.shape) < task.noise, other, own), dtype=np.int64)
