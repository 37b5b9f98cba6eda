"""Loss on windows of held-out text."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.experiments.tiny import tiny_recipe
from wholestack.data.build import prepare
from wholestack.data.corpus import Corpus
from wholestack.data.loader import Loader
from wholestack.experiments.held_out import HeldOutLosses, piece_losses, pieces_of
from wholestack.experiments.sources import sources_of
from wholestack.pretrain.config import ModelConfig
from wholestack.pretrain.model import Transformer


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("held-out")
    sources = sources_of(tiny_recipe(folder / "text"))
    return prepare(sources, folder / "data", vocab_size=256, seed=0, held_out_fraction=0.2)


def loader(corpus: Corpus, batch_size: int) -> Loader:
    return Loader(corpus, {"notes": 1, "tales": 1}, batch_size, 16, 5, split="held_out")


def test_a_piece_is_of_one_document_and_its_loss_is_the_mean_over_its_tokens_whatever_the_batch_size(
    corpus: Corpus,
) -> None:
    """Token by token: which document it is of, and what the model gives to it."""
    windows = 60
    config = ModelConfig(vocab_size=256, context=16, layers=1, width=16, head_size=8, kv_heads=1)
    model = Transformer(config).eval()
    pieces = pieces_of(corpus, loader(corpus, 1), windows)
    found = piece_losses(model, loader(corpus, 1), pieces, windows)
    assert piece_losses(model, loader(corpus, 4), pieces, windows) == pytest.approx(found, abs=1e-6)
    by_hand: list[float] = []
    documents: list[str] = []
    for number in range(windows):
        (place,) = loader(corpus, 1).places(number)
        tokens = torch.from_numpy(loader(corpus, 1).batch(number)[0])
        with torch.inference_mode():
            log_p = model(tokens[None, :-1])[0].double().log_softmax(-1)
        by_hand += [-float(log_p[at, int(tokens[at + 1])]) for at in range(16)]
        length = len(corpus.stream("held_out", place.source))
        here = [(place.first_token + 1 + at) % length for at in range(16)]
        documents += [corpus.where(place.source, "held_out", token).cluster for token in here]
    cut = np.repeat(np.arange(len(pieces.tokens)), pieces.tokens)
    assert len(cut) == 16 * windows
    assert len(pieces.tokens) > windows
    named: dict[int, str] = {}
    for piece, document in enumerate(pieces.documents.tolist()):
        inside = np.flatnonzero(cut == piece)
        assert {documents[at] for at in inside} == {named.setdefault(document, documents[inside[0]])}
        assert found[piece] == pytest.approx(np.mean([by_hand[at] for at in inside]), abs=1e-5)
    assert len(set(named.values())) == len(named)


@pytest.mark.parametrize("before", [None, np.array([2.0, 3.0])])
def test_losses_come_back_as_they_were_saved(tmp_path: Path, before: np.ndarray | None) -> None:
    saved = HeldOutLosses(
        before_bpb=before, after_bpb=np.array([1.0, 2.5]), tokens=np.array([3, 1]), documents=np.array([0, 1])
    )
    saved.save(tmp_path / "x.npz")
    read = HeldOutLosses.load(tmp_path / "x.npz")
    assert (read.before_bpb is None) == (before is None)
    assert before is None or np.array_equal(read.before_bpb, before)
    assert (read.after_bpb.tolist(), read.tokens.tolist(), read.documents.tolist()) == ([1.0, 2.5], [3, 1], [0, 1])
