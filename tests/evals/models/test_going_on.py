"""Scorings of real models that are killed: what they end with is what one without a break ends with, to the bit."""

import random
import signal
import subprocess
import sys

import pytest

from wholestack.evals.backend import Opening
from wholestack.evals.items import make_item, seal_items
from wholestack.evals.models.opening import open_backend
from wholestack.evals.results import METRICS_FILE, PER_ITEM_FILE, folder_of, read_result, score_into

COUNT = 700
"""More than a chunk of a small model holds, so that a kill hits the first and the second."""
WORDS = ("tin", "water", "a stone", "sinks", "swims", "and", "the cork", "says", "seven", "of them", "never", "is")

SCORER = """
import os, signal, sys
from pathlib import Path
import torch
from wholestack.evals.backend import Opening
from wholestack.evals.items import ItemSet
from wholestack.evals.models.opening import open_backend
from wholestack.evals.results import score_into
torch.set_num_threads(1)
folder, items, out, kill_at = sys.argv[1:]
def watch(done, total):
    if done == int(kill_at):
        os.kill(os.getpid(), signal.SIGKILL)
score_into(open_backend(folder, Opening()), ItemSet.load(Path(items)), Path(out), watch=watch, keep_every_s=0)
"""


def ragged(count):
    """Questions of many lengths, some of which begin alike."""
    rng = random.Random(7)

    def text(most):
        return " ".join(rng.choices(WORDS, k=rng.randint(1, most)))

    return [
        make_item(
            f"{'Two and two make four. ' * rng.randint(0, 4)}{text(20)} {number}",
            [f"{text(5)} {choice}" for choice in range(rng.randint(2, 5))],
            0,
            source="s",
            id=f"i{number}",
        )
        for number in range(count)
    ]


@pytest.mark.heavy
def test_a_scoring_that_was_killed_twice_ends_equal_to_the_bit(folders, tmp_path):
    sealed = seal_items(ragged(COUNT), kind="items from a file")
    sealed.save(tmp_path / "set")
    command = [sys.executable, "-c", SCORER, folders["bpe"], str(tmp_path / "set"), str(tmp_path / "out")]
    for kill_at in (201, 603):
        assert subprocess.run([*command, str(kill_at)], check=False).returncode == -signal.SIGKILL
    backend = open_backend(folders["bpe"], Opening())
    broken = folder_of(tmp_path / "out", "items", backend.identity, sealed)
    assert len(read_result(broken).by_item) == 603
    subprocess.run([*command, "-1"], check=True)
    whole = score_into(backend, sealed, tmp_path / "whole").folder
    assert len(read_result(broken).by_item) == COUNT
    for name in (METRICS_FILE, PER_ITEM_FILE):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()
